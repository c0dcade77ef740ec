//! Items and conversations as they are listed, named and paged through.

use serde_json::{Value, json};
use toolgate_sim::Script;

use super::support::{Gate, items, tool};

const MODEL: &str = "gemini-3-flash";

/// A list's items, oldest first.
async fn list(gate: &Gate, path: &str) -> Vec<Value> {
    let list = gate.get(&format!("{path}?order=asc&limit=100")).await.ok();
    list["data"].as_array().unwrap().clone()
}

/// OpenAI's types require it where clients need not say it.
#[tokio::test]
async fn listed_items_have_a_status() {
    let script = Script::new().call("t", json!({"city": "x"})).finish().text("Rain.");
    let gate = Gate::scripted(script).await;
    let first = json!({"model": MODEL, "input": "go", "tools": [tool("t")], "conversation": "c"});
    let first = gate.respond(first).await;
    let call = &items(&first, "function_call")[0]["call_id"];
    let input = json!([
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"type": "message", "role": "user", "content": "c", "status": "incomplete"},
        {"type": "function_call", "call_id": "c1", "name": "t", "arguments": "{}", "status": null},
        {"type": "function_call_output", "call_id": "c1", "output": "1"},
        {"type": "function_call_output", "call_id": call, "output": "2"},
    ]);
    let second = json!({"model": MODEL, "input": input, "conversation": "c"});
    let second = gate.respond(second).await;
    let asked = format!("/v1/responses/{}/input_items", second["id"].as_str().unwrap());
    let note = json!({"items": [{"role": "user", "content": "note"}]});
    let added = gate.post("/v1/conversations/c/items", note).await.ok();
    let mut listed = list(&gate, &asked).await;
    assert_eq!(listed[2]["status"], "incomplete", "what is said stays said");
    listed.extend(list(&gate, "/v1/conversations/c/items").await);
    listed.extend(added["data"].as_array().unwrap().iter().cloned());
    let mut kinds: Vec<_> = listed.iter().map(|item| item["type"].as_str().unwrap()).collect();
    for item in listed.iter().filter(|item| item["type"] != "reasoning") {
        assert!(matches!(item["status"].as_str(), Some("completed" | "incomplete")), "{item}");
    }
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds, ["function_call", "function_call_output", "message", "reasoning"]);
}

/// Otherwise every later turn would be refused for a stored item.
#[tokio::test]
async fn a_conversation_takes_no_tools_that_no_turn_can_use() {
    let gate = Gate::scripted(Script::new().text("Hi.").times(0)).await;
    let kept = json!({"tools": [tool("t")], "tool_choice": {"type": "function", "name": "t"}});
    let made = gate.post("/v1/conversations", kept).await.ok();
    let path = format!("/v1/conversations/{}", made["id"].as_str().unwrap());
    for (bad, at) in [
        (json!({"tools": 5}), "tools"),
        (json!({"tools": "abc"}), "tools"),
        (json!({"tools": [5]}), "tools[0]"),
        (json!({"tools": [{"type": "function"}]}), "tools[0].name"),
        (json!({"tools": [tool("t")], "tool_choice": "sometimes"}), "tool_choice"),
        (json!({"tool_choice": {"type": "function"}}), "tool_choice.name"),
    ] {
        for path in ["/v1/conversations", &path] {
            let refused = gate.post(path, bad.clone()).await;
            assert_eq!(refused.status, 400, "{bad}: {refused:?}");
            assert_eq!(refused.json()["error"]["param"], at, "{bad}");
        }
    }
    assert_eq!(gate.get(&path).await.ok()["tools"], json!([tool("t")]));
    gate.respond(json!({"model": MODEL, "input": "go", "conversation": made["id"]})).await;
}

#[tokio::test]
async fn names_may_be_any_words() {
    let gate = Gate::scripted(Script::new().text("Hi.").times(0)).await;
    for (name, encoded) in [
        ("my session", "my%20session"),
        ("user:42", "user%3A42"),
        ("a/b", "a%2Fb"),
        ("\u{e9}", "%c3%a9"),
        ("100%", "100%25"),
        ("a+b", "a+b"),
        ("%ff", "%25ff"),
    ] {
        gate.respond(json!({"model": MODEL, "input": "x", "conversation": name})).await;
        let path = format!("/v1/conversations/{encoded}");
        assert_eq!(gate.get(&path).await.ok()["id"], name);
        let item = json!({"items": [{"role": "user", "content": "note", "id": name}]});
        gate.post(&format!("{path}/items"), item).await.ok();
        let one = format!("{path}/items/{encoded}");
        assert_eq!(gate.get(&one).await.ok()["id"], name);
        let after = encoded.replace('+', "%2B");
        let query = format!("{path}/items?limit=1&after={after}");
        assert_eq!(gate.get(&query).await.ok()["data"][0]["type"], "reasoning", "{name}");
        assert_eq!(gate.delete(&one).await.ok()["id"], name);
        assert_eq!(gate.delete(&path).await.ok()["deleted"], true);
        assert_eq!(gate.get(&path).await.status, 404);
    }
}

#[tokio::test]
async fn a_reference_needs_no_type() {
    let gate = Gate::scripted(Script::new().text("Well said.").times(0)).await;
    let first = gate.respond(json!({"model": MODEL, "input": "a"})).await;
    let id = &items(&first, "message")[0]["id"];
    for reference in [json!({"id": id}), json!({"id": id, "type": null})] {
        let user = |words: &str| json!({"role": "user", "content": words});
        let input = json!([user("a"), reference, user("b")]);
        let (report, _) =
            gate.reported("/v1/responses", &json!({"model": MODEL, "input": input})).await;
        assert_eq!(report, "[]");
        assert!(gate.last_asked().to_string().contains("Well said."));
    }
    let lost = json!([{"id": "msg_unknown"}, {"role": "user", "content": "b"}]);
    let (report, answer) =
        gate.reported("/v1/responses", &json!({"model": MODEL, "input": lost})).await;
    assert!(report.contains("msg_unknown"), "{report}");
    let next = json!({"model": MODEL, "input": "c", "previous_response_id": answer.ok()["id"]});
    gate.respond(next).await;
    let nothing = json!({"items": [{"content": "x"}]});
    assert_eq!(gate.post("/v1/conversations", nothing).await.status, 400);
}

/// The ids of a list, one page at a time.
async fn paged(gate: &Gate, path: &str) -> Vec<String> {
    let (mut ids, mut after): (Vec<String>, _) = (Vec::new(), String::new());
    while ids.len() < 100 {
        let page = gate.get(&format!("{path}?limit=1&order=asc{after}")).await.ok();
        ids.push(page["data"][0]["id"].as_str().unwrap().to_owned());
        after = format!("&after={}", ids[ids.len() - 1]);
        if page["has_more"] == false {
            break;
        }
    }
    ids
}

#[tokio::test]
async fn every_item_has_an_id_of_its_own() {
    let gate = Gate::scripted(Script::new().text("Hi.").times(0)).await;
    let user = |id: &str| json!({"role": "user", "content": "a", "id": id});
    let twice = json!({"items": [user("msg_a"), user("msg_a")]});
    assert_eq!(gate.post("/v1/conversations", twice).await.status, 400);
    let made = gate.post("/v1/conversations", json!({"items": [user("msg_a")]})).await.ok();
    let path = format!("/v1/conversations/{}/items", made["id"].as_str().unwrap());
    let refused = gate.post(&path, json!({"items": [user("msg_b"), user("msg_a")]})).await;
    assert_eq!(refused.status, 400);
    assert_eq!(refused.json()["error"]["param"], "items[1].id");

    let call = json!({"type": "function_call", "id": "fc_a", "name": "t", "arguments": "{}"});
    let output =
        json!({"type": "function_call_output", "call_id": "fc_a", "output": "1", "id": "fco_a"});
    let input = json!([user("msg_a"), user("msg_c"), user("msg_c"), call, output]);
    let body = json!({"model": MODEL, "input": input, "conversation": made["id"]});
    let answer = gate.respond(body).await;
    let said = paged(&gate, &path).await;
    assert_eq!(
        said.iter()
            .filter(|id| matches!(id.as_str(), "msg_a" | "msg_c" | "fc_a" | "fco_a"))
            .count(),
        4
    );
    let mut unique = said.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!((unique.len(), said.len()), (8, 8), "{said:?}");
    let asked = format!("/v1/responses/{}/input_items", answer["id"].as_str().unwrap());
    assert_eq!(paged(&gate, &asked).await, said[1..6]);
    gate.delete(&format!("{path}/msg_a")).await.ok();
    assert_eq!(paged(&gate, &path).await, said[1..]);
}

#[tokio::test]
async fn metadata_has_its_limits() {
    let gate = Gate::scripted(Script::new().text("Hi.").times(0)).await;
    let pairs =
        |count: usize| -> Value { (0..count).map(|n| (n.to_string(), json!("v"))).collect() };
    for (metadata, status) in [
        (pairs(16), 200),
        (pairs(17), 400),
        (json!({"k".repeat(64): "v".repeat(512)}), 200),
        (json!({"k".repeat(65): "v"}), 400),
        (json!({"k": "v".repeat(513)}), 400),
    ] {
        let made = gate.post("/v1/conversations", json!({"metadata": metadata})).await;
        assert_eq!(made.status, status, "{metadata}");
        let body = json!({"model": MODEL, "input": "x", "metadata": metadata});
        assert_eq!(gate.post("/v1/responses", body).await.status, status, "{metadata}");
    }
}

#[tokio::test]
async fn whoever_adds_items_sends_some() {
    let gate = Gate::new().await;
    let made = gate.post("/v1/conversations", json!({"metadata": {"a": "b"}})).await.ok();
    let path = format!("/v1/conversations/{}/items", made["id"].as_str().unwrap());
    for body in [json!({}), json!({"items": null})] {
        let refused = gate.post(&path, body).await;
        assert_eq!(refused.status, 400, "{refused:?}");
        assert_eq!(refused.json()["error"]["param"], "items");
    }
}

#[tokio::test]
async fn losses_are_reported_on_every_path() {
    let gate = Gate::scripted(Script::new().text("Hi.").times(0)).await;
    for (path, more) in [
        ("/v1/responses", json!({})),
        ("/v1/responses", json!({"stream": true})),
        ("/v1/responses", json!({"background": true})),
        ("/v1/responses", json!({"background": true, "stream": true})),
        ("/v1/responses", json!({"generate": false})),
        ("/v1/responses/compact", json!({})),
    ] {
        let mut body = json!({"model": MODEL, "input": "x", "truncation": "auto"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (report, answer) = gate.reported(path, &body).await;
        assert_eq!(answer.status, 200, "{path} {more}");
        assert!(report.contains("truncation"), "{path} {more}: {report}");
    }
}
