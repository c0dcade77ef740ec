//! What an answer rests on, read out of `groundingMetadata`.

use serde::Deserialize;

use crate::json::Raw;

/// A stretch of the answer and the page that it rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Citation {
    /// Where the stretch begins, in characters of the answer's text.
    pub start: usize,
    /// Where it ends. As large as `start`: the answer as a whole rests on the page.
    pub end: usize,
    /// The page's address.
    pub url: String,
    /// The page's title; its address where it has none.
    pub title: String,
}

/// Reads the `groundingMetadata` of one answer, as many as came, beside the answer's text.
///
/// Gemini counts bytes, and of a part, not of the answer. A stretch is believed only where the
/// text has the very words that Gemini says; else the page is cited for the whole answer.
pub fn citations(groundings: &[Raw<'_>], text: &str) -> Vec<Citation> {
    let parsed: Vec<Metadata> = groundings.iter().filter_map(Raw::to).collect();
    if parsed.is_empty() {
        return Vec::new();
    }
    // A stream's later metadata continue the numbering of the earlier ones.
    let pages: Vec<Option<&Page>> =
        parsed.iter().flat_map(|metadata| &metadata.grounding_chunks).map(Chunk::page).collect();
    let starts: Vec<usize> = text.char_indices().map(|(byte, _)| byte).collect();
    let character = |byte: usize| starts.partition_point(|&start| start < byte);

    let mut cited = vec![false; pages.len()];
    let mut found = Vec::new();
    for support in parsed.iter().flat_map(|metadata| &metadata.grounding_supports) {
        let Some((start, end)) = support.segment.find(text) else { continue };
        for &index in &support.grounding_chunk_indices {
            let Some(Some(page)) = pages.get(index) else { continue };
            cited[index] = true;
            found.push(page.cite(character(start), character(end)));
        }
    }
    let end = starts.len();
    let rest = pages.iter().zip(&cited).filter(|(_, cited)| !**cited);
    found.extend(rest.filter_map(|(page, _)| Some((*page)?.cite(end, end))));
    found
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    grounding_chunks: Vec<Chunk>,
    grounding_supports: Vec<Support>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Chunk {
    web: Option<Page>,
    retrieved_context: Option<Page>,
    maps: Option<Page>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Page {
    uri: String,
    title: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Support {
    segment: Segment,
    grounding_chunk_indices: Vec<usize>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Segment {
    start_index: usize,
    end_index: usize,
    text: String,
}

impl Chunk {
    fn page(&self) -> Option<&Page> {
        [&self.web, &self.retrieved_context, &self.maps]
            .into_iter()
            .flatten()
            .find(|page| !page.uri.is_empty())
    }
}

impl Page {
    fn cite(&self, start: usize, end: usize) -> Citation {
        let title = if self.title.is_empty() { &self.uri } else { &self.title };
        Citation { start, end, url: self.uri.clone(), title: title.clone() }
    }
}

impl Segment {
    /// The bytes of the answer that the segment means.
    fn find(&self, text: &str) -> Option<(usize, usize)> {
        if self.text.is_empty() {
            return None;
        }
        if text.get(self.start_index..self.end_index) == Some(self.text.as_str()) {
            return Some((self.start_index, self.end_index));
        }
        let start = memchr::memmem::find(text.as_bytes(), self.text.as_bytes())?;
        Some((start, start + self.text.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, metadata: &[&str], want: &[(usize, usize, &str)]) {
        let raws: Vec<_> =
            metadata.iter().map(|json| Raw::parse((*json).to_owned()).unwrap()).collect();
        let got = citations(&raws, text);
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
