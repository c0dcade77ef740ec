//! Vertex's way to stream arguments: a path and a value at a time.

use serde_json::{Map, Value, json};

use crate::pieces::{Chunk, Kind, Piece};

/// Puts each call into several chunks.
pub(crate) fn spread(chunks: Vec<Chunk>) -> Vec<Chunk> {
    let has_calls = chunks
        .iter()
        .flat_map(|chunk| &chunk.pieces)
        .any(|piece| matches!(piece.kind, Kind::Call { .. }));
    let mut out = Vec::with_capacity(chunks.len());
    for mut chunk in chunks {
        let pieces = std::mem::take(&mut chunk.pieces);
        match <[Piece; 1]>::try_from(pieces) {
            Ok([Piece { kind: Kind::Call { name, args, id }, signed }]) => {
                out.extend(call(&name, &args, id.as_deref(), signed));
            }
            // The empty text that ends a turn of calls: the last call's end stands for it.
            Ok([Piece { kind: Kind::Text(text), .. }]) if text.is_empty() && has_calls => {
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
    let all_said = args.iter().all(|(key, value)| collect(&member("$", key), value, &mut leaves));
    let mut head = json!({ "name": name });
    if let Some(id) = id {
        head["id"] = json!(id);
    }
    let is_short = leaves.iter().all(|(_, value)| !value.is_string());
    if !all_said {
        // A path cannot say an empty list or object: such a call comes whole.
        head["args"] = Value::Object(args.clone());
        return vec![chunk(&head, signed)];
    }
    if is_short {
        let whole: Vec<_> = leaves.iter().map(|(path, value)| leaf(path, value)).collect();
        if !whole.is_empty() {
            head["partialArgs"] = Value::Array(whole);
        }
        return vec![chunk(&head, signed)];
    }
    head["willContinue"] = json!(true);
    let mut out = vec![chunk(&head, signed)];
    for (path, value) in &leaves {
        let steps = match value.as_str() {
            Some(text) => spoken(path, text),
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
    let piece = Piece { kind: Kind::Part(json!({ "functionCall": call })), signed };
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

/// A string comes in runs, and ends with an empty one.
fn spoken(path: &str, text: &str) -> Vec<Value> {
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

/// `$.a.b`, and `$['a b']` where a name is not plain.
fn member(path: &str, key: &str) -> String {
    let is_plain = key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_plain {
        return format!("{path}.{key}");
    }
    format!("{path}['{}']", key.replace('\\', "\\\\").replace('\'', "\\'"))
}
