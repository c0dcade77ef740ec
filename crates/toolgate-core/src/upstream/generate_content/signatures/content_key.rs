//! Finding a call again when the client has changed its id.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Number;
use sha2::{Digest as _, Sha256};

use crate::canon::{Call, CallInput};
use crate::json::write::{self, ArrayWriter};
use crate::json::{Cursor, Kind, Raw};

/// Key of a call by its content: the tool, and the arguments in any order of their members. Calls with
/// equal content have equal keys; their position tells them apart.
///
/// ```
/// use toolgate_core::canon::{Call, CallInput, ToolName};
/// use toolgate_core::upstream::generate_content::content_key;
/// use toolgate_core::json::Raw;
///
/// let call = |id: &'static str, args: &str| Call {
///     id: id.into(),
///     upstream_id: None,
///     tool: ToolName::plain("read"),
///     input: CallInput::Json(Raw::parse(args.to_owned()).unwrap()),
///     signature: None,
/// };
/// let (ours, theirs) = (call("toolu_1", r#"{"a":1,"b":[]}"#), call("x", r#"{"b":[], "a":1.0}"#));
/// assert_eq!(content_key(&ours), content_key(&theirs));
/// ```
pub fn content_key(call: &Call<'_>) -> String {
    let mut key = String::with_capacity(32);
    for byte in &digest(call)[..16] {
        key.push(char::from(HEX[usize::from(byte >> 4)]));
        key.push(char::from(HEX[usize::from(byte & 15)]));
    }
    key
}

const HEX: &[u8; 16] = b"0123456789abcdef";

fn digest(call: &Call<'_>) -> [u8; 32] {
    let mut hash = Sha256::new();
    if let Some(namespace) = &call.tool.namespace {
        hash.update(namespace.as_bytes());
    }
    hash.update([0]);
    hash.update(call.tool.name.as_bytes());
    hash.update([0]);
    match &call.input {
        CallInput::Json(raw) => hash.update(canonical(raw)),
        CallInput::Text(text) => hash.update(text.decode().as_bytes()),
    }
    hash.finalize().into()
}

/// Members in order of their names, no white space, integral numbers without a fraction.
fn canonical(raw: &Raw<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.get().len());
    write_sorted(&mut out, &mut Cursor::new(&raw.borrowed()), DEEPEST);
    out
}

/// Deeper values are taken as they stand.
const DEEPEST: usize = 128;

fn write_sorted(out: &mut Vec<u8>, cursor: &mut Cursor<'_>, depth: usize) {
    match cursor.kind() {
        Kind::Array if depth > 0 => {
            let mut array = ArrayWriter::new(out);
            cursor.enter();
            while cursor.next_element() {
                write_sorted(array.element(), cursor, depth - 1);
            }
        }
        Kind::Object if depth > 0 => {
            // Members are put in order after they are written, which no `ObjectWriter` can do.
            out.push(b'{');
            write_members(out, cursor, depth - 1);
            out.push(b'}');
        }
        Kind::Array | Kind::Object => write::compact(out, cursor.value().get()),
        Kind::String => match cursor.value().text() {
            Some(text) => write::string(out, &text.decode()),
            None => out.extend_from_slice(b"\"\""),
        },
        Kind::Number => write_number(out, cursor.value().get()),
        Kind::Null | Kind::Bool => out.extend_from_slice(cursor.value().get().as_bytes()),
    }
}

/// Of members with the same name, the last counts.
fn write_members(out: &mut Vec<u8>, cursor: &mut Cursor<'_>, depth: usize) {
    let first = out.len();
    // Where each of them was written.
    let mut members: Vec<(Cow<'_, str>, Range<usize>)> = Vec::new();
    cursor.enter();
    while let Some(name) = cursor.next_key() {
        write::comma(out);
        let start = out.len();
        write::string(out, &name);
        out.push(b':');
        write_sorted(out, cursor, depth);
        members.push((name, start..out.len()));
    }
    if members.is_sorted_by(|(one, _), (next, _)| one < next) {
        return;
    }
    members.sort_by(|(one, _), (next, _)| one.cmp(next));
    let written = out.split_off(first);
    for (at, (name, place)) in members.iter().enumerate() {
        if members.get(at + 1).is_none_or(|(next, _)| next != name) {
            write::comma(out);
            out.extend_from_slice(&written[place.start - first..place.end - first]);
        }
    }
}

fn write_number(out: &mut Vec<u8>, text: &str) {
    let number = serde_json::from_str::<Number>(text).ok();
    let float = number.filter(|it| !it.is_i64() && !it.is_u64()).and_then(|it| it.as_f64());
    match float {
        Some(float) if float.fract() == 0.0 => {
            out.extend_from_slice(format!("{float:.0}").as_bytes())
        }
        Some(float) => out.extend_from_slice(float.to_string().as_bytes()),
        None => out.extend_from_slice(text.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canon::ToolName;

    fn call(id: &'static str, args: &str) -> Call<'static> {
        Call {
            id: id.into(),
            upstream_id: None,
            tool: ToolName::plain("edit"),
            input: CallInput::Json(Raw::parse(args.to_owned()).unwrap()),
            signature: None,
        }
    }

    #[test]
    fn c3_a_call_is_found_whatever_its_id() {
        for (ours, theirs) in [
            (r#"{"path":"a","n":1}"#, r#"{ "n": 1.0, "path": "a" }"#),
            (r#"{"path":"a","n":1}"#, r#"{"path":"\u0061","n":1}"#),
            (r#"{"b":{"d":1,"c":[2,{}]},"a":"ä"}"#, r#"{"a":"\u00e4","b":{"c":[2e0,{}],"d":1}}"#),
            (r#"{"a":2,"b":1}"#, r#"{"b":3,"a":2,"b":1}"#),
            (r#"{"n":0.1,"m":-10}"#, r#"{"m":-1e1,"n":1e-1}"#),
            (r#"{"n":18446744073709551615}"#, r#"{ "n" : 18446744073709551615 }"#),
        ] {
            assert_eq!(content_key(&call("tg1", ours)), content_key(&call("x-9", theirs)));
        }
        for (ours, theirs) in [
            (r#"{"a":1,"b":2}"#, r#"{"a":2,"b":1}"#),
            (r#"{"a":"1"}"#, r#"{"a":1}"#),
            (r#"{"a":[1,2]}"#, r#"{"a":[2,1]}"#),
            (r#"{"n":18446744073709551615}"#, r#"{"n":18446744073709551614}"#),
            (r#"{"a":{"b":1}}"#, r#"{"a":{},"b":1}"#),
        ] {
            assert_ne!(content_key(&call("a", ours)), content_key(&call("a", theirs)));
        }
        assert_ne!(content_key(&call("a", "{}")), content_key(&call("a", "[]")));
        for (open, close) in [("[", "]"), ("{\"b\":1,\"a\":", "}")] {
            let deep = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
            let deep = Raw::parse(deep);
            assert!(deep.is_none_or(|raw| !canonical(&raw).is_empty()));
        }
    }
}
