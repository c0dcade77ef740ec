//! Search results in an answer: queries, sources, citations.

use std::collections::{BTreeMap, BTreeSet};

use super::frames::{member, number};
use crate::canon::{Grounding, ServerAction, SourceKind, Support};
use crate::json::write;

/// State of the searches shown so far: grounding comes in pieces that build on each other.
#[derive(Clone, Debug)]
pub(super) struct Search {
    wants_sources: bool,
    shown: BTreeSet<String>,
    cited: BTreeSet<(usize, usize, String)>,
    sources: Vec<Source>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Source {
    url: String,
    title: String,
}

/// A `url_citation`; its indices count characters.
#[derive(Clone, Debug)]
pub(super) struct Citation {
    start: u64,
    end: u64,
    source: Source,
}

impl Search {
    pub(super) fn new(wants_sources: bool) -> Self {
        Self { wants_sources, shown: BTreeSet::new(), cited: BTreeSet::new(), sources: Vec::new() }
    }

    /// Citations count from the start of a new text.
    pub(super) fn begin_text(&mut self) {
        self.cited.clear();
    }

    /// Takes the sources of an answer. Returns the `action` of a search that has not been shown yet,
    /// and the new citations in `text`.
    pub(super) fn read(
        &mut self,
        grounding: &Grounding,
        text: Option<&str>,
    ) -> (Option<Vec<u8>>, Vec<Citation>) {
        self.learn(grounding.sources.iter().map(|source| {
            // Only pages on the web are cited; the others count.
            let is_web = source.kind == SourceKind::Web;
            let url = if is_web { source.url.clone() } else { String::new() };
            Source { url, title: source.title.clone().filter(|_| is_web).unwrap_or_default() }
        }));
        let action = self.action(grounding.queries.iter().cloned());
        (action, text.map_or_else(Vec::new, |text| self.citations(&grounding.supports, text)))
    }

    /// The `action` of a step that Gemini took itself; `None` for steps that are not shown.
    pub(super) fn action_of(&mut self, action: &ServerAction<'_>) -> Option<Vec<u8>> {
        match action {
            ServerAction::Search(queries) => self.action(queries.iter().cloned()),
            ServerAction::OpenPage(url) => {
                let mut out = b"{\"type\":\"open_page\",\"url\":".to_vec();
                url.write(&mut out);
                out.push(b'}');
                Some(out)
            }
            ServerAction::Code { .. } | ServerAction::CodeResult { .. } | ServerAction::Other => {
                None
            }
        }
    }

    /// Each piece of grounding brings only new sources; one that repeats known ones
    /// is whole.
    fn learn(&mut self, sources: impl Iterator<Item = Source>) {
        let mut new: Vec<_> = sources.collect();
        if new.starts_with(&self.sources) {
            self.sources = new;
        } else {
            self.sources.append(&mut new);
        }
    }

    fn action(&mut self, queries: impl Iterator<Item = String>) -> Option<Vec<u8>> {
        let new: Vec<_> = queries.filter(|query| self.shown.insert(query.clone())).collect();
        let first = new.first()?;
        let mut out = b"{\"type\":\"search\"".to_vec();
        member(&mut out, "query", first);
        write::key(&mut out, "queries");
        out.push(b'[');
        for query in &new {
            write::comma(&mut out);
            write::string(&mut out, query);
        }
        out.push(b']');
        if self.wants_sources {
            write::key(&mut out, "sources");
            out.push(b'[');
            for source in self.sources.iter().filter(|source| !source.url.is_empty()) {
                write::comma(&mut out);
                out.push(b'{');
                member(&mut out, "type", "url");
                member(&mut out, "url", &source.url);
                out.push(b'}');
            }
            out.push(b']');
        }
        out.push(b'}');
        Some(out)
    }

    /// Gemini counts bytes, OpenAI characters. A segment whose words are not where it says they
    /// are is left out: a wrong citation is worse than none.
    fn citations(&mut self, supports: &[Support], text: &str) -> Vec<Citation> {
        let mut found = Vec::new();
        let mut offsets = BTreeMap::new();
        for Support { start, end, text: words, sources } in supports {
            let (start, end) = (*start, *end);
            if words.is_empty() || text.get(start..end) != Some(words) {
                continue;
            }
            for index in sources {
                let source = self.sources.get(*index).filter(|source| !source.url.is_empty());
                let Some(source) = source else { continue };
                if self.cited.insert((start, end, source.url.clone())) {
                    offsets.insert(start, 0);
                    offsets.insert(end, 0);
                    found.push((start, end, source.clone()));
                }
            }
        }
        let mut counted = (0, 0);
        for (byte, characters) in &mut offsets {
            counted.1 += text.get(counted.0..*byte).map_or(0, |it| it.chars().count() as u64);
            counted.0 = *byte;
            *characters = counted.1;
        }
        let at = |byte: usize| offsets.get(&byte).copied().unwrap_or(0);
        found
            .into_iter()
            .map(|(start, end, source)| Citation { start: at(start), end: at(end), source })
            .collect()
    }
}

impl Citation {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        member(out, "type", "url_citation");
        number(out, "start_index", self.start);
        number(out, "end_index", self.end);
        member(out, "url", &self.source.url);
        member(out, "title", &self.source.title);
        out.push(b'}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canon;
    use crate::json::Raw;

    const TEXT: &str = "Höhe: 42 m. Ende.";

    fn source(kind: SourceKind, url: &str) -> canon::Source {
        canon::Source { kind, url: url.to_owned(), title: Some("t".to_owned()) }
    }

    fn grounding(queries: &[&str], supports: Vec<Support>) -> Grounding {
        let sources = [(SourceKind::Web, "u0"), (SourceKind::Place, "u1"), (SourceKind::Web, "u2")];
        Grounding {
            queries: queries.iter().map(|query| (*query).to_owned()).collect(),
            sources: sources.map(|(kind, url)| source(kind, url)).to_vec(),
            supports,
            raw: Raw::empty_object(),
        }
    }

    #[track_caller]
    fn check(supports: &[(usize, usize, &str, &[usize])], want: &[(u64, u64, &str)]) {
        let supports = supports.iter().map(|(start, end, text, sources)| Support {
            start: *start,
            end: *end,
            text: (*text).to_owned(),
            sources: sources.to_vec(),
        });
        let grounding = grounding(&[], supports.collect());
        let (_, citations) = Search::new(false).read(&grounding, Some(TEXT));
        let got: Vec<_> =
            citations.iter().map(|it| (it.start, it.end, it.source.url.as_str())).collect();
        assert_eq!(got, want, "{grounding:?}");
    }

    #[test]
    fn bytes_become_characters() {
        check(&[(7, 11, "42 m", &[0, 2, 1, 9])], &[(6, 10, "u0"), (6, 10, "u2")]);
        // Words that are elsewhere, half a character and empty segments are not cited.
        check(
            &[(0, 5, "Höhe", &[0]), (1, 5, "42 m", &[0]), (2, 5, "he", &[0]), (2, 4, "", &[0])],
            &[(0, 4, "u0")],
        );
        check(&[], &[]);
    }

    #[test]
    fn searches_are_shown_once() {
        let mut search = Search::new(true);
        let found = grounding(&["a", "b"], Vec::new());
        let (action, _) = search.read(&found, None);
        assert_eq!(
            String::from_utf8(action.unwrap()).unwrap(),
            r#"{"type":"search","query":"a","queries":["a","b"],"sources":[{"type":"url","url":"u0"},{"type":"url","url":"u2"}]}"#
        );
        assert!(search.read(&found, None).0.is_none());
        assert_eq!(search.sources.len(), 3);
        let call = ServerAction::Search(vec!["b".to_owned(), "c".to_owned()]);
        let action = String::from_utf8(search.action_of(&call).unwrap()).unwrap();
        assert!(action.starts_with(r#"{"type":"search","query":"c","queries":["c"]"#), "{action}");
    }
}
