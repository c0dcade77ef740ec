//! What a search leaves in an answer: the queries, the sources, the citations.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::frames::{member, number};
use super::wire::Str;
use crate::json::{Raw, Text, write};

/// Remembers what has been shown: grounding comes in pieces that build on each other.
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

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Grounding<'a> {
    #[serde(borrow)]
    web_search_queries: Option<Vec<Str<'a>>>,
    grounding_chunks: Option<Vec<Chunk<'a>>>,
    grounding_supports: Option<Vec<Support<'a>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Chunk<'a> {
    #[serde(borrow)]
    web: Option<Web<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Web<'a> {
    #[serde(borrow)]
    uri: Option<Str<'a>>,
    title: Option<Str<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Support<'a> {
    #[serde(borrow)]
    segment: Option<Segment<'a>>,
    grounding_chunk_indices: Option<Vec<usize>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Segment<'a> {
    start_index: Option<usize>,
    end_index: Option<usize>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ToolCall<'a> {
    #[serde(borrow)]
    tool_type: Option<Str<'a>>,
    args: Option<Raw<'a>>,
}

impl Search {
    pub(super) fn new(wants_sources: bool) -> Self {
        Self { wants_sources, shown: BTreeSet::new(), cited: BTreeSet::new(), sources: Vec::new() }
    }

    /// Citations count from the start of a new text.
    pub(super) fn begin_text(&mut self) {
        self.cited.clear();
    }

    /// Reads `groundingMetadata`: the `action` of a search that has not been shown yet, and what
    /// is cited in `text`.
    pub(super) fn read(
        &mut self,
        metadata: &Raw<'_>,
        text: Option<&str>,
    ) -> (Option<Vec<u8>>, Vec<Citation>) {
        let Ok(grounding) = serde_json::from_str::<Grounding<'_>>(metadata.get()) else {
            return (None, Vec::new());
        };
        let chunks = grounding.grounding_chunks.unwrap_or_default();
        self.learn(chunks.into_iter().map(|chunk| {
            let web = chunk.web.unwrap_or_default();
            let text = |it: Option<Str<'_>>| it.map_or_else(String::new, |it| it.0.into_owned());
            Source { url: text(web.uri), title: text(web.title) }
        }));
        let queries = grounding.web_search_queries.unwrap_or_default();
        let action = self.action(queries.into_iter().map(|query| query.0.into_owned()));
        let supports = grounding.grounding_supports.unwrap_or_default();
        (action, text.map_or_else(Vec::new, |text| self.citations(&supports, text)))
    }

    /// The `action` that a `toolCall` of Gemini's own search stands for.
    pub(super) fn action_of_call(&mut self, body: &Raw<'_>) -> Option<Vec<u8>> {
        let call: ToolCall<'_> = serde_json::from_str(body.get()).ok()?;
        let args = call.args.as_ref().and_then(Raw::fields)?;
        match &*call.tool_type?.0 {
            "GOOGLE_SEARCH_WEB" | "GOOGLE_SEARCH_IMAGE" => {
                let listed = args.get("queries").and_then(Raw::items).unwrap_or_default();
                let queries: Vec<_> = listed.iter().chain(args.get("query")).collect();
                self.action(
                    queries.into_iter().filter_map(|query| {
                        query.as_text().map(|query| query.decode().into_owned())
                    }),
                )
            }
            "URL_CONTEXT" => {
                let listed = args.get("urls").and_then(Raw::items).unwrap_or_default();
                let url = listed.first().or_else(|| args.get("url"))?.as_text()?.into_owned();
                let mut out = b"{\"type\":\"open_page\",\"url\":".to_vec();
                url.write(&mut out);
                out.push(b'}');
                Some(out)
            }
            _ => None,
        }
    }

    /// Each piece of grounding brings only sources that are new; one that repeats what is known
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
    fn citations(&mut self, supports: &[Support<'_>], text: &str) -> Vec<Citation> {
        let mut found = Vec::new();
        let mut offsets = BTreeMap::new();
        for support in supports {
            let Some(segment) = &support.segment else { continue };
            let (start, end) = (segment.start_index.unwrap_or(0), segment.end_index.unwrap_or(0));
            let here = text.get(start..end).filter(|words| !words.is_empty());
            let said = segment.text.as_ref().map(Text::decode);
            if here.is_none() || here != said.as_deref() {
                continue;
            }
            for index in support.grounding_chunk_indices.iter().flatten() {
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

    const TEXT: &str = "Höhe: 42 m. Ende.";

    #[track_caller]
    fn check(metadata: &str, want: &[(u64, u64, &str)]) {
        let raw: Raw<'_> = serde_json::from_str(metadata).unwrap();
        let (_, citations) = Search::new(false).read(&raw, Some(TEXT));
        let got: Vec<_> =
            citations.iter().map(|it| (it.start, it.end, it.source.url.as_str())).collect();
        assert_eq!(got, want, "{metadata}");
    }

    #[test]
    fn bytes_become_characters() {
        let chunks = r#""groundingChunks":[{"web":{"uri":"u0","title":"t"}},{"maps":{}},{"web":{"uri":"u2"}}]"#;
        check(
            &format!(
                r#"{{{chunks},"groundingSupports":[{{"segment":{{"startIndex":7,"endIndex":11,"text":"42 m"}},"groundingChunkIndices":[0,2,1,9]}}]}}"#
            ),
            &[(6, 10, "u0"), (6, 10, "u2")],
        );
        // Absent means 0; words that are elsewhere, or half a character, are not cited.
        check(
            &format!(
                r#"{{{chunks},"groundingSupports":[{{"segment":{{"endIndex":5,"text":"Höhe"}},"groundingChunkIndices":[0]}},{{"segment":{{"startIndex":1,"endIndex":5,"text":"42 m"}},"groundingChunkIndices":[0]}},{{"segment":{{"startIndex":2,"endIndex":5,"text":"he"}},"groundingChunkIndices":[0]}},{{"segment":{{"startIndex":2,"endIndex":4}},"groundingChunkIndices":[0]}}]}}"#
            ),
            &[(0, 4, "u0")],
        );
        check("{}", &[]);
        check("[]", &[]);
    }

    #[test]
    fn searches_are_shown_once() {
        let mut search = Search::new(true);
        let raw: Raw<'_> = serde_json::from_str(
            r#"{"webSearchQueries":["a","b"],"groundingChunks":[{"web":{"uri":"u","title":"t"}}]}"#,
        )
        .unwrap();
        let (action, _) = search.read(&raw, None);
        assert_eq!(
            String::from_utf8(action.unwrap()).unwrap(),
            r#"{"type":"search","query":"a","queries":["a","b"],"sources":[{"type":"url","url":"u"}]}"#
        );
        assert!(search.read(&raw, None).0.is_none());
        assert_eq!(search.sources.len(), 1);
        let call: Raw<'_> = serde_json::from_str(
            r#"{"toolType":"GOOGLE_SEARCH_WEB","args":{"queries":["b","c"]},"id":"x"}"#,
        )
        .unwrap();
        let action = String::from_utf8(search.action_of_call(&call).unwrap()).unwrap();
        assert!(action.starts_with(r#"{"type":"search","query":"c","queries":["c"]"#), "{action}");
    }
}
