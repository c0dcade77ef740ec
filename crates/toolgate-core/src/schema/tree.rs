//! A schema's JSON as a tree that remembers where everything was written.
//!
//! Unlike `serde_json::Value` it keeps numbers as text, so that a bound of 2^63 stays what it is,
//! and every value knows its slice of the source, so that a message can say line and column. Depth
//! is bounded: what lies deeper is skipped over and kept as [`Shape::TooDeep`].

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Deref;

/// Far above what Gemini accepts (30 levels of properties), far below what the stack bears.
const MAX_DEPTH: usize = 192;

/// A value and its slice of the source.
#[derive(Debug)]
pub(crate) struct Tree<'a> {
    pub(crate) text: &'a str,
    pub(crate) shape: Shape<'a>,
}

#[derive(Debug)]
pub(crate) enum Shape<'a> {
    Null,
    Bool(bool),
    /// The number is the text.
    Number,
    String(Cow<'a, str>),
    Array(Vec<Tree<'a>>),
    Object(Members<'a>),
    /// Nested deeper than the limit.
    TooDeep,
}

/// An object's members in the order they are written, found by key without a scan.
#[derive(Debug)]
pub(crate) struct Members<'a> {
    list: Vec<Member<'a>>,
    /// Positions in `list`, sorted by key. Empty for few members, which are searched one by one.
    by_key: Box<[u32]>,
}

/// Objects with more members than this get an index by key.
const MAX_UNINDEXED: usize = 16;

impl<'a> Members<'a> {
    /// Keeps the last of members with equal keys.
    fn new(mut list: Vec<Member<'a>>) -> Self {
        if list.len() <= MAX_UNINDEXED {
            let mut at = 0;
            while at < list.len() {
                let later = list.get(at + 1..).unwrap_or_default();
                if list.get(at).is_some_and(|one| later.iter().any(|it| it.key == one.key)) {
                    list.remove(at);
                } else {
                    at += 1;
                }
            }
            return Self { list, by_key: Box::default() };
        }
        let mut by_key = sorted(&list);
        let mut doubles: Vec<u32> = by_key
            .windows(2)
            .filter(|pair| list[pair[0] as usize].key == list[pair[1] as usize].key)
            .map(|pair| pair[0])
            .collect();
        if !doubles.is_empty() {
            doubles.sort_unstable();
            let mut doubles = doubles.into_iter().peekable();
            let mut at = 0;
            list.retain(|_| {
                let double = doubles.next_if_eq(&at).is_some();
                at += 1;
                !double
            });
            by_key = sorted(&list);
        }
        Self { list, by_key: by_key.into_boxed_slice() }
    }

    pub(crate) fn find(&self, key: &str) -> Option<&Member<'a>> {
        if self.by_key.is_empty() {
            return self.list.iter().find(|member| member.key == key);
        }
        let order = |at: &u32| self.list.get(*at as usize).map(|member| (*member.key).cmp(key));
        let found = self.by_key.binary_search_by(|at| order(at).unwrap_or(Ordering::Less)).ok()?;
        self.list.get(*self.by_key.get(found)? as usize)
    }
}

/// Positions sorted by key, and by position where keys are equal.
fn sorted(list: &[Member<'_>]) -> Vec<u32> {
    let mut positions: Vec<u32> = (0..list.len()).map_while(|at| u32::try_from(at).ok()).collect();
    positions.sort_by(|a, b| list[*a as usize].key.cmp(&list[*b as usize].key));
    positions
}

impl<'a> Deref for Members<'a> {
    type Target = [Member<'a>];

    fn deref(&self) -> &Self::Target {
        &self.list
    }
}

/// A member of an object. Of two with one key the later counts, as JSON parsers have it.
#[derive(Debug)]
pub(crate) struct Member<'a> {
    pub(crate) key: Cow<'a, str>,
    /// The key's literal.
    pub(crate) key_text: &'a str,
    pub(crate) value: Tree<'a>,
}

impl<'a> Tree<'a> {
    /// Reads text that is known to be JSON. Anything else gives some tree, never a panic.
    pub(crate) fn parse(json: &'a str) -> Self {
        Self::parse_prefix(json, usize::MAX).0
    }

    /// Reads at most about `max` values; containers end where these are used up. Says whether that
    /// was the whole text.
    pub(crate) fn parse_prefix(json: &'a str, max: usize) -> (Self, bool) {
        let mut scan = Scan { text: json, at: 0, left: max.saturating_add(1) };
        scan.space();
        let tree = scan.value(0);
        (tree, scan.left > 0)
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        if let Shape::String(text) = &self.shape { Some(text) } else { None }
    }

    pub(crate) fn as_bool(&self) -> Option<bool> {
        if let Shape::Bool(value) = self.shape { Some(value) } else { None }
    }

    pub(crate) fn members(&self) -> &[Member<'a>] {
        if let Shape::Object(members) = &self.shape { members } else { &[] }
    }

    pub(crate) fn elements(&self) -> &[Self] {
        if let Shape::Array(elements) = &self.shape { elements } else { &[] }
    }

    pub(crate) fn is_object(&self) -> bool {
        matches!(self.shape, Shape::Object(_))
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self.shape, Shape::Null)
    }

    pub(crate) fn member(&self, key: &str) -> Option<&Member<'a>> {
        if let Shape::Object(members) = &self.shape { members.find(key) } else { None }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        self.member(key).map(|member| &member.value)
    }

    /// Whether every number in it is one that others can read: there are numbers beyond all numbers.
    pub(crate) fn is_finite(&self) -> bool {
        match &self.shape {
            Shape::Number => self.text.parse::<f64>().is_ok_and(f64::is_finite),
            Shape::Array(elements) => elements.iter().all(Self::is_finite),
            Shape::Object(members) => members.iter().all(|member| member.value.is_finite()),
            Shape::Null | Shape::Bool(_) | Shape::String(_) | Shape::TooDeep => true,
        }
    }

    /// How many brackets are open at once at most; 0 for a plain value.
    pub(crate) fn depth(&self) -> usize {
        let inside = match &self.shape {
            Shape::Array(elements) => elements.iter().map(Tree::depth).max(),
            Shape::Object(members) => members.iter().map(|member| member.value.depth()).max(),
            Shape::TooDeep => return MAX_DEPTH,
            Shape::Null | Shape::Bool(_) | Shape::Number | Shape::String(_) => return 0,
        };
        inside.unwrap_or(0) + 1
    }

    /// The key whose value is, or the element that is, or holds, the slice `inner`.
    pub(crate) fn child_around(&self, inner: &str) -> Option<(Step<'_>, &Self)> {
        let at = start(inner);
        match &self.shape {
            Shape::Object(members) => {
                let next = members.partition_point(|member| start(member.value.text) <= at);
                let member = members.get(next.checked_sub(1)?)?;
                member.value.holds(inner).then_some((Step::Key(&member.key), &member.value))
            }
            Shape::Array(elements) => {
                let next = elements.partition_point(|element| start(element.text) <= at);
                let index = next.checked_sub(1)?;
                let element = elements.get(index)?;
                element.holds(inner).then_some((Step::Index(index), element))
            }
            Shape::Null | Shape::Bool(_) | Shape::Number | Shape::String(_) | Shape::TooDeep => {
                None
            }
        }
    }

    /// Whether the slice `inner` is a part of this value's text.
    pub(crate) fn holds(&self, inner: &str) -> bool {
        let (from, at) = (start(self.text), start(inner));
        from <= at && at + inner.len() <= from + self.text.len()
    }

    /// Writes the value as JSON on one line.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let escapes: Vec<usize> = memchr::memmem::find_iter(self.text.as_bytes(), b"\\u")
            .map(|at| start(self.text) + at)
            .collect();
        self.write_with(out, &escapes);
    }

    /// `escapes`: where the text around this value has `\u`, in order.
    fn write_with(&self, out: &mut Vec<u8>, escapes: &[usize]) {
        use crate::json::write;
        let from = start(self.text);
        let first = escapes.partition_point(|at| *at < from);
        // An escape may be half a surrogate pair, which Gemini's parser refuses.
        if escapes.get(first).is_none_or(|at| *at >= from + self.text.len()) {
            write::compact(out, self.text);
            return;
        }
        match &self.shape {
            Shape::String(text) => write::string(out, text),
            Shape::Array(elements) => {
                out.push(b'[');
                for element in elements {
                    write::comma(out);
                    element.write_with(out, escapes);
                }
                out.push(b']');
            }
            Shape::Object(members) => {
                out.push(b'{');
                for member in members.iter() {
                    write::key(out, &member.key);
                    member.value.write_with(out, escapes);
                }
                out.push(b'}');
            }
            Shape::Null | Shape::Bool(_) | Shape::Number | Shape::TooDeep => {
                write::compact(out, self.text);
            }
        }
    }

    /// The value as JSON on one line.
    pub(crate) fn to_json(&self) -> String {
        let mut out = Vec::with_capacity(self.text.len());
        self.write(&mut out);
        String::from_utf8(out).unwrap_or_default()
    }
}

/// Trees are the same if they were written the same.
impl PartialEq for Tree<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// One step from a value to one inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

/// Where a slice begins, to be compared with another slice of the same text.
pub(crate) fn start(slice: &str) -> usize {
    slice.as_ptr().addr()
}

struct Scan<'a> {
    text: &'a str,
    at: usize,
    /// How many values may still be read.
    left: usize,
}

impl<'a> Scan<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    /// Steps over `byte` and the space around it; says whether it was there.
    fn eat(&mut self, byte: u8) -> bool {
        self.space();
        let found = self.peek() == Some(byte);
        if found {
            self.at += 1;
            self.space();
        }
        found
    }

    fn slice(&self, from: usize) -> &'a str {
        self.text.get(from..self.at).unwrap_or("")
    }

    fn value(&mut self, depth: usize) -> Tree<'a> {
        let from = self.at;
        self.left = self.left.saturating_sub(1);
        let shape = match self.peek() {
            Some(b'{' | b'[') if depth >= MAX_DEPTH => {
                self.skip();
                Shape::TooDeep
            }
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => Shape::String(unescaped(self.string())),
            Some(_) => self.word(),
            None => Shape::Null,
        };
        Tree { text: self.slice(from), shape }
    }

    fn object(&mut self, depth: usize) -> Shape<'a> {
        let mut members = Vec::new();
        self.at += 1;
        self.space();
        while self.peek() == Some(b'"') && self.left > 0 {
            let key_text = self.string();
            if !self.eat(b':') {
                break;
            }
            let value = self.value(depth + 1);
            members.push(Member { key: unescaped(key_text), key_text, value });
            if !self.eat(b',') {
                break;
            }
        }
        self.close(b'}');
        Shape::Object(Members::new(members))
    }

    fn array(&mut self, depth: usize) -> Shape<'a> {
        let mut elements = Vec::new();
        self.at += 1;
        self.space();
        while !matches!(self.peek(), None | Some(b']')) && self.left > 0 {
            let before = self.at;
            elements.push(self.value(depth + 1));
            if !self.eat(b',') || self.at == before {
                break;
            }
        }
        self.close(b']');
        Shape::Array(elements)
    }

    fn close(&mut self, bracket: u8) {
        if self.left == 0 {
            self.skip_rest();
        }
        self.space();
        match self.peek() {
            Some(byte) if byte == bracket => self.at += 1,
            // Not JSON: stop here for good.
            Some(_) | None => self.at = self.text.len(),
        }
    }

    fn word(&mut self) -> Shape<'a> {
        let from = self.at;
        while !matches!(
            self.peek(),
            None | Some(
                b' ' | b'\n' | b'\r' | b'\t' | b',' | b':' | b'"' | b']' | b'}' | b'[' | b'{'
            )
        ) {
            self.at += 1;
        }
        match self.slice(from) {
            "true" => Shape::Bool(true),
            "false" => Shape::Bool(false),
            number if number.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => Shape::Number,
            _ => Shape::Null,
        }
    }

    fn string(&mut self) -> &'a str {
        let from = self.at;
        self.at += 1;
        let bytes = self.text.as_bytes();
        while let Some(found) =
            bytes.get(self.at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest))
        {
            self.at += found;
            if bytes.get(self.at) == Some(&b'"') {
                self.at += 1;
                return self.slice(from);
            }
            self.at += 2;
        }
        self.at = bytes.len();
        self.slice(from)
    }

    /// Steps over a whole object or array without going down into it.
    fn skip(&mut self) {
        self.at += 1;
        self.skip_rest();
        self.at = (self.at + 1).min(self.text.len());
    }

    /// Steps to the bracket that closes the container of which a part was read.
    fn skip_rest(&mut self) {
        let mut open = 1_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => {
                    self.string();
                    continue;
                }
                b'{' | b'[' => open += 1,
                b'}' | b']' => open -= 1,
                _ => {}
            }
            if open == 0 {
                return;
            }
            self.at += 1;
        }
    }
}

/// Content of a string literal. Half a surrogate pair becomes U+FFFD.
fn unescaped(literal: &str) -> Cow<'_, str> {
    let inner = literal.strip_prefix('"').unwrap_or(literal);
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    let mut out = String::with_capacity(inner.len());
    let mut units: Vec<u16> = Vec::new();
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        if at > 0 {
            flush(&mut units, &mut out);
            out.push_str(&rest[..at]);
        }
        let escape = rest.as_bytes().get(at + 1).copied();
        let mut length = 2;
        if escape == Some(b'u') {
            let unit = rest.get(at + 2..at + 6).and_then(|hex| u16::from_str_radix(hex, 16).ok());
            units.push(unit.unwrap_or(0xFFFD));
            length = if unit.is_some() { 6 } else { 2 };
        } else {
            flush(&mut units, &mut out);
            match escape {
                Some(b'n') => out.push('\n'),
                Some(b'r') => out.push('\r'),
                Some(b't') => out.push('\t'),
                Some(b'b') => out.push('\u{8}'),
                Some(b'f') => out.push('\u{c}'),
                Some(b'"' | b'\\' | b'/') => out.push(char::from(escape.unwrap_or(b'/'))),
                Some(_) | None => length = 1,
            }
        }
        rest = rest.get(at + length..).unwrap_or("");
    }
    flush(&mut units, &mut out);
    out.push_str(rest);
    Cow::Owned(out)
}

fn flush(units: &mut Vec<u16>, out: &mut String) {
    out.extend(
        char::decode_utf16(units.drain(..)).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, want: &str) {
        assert_eq!(Tree::parse(json).to_json(), want, "{json}");
    }

    #[test]
    fn values_come_back_as_they_were_written() {
        check(
            r#" {"a" : [1.0, -2e3 ,"x\ny"], "b":{ } , "c":null} "#,
            r#"{"a":[1.0,-2e3,"x\ny"],"b":{},"c":null}"#,
        );
        check("12345678901234567890123", "12345678901234567890123");
        check("[]", "[]");
        check("[true,false]", "[true,false]");
    }

    #[test]
    fn escapes_are_understood() {
        let tree = Tree::parse(r#"["\u00e9\ud83d\ude00", "\ud800x", "a\"\\\/\b\f\n\r\t"]"#);
        let texts: Vec<_> = tree.elements().iter().filter_map(Tree::as_str).collect();
        assert_eq!(texts, ["é😀", "\u{fffd}x", "a\"\\/\u{8}\u{c}\n\r\t"]);
        assert_eq!(tree.to_json(), r#"["é😀","�x","a\"\\\/\b\f\n\r\t"]"#);
    }

    #[test]
    fn of_doubles_the_last_counts() {
        let tree = Tree::parse(r#"{"a":1,"b":2,"a":3}"#);
        let keys: Vec<_> =
            tree.members().iter().map(|it| (it.key.as_ref(), it.value.text)).collect();
        assert_eq!(keys, [("b", "2"), ("a", "3")]);
        let many: String = (0..40).map(|n| format!(r#""k{}":{n},"#, n % 20)).collect();
        let json = format!("{{{}}}", many.trim_end_matches(','));
        let tree = Tree::parse(&json);
        assert_eq!(tree.members().len(), 20);
        assert_eq!(tree.get("k3").map(|it| it.text), Some("23"));
    }

    #[test]
    fn a_prefix_of_the_values_is_read_and_the_rest_is_skipped() {
        let text = r#"{"a":[1,{"x":[2,3]},4],"b":"]}","c":5}"#;
        for max in 1..8 {
            let (tree, whole) = Tree::parse_prefix(text, max);
            assert!(!whole && tree.text == text, "{max}: {}", tree.text);
        }
        assert!(Tree::parse_prefix(text, 10).1);
    }

    #[test]
    fn depth_is_bounded_and_nothing_panics() {
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(Tree::parse(&deep).depth() >= MAX_DEPTH);
        for broken in [
            "", "{", "[", "\"", "{\"a\"", "{\"a\":", "[1", "]", "[:]", "{]}", "[\"\\", "nul", "[,]",
        ] {
            Tree::parse(broken).to_json();
        }
    }

    #[test]
    fn a_slice_leads_back_to_its_path() {
        let tree = Tree::parse(r#"{"a":[{"b":1},{"c":{"d":2}}]}"#);
        let inner = tree.get("a").unwrap().elements()[1].get("c").unwrap().get("d").unwrap();
        let mut steps = Vec::new();
        let mut here = &tree;
        while let Some((step, child)) = here.child_around(inner.text) {
            steps.push(step);
            here = child;
        }
        assert_eq!(steps, [Step::Key("a"), Step::Index(1), Step::Key("c"), Step::Key("d")]);
    }
}
