//! What Gemini takes, written down a second time, from its documentation and its error messages.
//! Nothing here is shared with the compiler.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use toolgate_core::schema::{Compiled, Placement};

const DEPTH: usize = 30;
const BRACKETS: usize = 61;
const ITEMS: u64 = 960;

/// Panics where Gemini would refuse.
#[track_caller]
pub(crate) fn check(compiled: &Compiled, schema: &str) {
    let shown = if schema.len() > 2000 { "(a long schema)" } else { schema };
    let outcome = match compiled.placement {
        Placement::Absent if compiled.json.is_empty() => Ok(()),
        Placement::Absent => Err("absent, but there is text".to_owned()),
        Placement::JsonSchema => parse(&compiled.json).and_then(|json| json_schema(&json)),
        Placement::Parameters => parse(&compiled.json).and_then(|json| parameters(&json)),
    };
    if let Err(error) = outcome {
        let json = if compiled.json.len() > 4000 { "…" } else { &compiled.json };
        panic!("{error}\n  of {shown}\n  as {json}");
    }
    assert!(compiled.losses.len() <= 101, "too many losses");
}

fn parse(json: &str) -> Result<Value, String> {
    if json.len() > 2 * 1024 * 1024 {
        return Err(format!("{} bytes", json.len()));
    }
    serde_json::from_str(json).map_err(|error| error.to_string())
}

type Outcome = Result<(), String>;

fn ensure(condition: bool, at: &str, message: &str) -> Outcome {
    if condition { Ok(()) } else { Err(format!("{at}: {message}")) }
}

fn brackets(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(brackets).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(brackets).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// Numbers that Google's `int64` takes.
fn is_count(value: &Value) -> bool {
    let text = match value {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return false,
    };
    text.parse::<i64>().is_ok_and(|count| count >= 0)
}

fn count(value: &Value) -> u64 {
    value.as_u64().or_else(|| value.as_str()?.parse().ok()).unwrap_or(0)
}

fn names<'a>(schema: &'a Map<String, Value>, key: &str, at: &str) -> Result<Vec<&'a str>, String> {
    let Some(list) = schema.get(key) else { return Ok(Vec::new()) };
    let list = list.as_array().ok_or_else(|| format!("{at}.{key}: not a list"))?;
    let names: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
    ensure(names.len() == list.len(), at, &format!("{key} holds something else than names"))?;
    let unique: BTreeSet<&str> = names.iter().copied().collect();
    ensure(unique.len() == names.len(), at, &format!("{key} names something twice"))?;
    Ok(names)
}

// ---- parameters ----

const SCHEMA_FIELDS: [&str; 22] = [
    "type",
    "format",
    "title",
    "description",
    "nullable",
    "enum",
    "items",
    "maxItems",
    "minItems",
    "properties",
    "required",
    "minProperties",
    "maxProperties",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "example",
    "anyOf",
    "propertyOrdering",
    "default",
];

pub(crate) fn parameters(root: &Value) -> Outcome {
    ensure(brackets(root) <= BRACKETS, "root", "Message too deep")?;
    let is_object = root["type"].as_str().is_some_and(|name| name.eq_ignore_ascii_case("object"));
    ensure(is_object, "root", "parameters schema should be of type OBJECT")?;
    ensure(root["properties"].is_object(), "root", "should be non-empty for OBJECT type")?;
    let mut items = 0;
    schema(root, "parameters", 1, &mut items)?;
    ensure(items <= ITEMS, "root", "Request contains an invalid argument (maxItems)")
}

fn schema(schema: &Value, at: &str, depth: usize, items: &mut u64) -> Outcome {
    let Value::Object(fields) = schema else { return Err(format!("{at}: not a message")) };
    ensure(depth <= DEPTH, at, "exceeds the maximum allowed nesting depth")?;
    for key in fields.keys() {
        let known = SCHEMA_FIELDS.contains(&camel(key).as_str());
        ensure(known, at, &format!("Unknown name \"{key}\": Cannot find field."))?;
    }
    let fields: Map<String, Value> =
        fields.iter().map(|(key, value)| (camel(key), value.clone())).collect();
    if let Some(branches) = fields.get("anyOf") {
        ensure(fields.len() == 1, at, "schema specified other fields alongside any_of")?;
        let branches = branches.as_array().ok_or_else(|| format!("{at}.any_of: not repeated"))?;
        ensure(!branches.is_empty(), at, "empty any_of")?;
        for (index, branch) in branches.iter().enumerate() {
            self::schema(branch, &format!("{at}.any_of[{index}]"), depth + 1, items)?;
        }
        return Ok(());
    }
    let kind = fields.get("type").and_then(Value::as_str).unwrap_or("").to_uppercase();
    let kinds = ["STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"];
    ensure(kinds.contains(&kind.as_str()), at, "type: must be specified")?;
    for (key, value) in &fields {
        let only = |wanted: &[&str]| {
            ensure(
                wanted.contains(&kind.as_str()),
                at,
                &format!("{key}: only allowed for {wanted:?}"),
            )
        };
        match key.as_str() {
            "type" | "default" => {}
            "title" | "description" => ensure(value.is_string(), at, key)?,
            "nullable" => ensure(value.is_boolean(), at, key)?,
            "format" => {
                let format = value.as_str().unwrap_or("");
                let good = match kind.as_str() {
                    "STRING" => matches!(format, "enum" | "date-time"),
                    "NUMBER" => matches!(format, "float" | "double"),
                    "INTEGER" => matches!(format, "int32" | "int64"),
                    _ => false,
                };
                ensure(
                    good,
                    at,
                    "format: only 'enum' and 'date-time' are supported for STRING type",
                )?;
            }
            "enum" => {
                only(&["STRING"])?;
                let values = names(&fields, "enum", at)?;
                ensure(!values.is_empty(), at, "enum is empty")?;
                ensure(!values.contains(&""), at, "enum: cannot be empty")?;
            }
            "items" => {
                only(&["ARRAY"])?;
                self::schema(value, &format!("{at}.items"), depth + 1, items)?;
            }
            "minItems" | "maxItems" => {
                only(&["ARRAY"])?;
                ensure(is_count(value), at, key)?;
                *items += if key == "maxItems" { count(value) } else { 0 };
            }
            "properties" => {
                only(&["OBJECT"])?;
                let properties = value.as_object().ok_or_else(|| format!("{at}: properties"))?;
                ensure(
                    !properties.is_empty(),
                    at,
                    "properties: should be non-empty for OBJECT type",
                )?;
                for (name, property) in properties {
                    ensure(!name.is_empty(), at, "properties[]: key cannot be empty")?;
                    self::schema(property, &format!("{at}.properties[{name}]"), depth + 1, items)?;
                }
            }
            "required" | "propertyOrdering" => {
                only(&["OBJECT"])?;
                for name in names(&fields, key, at)? {
                    let known = fields.get("properties").and_then(|it| it.get(name)).is_some();
                    ensure(known, at, &format!("{key}: property is not defined: {name}"))?;
                }
            }
            "minProperties" | "maxProperties" => {
                only(&["OBJECT"])?;
                ensure(is_count(value), at, key)?;
            }
            "minimum" | "maximum" => {
                only(&["NUMBER", "INTEGER"])?;
                ensure(value.is_number(), at, key)?;
            }
            "minLength" | "maxLength" => {
                only(&["STRING"])?;
                ensure(is_count(value), at, key)?;
            }
            "pattern" => {
                only(&["STRING"])?;
                ensure(value.is_string(), at, key)?;
            }
            "example" => ensure(depth == 1, at, "example below the root")?,
            _ => return Err(format!("{at}: {key}")),
        }
    }
    ensure(kind != "ARRAY" || fields.contains_key("items"), at, "items: missing field.")
}

fn camel(key: &str) -> String {
    let mut upper = false;
    let mut out = String::new();
    for c in key.chars() {
        match c {
            '_' => upper = true,
            c if upper => {
                out.push(c.to_ascii_uppercase());
                upper = false;
            }
            c => out.push(c),
        }
    }
    out
}

// ---- parametersJsonSchema ----

const JSON_SCHEMA_KEYWORDS: [&str; 18] = [
    "$ref",
    "type",
    "format",
    "title",
    "description",
    "enum",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "anyOf",
    "properties",
    "additionalProperties",
    "required",
    "propertyOrdering",
    "default",
];

pub(crate) fn json_schema(root: &Value) -> Outcome {
    ensure(brackets(root) <= BRACKETS, "root", "Message too deep")?;
    ensure(root["type"] == "object", "root", "not an object")?;
    ensure(root["properties"].is_object(), "root", "properties at top-level must be an object")?;
    let none = Map::new();
    let defs = root.get("$defs").map_or(Some(&none), Value::as_object).ok_or("$defs")?;
    let mut walk = Walk { defs, items: 0, edges: BTreeMap::new(), at_def: String::new() };
    let mut bare = root.clone();
    bare.as_object_mut().ok_or("root")?.remove("$defs");
    walk.node(&bare, "root", 1, None)?;
    for (name, def) in defs {
        let good = name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
        ensure(good && !name.is_empty(), name, "a name that has to be escaped")?;
        walk.at_def = name.clone();
        walk.node(def, &format!("$defs.{name}"), 2, None)?;
    }
    ensure(walk.items <= ITEMS, "root", "Request contains an invalid argument (maxItems)")?;
    walk.circles()
}

struct Walk<'a> {
    defs: &'a Map<String, Value>,
    items: u64,
    /// From definition to definition, and whether the nearest property is an optional one.
    edges: BTreeMap<String, Vec<(String, bool)>>,
    at_def: String,
}

impl Walk<'_> {
    /// `optional`: whether the nearest property is optional, where there is one.
    fn node(&mut self, node: &Value, at: &str, depth: usize, optional: Option<bool>) -> Outcome {
        let Value::Object(schema) = node else { return Err(format!("{at}: not an object")) };
        ensure(depth <= DEPTH, at, "nested too deep")?;
        for key in schema.keys() {
            ensure(JSON_SCHEMA_KEYWORDS.contains(&key.as_str()), at, &format!("keyword {key}"))?;
        }
        if let Some(target) = schema.get("$ref") {
            ensure(schema.len() == 1, at, "$ref was set alongside unsupported fields")?;
            let name = target.as_str().and_then(|it| it.strip_prefix("#/$defs/")).unwrap_or("");
            ensure(self.defs.contains_key(name), at, "reference to undefined schema")?;
            let edge = (name.to_owned(), optional == Some(true));
            self.edges.entry(self.at_def.clone()).or_default().push(edge);
            return Ok(());
        }
        let types = match schema.get("type") {
            None => Vec::new(),
            Some(Value::String(one)) => vec![one.as_str()],
            Some(Value::Array(_)) => names(schema, "type", at)?,
            Some(_) => return Err(format!("{at}: type")),
        };
        let known = ["string", "number", "integer", "boolean", "array", "object", "null"];
        ensure(types.iter().all(|name| known.contains(name)), at, "unknown type")?;
        if schema.contains_key("anyOf") {
            let beside = |key: &str| matches!(key, "anyOf" | "title" | "description" | "default");
            ensure(schema.keys().all(|key| beside(key)), at, "siblings of anyOf")?;
        }
        let only = |key: &str, wanted: &[&str]| {
            let fits = types.is_empty() || types.iter().any(|name| wanted.contains(name));
            ensure(fits, at, &format!("{key} only for {wanted:?}"))
        };
        for (key, value) in schema {
            match key.as_str() {
                "title" | "description" | "format" => ensure(value.is_string(), at, key)?,
                "enum" => {
                    let values = value.as_array().ok_or_else(|| format!("{at}: enum"))?;
                    ensure(!values.is_empty(), at, "enum is empty")?;
                    let mut seen = BTreeSet::new();
                    for value in values {
                        let good =
                            value.is_number() || value.as_str().is_some_and(|it| !it.is_empty());
                        ensure(good, at, "enum takes strings and numbers")?;
                        ensure(seen.insert(value.to_string()), at, "enum has doubles")?;
                    }
                }
                "items" => {
                    only(key, &["array"])?;
                    self.node(value, &format!("{at}.items"), depth + 1, optional)?;
                }
                "prefixItems" | "anyOf" => {
                    let list = value.as_array().ok_or_else(|| format!("{at}: {key}"))?;
                    ensure(!list.is_empty(), at, "an empty list of schemas")?;
                    for (index, item) in list.iter().enumerate() {
                        self.node(item, &format!("{at}.{key}[{index}]"), depth + 1, optional)?;
                    }
                }
                "minItems" | "maxItems" => {
                    only(key, &["array"])?;
                    ensure(value.is_u64() && is_count(value), at, key)?;
                    self.items += if key == "maxItems" { count(value) } else { 0 };
                }
                "minimum" | "maximum" => {
                    only(key, &["number", "integer"])?;
                    ensure(value.is_number(), at, key)?;
                }
                "properties" => {
                    only(key, &["object"])?;
                    let required = names(schema, "required", at)?;
                    for (name, property) in
                        value.as_object().ok_or_else(|| format!("{at}: {key}"))?
                    {
                        ensure(!name.is_empty(), at, "an empty property name")?;
                        let optional = !required.contains(&name.as_str());
                        let at = format!("{at}.properties.{name}");
                        self.node(property, &at, depth + 1, Some(optional))?;
                    }
                }
                "required" | "propertyOrdering" => {
                    only(key, &["object"])?;
                    for name in names(schema, key, at)? {
                        let known = schema.get("properties").and_then(|it| it.get(name)).is_some();
                        ensure(known, at, &format!("{key}: property is not defined: {name}"))?;
                    }
                }
                "additionalProperties" => {
                    only(key, &["object"])?;
                    if !value.is_boolean() {
                        self.node(value, &format!("{at}.{key}"), depth + 1, optional)?;
                    }
                }
                _ => {}
            }
        }
        let open = !types.contains(&"array") || schema.contains_key("items");
        ensure(open, at, "items: missing field.")
    }

    /// Cyclic references only in properties that are not required.
    fn circles(&self) -> Outcome {
        for (from, edges) in self.edges.iter().filter(|(from, _)| !from.is_empty()) {
            for (to, optional) in edges {
                if !optional && self.reaches(to, from) {
                    return Err(format!("$defs.{from}: leads back through {to} without an option"));
                }
            }
        }
        Ok(())
    }

    fn reaches(&self, from: &str, to: &str) -> bool {
        let mut seen = BTreeSet::new();
        let mut queue = vec![from];
        while let Some(at) = queue.pop() {
            if at == to {
                return true;
            }
            if seen.insert(at) {
                queue.extend(
                    self.edges.get(at).into_iter().flatten().map(|(name, _)| name.as_str()),
                );
            }
        }
        false
    }
}
