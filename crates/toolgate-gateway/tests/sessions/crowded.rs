//! Sessions that are known by the same name and have very many calls.

use serde_json::{Value, json};
use toolgate_sim::Script;

use super::support::Gate;

/// r129: a client that has made ids of its own and forgotten most calls finds the one that it has
/// kept, where there is too much to be looked through.
#[tokio::test]
async fn r129_a_call_is_found_among_very_many() {
    let mut script = Script::new();
    for n in 0..1100 {
        script = script.call("t", json!({"city": n.to_string()}));
    }
    let gate = Gate::scripted(script.finish().text("Done.")).await;
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    let tool = json!({"type": "function", "function": {"name": "t", "parameters": schema}});
    let ask = async |messages: &[Value]| {
        let body = json!({"model": "gemini-3-flash", "tools": [tool], "messages": messages});
        gate.post("/v1/chat/completions", body).await.ok()["choices"][0]["message"].clone()
    };
    let opening = json!({"role": "user", "content": "Go."});
    let said = ask(std::slice::from_ref(&opening)).await;
    assert_eq!(said["tool_calls"].as_array().unwrap().len(), 1100);
    let call =
        json!({"id": "x", "type": "function", "function": said["tool_calls"][0]["function"]});
    let call = json!({"role": "assistant", "tool_calls": [call]});
    let result = json!({"role": "tool", "tool_call_id": "x", "content": "1"});
    assert_eq!(ask(&[opening, call, result]).await["content"], "Done.");
    gate.check_signatures(true);
}
