//! The schema compiler through its public surface.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "helpers of tests may panic as tests may"
)]

mod adversary;
mod cases;
mod growth;
mod monsters;
mod nothing_silent;
mod properties;
mod report;
mod rules;
mod validator;

use serde_json::Value;
use toolgate_core::canon::SchemaForm;
use toolgate_core::json::Raw;
use toolgate_core::schema::{Compiled, Emit, Placement, compile};

const EMITS: [Emit; 3] = [Emit::JsonSchema, Emit::ParametersDeveloper, Emit::ParametersVertex];

/// Compiles, and checks what every result must keep to.
#[track_caller]
fn compiled(schema: &str, form: SchemaForm, emit: Emit) -> Compiled {
    let raw = Raw::parse(schema.to_owned()).unwrap_or_else(|| panic!("not JSON: {schema}"));
    let result = compile(Some(&raw), form, emit);
    validator::check(&result, schema);
    let again = compile(Some(&raw), form, emit);
    assert!(result.json == again.json, "not the same twice: {schema}");
    if result.placement == Placement::JsonSchema && emit == Emit::JsonSchema {
        let raw = Raw::parse(result.json.clone()).unwrap();
        let twice = compile(Some(&raw), SchemaForm::JsonSchema, emit);
        let (mut one, mut two) = (result.json.clone(), twice.json);
        one.truncate(one.floor_char_boundary(3000));
        two.truncate(two.floor_char_boundary(3000));
        assert_eq!(one, two, "changes when compiled again: {schema}");
    }
    result
}

#[track_caller]
fn json_schema(schema: &str) -> Compiled {
    compiled(schema, SchemaForm::JsonSchema, Emit::JsonSchema)
}

#[track_caller]
fn parameters(schema: &str) -> Compiled {
    let developer = compiled(schema, SchemaForm::JsonSchema, Emit::ParametersDeveloper);
    let vertex = compiled(schema, SchemaForm::JsonSchema, Emit::ParametersVertex);
    assert_eq!(developer.json, vertex.json);
    developer
}

fn value(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"))
}

/// The property `p` of a schema with that one property.
#[track_caller]
fn check(property: &str, want_json_schema: &str, want_parameters: &str) {
    let schema = format!(r#"{{"type":"object","properties":{{"p":{property}}}}}"#);
    let got = value(&json_schema(&schema).json);
    assert_eq!(
        got["properties"]["p"],
        value(want_json_schema),
        "parametersJsonSchema of {property}"
    );
    let got = value(&parameters(&schema).json);
    assert_eq!(got["properties"]["p"], value(want_parameters), "parameters of {property}");
}

/// The places of the losses.
fn places(compiled: &Compiled) -> Vec<&str> {
    compiled.losses.iter().map(|loss| loss.at.as_str()).collect()
}
