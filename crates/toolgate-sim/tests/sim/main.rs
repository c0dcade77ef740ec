//! The simulator through its public API.

#![expect(
    clippy::needless_pass_by_value,
    clippy::unwrap_used,
    reason = "helpers of tests; and rows of `json!` read better without `&`"
)]

mod coding;
mod corpus;
mod demo;
mod faults;
mod refusals;
mod shapes;
mod signatures;
mod sockets;
mod wire;

use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};
use toolgate_sim::{Plan, Script, Sim, SimConfig};

const OLD: &str = "gemini-2.5-flash";
const THREE: &str = "gemini-3-flash-preview";
const NEW: &str = "gemini-3.6-flash";

fn scripted(script: Script) -> Sim {
    Sim::new(SimConfig::scripted(script))
}

fn post(path: &str, body: &Value) -> Request<Bytes> {
    Request::post(path)
        .header("x-goog-api-key", "test")
        .body(Bytes::from(body.to_string()))
        .unwrap()
}

/// Sends a unary request to a model.
fn generate(sim: &Sim, model: &str, body: &Value) -> (u16, Value) {
    let plan = sim.plan(&post(&format!("/v1beta/models/{model}:generateContent"), body));
    (plan.status, serde_json::from_slice(&plan.bytes()).unwrap())
}

/// Sends a streaming request to a model; a refusal fails the test.
#[track_caller]
fn stream(sim: &Sim, model: &str, body: &Value) -> Vec<Value> {
    let path = format!("/v1beta/models/{model}:streamGenerateContent?alt=sse");
    let plan = sim.plan(&post(&path, body));
    assert_eq!(plan.status, 200, "{}", String::from_utf8_lossy(&plan.bytes()));
    frames(&plan)
}

fn frames(plan: &Plan) -> Vec<Value> {
    let text = String::from_utf8(plan.bytes()).unwrap();
    let frames = text.split_terminator("\r\n\r\n");
    frames
        .map(|frame| serde_json::from_str(frame.strip_prefix("data: ").unwrap()).unwrap())
        .collect()
}

fn user(text: &str) -> Value {
    json!({"role": "user", "parts": [{"text": text}]})
}

/// A request with one user turn and these further members.
fn prompt(text: &str, more: Value) -> Value {
    let mut body = json!({"contents": [user(text)]});
    if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
        body.extend(more);
    }
    body
}

/// Functions by name, each with a required `city`.
fn tools(names: &[&str]) -> Value {
    let declared: Vec<_> = names
        .iter()
        .map(|name| {
            json!({"name": name, "description": "Says something about a city", "parametersJsonSchema": {
                "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"],
            }})
        })
        .collect();
    json!([{"functionDeclarations": declared}])
}

/// The shape of a stream: `*` signed, `!` finished, `|` next chunk.
fn shape(chunks: &[Value]) -> String {
    let chunks = chunks.iter().map(|chunk| {
        if chunk.get("error").is_some() {
            return "error".to_owned();
        }
        let candidate = &chunk["candidates"][0];
        if candidate.is_null() {
            return "blocked".to_owned();
        }
        let content = &candidate["content"];
        let parts = match content["parts"].as_array() {
            Some(parts) => parts.iter().map(part_shape).collect::<Vec<_>>().join(","),
            None if content.is_object() => "noparts".to_owned(),
            None => "nothing".to_owned(),
        };
        let finish = candidate["finishReason"].as_str();
        finish.map_or_else(|| parts.clone(), |finish| format!("{parts}!{finish}"))
    });
    chunks.collect::<Vec<_>>().join(" | ")
}

fn part_shape(part: &Value) -> String {
    let has = |name: &str| part.get(name).is_some();
    let name = match () {
        () if part["thought"] == true => "thought",
        () if has("functionCall") => "call",
        () if has("executableCode") => "code",
        () if has("codeExecutionResult") => "result",
        () if part["text"] == "" => "empty",
        () => "text",
    };
    format!("{name}{}", if has("thoughtSignature") { "*" } else { "" })
}

/// Model content with the parts of all chunks, as a client returns it. Texts are not merged.
fn model_turn(chunks: &[Value]) -> Value {
    let parts = chunks.iter().flat_map(|chunk| {
        chunk["candidates"][0]["content"]["parts"].as_array().cloned().unwrap_or_default()
    });
    json!({"role": "model", "parts": parts.collect::<Vec<_>>()})
}

/// User content with a response to every call of a model turn.
fn answers(turn: &Value, response: Value) -> Value {
    let calls =
        turn["parts"].as_array().unwrap().iter().filter_map(|part| part.get("functionCall"));
    let parts = calls.map(|call| {
        let mut answer = json!({"name": call["name"], "response": response});
        if let Some(id) = call.get("id") {
            answer["id"] = id.clone();
        }
        json!({ "functionResponse": answer })
    });
    json!({"role": "user", "parts": parts.collect::<Vec<_>>()})
}
