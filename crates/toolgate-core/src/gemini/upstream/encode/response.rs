//! What a tool said, as the object that Gemini wants.

use crate::canon::{ResultPart, ToolResult};
use crate::json::{Kind, Raw, write};

/// Objects nested deeper are refused, and nothing says where.
pub(super) const DEPTH: usize = 25;

/// What Gemini is told where nobody knows what became of a call.
pub(super) const NO_RESULT: &str =
    r#"{"error":"The tool call was interrupted: it has no result."}"#;

/// What Gemini is told where the result is not there yet.
pub(super) const COMES_LATER: &str =
    r#"{"result":"There is no result yet. It comes later in this conversation."}"#;

/// Writes `{"result":…}`, `{"error":…}` or a Gemini client's own object.
///
/// One text stays the text that it is, several are lines. A JSON value stays what it is, unless
/// Gemini would read something into it (`$ref`) or could not read it (too deep): then it is told
/// as text.
pub(super) fn write_response(out: &mut Vec<u8>, result: &ToolResult<'_>) {
    let said = || {
        result.content.iter().filter(|part| match part {
            ResultPart::Text(_) | ResultPart::Json(_) => true,
            ResultPart::Media(_) => false,
        })
    };
    let key: &[u8] = if result.is_error { b"{\"error\":" } else { b"{\"result\":" };
    let (first, more) = (said().next(), said().nth(1).is_some());
    if let (Some(ResultPart::Json(raw)), false) = (first, more)
        && raw.kind() == Kind::Object
        && is_readable(raw)
        && (!result.is_error || raw.fields().is_some_and(|fields| fields.get("error").is_some()))
    {
        raw.write(out);
        return;
    }
    out.extend_from_slice(key);
    match (first, more) {
        (None, _) => out.extend_from_slice(b"\"\""),
        (Some(ResultPart::Text(text)), false) => text.write(out),
        (Some(ResultPart::Json(raw)), false) if is_readable(raw) => raw.write(out),
        _ => write_lines(out, said()),
    }
    out.push(b'}');
}

/// Writes several pieces as one string, a line each.
fn write_lines<'r>(out: &mut Vec<u8>, parts: impl Iterator<Item = &'r ResultPart<'r>>) {
    out.push(b'"');
    for (at, part) in parts.enumerate() {
        if at > 0 {
            out.extend_from_slice(b"\\n");
        }
        match part {
            ResultPart::Text(text) => write::literal(out, text.escaped()),
            ResultPart::Json(raw) => {
                let start = out.len();
                write::json_in_string(out, raw.get());
                // Its own quotes: we are inside of a string already.
                out.remove(start);
                out.pop();
            }
            ResultPart::Media(_) => {}
        }
    }
    out.push(b'"');
}

/// Whether Gemini reads the value as what it says.
fn is_readable(raw: &Raw<'_>) -> bool {
    !is_deep(raw.get()) && !has_ref(raw.get())
}

/// Whether the value nests deeper than Gemini reads.
pub(super) fn is_deep(json: &str) -> bool {
    let bytes = json.as_bytes();
    // Most values do not have as many brackets at all.
    if memchr::memchr2_iter(b'{', b'[', bytes).nth(DEPTH).is_none() {
        return false;
    }
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for &byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                if depth > DEPTH {
                    return true;
                }
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// Whether a member is called `$ref`, which Gemini takes for one of its own references.
fn has_ref(json: &str) -> bool {
    let bytes = json.as_bytes();
    // With escapes there are more ways to write it than are worth telling apart.
    memchr::memmem::find(bytes, b"\\u0024ref").is_some()
        || memchr::memmem::find_iter(bytes, b"\"$ref\"").any(|at| {
            bytes[at + 6..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':')
        })
}
