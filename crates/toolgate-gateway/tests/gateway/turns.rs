//! Turns that take more than one request to Gemini.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use crate::harness::{ENDPOINTS, Endpoint, Lab, Reply};
use serde_json::{Value, json};
use toolgate_sim::{Fault, FaultRule, Script, SimConfig, When};

const SSE: &str = "text/event-stream";
const JSON: &str = "application/json";

/// One chunk of Gemini's, as an event where it is streamed.
fn chunk(stream: bool, text: &str, more: &Value) -> String {
    let mut candidate =
        json!({"content": {"role": "model", "parts": [{"text": text}]}, "index": 0});
    for (name, value) in more.as_object().unwrap() {
        candidate[name] = value.clone();
    }
    let usage = json!({"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15});
    let chunk = json!({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-3.6-flash"});
    if stream { format!("data: {chunk}\r\n\r\n") } else { chunk.to_string() }
}

/// All words of an answer, and the tokens that went in and came out.
fn said(endpoint: Endpoint, got: &Reply, stream: bool) -> (String, u64, u64) {
    let whole = |object: &Value| -> (String, u64, u64) {
        let (words, usage) = match endpoint {
            Endpoint::Anthropic => (&object["content"][0]["text"], &object["usage"]),
            Endpoint::Chat => (&object["choices"][0]["message"]["content"], &object["usage"]),
            Endpoint::Responses => (&object["output"][0]["content"][0]["text"], &object["usage"]),
        };
        let count =
            |one: &str, other: &str| usage[one].as_u64().or_else(|| usage[other].as_u64()).unwrap();
        let words = words.as_str().unwrap().to_owned();
        let (input, output) =
            (count("input_tokens", "prompt_tokens"), count("output_tokens", "completion_tokens"));
        (words, input, output)
    };
    if !stream {
        return whole(&got.json());
    }
    let events = got.events();
    match endpoint {
        Endpoint::Responses => whole(&events.last().unwrap()["response"]),
        Endpoint::Anthropic => {
            let texts = events.iter().filter_map(|event| event["delta"]["text"].as_str());
            let end = events.iter().find(|event| event["type"] == "message_delta").unwrap();
            let count = |name: &str| end["usage"][name].as_u64().unwrap();
            (texts.collect(), count("input_tokens"), count("output_tokens"))
        }
        Endpoint::Chat => {
            let texts =
                events.iter().filter_map(|it| it["choices"][0]["delta"]["content"].as_str());
            let usage = &events.last().unwrap()["usage"];
            let count = |name: &str| usage[name].as_u64().unwrap();
            (texts.collect(), count("prompt_tokens"), count("completion_tokens"))
        }
    }
}

/// R38, R115: where Gemini stops in the middle it is asked for the rest, also where that takes a
/// second try, and the client sees one answer.
#[tokio::test]
async fn r38_r115_a_continuation_is_asked_for() {
    let stop = json!({"finishReason": "CONTINUATION", "continuationToken": "dG9rZW4="});
    let overloaded = json!({"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}});
    for endpoint in ENDPOINTS {
        for stream in [true, false] {
            let kind = if stream { SSE } else { JSON };
            let answers = [
                (200, kind, chunk(stream, "The first half, ", &stop)),
                (503, JSON, overloaded.to_string()),
                (200, kind, chunk(stream, "and the second.", &json!({"finishReason": "STOP"}))),
            ];
            let answers = answers.each_ref().map(|(status, kind, body)| (*status, *kind, &**body));
            let lab = Lab::replaying(&answers, "").await;
            let got = lab.post(endpoint.path(), &endpoint.ask(stream)).await;
            assert!(got.status.is_success(), "{endpoint:?}: {}", got.text());
            endpoint.check(&got, stream);
            let words = "The first half, and the second.".to_owned();
            assert_eq!(
                said(endpoint, &got, stream),
                (words, 20, 10),
                "{endpoint:?} {}",
                got.text()
            );
            let asked: Vec<Value> = lab.sim.requests().iter().map(|it| it.json()).collect();
            let tokens = asked.iter().map(|body| body["continuationToken"].as_str());
            assert!(tokens.eq([None, Some("dG9rZW4="), Some("dG9rZW4=")]), "{asked:?}");
            assert!(asked.iter().all(|body| body["contents"] == asked[0]["contents"]));
        }
    }
}

/// It is asked so often and no more; then the answer ends as one that was too long.
#[tokio::test]
async fn r38_continuations_are_bounded() {
    let stop = json!({"finishReason": "CONTINUATION", "continuationToken": "dG9rZW4="});
    let endpoint = Endpoint::Anthropic;
    for stream in [true, false] {
        let kind = if stream { SSE } else { JSON };
        let lab = Lab::replaying(&[(200, kind, &chunk(stream, "more ", &stop))], "").await;
        let got = lab.post(endpoint.path(), &endpoint.ask(stream)).await;
        endpoint.check(&got, stream);
        assert!(got.text().contains("\"stop_reason\":\"max_tokens\""), "{}", got.text());
        assert_eq!(lab.sim.requests().len(), 17);
    }
}

const CORRECTING: &str = "[calls]\ncorrections = 1";

async fn scripted(script: Script, settings: &str) -> Lab {
    Lab::with(SimConfig::scripted(script), settings).await
}

/// The calls that a client sees: ids and names.
fn calls(endpoint: Endpoint, answer: &Value) -> Vec<(String, String)> {
    let list = match endpoint {
        Endpoint::Anthropic => &answer["content"],
        Endpoint::Chat => &answer["choices"][0]["message"]["tool_calls"],
        Endpoint::Responses => &answer["output"],
    };
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let calls = list.as_array().into_iter().flatten().filter_map(|it| match endpoint {
        Endpoint::Anthropic => {
            (it["type"] == "tool_use").then(|| (text(&it["id"]), text(&it["name"])))
        }
        Endpoint::Chat => Some((text(&it["id"]), text(&it["function"]["name"]))),
        Endpoint::Responses => {
            (it["type"] == "function_call").then(|| (text(&it["call_id"]), text(&it["name"])))
        }
    });
    calls.collect()
}

/// The question again, with the answer and a result for each of its calls.
fn with_results(endpoint: Endpoint, answer: &Value) -> Value {
    let mut ask = endpoint.ask(false);
    let ids = calls(endpoint, answer).into_iter().map(|(id, _)| id);
    match endpoint {
        Endpoint::Anthropic => {
            let messages = ask["messages"].as_array_mut().unwrap();
            messages.push(json!({"role": "assistant", "content": answer["content"]}));
            let results =
                ids.map(|id| json!({"type": "tool_result", "tool_use_id": id, "content": "ok"}));
            messages.push(json!({"role": "user", "content": results.collect::<Vec<_>>()}));
        }
        Endpoint::Chat => {
            let messages = ask["messages"].as_array_mut().unwrap();
            messages.push(answer["choices"][0]["message"].clone());
            messages
                .extend(ids.map(|id| json!({"role": "tool", "tool_call_id": id, "content": "ok"})));
        }
        Endpoint::Responses => {
            let mut items = vec![json!({"role": "user", "content": ask["input"]})];
            items.extend(answer["output"].as_array().unwrap().iter().cloned());
            items.extend(
                ids.map(
                    |id| json!({"type": "function_call_output", "call_id": id, "output": "ok"}),
                ),
            );
            ask["input"] = Value::Array(items);
        }
    }
    ask
}

/// The same question with another answer and its results.
fn with_more_results(endpoint: Endpoint, mut ask: Value, answer: &Value) -> Value {
    let more = with_results(endpoint, answer);
    let list = if endpoint == Endpoint::Responses { "input" } else { "messages" };
    let more = more[list].as_array().unwrap()[1..].to_vec();
    ask[list].as_array_mut().unwrap().extend(more);
    ask
}

/// What Gemini was last told: for each content its role, and the calls and results in it.
fn told(lab: &Lab) -> Vec<String> {
    let asked = lab.sim.requests().last().unwrap().json();
    let contents = asked["contents"].as_array().unwrap();
    let part = |part: &Value| {
        let call = &part["functionCall"];
        let result = &part["functionResponse"];
        match (call["name"].as_str(), result["name"].as_str()) {
            (Some(name), _) => Some(format!("{name}{}", call["args"])),
            (_, Some(name)) => {
                let is_error = result["response"]["error"].is_string();
                Some(format!("{name}:{}", if is_error { "error" } else { "ok" }))
            }
            (None, None) => {
                part["text"].as_str().filter(|text| !text.is_empty()).map(|_| "text".to_owned())
            }
        }
    };
    let content = |content: &Value| {
        let parts = content["parts"].as_array().unwrap().iter().filter_map(part);
        format!("{} {}", content["role"].as_str().unwrap(), parts.collect::<Vec<_>>().join(" "))
    };
    contents.iter().map(content).collect()
}

/// Gemini refused nothing, and every signature was a real one, once.
#[track_caller]
fn check_clean(lab: &Lab) {
    let counters = lab.sim.counters();
    let faults = [counters.refusals, counters.placeholders, counters.doubled, counters.mismatches];
    assert_eq!(faults, [0; 4], "{counters:?}");
}

/// R130, R131: faulty calls are answered to Gemini, in a round that the client does not see. When
/// the client's results come, that round stands in the history again.
#[tokio::test]
async fn r130_r131_faulty_calls_are_corrected_unseen() {
    for endpoint in ENDPOINTS {
        for stream in [true, false] {
            let script =
                Script::new().text("Let me see. ").call("Bash", json!({"cmd": 5})).finish();
            let script = script.call("Bash", json!({"command": "ls"})).finish().text("Done.");
            let lab = scripted(script, CORRECTING).await;
            let got = lab.post(endpoint.path(), &endpoint.ask(stream)).await;
            endpoint.check(&got, stream);
            let seen = got.text();
            assert!(seen.contains("Let me see. ") && !seen.contains("cmd"), "{endpoint:?} {seen}");
            assert!(seen.contains("command") && !endpoint.is_error(&got), "{endpoint:?} {seen}");
            let hidden = ["user text", r#"model text Bash{"cmd":5}"#, "user Bash:error"];
            assert_eq!(told(&lab), hidden, "{endpoint:?}");
            let error = lab.sim.requests()[1].function_response("Bash").unwrap();
            assert!(error["response"]["error"].as_str().unwrap().contains("command"), "{error}");
            let answer = match (stream, endpoint) {
                (false, _) => got.json(),
                (true, Endpoint::Responses) => got.events().last().unwrap()["response"].clone(),
                (true, Endpoint::Anthropic | Endpoint::Chat) => continue,
            };
            assert_eq!(calls(endpoint, &answer).len(), 1, "{answer}");
            let got = lab.post(endpoint.path(), &with_results(endpoint, &answer)).await;
            assert!(got.text().contains("Done."), "{endpoint:?} {}", got.text());
            let said = [&hidden[..], &[r#"model Bash{"command":"ls"}"#, "user Bash:ok"]].concat();
            assert_eq!(told(&lab), said, "{endpoint:?} {stream}");
            check_clean(&lab);
        }
    }
}

/// R92, R130: a turn with good and faulty calls shows the client the good ones. When their results come,
/// Gemini gets its turn back as it was, signatures and all, with the faults of the others.
#[tokio::test]
async fn r92_r130_a_mixed_turn_is_rebuilt_as_it_was() {
    let good = ("Bash", json!({"command": "ls"}));
    let bad = ("delete_everything", json!({}));
    for endpoint in ENDPOINTS {
        for order in [[&good, &bad], [&bad, &good]] {
            let script =
                order.iter().fold(Script::new(), |it, call| it.call(call.0, call.1.clone()));
            let lab = scripted(script.finish().text("Done."), CORRECTING).await;
            let answer = lab.post(endpoint.path(), &endpoint.ask(false)).await.json();
            let seen = calls(endpoint, &answer);
            assert!(seen.len() == 1 && seen[0].1 == "Bash", "{endpoint:?} {answer}");
            assert_eq!(lab.sim.requests().len(), 1);
            let got = lab.post(endpoint.path(), &with_results(endpoint, &answer)).await;
            assert!(got.text().contains("Done."), "{endpoint:?} {}", got.text());
            let turn = order.map(|call| format!("{}{}", call.0, call.1)).join(" ");
            let results =
                order.map(|it| if it.0 == "Bash" { "Bash:ok" } else { "delete_everything:error" });
            let want = [
                "user text".to_owned(),
                format!("model {turn}"),
                format!("user {}", results.join(" ")),
            ];
            assert_eq!(told(&lab), want, "{endpoint:?}");
            check_clean(&lab);
        }
    }
}

/// R131: it is bounded; then, and by default at once, the client gets the calls as they are.
#[tokio::test]
async fn r131_corrections_are_bounded_and_off_by_default() {
    let bad = || Script::new().call("Bash", json!({"cmd": 5})).finish();
    for (settings, requests) in [("", 1), (CORRECTING, 2)] {
        for stream in [true, false] {
            let lab = scripted(bad().call("Bash", json!({"cmd": 6})).finish(), settings).await;
            let endpoint = Endpoint::Anthropic;
            let got = lab.post(endpoint.path(), &endpoint.ask(stream)).await;
            endpoint.check(&got, stream);
            assert!(got.text().contains("cmd"), "{}", got.text());
            assert_eq!(lab.sim.requests().len(), requests);
        }
    }
}

/// R136: a round that fails after the client has seen words is an error within the stream; one that can
/// be saved is saved.
#[tokio::test]
async fn r136_a_correcting_round_may_fail_or_be_saved() {
    let script = |fault: Fault| {
        let script = Script::new().text("Words. ").call("Bash", json!({"cmd": 5})).finish();
        script.call("Bash", json!({"command": "ls"})).fault(fault).finish()
    };
    for endpoint in ENDPOINTS {
        let lab = scripted(
            script(Fault::EmptyStop).call("Bash", json!({"command": "pwd"})).finish(),
            CORRECTING,
        )
        .await;
        let got = lab.post(endpoint.path(), &endpoint.ask(true)).await;
        endpoint.check(&got, true);
        let text = got.text();
        assert!(!endpoint.is_error(&got) && text.contains("pwd"), "{endpoint:?} {text}");
        let settings = format!("{CORRECTING}\n[upstream]\nrescue_retries = 0");
        let lab = scripted(script(Fault::EmptyStop), &settings).await;
        let got = lab.post(endpoint.path(), &endpoint.ask(true)).await;
        endpoint.check(&got, true);
        assert!(endpoint.is_error(&got), "{endpoint:?} {}", got.text());
    }
}

/// A rest that does not come at once is asked for again; the part before it stays.
#[tokio::test]
async fn r38_an_empty_continuation_is_asked_for_again() {
    let stop = json!({"finishReason": "CONTINUATION", "continuationToken": "dG9rZW4="});
    let (first, rest) =
        (chunk(true, "Hel", &stop), chunk(true, "lo.", &json!({"finishReason": "STOP"})));
    for endpoint in ENDPOINTS {
        let answers = [(200, SSE, &*first), (200, SSE, ""), (200, SSE, &*rest)];
        let lab = Lab::replaying(&answers, "").await;
        let got = lab.post(endpoint.path(), &endpoint.ask(true)).await;
        endpoint.check(&got, true);
        assert_eq!(said(endpoint, &got, true).0, "Hello.", "{endpoint:?} {}", got.text());
    }
}

/// A client that tells the calls of one turn one after the other gets the hidden one back once.
#[tokio::test]
async fn r92_a_hidden_call_is_put_back_once() {
    let endpoint = Endpoint::Chat;
    let script = Script::new()
        .call("Bash", json!({"command": "a"}))
        .call("Bash", json!({"cmd": 5}))
        .call("Bash", json!({"command": "b"}))
        .finish()
        .text("Done.");
    let lab = scripted(script, CORRECTING).await;
    let answer = lab.post(endpoint.path(), &endpoint.ask(false)).await.json();
    let calls = answer["choices"][0]["message"]["tool_calls"].as_array().unwrap();
    assert_eq!(calls.len(), 2, "{answer}");
    let mut ask = endpoint.ask(false);
    for call in calls {
        let messages = ask["messages"].as_array_mut().unwrap();
        messages.push(json!({"role": "assistant", "tool_calls": [call]}));
        messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": "ok"}));
    }
    let got = lab.post(endpoint.path(), &ask).await;
    assert!(got.text().contains("Done."), "{}", got.text());
    let told = told(&lab).join(" | ");
    assert_eq!(told.matches(r#"Bash{"cmd":5}"#).count(), 1, "{told}");
    assert_eq!(told.matches("Bash:error").count(), 1, "{told}");
}

/// Gemini's own form knows calls by Gemini's ids, and gets its turn back all the same.
#[tokio::test]
async fn r101_a_mixed_turn_of_a_gemini_client_is_rebuilt() {
    let script = Script::new()
        .call("look", json!({"wrong": 1}))
        .call("look", json!({"at": "x"}))
        .finish()
        .text("Done.");
    let lab = scripted(script, CORRECTING).await;
    let schema = json!({"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"], "additionalProperties": false});
    let tools =
        json!([{"functionDeclarations": [{"name": "look", "parametersJsonSchema": schema}]}]);
    let ask =
        json!({"model": "gemini-3.6-flash", "input": "Look.", "conversation": "c", "tools": tools});
    let first = lab.post("/v1/gemini", &ask).await.json();
    let parts = first["candidates"][0]["content"]["parts"].as_array().unwrap();
    let calls: Vec<_> = parts.iter().filter_map(|part| part.get("functionCall")).collect();
    assert_eq!(calls.len(), 1, "{first}");
    let response = json!({"id": calls[0]["id"], "name": "look", "response": {"output": "ok"}});
    let ask = json!({"model": "gemini-3.6-flash", "input": [{"functionResponse": response}], "conversation": "c"});
    let got = lab.post("/v1/gemini", &ask).await;
    assert!(got.text().contains("Done."), "{}", got.text());
    let want = ["user text", r#"model look{"wrong":1} look{"at":"x"}"#, "user look:error look:ok"];
    assert_eq!(told(&lab), want);
    check_clean(&lab);
}

/// The model hears the names that it knows; an answer with a form has one form.
#[tokio::test]
async fn r130_corrections_speak_of_what_the_model_knows() {
    let format = json!({"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}}});
    let parameters = json!({"type": "object", "properties": {"at": {"type": "string"}}});
    for stream in [true, false] {
        let script = Script::new().text(r#"{"x":1}"#).call("nope", json!({})).finish();
        let lab = scripted(script.text(r#"{"x":2}"#), CORRECTING).await;
        let ask = json!({
            "model": "gemini-3.6-flash", "stream": stream, "response_format": format,
            "messages": [{"role": "user", "content": "Hi."}],
            "tools": [{"type": "function", "function": {"name": "look at/it", "parameters": parameters}}],
        });
        let got = lab.post("/v1/chat/completions", &ask).await;
        let words: String = if stream {
            let events = got.events();
            events.iter().filter_map(|it| it["choices"][0]["delta"]["content"].as_str()).collect()
        } else {
            got.json()["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
        };
        assert_eq!(words, r#"{"x":2}"#);
        let asked = lab.sim.requests();
        let declared = asked[1].json()["tools"][0]["functionDeclarations"][0]["name"].clone();
        let error = asked[1].function_response("nope").unwrap()["response"]["error"].clone();
        assert!(error.as_str().unwrap().contains(declared.as_str().unwrap()), "{error} {declared}");
    }
}

/// R146: a fault of a call that the client has not seen is no fault of one that it has.
#[tokio::test]
async fn r146_hidden_faults_are_not_the_clients() {
    let (good, bad) = (("Bash", json!({"command": "ls"})), ("Bash", json!({"cmd": 1})));
    for order in [[&good, &bad], [&bad, &good]] {
        for stream in [true, false] {
            let script =
                order.iter().fold(Script::new(), |it, call| it.call(call.0, call.1.clone()));
            let lab = scripted(script.finish(), CORRECTING).await;
            lab.post(Endpoint::Anthropic.path(), &Endpoint::Anthropic.ask(stream)).await;
            let metrics = lab.get("/metrics").await.text();
            for line in ["tool_calls_total 1", "tool_calls_ok_total 1", "tool_calls_failed_total 0"]
            {
                assert!(metrics.contains(&format!("toolgate_{line}\n")), "{line} {stream}");
            }
        }
    }
}

/// C11, C12: a signature that Gemini refuses (the key is another project's now, say) does not end the
/// session: it is left out, from now on, and later parts are signed as ever.
#[tokio::test]
async fn c11_a_refused_signature_is_left_out() {
    let words = ["Corrupted thought signature.", "Thought signature is not valid"];
    for (endpoint, message) in
        ENDPOINTS.into_iter().flat_map(|endpoint| words.map(|it| (endpoint, it)))
    {
        let fault = Fault::Status {
            code: 400,
            message: message.to_owned(),
            retry_after: None,
            quota: None,
            html: false,
        };
        let rule = FaultRule { fault, when: When::Requests(vec![2]) };
        let script = Script::new()
            .call("list_files", json!({}))
            .finish()
            .call("list_files", json!({}))
            .finish()
            .text("Done.");
        let config = SimConfig { faults: vec![rule], ..SimConfig::scripted(script) };
        let lab = Lab::with(config, "").await;
        let first = lab.post(endpoint.path(), &endpoint.ask(false)).await.json();
        let ask = with_results(endpoint, &first);
        let second = lab.post(endpoint.path(), &ask).await;
        assert!(second.status.is_success(), "{endpoint:?}: {}", second.text());
        let third =
            lab.post(endpoint.path(), &with_more_results(endpoint, ask, &second.json())).await;
        assert!(third.text().contains("Done."), "{endpoint:?}: {}", third.text());
        let counters = lab.sim.counters();
        let seen = (counters.requests, counters.placeholders, counters.signatures);
        // The first call's, refused; a placeholder in its place, twice; the second call's.
        assert_eq!(seen, (4, 2, 1), "{endpoint:?}: {counters:?}");
        let sent = lab.sim.requests().last().unwrap().parts();
        let signed = sent.iter().filter(|(_, part)| part["functionCall"].is_object());
        let signed: Vec<_> = signed.map(|(_, part)| part["thoughtSignature"].clone()).collect();
        assert_eq!(signed[0], "skip_thought_signature_validator", "{endpoint:?}");
        assert_ne!(signed[1], signed[0], "{endpoint:?}");
    }
}

/// Gemini names one fault at a time: a second lesson is learned as the first.
#[tokio::test]
async fn r137_more_than_one_thing_can_be_refused() {
    let refusal = |name: &str| {
        let message = format!(
            "Invalid JSON payload received. Unknown name \"{name}\" at 'generation_config': Cannot find field."
        );
        json!({"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}})
            .to_string()
    };
    let (one, two) = (refusal("top_k"), refusal("seed"));
    let end = chunk(false, "Fine.", &json!({"finishReason": "STOP"}));
    let answers = [(400, JSON, &*one), (400, JSON, &*two), (200, JSON, &*end)];
    let lab = Lab::replaying(&answers, "").await;
    let mut ask = Endpoint::Chat.ask(false);
    (ask["seed"], ask["top_k"]) = (json!(1), json!(2));
    let got = lab.post(Endpoint::Chat.path(), &ask).await;
    assert!(got.text().contains("Fine."), "{}", got.text());
    assert_eq!(lab.sim.requests().len(), 3);
}
