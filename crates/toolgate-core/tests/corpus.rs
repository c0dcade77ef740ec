//! Real recordings decode to their content.
//!
//! Optional: runs over the folder that `TOOLGATE_CORPUS` names (files of
//! `[{status, request, response}]`, where `response` is the body as text) and does nothing without
//! it. The expectation is worked out here from the recorded JSON by a second, simpler reader.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test that panics has failed")]

use std::sync::Arc;

use serde_json::Value;
use toolgate_core::canon::{CallInput, Failure, FinishReason};
use toolgate_core::translate::encode_error;
use toolgate_core::upstream::generate_content::{Exchange, decode_error};

use toolgate_testing::client;
use toolgate_testing::decoding::{decode, exchange_of};
use toolgate_testing::grammar;
use toolgate_testing::pipeline::{self, Asked, DIALECTS};

#[test]
#[ignore = "needs recordings, in the folder that TOOLGATE_CORPUS names"]
#[expect(clippy::disallowed_methods, reason = "the corpus is named by the environment")]
fn recordings_decode_whole_and_in_pieces() {
    let folder = std::env::var("TOOLGATE_CORPUS").unwrap();
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let mut seen = 0;
    for file in files.iter().filter(|file| file.extension().is_some_and(|it| it == "json")) {
        let exchanges: Vec<Value> = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        for (index, recorded) in exchanges.iter().enumerate() {
            check(&format!("{} [{index}]", file.display()), recorded);
            seen += 1;
        }
    }
    assert!(seen > 0, "no recordings");
    println!("{seen} recordings");
}

fn check(name: &str, recorded: &Value) {
    let response = &recorded["response"];
    let body = response.as_str().map_or_else(|| response.to_string(), str::to_owned);
    let status = u16::try_from(recorded["status"].as_u64().unwrap()).unwrap();
    if status >= 400 {
        let failure = decode_error(status, body.as_bytes());
        for dialect in DIALECTS {
            let reply = encode_error(dialect, &failure, "req_1");
            grammar::check_error(dialect, &serde_json::from_slice(&reply.body).unwrap());
        }
        assert_eq!(failure.upstream_status, Some(status), "{name}");
        assert!(failure.upstream_body.is_some() && failure.upstream_code.is_some(), "{name}");
        return;
    }
    let tools = declared(&recorded["request"]);
    let exchange = exchange_of(&tools);
    let bytes = body.as_bytes();
    let whole = decode(&exchange, &[bytes]);
    for at in 0..=bytes.len() {
        let pieces = decode(&exchange, &[&bytes[..at], &bytes[at..]]);
        assert_eq!(pieces.events, whole.events, "{name} cut at {at}");
    }
    let want = Expected::read(&body);
    match whole.answer.finish() {
        Ok(answer) => {
            let calls: Vec<(String, Value)> = answer
                .calls()
                .map(|call| match &call.input {
                    CallInput::Json(raw) => (call.tool.to_string(), raw.to().unwrap()),
                    CallInput::Text(text) => (call.tool.to_string(), Value::from(text.decode())),
                })
                .collect();
            assert_eq!(answer.text(), want.text, "{name}");
            assert_eq!(calls, want.calls, "{name}");
            let reason = match (want.finish.as_str(), calls.is_empty()) {
                ("STOP", true) => FinishReason::Stop,
                ("STOP", false) => FinishReason::ToolCalls,
                ("MAX_TOKENS", _) => FinishReason::MaxTokens,
                (other, _) => FinishReason::Blocked(other.to_owned()),
            };
            assert_eq!(answer.finish.reason, reason, "{name}");
            assert!(answer.finish.losses.is_empty(), "{name}: {:?}", answer.finish.losses);
            assert!(answer.finish.usage.total.is_some(), "{name}");
            check_dialects(name, bytes, exchange, &want);
        }
        Err(Failure { kind, message, .. }) => panic!("{name}: {kind:?} {message}"),
    }
}

/// Every client sees the words and the calls, streamed and whole.
fn check_dialects(name: &str, bytes: &[u8], exchange: Exchange, want: &Expected) {
    let exchange = Arc::new(exchange);
    for dialect in DIALECTS {
        let asked = Asked { exchange: Arc::clone(&exchange), ..pipeline::asked(dialect) };
        let streamed = pipeline::stream(&asked, [bytes]);
        grammar::check_stream(dialect, &streamed);
        let answer = pipeline::answer(&asked, bytes).unwrap();
        let body = asked.echo.encode_response(&answer, &pipeline::stamp(), &asked.sealer);
        grammar::check_body(dialect, &body);
        for bytes in [streamed, body] {
            let seen = client::read(dialect, &bytes);
            assert_eq!(seen.text, want.text, "{name} in {dialect:?}");
            let args = |text: &str| serde_json::from_str::<Value>(text).unwrap();
            let calls = seen.calls.iter().map(|call| (call.name.clone(), args(&call.args)));
            assert_eq!(calls.collect::<Vec<_>>(), want.calls, "{name} in {dialect:?}");
        }
    }
}

fn declared(request: &Value) -> Vec<Value> {
    let each = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let functions =
        each(&request["tools"]).into_iter().flat_map(|tool| each(&tool["functionDeclarations"]));
    functions
        .map(|function| {
            let schema = ["parametersJsonSchema", "parameters"]
                .iter()
                .find_map(|name| function.get(*name).filter(|it| !it.is_null()));
            match schema {
                Some(schema) => {
                    serde_json::json!({"name": function["name"], "input_schema": schema})
                }
                None => serde_json::json!({"name": function["name"]}),
            }
        })
        .collect()
}

/// Content of a recording, read in the plainest way.
#[derive(Default)]
struct Expected {
    text: String,
    calls: Vec<(String, Value)>,
    finish: String,
}

impl Expected {
    fn read(body: &str) -> Self {
        let mut expected = Self::default();
        let chunks: Vec<Value> = if body.trim_start().starts_with('{') {
            vec![serde_json::from_str(body).unwrap()]
        } else {
            let frames = body.lines().filter_map(|line| line.strip_prefix("data: "));
            frames.map(|frame| serde_json::from_str(frame).unwrap()).collect()
        };
        for chunk in chunks {
            let candidate = &chunk["candidates"][0];
            for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
                if part["thought"] != Value::Bool(true) {
                    expected.text.push_str(part["text"].as_str().unwrap_or_default());
                }
                if let Some(call) = part.get("functionCall") {
                    let args = call.get("args").cloned().unwrap_or_else(|| serde_json::json!({}));
                    expected.calls.push((call["name"].as_str().unwrap().to_owned(), args));
                }
            }
            if let Some(reason) = candidate["finishReason"].as_str() {
                reason.clone_into(&mut expected.finish);
            }
        }
        expected
    }
}
