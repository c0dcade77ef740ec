//! From a slice of a file to line and column.

use super::escape::is_unsafe;
use super::types::{Position, Snippet};
use crate::schema::tree::start;

/// Lines longer than this are cut around the mark: minified files are one line.
const MAX_LINE: usize = 100;

/// Bytes between two places whose number of characters is known.
const STRIDE: usize = 1024;

/// Where the lines of a text begin, and how many characters stand before places in it: a file of
/// one line is not counted from its beginning for every place.
#[derive(Debug)]
pub(super) struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
    /// Characters that begin before every `STRIDE`th byte.
    characters: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let breaks = memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1);
        let mut count = 0;
        let strides = text.as_bytes().chunks(STRIDE).map(|bytes| {
            let before = count;
            count += bytes.iter().filter(|byte| is_first_byte(**byte)).count();
            before
        });
        let characters = strides.collect();
        Self { text, starts: std::iter::once(0).chain(breaks).collect(), characters }
    }

    /// How many characters begin before an offset.
    fn characters_before(&self, offset: usize) -> usize {
        let stride = offset / STRIDE;
        let Some(before) = self.characters.get(stride) else {
            return self.text.get(..offset).map_or(0, |text| text.chars().count());
        };
        let rest = self.text.as_bytes().get(stride * STRIDE..offset).unwrap_or_default();
        before + rest.iter().filter(|byte| is_first_byte(**byte)).count()
    }

    /// Where a slice of the text begins.
    pub(super) fn offset(&self, slice: &str) -> usize {
        let at = start(slice).wrapping_sub(start(self.text));
        if at <= self.text.len() { at } else { 0 }
    }

    pub(super) fn position(&self, offset: usize) -> Position {
        let (line, from) = self.line(offset);
        let column = self.characters_before(offset) - self.characters_before(from);
        Position { line: line + 1, column: column + 1 }
    }

    /// The offset of a line and column as `serde_json` counts them: columns are bytes.
    pub(super) fn at(&self, line: usize, column: usize) -> usize {
        let from = self.starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
        self.text.floor_char_boundary((from + column.saturating_sub(1)).min(self.text.len()))
    }

    /// The line around an offset, with `length` bytes marked.
    pub(super) fn snippet(&self, offset: usize, length: usize) -> Snippet {
        let (line, from) = self.line(offset);
        let end = self.starts.get(line + 1).copied().unwrap_or(self.text.len());
        let line = self.text.get(from..end).unwrap_or("").trim_end();
        let at = (offset - from).min(line.len());
        let (before, rest) = line.split_at_checked(at).unwrap_or(("", line));
        let length = rest.floor_char_boundary(length.min(rest.len()));
        let (marked, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
        // More than a line's worth of characters is never shown, so no more are looked at.
        let count = |text: &str| text.chars().take(MAX_LINE + 1).count();
        let marked_length = count(marked).clamp(1, MAX_LINE / 2);
        let room = MAX_LINE - marked_length;
        let before_length = count(before);
        let mut text = String::new();
        let shown_before = before_length.min(room / 2);
        let cut = before_length > shown_before && count(line) > MAX_LINE;
        if cut {
            text.push('…');
        }
        let shown = if cut { shown_before } else { before_length };
        let shown: Vec<char> = before.chars().rev().take(shown).collect();
        text.extend(shown.into_iter().rev().map(plain));
        let before = text.chars().count();
        text.extend(marked.chars().take(marked_length).map(plain));
        let left = MAX_LINE.saturating_sub(text.chars().count());
        let more = marked.chars().skip(marked_length).chain(after.chars());
        text.extend(more.clone().take(left).map(plain));
        if more.take(left + 1).count() > left {
            text.push('…');
        }
        Snippet { text, before, length: marked_length }
    }

    fn line(&self, offset: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|start| *start <= offset).saturating_sub(1);
        (line, self.starts.get(line).copied().unwrap_or(0))
    }
}

/// Whether a character begins with this byte.
fn is_first_byte(byte: u8) -> bool {
    byte & 0xC0 != 0x80
}

/// A tab would shift the mark, a control character could do worse to a terminal.
fn plain(c: char) -> char {
    if is_unsafe(c) || c.is_control() { ' ' } else { c }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_counted_in_characters() {
        let text = "{\n  \"ü\": [1,\n 22]}";
        let lines = Lines::new(text);
        let at = |slice: &str| lines.position(lines.offset(slice));
        assert_eq!(at(text), Position { line: 1, column: 1 });
        let list = text.find('[').unwrap();
        assert_eq!(at(&text[list..]), Position { line: 2, column: 8 });
        assert_eq!(at(&text[text.find("22").unwrap()..]), Position { line: 3, column: 2 });
        assert_eq!(lines.at(2, 3), 4);
    }

    #[test]
    fn long_lines_are_cut_around_the_mark() {
        let text = format!("{}\"key\"{}", "x".repeat(500), "y".repeat(500));
        let snippet = Lines::new(&text).snippet(500, 5);
        assert_eq!(snippet.length, 5);
        let marked: String = snippet.text.chars().skip(snippet.before).take(5).collect();
        assert_eq!(marked, "\"key\"");
        assert!(snippet.text.starts_with('…') && snippet.text.ends_with('…'));
        assert!(snippet.text.chars().count() <= MAX_LINE + 2);
        let short = Lines::new("ab\tcd\nxy").snippet(1, 1);
        assert_eq!((short.text.as_str(), short.before, short.length), ("ab cd", 1, 1));
    }
}
