//! Conversations and answers that go on from answers.

use serde_json::{Value, json};
use toolgate_sim::Script;

use super::support::{Gate, items, tool, words};

const MODEL: &str = "gemini-3-flash";

fn output(call_id: &Value, text: &str) -> Value {
    json!([{"type": "function_call_output", "call_id": call_id, "output": text}])
}

#[tokio::test]
async fn r93_r95_r96_r102_the_four_requests() {
    let gate = Gate::new().await;
    let question = "What is the weather in Tokyo?";
    let nested = json!([{"type": "function", "function": {
        "name": "get_weather", "description": "Get weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    }}]);
    let first = gate
        .respond(json!({"model": MODEL, "input": question, "tools": nested, "tool_choice": "auto", "conversation": "tool-test", "stream": false}))
        .await;
    let calls = items(&first, "function_call");
    assert_eq!(calls.len(), 1, "r89 {first}");
    assert_eq!(calls[0]["name"], "get_weather", "r86");
    assert_eq!(calls[0]["arguments"], r#"{"city":"Tokyo"}"#, "r86");
    let result = output(&calls[0]["call_id"], r#"{"temp":72,"unit":"F"}"#);
    let second = gate
        .respond(
            json!({"model": MODEL, "input": result, "conversation": "tool-test", "stream": false}),
        )
        .await;
    assert!(words(&second).contains("72"), "r93 {second}");
    let asked = gate.last_asked();
    assert_eq!(asked["contents"].as_array().unwrap().len(), 3, "r92 {asked}");
    assert!(asked["tools"][0]["functionDeclarations"][0]["name"] == "get_weather", "r94 {asked}");
    gate.check_signatures(true);

    let native = json!([{"functionDeclarations": [{
        "name": "get_weather", "description": "Get weather",
        "parameters": {"type": "OBJECT", "properties": {"city": {"type": "STRING"}}, "required": ["city"]}
    }]}]);
    let third = gate
        .post("/v1/gemini", json!({"model": MODEL, "input": question, "tools": native, "conversation": "gemini-tool-test", "stream": false}))
        .await
        .ok();
    let part = &third["candidates"][0]["content"]["parts"][0];
    assert_eq!(part["functionCall"]["name"], "get_weather", "r100 {third}");
    let result = json!([{"functionResponse": {"name": "get_weather", "response": {"temp": 72}}}]);
    let fourth = gate
        .post("/v1/gemini", json!({"model": MODEL, "input": result, "conversation": "gemini-tool-test", "stream": true}))
        .await;
    assert!(fourth.text.contains("72"), "r101 {fourth:?}");
    gate.check_signatures(true);

    let plain =
        gate.respond(json!({"model": MODEL, "input": "What is 2+2?", "stream": false})).await;
    assert!(words(&plain).contains('4') && items(&plain, "function_call").is_empty(), "r99");
}

#[tokio::test]
async fn r98_streams_are_remembered_as_whole_answers_are() {
    let gate = Gate::new().await;
    let body = json!({"model": MODEL, "input": "Weather in Oslo?", "tools": [tool("get_weather")], "conversation": {"id": "c"}, "stream": true});
    let events = gate.post("/v1/responses", body).await.events();
    let first = &events.last().unwrap()["response"];
    let call = items(first, "function_call")[0]["call_id"].clone();
    let body =
        json!({"model": MODEL, "input": output(&call, "-3"), "conversation": "c", "stream": true});
    let events = gate.post("/v1/responses", body).await.events();
    assert!(words(&events.last().unwrap()["response"]).contains("-3"));
    gate.check_signatures(true);
}

#[tokio::test]
async fn r94_tools_stick_until_they_are_cleared() {
    let gate = Gate::scripted(
        Script::new()
            .text("1")
            .finish()
            .text("2")
            .finish()
            .text("3")
            .finish()
            .text("4")
            .finish()
            .text("5")
            .finish()
            .text("6"),
    )
    .await;
    let ask = async |more: Value| {
        let mut body = json!({"model": MODEL, "input": "hi"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        gate.respond(body).await;
        gate.last_asked().get("tools").is_some()
    };
    assert!(ask(json!({"conversation": "a", "tools": [tool("t")]})).await);
    assert!(ask(json!({"conversation": "a"})).await);
    assert!(ask(json!({"conversation": "a", "tools": null})).await, "null is left out");
    assert!(!ask(json!({"conversation": "b"})).await, "r97");
    assert!(!ask(json!({"conversation": "a", "tools": []})).await);
    assert!(!ask(json!({"conversation": "a"})).await);
}

#[tokio::test]
async fn r94_a_forced_call_is_not_forced_again_by_its_result() {
    let script =
        Script::new().call("t", json!({"city": "x"})).finish().text("done").finish().text("more");
    let gate = Gate::scripted(script).await;
    let first = gate
        .respond(json!({"model": MODEL, "input": "go", "conversation": "a", "tools": [tool("t")], "tool_choice": "required"}))
        .await;
    let mode = |asked: &Value| asked["toolConfig"]["functionCallingConfig"]["mode"].clone();
    assert_eq!(mode(&gate.last_asked()), "ANY");
    let call = &items(&first, "function_call")[0]["call_id"];
    gate.respond(json!({"model": MODEL, "input": output(call, "ok"), "conversation": "a"})).await;
    assert_ne!(mode(&gate.last_asked()), "ANY");
    let again = json!({"model": MODEL, "input": "again", "conversation": "a", "tool_choice": null});
    gate.respond(again).await;
    assert_eq!(mode(&gate.last_asked()), "ANY", "the configuration is remembered");
}

#[tokio::test]
async fn r101_one_conversation_goes_through_both_doors() {
    let gate =
        Gate::scripted(Script::new().text("one").finish().text("two").finish().text("three")).await;
    gate.respond(json!({"model": MODEL, "input": "a", "conversation": "c", "tools": [tool("t")]}))
        .await;
    let got =
        gate.post("/v1/gemini", json!({"model": MODEL, "input": "b", "conversation": "c"})).await;
    assert!(got.text.contains("two"), "{got:?}");
    gate.respond(json!({"model": MODEL, "input": "c", "conversation": "c"})).await;
    let asked = gate.last_asked();
    let said: Vec<_> = asked["contents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|content| content["parts"][0]["text"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(said, ["a", "one", "b", "two", "c"]);
    assert!(asked.get("tools").is_some(), "{asked}");
    gate.check_signatures(true);
}

/// What Gemini's form said has ids that stay, on every path.
#[tokio::test]
async fn r101_contents_are_items_like_any_other() {
    let gate = Gate::scripted(Script::new().text("Yes.").times(0)).await;
    let say = async |input: &str| {
        let body = json!({"model": MODEL, "input": input, "conversation": "c"});
        gate.post("/v1/gemini", body).await.ok();
    };
    let list = async |query: &str| {
        let path = format!("/v1/conversations/c/items?order=asc{query}");
        let list = gate.get(&path).await.ok();
        let items = list["data"].as_array().unwrap().clone();
        let named = |item: &Value| {
            assert_eq!(item["type"], "gemini_content", "{item}");
            let text = item["content"]["parts"][0]["text"].as_str().unwrap();
            (item["id"].as_str().unwrap().to_owned(), text.to_owned())
        };
        items.iter().map(named).collect::<Vec<_>>()
    };
    for input in ["a", "b", "b"] {
        say(input).await;
    }
    let all = list("").await;
    let texts: Vec<_> = all.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(texts, ["a", "Yes.", "b", "Yes.", "b", "Yes."]);
    let at = |id: &str| format!("/v1/conversations/c/items/{id}");
    for (id, text) in &all {
        let item = gate.get(&at(id)).await.ok();
        assert_eq!((&item["id"], &item["content"]["parts"][0]["text"]), (&json!(id), &json!(text)));
    }
    assert_eq!(list(&format!("&after={}", all[3].0)).await, all[4..]);
    gate.delete(&at(&all[2].0)).await.ok();
    assert_eq!(gate.get(&at(&all[2].0)).await.status, 404);
    assert_eq!(gate.delete(&at(&all[2].0)).await.status, 404);
    let left = [&all[..2], &all[3..]].concat();
    assert_eq!(list("").await, left, "the others are called what they were");
    say("c").await;
    assert_eq!(list("").await[..5], left);
    let asked = gate.last_asked()["contents"].to_string();
    assert_eq!(asked.matches("\"b\"").count(), 1, "{asked}");
}

#[tokio::test]
async fn answers_branch() {
    let gate = Gate::scripted(Script::new().text("one").times(0)).await;
    let first = gate.respond(json!({"model": MODEL, "input": "a"})).await;
    for (input, said) in [("b", ["a", "one", "b"]), ("c", ["a", "one", "c"])] {
        let body = json!({"model": MODEL, "input": input, "previous_response_id": first["id"]});
        let next = gate.respond(body).await;
        assert_eq!(next["previous_response_id"], first["id"]);
        let asked = gate.last_asked();
        let texts = asked["contents"].as_array().unwrap().iter();
        let texts: Vec<_> =
            texts.map(|content| content["parts"][0]["text"].as_str().unwrap()).collect();
        assert_eq!(texts, said);
    }
    let lost = json!({"model": MODEL, "input": "d", "previous_response_id": "resp_unknown"});
    let lost = gate.post("/v1/responses", lost).await;
    assert_eq!(lost.status, 404);
    assert_eq!(lost.json()["error"]["code"], "previous_response_not_found");
    let both = json!({"model": MODEL, "input": "d", "previous_response_id": first["id"], "conversation": "x"});
    assert_eq!(gate.post("/v1/responses", both).await.status, 400);
    let unstored = gate.respond(json!({"model": MODEL, "input": "e", "store": false})).await;
    let lost = json!({"model": MODEL, "input": "f", "previous_response_id": unstored["id"]});
    assert_eq!(gate.post("/v1/responses", lost).await.status, 404);
}

#[tokio::test]
async fn r97_turns_at_once_lose_nothing() {
    let gate = Gate::new().await;
    let names: Vec<_> = (0..16).map(|n| format!("message number {n} of many")).collect();
    let turns = names
        .iter()
        .map(|name| gate.respond(json!({"model": MODEL, "input": name, "conversation": "crowd"})));
    futures_util::future::join_all(turns).await;
    gate.respond(json!({"model": MODEL, "input": "last", "conversation": "crowd"})).await;
    let asked = gate.last_asked().to_string();
    for name in &names {
        assert!(asked.contains(&format!("{name}\"")), "{name}");
    }
}
