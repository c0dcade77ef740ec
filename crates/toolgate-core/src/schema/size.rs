//! Size limits of a schema, checked before a tree is built.

/// Maximum number of JSON values in one schema: objects, arrays, strings, numbers and literals.
/// Schemas of real tools have tens to a few hundred.
pub const MAX_VALUES: usize = 50_000;
/// Maximum size of one schema's text.
pub const MAX_BYTES: usize = 8 * 1024 * 1024;

/// The limit that a schema exceeds, as a clause about the schema; `None` if it is within limits.
///
/// Costs at most one pass over the text and allocates only for the message.
pub(crate) fn exceeded(schema: &str) -> Option<String> {
    if schema.len() > MAX_BYTES {
        return Some(format!("it has more than {} MiB", MAX_BYTES / 1024 / 1024));
    }
    // Each value takes a byte and a separator.
    if schema.len().div_ceil(2) <= MAX_VALUES {
        return None;
    }
    let too_many = values(schema.as_bytes()) > MAX_VALUES;
    too_many.then(|| format!("it has more than {MAX_VALUES} values"))
}

/// Number of values in a JSON text.
fn values(json: &[u8]) -> usize {
    let mut count = 1;
    let mut at = 0;
    // Whether a container was opened and nothing of it has been seen yet.
    let mut opened = false;
    while let Some(byte) = json.get(at) {
        at += 1;
        match byte {
            b' ' | b'\n' | b'\r' | b'\t' | b':' => continue,
            b'}' | b']' => {
                opened = false;
                continue;
            }
            b',' => {
                count += 1;
                continue;
            }
            _ => {}
        }
        // The first value of a container has no comma before it.
        count += usize::from(opened);
        opened = matches!(byte, b'{' | b'[');
        if *byte == b'"' {
            at = string_end(json, at);
        }
    }
    count
}

/// Where the string ends whose content begins at `at`.
fn string_end(json: &[u8], mut at: usize) -> usize {
    while let Some(found) = json.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found + 1;
        if json.get(at - 1) == Some(&b'"') {
            return at;
        }
        at += 1;
    }
    json.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, want: usize) {
        assert_eq!(values(json.as_bytes()), want, "{json}");
    }

    #[test]
    fn every_value_counts_once_and_keys_do_not() {
        check("1", 1);
        check("[]", 1);
        check(" { } ", 1);
        check("[{},{},{}]", 4);
        check(r#"{"a": 1, "b": [true, null]}"#, 5);
        check(r#"{"a,[": "x\",[{\\", "b": {"c": []}}"#, 4);
        check("[[[[1]]]]", 5);
        check(r#"[" , "]"#, 2);
    }

    #[test]
    fn large_schemas_are_refused_by_what_they_exceed() {
        assert_eq!(exceeded(r#"{"type":"object"}"#), None);
        let branches = vec!["{}"; MAX_VALUES - 2].join(",");
        assert_eq!(exceeded(&format!(r#"{{"anyOf":[{branches}]}}"#)), None);
        let exceeded_values = exceeded(&format!(r#"{{"anyOf":[{branches},{{}}]}}"#));
        assert_eq!(exceeded_values.as_deref(), Some("it has more than 50000 values"));
        let text = format!(r#"{{"title":"{}"}}"#, "x".repeat(MAX_BYTES));
        assert_eq!(exceeded(&text).as_deref(), Some("it has more than 8 MiB"));
    }
}
