//! Gemini's own clients: they get Gemini's bytes, and the gateway's care all the same.

use crate::harness::Lab;
use http::Method;
use serde_json::{Value, json};
use toolgate_sim::{Fault, FaultRule, SimConfig, When};

const MODEL: &str = "/v1beta/models/gemini-3.6-flash";
const SSE: &str = "text/event-stream";
const ANSWER: &str = "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"Here.\"}]},\"finishReason\":\"STOP\"}]}\r\n\r\n";

fn ask() -> Value {
    let function = json!({"name": "look", "parametersJsonSchema": {"type": "object", "properties": {"at": {"type": "string"}}}});
    json!({
        "contents": [{"role": "user", "parts": [{"text": "Hi."}]}],
        "tools": [{"functionDeclarations": [function]}],
        "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
    })
}

fn failing(fault: Fault) -> SimConfig {
    let rule = FaultRule { when: When::Always, fault };
    SimConfig { faults: vec![rule], ..SimConfig::default() }
}

/// K3: an error as the first event is a status, or is not seen at all where the next try succeeds.
#[tokio::test]
async fn k3_an_error_as_first_event_is_a_status_here_too() {
    let path = format!("{MODEL}:streamGenerateContent?alt=sse");
    let error = |code: u16, status: &str, more: Value| {
        let error =
            json!({"error": {"code": code, "message": "busy", "status": status, "details": more}});
        format!("data: {error}\r\n\r\n")
    };
    let busy = error(503, "UNAVAILABLE", json!([]));
    let lab = Lab::replaying(&[(200, SSE, &busy), (200, SSE, ANSWER)], "").await;
    let got = lab.post(&path, &ask()).await;
    assert_eq!((got.status.as_u16(), got.text().as_str()), (200, ANSWER));
    assert_eq!(lab.sim.requests().len(), 2);

    let wait =
        json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.4s"}]);
    let limited = error(429, "RESOURCE_EXHAUSTED", wait);
    let lab = Lab::replaying(&[(200, SSE, &limited)], "").await;
    let got = lab.post(&path, &ask()).await;
    assert_eq!(got.status.as_u16(), 429, "{}", got.text());
    assert_eq!(got.header("retry-after"), Some("35"));
    assert_eq!(got.json()["error"]["status"], "RESOURCE_EXHAUSTED");
}

/// What Gemini says of a turn of its own is an answer, and passes as it is.
#[tokio::test]
async fn finishes_without_words_pass_as_they_are() {
    for reason in ["OTHER", "SAFETY", "MISSING_THOUGHT_SIGNATURE"] {
        let said = format!("data: {{\"candidates\":[{{\"finishReason\":\"{reason}\"}}]}}\r\n\r\n");
        let lab = Lab::replaying(&[(200, SSE, &said)], "").await;
        let got = lab.post(&format!("{MODEL}:streamGenerateContent?alt=sse"), &ask()).await;
        assert_eq!((got.status.as_u16(), got.text()), (200, said));
    }
}

/// R136: a page for people is no answer of this dialect.
#[tokio::test]
async fn r136_pages_of_proxies_are_errors_of_the_dialect() {
    let fault = Fault::Status {
        code: 502,
        message: String::new(),
        retry_after: None,
        quota: None,
        html: true,
    };
    let lab = Lab::with(failing(fault), "[upstream]\nretries = 0").await;
    let page = "<html><body>Sign in</body></html>";
    let odd = Lab::replaying(&[(200, "text/html", page)], "[upstream]\nrescue_retries = 0").await;
    for verb in ["generateContent", "streamGenerateContent?alt=sse", "streamGenerateContent"] {
        for lab in [&lab, &odd] {
            let got = lab.post(&format!("{MODEL}:{verb}"), &ask()).await;
            assert!(got.status.is_server_error(), "{verb}: {}", got.text());
            let code = got.json()["error"]["code"].as_u64();
            assert_eq!(code, Some(u64::from(got.status.as_u16())), "{verb}: {}", got.text());
        }
    }
}

/// K2: an upstream that takes a question and says nothing is an error in time, whatever was asked.
#[tokio::test]
async fn k2_silence_before_the_first_byte_is_a_timeout() {
    let lab = Lab::with(
        failing(Fault::Delay { ms: 60_000 }),
        "[upstream]\nidle_seconds = 1\ntotal_seconds = 1",
    )
    .await;
    let messages = json!([{"role": "user", "content": "Hi."}]);
    let count = json!({"model": "gemini-3.6-flash", "messages": messages});
    let asked = [
        (format!("{MODEL}:generateContent"), ask()),
        (format!("{MODEL}:streamGenerateContent?alt=sse"), ask()),
        (format!("{MODEL}:streamGenerateContent"), ask()),
        (format!("{MODEL}:countTokens"), json!({"contents": ask()["contents"]})),
        ("/v1/messages/count_tokens".to_owned(), count),
    ];
    let got = futures_util::future::join_all(asked.iter().map(|(path, body)| lab.post(path, body)));
    for (got, (path, _)) in got.await.into_iter().zip(&asked) {
        assert_eq!(got.status.as_u16(), 504, "{path}: {}", got.text());
    }
}

/// Half an object is no answer, and a body that never ends is an error in time.
#[tokio::test]
async fn d12_whole_answers_that_break_off_are_errors() {
    let half = "{\"candidates\":[{\"content\":{\"parts\":[{\"te";
    let lab =
        Lab::replaying(&[(200, "application/json", half)], "[upstream]\nrescue_retries = 0").await;
    let got = lab.post(&format!("{MODEL}:generateContent"), &ask()).await;
    assert!(got.status.is_server_error(), "{}", got.text());
    assert!(got.json()["error"]["code"].is_u64(), "{}", got.text());
}

/// R140: tools that are switched off are not forwarded for Gemini's own clients either.
#[tokio::test]
async fn r140_tools_are_switched_off_here_too() {
    let lab = Lab::with(SimConfig::default(), "enable_tool_calling = false").await;
    for verb in ["generateContent", "streamGenerateContent?alt=sse", "streamGenerateContent"] {
        let got = lab.post(&format!("{MODEL}:{verb}"), &ask()).await;
        assert!(got.status.is_success(), "{}", got.text());
    }
    let inner = json!({"model": "models/gemini-3.6-flash", "contents": ask()["contents"], "tools": ask()["tools"]});
    lab.post(&format!("{MODEL}:countTokens"), &json!({"generateContentRequest": inner})).await;
    let asked = lab.sim.requests();
    assert_eq!(asked.len(), 4);
    for seen in asked {
        let text = seen.json().to_string();
        assert!(!text.contains("functionDeclarations") && !text.contains("toolConfig"), "{text}");
        assert!(text.contains("Hi."), "{text}");
    }
}

/// The method is the client's.
#[tokio::test]
async fn methods_pass_as_they_are() {
    let lab = Lab::new().await;
    for method in [Method::GET, Method::DELETE, Method::PATCH] {
        lab.send(method.clone(), MODEL, &[], "").await;
        assert_eq!(lab.sim.requests().last().unwrap().method, method.as_str());
    }
}
