//! Walking through JSON that has been checked.

use std::borrow::Cow;

use super::write::string_end;
use super::{Kind, Raw, Text};

/// Walks through a value member by member. Where it stands is never looked at twice, and since the
/// value was checked when it was taken from the body, only its structure is looked at at all.
///
/// ```
/// use toolgate_core::json::{Cursor, Raw};
/// let raw: Raw<'_> = serde_json::from_str(r#"{"a": [1, "}"], "b": null}"#).unwrap();
/// let mut cursor = Cursor::new(&raw);
/// cursor.enter();
/// let mut members = Vec::new();
/// while let Some(key) = cursor.next_key() {
///     members.push((key, cursor.value().get()));
/// }
/// assert_eq!(members, [("a".into(), r#"[1, "}"]"#), ("b".into(), "null")]);
/// ```
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    json: &'a str,
    at: usize,
}

/// A value inside a body that has been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice<'a>(&'a str);

impl<'a> Cursor<'a> {
    /// Stands before the value. One that is not borrowed from a body reads as `null`.
    pub fn new(raw: &Raw<'a>) -> Self {
        Slice::new(raw).cursor()
    }

    /// Stands before the only value of a text that was read.
    pub(super) fn of_checked(json: &'a str) -> Self {
        Self { json: json.trim(), at: 0 }
    }

    /// Type of the next value.
    pub fn kind(&self) -> Kind {
        kind(self.peek())
    }

    /// Steps into the array or object that comes next.
    pub fn enter(&mut self) {
        self.at += 1;
    }

    /// Goes to the next element of the array; `false`: to its end.
    pub fn next_element(&mut self) -> bool {
        self.skip_between();
        if matches!(self.peek(), Some(b']') | None) {
            self.at += 1;
            return false;
        }
        true
    }

    /// Goes to the next member of the object and says its key; `None`: to its end.
    pub fn next_key(&mut self) -> Option<Cow<'a, str>> {
        self.skip_between();
        if self.peek() != Some(b'"') {
            self.at += 1;
            return None;
        }
        let key = self.value();
        self.skip_between();
        Some(key.text().map(Text::into_cow).unwrap_or_default())
    }

    /// Takes the value that comes next.
    pub fn value(&mut self) -> Slice<'a> {
        let start = self.at;
        self.at = value_end(self.json.as_bytes(), start);
        self.since(start)
    }

    /// Where it stands, for [`Cursor::since`].
    pub fn position(&self) -> usize {
        self.at
    }

    /// The value that began at `start` and has just been walked through.
    pub fn since(&self, start: usize) -> Slice<'a> {
        Slice(self.json.get(start..self.at).unwrap_or("null"))
    }

    fn peek(&self) -> Option<u8> {
        self.json.as_bytes().get(self.at).copied()
    }

    fn skip_between(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t' | b',' | b':')) {
            self.at += 1;
        }
    }
}

impl<'a> Slice<'a> {
    /// The whole of a value. One that is not borrowed from a body reads as `null`.
    pub fn new(raw: &Raw<'a>) -> Self {
        Self(raw.as_borrowed().unwrap_or("null"))
    }

    /// The JSON text.
    pub fn get(self) -> &'a str {
        self.0
    }

    /// Type of the value.
    pub fn kind(self) -> Kind {
        kind(self.0.bytes().next())
    }

    /// The string, if it is one.
    pub fn text(self) -> Option<Text<'a>> {
        Text::from_checked(self.0)
    }

    /// The value, to be kept.
    pub fn raw(self) -> Raw<'a> {
        Raw::from_checked(self.0)
    }

    /// Stands before the value.
    pub fn cursor(self) -> Cursor<'a> {
        Cursor { json: self.0, at: 0 }
    }
}

fn kind(first: Option<u8>) -> Kind {
    match first {
        Some(b'{') => Kind::Object,
        Some(b'[') => Kind::Array,
        Some(b'"') => Kind::String,
        Some(b't' | b'f') => Kind::Bool,
        Some(b'n') | None => Kind::Null,
        Some(_) => Kind::Number,
    }
}

/// The index after the value that begins at `start`.
fn value_end(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0usize);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = string_end(bytes, at),
            b'{' | b'[' => {
                depth += 1;
                at += 1;
                continue;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                at += 1;
            }
            b' ' | b'\n' | b'\r' | b'\t' | b',' | b':' => {
                at += 1;
                continue;
            }
            _ => {
                let is_end =
                    |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t');
                let rest = bytes.get(at..).unwrap_or_default();
                at += rest.iter().position(is_end).unwrap_or(rest.len());
            }
        }
        if depth == 0 {
            return at;
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, want: &[&str]) {
        let raw: Raw<'_> = serde_json::from_str(json).unwrap();
        let mut cursor = Cursor::new(&raw);
        let mut got = Vec::new();
        assert_eq!(cursor.kind(), Kind::Array);
        cursor.enter();
        while cursor.next_element() {
            let start = cursor.position();
            if cursor.kind() != Kind::Object {
                got.push(cursor.value().get().to_owned());
                continue;
            }
            cursor.enter();
            while let Some(key) = cursor.next_key() {
                got.push(format!("{key}={}", cursor.value().get()));
            }
            got.push(cursor.since(start).get().to_owned());
        }
        assert_eq!(got, want, "{json}");
        assert_eq!(cursor.since(0).get(), raw.get());
    }

    #[test]
    fn walks() {
        check("[]", &[]);
        check("[ 1 , -2.5e3,true, null ]", &["1", "-2.5e3", "true", "null"]);
        check(r#"["a\"]\\", [[], {}], "é"]"#, &[r#""a\"]\\""#, "[[], {}]", r#""é""#]);
        check(
            r#"[{"a\n": {"b": [1, "]"]} , "c":""}, {}, [{"d":1}]]"#,
            &[
                "a\n={\"b\": [1, \"]\"]}",
                "c=\"\"",
                r#"{"a\n": {"b": [1, "]"]} , "c":""}"#,
                "{}",
                r#"[{"d":1}]"#,
            ],
        );
    }
}
