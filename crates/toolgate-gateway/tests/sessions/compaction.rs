//! Conversations that are summed up, and go on.

use serde_json::{Value, json};
use toolgate_sim::Script;

use super::sockets::Socket;
use super::support::{Gate, items, words};

const MODEL: &str = "gemini-3-flash";

fn triggered(words: &str) -> Value {
    json!([{"role": "user", "content": words}, {"type": "compaction_trigger"}])
}

/// An answer to a trigger, and to the request after it.
#[track_caller]
fn check(summed: &Value, after: &Value, gate: &Gate) {
    let kinds: Vec<_> = summed["output"].as_array().unwrap().iter().map(|it| &it["type"]).collect();
    assert_eq!(kinds, ["compaction"]);
    assert_eq!(words(after), "They like tea.", "{after}");
    let asked = gate.last_asked()["contents"].to_string();
    assert!(asked.contains("Summary of the conversation so far"), "{asked}");
    assert!(!asked.contains("Write a summary"), "{asked}");
}

#[tokio::test]
async fn a_trigger_acts_on_its_own_request_only() {
    let gate = Gate::scripted(Script::new().text("They like tea.").times(0)).await;
    let first = gate.respond(json!({"model": MODEL, "input": triggered("tea")})).await;
    let next = json!({"model": MODEL, "input": "q", "previous_response_id": first["id"]});
    check(&first, &gate.respond(next.clone()).await, &gate);
    let silent = json!({"model": MODEL, "previous_response_id": first["id"]});
    check(&first, &gate.respond(silent).await, &gate);
    let path = format!("/v1/responses/{}/input_items", first["id"].as_str().unwrap());
    assert_eq!(gate.get(&path).await.ok()["data"].as_array().unwrap().len(), 1);

    let in_conversation =
        |input: Value| json!({"model": MODEL, "input": input, "conversation": "c"});
    let first = gate.respond(in_conversation(triggered("tea"))).await;
    check(&first, &gate.respond(in_conversation(json!("q"))).await, &gate);
    let native = json!({"model": MODEL, "input": "q", "conversation": "c"});
    gate.post("/v1/gemini", native).await.ok();
    assert!(!gate.last_asked().to_string().contains("Write a summary"));
}

#[tokio::test]
async fn a_trigger_acts_on_its_own_request_only_over_a_socket() {
    let gate = Gate::scripted(Script::new().text("They like tea.").times(0)).await;
    let mut socket = Socket::open_as(&gate, "k").await;
    let mut ask = async |more: Value| {
        let mut body = json!({"type": "response.create", "model": MODEL, "store": false});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        socket.send(body).await;
        socket.answer().await.pop().unwrap()["response"].take()
    };
    let first = ask(json!({"input": triggered("tea")})).await;
    let next = ask(json!({"input": "q", "previous_response_id": first["id"]})).await;
    check(&first, &next, &gate);
    let warm = ask(json!({"input": triggered("tea"), "generate": false})).await;
    assert!(items(&warm, "compaction").is_empty());
    let next = ask(json!({"input": [], "previous_response_id": warm["id"]})).await;
    assert_eq!(words(&next), "They like tea.", "{next}");
}

#[tokio::test]
async fn a_conversation_takes_no_trigger() {
    let gate = Gate::new().await;
    let refused = gate.post("/v1/conversations", json!({"items": triggered("tea")})).await;
    assert_eq!(refused.status, 400, "{refused:?}");
    assert!(refused.text.contains("items[1]"), "{refused:?}");
}

#[tokio::test]
async fn what_is_kept_beside_a_summary_is_whole_items() {
    let gate = Gate::scripted(Script::new().text("They like tea.").times(0)).await;
    let input = json!([
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "hello"},
        {"type": "message", "role": "user", "id": "mine", "content": [{"type": "input_text", "text": "tea"}]},
    ]);
    let body = json!({"model": MODEL, "input": input});
    let summed = gate.post("/v1/responses/compact", body).await.ok();
    let [first, second, third] = summed["output"].as_array().unwrap().as_slice() else {
        panic!("{summed}");
    };
    let token = summed["id"].as_str().unwrap().strip_prefix("resp_").unwrap();
    assert_eq!(first["id"], format!("msg_{token}0000"));
    assert_eq!(first["content"], json!([{"type": "input_text", "text": "hi"}]));
    assert_eq!(second["id"], "mine");
    for item in [first, second] {
        let told = (&item["type"], &item["status"], &item["role"]);
        assert_eq!(told, (&json!("message"), &json!("completed"), &json!("user")));
    }
    assert_eq!(third["type"], "compaction");
}

#[tokio::test]
async fn of_nothing_there_is_no_summary() {
    let gate = Gate::scripted(Script::new().text("They like tea.").times(0)).await;
    let trigger = json!([{"type": "compaction_trigger"}]);
    for input in [json!(null), json!([]), json!(""), trigger] {
        let body = json!({"model": MODEL, "input": input});
        let refused = gate.post("/v1/responses/compact", body).await;
        assert_eq!(refused.status, 400, "{refused:?}");
        assert_eq!(refused.json()["error"]["param"], "input");
    }
    let first = gate.respond(json!({"model": MODEL, "input": "I like tea."})).await;
    let body = json!({"model": MODEL, "previous_response_id": first["id"]});
    gate.post("/v1/responses/compact", body).await.ok();
    let native = json!({"model": MODEL, "input": "q", "conversation": "c"});
    gate.post("/v1/gemini", native).await.ok();
    let body = json!({"model": MODEL, "conversation": "c"});
    gate.post("/v1/responses/compact", body).await.ok();
}

#[tokio::test]
async fn nothing_is_summed_up_unasked_and_that_is_told() {
    let gate = Gate::scripted(Script::new().text("They like tea.").times(0)).await;
    let body =
        |management: Value| json!({"model": MODEL, "input": "x", "context_management": management});
    let wanted = body(json!([{"type": "compaction", "compact_threshold": 1000}]));
    let (report, answer) = gate.reported("/v1/responses", &wanted).await;
    assert!(report.contains("context_management"), "{report}");
    assert_eq!(words(&answer.ok()), "They like tea.");
    let refused =
        gate.post("/v1/responses", body(json!([{"type": "compaction", "compact_threshold": "1"}])));
    let refused = refused.await;
    assert_eq!(refused.status, 400);
    assert_eq!(refused.json()["error"]["param"], "context_management[0].compact_threshold");
}
