//! A JSON string that is unescaped on demand.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::value::RawValue;

use super::Kind;

/// A JSON string literal, quotes and escapes included.
///
/// Moving a prompt from one body to another is a copy of bytes. The literal is always valid JSON
/// and never holds half a surrogate pair (a lone half becomes U+FFFD).
#[derive(Clone, PartialEq, Eq)]
pub struct Text<'a>(Cow<'a, str>);

impl Text<'static> {
    /// The empty string.
    pub const EMPTY: Self = Self(Cow::Borrowed("\"\""));

    /// Escapes `plain` into a literal.
    ///
    /// ```
    /// use toolgate_core::json::Text;
    /// assert_eq!(Text::new("a\"b").literal(), r#""a\"b""#);
    /// ```
    pub fn new(plain: &str) -> Self {
        let mut out = Vec::with_capacity(plain.len() + 2);
        super::write::string(&mut out, plain);
        // `write::string` only copies and escapes valid UTF-8, so nothing is ever replaced.
        let literal = String::from_utf8(out)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        Self(Cow::Owned(literal))
    }
}

impl<'a> Text<'a> {
    /// Takes a raw value over if it is a string.
    pub fn from_raw(raw: &'a RawValue) -> Option<Self> {
        Self::from_checked(raw.get())
    }

    /// Takes over a slice of JSON that was checked, if it is a string.
    pub(super) fn from_checked(literal: &'a str) -> Option<Self> {
        if !literal.starts_with('"') {
            return None;
        }
        Some(Self(without_lone_surrogates(literal)))
    }

    /// The literal as it stands in JSON, quotes included.
    pub fn literal(&self) -> &str {
        &self.0
    }

    /// What stands between the quotes, still escaped.
    pub fn escaped(&self) -> &str {
        self.0.get(1..self.0.len() - 1).unwrap_or("")
    }

    /// Whether the string has no characters.
    pub fn is_empty(&self) -> bool {
        self.0.len() <= 2
    }

    /// The string itself.
    pub fn decode(&self) -> Cow<'_, str> {
        let inner = self.escaped();
        if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
            return Cow::Borrowed(inner);
        }
        // The literal was checked when it was taken over, so this cannot fail; if it ever did,
        // the escaped form is the closest thing to say.
        serde_json::from_str::<String>(&self.0).map_or(Cow::Borrowed(inner), Cow::Owned)
    }

    /// The first of the plain text, `most` bytes of it at the most, without a look at the rest.
    ///
    /// ```
    /// use toolgate_core::json::Text;
    /// assert_eq!(Text::new("a\n\u{e9}bc").opening(4), "a\n\u{e9}");
    /// assert_eq!(Text::new("a\n\u{e9}bc").opening(3), "a\n");
    /// ```
    pub fn opening(&self, most: usize) -> Cow<'_, str> {
        let inner = self.escaped();
        // A character is six bytes at the most for each byte that it stands for.
        let limit = most.saturating_mul(6).min(inner.len());
        let mut decoded = match memchr::memchr(b'\\', &inner.as_bytes()[..limit]) {
            None => Cow::Borrowed(inner),
            Some(_) if limit == inner.len() => self.decode(),
            Some(_) => Cow::Owned(decoded_piece(&inner[..piece_end(inner, limit)])),
        };
        let end = (0..=most.min(decoded.len())).rev().find(|at| decoded.is_char_boundary(*at));
        match &mut decoded {
            Cow::Borrowed(text) => *text = &text[..end.unwrap_or(0)],
            Cow::Owned(text) => text.truncate(end.unwrap_or(0)),
        }
        decoded
    }

    /// The string itself, for as long as the body lives where it has no escapes.
    pub fn into_cow(self) -> Cow<'a, str> {
        if let Cow::Borrowed(literal) = self.0
            && memchr::memchr(b'\\', literal.as_bytes()).is_none()
        {
            return Cow::Borrowed(literal.get(1..literal.len() - 1).unwrap_or(""));
        }
        Cow::Owned(self.decode().into_owned())
    }

    /// A copy that lends the same literal.
    pub fn borrowed(&self) -> Text<'_> {
        Text(Cow::Borrowed(&self.0))
    }

    /// A copy that owns its literal.
    pub fn into_owned(self) -> Text<'static> {
        Text(Cow::Owned(self.0.into_owned()))
    }

    /// Adds the other string's characters at the end.
    pub fn push(&mut self, more: &Text<'_>) {
        if more.is_empty() {
            return;
        }
        let mine = self.0.to_mut();
        mine.pop();
        mine.push_str(&more.0[1..]);
    }

    /// Writes the literal so that every client can read it (see [`super::write::literal`]).
    pub fn write(&self, out: &mut Vec<u8>) {
        super::write::literal(out, &self.0);
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(json)?;
        Self::from_raw(raw).ok_or_else(|| {
            D::Error::invalid_type(Kind::of(raw.get()).unexpected(), &Kind::String.words())
        })
    }
}

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.decode())
    }
}

/// A checked JSON value in which halves of surrogate pairs became U+FFFD. JSON's grammar allows
/// `"\ud800"`, UTF-8 has no such character: decoding it later would fail.
pub(super) fn without_lone_surrogates(json: &str) -> Cow<'_, str> {
    let bytes = json.as_bytes();
    // Most strings are short and have no escapes: not worth the preparation of a longer search.
    if memchr::memchr(b'\\', bytes).is_none() {
        return Cow::Borrowed(json);
    }
    let is_surrogate = |at: usize| {
        matches!(bytes.get(at + 2), Some(b'd' | b'D'))
            && matches!(bytes.get(at + 3), Some(b'8'..=b'9' | b'a'..=b'f' | b'A'..=b'F'))
    };
    if !memchr::memmem::find_iter(bytes, b"\\u").any(is_surrogate) {
        return Cow::Borrowed(json);
    }
    let hex = |at: usize| {
        json.get(at + 2..at + 6).and_then(|digits| u32::from_str_radix(digits, 16).ok())
    };
    let mut fixed = String::with_capacity(json.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            let next = memchr::memchr(b'\\', &bytes[at..]).map_or(bytes.len(), |n| at + n);
            fixed.push_str(&json[at..next]);
            at = next;
            continue;
        }
        if bytes.get(at + 1) != Some(&b'u') {
            fixed.push_str(&json[at..at + 2]);
            at += 2;
            continue;
        }
        let low = (bytes.get(at + 6) == Some(&b'\\') && bytes.get(at + 7) == Some(&b'u'))
            .then(|| hex(at + 6))
            .flatten();
        match (hex(at), low) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => {
                fixed.push_str(&json[at..at + 12]);
                at += 12;
            }
            (Some(0xD800..=0xDFFF) | None, _) => {
                fixed.push_str("\\ufffd");
                at += 6;
            }
            _ => {
                fixed.push_str(&json[at..at + 6]);
                at += 6;
            }
        }
    }
    if fixed == json { Cow::Borrowed(json) } else { Cow::Owned(fixed) }
}

/// Where a piece of escaped text can be cut, at `limit` or before: not inside of an escape.
fn piece_end(escaped: &str, limit: usize) -> usize {
    let bytes = escaped.as_bytes();
    let mut at = 0;
    while let Some(ahead) = memchr::memchr(b'\\', &bytes[at..limit]) {
        let escape = if bytes.get(at + ahead + 1) == Some(&b'u') { 6 } else { 2 };
        if at + ahead + escape > limit {
            return at + ahead;
        }
        at += ahead + escape;
    }
    (at..=limit).rev().find(|end| escaped.is_char_boundary(*end)).unwrap_or(at)
}

/// A piece of escaped text as plain text. One that ends with half of a surrogate pair ends before it.
fn decoded_piece(escaped: &str) -> String {
    let decoded = |piece: &str| serde_json::from_str::<String>(&["\"", piece, "\""].concat()).ok();
    let before = escaped.len().checked_sub(6).and_then(|end| escaped.get(..end));
    decoded(escaped).or_else(|| decoded(before?)).unwrap_or_else(|| escaped.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, want: &str) {
        let text: Text<'_> = serde_json::from_str(json).unwrap();
        assert_eq!(text.decode(), want, "{json}");
    }

    #[test]
    fn strings() {
        check(r#""""#, "");
        check(r#""plain""#, "plain");
        check(r#""a\nb\u00e9\u003c""#, "a\nbé<");
        check(r#""\ud83d\ude00""#, "😀");
        check(r#""\ud83d""#, "\u{fffd}");
        check(r#""x\ud83d\n\ude00y""#, "x\u{fffd}\n\u{fffd}y");
        check(r#""\\ud83d""#, "\\ud83d");
        check(r#""\ud83d\ud83d\ude00""#, "\u{fffd}😀");
    }

    #[test]
    fn a_number_is_not_a_string() {
        assert!(serde_json::from_str::<Text<'_>>("1").is_err());
    }

    #[test]
    fn names_are_lent_by_the_body() {
        let text: Text<'_> = serde_json::from_str(r#""plain""#).unwrap();
        assert!(matches!(text.into_cow(), Cow::Borrowed("plain")));
        let text: Text<'_> = serde_json::from_str(r#""a\/b""#).unwrap();
        assert_eq!(text.into_cow(), "a/b");
    }

    #[test]
    fn strings_grow() {
        let mut text = Text::new("a\"");
        text.push(&Text::EMPTY);
        text.push(&Text::new("é\n"));
        assert_eq!(text.decode(), "a\"é\n");
    }

    /// An opening of any length is a prefix of the whole text.
    #[test]
    fn an_opening_is_the_beginning() {
        let escaped = r#""a\n\u00e9\ud83d\ude00\\\"é😀\u0041b\t""#;
        let raw = RawValue::from_string(escaped.to_owned()).unwrap();
        let text = Text::from_raw(&raw).unwrap();
        let whole = text.decode().into_owned();
        let long = whole.repeat(9);
        let literal = format!("\"{}\"", text.escaped().repeat(9));
        let raw = RawValue::from_string(literal).unwrap();
        let text = Text::from_raw(&raw).unwrap();
        for most in 0..=long.len() + 3 {
            let opening = text.opening(most);
            assert!(long.starts_with(&*opening), "{most}: {opening:?}");
            assert!(opening.len() <= most && opening.len() + 4 > most.min(long.len()), "{most}");
            assert_eq!(opening, Text::new(&long).opening(most), "{most}: written differently");
        }
    }
}
