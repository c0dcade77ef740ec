//! Schemas of Rust types.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Type of a tool's argument: parsed from the model's JSON, and described to it by a JSON Schema.
///
/// Implemented for every type that derives `serde::Deserialize` and `schemars::JsonSchema`;
/// `toolgate::schemars` is the version that counts.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a tool",
    label = "cannot be parsed from JSON, or has no JSON Schema",
    note = "derive `serde::Deserialize` and `schemars::JsonSchema` for it; `toolgate::schemars` is the version of schemars to use"
)]
pub trait ToolArgument: JsonSchema + DeserializeOwned {}

impl<T: JsonSchema + DeserializeOwned> ToolArgument for T {}

/// JSON Schema of a type for the model: subschemas inlined, except for recursive types, and without
/// the name of the Rust type.
pub(crate) fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    schema.to_value()
}

/// Whether this is the schema of a function without arguments.
pub(crate) fn is_empty_object(schema: &Value) -> bool {
    let member = |name: &str| schema.get(name);
    let has_properties =
        member("properties").and_then(Value::as_object).is_some_and(|it| !it.is_empty());
    let others = ["additionalProperties", "anyOf", "oneOf", "allOf", "$ref"];
    member("type").and_then(Value::as_str) == Some("object")
        && !has_properties
        && others.iter().all(|name| matches!(member(name), None | Some(Value::Bool(false))))
}
