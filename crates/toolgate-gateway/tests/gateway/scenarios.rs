//! The scenarios on which other gateways fail, through real sockets, on every endpoint.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use crate::harness::{ENDPOINTS, Endpoint, Lab, Reply};
use serde_json::{Value, json};
use toolgate_core::translate::Dialect;
use toolgate_sim::{Fault, FaultRule, SimConfig, When};
use toolgate_testing::{client, golden};

const SSE: &str = "text/event-stream";

async fn streamed(endpoint: Endpoint, scenario: &str) -> Reply {
    let stream = golden::stream(scenario);
    let lab = Lab::replaying(&[(200, SSE, &stream)], "[upstream]\nretry_wait_seconds = 0").await;
    let got = lab.post(endpoint.path(), &endpoint.ask(true)).await;
    endpoint.check(&got, true);
    got
}

/// Names and arguments of the calls in a stream, and why it ended.
fn calls(endpoint: Endpoint, got: &Reply) -> (Vec<(String, Value)>, String) {
    let events = got.events();
    let parsed = |text: &Value| serde_json::from_str(text.as_str().unwrap()).unwrap();
    match endpoint {
        Endpoint::Anthropic => {
            let mut calls: Vec<(String, Value)> = Vec::new();
            let mut open = None;
            for event in &events {
                let block = &event["content_block"];
                if block["type"] == "tool_use" {
                    open = Some(event["index"].clone());
                    calls.push((block["name"].as_str().unwrap().to_owned(), Value::Null));
                }
                let is_input = event["delta"]["type"] == "input_json_delta";
                if is_input && open.as_ref() == Some(&event["index"]) {
                    calls.last_mut().unwrap().1 = parsed(&event["delta"]["partial_json"]);
                }
            }
            let end = events.iter().find(|event| event["type"] == "message_delta");
            let reason = end.map(|end| end["delta"]["stop_reason"].as_str().unwrap().to_owned());
            (calls, reason.unwrap_or_default())
        }
        Endpoint::Chat => {
            let deltas =
                events.iter().flat_map(|event| event["choices"].as_array().unwrap().clone());
            let mut calls = Vec::new();
            let mut reason = String::new();
            for choice in deltas {
                for call in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
                    assert_eq!(call["index"], calls.len(), "d2: every call has its own index");
                    let name = call["function"]["name"].as_str().unwrap().to_owned();
                    calls.push((name, parsed(&call["function"]["arguments"])));
                }
                if let Some(why) = choice["finish_reason"].as_str() {
                    why.clone_into(&mut reason);
                }
            }
            (calls, reason)
        }
        Endpoint::Responses => {
            let last = events.last().unwrap();
            let items = last["response"]["output"].as_array().unwrap();
            let calls = items.iter().filter(|item| item["type"] == "function_call").map(|item| {
                (item["name"].as_str().unwrap().to_owned(), parsed(&item["arguments"]))
            });
            (calls.collect(), last["type"].as_str().unwrap().to_owned())
        }
    }
}

fn ends(endpoint: Endpoint, reasons: [&str; 3]) -> String {
    match endpoint {
        Endpoint::Anthropic => reasons[0],
        Endpoint::Chat => reasons[1],
        Endpoint::Responses => reasons[2],
    }
    .to_owned()
}

const CALLED: [&str; 3] = ["tool_use", "tool_calls", "response.completed"];
const SAID: [&str; 3] = ["end_turn", "stop", "response.completed"];
const BLOCKED: [&str; 3] = ["refusal", "content_filter", "response.incomplete"];

#[tokio::test]
async fn parallel_calls_come_whole_and_apart() {
    for endpoint in ENDPOINTS {
        let (calls, reason) = calls(endpoint, &streamed(endpoint, "parallel").await);
        assert_eq!(calls.len(), 2, "{endpoint:?}");
        assert_eq!(reason, ends(endpoint, CALLED), "{endpoint:?}");
    }
}

#[tokio::test]
async fn d2_three_calls_of_one_function_keep_apart() {
    for endpoint in ENDPOINTS {
        let (calls, reason) = calls(endpoint, &streamed(endpoint, "d2").await);
        assert_eq!(calls.len(), 3, "{endpoint:?}");
        assert_eq!(reason, ends(endpoint, CALLED), "{endpoint:?}");
    }
}

#[tokio::test]
async fn calls_survive_missing_arguments_and_pieces() {
    for endpoint in ENDPOINTS {
        for scenario in ["noargs", "sigsibling", "partial", "partial_no_end", "d1", "c13"] {
            let (calls, reason) = calls(endpoint, &streamed(endpoint, scenario).await);
            assert!(!calls.is_empty(), "{scenario} {endpoint:?}");
            assert_eq!(reason, ends(endpoint, CALLED), "{scenario} {endpoint:?}");
            assert!(calls.iter().all(|(_, args)| args.is_object()), "{scenario} {endpoint:?}");
        }
    }
}

#[tokio::test]
async fn the_text_of_an_answer_is_complete() {
    for endpoint in ENDPOINTS {
        for scenario in ["textsig", "twofinish", "d5", "d6", "server_search"] {
            let got = streamed(endpoint, scenario).await;
            let (_, reason) = calls(endpoint, &got);
            let both = [ends(endpoint, SAID), ends(endpoint, CALLED)];
            assert!(both.contains(&reason), "{scenario} {endpoint:?}: {reason}");
            let want = client::read(Dialect::Gemini, golden::stream(scenario).as_bytes()).text;
            let dialect = match endpoint {
                Endpoint::Anthropic => Dialect::Anthropic,
                Endpoint::Chat => Dialect::Chat,
                Endpoint::Responses => Dialect::Responses,
            };
            assert_eq!(client::read(dialect, &got.body).text, want, "{scenario} {endpoint:?}");
        }
    }
}

/// The request and the answer of the worked example, in both directions.
#[tokio::test]
async fn r124_the_worked_example_converts_in_both_directions() {
    let todos = json!({"todos": [{
        "content": "Review the design doc", "status": "pending", "activeForm": "Reviewing the design doc",
    }]});
    let script = toolgate_sim::Script::new().call("TodoWrite", todos.clone());
    let lab = Lab::with(SimConfig::scripted(script), "").await;
    let words = "Add a todo to review the design doc";
    let text = json!({"type": "string"});
    let item = json!({
        "type": "object", "required": ["content", "status", "activeForm"],
        "properties": {"content": text, "status": text, "activeForm": text},
    });
    let schema = json!({
        "type": "object", "required": ["todos"],
        "properties": {"todos": {"type": "array", "items": item}},
    });
    let ask = json!({
        "model": "claude-3-5-sonnet-20241022", "max_tokens": 4096,
        "messages": [{"role": "user", "content": words}],
        "tools": [{"name": "TodoWrite", "description": "Create and manage task lists", "input_schema": schema}],
    });
    let got = lab.post("/v1/messages", &ask).await.json();
    let sent = lab.sim.requests().last().unwrap().json();
    assert_eq!(sent["contents"], json!([{"role": "user", "parts": [{"text": words}]}]));
    let declared = &sent["tools"][0]["functionDeclarations"][0];
    assert_eq!(
        (&declared["name"], &declared["parametersJsonSchema"]),
        (&json!("TodoWrite"), &schema)
    );
    assert_eq!(sent["generationConfig"]["maxOutputTokens"], 4096);
    let block = &got["content"][0];
    assert_eq!((&got["stop_reason"], &block["type"]), (&json!("tool_use"), &json!("tool_use")));
    assert_eq!((&block["name"], &block["input"]), (&json!("TodoWrite"), &todos));
    assert!(block["id"].as_str().unwrap().starts_with("toolu_"), "{got}");
}

#[tokio::test]
async fn refusals_are_refusals() {
    for endpoint in ENDPOINTS {
        for scenario in ["safety", "blocked"] {
            let (calls, reason) = calls(endpoint, &streamed(endpoint, scenario).await);
            assert!(calls.is_empty(), "{scenario} {endpoint:?}");
            assert_eq!(reason, ends(endpoint, BLOCKED), "{scenario} {endpoint:?}");
        }
    }
}

/// H1, H2: what cannot be rescued is an error with a status, never a silent turn.
#[tokio::test]
async fn hopeless_turns_are_asked_for_again_and_then_fail() {
    for endpoint in ENDPOINTS {
        for scenario in ["malformed", "empty"] {
            let stream = golden::stream(scenario);
            let lab = Lab::replaying(&[(200, SSE, &stream)], "").await;
            let got = lab.post(endpoint.path(), &endpoint.ask(true)).await;
            assert!(got.status.is_server_error(), "{scenario} {endpoint:?}: {}", got.text());
            endpoint.check_error(&got);
            assert_eq!(lab.sim.requests().len(), 3, "{scenario}: one try and two rescues");
        }
    }
}

/// R135: a turn that comes out right the second time is all that the client sees.
#[tokio::test]
async fn r135_a_malformed_turn_is_rescued() {
    for endpoint in ENDPOINTS {
        for stream in [true, false] {
            for broken in ["malformed", "empty"] {
                let (bad, good) = (golden::stream(broken), golden::stream("parallel"));
                let lab = Lab::replaying(&[(200, SSE, &bad), (200, SSE, &good)], "").await;
                let got = lab.post(endpoint.path(), &endpoint.ask(stream)).await;
                assert!(got.status.is_success(), "{endpoint:?}: {}", got.text());
                endpoint.check(&got, stream);
                assert_eq!(lab.sim.requests().len(), 2, "{broken} {endpoint:?}");
                let metrics = lab.get("/metrics").await.text();
                assert!(metrics.contains("toolgate_rescues_total{kind="), "{metrics}");
            }
        }
    }
}

/// D12: what fails after the client has seen something ends in an error that it can see.
#[tokio::test]
async fn d12_late_failures_are_told_within_the_stream() {
    for endpoint in ENDPOINTS {
        for scenario in ["error_mid_bare", "error_mid_framed", "cut"] {
            let got = streamed(endpoint, scenario).await;
            assert!(got.status.is_success(), "{scenario} {endpoint:?}");
            let events = got.events();
            let last = events.last().unwrap();
            let told = match endpoint {
                Endpoint::Anthropic => last["type"] == "error",
                Endpoint::Chat => last["error"].is_object(),
                Endpoint::Responses => last["type"] == "response.failed",
            };
            assert!(told, "{scenario} {endpoint:?}: {last}");
        }
    }
}

#[track_caller]
fn refused(endpoint: Endpoint, got: &Reply, status: [u16; 3], retry_after: Option<&str>) {
    let want = match endpoint {
        Endpoint::Anthropic => status[0],
        Endpoint::Chat => status[1],
        Endpoint::Responses => status[2],
    };
    assert_eq!(got.status.as_u16(), want, "{endpoint:?}: {}", got.text());
    endpoint.check_error(got);
    if let Some(seconds) = retry_after {
        assert_eq!(got.header("retry-after"), Some(seconds), "{endpoint:?}");
    }
}

/// K4: Google's errors keep their meaning, streamed or not.
#[tokio::test]
async fn k4_errors_keep_their_meaning() {
    for endpoint in ENDPOINTS {
        for stream in [true, false] {
            for (name, status, retry_after) in [
                ("rate_limit_429", [429; 3], Some("35")),
                ("overloaded_503", [529, 503, 503], None),
                ("invalid_400", [400; 3], None),
                ("api_key_400", [401; 3], None),
                ("billing_402", [402, 429, 429], None),
                ("not_found_404", [404; 3], None),
                ("internal_500", [500; 3], None),
            ] {
                let (code, body) = golden::error(name);
                let settings = "[upstream]\nretry_wait_seconds = 0";
                let lab = Lab::replaying(&[(code, "application/json", &body)], settings).await;
                let got = lab.post(endpoint.path(), &endpoint.ask(stream)).await;
                refused(endpoint, &got, status, retry_after);
            }
        }
    }
}

/// K4: a request that got into the way of another is asked for again; then it is overload.
#[tokio::test]
async fn k4_an_aborted_request_is_tried_again() {
    let aborted = |when| {
        let fault = Fault::Status {
            code: 409,
            message: String::new(),
            retry_after: Some("0.001s".to_owned()),
            quota: None,
            html: false,
        };
        SimConfig { faults: vec![FaultRule { fault, when }], ..SimConfig::default() }
    };
    for endpoint in ENDPOINTS {
        for stream in [true, false] {
            let lab = Lab::with(aborted(When::Requests(vec![1])), "").await;
            let got = lab.post(endpoint.path(), &endpoint.ask(stream)).await;
            endpoint.check(&got, stream);
            assert!(!endpoint.is_error(&got), "{endpoint:?} {}", got.text());
            assert_eq!(lab.sim.requests().len(), 2, "{endpoint:?}");
            let lab = Lab::with(aborted(When::Always), "[upstream]\nretries = 1").await;
            let got = lab.post(endpoint.path(), &endpoint.ask(stream)).await;
            refused(endpoint, &got, [529, 503, 503], Some("1"));
            // The gateway has retried it, so that the client's SDK should not.
            assert_eq!(got.header("x-should-retry"), Some("false"), "{endpoint:?}");
            assert_eq!(lab.sim.requests().len(), 2, "{endpoint:?}");
            let lab = Lab::with(aborted(When::Always), "[upstream]\nretries = 0").await;
            let got = lab.post(endpoint.path(), &endpoint.ask(stream)).await;
            assert_ne!(got.header("x-should-retry"), Some("false"), "{endpoint:?}");
        }
    }
}

/// K3: an error as the first event of a stream is still an error status.
#[tokio::test]
async fn k3_an_error_as_first_event_is_a_status() {
    let (_, body) = golden::error("overloaded_503");
    let compact: Value = serde_json::from_str(&body).unwrap();
    for first in [format!("data: {compact}\r\n\r\n"), format!("{compact:#}\n")] {
        for endpoint in ENDPOINTS {
            let settings = "[upstream]\nretry_wait_seconds = 0";
            let lab = Lab::replaying(&[(200, SSE, &first)], settings).await;
            let got = lab.post(endpoint.path(), &endpoint.ask(true)).await;
            refused(endpoint, &got, [529, 503, 503], None);
        }
    }
}

/// The bytes of Gemini's own clients go through as they are.
#[tokio::test]
async fn gemini_clients_get_geminis_bytes() {
    let ask = json!({"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]});
    for scenario in ["parallel", "twofinish", "malformed", "blocked", "empty", "d6"] {
        let stream = golden::stream(scenario);
        let lab = Lab::replaying(&[(200, SSE, &stream)], "").await;
        let path = "/v1beta/models/gemini-3.6-flash:streamGenerateContent?alt=sse&key=secret";
        let got = lab.post(path, &ask).await;
        assert_eq!(got.text(), stream, "{scenario}");
        assert_eq!(got.header("content-type"), Some(SSE));
        let seen = lab.sim.requests();
        assert_eq!(seen[0].json(), ask);
        assert!(!seen[0].query.contains("secret"), "keys do not travel in addresses");
    }
    let (code, body) = golden::error("rate_limit_429");
    let settings = "[upstream]\nretry_wait_seconds = 0";
    let lab = Lab::replaying(&[(code, "application/json", &body)], settings).await;
    let got = lab.post("/v1/models/gemini-3.6-flash:generateContent", &ask).await;
    assert_eq!((got.status.as_u16(), got.text()), (429, body));
}

/// C7: a Messages client has no block for the signature of an answer's last text, which may come in
/// an empty part after it. It comes back from the store.
#[tokio::test]
async fn c7_signatures_of_last_texts_come_back_in_messages() {
    for (scenario, is_stream) in
        [("late_textsig", true), ("late_textsig", false), ("textsig", true), ("textsig", false)]
    {
        let recorded = golden::stream(scenario);
        let lab = Lab::replaying(&[(200, SSE, &recorded)], "").await;
        let mut ask = json!({
            "model": "gemini-3.6-flash", "max_tokens": 99, "stream": is_stream,
            "messages": [{"role": "user", "content": "What is left?"}],
        });
        let got = lab.post("/v1/messages", &ask).await;
        assert!(got.status.is_success(), "{scenario}: {}", got.text());
        let text = "The build passes. Nothing else is open.";
        ask["messages"] = json!([
            {"role": "user", "content": "What is left?"},
            {"role": "assistant", "content": [{"type": "text", "text": text}]},
            {"role": "user", "content": "Thanks."},
        ]);
        let got = lab.post("/v1/messages", &ask).await;
        assert!(got.status.is_success(), "{scenario}: {}", got.text());
        let parts = lab.sim.requests().last().unwrap().parts();
        let signed = parts.iter().filter(|(_, part)| part["thoughtSignature"].is_string());
        assert_eq!(signed.count(), 1, "{scenario}: {parts:?}");
    }
}

/// A client that did not ask for thinking sees no block of it, and its signatures come back.
#[tokio::test]
async fn r124_calls_of_clients_without_thinking_have_no_block_before_them() {
    let call = toolgate_sim::Script::new().call("list_files", json!({})).finish().text("Done.");
    for (settings, want) in
        [("", vec!["tool_use"]), (r#"store = "off""#, vec!["redacted_thinking", "tool_use"])]
    {
        let lab = Lab::with(SimConfig::scripted(call.clone()), settings).await;
        let mut ask = json!({
            "model": "gemini-3.6-flash", "max_tokens": 99,
            "tools": [{"name": "list_files", "input_schema": {"type": "object"}}],
            "messages": [{"role": "user", "content": "Look."}],
        });
        let got = lab.post("/v1/messages", &ask).await.json();
        let blocks: Vec<&str> = got["content"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["type"].as_str().unwrap())
            .collect();
        assert_eq!(blocks, want, "{got}");
        let id = got["content"].as_array().unwrap().last().unwrap()["id"].clone();
        ask["messages"] = json!([
            {"role": "user", "content": "Look."},
            {"role": "assistant", "content": got["content"]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "a.txt"}]},
        ]);
        let got = lab.post("/v1/messages", &ask).await;
        assert!(got.text().contains("Done."), "{}", got.text());
        let counters = lab.sim.counters();
        assert_eq!((counters.signatures, counters.placeholders), (1, 0), "{counters:?}");
    }
}
