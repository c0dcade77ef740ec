//! Finding a call again when the client has changed its id.

use std::collections::BTreeMap;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::canon::{Call, CallInput};
use crate::json::{Raw, write};

/// The key of a call by what it says: the tool, and the arguments whatever the order of their
/// members. Calls that say the same have the same key; their place must tell them apart.
///
/// ```
/// use toolgate_core::canon::{Call, CallInput, ToolName};
/// use toolgate_core::gemini::upstream::content_key;
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
    match serde_json::from_str::<Value>(raw.get()) {
        Ok(value) => write_sorted(&mut out, &value),
        // Deeper than serde_json reads: the text itself must do.
        Err(_) => write::compact(&mut out, raw.get()),
    }
    out
}

/// As deep as serde_json reads, which has a limit of its own.
fn write_sorted(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Value::Number(number) => {
            let text = match number.as_f64() {
                Some(float) if !number.is_i64() && !number.is_u64() && float.fract() == 0.0 => {
                    format!("{float:.0}")
                }
                _ => number.to_string(),
            };
            out.extend_from_slice(text.as_bytes());
        }
        Value::String(text) => write::string(out, text),
        Value::Array(items) => {
            out.push(b'[');
            for item in items {
                write::comma(out);
                write_sorted(out, item);
            }
            out.push(b']');
        }
        Value::Object(members) => {
            let sorted: BTreeMap<_, _> = members.iter().collect();
            out.push(b'{');
            for (name, value) in sorted {
                write::key(out, name);
                write_sorted(out, value);
            }
            out.push(b'}');
        }
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
        ] {
            assert_eq!(content_key(&call("tg1", ours)), content_key(&call("x-9", theirs)));
        }
        assert_ne!(content_key(&call("a", "{}")), content_key(&call("a", "[]")));
        let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
        let deep = Raw::parse(deep);
        assert!(deep.is_none_or(|raw| !canonical(&raw).is_empty()));
    }
}
