//! Anthropic's message threads, as the SDKs' tool runners use them.

use serde_json::{Value, json};
use toolgate_sim::Script;

use super::support::Gate;

fn message(more: Value) -> Value {
    let mut body = json!({"model": "claude-sonnet-4-5", "max_tokens": 1000});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

fn first() -> Value {
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    message(json!({
        "thread": {"type": "create"},
        "system": "Count.",
        "tools": [{"name": "step", "input_schema": schema}],
        "messages": [{"role": "user", "content": "Go."}]
    }))
}

fn next(previous: &Value, call: &Value) -> Value {
    let result = json!({"type": "tool_result", "tool_use_id": call, "content": "ok"});
    message(json!({
        "thread": {"type": "continue", "previous_message_id": previous},
        "messages": [{"role": "user", "content": [result]}]
    }))
}

fn call(message: &Value) -> Value {
    let blocks = message["content"].as_array().unwrap();
    blocks.iter().find(|block| block["type"] == "tool_use").unwrap()["id"].clone()
}

fn stepping(steps: usize) -> Script {
    let mut script = Script::new();
    for n in 0..steps {
        script = script.call("step", json!({"n": n})).finish();
    }
    script.text("Done.")
}

#[tokio::test]
async fn a_thread_needs_only_what_is_new() {
    let gate = Gate::scripted(stepping(3)).await;
    let mut answer = gate.post("/v1/messages", first()).await.ok();
    for _ in 0..3 {
        let body = next(&answer["id"], &call(&answer));
        answer = gate.post("/v1/messages", body).await.ok();
    }
    assert_eq!(answer["stop_reason"], "end_turn", "{answer}");
    let asked = gate.last_asked();
    assert_eq!(asked["contents"].as_array().unwrap().len(), 7, "{asked}");
    assert!(asked["systemInstruction"].to_string().contains("Count."), "{asked}");
    assert!(asked["tools"].to_string().contains("step"), "{asked}");
    gate.check_signatures(true);
}

#[tokio::test]
async fn a_streamed_thread_goes_on_too() {
    let gate = Gate::scripted(stepping(1)).await;
    let mut body = first();
    body["stream"] = json!(true);
    let events = gate.post("/v1/messages", body).await.events();
    let id = events[0]["message"]["id"].clone();
    let blocks = events.iter().filter(|event| event["type"] == "content_block_start");
    let call = blocks.map(|event| &event["content_block"]).find(|it| it["type"] == "tool_use");
    let body = next(&id, &call.unwrap()["id"]);
    let answer = gate.post("/v1/messages", body).await.ok();
    assert_eq!(answer["content"][0]["text"], "Done.");
    gate.check_signatures(true);
}

/// A count covers the whole thread, its system prompt and its tools.
#[tokio::test]
async fn a_thread_is_counted_whole() {
    let gate = Gate::scripted(stepping(2)).await;
    let first = gate.post("/v1/messages", first()).await.ok();
    let second = gate.post("/v1/messages", next(&first["id"], &call(&first))).await.ok();
    let mut body = next(&second["id"], &call(&second));
    body.as_object_mut().unwrap().remove("max_tokens");
    let path = "/v1/messages/count_tokens";
    let counted = gate.post(path, body).await.ok()["input_tokens"].as_u64().unwrap();
    let asked = gate.last_asked()["generateContentRequest"].clone();
    gate.post("/v1/messages", next(&second["id"], &call(&second))).await.ok();
    let sent = gate.last_asked();
    for name in ["contents", "systemInstruction", "tools"] {
        assert_eq!(asked[name], sent[name], "{name}");
        assert!(!sent[name].is_null(), "{name}");
    }
    let alone =
        json!({"model": "claude-sonnet-4-5", "messages": [{"role": "user", "content": "ok"}]});
    let alone = gate.post(path, alone).await.ok()["input_tokens"].as_u64().unwrap();
    assert!(counted > 3 * alone, "{counted} {alone}");
    let lost = gate.post(path, next(&json!("msg_lost"), &json!("toolu_1"))).await;
    assert_eq!(lost.status, 404, "{lost:?}");
    assert_eq!(lost.json()["error"]["details"]["error_code"], "thread_not_found");
    let wrong = json!({"model": "m", "messages": [{"role": "user", "content": "x"}], "thread": {"type": "continue"}});
    let wrong = gate.post(path, wrong).await;
    assert_eq!(wrong.status, 400, "{wrong:?}");
    assert!(wrong.text.contains("thread.previous_message_id"), "{wrong:?}");
}

/// Messages that are not a list are an error.
#[tokio::test]
async fn messages_of_a_thread_are_a_list() {
    let gate = Gate::scripted(Script::new().text("Hello.")).await;
    let first = gate.post("/v1/messages", first()).await.ok();
    for messages in [json!("Rain?"), json!({"role": "user", "content": "Rain?"}), json!(5)] {
        for path in ["/v1/messages", "/v1/messages/count_tokens"] {
            let mut body = next(&first["id"], &json!("toolu_1"));
            body["messages"] = messages.clone();
            let in_thread = gate.post(path, body.clone()).await;
            assert_eq!(in_thread.status, 400, "{in_thread:?}");
            let said = in_thread.json()["error"]["message"].clone();
            assert!(said.as_str().unwrap().starts_with("messages: "), "{said}");
        }
    }
    assert_eq!(gate.sim.requests().len(), 1);
}

/// Messages count from the first that the client has sent, not from the first of the thread.
#[tokio::test]
async fn places_in_a_thread_are_those_of_the_request() {
    let gate = Gate::scripted(stepping(2)).await;
    let first = gate.post("/v1/messages", first()).await.ok();
    for path in ["/v1/messages", "/v1/messages/count_tokens"] {
        let mut body = next(&first["id"], &call(&first));
        body["messages"][0]["role"] = json!("usr");
        let got = gate.post(path, body).await;
        assert_eq!(got.status, 400, "{got:?}");
        assert!(got.text.contains("\"messages[0].role: "), "{got:?}");
    }
    let mut body = next(&first["id"], &call(&first));
    body["messages"][0]["mood"] = json!("grim");
    let (report, got) = gate.reported("/v1/messages", &body).await;
    let second = got.ok();
    assert!(report.contains("\"messages[0].mood\""), "{report}");
    let body = next(&second["id"], &call(&second));
    let (report, _) = gate.reported("/v1/messages", &body).await;
    assert!(report.contains("\"thread.messages[2].mood\""), "{report}");
}

/// SDKs write `null` for a field that is not set.
#[tokio::test]
async fn null_is_inherited_and_an_empty_list_is_not() {
    let gate = Gate::new().await;
    let mut previous = gate.post("/v1/messages", first()).await.ok();
    for (given, has_tools) in [(json!(null), true), (json!([]), false), (json!(null), false)] {
        let body = message(json!({
            "thread": {"type": "continue", "previous_message_id": previous["id"]},
            "system": null,
            "tools": given,
            "messages": [{"role": "user", "content": "Go on."}]
        }));
        previous = gate.post("/v1/messages", body).await.ok();
        let asked = gate.last_asked();
        assert!(asked["systemInstruction"].to_string().contains("Count."), "{asked}");
        assert_eq!(asked["tools"].to_string().contains("step"), has_tools, "{asked}");
    }
}

/// A member is what its name says, not how it is spelt.
#[tokio::test]
async fn a_thread_may_be_spelt_with_escapes() {
    let gate = Gate::scripted(stepping(1)).await;
    let spelt = |body: Value| body.to_string().replace("\"thread\"", "\"thre\\u0061d\"");
    let lost = spelt(next(&json!("msg_lost"), &json!("toolu_1")));
    assert_eq!(gate.post_text("/v1/messages", lost).await.status, 404);
    let first = gate.post_text("/v1/messages", spelt(first())).await.ok();
    gate.post_text("/v1/messages", spelt(next(&first["id"], &call(&first)))).await.ok();
    assert_eq!(gate.last_asked()["contents"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn an_unknown_thread_is_sent_again() {
    let gate = Gate::new().await;
    let got = gate.post("/v1/messages", next(&json!("msg_lost"), &json!("toolu_1"))).await;
    assert_eq!(got.status, 404);
    assert_eq!(got.json()["error"]["details"]["error_code"], "thread_not_found");
}

/// Messages and responses are kept side by side, and neither is the other.
#[tokio::test]
async fn a_message_is_no_response_to_go_on_from() {
    let gate = Gate::scripted(stepping(1)).await;
    let message = gate.post("/v1/messages", first()).await.ok();
    let body =
        json!({"model": "gemini-3-flash", "input": "x", "previous_response_id": message["id"]});
    let refused = gate.post("/v1/responses", body).await;
    assert_eq!(refused.json()["error"]["code"], "previous_response_not_found", "{refused:?}");
    let response = gate.respond(json!({"model": "gemini-3-flash", "input": "x"})).await;
    let refused = gate.post("/v1/messages", next(&response["id"], &json!("toolu_1"))).await;
    assert_eq!(refused.json()["error"]["details"]["error_code"], "thread_not_found");
}
