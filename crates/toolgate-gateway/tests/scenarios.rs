//! The scenarios on which other gateways fail, through real sockets, on every door.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

#[path = "support/harness.rs"]
mod harness;

use harness::{DOORS, Door, Got, Lab, golden_error, golden_stream};
use serde_json::{Value, json};
use toolgate_sim::{Fault, FaultRule, SimConfig, When};

const SSE: &str = "text/event-stream";

async fn streamed(door: Door, scenario: &str) -> Got {
    let stream = golden_stream(scenario);
    let lab = Lab::replaying(&[(200, SSE, &stream)], "[upstream]\nretry_wait_seconds = 0").await;
    let got = lab.post(door.path(), &door.ask(true)).await;
    door.check(&got, true);
    got
}

/// Names and arguments of the calls in a stream, and why it ended.
fn calls(door: Door, got: &Got) -> (Vec<(String, Value)>, String) {
    let events = got.events();
    let parsed = |text: &Value| serde_json::from_str(text.as_str().unwrap()).unwrap();
    match door {
        Door::Anthropic => {
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
        Door::Chat => {
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
        Door::Responses => {
            let last = events.last().unwrap();
            let items = last["response"]["output"].as_array().unwrap();
            let calls = items.iter().filter(|item| item["type"] == "function_call").map(|item| {
                (item["name"].as_str().unwrap().to_owned(), parsed(&item["arguments"]))
            });
            (calls.collect(), last["type"].as_str().unwrap().to_owned())
        }
    }
}

fn ends(door: Door, reasons: [&str; 3]) -> String {
    match door {
        Door::Anthropic => reasons[0],
        Door::Chat => reasons[1],
        Door::Responses => reasons[2],
    }
    .to_owned()
}

const CALLED: [&str; 3] = ["tool_use", "tool_calls", "response.completed"];
const SAID: [&str; 3] = ["end_turn", "stop", "response.completed"];
const BLOCKED: [&str; 3] = ["refusal", "content_filter", "response.incomplete"];

#[tokio::test]
async fn parallel_calls_come_whole_and_apart() {
    for door in DOORS {
        let (calls, reason) = calls(door, &streamed(door, "parallel").await);
        assert_eq!(calls.len(), 2, "{door:?}");
        assert_eq!(reason, ends(door, CALLED), "{door:?}");
    }
}

#[tokio::test]
async fn d2_three_calls_of_one_function_keep_apart() {
    for door in DOORS {
        let (calls, reason) = calls(door, &streamed(door, "d2").await);
        assert_eq!(calls.len(), 3, "{door:?}");
        assert_eq!(reason, ends(door, CALLED), "{door:?}");
    }
}

#[tokio::test]
async fn calls_survive_missing_arguments_and_pieces() {
    for door in DOORS {
        for scenario in ["noargs", "sigsibling", "partial", "partial_no_end", "d1", "c13"] {
            let (calls, reason) = calls(door, &streamed(door, scenario).await);
            assert!(!calls.is_empty(), "{scenario} {door:?}");
            assert_eq!(reason, ends(door, CALLED), "{scenario} {door:?}");
            assert!(calls.iter().all(|(_, args)| args.is_object()), "{scenario} {door:?}");
        }
    }
}

#[tokio::test]
async fn text_comes_whole() {
    for door in DOORS {
        for scenario in ["textsig", "twofinish", "d5", "d6", "server_search"] {
            let (_, reason) = calls(door, &streamed(door, scenario).await);
            let both = [ends(door, SAID), ends(door, CALLED)];
            assert!(both.contains(&reason), "{scenario} {door:?}: {reason}");
        }
    }
}

#[tokio::test]
async fn refusals_are_refusals() {
    for door in DOORS {
        for scenario in ["safety", "blocked"] {
            let (calls, reason) = calls(door, &streamed(door, scenario).await);
            assert!(calls.is_empty(), "{scenario} {door:?}");
            assert_eq!(reason, ends(door, BLOCKED), "{scenario} {door:?}");
        }
    }
}

/// H1, H2: what cannot be rescued is an error with a status, never a silent turn.
#[tokio::test]
async fn hopeless_turns_are_asked_for_again_and_then_fail() {
    for door in DOORS {
        for scenario in ["malformed", "empty"] {
            let stream = golden_stream(scenario);
            let lab = Lab::replaying(&[(200, SSE, &stream)], "").await;
            let got = lab.post(door.path(), &door.ask(true)).await;
            assert!(got.status.is_server_error(), "{scenario} {door:?}: {}", got.text());
            door.check_error(&got);
            assert_eq!(lab.sim.requests().len(), 3, "{scenario}: one try and two rescues");
        }
    }
}

/// R135: a turn that comes out right the second time is all that the client sees.
#[tokio::test]
async fn r135_a_malformed_turn_is_rescued() {
    for door in DOORS {
        for stream in [true, false] {
            for broken in ["malformed", "empty"] {
                let (bad, good) = (golden_stream(broken), golden_stream("parallel"));
                let lab = Lab::replaying(&[(200, SSE, &bad), (200, SSE, &good)], "").await;
                let got = lab.post(door.path(), &door.ask(stream)).await;
                assert!(got.status.is_success(), "{door:?}: {}", got.text());
                door.check(&got, stream);
                assert_eq!(lab.sim.requests().len(), 2, "{broken} {door:?}");
                let metrics = lab.get("/metrics").await.text();
                assert!(metrics.contains("toolgate_rescues_total{kind="), "{metrics}");
            }
        }
    }
}

/// D12: what fails after the client has seen something ends in an error that it can see.
#[tokio::test]
async fn d12_late_failures_are_told_within_the_stream() {
    for door in DOORS {
        for scenario in ["error_mid_bare", "error_mid_framed", "cut"] {
            let got = streamed(door, scenario).await;
            assert!(got.status.is_success(), "{scenario} {door:?}");
            let events = got.events();
            let last = events.last().unwrap();
            let told = match door {
                Door::Anthropic => last["type"] == "error",
                Door::Chat => last["error"].is_object(),
                Door::Responses => last["type"] == "response.failed",
            };
            assert!(told, "{scenario} {door:?}: {last}");
        }
    }
}

#[track_caller]
fn refused(door: Door, got: &Got, status: [u16; 3], retry_after: Option<&str>) {
    let want = match door {
        Door::Anthropic => status[0],
        Door::Chat => status[1],
        Door::Responses => status[2],
    };
    assert_eq!(got.status.as_u16(), want, "{door:?}: {}", got.text());
    door.check_error(got);
    if let Some(seconds) = retry_after {
        assert_eq!(got.header("retry-after"), Some(seconds), "{door:?}");
    }
}

/// K4: Google's errors keep their meaning, streamed or not.
#[tokio::test]
async fn k4_errors_keep_their_meaning() {
    for door in DOORS {
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
                let (code, body) = golden_error(name);
                let settings = "[upstream]\nretry_wait_seconds = 0";
                let lab = Lab::replaying(&[(code, "application/json", &body)], settings).await;
                let got = lab.post(door.path(), &door.ask(stream)).await;
                refused(door, &got, status, retry_after);
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
    for door in DOORS {
        for stream in [true, false] {
            let lab = Lab::with(aborted(When::Requests(vec![1])), "").await;
            let got = lab.post(door.path(), &door.ask(stream)).await;
            door.check(&got, stream);
            assert!(!door.is_error(&got), "{door:?} {}", got.text());
            assert_eq!(lab.sim.requests().len(), 2, "{door:?}");
            let lab = Lab::with(aborted(When::Always), "[upstream]\nretries = 1").await;
            let got = lab.post(door.path(), &door.ask(stream)).await;
            refused(door, &got, [529, 503, 503], Some("1"));
            assert_ne!(got.header("x-should-retry"), Some("false"), "{door:?}");
            assert_eq!(lab.sim.requests().len(), 2, "{door:?}");
        }
    }
}

/// K3: an error as the first event of a stream is still an error status.
#[tokio::test]
async fn k3_an_error_as_first_event_is_a_status() {
    let (_, body) = golden_error("overloaded_503");
    let compact: Value = serde_json::from_str(&body).unwrap();
    for first in [format!("data: {compact}\r\n\r\n"), format!("{compact:#}\n")] {
        for door in DOORS {
            let settings = "[upstream]\nretry_wait_seconds = 0";
            let lab = Lab::replaying(&[(200, SSE, &first)], settings).await;
            let got = lab.post(door.path(), &door.ask(true)).await;
            refused(door, &got, [529, 503, 503], None);
        }
    }
}

/// The bytes of Gemini's own clients go through as they are.
#[tokio::test]
async fn gemini_clients_get_geminis_bytes() {
    let ask = json!({"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]});
    for scenario in ["parallel", "twofinish", "malformed", "blocked", "empty", "d6"] {
        let stream = golden_stream(scenario);
        let lab = Lab::replaying(&[(200, SSE, &stream)], "").await;
        let path = "/v1beta/models/gemini-3.6-flash:streamGenerateContent?alt=sse&key=secret";
        let got = lab.post(path, &ask).await;
        assert_eq!(got.text(), stream, "{scenario}");
        assert_eq!(got.header("content-type"), Some(SSE));
        let seen = lab.sim.requests();
        assert_eq!(seen[0].json(), ask);
        assert!(!seen[0].query.contains("secret"), "keys do not travel in addresses");
    }
    let (code, body) = golden_error("rate_limit_429");
    let settings = "[upstream]\nretry_wait_seconds = 0";
    let lab = Lab::replaying(&[(code, "application/json", &body)], settings).await;
    let got = lab.post("/v1/models/gemini-3.6-flash:generateContent", &ask).await;
    assert_eq!((got.status.as_u16(), got.text()), (429, body));
}
