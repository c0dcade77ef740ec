//! A JSON text as a flat list of tokens.

use std::borrow::Cow;

use memchr::memchr2;

use crate::json::Kind;

/// The tokens of a text that is known to be JSON, in the order in which they begin.
#[derive(Debug)]
pub(super) struct Tape<'a> {
    text: &'a str,
    tokens: Vec<Token>,
}

#[derive(Clone, Copy, Debug)]
struct Token {
    start: u32,
    end: u32,
    /// The index of the first token that does not belong to this value.
    next: u32,
    kind: Kind,
}

impl<'a> Tape<'a> {
    /// `None` for a text of more than 4 GiB.
    pub(super) fn new(text: &'a str) -> Option<Self> {
        u32::try_from(text.len()).ok()?;
        let bytes = text.as_bytes();
        let mut tokens: Vec<Token> = Vec::new();
        let mut open = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let (kind, end) = match bytes[at] {
                b' ' | b'\n' | b'\r' | b'\t' | b',' | b':' => {
                    at += 1;
                    continue;
                }
                b'}' | b']' => {
                    at += 1;
                    if let Some(index) = open.pop() {
                        let next = tokens.len() as u32;
                        let token: &mut Token = &mut tokens[index];
                        (token.end, token.next) = (at as u32, next);
                    }
                    continue;
                }
                b'{' => (Kind::Object, at + 1),
                b'[' => (Kind::Array, at + 1),
                b'"' => (Kind::String, string_end(bytes, at)),
                b't' | b'f' => (Kind::Bool, literal_end(bytes, at)),
                b'n' => (Kind::Null, literal_end(bytes, at)),
                _ => (Kind::Number, literal_end(bytes, at)),
            };
            if matches!(kind, Kind::Object | Kind::Array) {
                open.push(tokens.len());
            }
            let next = tokens.len() as u32 + 1;
            tokens.push(Token { start: at as u32, end: end as u32, next, kind });
            at = end;
        }
        Some(Self { text, tokens })
    }

    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }

    pub(super) fn kind(&self, index: usize) -> Kind {
        self.tokens[index].kind
    }

    /// Where the value stands in the text.
    pub(super) fn span(&self, index: usize) -> std::ops::Range<usize> {
        let token = self.tokens[index];
        token.start as usize..token.end as usize
    }

    pub(super) fn text(&self, index: usize) -> &'a str {
        self.text.get(self.span(index)).unwrap_or_default()
    }

    /// The string, unescaped; what cannot be unescaped (half a surrogate pair) as it is.
    pub(super) fn string(&self, index: usize) -> Cow<'a, str> {
        let literal = self.text(index);
        let inner = literal.get(1..literal.len().saturating_sub(1)).unwrap_or_default();
        if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
            return Cow::Borrowed(inner);
        }
        serde_json::from_str(literal).map_or(Cow::Borrowed(inner), Cow::Owned)
    }

    /// The indexes of an array's values.
    pub(super) fn items(&self, index: usize) -> impl Iterator<Item = usize> {
        let end = self.tokens[index].next as usize;
        let mut at = index + 1;
        std::iter::from_fn(move || {
            let item = (at < end).then_some(at)?;
            at = self.tokens[item].next as usize;
            Some(item)
        })
    }

    /// The indexes of an object's keys and values.
    pub(super) fn members(&self, index: usize) -> impl Iterator<Item = (usize, usize)> {
        let end = self.tokens[index].next as usize;
        let mut at = index + 1;
        std::iter::from_fn(move || {
            let (key, value) = (at, at + 1);
            (value < end).then(|| at = self.tokens[value].next as usize)?;
            Some((key, value))
        })
    }
}

fn string_end(bytes: &[u8], start: usize) -> usize {
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

fn literal_end(bytes: &[u8], start: usize) -> usize {
    let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t');
    bytes[start..].iter().position(ends).map_or(bytes.len(), |length| start + length)
}
