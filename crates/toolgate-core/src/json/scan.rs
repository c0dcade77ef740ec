//! Looking for the end of a value, and whether it is one.
//!
//! This is where most bytes of a body are looked at, and for most of them the only time: thirty-two
//! at once where they are text.

/// The index of the first byte at or after `at` that is not white space.
pub(super) fn space(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
        at += 1;
    }
    at
}

/// The index of the first byte of a text's value: after a byte order mark and white space.
pub(super) fn start(json: &str) -> usize {
    let mark = if json.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    space(json.as_bytes(), mark)
}

/// The index after the value that begins at `at`; `None` where it is no value.
pub(super) fn value(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut open = OpenContainers::default();
    loop {
        match *bytes.get(at)? {
            b'"' => at = string(bytes, at)?,
            first @ (b'{' | b'[') => {
                let is_object = first == b'{';
                at = space(bytes, at + 1);
                if *bytes.get(at)? == if is_object { b'}' } else { b']' } {
                    at += 1;
                } else {
                    open.push(is_object);
                    if is_object {
                        at = key(bytes, at)?;
                    }
                    continue;
                }
            }
            _ => at = scalar(bytes, at)?,
        }
        loop {
            if open.depth == 0 {
                return Some(at);
            }
            at = space(bytes, at);
            let is_object = open.is_object();
            match *bytes.get(at)? {
                b',' => {
                    at = space(bytes, at + 1);
                    if is_object {
                        at = key(bytes, at)?;
                    }
                    break;
                }
                b'}' if is_object => {}
                b']' if !is_object => {}
                _ => return None,
            }
            at += 1;
            open.pop();
        }
    }
}

/// The containers that are open: a bit for each says whether it is an object.
#[derive(Default)]
struct OpenContainers {
    depth: usize,
    last: u128,
    /// Those before the last 128.
    before: Vec<u128>,
}

impl OpenContainers {
    fn push(&mut self, is_object: bool) {
        if self.depth > 0 && self.depth.is_multiple_of(128) {
            self.before.push(self.last);
        }
        self.depth += 1;
        self.last = self.last << 1 | u128::from(is_object);
    }

    fn is_object(&self) -> bool {
        self.last & 1 == 1
    }

    fn pop(&mut self) {
        self.depth -= 1;
        self.last >>= 1;
        if self.depth > 0 && self.depth.is_multiple_of(128) {
            self.last = self.before.pop().unwrap_or_default();
        }
    }
}

/// The index of the value whose key begins at `at`.
fn key(bytes: &[u8], at: usize) -> Option<usize> {
    if *bytes.get(at)? != b'"' {
        return None;
    }
    colon(bytes, string(bytes, at)?)
}

/// The index of the value after a key that ends at `at`.
pub(super) fn colon(bytes: &[u8], at: usize) -> Option<usize> {
    let at = space(bytes, at);
    (*bytes.get(at)? == b':').then(|| space(bytes, at + 1))
}

/// The index after the string that begins at `at`.
pub(super) fn string(bytes: &[u8], at: usize) -> Option<usize> {
    literal(bytes, at).map(|(end, _)| end)
}

/// The same, and whether the string has escapes.
#[inline]
pub(super) fn literal(bytes: &[u8], at: usize) -> Option<(usize, bool)> {
    // Most strings are keys and short words: their end is among the first eight bytes or the next.
    let first = at + 1;
    let end = match word(bytes, first).map(escaped_in) {
        Some(found) if found & HIGH != 0 => first + place(found),
        Some(_) => special(bytes, first + 8)?,
        None => special(bytes, first)?,
    };
    if *bytes.get(end)? == b'"' {
        return Some((end + 1, false));
    }
    escaped(bytes, end).map(|end| (end, true))
}

/// The index after a string whose first escape is at `at`.
fn escaped(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => match *bytes.get(at + 1)? {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => at += 2,
                b'u' => {
                    let digits = bytes.get(at + 2..at + 6)?;
                    if !digits.iter().all(u8::is_ascii_hexdigit) {
                        return None;
                    }
                    at += 6;
                }
                _ => return None,
            },
            // A control character.
            _ => return None,
        }
        at = special(bytes, at)?;
    }
}

/// The index of the first quote, backslash or control character at or after `at`.
fn special(bytes: &[u8], at: usize) -> Option<usize> {
    let is_special =
        |byte: u8| u8::from(byte < 0x20) | u8::from(byte == b'"') | u8::from(byte == b'\\');
    first(bytes, at, is_special, escaped_in)
}

/// The index of the first byte at or after `at` that a string literal cannot hold as it is, or that
/// may begin a line break (U+0085, U+2028, U+2029).
pub(super) fn unwritable(bytes: &[u8], at: usize) -> Option<usize> {
    let is_special = |byte: u8| {
        let is_escaped = u8::from(byte < 0x20) | u8::from(byte == b'"') | u8::from(byte == b'\\');
        is_escaped | u8::from(byte == 0xC2) | u8::from(byte == 0xE2)
    };
    first(bytes, at, is_special, |word| {
        escaped_in(word) | zero_in(word ^ (ONES * 0xC2)) | zero_in(word ^ (ONES * 0xE2))
    })
}

/// Index of the first special byte at or after `at`. `special_in` marks special bytes among eight by
/// their high bits; only its first mark is reliable.
#[inline(always)]
fn first(
    bytes: &[u8],
    mut at: usize,
    is_special: impl Fn(u8) -> u8,
    special_in: impl Fn(u64) -> u64,
) -> Option<usize> {
    match word(bytes, at).map(|word| special_in(word) & HIGH) {
        Some(0) => at += 8,
        Some(found) => return Some(at + place(found)),
        None => {}
    }
    // Without a way out in the middle, the compiler looks at a whole chunk at once.
    while let Some(chunk) = bytes.get(at..at + 32) {
        if chunk.iter().fold(0, |found, byte| found | is_special(*byte)) != 0 {
            break;
        }
        at += 32;
    }
    while let Some(found) = word(bytes, at).map(|word| special_in(word) & HIGH) {
        if found != 0 {
            return Some(at + place(found));
        }
        at += 8;
    }
    bytes.get(at..)?.iter().position(|byte| is_special(*byte) != 0).map(|found| at + found)
}

/// The eight bytes from `at` on.
#[inline]
fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..at + 8)?.first_chunk()?;
    Some(u64::from_le_bytes(*word))
}

/// Which of eight bytes is the first that is marked.
#[inline]
fn place(marks: u64) -> usize {
    (marks & HIGH).trailing_zeros() as usize / 8
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Marks zeros. A borrow can only spoil the bytes after the first of them.
fn zero_in(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word
}

/// Marks quotes, backslashes and control characters.
fn escaped_in(word: u64) -> u64 {
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    zero_in(word ^ (ONES * b'"' as u64)) | zero_in(word ^ (ONES * b'\\' as u64)) | control
}

/// The index after the number or literal that begins at `at`.
pub(super) fn scalar(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = bytes.get(at..)?;
    for literal in [b"true".as_slice(), b"false", b"null"] {
        if rest.starts_with(literal) {
            return Some(at + literal.len());
        }
    }
    number(bytes, at)
}

fn number(bytes: &[u8], mut at: usize) -> Option<usize> {
    let digits = |mut at: usize| {
        let start = at;
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        (at > start).then_some(at)
    };
    if *bytes.get(at)? == b'-' {
        at += 1;
    }
    at = if *bytes.get(at)? == b'0' { at + 1 } else { digits(at)? };
    if bytes.get(at) == Some(&b'.') {
        at = digits(at + 1)?;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        at += 1;
        if matches!(bytes.get(at), Some(b'+' | b'-')) {
            at += 1;
        }
        at = digits(at)?;
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Whether a text is one value, as serde_json sees it and as we do.
    #[track_caller]
    fn check(json: &str) {
        let bytes = json.as_bytes();
        let start = space(bytes, 0);
        let ours = value(bytes, start).filter(|end| space(bytes, *end) == bytes.len());
        let theirs = serde_json::from_str::<&serde_json::value::RawValue>(json).ok();
        assert_eq!(
            ours.map(|end| &json[start..end]),
            theirs.map(serde_json::value::RawValue::get),
            "{json:?}"
        );
    }

    #[test]
    fn values_and_what_is_none() {
        for json in [
            "",
            " ",
            "null",
            "nul",
            "true ",
            "tru",
            "falsee",
            "0",
            "-0",
            "01",
            "-",
            "1.",
            "1.5",
            ".5",
            "1e",
            "1e5",
            "1E+05",
            "1e-",
            "+1",
            "1 2",
            "\"\"",
            "\"a",
            "\"\\",
            "\"\\x\"",
            "\"\\u12",
            "\"\\u12G4\"",
            "\"\\uD800\"",
            "\"\\u00e9\\n\"",
            "\"\n\"",
            "\"\u{7f}é\"",
            "[]",
            "[ ]",
            "[1,]",
            "[,1]",
            "[1 2]",
            "[1,2",
            "[1}",
            "{}",
            "{ }",
            "{\"a\":1}",
            "{\"a\" : [ {\"b\":{}} , \"]\" ] }",
            "{\"a\"}",
            "{\"a\":}",
            "{a:1}",
            "{\"a\":1,}",
            "{1:2}",
            "{\"a\":1 \"b\":2}",
            "[[[[1]]]]",
            "]",
            "}",
            "[\"a\\\\\",\"b\\\"\"]",
        ] {
            check(json);
        }
        let deep = |count: usize| format!("{}{}", "[".repeat(count), "]".repeat(count));
        for count in [127, 128, 129, 255, 256, 257, 258, 1000] {
            check(&deep(count));
            check(&deep(count).replacen("]", "}", 1));
            check(&deep(count).replace('[', "{\"a\":[").replace(']', "]}"));
        }
        let very = deep(2_000_000);
        assert_eq!(value(very.as_bytes(), 0), Some(very.len()));
    }

    #[test]
    fn the_end_of_a_string_is_found_wherever_it_is() {
        for length in 0..80 {
            for special in ["", "\\n", "\\\"", "\u{1}", "é", "\u{1f}"] {
                check(&format!("\"{}{special}x\"", "a".repeat(length)));
            }
        }
    }

    proptest! {
        #[test]
        fn agrees_with_serde_json(json in r#"[\[\]{},: "\\a0-9.eE+\-tfn]{0,24}"#) {
            check(&json);
        }

        #[test]
        fn agrees_with_serde_json_on_strings(text in any::<String>(), cut in 0_usize..40) {
            let mut json = serde_json::to_string(&[text]).unwrap();
            check(&json);
            let cut = (0..=cut.min(json.len())).rev().find(|at| json.is_char_boundary(*at)).unwrap();
            json.truncate(cut);
            check(&json);
        }
    }
}
