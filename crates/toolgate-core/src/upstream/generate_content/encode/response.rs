//! Results of tools, as the object that Gemini wants.

use crate::canon::{ResultPart, ToolResult};
use crate::json::write::{self, ObjectWriter};
use crate::json::{Kind, Raw};

/// Objects nested deeper are refused, and nothing says where.
pub(super) const DEPTH: usize = 25;

/// Response for a call without a result.
pub(super) const NO_RESULT: &str =
    r#"{"error":"The tool call was interrupted: it has no result."}"#;

/// Response for a call whose result comes later in the conversation.
pub(super) const COMES_LATER: &str =
    r#"{"result":"There is no result yet. It comes later in this conversation."}"#;

/// Writes `{"result":…}`, `{"error":…}` or a Gemini client's own object.
///
/// One text is kept as it is, several become lines. A JSON value is kept as it is, unless Gemini
/// would interpret it (`$ref`) or could not read it (too deep): then it becomes text.
pub(super) fn write_response(out: &mut Vec<u8>, result: &ToolResult<'_>) {
    let said = || {
        result.content.iter().filter(|part| match part {
            ResultPart::Text(_) | ResultPart::Json(_) => true,
            ResultPart::Media(_) => false,
        })
    };
    let (first, more) = (said().next(), said().nth(1).is_some());
    if let (Some(ResultPart::Json(raw)), false) = (first, more)
        && raw.kind() == Kind::Object
        && is_readable(raw)
        && (!result.is_error || raw.fields().is_some_and(|fields| fields.get("error").is_some()))
    {
        raw.write(out);
        return;
    }
    let mut response = ObjectWriter::new(out);
    let out = response.key(if result.is_error { "error" } else { "result" });
    match (first, more) {
        (None, _) => out.extend_from_slice(b"\"\""),
        (Some(ResultPart::Text(text)), false) => text.write(out),
        (Some(ResultPart::Json(raw)), false) if is_readable(raw) => raw.write(out),
        _ => write_lines(out, said()),
    }
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

/// Whether Gemini reads the value literally.
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
