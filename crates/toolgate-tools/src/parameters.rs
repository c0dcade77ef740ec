//! Parameter lists of functions as schemas.

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

/// One parameter of a function, as a worker describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Name of the parameter.
    pub name: String,
    /// Type, in the words of Python or of JSON Schema: `str`, `int`, `list`, `string`.
    pub kind: String,
    /// Description for the model.
    pub description: Option<String>,
    /// The caller has to give it.
    pub is_required: bool,
    /// Value that is used where the caller gives none. It makes the parameter optional.
    pub default: Option<Value>,
}

impl Parameter {
    /// A required parameter.
    pub fn new(name: &str, kind: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind: kind.to_owned(),
            description: None,
            is_required: true,
            default: None,
        }
    }
}

/// Returns the schema of a parameter list: an object with one property for each parameter.
///
/// ```
/// use toolgate_tools::{Parameter, object_schema};
///
/// let mut unit = Parameter::new("unit", "str");
/// unit.default = Some("celsius".into());
/// let schema = object_schema(&[Parameter::new("location", "str"), unit])?;
/// assert_eq!(
///     schema.get(),
///     r#"{"type":"object","properties":{"location":{"type":"string"},"unit":{"type":"string","default":"celsius"}},"required":["location"]}"#
/// );
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// # Errors
/// Fails if a default value cannot be written as JSON.
pub fn object_schema(parameters: &[Parameter]) -> serde_json::Result<Box<RawValue>> {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for parameter in parameters {
        let mut property = type_schema(&parameter.kind);
        if let Some(description) = &parameter.description {
            property.insert("description".to_owned(), description.as_str().into());
        }
        if let Some(default) = &parameter.default {
            property.insert("default".to_owned(), default.clone());
        } else if parameter.is_required {
            required.push(parameter.name.clone());
        }
        properties.insert(parameter.name.clone(), property.into());
    }
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    to_raw_value(&schema)
}

/// Schema of a type. A type that is not known is a string, with its name in the description.
fn type_schema(kind: &str) -> Map<String, Value> {
    let plain = kind.trim().to_ascii_lowercase();
    let (outer, inner) = match plain.split_once('[') {
        Some((outer, rest)) => (outer, rest.strip_suffix(']')),
        None => (plain.as_str(), None),
    };
    let simple = |name: &str| Map::from_iter([("type".to_owned(), Value::from(name))]);
    match outer {
        "str" | "string" => simple("string"),
        "int" | "integer" => simple("integer"),
        "float" | "number" | "double" | "decimal" => simple("number"),
        "bool" | "boolean" => simple("boolean"),
        "dict" | "object" | "map" | "mapping" => simple("object"),
        "list" | "array" | "tuple" | "set" | "sequence" => {
            let mut schema = simple("array");
            let items = match inner {
                Some(inner) if !inner.contains(',') => type_schema(inner),
                _ => simple("string"),
            };
            schema.insert("items".to_owned(), items.into());
            schema
        }
        "optional" => inner.map_or_else(|| simple("string"), type_schema),
        _ => {
            let mut schema = simple("string");
            schema.insert("description".to_owned(), format!("a {kind}").into());
            schema
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r080_a_parameter_list_becomes_an_object() {
        let mut city = Parameter::new("city", "str");
        city.description = Some("City and country.".to_owned());
        let mut days = Parameter::new("days", "int");
        days.is_required = false;
        let schema = object_schema(&[city, days]).unwrap();
        assert_eq!(
            schema.get(),
            r#"{"type":"object","properties":{"city":{"type":"string","description":"City and country."},"days":{"type":"integer"}},"required":["city"]}"#
        );
    }

    #[test]
    fn r081_types_are_mapped_and_never_passed_through() {
        let cases = [
            ("str", json!({"type": "string"})),
            ("INT", json!({"type": "integer"})),
            ("float", json!({"type": "number"})),
            ("bool", json!({"type": "boolean"})),
            ("dict", json!({"type": "object"})),
            ("list", json!({"type": "array", "items": {"type": "string"}})),
            ("list[int]", json!({"type": "array", "items": {"type": "integer"}})),
            ("Optional[float]", json!({"type": "number"})),
            ("DataFrame", json!({"type": "string", "description": "a DataFrame"})),
        ];
        for (kind, expected) in cases {
            assert_eq!(Value::Object(type_schema(kind)), expected, "{kind}");
        }
    }

    #[test]
    fn r082_a_parameter_with_a_default_is_optional() {
        let mut unit = Parameter::new("unit", "str");
        unit.default = Some("celsius".into());
        let schema = object_schema(&[unit]).unwrap();
        assert!(!schema.get().contains("required"));
    }
}
