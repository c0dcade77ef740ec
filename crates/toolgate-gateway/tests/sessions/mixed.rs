//! Turns in which Gemini ran a tool itself beside the calls for the client.
//!
//! The client sends only its own result. Parts that it never got, or could not keep, must stand in
//! the history all the same, in its place.

use serde_json::{Value, json};
use toolgate_sim::Script;

use super::support::{Gate, items, tool};

const MODEL: &str = "gemini-3-flash";

fn script() -> Script {
    let mixed =
        Script::new().thought("First I count.").code("print(6 * 7)", "42\n").text("Now you.");
    mixed.call("t", json!({"city": "x"})).finish().text("Done.")
}

/// The kinds of the parts of the model's turn, as Gemini got it back.
fn kinds(gate: &Gate) -> Vec<String> {
    let asked = gate.last_asked();
    let contents = asked["contents"].as_array().unwrap();
    let model = contents.iter().filter(|content| content["role"] == "model");
    let parts = model.flat_map(|content| content["parts"].as_array().unwrap());
    let known = ["executableCode", "codeExecutionResult", "functionCall", "text"];
    let kind = |part: &Value| known.into_iter().find(|kind| part.get(kind).is_some());
    parts.map(|part| kind(part).unwrap_or("?").to_owned()).collect()
}

#[track_caller]
fn check(gate: &Gate, way: &str) {
    let want = ["executableCode", "codeExecutionResult", "text", "functionCall"];
    assert_eq!(kinds(gate), want, "{way}: {}", gate.last_asked());
    let asked = gate.last_asked().to_string();
    assert!(asked.contains("print(6 * 7)") && asked.contains("42\\n"), "{way}: {asked}");
    gate.check_signatures(true);
}

#[tokio::test]
async fn a_mixed_turn_comes_back_whole_by_id_and_by_conversation() {
    for way in ["previous_response_id", "conversation"] {
        let gate = Gate::scripted(script()).await;
        let mut body = json!({"model": MODEL, "input": "go", "tools": [tool("t"), {"type": "code_interpreter", "container": {"type": "auto"}}]});
        if way == "conversation" {
            body["conversation"] = json!("c");
        }
        let first = gate.respond(body.clone()).await;
        let call = &items(&first, "function_call")[0]["call_id"];
        body["input"] = json!([{"type": "function_call_output", "call_id": call, "output": "ok"}]);
        if way == "previous_response_id" {
            body[way] = first["id"].clone();
        }
        gate.respond(body).await;
        check(&gate, way);
    }
}

#[tokio::test]
async fn a_mixed_turn_comes_back_whole_in_a_thread() {
    let gate = Gate::scripted(script()).await;
    let tools = json!([
        {"name": "t", "input_schema": tool("t")["parameters"]},
        {"type": "code_execution_20250825", "name": "code_execution"}
    ]);
    let body = json!({"model": MODEL, "max_tokens": 100, "thread": {"type": "create"}, "tools": tools, "messages": [{"role": "user", "content": "go"}]});
    let first = gate.post("/v1/messages", body).await.ok();
    let blocks = first["content"].as_array().unwrap();
    let call = blocks.iter().find(|block| block["type"] == "tool_use").unwrap();
    let result = json!({"type": "tool_result", "tool_use_id": call["id"], "content": "ok"});
    let body = json!({"model": MODEL, "max_tokens": 100, "thread": {"type": "continue", "previous_message_id": first["id"]}, "messages": [{"role": "user", "content": [result]}]});
    gate.post("/v1/messages", body).await.ok();
    check(&gate, "thread");
}
