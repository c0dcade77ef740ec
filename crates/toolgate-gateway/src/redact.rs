//! Redacts API keys and quoted values from upstream error text.
//!
//! Google repeats a key in some of its errors (`Consumer 'api_key:AIza…' has been suspended`), and the
//! reader of an error need not be the key's owner. It also quotes values of the request: of fields
//! that do not fit, and some characters around a JSON error. The gateway's own errors and logs name
//! fields and keep their contents out.

use std::borrow::Cow;

/// Replaces a quoted value.
const CUT: char = '…';
/// Longest path or name that stays, in bytes.
const MAX_PATH_BYTES: usize = 200;

/// Replaces the values that Google quotes from a request; paths and names of fields stay.
pub(crate) fn without_values(message: &str) -> Cow<'_, str> {
    if !message.contains(['"', '\'', '`', '^', ':']) {
        return Cow::Borrowed(message);
    }
    let mut out = String::with_capacity(message.len());
    let mut is_value = false;
    for (number, line) in without_excerpt(message).lines().enumerate() {
        // A value may have lines of its own.
        if is_value && !line.starts_with("Invalid ") {
            continue;
        }
        if number > 0 {
            out.push('\n');
        }
        let (kept, rest) = split_value(line);
        is_value = rest;
        push_without_quotes(&mut out, kept);
        if is_value {
            out.push(CUT);
        }
    }
    if out == message { Cow::Borrowed(message) } else { Cow::Owned(out) }
}

/// Cuts the excerpt of a JSON error: the lines between the first one and that of the caret.
fn without_excerpt(message: &str) -> Cow<'_, str> {
    let Some((first, rest)) = message.split_once('\n') else { return Cow::Borrowed(message) };
    let mut left = rest.lines();
    if left.any(|line| line.trim() == "^") {
        let after: Vec<&str> = left.collect();
        return Cow::Owned([&[first], &after[..]].concat().join("\n"));
    }
    Cow::Borrowed(message)
}

/// Splits off a quotation that lasts to the end of a line: `Invalid value at 'PATH' (TYPE), VALUE`, and calls that the
/// model wrote. Returns whether there was such a value.
fn split_value(line: &str) -> (&str, bool) {
    for (opening, before) in [("Invalid value at '", "), "), ("alformed function call:", ":")] {
        let Some(start) = line.find(opening) else { continue };
        if let Some(at) = line[start..].find(before).map(|at| start + at + before.len())
            && at < line.len()
        {
            return (&line[..at], true);
        }
    }
    (line, false)
}

/// Copies a line without the values between its quotation marks.
fn push_without_quotes(out: &mut String, line: &str) {
    let mut rest = line;
    while let Some(at) = rest.find(['"', '\'', '`']) {
        let (before, quoted) = rest.split_at(at);
        out.push_str(before);
        let mark = if quoted.starts_with('"') {
            '"'
        } else if quoted.starts_with('`') {
            '`'
        } else {
            '\''
        };
        let inner = &quoted[1..];
        // The apostrophe of a word opens nothing.
        let is_opening = mark != '\'' || !out.ends_with(|it: char| it.is_alphanumeric());
        let end = inner.find(mark).filter(|_| is_opening);
        let is_kept =
            end.is_some_and(|end| is_path(&inner[..end]) && (mark != '"' || names(before)));
        match end {
            Some(end) if is_kept => {
                out.push_str(&quoted[..end + 2]);
                rest = &inner[end + 1..];
            }
            // A value may have quotation marks of its own: everything up to the last one goes.
            Some(end) => {
                let end = if mark == '"' { inner.rfind(mark).unwrap_or(end) } else { end };
                out.extend([mark, CUT, mark]);
                rest = &inner[end + 1..];
            }
            None if mark == '"' => {
                out.extend([mark, CUT]);
                return;
            }
            None => {
                out.push(mark);
                rest = inner;
            }
        }
    }
    out.push_str(rest);
}

/// Whether a quotation after these words is the name of a field.
fn names(before: &str) -> bool {
    ["name ", "field ", "fields ", "property ", "keyword "].iter().any(|it| before.ends_with(it))
}

/// Whether this is a path or a name, such as `contents[0].parts[1].text`.
fn is_path(text: &str) -> bool {
    let is_part = |it: char| it.is_ascii_alphanumeric() || "_.[]:/-$()".contains(it);
    text.len() <= MAX_PATH_BYTES && text.chars().all(is_part)
}

/// What stands where a key stood.
const BLANK: &str = "[key]";
/// Shorter ones are words like any other.
const SHORTEST: usize = 8;
/// How Google's own keys begin.
const GOOGLE: &str = "AIza";
/// What begins so and is no longer than this is a word.
const LONGEST_WORD: usize = 20;

/// The text without these keys, and without what looks like one of Google's.
pub(crate) fn without_keys<'k>(text: &str, keys: impl Iterator<Item = &'k str>) -> Option<String> {
    let mut clean: Option<String> = None;
    for key in keys.filter(|key| key.len() >= SHORTEST) {
        let now = clean.as_deref().unwrap_or(text);
        if now.contains(key) {
            clean = Some(now.replace(key, BLANK));
        }
    }
    let text = clean.as_deref().unwrap_or(text);
    without_google_keys(text).or(clean)
}

/// The text without what looks like one of Google's keys; `None` where there is nothing of the kind.
fn without_google_keys(text: &str) -> Option<String> {
    let is_key = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    let mut clean = String::new();
    let (mut copied, mut from) = (0, 0);
    while let Some(at) = text[from..].find(GOOGLE).map(|at| from + at) {
        let end = text[at..].find(|it| !is_key(it)).map_or(text.len(), |length| at + length);
        if end - at > LONGEST_WORD {
            clean.extend([&text[copied..at], BLANK]);
            copied = end;
        }
        from = end;
    }
    clean.push_str(&text[copied..]);
    (copied > 0).then_some(clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_google_quotes_are_cut_and_paths_stay() {
        for (message, want) in [
            ("nothing of the kind", "nothing of the kind"),
            (
                "Invalid value at 'contents[0].parts[0].text' (TYPE_STRING), my \"secret\" words",
                "Invalid value at 'contents[0].parts[0].text' (TYPE_STRING), …",
            ),
            (
                "Invalid value at 'a' (TYPE_INT32), \"one\ntwo\"\nInvalid value at 'b' (TYPE_BOOL), 3",
                "Invalid value at 'a' (TYPE_INT32), …\nInvalid value at 'b' (TYPE_BOOL), …",
            ),
            (
                "Invalid JSON payload received. Unexpected token.\nsay my secret words\n    ^",
                "Invalid JSON payload received. Unexpected token.",
            ),
            (
                "Invalid JSON payload received. Unknown name \"foo\" at 'contents[0]': Cannot find field.",
                "Invalid JSON payload received. Unknown name \"foo\" at 'contents[0]': Cannot find field.",
            ),
            (
                "Unknown name \"my secret words\" at 'contents[0]'",
                "Unknown name \"…\" at 'contents[0]'",
            ),
            (
                "Base64 decoding failed for \"c2VjcmV0 \"inner\" words\" here",
                "Base64 decoding failed for \"…\" here",
            ),
            ("It ends in a \"secret", "It ends in a \"…"),
            (
                "`my_tool` functionDeclaration `parameters.x` schema didn't say, it's `my secret`",
                "`my_tool` functionDeclaration `parameters.x` schema didn't say, it's `…`",
            ),
            ("the file 'my secret plan.txt' is", "the file '…' is"),
            (
                "Gemini ended its turn with MALFORMED_FUNCTION_CALL: Malformed function call: print(x)",
                "Gemini ended its turn with MALFORMED_FUNCTION_CALL: Malformed function call:…",
            ),
            ("'", "'"),
            ("\"", "\"…"),
            ("`é` and ``", "`…` and ``"),
        ] {
            assert_eq!(without_values(message), want, "{message}");
        }
    }

    #[test]
    fn law8_keys_are_not_repeated() {
        let google = format!("AIza{}", "x".repeat(35));
        for (text, want) in [
            ("nothing of the kind", None),
            ("a secret-key-1 and secret-key-1", Some("a [key] and [key]")),
            ("k is a word", None),
            ("AIza is how they begin", None),
            (&*format!("Consumer 'api_key:{google}' has"), Some("Consumer 'api_key:[key]' has")),
            (&*format!("{google} secret-key-1"), Some("[key] [key]")),
            (&*format!("{google}, AIza, {google}é"), Some("[key], AIza, [key]é")),
        ] {
            let keys = ["secret-key-1", "k"];
            assert_eq!(without_keys(text, keys.into_iter()).as_deref(), want, "{text}");
        }
    }
}
