//! Mutations of JSON bodies: whole values instead of single bytes.
//!
//! libFuzzer's own mutations mostly give invalid JSON, which every decoder refuses at once.

use libfuzzer_sys::{fuzz_mutator, fuzzer_mutate};
use serde_json::{Map, Value, json};

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let mut rng = Rng(u64::from(seed) << 1 | 1);
    let parsed = data.get(..size).and_then(|body| serde_json::from_slice::<Value>(body).ok());
    let (Some(mut body), true) = (parsed, rng.below(4) > 0) else {
        return fuzzer_mutate(data, size, max_size);
    };
    for _ in 0..=rng.below(4) {
        change(&mut body, &mut rng);
    }
    let written = body.to_string();
    match data.get_mut(..written.len().min(max_size)) {
        Some(room) if room.len() == written.len() => {
            room.copy_from_slice(written.as_bytes());
            written.len()
        }
        _ => fuzzer_mutate(data, size, max_size),
    }
});

/// Deterministic random numbers.
struct Rng(u64);

impl Rng {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end.max(1)
    }

    fn pick<'v, T>(&mut self, from: &'v [T]) -> Option<&'v T> {
        from.get(self.below(from.len()))
    }
}

/// Changes one value.
fn change(body: &mut Value, rng: &mut Rng) {
    let (mut values, mut names) = (Vec::new(), Vec::new());
    collect(body, &mut values, &mut names);
    let other = match rng.below(3) {
        0 => odd(rng),
        _ => rng.pick(&values).map_or(Value::Null, |&value| value.clone()),
    };
    let name = match rng.below(8) {
        0 => rng.pick(&ODD_NAMES).map(|&name| name.to_owned()),
        _ => rng.pick(&names).map(|&name| name.clone()),
    };
    let string = rng.pick(&values).filter(|value| value.is_string()).map(|&value| value.clone());
    let mut index = rng.below(values.len());
    let Some(value) = nth(body, &mut index) else { return };
    match (value, rng.below(6)) {
        (Value::Object(members), 0 | 1) => {
            members.insert(name.unwrap_or_default(), other);
        }
        (Value::Object(members), 2) => drop(take(members, rng)),
        (Value::Object(members), 3) => {
            if let Some(value) = take(members, rng) {
                members.insert(name.unwrap_or_default(), value);
            }
        }
        (Value::Array(items), 0 | 1) => {
            let at = rng.below(items.len() + 1);
            items.insert(at, other);
        }
        (Value::Array(items), 2) if !items.is_empty() => {
            items.remove(rng.below(items.len()));
        }
        (Value::Array(items), 3) if !items.is_empty() => {
            let (one, two) = (rng.below(items.len()), rng.below(items.len()));
            items.swap(one, two);
        }
        (value @ Value::String(_), 0..=3) => *value = string.unwrap_or(other),
        (value, _) => *value = other,
    }
}

fn take(members: &mut Map<String, Value>, rng: &mut Rng) -> Option<Value> {
    let name = members.keys().nth(rng.below(members.len()))?.clone();
    members.remove(&name)
}

/// Collects all values of a body and the names of all members.
fn collect<'v>(value: &'v Value, values: &mut Vec<&'v Value>, names: &mut Vec<&'v String>) {
    values.push(value);
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, values, names)),
        Value::Object(members) => {
            for (name, value) in members {
                names.push(name);
                collect(value, values, names);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the value number `index`, in the order of `collect`.
fn nth<'v>(value: &'v mut Value, index: &mut usize) -> Option<&'v mut Value> {
    if *index == 0 {
        return Some(value);
    }
    *index -= 1;
    match value {
        Value::Array(items) => items.iter_mut().find_map(|item| nth(item, index)),
        Value::Object(members) => members.values_mut().find_map(|value| nth(value, index)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

const ODD_NAMES: [&str; 8] = ["", "$ref", "$defs", "a b", "ä", "items", "properties", "type"];

/// Values that clients send by mistake.
fn odd(rng: &mut Rng) -> Value {
    let deep = |rng: &mut Rng| {
        (0..rng.below(60)).fold(json!({}), |inner, level| match level % 3 {
            0 => json!([inner]),
            1 => json!({"type": "object", "properties": {"a": inner}}),
            _ => json!({"items": inner, "type": "array"}),
        })
    };
    match rng.below(24) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(false),
        3 => json!(0),
        4 => json!(-1),
        5 => json!(1.5),
        6 => json!(1e300),
        7 => json!(i64::MAX),
        8 => json!(""),
        9 => json!(" "),
        10 => json!("x".repeat(200)),
        11 => json!("a b/ä"),
        12 => json!("\u{0}\u{2028}\""),
        13 => json!([]),
        14 => json!({}),
        15 => json!({"$ref": "#/$defs/a"}),
        16 => json!({"$ref": "#"}),
        17 => json!({"type": ["string", "null"]}),
        18 => json!({"anyOf": [{"type": "string"}, {"type": "array"}]}),
        19 => json!({"enum": [1, "", null, "a"]}),
        20 => json!({"type": "array", "maxItems": 100_000, "items": {"type": "string"}}),
        21 => json!({"type": "text", "text": "x"}),
        22 => json!("object"),
        _ => deep(rng),
    }
}
