//! Text from files, made safe for a terminal.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a character can do something to a terminal or to the order in which text is shown:
/// controls other than a line's end or a tab, and marks that reverse or hide text.
pub(super) fn is_unsafe(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        // Direction marks and overrides, line and paragraph separators, invisible characters.
        '\u{61c}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => true,
        c => c.is_control(),
    }
}

/// Text for a terminal: unsafe characters as `\u{1b}`.
pub(super) fn for_terminal(text: &str) -> Cow<'_, str> {
    escaped(text, |out, c| _ = write!(out, "\\u{{{:x}}}", u32::from(c)))
}

/// One line of text for a terminal.
pub(super) fn line_for_terminal(text: &str) -> Cow<'_, str> {
    let text = for_terminal(text);
    if text.contains(['\n', '\t']) {
        return Cow::Owned(text.replace('\n', "\\n").replace('\t', "\\t"));
    }
    text
}

/// JSON text whose strings show no unsafe characters: as JSON's own escapes.
pub fn json_for_terminal(json: &str) -> Cow<'_, str> {
    escaped(json, |out, c| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    })
}

fn escaped(text: &str, escape: impl Fn(&mut String, char)) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_unsafe(c) {
            escape(&mut out, c);
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_a_cursor_or_turns_text_around_is_escaped() {
        assert_eq!(for_terminal("plain ü 日本\n"), "plain ü 日本\n");
        assert_eq!(for_terminal("a\u{1b}[2Jb\r\u{9b}c"), r"a\u{1b}[2Jb\u{d}\u{9b}c");
        assert_eq!(for_terminal("\u{202e}evil\u{2066}\u{7f}"), r"\u{202e}evil\u{2066}\u{7f}");
        assert_eq!(line_for_terminal("a\nb\t\u{7}"), r"a\nb\t\u{7}");
    }

    #[test]
    fn json_stays_json() {
        let json = serde_json::to_string("\u{202e}\u{9b}ü\u{e0041}").unwrap();
        let safe = json_for_terminal(&json);
        assert_eq!(safe, r#""\u202e\u009bü\udb40\udc41""#);
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), "\u{202e}\u{9b}ü\u{e0041}");
    }
}
