//! Injected faults.

use std::time::Duration;

use serde_json::{Value, json};
use toolgate_sim::{Fault, FaultRule, SimConfig, Step, When};

use super::*;

fn faulty(fault: Fault, when: When) -> Sim {
    let faults = vec![FaultRule { fault, when }];
    Sim::new(SimConfig { faults, ..SimConfig::default() })
}

fn status(code: u16) -> Fault {
    Fault::Status { code, message: String::new(), retry_after: None, quota: None, html: false }
}

fn body() -> Value {
    prompt("What is the weather in Oslo?", json!({"tools": tools(&["weather"])}))
}

fn plan(sim: &Sim, model: &str) -> Plan {
    sim.plan(&post(&format!("/v1beta/models/{model}:streamGenerateContent?alt=sse"), &body()))
}

#[test]
fn k4_statuses_have_their_details() {
    for (code, word) in [
        (400, "INVALID_ARGUMENT"),
        (401, "UNAUTHENTICATED"),
        (402, "RESOURCE_EXHAUSTED"),
        (403, "PERMISSION_DENIED"),
        (404, "NOT_FOUND"),
        (429, "RESOURCE_EXHAUSTED"),
        (499, "CANCELLED"),
        (500, "INTERNAL"),
        (503, "UNAVAILABLE"),
        (504, "DEADLINE_EXCEEDED"),
    ] {
        let (got, body) = generate(&faulty(status(code), When::Always), NEW, &body());
        assert_eq!(
            (got, &body["error"]["status"], &body["error"]["code"]),
            (code, &json!(word), &json!(code))
        );
        assert!(!body["error"]["message"].as_str().unwrap().is_empty());
    }
    let quota = Fault::Status {
        code: 429,
        message: String::new(),
        retry_after: Some("34.4s".into()),
        quota: Some("Day".into()),
        html: false,
    };
    let (_, body) = generate(&faulty(quota, When::Always), NEW, &body());
    let details = body["error"]["details"].as_array().unwrap();
    let kinds: Vec<_> = details
        .iter()
        .map(|it| it["@type"].as_str().unwrap().rsplit('.').next().unwrap())
        .collect();
    assert_eq!(kinds, ["QuotaFailure", "Help", "RetryInfo"]);
    assert_eq!(
        details[0]["violations"][0]["quotaId"],
        "GenerateRequestsPerDayPerProjectPerModel-FreeTier"
    );
    assert_eq!(details[2]["retryDelay"], "34.4s");
    let html = Fault::Status {
        code: 502,
        message: String::new(),
        retry_after: None,
        quota: None,
        html: true,
    };
    let page = plan(&faulty(html, When::Always), NEW);
    assert_eq!((page.status, page.content_type), (502, "text/html; charset=UTF-8"));
    let events = plan(&faulty(status(503), When::Always), NEW);
    assert_eq!((events.status, events.content_type), (503, "text/event-stream"));
}

#[test]
fn faults_apply_to_the_selected_requests() {
    let statuses = |when: When| {
        let sim = faulty(status(503), when);
        (0..6).map(|_| generate(&sim, NEW, &body()).0).collect::<Vec<_>>()
    };
    assert_eq!(statuses(When::Requests(vec![1, 4])), [503, 200, 200, 503, 200, 200]);
    assert_eq!(statuses(When::Every(3)), [200, 200, 503, 200, 200, 503]);
    assert_eq!(statuses(When::Probability(0.0)), [200; 6]);
    assert_eq!(statuses(When::Probability(1.0)), [503; 6]);
    let half = |seed: u64| {
        let faults = vec![FaultRule { fault: status(503), when: When::Probability(0.5) }];
        let sim = Sim::new(SimConfig { faults, seed, ..SimConfig::default() });
        (0..200).map(|_| generate(&sim, NEW, &body()).0).collect::<Vec<_>>()
    };
    let drawn = half(1);
    let hit = drawn.iter().filter(|code| **code == 503).count();
    assert!((70..130).contains(&hit), "{hit}");
    assert_eq!(drawn, half(1), "the same seed draws the same");
    assert_ne!(drawn, half(2));
}

#[test]
fn faulty_turns() {
    for (fault, old, new) in [
        (
            Fault::MalformedCall,
            "noparts!MALFORMED_FUNCTION_CALL",
            "noparts!MALFORMED_FUNCTION_CALL",
        ),
        (Fault::UnexpectedCall, "noparts!UNEXPECTED_TOOL_CALL", "noparts!UNEXPECTED_TOOL_CALL"),
        (Fault::EmptyStop, "noparts!STOP", "empty!STOP"),
        (Fault::ThinkingOnly, "noparts!STOP", "empty!STOP"),
        (Fault::Safety, "nothing!SAFETY", "nothing!SAFETY"),
        (Fault::BlockedPrompt, "blocked", "blocked"),
        (Fault::MaxTokensInCall, "noparts!MAX_TOKENS", "noparts!MAX_TOKENS"),
        (
            Fault::Finish { reason: "RECITATION".into() },
            "call* | nothing!RECITATION",
            "call* | nothing!RECITATION",
        ),
    ] {
        assert_eq!(shape(&frames(&plan(&faulty(fault.clone(), When::Always), OLD))), old);
        assert_eq!(shape(&frames(&plan(&faulty(fault, When::Always), NEW))), new);
    }
    let thinking = prompt(
        "Weather in Oslo?",
        json!({
            "tools": tools(&["weather"]), "generationConfig": {"thinkingConfig": {"includeThoughts": true}},
        }),
    );
    let sim = faulty(Fault::ThinkingOnly, When::Always);
    assert_eq!(shape(&stream(&sim, OLD, &thinking)), "thought | noparts!STOP");
    assert_eq!(shape(&stream(&sim, NEW, &thinking)), "thought | empty*!STOP");
    let chunks = stream(&faulty(Fault::MalformedCall, When::Always), NEW, &body());
    assert_eq!(chunks[0]["candidates"][0]["content"], json!({}));
    assert!(
        chunks[0]["candidates"][0]["finishMessage"]
            .as_str()
            .unwrap()
            .starts_with("Malformed function call: print(default_api.weather(")
    );
    let blocked = stream(&faulty(Fault::BlockedPrompt, When::Always), NEW, &body());
    assert_eq!(blocked[0]["promptFeedback"]["blockReason"], "PROHIBITED_CONTENT");
    assert!(blocked[0].get("candidates").is_none());
}

#[test]
fn d12_errors_within_a_stream() {
    let bare = Fault::MidStream { after: 1, code: 503, message: String::new(), framed: false };
    let text = String::from_utf8(plan(&faulty(bare, When::Always), NEW).bytes()).unwrap();
    let (frame, rest) = text.split_once("\r\n\r\n").unwrap();
    assert!(frame.starts_with("data: {"));
    assert!(rest.starts_with("{\n  \"error\": {\n"), "{rest}");
    assert_eq!(serde_json::from_str::<Value>(rest).unwrap()["error"]["status"], "UNAVAILABLE");
    let framed =
        Fault::MidStream { after: 1, code: 429, message: "Slow down".into(), framed: true };
    let chunks = frames(&plan(&faulty(framed, When::Always), NEW));
    assert_eq!(shape(&chunks), "call* | error");
    assert_eq!(chunks[1]["error"]["message"], "Slow down");
    // In a JSON array the error is the last element; a unary answer becomes the error.
    let late = Fault::MidStream { after: 1, code: 503, message: String::new(), framed: false };
    let sim = faulty(late, When::Always);
    let asked = prompt("Weather in Oslo?", json!({"tools": tools(&["weather"])}));
    let list = sim.plan(&post(&format!("/v1beta/models/{NEW}:streamGenerateContent"), &asked));
    let list: Vec<Value> = serde_json::from_slice(&list.bytes()).unwrap();
    assert_eq!(shape(&list), "call* | error");
    let (status, whole) = generate(&sim, NEW, &asked);
    assert_eq!((status, &whole["error"]["status"]), (503, &json!("UNAVAILABLE")));
}

#[test]
fn delayed_split_and_truncated_bodies() {
    let whole = plan(&Sim::new(SimConfig::default()), NEW).bytes();
    let cut = plan(&faulty(Fault::Cut { after: 17 }, When::Always), NEW);
    assert_eq!(cut.bytes(), whole[..17]);
    let split = plan(&faulty(Fault::Split { size: 1 }, When::Always), NEW);
    assert_eq!(split.bytes(), whole);
    let pieces =
        split.steps.iter().filter(|step| matches!(step, Step::Send(bytes) if bytes.len() == 1));
    assert_eq!(pieces.count(), whole.len());
    let reset = plan(&faulty(Fault::Reset { after: 30 }, When::Always), NEW);
    assert_eq!((reset.bytes().len(), reset.steps.last()), (30, Some(&Step::Reset)));
    assert!(plan(&faulty(Fault::Reset { after: 0 }, When::Always), NEW).refuses_connection);
    let stalled = plan(&faulty(Fault::Stall { after: 1, ms: None }, When::Always), NEW);
    assert!(matches!(stalled.steps[..2], [Step::Send(_), Step::Stall]));
    let paused = plan(&faulty(Fault::Stall { after: 0, ms: Some(40) }, When::Always), NEW);
    assert_eq!(paused.steps[0], Step::Wait(Duration::from_millis(40)));
    let slow = plan(&faulty(Fault::Trickle { ms: 5 }, When::Always), NEW);
    assert!(
        slow.steps.iter().filter(|step| **step == Step::Wait(Duration::from_millis(5))).count()
            >= 2
    );
    assert_eq!(slow.bytes(), whole);
    assert_eq!(
        plan(&faulty(Fault::Delay { ms: 70 }, When::Always), NEW).delay,
        Duration::from_millis(70)
    );
}

#[test]
fn scripts_have_faults_of_their_own() {
    let script = Script::new()
        .text("one")
        .fault(Fault::MidStream { after: 1, code: 503, message: String::new(), framed: true })
        .finish()
        .text("two")
        .fault(status(429))
        .finish()
        .text("three")
        .pace(Duration::from_millis(3), Duration::from_millis(4))
        .finish();
    let sim = scripted(script);
    assert_eq!(shape(&frames(&plan(&sim, NEW))), "text | error");
    assert_eq!(plan(&sim, NEW).status, 429);
    let paced = plan(&sim, NEW);
    assert_eq!(paced.delay, Duration::from_millis(3));
    assert!(paced.steps.contains(&Step::Wait(Duration::from_millis(4))));
    assert_eq!(sim.counters().faults, 2);
}
