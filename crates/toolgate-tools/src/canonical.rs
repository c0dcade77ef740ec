//! Canonical JSON text: sorted keys, no white space, strings and numbers in one spelling.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// Deepest nesting that is rewritten. Deeper values keep their text.
const MAX_DEPTH: usize = 96;

/// Returns the canonical text of a value. Numbers keep their text, so that no two of them become the
/// same by rounding.
pub(crate) fn text(value: &RawValue) -> String {
    let mut out = String::with_capacity(value.get().len());
    write(value.get(), 0, &mut out);
    out
}

fn write(text: &str, depth: usize, out: &mut String) {
    let text = text.trim();
    let first = text.as_bytes().first();
    if depth < MAX_DEPTH {
        match first {
            Some(b'{') => {
                if let Ok(members) = serde_json::from_str::<BTreeMap<String, &RawValue>>(text) {
                    out.push('{');
                    for (index, (name, member)) in members.iter().enumerate() {
                        if index > 0 {
                            out.push(',');
                        }
                        write_string(name, out);
                        out.push(':');
                        write(member.get(), depth + 1, out);
                    }
                    out.push('}');
                    return;
                }
            }
            Some(b'[') => {
                if let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(text) {
                    out.push('[');
                    for (index, item) in items.iter().enumerate() {
                        if index > 0 {
                            out.push(',');
                        }
                        write(item.get(), depth + 1, out);
                    }
                    out.push(']');
                    return;
                }
            }
            Some(b'"') => {
                if let Ok(string) = serde_json::from_str::<String>(text) {
                    write_string(&string, out);
                    return;
                }
            }
            _ => {}
        }
    }
    out.push_str(text);
}

fn write_string(text: &str, out: &mut String) {
    match serde_json::to_string(text) {
        Ok(literal) => out.push_str(&literal),
        Err(_) => out.push_str(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sorted_and_numbers_kept() {
        let cases = [
            (
                r#"{"b":1e2,"a":[ 1.0, {"d":null,"c":"\u0061"} ]}"#,
                r#"{"a":[1.0,{"c":"a","d":null}],"b":1e2}"#,
            ),
            ("  12345678901234567890.10 ", "12345678901234567890.10"),
            ("[]", "[]"),
        ];
        for (input, expected) in cases {
            let value: Box<RawValue> = serde_json::from_str(input).unwrap();
            assert_eq!(text(&value), expected);
        }
    }

    #[test]
    fn deep_values_finish() {
        let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
        let value = RawValue::from_string(deep.clone());
        if let Ok(value) = value {
            assert_eq!(text(&value), deep);
        }
    }
}
