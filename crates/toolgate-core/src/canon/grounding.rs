//! Sources of an answer: searches, pages, and the text that rests on them.

use crate::json::Raw;

/// Sources of an answer, as far as one chunk named them. Later ones continue the list of sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grounding {
    /// Queries that the model searched the web for.
    pub queries: Vec<String>,
    /// Sources, in the order in which [`Support::sources`] counts them.
    pub sources: Vec<Source>,
    /// Stretches of the answer with their sources.
    pub supports: Vec<Support>,
    /// The upstream's own JSON, for clients that speak its dialect.
    pub raw: Raw<'static>,
}

/// A page or document that an answer rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Where the model found it.
    pub kind: SourceKind,
    /// Its address; empty where it has none.
    pub url: String,
    /// Its title, where it has one.
    pub title: Option<String>,
}

/// Origin of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// A page on the web.
    Web,
    /// A document of the client's.
    Document,
    /// A place on a map.
    Place,
    /// Something that this version does not know.
    Other,
}

/// A stretch of the answer that rests on sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Support {
    /// First byte of the stretch, as the upstream counts.
    pub start: usize,
    /// The byte after the stretch.
    pub end: usize,
    /// Text of the stretch.
    pub text: String,
    /// Indices of its sources, counted over all groundings of the answer.
    pub sources: Vec<usize>,
}

/// A stretch of the answer and a page that it rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Citation {
    /// First character of the stretch.
    pub start: usize,
    /// The character after the stretch. Equal to `start`: the answer as a whole rests on the page.
    pub end: usize,
    /// Address of the page.
    pub url: String,
    /// Title of the page; its address where it has none.
    pub title: String,
}

/// Finds the citations of an answer.
///
/// Gemini counts bytes, and of a part, not of the answer. A stretch is cited only where `text` has
/// the very words of the support; otherwise its page is cited for the whole answer.
pub fn citations(groundings: &[Grounding], text: &str) -> Vec<Citation> {
    if groundings.is_empty() {
        return Vec::new();
    }
    let sources: Vec<&Source> = groundings.iter().flat_map(|it| &it.sources).collect();
    let starts: Vec<usize> = text.char_indices().map(|(byte, _)| byte).collect();
    let character = |byte: usize| starts.partition_point(|&start| start < byte);

    let mut cited = vec![false; sources.len()];
    let mut found = Vec::new();
    for support in groundings.iter().flat_map(|it| &it.supports) {
        let Some((start, end)) = support.find(text) else { continue };
        for &index in &support.sources {
            let Some(source) = sources.get(index).filter(|it| !it.url.is_empty()) else { continue };
            cited[index] = true;
            found.push(source.cite(character(start), character(end)));
        }
    }
    let end = starts.len();
    let rest =
        sources.iter().zip(&cited).filter(|(source, cited)| !**cited && !source.url.is_empty());
    found.extend(rest.map(|(source, _)| source.cite(end, end)));
    found
}

impl Source {
    fn cite(&self, start: usize, end: usize) -> Citation {
        let title = self.title.as_ref().filter(|title| !title.is_empty());
        let title = title.unwrap_or(&self.url).clone();
        Citation { start, end, url: self.url.clone(), title }
    }
}

impl Support {
    /// Bytes of the answer that the stretch means.
    fn find(&self, text: &str) -> Option<(usize, usize)> {
        if self.text.is_empty() {
            return None;
        }
        if text.get(self.start..self.end) == Some(self.text.as_str()) {
            return Some((self.start, self.end));
        }
        let start = memchr::memmem::find(text.as_bytes(), self.text.as_bytes())?;
        Some((start, start + self.text.len()))
    }
}
