//! Values that satisfy a schema, taken from the user's text where possible.

use serde_json::{Map, Number, Value, json};

use super::prompt::{Prompt, capitalized};

/// Deepest nesting of a value; schemas may be circular.
const MAX_VALUE_DEPTH: usize = 12;
/// Highest number of values in the arguments of a call. Definitions that refer to each other several
/// times would otherwise multiply at every level.
const MAX_VALUES: usize = 10_000;

/// Fills schemas, each value of the user's text once as long as there are more.
#[derive(Debug)]
pub(super) struct Filler<'p> {
    prompt: &'p Prompt,
    /// Proper names for this call.
    names: Vec<String>,
    next_name: usize,
    numbers: Vec<f64>,
    next_number: usize,
    next_quote: usize,
    values_left: usize,
}

impl<'p> Filler<'p> {
    pub(super) fn new(prompt: &'p Prompt, names: Vec<String>, numbers: Vec<f64>) -> Self {
        Self {
            prompt,
            names,
            next_name: 0,
            numbers,
            next_number: 0,
            next_quote: 0,
            values_left: MAX_VALUES,
        }
    }

    /// Count of numbers used so far.
    pub(super) fn numbers_used(&self) -> usize {
        self.next_number
    }

    /// Arguments of a function with this schema.
    pub(super) fn arguments(&mut self, schema: Option<&Value>) -> Map<String, Value> {
        let Some(schema) = schema else { return Map::new() };
        if let Value::Object(args) = self.value("", schema, schema, 0) { args } else { Map::new() }
    }

    /// Value of the property `name` for a schema inside `root`.
    pub(super) fn value(
        &mut self,
        name: &str,
        schema: &Value,
        root: &Value,
        depth: usize,
    ) -> Value {
        let schema = resolved(schema, root);
        if depth > MAX_VALUE_DEPTH || self.values_left == 0 {
            return Value::Null;
        }
        self.values_left -= 1;
        if let Some(value) = schema.get("const") {
            return value.clone();
        }
        if let Some(values) = schema["enum"].as_array().filter(|values| !values.is_empty()) {
            let is_mentioned =
                |value: &&Value| value.as_str().is_some_and(|it| self.prompt.mentions(it));
            return values
                .iter()
                .find(is_mentioned)
                .or_else(|| values.first())
                .cloned()
                .unwrap_or_default();
        }
        for union in ["anyOf", "oneOf"] {
            if let Some(branches) = schema[union].as_array() {
                let is_null = |it: &&Value| kind(resolved(it, root)) == "null";
                if let Some(branch) =
                    branches.iter().find(|it| !is_null(it)).or_else(|| branches.first())
                {
                    return self.value(name, branch, root, depth + 1);
                }
            }
        }
        if let Some(all) = schema["allOf"].as_array() {
            return self.value(name, &merged(schema, all, root), root, depth + 1);
        }
        match kind(schema).as_str() {
            "object" => self.object(schema, root, depth),
            "array" => self.array(name, schema, root, depth),
            "integer" => self.number(name, schema, true),
            "number" => self.number(name, schema, false),
            "boolean" => json!(schema["default"].as_bool().unwrap_or(false)),
            "null" => Value::Null,
            _ => Value::String(self.string(name, schema)),
        }
    }

    fn object(&mut self, schema: &Value, root: &Value, depth: usize) -> Value {
        let none = Map::new();
        let properties = schema["properties"].as_object().unwrap_or(&none);
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut out = Map::new();
        for (at, (name, property)) in properties.iter().enumerate() {
            let is_only_choice = required.is_empty() && at == 0 && depth == 0;
            let wanted = required.contains(&name.as_str())
                || is_only_choice
                || self.is_mentioned(name, resolved(property, root));
            if wanted {
                out.insert(name.clone(), self.value(name, property, root, depth + 1));
            }
        }
        for name in required {
            out.entry(name).or_insert_with(|| json!(""));
        }
        Value::Object(out)
    }

    /// Whether the text gives an optional value by name, or one of its choices.
    fn is_mentioned(&self, name: &str, property: &Value) -> bool {
        let choices = property["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
        self.prompt.given(name).is_some() || choices.into_iter().any(|it| self.prompt.mentions(it))
    }

    fn array(&mut self, name: &str, schema: &Value, root: &Value, depth: usize) -> Value {
        let min = count(schema, "minItems").unwrap_or(0).max(1);
        let max = count(schema, "maxItems").unwrap_or(usize::MAX);
        if let Some(tuple) = schema["prefixItems"].as_array() {
            let items = tuple.iter().map(|item| self.value(name, item, root, depth + 1));
            return Value::Array(items.collect());
        }
        let free = json!({"type": "string"});
        let items = match schema.get("items") {
            Some(items @ Value::Object(_)) => items,
            _ => &free,
        };
        // As many items as there are names or numbers left.
        let listed = match kind(resolved(items, root)).as_str() {
            "string" if items.get("enum").is_none() => {
                self.names.len().saturating_sub(self.next_name)
            }
            "integer" | "number" => self.numbers.len().saturating_sub(self.next_number),
            _ => 0,
        };
        let length = listed.clamp(min, max.max(min)).min(16);
        let singular = name.strip_suffix('s').unwrap_or(name);
        let items = (0..length).map(|_| self.value(singular, items, root, depth + 1));
        Value::Array(items.collect())
    }

    fn number(&mut self, name: &str, schema: &Value, whole: bool) -> Value {
        let given =
            self.prompt.given(name).and_then(|it| it.split_whitespace().next()?.parse().ok());
        let from_text = given.or_else(|| {
            let number = self.numbers.get(self.next_number).copied();
            self.next_number += usize::from(number.is_some());
            number
        });
        let mut number = from_text.or_else(|| schema["default"].as_f64()).unwrap_or(1.0);
        for (word, step) in [("minimum", 0.0), ("exclusiveMinimum", 1.0)] {
            if let Some(min) = schema[word].as_f64() {
                number = number.max(min + step);
            }
        }
        for (word, step) in [("maximum", 0.0), ("exclusiveMaximum", 1.0)] {
            if let Some(max) = schema[word].as_f64() {
                number = number.min(max - step);
            }
        }
        if let Some(step) = schema["multipleOf"].as_f64().filter(|step| *step > 0.0) {
            number = (number / step).ceil() * step;
        }
        if whole || number.fract() == 0.0 {
            #[expect(clippy::cast_possible_truncation, reason = "saturates, which is fine")]
            return json!(number.ceil() as i64);
        }
        Number::from_f64(number).map_or(Value::Null, Value::Number)
    }

    fn string(&mut self, name: &str, schema: &Value) -> String {
        let text = self.text_for(name, schema);
        let min = count(schema, "minLength").unwrap_or(0);
        let max = count(schema, "maxLength").unwrap_or(usize::MAX);
        let mut text: String = text.chars().take(max).collect();
        while text.chars().count() < min {
            text.push('x');
        }
        text
    }

    fn text_for(&mut self, name: &str, schema: &Value) -> String {
        let prompt = self.prompt;
        let first = |values: &[String]| values.first().cloned();
        match schema["format"].as_str().unwrap_or("") {
            "date" => return "2026-01-31".to_owned(),
            "date-time" => return "2026-01-31T12:00:00Z".to_owned(),
            "time" => return "12:00:00".to_owned(),
            "email" => return "someone@example.com".to_owned(),
            "uuid" => return "00000000-0000-4000-8000-000000000000".to_owned(),
            "uri" | "url" => {
                return first(&prompt.urls).unwrap_or_else(|| "https://example.com/".to_owned());
            }
            _ => {}
        }
        if let Some(given) = prompt.given(name) {
            return given;
        }
        let lower = name.to_lowercase();
        let is = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        let default = schema["default"].as_str().map(str::to_owned);
        if is(&["path", "file", "dir", "folder", "notebook"]) {
            return first(&prompt.paths)
                .or_else(|| self.quote())
                .or(default)
                .unwrap_or_else(|| "notes.txt".to_owned());
        }
        if is(&["url", "uri", "link"]) {
            return first(&prompt.urls)
                .or(default)
                .unwrap_or_else(|| "https://example.com/".to_owned());
        }
        if is(&["command", "cmd", "script", "shell"]) {
            let after_run = prompt.text.split_once("run ").map(|(_, rest)| rest.trim().to_owned());
            return self.quote().or(after_run).or(default).unwrap_or_else(|| "ls".to_owned());
        }
        if is(&["status", "state"]) {
            return default.unwrap_or_else(|| "pending".to_owned());
        }
        if is(&["unit"]) {
            return default.unwrap_or_else(|| "celsius".to_owned());
        }
        if is(&["activeform"]) {
            return gerund(&prompt.gist());
        }
        let prose_fields = [
            "content",
            "text",
            "message",
            "body",
            "prompt",
            "query",
            "question",
            "description",
            "title",
            "subject",
            "task",
            "note",
            "input",
            "reason",
            "pattern",
            "summary",
            "thought",
        ];
        if is(&prose_fields) {
            return self.quote().or(default).unwrap_or_else(|| prompt.gist());
        }
        self.name()
            .or_else(|| self.quote())
            .or(default)
            .or_else(|| prompt.object())
            .unwrap_or_else(|| prompt.gist())
    }

    fn name(&mut self) -> Option<String> {
        let name = self.names.get(self.next_name).or_else(|| self.names.last())?.clone();
        self.next_name += 1;
        Some(name)
    }

    fn quote(&mut self) -> Option<String> {
        let quotes = &self.prompt.quoted;
        let quote = quotes.get(self.next_quote).or_else(|| quotes.last())?.clone();
        self.next_quote += 1;
        Some(quote)
    }
}

/// Gerund form: `Review the doc` → `Reviewing the doc`.
fn gerund(gist: &str) -> String {
    let (verb, rest) = gist.split_once(' ').unwrap_or((gist, ""));
    let stem = verb.strip_suffix('e').unwrap_or(verb);
    capitalized(format!("{stem}ing {rest}").trim())
}

/// Number of properties that are filled from proper names.
pub(super) fn name_properties(schema: Option<&Value>) -> usize {
    let Some(schema) = schema else { return 0 };
    let required = schema["required"].as_array();
    let properties = schema["properties"].as_object().into_iter().flatten();
    let is_required = |name: &str| {
        required.is_none_or(|it| it.is_empty() || it.iter().any(|known| known == name))
    };
    properties
        .filter(|(name, property)| {
            is_required(name)
                && kind(resolved(property, schema)) == "string"
                && property.get("enum").is_none()
                && property.get("format").is_none()
        })
        .count()
}

/// Whether a name is an enum value of a schema, and so not a value of another field.
pub(super) fn is_choice(schema: Option<&Value>, name: &str) -> bool {
    let mut todo: Vec<&Value> = schema.into_iter().collect();
    while let Some(value) = todo.pop() {
        match value {
            Value::Object(members) => {
                let choices = members.get("enum").and_then(Value::as_array);
                let mut choices = choices.into_iter().flatten().filter_map(Value::as_str);
                if choices.any(|choice| choice.eq_ignore_ascii_case(name)) {
                    return true;
                }
                todo.extend(members.values());
            }
            Value::Array(items) => todo.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    false
}

fn count(schema: &Value, word: &str) -> Option<usize> {
    let value = &schema[word];
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
    usize::try_from(number).ok()
}

/// Type of a schema in lower case: the first one that is not null, or the one that its keywords imply.
fn kind(schema: &Value) -> String {
    let kinds = &schema["type"];
    let kinds: Vec<&str> = match kinds.as_str() {
        Some(kind) => vec![kind],
        None => kinds.as_array().into_iter().flatten().filter_map(Value::as_str).collect(),
    };
    let named =
        kinds.iter().find(|kind| !kind.eq_ignore_ascii_case("null")).or_else(|| kinds.first());
    match named {
        Some(kind) => kind.to_lowercase(),
        None if schema.get("properties").is_some() => "object".to_owned(),
        None if schema.get("items").is_some() => "array".to_owned(),
        None => "string".to_owned(),
    }
}

/// Resolves references: `#/$defs/a`, `#/definitions/a`, Vertex's `#/defs/a`.
fn resolved<'v>(schema: &'v Value, root: &'v Value) -> &'v Value {
    let mut schema = schema;
    for _ in 0..MAX_VALUE_DEPTH {
        let target = schema.get("$ref").or_else(|| schema.get("ref")).and_then(Value::as_str);
        let Some(target) = target.and_then(|target| target.strip_prefix('#')) else { break };
        match root.pointer(target) {
            Some(found) => schema = found,
            None => break,
        }
    }
    schema
}

fn merged(schema: &Value, all: &[Value], root: &Value) -> Value {
    let mut out = schema.as_object().cloned().unwrap_or_default();
    out.remove("allOf");
    for branch in all {
        for (word, value) in resolved(branch, root).as_object().into_iter().flatten() {
            match (out.get_mut(word), value) {
                (Some(Value::Object(have)), Value::Object(more)) => have.extend(more.clone()),
                (Some(Value::Array(have)), Value::Array(more)) => have.extend(more.clone()),
                _ => {
                    out.insert(word.clone(), value.clone());
                }
            }
        }
    }
    Value::Object(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "rows of `json!` read better without `&`")]
    fn check(text: &str, schema: Value, want: Value) {
        let prompt = Prompt::new(text);
        let names = prompt.names.iter().map(|(_, name)| name.clone()).collect();
        let mut filler = Filler::new(&prompt, names, prompt.numbers.clone());
        assert_eq!(Value::Object(filler.arguments(Some(&schema))), want, "{text}");
    }

    #[test]
    fn values_come_from_the_text() {
        let weather = json!({"type": "OBJECT", "properties": {
            "city": {"type": "STRING"},
            "unit": {"type": "STRING", "enum": ["celsius", "fahrenheit"]},
            "days": {"type": "INTEGER", "minimum": 1, "maximum": 7},
        }, "required": ["city"]});
        check("What is the weather in Tokyo?", weather.clone(), json!({"city": "Tokyo"}));
        check(
            "Not Tokyo, city: Oslo, in Fahrenheit",
            weather,
            json!({"city": "Oslo", "unit": "fahrenheit"}),
        );
        check(
            "Compute 20 + 22",
            json!({"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}, "required": ["x", "y"]}),
            json!({"x": 20, "y": 22}),
        );
        check(
            "Read src/lib.rs please",
            json!({"type": "object", "properties": {"file_path": {"type": "string"}, "limit": {"type": "integer"}}, "required": ["file_path"]}),
            json!({"file_path": "src/lib.rs"}),
        );
        check(
            "Add a todo to review the design doc",
            json!({"type": "object", "properties": {"todos": {"type": "array", "items": {
                "type": "object",
                "properties": {"content": {"type": "string"}, "status": {"type": "string"}, "activeForm": {"type": "string"}},
                "required": ["content", "status", "activeForm"],
            }}}, "required": ["todos"]}),
            json!({"todos": [{"content": "Review the design doc", "status": "pending", "activeForm": "Reviewing the design doc"}]}),
        );
        check(
            "Plan a trip for 2 travellers to Lyon",
            json!({"type": "object", "$defs": {"Mode": {"enum": ["train", "car"]}}, "properties": {
                "destination": {"type": "string"}, "travellers": {"type": "integer"},
                "mode": {"$ref": "#/$defs/Mode"}, "notes": {"anyOf": [{"type": "null"}, {"type": "string"}]},
                "stops": {"type": "array", "items": {"type": "string"}, "minItems": 2},
            }, "required": ["destination", "travellers", "mode", "stops"]}),
            json!({"destination": "Lyon", "travellers": 2, "mode": "train", "stops": ["Lyon", "Lyon"]}),
        );
    }

    #[test]
    fn circular_schemas_are_filled_to_a_limit() {
        let prompt = Prompt::new("Go");
        let schema =
            json!({"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]});
        let args = Filler::new(&prompt, Vec::new(), Vec::new()).arguments(Some(&schema));
        assert!(Value::Object(args).to_string().len() < 1000);
        let lost = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}, "required": ["a"]});
        Filler::new(&prompt, Vec::new(), Vec::new()).arguments(Some(&lost));
    }

    #[test]
    fn definitions_that_multiply_are_filled_to_a_limit() {
        let mut defs = Map::new();
        for level in 0..12 {
            let next = format!("#/$defs/d{}", level + 1);
            let properties: Map<_, _> =
                (0..8).map(|n| (format!("p{n}"), json!({"$ref": next}))).collect();
            let required: Vec<_> = properties.keys().cloned().collect();
            let schema = json!({"type": "object", "properties": properties, "required": required});
            defs.insert(format!("d{level}"), schema);
        }
        defs.insert("d12".into(), json!({"type": "boolean"}));
        let schema = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "required": ["a"], "$defs": defs});
        let prompt = Prompt::new("Go");
        let mut filler = Filler::new(&prompt, Vec::new(), Vec::new());
        filler.arguments(Some(&schema));
        assert_eq!(filler.values_left, 0);
    }
}
