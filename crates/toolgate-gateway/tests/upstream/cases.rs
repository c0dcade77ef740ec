//! Keys, refusals and forwarded parameters, against an upstream whose answers each test chooses.

use std::sync::atomic::{AtomicUsize, Ordering};

use http::Method;
use serde_json::{Value, json};

use super::fake::{Fake, Seen, fine, refused};

const GEMINI: &str = "/v1beta/models/gemini-3.6-flash:generateContent";
const DENIED: &str = "PERMISSION_DENIED";

fn message(words: &str) -> Value {
    json!({"model": "gemini-3.6-flash", "max_tokens": 100, "messages": [{"role": "user", "content": words}]})
}

/// A request with two tools, of which the first has this description.
fn with_tools(description: &str) -> Value {
    let mut ask = message("Hi.");
    let tool = |name: &str, description: &str| json!({"name": name, "description": description, "input_schema": {"type": "object"}});
    ask["tools"] = json!([tool("odd", description), tool("plain", "Fine.")]);
    ask
}

/// Refuses the tool `odd` for its description.
fn refuses_odd(seen: &Seen) -> (u16, Value) {
    let message =
        "* GenerateContentRequest.tools[0].function_declarations[0].description: not allowed";
    let is_odd = seen.body.to_string().contains("forbidden");
    if is_odd { refused(400, "INVALID_ARGUMENT", "", message) } else { fine() }
}

#[tokio::test]
async fn a_tool_refused_to_one_key_is_sent_for_another() {
    let first = AtomicUsize::new(0);
    let answer = move |seen: &Seen| match first.fetch_add(1, Ordering::Relaxed) {
        0 => refuses_odd(seen),
        _ => fine(),
    };
    let settings =
        "[upstream]\napi_keys = [\"pool\"]\n[clients]\nkeys = [\"client-one\", \"client-two\"]";
    let fake = Fake::start(settings, answer).await;
    let ask = with_tools("forbidden words");
    assert_eq!(fake.post("/v1/messages", "client-one", &ask).await.0, 200);
    let sent: Vec<_> = fake.seen().iter().map(|it| it.functions().len()).collect();
    assert_eq!(sent, [2, 1], "refused, and sent again without the tool");
    assert_eq!(fake.post("/v1/messages", "client-one", &ask).await.0, 200);
    assert_eq!(fake.seen()[0].functions(), ["plain"], "it is remembered");
    assert_eq!(fake.post("/v1/messages", "client-two", &ask).await.0, 200);
    assert_eq!(fake.seen()[0].functions(), ["odd", "plain"], "another key");
    let other = with_tools("other words");
    assert_eq!(fake.post("/v1/messages", "client-one", &other).await.0, 200);
    assert_eq!(fake.seen()[0].functions(), ["odd", "plain"], "another description");
}

#[tokio::test]
async fn a_forced_tool_is_sent_and_its_refusal_is_told() {
    let fake = Fake::start("[upstream]\napi_keys = [\"pool\"]", refuses_odd).await;
    let mut ask = with_tools("forbidden words");
    assert_eq!(fake.post("/v1/messages", "", &ask).await.0, 200);
    fake.seen();
    ask["tool_choice"] = json!({"type": "tool", "name": "odd"});
    let (status, body) = fake.post("/v1/messages", "", &ask).await;
    let seen = fake.seen();
    assert_eq!((status, seen.len()), (400, 1), "{body}");
    assert_eq!(seen[0].functions(), ["odd", "plain"]);
    assert!(body.contains("function_declarations[0]"), "{body}");
    // Gemini's own clients, too: once as they sent it, once in order.
    let declared = json!([{"functionDeclarations": [{"name": "odd", "description": "forbidden"}]}]);
    let forced = json!({"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["odd"]}});
    let contents = json!([{"role": "user", "parts": [{"text": "Hi."}]}]);
    let native = json!({"contents": contents, "tools": declared, "toolConfig": forced});
    for _ in 0..2 {
        let (status, body) = fake.post(GEMINI, "", &native).await;
        assert_eq!(status, 400, "{body}");
        assert!(fake.seen().iter().all(|seen| seen.functions() == ["odd"]));
    }
}

#[tokio::test]
async fn every_permanent_refusal_rests_the_key_and_moves_its_conversations() {
    let leaked = "Your API key was reported as leaked. Please use another API key.";
    for (code, status, reason, message) in [
        (403, DENIED, "", leaked),
        (403, DENIED, "SERVICE_DISABLED", "m"),
        (403, DENIED, "API_KEY_SERVICE_BLOCKED", "m"),
        (400, "INVALID_ARGUMENT", "API_KEY_INVALID", "m"),
        (403, DENIED, "CONSUMER_SUSPENDED", "m"),
        (401, "UNAUTHENTICATED", "ACCESS_TOKEN_EXPIRED", "m"),
        (403, DENIED, "BILLING_DISABLED", "m"),
        (400, "FAILED_PRECONDITION", "", "User location is not supported for the API use."),
    ] {
        let answer = move |seen: &Seen| match seen.key() {
            "dead-key" => refused(code, status, reason, message),
            _ => fine(),
        };
        let settings = "[upstream]\napi_keys = [\"dead-key\", \"good-key\"]";
        let fake = Fake::start(settings, answer).await;
        for number in 0..12 {
            let ask = message_of(number);
            let (status, body) = fake.post("/v1/messages", "", &ask).await;
            assert_eq!(status, 200, "{reason} {number}: {body}");
            let native =
                json!({"contents": [{"role": "user", "parts": [{"text": format!("{number}")}]}]});
            assert_eq!(fake.post(GEMINI, "", &native).await.0, 200, "{reason} {number}");
        }
        let dead = fake.seen().iter().filter(|seen| seen.key() == "dead-key").count();
        assert_eq!(dead, 1, "{reason}: the dead key was tried once");
        let (_, _, metrics) = fake.send(Method::GET, "/metrics", &[], &Value::Null).await;
        let line = "toolgate_upstream_key_rests_total{key=\"37d4c984\",reason=\"refused\"} 1";
        assert!(metrics.contains(line), "{metrics}");
        assert!(!metrics.contains("dead-key"), "{metrics}");
    }
}

fn message_of(number: usize) -> Value {
    message(&format!("Conversation {number}."))
}

#[tokio::test]
async fn a_refusal_of_one_model_does_not_rest_the_key() {
    let answer = |seen: &Seen| {
        let denied = "You do not have permission to access this model.";
        if seen.uri.contains("secret-model") { refused(403, DENIED, "", denied) } else { fine() }
    };
    let fake = Fake::start("[upstream]\napi_keys = [\"client-one\", \"client-two\"]", answer).await;
    let mut secret = message("Hi.");
    secret["model"] = json!("secret-model");
    let (status, body) = fake.post("/v1/messages", "", &secret).await;
    assert_eq!((status, fake.seen().len()), (403, 1), "{body}");
    let keys = async || {
        let mut keys = Vec::new();
        for number in 0..12 {
            assert_eq!(fake.post("/v1/messages", "", &message_of(number)).await.0, 200);
            keys.extend(fake.seen().iter().map(|seen| seen.key().to_owned()));
        }
        keys
    };
    let keys = keys().await;
    assert!(
        keys.iter().any(|key| key == "client-one") && keys.iter().any(|key| key == "client-two"),
        "{keys:?}"
    );
}

#[tokio::test]
async fn the_last_error_is_told_when_all_keys_rest() {
    let answer =
        |seen: &Seen| refused(403, DENIED, "SERVICE_DISABLED", &format!("off: {}", seen.key()));
    let settings = "[upstream]\napi_keys = [\"key-number-1\", \"key-number-2\", \"key-number-3\"]";
    let fake = Fake::start(settings, answer).await;
    for attempts in [3, 1, 1] {
        let (status, body) = fake.post("/v1/messages", "", &message("Hi.")).await;
        assert_eq!((status, fake.seen().len()), (403, attempts), "{body}");
        assert!(body.contains("permission_error") && body.contains("off: [key]"), "{body}");
    }
}

#[tokio::test]
async fn a_request_with_its_own_key_never_touches_the_pool() {
    let answer = |seen: &Seen| match seen.key() {
        "AIzaOwn" => refused(403, DENIED, "CONSUMER_SUSPENDED", "m"),
        _ => fine(),
    };
    let fake = Fake::start("[upstream]\napi_keys = [\"pool\"]", answer).await;
    for path in ["/v1/messages", "/v1/messages/count_tokens"] {
        let (status, body) = fake.post(path, "AIzaOwn", &message("Hi.")).await;
        assert_eq!(status, 403, "{body}");
        assert!(fake.seen().iter().all(|seen| seen.key() == "AIzaOwn"));
    }
    assert_eq!(fake.post("/v1/messages", "", &message("Hi.")).await.0, 200);
    let (_, _, metrics) = fake.send(Method::GET, "/metrics", &[], &Value::Null).await;
    assert!(!metrics.contains("toolgate_upstream_key_rests_total{"), "{metrics}");
}

#[tokio::test]
async fn only_listed_headers_and_parameters_go_upstream() {
    let fake = Fake::start("[upstream]\napi_keys = [\"pool\"]", |_: &Seen| fine()).await;
    let sent = [
        ("x-goog-user-project", "evil"),
        ("x-goog-quota-user", "evil"),
        ("x-goog-iam-authority-selector", "evil"),
        ("x-goog-request-params", "model=evil"),
        ("cookie", "evil=1"),
        ("referer", "https://evil.example"),
        ("x-forwarded-for", "192.0.2.1"),
        ("x-goog-api-client", "google-genai-sdk/1"),
        ("user-agent", "google-genai-sdk/1"),
        ("x-server-timeout", "30"),
    ];
    let query = "alt=json&key=q&oauth_token=evil&access_token=evil&%6Bey=evil&quotaUser=evil&prettyPrint=false";
    let path = format!("{GEMINI}?{query}");
    let body = json!({"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]});
    let with = |key: (&'static str, &'static str)| [&sent[..], &[key]].concat();

    let pooled = with(("authorization", "Bearer evil"));
    assert_eq!(fake.send(Method::POST, &path, &pooled, &body).await.0, 200);
    let seen = fake.seen().remove(0);
    assert!(!format!("{seen:?}").contains("evil"), "{seen:?}");
    assert_eq!(seen.key(), "pool");
    assert!(seen.uri.ends_with(":generateContent?prettyPrint=false&alt=json"), "{}", seen.uri);
    for (name, value) in &sent[7..] {
        assert_eq!(seen.header(name), *value, "{name}");
    }

    let own = with(("x-goog-api-key", "AIzaOwn"));
    assert_eq!(fake.send(Method::POST, &path, &own, &body).await.0, 200);
    let seen = fake.seen().remove(0);
    assert_eq!((seen.key(), seen.header("x-goog-user-project")), ("AIzaOwn", "evil"));
    assert!(seen.uri.contains("quotaUser=evil") && !seen.uri.contains("token"), "{}", seen.uri);
    assert_eq!((seen.header("cookie"), seen.header("authorization")), ("", ""));
}

#[tokio::test]
async fn paths_that_name_no_model_do_not_go_upstream() {
    let fake = Fake::start("[upstream]\napi_keys = [\"pool\"]", |_: &Seen| fine()).await;
    let body = json!({"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]});
    for (name, want) in [
        ("a%2fb", 400),
        ("a%2F..%2F..%2FtunedModels%2Fx", 400),
        ("..%2ffiles", 400),
        ("..", 400),
        ("a%00b", 400),
        ("a%3Fkey=x", 400),
        ("a%23x", 400),
        ("a%252fb", 400),
        ("a;b", 400),
        ("a%5Cb", 400),
        ("a%0d%0ab", 400),
        ("%ff", 400),
        ("", 400),
        ("a/b", 404),
    ] {
        let path = format!("/v1beta/models/{name}:generateContent");
        let (status, body) = fake.post(&path, "", &body).await;
        assert_eq!((status, fake.seen().len()), (want, 0), "{name}: {body}");
        let error: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(error["error"]["code"], want, "{body}");
    }
    for name in ["a/b", "../x", "", "a%2fb", "a?b", "models/a/b"] {
        let mut ask = message("Hi.");
        ask["model"] = json!(name);
        let (status, body) = fake.post("/v1/messages", "", &ask).await;
        assert_eq!((status, fake.seen().len()), (400, 0), "{name}: {body}");
        assert!(body.contains("model"), "{body}");
    }
    assert_eq!(
        fake.post("/v1beta/models/gemini-3.6-flash%3AgenerateContent", "", &body).await.0,
        200
    );
    assert!(fake.seen()[0].uri.ends_with("/v1beta/models/gemini-3.6-flash:generateContent"));
}

#[tokio::test]
async fn a_count_or_list_that_is_an_error_is_an_error() {
    let (_, error) = refused(403, DENIED, "", "No.");
    let answer = move |seen: &Seen| {
        if seen.body.to_string().contains("without") {
            (200, json!({"promptTokensDetails": []}))
        } else {
            (200, error.clone())
        }
    };
    let fake = Fake::start("[upstream]\napi_keys = [\"pool\"]", answer).await;
    let (status, body) = fake.post("/v1/messages/count_tokens", "", &message("Hi.")).await;
    assert_eq!(status, 403, "{body}");
    assert!(body.contains("\"type\":\"error\"") && body.contains("No."), "{body}");
    let (status, body) = fake.post("/v1/messages/count_tokens", "", &message("without")).await;
    assert_eq!(status, 502, "{body}");
    assert!(body.contains("count"), "{body}");
    let (status, _, body) = fake.send(Method::GET, "/v1/models", &[], &Value::Null).await;
    assert_eq!(status, 403, "{body}");
}

#[tokio::test]
async fn values_that_google_quotes_reach_only_geminis_own_clients() {
    let quoted = "Invalid value at 'contents[0].parts[0].text' (TYPE_STRING), \"my secret words\"";
    let answer = move |_: &Seen| refused(400, "INVALID_ARGUMENT", "", quoted);
    let fake = Fake::start("[upstream]\napi_keys = [\"pool\"]", answer).await;
    for path in ["/v1/messages", "/v1/chat/completions", "/v1/messages/count_tokens"] {
        let (status, body) = fake.post(path, "", &message("Hi.")).await;
        assert_eq!(status, 400, "{body}");
        assert!(body.contains("contents[0].parts[0].text") && !body.contains("secret"), "{body}");
    }
    let native = json!({"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]});
    let (status, body) = fake.post(GEMINI, "", &native).await;
    let (_, want) = answer(&fake.seen()[0]);
    assert_eq!((status, serde_json::from_str::<Value>(&body).unwrap()), (400, want));
}

#[tokio::test]
async fn a_call_dropped_for_one_call_at_a_time_is_in_the_report() {
    let answer = |_: &Seen| {
        let call = |name: &str| json!({"functionCall": {"name": name, "args": {}}});
        let content = json!({"role": "model", "parts": [call("odd"), call("plain")]});
        let candidate = json!({"content": content, "finishReason": "STOP", "index": 0});
        (200, json!({"candidates": [candidate]}))
    };
    let fake = Fake::start("[upstream]\napi_keys = [\"pool\"]", answer).await;
    let mut ask = with_tools("Odd.");
    ask["tool_choice"] = json!({"type": "auto", "disable_parallel_tool_use": true});
    let headers = [("x-toolgate-report", "1")];
    let (status, headers, body) = fake.send(Method::POST, "/v1/messages", &headers, &ask).await;
    assert_eq!(status, 200, "{body}");
    let report = headers["x-toolgate-report"].to_str().unwrap();
    assert!(report.contains("call_dropped") && report.contains("plain"), "{report}");
}
