//! Writing JSON into a buffer.

use std::borrow::Cow;

use memchr::memchr2;

use super::text::without_lone_surrogates;
use super::{Raw, Text, scan};

/// Writes a string literal, escaping what must be escaped.
pub fn string(out: &mut Vec<u8>, plain: &str) {
    out.reserve(plain.len() + 2);
    out.push(b'"');
    let bytes = plain.as_bytes();
    let (mut done, mut at) = (0, 0);
    while let Some(found) = scan::unwritable(bytes, at) {
        at = found;
        let (escape, length): (&[u8], usize) = match &bytes[at..] {
            [b'"', ..] => (b"\\\"", 1),
            [b'\\', ..] => (b"\\\\", 1),
            [b'\n', ..] => (b"\\n", 1),
            [b'\r', ..] => (b"\\r", 1),
            [b'\t', ..] => (b"\\t", 1),
            [0x08, ..] => (b"\\b", 1),
            [0x0C, ..] => (b"\\f", 1),
            [0xE2, 0x80, 0xA8, ..] => (b"\\u2028", 3),
            [0xE2, 0x80, 0xA9, ..] => (b"\\u2029", 3),
            [0xC2, 0x85, ..] => (b"\\u0085", 2),
            [control @ 0x00..=0x1F, ..] => {
                out.extend_from_slice(&bytes[done..at]);
                out.extend_from_slice(b"\\u00");
                out.push(HEX[usize::from(control >> 4)]);
                out.push(HEX[usize::from(control & 15)]);
                at += 1;
                done = at;
                continue;
            }
            _ => {
                at += 1;
                continue;
            }
        };
        out.extend_from_slice(&bytes[done..at]);
        out.extend_from_slice(escape);
        at += length;
        done = at;
    }
    out.extend_from_slice(&bytes[done..]);
    out.push(b'"');
}

/// Writes a literal that is already JSON.
///
/// U+2028, U+2029 and U+0085 are written as escapes: JSON allows them bare, but line-based stream
/// readers (google-genai for Python) split there.
pub fn literal(out: &mut Vec<u8>, literal: &str) {
    line_breaks_escaped(out, literal.as_bytes());
}

/// Writes a JSON value without white space between its tokens, on one line.
///
/// Halves of surrogate pairs, which JSON's grammar allows and no UTF-8 reader takes, become U+FFFD.
pub fn compact(out: &mut Vec<u8>, json: &str) {
    let json = without_lone_surrogates(json);
    let bytes = json.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b' ' | b'\n' | b'\r' | b'\t' => at += 1,
            b'"' => {
                let end = string_end(bytes, at);
                line_breaks_escaped(out, &bytes[at..end]);
                at = end;
            }
            _ => {
                let run = bytes[at..]
                    .iter()
                    .position(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t' | b'"'))
                    .map_or(bytes.len(), |n| at + n);
                out.extend_from_slice(&bytes[at..run]);
                at = run;
            }
        }
    }
}

/// Writes a JSON value on one line: as it is where it has no line break, else [`compact`].
pub fn one_line(out: &mut Vec<u8>, json: &str) {
    let json = &*without_lone_surrogates(json);
    let bytes = json.as_bytes();
    // The last two begin line breaks of Unicode's, which end lines for some readers.
    if memchr2(b'\n', b'\r', bytes).is_none() && memchr2(0xC2, 0xE2, bytes).is_none() {
        out.extend_from_slice(bytes);
    } else {
        compact(out, json);
    }
}

/// The value without white space between its tokens; borrowed where there was none.
pub fn compacted(json: &str) -> Cow<'_, str> {
    let mut out = Vec::with_capacity(json.len());
    compact(&mut out, json);
    if out == json.as_bytes() {
        return Cow::Borrowed(json);
    }
    Cow::Owned(String::from_utf8(out).unwrap_or_else(|_| json.to_owned()))
}

/// Writes `json` (a value) as a string literal that holds it: `{"a":1}` → `"{\"a\":1}"`.
pub fn json_in_string(out: &mut Vec<u8>, json: &str) {
    string(out, &compacted(json));
}

/// Writes `"name":`, with a comma before it unless the object has just been opened.
pub fn key(out: &mut Vec<u8>, name: &str) {
    if !matches!(out.last(), Some(b'{') | None) {
        out.push(b',');
    }
    string(out, name);
    out.push(b':');
}

/// Writes a comma unless the array or object has just been opened.
pub fn comma(out: &mut Vec<u8>) {
    if !matches!(out.last(), Some(b'{' | b'[') | None) {
        out.push(b',');
    }
}

/// Writes an integer.
pub fn integer(out: &mut Vec<u8>, value: impl Into<i128>) {
    let value = value.into();
    let mut buffer = itoa::Buffer::new();
    // Almost every number is small, and a small one is quick to write.
    let digits = match i64::try_from(value) {
        Ok(small) => buffer.format(small),
        Err(_) => buffer.format(value),
    };
    out.extend_from_slice(digits.as_bytes());
}

/// Writer of an object: places commas, and writes the closing brace when it is dropped.
///
/// ```
/// use toolgate_core::json::write::ObjectWriter;
/// let mut out = Vec::new();
/// let mut object = ObjectWriter::new(&mut out);
/// object.string("role", "user");
/// object.array("parts").object().string("text", "Hi.");
/// drop(object);
/// assert_eq!(out, br#"{"role":"user","parts":[{"text":"Hi."}]}"#);
/// ```
#[derive(Debug)]
pub struct ObjectWriter<'o> {
    out: &'o mut Vec<u8>,
    is_empty: bool,
}

impl<'o> ObjectWriter<'o> {
    /// Opens an object.
    pub fn new(out: &'o mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, is_empty: true }
    }

    /// Begins a member. The caller writes exactly one value into the buffer that is returned.
    pub fn key(&mut self, name: &str) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.is_empty) {
            self.out.push(b',');
        }
        string(self.out, name);
        self.out.push(b':');
        self.out
    }

    /// Writes a member with a string, which is escaped.
    pub fn string(&mut self, name: &str, value: &str) {
        string(self.key(name), value);
    }

    /// Writes a member with a string, if there is one.
    pub fn optional_string(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.string(name, value);
        }
    }

    /// Writes a member with a string that is already a literal.
    pub fn text(&mut self, name: &str, value: &Text<'_>) {
        value.write(self.key(name));
    }

    /// Writes a member with a value as it came, without white space between its tokens.
    pub fn raw(&mut self, name: &str, value: &Raw<'_>) {
        value.write(self.key(name));
    }

    /// Writes a member with an integer.
    pub fn integer(&mut self, name: &str, value: impl Into<i128>) {
        integer(self.key(name), value);
    }

    /// Writes a member with a boolean.
    pub fn bool(&mut self, name: &str, value: bool) {
        self.key(name).extend_from_slice(if value { b"true" } else { b"false" });
    }

    /// Writes a member with JSON that is known to be a value on one line.
    pub fn json(&mut self, name: &str, value: &str) {
        self.key(name).extend_from_slice(value.as_bytes());
    }

    /// Begins a member with an object.
    pub fn object(&mut self, name: &str) -> ObjectWriter<'_> {
        ObjectWriter::new(self.key(name))
    }

    /// Begins a member with an array.
    pub fn array(&mut self, name: &str) -> ArrayWriter<'_> {
        ArrayWriter::new(self.key(name))
    }

    /// Writes the members of an object that was written before, `{…}`.
    pub fn members_of(&mut self, object: &[u8]) {
        let members = object.strip_prefix(b"{").and_then(|rest| rest.strip_suffix(b"}"));
        let Some(members) = members.filter(|members| !members.is_empty()) else { return };
        if !std::mem::take(&mut self.is_empty) {
            self.out.push(b',');
        }
        self.out.extend_from_slice(members);
    }

    /// Whether the object has no member yet.
    pub fn is_empty(&self) -> bool {
        self.is_empty
    }
}

impl Drop for ObjectWriter<'_> {
    fn drop(&mut self) {
        self.out.push(b'}');
    }
}

/// Writer of an array: places commas, and writes the closing bracket when it is dropped.
#[derive(Debug)]
pub struct ArrayWriter<'o> {
    out: &'o mut Vec<u8>,
    is_empty: bool,
}

impl<'o> ArrayWriter<'o> {
    /// Opens an array.
    pub fn new(out: &'o mut Vec<u8>) -> Self {
        out.push(b'[');
        Self { out, is_empty: true }
    }

    /// Begins an element. The caller writes exactly one value into the buffer that is returned.
    pub fn element(&mut self) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.is_empty) {
            self.out.push(b',');
        }
        self.out
    }

    /// Writes a string, which is escaped.
    pub fn string(&mut self, value: &str) {
        string(self.element(), value);
    }

    /// Begins an object.
    pub fn object(&mut self) -> ObjectWriter<'_> {
        ObjectWriter::new(self.element())
    }
}

impl Drop for ArrayWriter<'_> {
    fn drop(&mut self) {
        self.out.push(b']');
    }
}

const HEX: &[u8; 16] = b"0123456789abcdef";

/// The index after the closing quote of the literal that begins at `start`.
pub(super) fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += found;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

fn line_breaks_escaped(out: &mut Vec<u8>, bytes: &[u8]) {
    let mut done = 0;
    let mut at = 0;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr2(0xE2, 0xC2, rest)) {
        at += found;
        let (escape, length): (&[u8], usize) = match &bytes[at..] {
            [0xE2, 0x80, 0xA8, ..] => (b"\\u2028", 3),
            [0xE2, 0x80, 0xA9, ..] => (b"\\u2029", 3),
            [0xC2, 0x85, ..] => (b"\\u0085", 2),
            _ => {
                at += 1;
                continue;
            }
        };
        out.extend_from_slice(&bytes[done..at]);
        out.extend_from_slice(escape);
        at += length;
        done = at;
    }
    out.extend_from_slice(&bytes[done..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn strings_are_escaped() {
        let broken = "a\u{2028}b\u{2029}c\u{85}d";
        let long = format!("{}\n{broken}\"{}", "plain text, ".repeat(9), "é".repeat(40));
        for plain in ["", "a", "\"\\\n\r\t\u{8}\u{c}\u{1}", "é😀", broken, &long] {
            let literal = written(|out| string(out, plain));
            assert_eq!(serde_json::from_str::<String>(&literal).unwrap(), plain);
            assert!(!literal.contains(['\u{2028}', '\u{2029}', '\u{85}']), "{literal}");
        }
    }

    #[test]
    fn values_lose_white_space_between_tokens_only() {
        assert_eq!(
            compacted("{ \"a b\" :\r\n [1.0, \"\\\" \\\\\" ,true ] }"),
            r#"{"a b":[1.0,"\" \\",true]}"#
        );
        assert!(matches!(compacted(r#"{"a":1}"#), Cow::Borrowed(_)));
    }

    #[test]
    fn what_is_on_one_line_stays_as_it_is() {
        for json in [r#"{ "a": "é" }"#, "{\r\n \"a\": 1 }", "{\"a\": \"\u{2028}\"}", "[1, \"ok\"]"]
        {
            let line = written(|out| one_line(out, json));
            let [was, is] = [json, line.as_str()].map(serde_json::from_str::<serde_json::Value>);
            assert_eq!(was.unwrap(), is.unwrap());
            assert!(!line.contains(['\n', '\r', '\u{2028}']), "{line}");
        }
        assert_eq!(written(|out| one_line(out, "[1, \"ok\"]")), "[1, \"ok\"]");
    }

    #[test]
    fn keys_place_commas() {
        let json = written(|out| {
            out.push(b'{');
            key(out, "a");
            integer(out, 1);
            key(out, "b");
            json_in_string(out, "{\"x\": 1}");
            out.push(b'}');
        });
        assert_eq!(json, r#"{"a":1,"b":"{\"x\":1}"}"#);
    }

    #[test]
    fn writers_place_commas_and_close() {
        let json = written(|out| {
            let mut object = ObjectWriter::new(out);
            assert!(object.is_empty());
            object.string("a", "\"");
            object.optional_string("none", None);
            object.optional_string("b", Some("x"));
            object.integer("c", -1);
            object.bool("d", false);
            object.text("e", &Text::new("é"));
            object.raw("f", &Raw::empty_object());
            object.json("g", "null");
            drop(object.object("h"));
            let mut array = object.array("i");
            array.string("[");
            array.object().bool("{", true);
            array.element().extend_from_slice(b"1");
            drop(array);
            drop(object.array("j"));
            object.members_of(b"{}");
            object.members_of(br#"{"k":1,"l":2}"#);
            assert!(!object.is_empty());
        });
        let want = r#"{"a":"\"","b":"x","c":-1,"d":false,"e":"é","f":{},"g":null,"h":{},"i":["[",{"{":true},1],"j":[],"k":1,"l":2}"#;
        assert_eq!(json, want);
    }
}
