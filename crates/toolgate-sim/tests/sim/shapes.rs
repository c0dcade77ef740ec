//! Shapes of streams, as recorded for each generation.

use serde_json::{Value, json};
use toolgate_core::canon::Backend;

use super::*;

#[track_caller]
fn check(model: &str, script: Script, more: Value, want: &str) {
    let chunks = stream(&scripted(script), model, &prompt("Hi", more));
    assert_eq!(shape(&chunks), want, "{model}");
    let ids: Vec<_> = chunks.iter().map(|chunk| chunk["responseId"].as_str().unwrap()).collect();
    assert!(ids.iter().all(|id| *id == ids[0] && !id.is_empty()));
    for chunk in &chunks {
        assert!(
            chunk["usageMetadata"]["promptTokenCount"].is_u64(),
            "usage on every chunk: {chunk}"
        );
        assert!(chunk["modelVersion"].is_string());
    }
}

fn with_tools() -> Value {
    json!({"tools": tools(&["weather", "news"])})
}

fn thinking() -> Value {
    json!({"tools": tools(&["weather"]), "generationConfig": {"thinkingConfig": {"includeThoughts": true}}})
}

fn call() -> Script {
    Script::new().thought("Hm.").call("weather", json!({"city": "Oslo"}))
}

fn calls() -> Script {
    call().call("weather", json!({"city": "Rome"})).call("news", json!({"city": "Rome"}))
}

fn text_turn() -> Script {
    Script::new().thought("Hm.").text("It is sunny in Oslo today, with a light wind from the sea.")
}

fn two_codes() -> Script {
    Script::new().code("print(1)\n", "1\n").code("print(2)\n", "2\n").text("One and then two.")
}

#[test]
fn streams_of_older_models() {
    check(OLD, call(), with_tools(), "call*!STOP");
    check(OLD, calls(), with_tools(), "call*,call,call!STOP");
    check(OLD, call(), thinking(), "thought | call*!STOP");
    check(OLD, Script::new().text("42"), json!({}), "text!STOP");
    check(OLD, text_turn(), json!({}), "text | text!STOP");
    check(
        OLD,
        text_turn(),
        json!({"generationConfig": {"thinkingConfig": {"includeThoughts": true}}}),
        "thought | text | text!STOP",
    );
    check(
        OLD,
        two_codes(),
        json!({"tools": [{"codeExecution": {}}]}),
        "code | result | code!STOP | result | text | text!STOP",
    );
    let no_thinking = json!({"tools": tools(&["weather"]), "generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}});
    check(OLD, calls(), no_thinking, "call,call,call!STOP");
    let budget = json!({"tools": tools(&["weather"]), "generationConfig": {"thinkingConfig": {"thinkingBudget": 512}}});
    check(OLD, Script::new().text("37"), budget, "text*!STOP");
    check(
        OLD,
        Script::new().chunk("Hello").chunk("").signed(false),
        json!({}),
        "text | empty!STOP",
    );
}

#[test]
fn streams_of_newer_models() {
    for model in [THREE, "gemini-3.5-flash", NEW, "gemini-3.8-flash", "gemini-4-argon"] {
        check(model, call(), with_tools(), "call* | empty!STOP");
        check(model, call(), thinking(), "thought | call* | empty!STOP");
        check(model, calls(), with_tools(), "call* | call | call | empty!STOP");
        check(model, text_turn(), json!({}), "text | text | empty*!STOP");
        let thoughts = json!({"generationConfig": {"thinkingConfig": {"includeThoughts": true}}});
        check(model, text_turn(), thoughts, "thought | text | text | empty*!STOP");
        check(
            model,
            two_codes(),
            json!({"tools": [{"codeExecution": {}}]}),
            "code* | result | code* | result | text | text | empty!STOP",
        );
        let spoken = Script::new().chunk("Let me see.").call("weather", json!({"city": "Oslo"}));
        check(model, spoken, with_tools(), "text | call* | empty!STOP");
    }
}

#[test]
fn stop_sequences_and_token_limits() {
    let long = "word ".repeat(60);
    for model in [OLD, NEW] {
        let script = Script::new().text(long.as_str());
        let chunks = stream(
            &scripted(script),
            model,
            &prompt("Hi", json!({"generationConfig": {"maxOutputTokens": 24}})),
        );
        assert!(shape(&chunks).ends_with("text!MAX_TOKENS"), "{}", shape(&chunks));
        let usage = &chunks.last().unwrap()["usageMetadata"];
        assert!(usage["candidatesTokenCount"].as_u64().unwrap() <= 26, "{usage}");
        let script = Script::new().text("one END two");
        let (_, body) = generate(
            &scripted(script),
            model,
            &prompt("Hi", json!({"generationConfig": {"stopSequences": ["END"]}})),
        );
        assert_eq!(body["candidates"][0]["content"]["parts"][0]["text"], "one ");
        assert_eq!(body["candidates"][0]["finishReason"], "STOP");
    }
}

#[test]
fn unary_answers() {
    let body = prompt("Hi", thinking());
    let (_, old) = generate(&scripted(calls()), OLD, &body);
    assert_eq!(shape(std::slice::from_ref(&old)), "thought,call*,call,call!STOP");
    assert_eq!(old["candidates"][0]["finishMessage"], "Model generated function call(s).");
    assert!(old["candidates"][0]["content"]["parts"][1]["functionCall"].get("id").is_none());
    let (_, new) = generate(&scripted(calls()), NEW, &body);
    assert_eq!(shape(std::slice::from_ref(&new)), "thought,call*,call,call!STOP");
    assert!(new["candidates"][0].get("finishMessage").is_none());
    let ids: Vec<_> = (1..4)
        .map(|at| {
            new["candidates"][0]["content"]["parts"][at]["functionCall"]["id"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert!(ids.iter().all(
        |id| id.len() == 8 && id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
    ));
    assert!(ids[0] != ids[1] && ids[1] != ids[2]);
    let (_, text) = generate(&scripted(text_turn()), NEW, &prompt("Hi", json!({})));
    assert_eq!(shape(&[text]), "text*!STOP");
    let (_, text) = generate(&scripted(text_turn()), OLD, &prompt("Hi", json!({})));
    assert_eq!(shape(&[text]), "text!STOP");
    let script = Script::new().code("print(1)", "1").code("print(2)", "2").text("Done");
    let (_, code) =
        generate(&scripted(script), OLD, &prompt("Hi", json!({"tools": [{"codeExecution": {}}]})));
    assert_eq!(shape(&[code]), "code,result,code,result,text!STOP");
}

#[test]
fn usage_adds_up() {
    let chunks = stream(&scripted(call()), THREE, &prompt("Hi", thinking()));
    let usage: Vec<_> = chunks.iter().map(|chunk| &chunk["usageMetadata"]).collect();
    // Newer models report only the prompt while they think.
    assert_eq!(usage[0]["totalTokenCount"], usage[0]["promptTokenCount"]);
    let count = |name: &str| usage[2][name].as_u64().unwrap();
    assert_eq!(
        count("totalTokenCount"),
        count("promptTokenCount") + count("candidatesTokenCount") + count("thoughtsTokenCount")
    );
    assert_eq!(usage[2]["serviceTier"], "standard");
    assert_eq!(usage[2]["promptTokensDetails"][0]["modality"], "TEXT");
}

/// Parts of a Vertex stream with `streamFunctionCallArguments`.
fn vertex_calls(script: Script) -> Vec<Value> {
    let sim = scripted(script);
    let body = prompt(
        "Hi",
        json!({
            "tools": tools(&["weather"]),
            "toolConfig": {"functionCallingConfig": {"streamFunctionCallArguments": true}},
        }),
    );
    let path = format!(
        "/v1beta1/projects/p/locations/global/publishers/google/models/{NEW}:streamGenerateContent?alt=sse"
    );
    let plan = sim.plan(&post(&path, &body));
    assert_eq!(plan.status, 200, "{}", String::from_utf8_lossy(&plan.bytes()));
    let chunks = frames(&plan);
    assert_eq!(chunks[0]["usageMetadata"]["trafficType"], "ON_DEMAND");
    let last = &chunks.last().unwrap();
    assert_eq!(last["candidates"][0]["finishReason"], "STOP");
    assert!(last["usageMetadata"]["totalTokenCount"].is_u64());
    model_turn(&chunks)["parts"].as_array().unwrap().clone()
}

#[test]
fn d8_vertex_streams_arguments() {
    let parts =
        vertex_calls(Script::new().call(
            "weather",
            json!({"city": "São Paulo, Brazil", "days": 3, "deep": [{"a b": true}]}),
        ));
    assert_eq!(parts[0]["functionCall"]["name"], "weather");
    assert_eq!(parts[0]["functionCall"]["willContinue"], true);
    assert!(parts[0]["thoughtSignature"].is_string());
    let steps: Vec<_> = parts[1..]
        .iter()
        .map(|part| {
            let call = &part["functionCall"];
            assert!(part.get("thoughtSignature").is_none());
            assert!(call.get("name").is_none());
            call["partialArgs"][0].clone()
        })
        .collect();
    assert_eq!(
        steps,
        [
            json!({"jsonPath": "$.city", "stringValue": "São Paulo, Brazi", "willContinue": true}),
            json!({"jsonPath": "$.city", "stringValue": "l", "willContinue": true}),
            json!({"jsonPath": "$.city", "stringValue": ""}),
            json!({"jsonPath": "$.days", "numberValue": 3}),
            json!({"jsonPath": "$.deep[0]['a b']", "boolValue": true}),
            Value::Null,
        ]
    );
    assert_eq!(parts.last().unwrap()["functionCall"], json!({}));

    let short =
        vertex_calls(Script::new().call("weather", json!({"denominator": 2, "numerator": 100})));
    assert_eq!(short.len(), 1);
    assert_eq!(
        short[0]["functionCall"]["partialArgs"],
        json!([{"jsonPath": "$.denominator", "numberValue": 2}, {"jsonPath": "$.numerator", "numberValue": 100}])
    );
    let _ = Backend::Vertex;
}

#[test]
fn streams_as_json_arrays() {
    let sim = scripted(text_turn());
    let plan = sim.plan(&post(
        &format!("/v1beta/models/{NEW}:streamGenerateContent"),
        &prompt("Hi", json!({})),
    ));
    assert_eq!(plan.content_type, "application/json; charset=UTF-8");
    let chunks: Vec<Value> = serde_json::from_slice(&plan.bytes()).unwrap();
    assert_eq!(shape(&chunks), "text | text | empty*!STOP");
    assert!(plan.steps.len() > 3, "it arrives bit by bit");
    assert!(String::from_utf8(plan.bytes()).unwrap().contains("\n,\r\n{"));
}
