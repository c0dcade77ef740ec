//! Vertex's streamed arguments: a JSON path and a value at a time.

use serde_json::{Map, Value, json};

use crate::chunks::{Chunk, PartKind, Piece};

/// Splits each call into several chunks.
pub(crate) fn split_calls(chunks: Vec<Chunk>) -> Vec<Chunk> {
    let has_calls = chunks
        .iter()
        .flat_map(|chunk| &chunk.pieces)
        .any(|piece| matches!(piece.kind, PartKind::Call { .. }));
    let mut out = Vec::with_capacity(chunks.len());
    for mut chunk in chunks {
        let pieces = std::mem::take(&mut chunk.pieces);
        match <[Piece; 1]>::try_from(pieces) {
            Ok([Piece { kind: PartKind::Call { name, args, id }, signed }]) => {
                out.extend(call(&name, &args, id.as_deref(), signed));
            }
            // The empty text that ends a turn of calls is dropped; its finish reason moves to the last call.
            Ok([Piece { kind: PartKind::Text(text), .. }]) if text.is_empty() && has_calls => {
                if let Some(last) = out.last_mut() {
                    last.finish = chunk.finish;
                }
            }
            Ok(pieces) => out.push(Chunk { pieces: pieces.into(), ..chunk }),
            Err(pieces) => out.push(Chunk { pieces, ..chunk }),
        }
    }
    out
}

fn call(name: &str, args: &Map<String, Value>, id: Option<&str>, signed: bool) -> Vec<Chunk> {
    let mut leaves = Vec::new();
    let is_complete =
        args.iter().all(|(key, value)| collect(&member("$", key), value, &mut leaves));
    let mut head = json!({ "name": name });
    if let Some(id) = id {
        head["id"] = json!(id);
    }
    let has_no_strings = leaves.iter().all(|(_, value)| !value.is_string());
    if !is_complete {
        // A path cannot express an empty list or object, so the call is sent in one piece.
        head["args"] = Value::Object(args.clone());
        return vec![chunk(&head, signed)];
    }
    if has_no_strings {
        let values: Vec<_> = leaves.iter().map(|(path, value)| leaf(path, value)).collect();
        if !values.is_empty() {
            head["partialArgs"] = Value::Array(values);
        }
        return vec![chunk(&head, signed)];
    }
    head["willContinue"] = json!(true);
    let mut out = vec![chunk(&head, signed)];
    for (path, value) in &leaves {
        let steps = match value.as_str() {
            Some(text) => string_pieces(path, text),
            None => vec![leaf(path, value)],
        };
        for step in steps {
            out.push(chunk(&json!({"partialArgs": [step], "willContinue": true}), false));
        }
    }
    out.push(chunk(&json!({}), false));
    out
}

fn chunk(call: &Value, signed: bool) -> Chunk {
    let piece = Piece { kind: PartKind::Part(json!({ "functionCall": call })), signed };
    Chunk { pieces: vec![piece], ..Chunk::default() }
}

fn leaf(path: &str, value: &Value) -> Value {
    match value {
        Value::Bool(it) => json!({"jsonPath": path, "boolValue": it}),
        Value::Number(it) => json!({"jsonPath": path, "numberValue": it}),
        Value::Null => json!({"jsonPath": path, "nullValue": "NULL_VALUE"}),
        Value::String(_) | Value::Array(_) | Value::Object(_) => {
            json!({"jsonPath": path, "stringValue": value})
        }
    }
}

/// Pieces of a string; an empty one ends it.
fn string_pieces(path: &str, text: &str) -> Vec<Value> {
    let letters: Vec<char> = text.chars().collect();
    let mut steps: Vec<_> = letters
        .chunks(16)
        .map(|run| {
            let run: String = run.iter().collect();
            json!({"jsonPath": path, "stringValue": run, "willContinue": true})
        })
        .collect();
    steps.push(json!({"jsonPath": path, "stringValue": ""}));
    steps
}

/// Collects the scalars with their paths. `false` if a list or an object is empty.
fn collect(path: &str, value: &Value, leaves: &mut Vec<(String, Value)>) -> bool {
    match value {
        Value::Object(members) if !members.is_empty() => {
            members.iter().all(|(key, value)| collect(&member(path, key), value, leaves))
        }
        Value::Array(items) if !items.is_empty() => items
            .iter()
            .enumerate()
            .all(|(at, value)| collect(&format!("{path}[{at}]"), value, leaves)),
        Value::Object(_) | Value::Array(_) => false,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            leaves.push((path.to_owned(), value.clone()));
            true
        }
    }
}

/// Path of a member: `$.a.b`, or `$['a b']` for a name that is not an identifier.
fn member(path: &str, key: &str) -> String {
    let is_plain = key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_plain {
        return format!("{path}.{key}");
    }
    format!("{path}['{}']", key.replace('\\', "\\\\").replace('\'', "\\'"))
}
