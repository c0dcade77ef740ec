//! Sessions that are known by the same name and have very many calls.

use serde_json::{Value, json};
use toolgate_sim::Script;

use super::support::Gate;

/// r129: a client that has made ids of its own finds its call among those of others that began with the
/// same words, where there are too many to be looked through.
#[tokio::test]
async fn r129_a_call_is_found_among_very_many() {
    let mut script = Script::new();
    for n in 0..2100 {
        script = script.call("t", json!({"city": n.to_string()}));
    }
    let script = script.finish().call("t", json!({"city": "7"})).finish().text("Done.");
    let gate = Gate::scripted(script).await;
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    let tool = json!({"type": "function", "function": {"name": "t", "parameters": schema}});
    let ask = async |messages: &[Value]| {
        let body = json!({"model": "gemini-3-flash", "tools": [tool], "messages": messages});
        gate.post("/v1/chat/completions", body).await.ok()["choices"][0]["message"].clone()
    };
    let opening = json!({"role": "user", "content": "Go."});
    let others = ask(std::slice::from_ref(&opening)).await;
    assert_eq!(others["tool_calls"].as_array().unwrap().len(), 2100);
    let said = ask(std::slice::from_ref(&opening)).await;
    let call =
        json!({"id": "x", "type": "function", "function": said["tool_calls"][0]["function"]});
    let call = json!({"role": "assistant", "tool_calls": [call]});
    let result = json!({"role": "tool", "tool_call_id": "x", "content": "1"});
    assert_eq!(ask(&[opening, call, result]).await["content"], "Done.");
    gate.check_signatures(true);
}
