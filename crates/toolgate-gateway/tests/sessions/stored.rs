//! Responses and conversations as things that can be asked for.

use serde_json::{Value, json};
use toolgate_sim::Script;

use super::support::{Gate, asked, items, tool, words};

const MODEL: &str = "gemini-3-flash";

fn path(response: &Value, rest: &str) -> String {
    format!("/v1/responses/{}{rest}", response["id"].as_str().unwrap())
}

fn ids(list: &Value) -> Vec<&str> {
    list["data"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_response_is_retrieved_listed_and_deleted() {
    let gate = Gate::scripted(Script::new().text("Hi.").times(0)).await;
    let input: Vec<_> =
        (0..3).map(|n| json!({"role": "user", "content": format!("part {n}")})).collect();
    let made = gate.respond(json!({"model": MODEL, "input": input, "metadata": {"a": "b"}})).await;
    assert_eq!(gate.get(&path(&made, "")).await.ok(), made);
    let list = gate.get(&path(&made, "/input_items?order=asc&limit=2")).await.ok();
    assert_eq!(list["has_more"], true);
    assert_eq!(list["data"][0]["content"][0]["text"], "part 0");
    let after = list["last_id"].as_str().unwrap();
    let rest = gate.get(&path(&made, &format!("/input_items?order=asc&after={after}"))).await.ok();
    assert_eq!(ids(&rest).len(), 1);
    assert_eq!(rest["data"][0]["content"][0]["text"], "part 2");
    assert_eq!(gate.post(&path(&made, "/cancel"), json!({})).await.status, 400);
    let gone = gate.delete(&path(&made, "")).await.ok();
    assert_eq!((&gone["deleted"], &gone["id"]), (&json!(true), &made["id"]));
    assert_eq!(gate.get(&path(&made, "")).await.status, 404);
    assert_eq!(gate.get(&path(&made, "/input_items")).await.status, 404);
    assert_eq!(gate.delete(&path(&made, "")).await.status, 404);
}

#[tokio::test]
async fn r98_a_stream_can_be_retrieved() {
    let gate = Gate::scripted(Script::new().text("Hi.").times(0)).await;
    let body = json!({"model": MODEL, "input": "x", "stream": true});
    let got = gate.post("/v1/responses", body).await;
    let events = got.events();
    let made = &events.last().unwrap()["response"];
    assert_eq!(&gate.get(&path(made, "")).await.ok(), made);
    assert_eq!(gate.get(&path(made, "?stream=true")).await.text, got.text);
    let rest = gate.get(&path(made, "?stream=true&starting_after=2")).await.events();
    assert_eq!(rest, events[3..]);
    let whole = gate.respond(json!({"model": MODEL, "input": "x"})).await;
    assert_eq!(gate.get(&path(&whole, "?stream=true")).await.status, 400);
}

/// A number is free to be any: it costs no more than the events that there are.
#[tokio::test]
async fn after_the_last_event_nothing_is_streamed() {
    let gate = Gate::scripted(Script::new().text("Hi.").times(0)).await;
    for background in [false, true] {
        let body = json!({"model": MODEL, "input": "x", "stream": true, "background": background});
        let events = gate.post("/v1/responses", body).await.events();
        let made = &events.last().unwrap()["response"];
        let last = (events.len() - 1).to_string();
        for after in [last.as_str(), "1000", "1000000000000", "18446744073709551615"] {
            let query = format!("?stream=true&starting_after={after}");
            let rest = gate.get(&path(made, &query)).await;
            assert_eq!((rest.status, rest.text.as_str()), (200, ""), "{after}");
        }
        for after in ["-1", "x", "", "18446744073709551616"] {
            let query = format!("?stream=true&starting_after={after}");
            let refused = gate.get(&path(made, &query)).await;
            assert_eq!(refused.status, 400, "{after}: {refused:?}");
            assert_eq!(refused.json()["error"]["param"], "starting_after");
        }
    }
}

/// Three answers, each going on from the one before.
async fn chain(gate: &Gate, begin: Value) -> [Value; 3] {
    let mut body = begin;
    let mut made = Vec::new();
    for input in ["first", "second", "third"] {
        body["model"] = json!(MODEL);
        body["input"] = json!([{"role": "user", "content": input}]);
        let answer = gate.respond(body).await;
        body = json!({"previous_response_id": answer["id"]});
        made.push(answer);
    }
    made.try_into().unwrap()
}

#[tokio::test]
async fn answers_go_on_without_one_that_was_deleted() {
    let answers = ["one", "two", "three", "four", "five", "six"];
    let script = answers.iter().fold(Script::new(), |it, words| it.text(*words).finish());
    let gate = Gate::scripted(script).await;
    let [_, second, third] = chain(&gate, json!({})).await;
    assert_eq!(gate.delete(&path(&second, "")).await.status, 200);
    for rest in ["", "?stream=true", "/input_items"] {
        assert_eq!(gate.get(&path(&second, rest)).await.status, 404, "{rest}");
    }
    assert_eq!(gate.delete(&path(&second, "")).await.status, 404);
    assert_eq!(gate.post(&path(&second, "/cancel"), json!({})).await.status, 404);
    let from = |response: &Value| json!({"model": MODEL, "input": "fourth", "previous_response_id": response["id"]});
    let lost = gate.post("/v1/responses", from(&second)).await;
    assert_eq!(lost.json()["error"]["code"], "previous_response_not_found", "{lost:?}");
    // Twice: a continuation can be continued, too.
    let fourth = gate.respond(from(&third)).await;
    assert_eq!(asked(&gate), ["first", "one", "third", "three", "fourth"]);
    let (head, _) = gate.reported("/v1/responses", &from(&fourth)).await;
    assert_eq!(asked(&gate), ["first", "one", "third", "three", "fourth", "four", "fourth"]);
    let id = second["id"].as_str().unwrap();
    assert!(head.contains(id) && head.contains("was deleted"), "{head}");
    let reference = json!({"type": "item_reference", "id": second["output"][0]["id"]});
    let body = json!({"model": MODEL, "input": [reference, {"role": "user", "content": "x"}]});
    gate.respond(body).await;
    assert_eq!(asked(&gate), ["x"]);
}

/// The oldest one knew the conversation that they began in: that was not deleted.
#[tokio::test]
async fn answers_go_on_from_a_conversation_without_the_first() {
    let gate = Gate::scripted(Script::new().text("Yes.").times(0)).await;
    let note = json!({"items": [{"role": "user", "content": "note"}]});
    let conversation = gate.post("/v1/conversations", note).await.ok();
    let [first, _, third] = chain(&gate, json!({"conversation": conversation["id"]})).await;
    assert_eq!(gate.delete(&path(&first, "")).await.status, 200);
    let body = json!({"model": MODEL, "input": "fourth", "previous_response_id": third["id"]});
    gate.respond(body).await;
    assert_eq!(asked(&gate), ["note", "second", "Yes.", "third", "Yes.", "fourth"]);
}

/// Results whose calls were deleted are still told.
#[tokio::test]
async fn results_go_on_without_their_deleted_call() {
    let call = Script::new().call("t", json!({"city": "x"})).finish();
    let gate = Gate::scripted(call.text("Rain.").finish().text("Bye.")).await;
    let first = gate.respond(json!({"model": MODEL, "input": "go", "tools": [tool("t")]})).await;
    let call = &items(&first, "function_call")[0]["call_id"];
    let result = json!([{"type": "function_call_output", "call_id": call, "output": "rain"}]);
    let body = json!({"model": MODEL, "input": result, "tools": [tool("t")], "previous_response_id": first["id"]});
    let second = gate.respond(body).await;
    gate.delete(&path(&first, "")).await.ok();
    let body = json!({"model": MODEL, "input": "bye", "previous_response_id": second["id"]});
    assert_eq!(words(&gate.respond(body).await), "Bye.");
    assert!(!gate.last_asked().to_string().contains("\"go\""));
}

#[tokio::test]
async fn an_item_reference_becomes_the_item() {
    let gate = Gate::scripted(Script::new().text("Well said.").times(0)).await;
    let first = gate.respond(json!({"model": MODEL, "input": "a"})).await;
    let ids = first["output"].as_array().unwrap().iter().map(|item| item["id"].clone());
    let mut input = vec![json!({"role": "user", "content": "a"})];
    input.extend(ids.map(|id| json!({"type": "item_reference", "id": id})));
    input.push(json!({"role": "user", "content": "b"}));
    gate.respond(json!({"model": MODEL, "input": input})).await;
    let asked = gate.last_asked();
    assert_eq!(asked["contents"][1]["parts"][0]["text"], "Well said.", "{asked}");
    gate.check_signatures(true);
}

#[tokio::test]
async fn conversations_are_made_filled_and_emptied() {
    let gate = Gate::scripted(Script::new().text("Noted.").times(0)).await;
    let note = json!({"type": "message", "role": "user", "content": "note 1"});
    let made =
        gate.post("/v1/conversations", json!({"items": [note], "metadata": {"k": "v"}})).await.ok();
    let id = made["id"].as_str().unwrap();
    assert!(id.starts_with("conv_"), "{made}");
    let at = |rest: &str| format!("/v1/conversations/{id}{rest}");
    let more = json!({"items": [{"role": "user", "content": "note 2"}]});
    let added = gate.post(&at("/items"), more).await.ok();
    assert_eq!(ids(&added).len(), 1);
    gate.respond(json!({"model": MODEL, "input": "go", "conversation": id})).await;
    let asked = gate.last_asked().to_string();
    assert!(asked.contains("note 1") && asked.contains("note 2"), "r95 {asked}");
    let list = gate.get(&at("/items?order=asc&limit=100")).await.ok();
    let all = ids(&list);
    assert_eq!(all.len(), 5, "two notes, a question, an answer and its signature: {list}");
    let item = gate.get(&at(&format!("/items/{}", all[1]))).await.ok();
    assert_eq!(item["content"][0]["text"], "note 2");
    assert_eq!(gate.delete(&at(&format!("/items/{}", all[1]))).await.ok()["id"], made["id"]);
    assert_eq!(gate.get(&at(&format!("/items/{}", all[1]))).await.status, 404);
    gate.respond(json!({"model": MODEL, "input": "go on", "conversation": {"id": id}})).await;
    assert!(!gate.last_asked().to_string().contains("note 2"));
    let updated = gate.post(&at(""), json!({"metadata": {"k": "w"}, "tools": [tool("t")]})).await;
    assert_eq!(updated.ok()["metadata"]["k"], "w");
    assert_eq!(gate.get(&at("")).await.ok()["tools"][0]["name"], "t", "r94: tools are read");
    gate.post(&at(""), json!({"tools": []})).await.ok();
    assert!(gate.get(&at("")).await.ok().get("tools").is_none(), "r94: tools are cleared");
    assert_eq!(gate.delete(&at("")).await.ok()["deleted"], true);
    for gone in [at(""), at("/items")] {
        assert_eq!(gate.get(&gone).await.status, 404, "{gone}");
    }
    let lost = json!({"model": MODEL, "input": "x", "conversation": id});
    assert_eq!(gate.post("/v1/responses", lost).await.status, 404);
    let bad = json!({"items": [{"type": "message", "role": "user", "content": 5}]});
    assert_eq!(gate.post("/v1/conversations", bad).await.status, 400);
}

#[tokio::test]
async fn a_conversation_is_compacted_and_goes_on() {
    let gate = Gate::scripted(Script::new().text("They like tea.").times(0)).await;
    let first = gate.respond(json!({"model": MODEL, "input": "I like tea."})).await;
    let body = json!({"model": MODEL, "input": "And milk.", "previous_response_id": first["id"]});
    let compacted = gate.post("/v1/responses/compact", body).await.ok();
    assert_eq!(compacted["object"], "response.compaction");
    assert_eq!(items(&compacted, "compaction").len(), 1);
    let mut input = compacted["output"].as_array().unwrap().clone();
    input.push(json!({"role": "user", "content": "What do I like?"}));
    gate.respond(json!({"model": MODEL, "input": input})).await;
    assert!(gate.last_asked().to_string().contains("They like tea."));
}
