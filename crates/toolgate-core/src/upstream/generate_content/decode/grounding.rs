//! `groundingMetadata`: the sources of an answer.

use serde::Deserialize;

use crate::canon::{Grounding, Source, SourceKind, Support};
use crate::json::{self, Raw, Text};

/// Decodes `groundingMetadata`. A member that cannot be read counts as absent.
pub fn decode_grounding(raw: Raw<'_>) -> Grounding {
    let fields = raw.fields().unwrap_or_default();
    let queries = list::<Text<'_>>(fields.get("webSearchQueries"));
    let chunks = list::<GroundingChunk<'_>>(fields.get("groundingChunks"));
    let supports = list::<GroundingSupport<'_>>(fields.get("groundingSupports"));
    let queries = queries.iter().map(|query| query.decode().into_owned()).collect();
    let sources = chunks.iter().map(GroundingChunk::source).collect();
    let supports = supports.into_iter().map(GroundingSupport::support).collect();
    Grounding { queries, sources, supports, raw: raw.into_owned() }
}

fn list<'a, T: Deserialize<'a>>(member: Option<&'a Raw<'a>>) -> Vec<T> {
    member.and_then(|raw| json::parse(raw.get()).ok()).unwrap_or_default()
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GroundingChunk<'a> {
    #[serde(borrow)]
    web: Option<GroundingPage<'a>>,
    retrieved_context: Option<GroundingPage<'a>>,
    maps: Option<GroundingPage<'a>>,
}

#[derive(Debug, Deserialize)]
struct GroundingPage<'a> {
    #[serde(borrow)]
    uri: Option<Text<'a>>,
    title: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GroundingSupport<'a> {
    #[serde(borrow)]
    segment: Option<Segment<'a>>,
    grounding_chunk_indices: Option<Vec<usize>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Segment<'a> {
    start_index: Option<usize>,
    end_index: Option<usize>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
}

impl GroundingChunk<'_> {
    fn source(&self) -> Source {
        let pages = [
            (SourceKind::Web, &self.web),
            (SourceKind::Document, &self.retrieved_context),
            (SourceKind::Place, &self.maps),
        ];
        let mut pages = pages.into_iter().filter_map(|(kind, page)| Some((kind, page.as_ref()?)));
        let (kind, page) = match pages.next() {
            Some((kind, page)) => (kind, Some(page)),
            None => (SourceKind::Other, None),
        };
        let text = |text: &Option<Text<'_>>| text.as_ref().map(|it| it.decode().into_owned());
        Source {
            kind,
            url: page.and_then(|page| text(&page.uri)).unwrap_or_default(),
            title: page.and_then(|page| text(&page.title)),
        }
    }
}

impl GroundingSupport<'_> {
    fn support(self) -> Support {
        let segment = self.segment.as_ref();
        let text = segment.and_then(|it| it.text.as_ref()).map(Text::decode);
        Support {
            start: segment.and_then(|it| it.start_index).unwrap_or(0),
            end: segment.and_then(|it| it.end_index).unwrap_or(0),
            text: text.unwrap_or_default().into_owned(),
            sources: self.grounding_chunk_indices.unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canon::citations;

    #[track_caller]
    fn check(text: &str, metadata: &[&str], want: &[(usize, usize, &str)]) {
        let decode = |json: &&str| decode_grounding(Raw::parse((*json).to_owned()).unwrap());
        let groundings: Vec<_> = metadata.iter().map(decode).collect();
        let got = citations(&groundings, text);
        let got: Vec<_> = got.iter().map(|it| (it.start, it.end, it.url.as_str())).collect();
        assert_eq!(got, want);
    }

    const PAGES: &str = r#""groundingChunks":[{"web":{"uri":"https://a.test","title":"A"}},{"maps":{"uri":"https://b.test"}}]"#;

    #[test]
    fn bytes_become_characters() {
        let support = r#"{"segment":{"startIndex":7,"endIndex":12,"text":"kühl"},"groundingChunkIndices":[0]}"#;
        let json = format!("{{{PAGES},\"groundingSupports\":[{support}]}}");
        check("Es ist kühl.", &[&json], &[(7, 11, "https://a.test"), (12, 12, "https://b.test")]);
    }

    #[test]
    fn wrong_places_are_not_believed() {
        let support = r#"{"segment":{"startIndex":1,"endIndex":4,"text":"cool"},"groundingChunkIndices":[1,9]}"#;
        let json = format!("{{{PAGES},\"groundingSupports\":[{support}]}}");
        check("It is cool.", &[&json], &[(6, 10, "https://b.test"), (11, 11, "https://a.test")]);
        check("é", &[&json], &[(1, 1, "https://a.test"), (1, 1, "https://b.test")]);
        check("x", &["{}", "[]", r#"{"groundingChunks":5}"#], &[]);
    }

    #[test]
    fn later_metadata_continue_the_count() {
        let more = r#"{"groundingChunks":[{"web":{"uri":"https://c.test","title":"C"}}],"groundingSupports":[{"segment":{"endIndex":2,"text":"It"},"groundingChunkIndices":[2]}]}"#;
        let first = format!("{{{PAGES}}}");
        check(
            "It is",
            &[&first, more],
            &[(0, 2, "https://c.test"), (5, 5, "https://a.test"), (5, 5, "https://b.test")],
        );
    }
}
