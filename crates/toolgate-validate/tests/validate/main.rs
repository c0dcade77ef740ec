//! Google's refusals: a table row for each message.

#![expect(
    clippy::expect_used,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests; and rows of `json!` read better without `&`"
)]

mod anything;
mod corpus;
mod models;
mod parse;
mod rules;
mod schemas;
mod turns;

use serde_json::{Value, json};
use toolgate_core::canon::{Backend, Target};
use toolgate_validate::{Accepted, AnySignature, GoogleError, Method, check_request};

const NEW: &str = "gemini-3.6-flash";

fn target(model: &str) -> Target {
    Target { model: model.to_owned(), backend: Backend::Developer }
}

fn vertex(model: &str) -> Target {
    Target { model: model.to_owned(), backend: Backend::Vertex }
}

fn ask(target: &Target, body: &Value) -> Result<Accepted, GoogleError> {
    check_request(body.to_string().as_bytes(), target, Method::Generate, &AnySignature)
}

#[track_caller]
fn refused(target: &Target, body: &Value, want: &str) {
    let error = ask(target, body).expect_err(&body.to_string());
    assert_eq!((error.code, error.status), (400, "INVALID_ARGUMENT"));
    assert_eq!(error.message, want, "{body}");
}

#[track_caller]
fn accepted(target: &Target, body: &Value) -> Accepted {
    match ask(target, body) {
        Ok(accepted) => accepted,
        Err(error) => panic!("{}: {}\n{body}", target.model, error.message),
    }
}

/// A request with one user turn and these further members.
fn with(more: Value) -> Value {
    let mut body = json!({"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]});
    if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
        body.extend(more);
    }
    body
}

/// A request that declares one function with these parameters.
fn with_parameters(parameters: Value) -> Value {
    with(json!({"tools": [{"functionDeclarations": [
        {"name": "lookup", "description": "Looks things up", "parameters": parameters}
    ]}]}))
}

/// A request that declares one function by JSON Schema.
fn with_json_schema(schema: Value) -> Value {
    with(json!({"tools": [{"functionDeclarations": [
        {"name": "lookup", "description": "Looks things up", "parametersJsonSchema": schema}
    ]}]}))
}
