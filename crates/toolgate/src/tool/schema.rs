//! From a Rust type to a schema.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// The JSON Schema of a type, as the model shall see it: types in place rather than behind
/// references (but for those that hold themselves), and without the name that Rust has for it.
pub(crate) fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    schema.to_value()
}

/// Whether it is the schema of a function without arguments.
pub(crate) fn is_empty_object(schema: &Value) -> bool {
    let says = |name: &str| schema.get(name);
    let has_properties =
        says("properties").and_then(Value::as_object).is_some_and(|it| !it.is_empty());
    let others = ["additionalProperties", "anyOf", "oneOf", "allOf", "$ref"];
    says("type").and_then(Value::as_str) == Some("object")
        && !has_properties
        && others.iter().all(|name| matches!(says(name), None | Some(Value::Bool(false))))
}
