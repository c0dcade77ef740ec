//! Turns that take more than one request to Gemini.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

#[path = "support/harness.rs"]
mod harness;

use harness::{DOORS, Door, Got, Lab};
use serde_json::{Value, json};

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
fn said(door: Door, got: &Got, stream: bool) -> (String, u64, u64) {
    let whole = |object: &Value| -> (String, u64, u64) {
        let (words, usage) = match door {
            Door::Anthropic => (&object["content"][0]["text"], &object["usage"]),
            Door::Chat => (&object["choices"][0]["message"]["content"], &object["usage"]),
            Door::Responses => (&object["output"][0]["content"][0]["text"], &object["usage"]),
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
    match door {
        Door::Responses => whole(&events.last().unwrap()["response"]),
        Door::Anthropic => {
            let texts = events.iter().filter_map(|event| event["delta"]["text"].as_str());
            let end = events.iter().find(|event| event["type"] == "message_delta").unwrap();
            let count = |name: &str| end["usage"][name].as_u64().unwrap();
            (texts.collect(), count("input_tokens"), count("output_tokens"))
        }
        Door::Chat => {
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
    for door in DOORS {
        for stream in [true, false] {
            let kind = if stream { SSE } else { JSON };
            let answers = [
                (200, kind, chunk(stream, "The first half, ", &stop)),
                (503, JSON, overloaded.to_string()),
                (200, kind, chunk(stream, "and the second.", &json!({"finishReason": "STOP"}))),
            ];
            let answers = answers.each_ref().map(|(status, kind, body)| (*status, *kind, &**body));
            let lab = Lab::replaying(&answers, "").await;
            let got = lab.post(door.path(), &door.ask(stream)).await;
            assert!(got.status.is_success(), "{door:?}: {}", got.text());
            door.check(&got, stream);
            let words = "The first half, and the second.".to_owned();
            assert_eq!(said(door, &got, stream), (words, 20, 10), "{door:?} {}", got.text());
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
    let door = Door::Anthropic;
    for stream in [true, false] {
        let kind = if stream { SSE } else { JSON };
        let lab = Lab::replaying(&[(200, kind, &chunk(stream, "more ", &stop))], "").await;
        let got = lab.post(door.path(), &door.ask(stream)).await;
        door.check(&got, stream);
        assert!(got.text().contains("\"stop_reason\":\"max_tokens\""), "{}", got.text());
        assert_eq!(lab.sim.requests().len(), 17);
    }
}
