//! Endpoints: first requests, and errors of clients.
#![cfg(test)]

use std::io::Write as _;

use crate::harness::{ENDPOINTS, Endpoint, Lab};
use http::Method;
use serde_json::{Value, json};
use toolgate_sim::{Fault, FaultRule, Script, SimConfig, When};

fn weather() -> Value {
    json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})
}

/// R124, R125: the whole round, from tools to the final words.
#[tokio::test]
async fn r125_a_tool_round_ends_in_words() {
    let lab = Lab::new().await;
    let mut ask = json!({
        "model": "claude-3-5-sonnet-20241022", "max_tokens": 4096,
        "messages": [{"role": "user", "content": "What is the weather in Tokyo?"}],
        "tools": [{"name": "get_weather", "description": "Get weather", "input_schema": weather()}],
    });
    let first = lab.post("/v1/messages", &ask).await.json();
    assert_eq!(first["stop_reason"], "tool_use", "{first}");
    let content = first["content"].clone();
    let call =
        content.as_array().unwrap().iter().find(|block| block["type"] == "tool_use").unwrap();
    assert_eq!(call["input"], json!({"city": "Tokyo"}));
    assert!(call["id"].as_str().unwrap().starts_with("toolu_"));
    let messages = ask["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "assistant", "content": content}));
    messages.push(json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": call["id"], "content": "22 °C and clear"},
    ]}));
    let second = lab.post("/v1/messages", &ask).await.json();
    assert_eq!(second["stop_reason"], "end_turn", "{second}");
    assert!(second["content"].to_string().contains("22 °C"), "r49: {second}");
    let counters = lab.sim.counters();
    assert_eq!(counters.placeholders, 0, "c1: the real signature came back");
}

#[tokio::test]
async fn a_gemini_key_of_the_client_is_accepted() {
    let lab = Lab::new().await;
    let ask = json!({"model": "gemini-3.6-flash", "max_tokens": 10, "messages": [{"role": "user", "content": "Hi."}]});
    let auth = [("authorization", "Bearer AIzaClientKey")];
    let got = lab.send(Method::POST, "/v1/messages", &auth, ask.to_string()).await;
    assert!(got.status.is_success(), "{}", got.text());
}

/// Every broken request is named in the client's dialect.
#[tokio::test]
async fn broken_requests_are_named() {
    let lab = Lab::new().await;
    for endpoint in ENDPOINTS {
        for body in ["", "{", "[]", "{\"model\":5}", "\u{0}", "null"] {
            let got = lab.send(Method::POST, endpoint.path(), &[], body.as_bytes().to_vec()).await;
            assert_eq!(got.status.as_u16(), 400, "{endpoint:?} {body:?}: {}", got.text());
            endpoint.check_error(&got);
        }
        let got = lab.send(Method::POST, endpoint.path(), &[], vec![0xff, 0xfe]).await;
        assert_eq!(got.status.as_u16(), 400);
        assert!(got.text().contains("UTF-8"), "{}", got.text());
        let got = lab.get(endpoint.path()).await;
        assert!(got.status.is_client_error(), "{endpoint:?}");
    }
    let wrong = json!({"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": [{"type": "tool_result"}]}]});
    let got = lab.post("/v1/messages", &wrong).await;
    assert!(got.text().contains("messages[0].content[0]"), "{}", got.text());
}

/// A body that is no object is told so, in words of the client's and not of our code.
#[tokio::test]
async fn a_body_that_is_no_object_is_told_so() {
    let lab = Lab::new().await;
    let others = ["/v1/conversations", "/v1/gemini", "/v1/messages/count_tokens"];
    for path in ENDPOINTS.map(|endpoint| endpoint.path()).into_iter().chain(others) {
        for body in ["[]", "[1,2,3]", "5", "\"x\"", "null"] {
            let got = lab.send(Method::POST, path, &[], body).await;
            assert_eq!(got.status.as_u16(), 400, "{path} {body}: {}", got.text());
            let message = got.json()["error"]["message"].as_str().unwrap().to_owned();
            assert!(message.contains("expected an object"), "{path} {body}: {message}");
            assert!(!message.contains("struct"), "{path} {body}: {message}");
        }
    }
}

/// A wrong value may be a whole prompt: an error names its type, not its content.
#[tokio::test]
async fn errors_do_not_repeat_what_the_client_said() {
    let lab = Lab::new().await;
    let secret = "Secret words. ".repeat(10_000);
    let messages = |name: &str, value: Value| {
        let mut body =
            json!({"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "x"}]});
        body[name] = value;
        body
    };
    let said = |role: &str, content: Value| json!([{"role": role, "content": content}]);
    let (anthropic, chat) = ("/v1/messages", "/v1/chat/completions");
    for (path, body, wanted) in [
        (
            anthropic,
            messages("messages", json!(secret)),
            "messages: expected an array, found a string",
        ),
        (
            anthropic,
            messages("max_tokens", json!(secret)),
            "max_tokens: expected an integer, found a string",
        ),
        (
            anthropic,
            messages("top_p", json!({"a": secret})),
            "top_p: expected a number, found an object",
        ),
        (anthropic, messages("model", json!([secret])), "model: expected a string, found an array"),
        (
            anthropic,
            messages("messages", json!([secret])),
            "messages[0]: expected an object, found a string",
        ),
        (
            anthropic,
            messages("messages", said(&secret, json!("x"))),
            "messages[0].role: expected user, assistant or system",
        ),
        (chat, messages("messages", json!(secret)), "messages: expected an array, found a string"),
        (chat, messages("messages", said(&secret, json!("x"))), "messages[0].role: "),
        (chat, messages("messages", said("user", json!([secret]))), "messages[0].content[0]: "),
        (
            "/v1/responses",
            json!({"model": "m", "input": "x", "temperature": secret}),
            "temperature: expected a number, found a string",
        ),
        (
            "/v1/gemini",
            json!({"model": "m", "contents": secret}),
            "contents: expected an array or an object, found a string",
        ),
    ] {
        let got = lab.post(path, &body).await;
        assert_eq!(got.status.as_u16(), 400, "{path}: {}", got.text());
        let message = got.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains(wanted), "{path}: {message}");
        assert!(message.len() < 400, "{path}: {message}");
        assert!(message.matches("Secret").count() < 20, "{path}: {message}");
    }
}

/// Errors name the place where a client looks for it.
#[tokio::test]
async fn broken_fields_are_named() {
    let lab = Lab::new().await;
    let responses = |name: &str, value: Value| {
        ("/v1/responses", json!({"model": "m", "input": "x", name: value}))
    };
    let chat =
        |messages: Value| ("/v1/chat/completions", json!({"model": "m", "messages": messages}));
    let conversation = |name: &str, value: Value| ("/v1/conversations", json!({name: value}));
    for ((path, body), param) in [
        (responses("input", json!([])), "input"),
        (responses("input", json!("")), "input"),
        (responses("input", json!([{"role": "user", "content": ""}])), "input"),
        (responses("input", json!([["user", "hi"]])), "input[0]"),
        (responses("metadata", json!(5)), "metadata"),
        (responses("metadata", json!([])), "metadata"),
        (responses("metadata", json!({"run-id": {"deep": 1}})), "metadata.run-id"),
        (chat(json!([])), "messages"),
        (chat(json!([{"role": "user", "content": ""}])), "messages"),
        (conversation("metadata", json!(5)), "metadata"),
        (conversation("metadata", json!({"a": 1})), "metadata.a"),
        (conversation("items", json!([{"role": "user", "content": 5}])), "items[0].content"),
        (conversation("items", json!([{"role": "user", "content": "x"}, 5])), "items[1]"),
    ] {
        let got = lab.post(path, &body).await;
        assert_eq!(got.status.as_u16(), 400, "{path} {body}: {}", got.text());
        assert_eq!(got.json()["error"]["param"], param, "{path} {body}: {}", got.text());
    }
    let made = lab.post("/v1/conversations", &json!({"metadata": {"a": "b"}})).await.json();
    let path = format!("/v1/conversations/{}", made["id"].as_str().unwrap());
    let item = json!({"items": [{"role": "user", "content": 5}]});
    let got = lab.post(&format!("{path}/items"), &item).await;
    assert_eq!(got.json()["error"]["param"], "items[0].content", "{}", got.text());
    let got = lab.post(&path, &json!({"metadata": {"a": null}})).await;
    assert_eq!(got.json()["error"]["param"], "metadata.a", "{}", got.text());
    let good = json!({"model": "gemini-3.6-flash", "input": "Hi.", "metadata": {"a": "b"}});
    assert_eq!(lab.post("/v1/responses", &good).await.json()["metadata"]["a"], "b");
}

/// A missing path is an error in the caller's dialect, and not about a model.
#[tokio::test]
async fn paths_that_are_not_there_are_named() {
    let lab = Lab::new().await;
    for (method, path, header, want) in [
        (Method::GET, "/v1/nothing", ("accept", "*/*"), 404),
        (Method::DELETE, "/v1/chat/completions", ("accept", "*/*"), 405),
        (Method::GET, "/v1/nothing", ("anthropic-version", "2023-06-01"), 404),
        (Method::GET, "/v1/messages", ("accept", "*/*"), 405),
        (Method::GET, "/v1/responses", ("accept", "*/*"), 426),
        (Method::PUT, "/v1/responses/resp_1", ("accept", "*/*"), 405),
        (Method::GET, "/v1/responses/resp_1/nothing", ("accept", "*/*"), 404),
        (Method::GET, "/v1/nothing", ("x-goog-api-key", "k"), 404),
        (Method::POST, "/v1beta/nothing", ("accept", "*/*"), 404),
        (Method::GET, "/v1beta/models/m:generateContent", ("accept", "*/*"), 405),
    ] {
        let got = lab.send(method.clone(), path, &[header], "").await;
        assert_eq!(got.header("allow").is_some(), want == 405, "{method} {path}");
        assert_eq!(got.status.as_u16(), want, "{method} {path}: {}", got.text());
        let id = got.header("x-toolgate-request-id").unwrap().to_owned();
        assert!(got.text().contains(&id), "{method} {path}: {}", got.text());
        assert!(!got.text().contains("model_not_found"), "{method} {path}: {}", got.text());
        assert!(got.json()["error"]["message"].is_string(), "{}", got.text());
    }
}

/// R146: calls that go through as they are count as delivered.
#[tokio::test]
async fn r146_calls_of_gemini_clients_are_counted() {
    let lab = Lab::new().await;
    let ask = json!({
        "contents": [{"role": "user", "parts": [{"text": "What is the weather in Tokyo?"}]}],
        "tools": [{"functionDeclarations": [{"name": "get_weather", "parametersJsonSchema": weather()}]}],
    });
    for verb in ["generateContent", "streamGenerateContent?alt=sse", "streamGenerateContent"] {
        let got = lab.post(&format!("/v1beta/models/gemini-3.6-flash:{verb}"), &ask).await;
        assert!(got.text().contains("functionCall"), "{}", got.text());
    }
    let metrics = lab.get("/metrics").await.text();
    for line in [
        "tool_calls_total 3",
        "tool_calls_ok_total 3",
        "tool_calls_failed_total 0",
        "tool_uses_total{tool=\"get_weather\"} 3",
    ] {
        assert!(metrics.contains(&format!("toolgate_{line}\n")), "{line} in {metrics}");
    }
}

/// R168: a browser gets a page that shows the use of each tool; other clients get text. It brings
/// all that it needs.
#[tokio::test]
async fn r168_the_dashboard_is_for_browsers() {
    let lab = Lab::new().await;
    let accept = [("accept", "text/html,application/xhtml+xml,*/*;q=0.8")];
    let page = lab.send(Method::GET, "/", &accept, "").await;
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    assert!(page.header("content-security-policy").unwrap().starts_with("default-src 'none'"));
    let text = page.text();
    assert!(text.contains("found.tool_uses") && !text.contains("://"), "{text}");
    let text = lab.get("/").await;
    assert_eq!(text.header("content-type"), Some("text/plain; charset=utf-8"));
    assert!(text.text().contains("POST /v1/messages"), "{}", text.text());
}

/// Tools beyond a bound are counted as one: clients name them as they like, and at any length.
#[tokio::test]
async fn r168_names_of_tools_are_bounded() {
    let calls = (0..300).map(|at| format!("t{at}")).chain(["x".repeat(1 << 20)]);
    let script = calls.fold(Script::new(), |it, name| it.call(name, json!({})));
    let lab = Lab::with(SimConfig::scripted(script), "").await;
    let ask = json!({"model": "gemini-3.6-flash", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi."}]});
    assert!(lab.post("/v1/messages", &ask).await.status.is_success());
    let metrics = lab.get("/metrics").await.text();
    assert_eq!(metrics.matches("toolgate_tool_uses_total{").count(), 257);
    assert!(metrics.contains("toolgate_tool_uses_total{tool=\"(others)\"} 45\n"), "{metrics}");
    let script = Script::new().call("x".repeat(1 << 20), json!({}));
    let lab = Lab::with(SimConfig::scripted(script), "").await;
    assert!(lab.post("/v1/messages", &ask).await.status.is_success());
    let metrics = lab.get("/metrics").await.text();
    assert!(metrics.contains("toolgate_tool_uses_total{tool=\"(others)\"} 1\n"));
    assert!(metrics.len() < 100_000, "{}", metrics.len());
}

/// K5: a count that Gemini refuses is refused with its own status.
#[tokio::test]
async fn k5_counts_relay_the_real_status() {
    for (code, want, kind) in [
        (429, 429, "rate_limit_error"),
        (503, 529, "overloaded_error"),
        (500, 500, "api_error"),
        (403, 403, "permission_error"),
    ] {
        let fault = Fault::Status {
            code,
            message: String::new(),
            retry_after: None,
            quota: None,
            html: false,
        };
        let faults = vec![FaultRule { fault, when: When::Always }];
        let lab =
            Lab::with(SimConfig { faults, ..SimConfig::default() }, "[upstream]\nretries = 0")
                .await;
        let count = json!({"model": "claude-opus-4-5", "messages": [{"role": "user", "content": "How long?"}]});
        let got = lab.post("/v1/messages/count_tokens", &count).await;
        assert_eq!(got.status.as_u16(), want, "{}", got.text());
        assert_eq!(got.json()["error"]["type"], kind, "{}", got.text());
        assert_eq!(got.header("retry-after").is_some(), code == 429, "{code}");
        let count = json!({"contents": [{"role": "user", "parts": [{"text": "How long?"}]}]});
        let got = lab.post("/v1beta/models/gemini-3.6-flash:countTokens", &count).await;
        assert_eq!(got.status.as_u16(), code, "Gemini's own word goes through: {}", got.text());
        assert_eq!(got.json()["error"]["code"], code);
    }
}

/// A body over the limit is 413 in the dialect.
#[tokio::test]
async fn large_bodies_are_refused() {
    let lab = Lab::with(SimConfig::default(), "[limits]\nbody_mib = 1").await;
    for endpoint in ENDPOINTS {
        let got = lab.send(Method::POST, endpoint.path(), &[], vec![b' '; (1 << 20) + 1]).await;
        assert_eq!(got.status.as_u16(), 413, "{}", got.text());
        endpoint.check_error(&got);
    }
}

/// A client that is refused before its body was read gets the error, however long the body is.
#[tokio::test]
async fn a_refusal_reaches_whoever_is_still_sending() {
    let settings = "[limits]\nbody_mib = 1\n[clients]\nkeys = [\"right-key\"]";
    let lab = Lab::with(SimConfig::default(), settings).await;
    let long = vec![b' '; 8 << 20];
    for _ in 0..4 {
        for (path, key, status) in [
            ("/v1/messages", "wrong", 401),
            ("/v1/messages", "right-key", 413),
            ("/v1/nowhere", "right-key", 404),
            ("/api/event_logging/batch", "right-key", 200),
        ] {
            let headers = [("x-api-key", key), ("anthropic-version", "2023-06-01")];
            let got = lab.send(Method::POST, path, &headers, long.clone()).await;
            assert_eq!(got.status.as_u16(), status, "{path} {}", got.text());
        }
    }
}

/// Bodies may be compressed; the limit counts decompressed bytes.
#[tokio::test]
async fn compressed_bodies_are_read() {
    let lab = Lab::with(SimConfig::default(), "[limits]\nbody_mib = 1").await;
    let gemini = json!({"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]});
    let endpoints = ENDPOINTS.map(|endpoint| (endpoint.path(), endpoint.ask(false)));
    let native = ("/v1beta/models/gemini-3.6-flash:generateContent", gemini);
    for (path, body) in endpoints.into_iter().chain([native]) {
        let body = body.to_string();
        for (name, packed) in [
            ("gzip", gzip(body.as_bytes())),
            ("GZIP", gzip(body.as_bytes())),
            ("deflate", deflate(body.as_bytes())),
            ("zstd", zstd(body.as_bytes())),
            ("identity", body.clone().into_bytes()),
        ] {
            let got = lab.send(Method::POST, path, &[("content-encoding", name)], packed).await;
            assert!(got.status.is_success(), "{path} {name}: {}", got.text());
        }
    }
    let bomb = vec![b' '; 2 << 20];
    for endpoint in ENDPOINTS {
        let send = |name, body| {
            let (lab, headers) = (&lab, [("content-encoding", name)]);
            async move { lab.send(Method::POST, endpoint.path(), &headers, body).await }
        };
        for (name, body, want) in [
            ("br", b"{}".to_vec(), 415),
            ("gzip, zstd", b"{}".to_vec(), 415),
            ("gzip", b"{}".to_vec(), 400),
            ("zstd", b"{}".to_vec(), 400),
            ("deflate", Vec::new(), 400),
            ("gzip", gzip(&bomb), 413),
            ("deflate", deflate(&bomb), 413),
            ("zstd", zstd(&bomb), 413),
        ] {
            let got = send(name, body).await;
            assert_eq!(got.status.as_u16(), want, "{endpoint:?} {name}: {}", got.text());
            endpoint.check_error(&got);
        }
    }
}

/// All of a compressed body is read, or none of it.
#[tokio::test]
async fn nothing_of_a_compressed_body_is_dropped_silently() {
    let lab = Lab::new().await;
    let body = ENDPOINTS[0].ask(false).to_string();
    let (one, two) = body.as_bytes().split_at(body.len() / 2);
    let both = |encode: fn(&[u8]) -> Vec<u8>| [encode(one), encode(two)].concat();
    let skipped = [&[0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3][..], &zstd(body.as_bytes())];
    let mut cut_skip = zstd(body.as_bytes());
    cut_skip.extend([0x50, 0x2a, 0x4d, 0x18, 9, 0, 0, 0, 1]);
    let garbage = |mut bytes: Vec<u8>| {
        bytes.extend(b"more");
        bytes
    };
    let cut = |mut bytes: Vec<u8>| {
        bytes.truncate(bytes.len() - 5);
        bytes
    };
    let whole = body.as_bytes();
    for (name, packed, want) in [
        ("zstd", both(zstd), 200),
        ("gzip", both(gzip), 200),
        ("zstd", skipped.concat(), 200),
        ("zstd", cut_skip, 400),
        ("zstd", garbage(zstd(whole)), 400),
        ("gzip", garbage(gzip(whole)), 400),
        ("deflate", garbage(deflate(whole)), 400),
        ("deflate", both(deflate), 400),
        ("zstd", cut(zstd(whole)), 400),
        ("gzip", cut(gzip(whole)), 400),
        ("deflate", cut(deflate(whole)), 400),
        ("gzip", Vec::new(), 400),
        ("zstd", Vec::new(), 400),
    ] {
        let length = packed.len();
        let got = lab
            .send(Method::POST, ENDPOINTS[0].path(), &[("content-encoding", name)], packed)
            .await;
        assert_eq!(got.status.as_u16(), want, "{name} {length}: {}", got.text());
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

/// With client keys, other clients are refused; so are DNS names that are not the gateway's.
#[tokio::test]
async fn strangers_stay_outside() {
    let lab = Lab::with(SimConfig::default(), "[clients]\nkeys = [\"client-1\"]").await;
    for endpoint in ENDPOINTS {
        let body = endpoint.ask(false).to_string();
        let got = lab
            .send(Method::POST, endpoint.path(), &[("x-api-key", "client-2")], body.clone())
            .await;
        assert_eq!(got.status.as_u16(), 401, "{}", got.text());
        endpoint.check_error(&got);
        let got = lab
            .send(Method::POST, endpoint.path(), &[("x-api-key", "client-1")], body.clone())
            .await;
        assert!(got.status.is_success(), "{}", got.text());
        let rebound = [("x-api-key", "client-1"), ("host", "evil.example")];
        let got = lab.send(Method::POST, endpoint.path(), &rebound, body).await;
        assert_eq!(got.status.as_u16(), 403, "{}", got.text());
    }
}

/// R133: an invalid schema is named by its place in the client's body.
#[tokio::test]
async fn r133_a_schema_that_is_wrong_is_named_by_its_place() {
    let lab = Lab::with(SimConfig::default(), "strict_tool_validation = true").await;
    for (endpoint, place) in [
        (Endpoint::Anthropic, "tools[0].input_schema.properties.a.type"),
        (Endpoint::Chat, "tools[0].function.parameters.properties.a.type"),
        (Endpoint::Responses, "tools[0].parameters.properties.a.type"),
    ] {
        let mut ask = endpoint.ask(false);
        let tool = &mut ask["tools"][0];
        let schema = match endpoint {
            Endpoint::Anthropic => &mut tool["input_schema"],
            Endpoint::Chat => &mut tool["function"]["parameters"],
            Endpoint::Responses => &mut tool["parameters"],
        };
        *schema = json!({"type": "object", "properties": {"a": {"type": "strin"}}});
        let got = lab.post(endpoint.path(), &ask).await;
        assert_eq!(got.status.as_u16(), 400, "{endpoint:?} {}", got.text());
        let error = &got.json()["error"];
        assert!(error["message"].as_str().unwrap().starts_with(place), "{endpoint:?} {error}");
        match endpoint {
            Endpoint::Anthropic => {}
            Endpoint::Chat | Endpoint::Responses => assert_eq!(error["param"], place, "{error}"),
        }
    }
}

/// R140: off means that tools are not forwarded.
#[tokio::test]
async fn r140_tool_calling_can_be_switched_off() {
    let lab = Lab::with(SimConfig::default(), "enable_tool_calling = false").await;
    for endpoint in ENDPOINTS {
        let got = lab.post(endpoint.path(), &endpoint.ask(false)).await;
        assert!(got.status.is_success(), "{}", got.text());
    }
    assert!(lab.sim.requests().iter().all(|seen| seen.json().get("tools").is_none()));
}

/// Models are listed in the client's dialect; counts come from Gemini.
#[tokio::test]
async fn models_and_counts() {
    let lab = Lab::new().await;
    let openai = lab.get("/v1/models").await.json();
    assert_eq!(openai["object"], "list", "{openai}");
    let version = [("anthropic-version", "2023-06-01")];
    let anthropic = lab.send(Method::GET, "/v1/models", &version, "").await.json();
    assert_eq!(anthropic["data"][0]["type"], "model", "{anthropic}");
    let gemini = lab.get("/v1beta/models").await.json();
    assert!(gemini["models"].is_array(), "{gemini}");
    let count = json!({"model": "claude-opus-4-5", "messages": [{"role": "user", "content": "How long is this?"}], "system": "Be brief."});
    let got = lab.post("/v1/messages/count_tokens", &count).await.json();
    assert!(got["input_tokens"].as_u64().unwrap() > 0, "{got}");
    for path in ["/healthz", "/readyz", "/metrics", "/"] {
        assert!(lab.get(path).await.status.is_success(), "{path}");
    }
}

/// Losses are told when they are asked for.
#[tokio::test]
async fn losses_are_reported_on_request() {
    let lab = Lab::new().await;
    let ask = json!({"model": "gemini-3.6-flash", "max_tokens": 10, "mystery": 1, "messages": [{"role": "user", "content": "Hi."}]});
    let got = lab
        .send(Method::POST, "/v1/messages", &[("x-toolgate-report", "1")], ask.to_string())
        .await;
    let report = got.header("x-toolgate-report").unwrap();
    assert!(report.contains("mystery"), "{report}");
    let ask = json!({"model": "gemini-3.6-flash", "input": [{"role": "user", "content": "Hi.", "mystery": 1}]});
    let got = lab
        .send(Method::POST, "/v1/responses", &[("x-toolgate-report", "1")], ask.to_string())
        .await;
    let report = got.header("x-toolgate-report").unwrap();
    assert!(report.contains("input[0].mystery"), "{report}");
}

/// A header has little room: long losses are shortened, and all are named.
#[tokio::test]
async fn a_long_loss_leaves_room_for_the_others() {
    let lab = Lab::new().await;
    let reported = async |body: Value| {
        let headers = [("x-toolgate-report", "1")];
        let got = lab.send(Method::POST, "/v1/messages", &headers, body.to_string()).await;
        assert_eq!(got.status.as_u16(), 200, "{}", got.text());
        let report = got.header("x-toolgate-report").unwrap();
        assert!(report.len() <= 6000 && report.is_ascii(), "{report}");
        let losses = serde_json::from_str::<Vec<Value>>(report).unwrap();
        (losses, got.header("x-toolgate-losses").unwrap().parse::<usize>().unwrap())
    };
    for long in ["x".repeat(7000), "\u{e9}\u{1f600}".repeat(2000)] {
        let (losses, count) = reported(json!({
            "model": "gemini-3.6-flash", "max_tokens": 10, "speed": "fast", &long: 1,
            "messages": [{"role": "user", "content": [{"type": &long}, {"type": "text", "text": "Hi."}]}],
        }))
        .await;
        assert_eq!((losses.len(), count), (3, 3), "{losses:?}");
        assert!(losses.iter().any(|loss| loss["at"] == "speed"), "{losses:?}");
        let block = losses.iter().find(|loss| loss["at"] == "messages[0].content[0]").unwrap();
        let detail = block["detail"].as_str().unwrap();
        assert!(detail.contains('\u{2026}') && detail.ends_with("kept as text"), "{detail}");
    }
    let mut body = json!({"model": "gemini-3.6-flash", "max_tokens": 10, "messages": [{"role": "user", "content": "Hi."}]});
    for number in 0..1000 {
        body[format!("mystery{number}")] = json!(1);
    }
    let (losses, count) = reported(body).await;
    assert_eq!(count, 1000);
    assert!(losses.len() > 60, "{}", losses.len());
    assert_eq!(losses[0]["at"], "mystery0");
}

/// E1: a resumed gemini-cli sends every result twice. Older models refuse that, newer ones answer
/// with nothing; either way it is mended.
#[tokio::test]
async fn e1_doubled_results_of_gemini_cli_are_mended() {
    for model in ["gemini-2.5-flash", "gemini-3.6-flash"] {
        let lab = Lab::new().await;
        let call = json!({"functionCall": {"id": "a1", "name": "read", "args": {"path": "x"}}, "thoughtSignature": "skip_thought_signature_validator"});
        let answer = json!({"functionResponse": {"id": "a1", "name": "read", "response": {"output": "words"}}});
        let ask = json!({
            "contents": [
                {"role": "user", "parts": [{"text": "Read x."}]},
                {"role": "model", "parts": [call]},
                {"role": "user", "parts": [answer.clone(), answer]},
            ],
            "tools": [{"functionDeclarations": [{"name": "read", "parametersJsonSchema": {"type": "object", "properties": {"path": {"type": "string"}}}}]}],
        });
        for verb in ["generateContent", "streamGenerateContent?alt=sse", "streamGenerateContent"] {
            let got = lab.post(&format!("/v1beta/models/{model}:{verb}"), &ask).await;
            assert!(got.status.is_success(), "{model} {verb}: {}", got.text());
            assert!(got.text().contains("\"text\""), "{model} {verb}: {}", got.text());
            if verb == "streamGenerateContent" {
                assert_eq!(got.headers["content-type"], "application/json", "{model}");
                assert!(got.json().is_array(), "{model}: {}", got.text());
            }
        }
        assert_eq!(counted(&lab).await, ["{endpoint=\"gemini\",outcome=\"ok\"} 3"], "{model}");
    }
}

/// Requests by endpoint and outcome, as they are counted.
async fn counted(lab: &Lab) -> Vec<String> {
    let text = lab.get("/metrics").await.text();
    let lines = text.lines().filter_map(|line| line.strip_prefix("toolgate_requests_total"));
    lines.map(str::to_owned).collect()
}

/// A9: tools that Gemini refuses cost one refusal, not one each turn, and each turn counts once.
#[tokio::test]
async fn a9_refused_tools_of_a_gemini_client_are_refused_once() {
    let lab = Lab::new().await;
    let schema = json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {"path": {"type": "string"}}});
    let ask = |words: &str| {
        json!({
            "contents": [{"role": "user", "parts": [{"text": words}]}],
            "tools": [{"functionDeclarations": [{"name": "read", "parameters": schema}]}],
        })
    };
    for (number, verb) in ["generateContent", "streamGenerateContent?alt=sse"].iter().enumerate() {
        let path = format!("/v1beta/models/gemini-3.6-flash:{verb}");
        let got = lab.post(&path, &ask(&format!("Read file {number}."))).await;
        assert!(got.status.is_success(), "{}", got.text());
        assert_eq!(lab.sim.counters().refusals, 1, "{verb}");
    }
    assert_eq!(counted(&lab).await, ["{endpoint=\"gemini\",outcome=\"ok\"} 2"]);
    // Other tools are another matter: they go through as they are.
    let good = json!({"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]});
    let got = lab.post("/v1beta/models/gemini-3.6-flash:generateContent", &good).await;
    assert!(got.status.is_success(), "{}", got.text());
    assert_eq!(lab.sim.requests().last().unwrap().json(), good);
}

/// C11: a client of Gemini's own changes models in the middle. The first one's signatures mean nothing
/// to the second, which refuses them; the calls go on with the placeholder, and its own as they are.
#[tokio::test]
async fn c11_another_models_signatures_are_left_out_when_gemini_refuses_them() {
    let lab = Lab::new().await;
    let mut ask = json!({
        "contents": [{"role": "user", "parts": [{"text": "What is the weather in Oslo?"}]}],
        "tools": [{"functionDeclarations": [{"name": "get_weather", "parametersJsonSchema": {
            "type": "object", "properties": {"city": {"type": "string"}},
        }}]}],
    });
    let step = async |ask: &Value, model: &str| {
        let got = lab.post(&format!("/v1beta/models/{model}:generateContent"), ask).await;
        assert!(got.status.is_success(), "{model}: {}", got.text());
        got.json()["candidates"][0]["content"].clone()
    };
    let turn = step(&ask, "gemini-3.6-flash").await;
    let call = turn["parts"][0]["functionCall"].clone();
    let response = json!({"id": call["id"], "name": call["name"], "response": {"output": "rain"}});
    let contents = ask["contents"].as_array_mut().unwrap();
    contents.extend([turn, json!({"role": "user", "parts": [{"functionResponse": response}]})]);
    let words = step(&ask, "gemini-3.8-flash").await;
    assert!(words["parts"][0]["text"].as_str().unwrap().contains("rain"), "{words}");
    let seen = lab.sim.requests();
    assert_eq!(seen.len(), 3, "refused once, then mended");
    assert_eq!(seen[1].refusal.as_deref(), Some("Invalid thought signature."));
    let sent = seen[2].parts();
    assert_eq!(sent[1].1["thoughtSignature"], "skip_thought_signature_validator");
}

/// H2: a turn of nothing but thoughts. A whole answer is asked for again; a stream whose thoughts are
/// on the screen already ends in an error of Google's form, where it would look like a success.
#[tokio::test]
async fn h2_thoughts_alone_are_no_answer_to_geminis_clients() {
    let script = || {
        let spoilt = Script::new().thought("Hm.").fault(Fault::ThinkingOnly).finish();
        SimConfig::scripted(spoilt.thought("So.").text("At last.").finish())
    };
    let ask = json!({
        "contents": [{"role": "user", "parts": [{"text": "Well?"}]}],
        "generationConfig": {"thinkingConfig": {"includeThoughts": true}},
    });
    let lab = Lab::with(script(), "").await;
    let got = lab.post("/v1beta/models/gemini-3.6-flash:generateContent", &ask).await;
    assert!(got.text().contains("At last."), "{}", got.text());
    let lab = Lab::with(script(), "").await;
    let path = "/v1beta/models/gemini-3.6-flash:streamGenerateContent?alt=sse";
    let text = lab.post(path, &ask).await.text();
    let last = text.trim_end().rsplit("\r\n\r\n").next().unwrap();
    let last: Value = serde_json::from_str(last).unwrap();
    assert!(last["error"]["code"].as_u64().unwrap() >= 500, "{last}");
    assert!(text.contains("Hm.") && !text.contains("finishReason"), "{text}");
    // The same in an array.
    let lab = Lab::with(script(), "").await;
    let path = "/v1beta/models/gemini-3.6-flash:streamGenerateContent";
    let got = lab.post(path, &ask).await;
    let last = got.json().as_array().unwrap().last().unwrap().clone();
    assert!(last["error"]["code"].as_u64().unwrap() >= 500, "{last}");
    assert!(got.text().contains("Hm.") && !got.text().contains("finishReason"), "{}", got.text());
}

/// A stream that breaks in the middle of an event ends before it: the rest can be read, and says
/// that it is not all.
#[tokio::test]
async fn d12_a_cut_gemini_stream_ends_with_a_whole_event() {
    let event = |text: &str| {
        let parts = json!([{"text": text}]);
        format!(
            "data: {}\r\n\r\n",
            json!({"candidates": [{"content": {"role": "model", "parts": parts}}]})
        )
    };
    let (first, second) = (event("one"), event("two"));
    let ask = json!({"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]});
    let path = "/v1beta/models/gemini-3.6-flash:streamGenerateContent?alt=sse";
    let whole = format!("{first}{second}");
    for cut in first.len()..whole.len() {
        let lab = Lab::replaying(&[(200, "text/event-stream", &whole[..cut])], "").await;
        // An event that lacks but its empty line is there.
        let want = if cut < whole.len() - 4 { &first } else { &whole };
        let text = lab.post(path, &ask).await.text();
        let error = text.strip_prefix(want.as_str()).and_then(|rest| rest.strip_prefix("data: "));
        let (framed, bare) = error.and_then(|error| error.split_once("\r\n\r\n")).unwrap();
        assert!(
            framed == bare && bare.starts_with("{\"error\":{\"code\":503,"),
            "cut at {cut}: {text}"
        );
    }
}

/// So does an array: it can be read, wherever it breaks, and says that it is not all.
#[tokio::test]
async fn d12_a_cut_gemini_array_ends_with_an_error() {
    let element = |part: Value| {
        json!({"candidates": [{"content": {"role": "model", "parts": [part]}}]}).to_string()
    };
    let ask = json!({"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]});
    let path = "/v1beta/models/gemini-3.6-flash:streamGenerateContent";
    let first = format!("[{}", element(json!({"text": "one"})));
    let whole = format!("{first}\n,\r\n{}\n]", element(json!({"text": "t]w}o"})));
    for cut in first.len()..=whole.len() {
        let lab = Lab::replaying(&[(200, "application/json", &whole[..cut])], "").await;
        let got = lab.post(path, &ask).await.json();
        let elements = got.as_array().unwrap();
        let count = if cut < whole.len() - 2 { 1 } else { 2 };
        assert_eq!(elements.len(), count + 1, "cut at {cut}: {got}");
        assert_eq!(elements[count]["error"]["code"], 503, "cut at {cut}: {got}");
    }
    // A turn with calls goes on from them.
    let call = json!({"functionCall": {"id": "1", "name": "list", "args": {}}});
    let said = format!("[{}\n,\r\n{{", element(call));
    let lab = Lab::replaying(&[(200, "application/json", &said)], "").await;
    let got = lab.post(path, &ask).await.json();
    assert_eq!(got.as_array().unwrap().len(), 1, "{got}");
}

/// C1: a client of Gemini's own that drops signatures is refused once; then they come from the store,
/// and so they do where it goes on in another dialect.
#[tokio::test]
async fn c1_signatures_that_geminis_clients_drop_are_kept() {
    let mut script = Script::new();
    for n in 0..4 {
        script = script.call("step", json!({"n": n})).finish();
    }
    let lab = Lab::with(SimConfig::scripted(script.text("Done.")), "").await;
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let mut contents = vec![json!({"role": "user", "parts": [{"text": "Take steps."}]})];
    let mut messages = vec![json!({"role": "user", "content": "Take steps."})];
    for verb in ["generateContent", "streamGenerateContent", "generateContent", "generateContent"] {
        let tools =
            json!([{"functionDeclarations": [{"name": "step", "parametersJsonSchema": schema}]}]);
        let ask = json!({"contents": contents, "tools": tools});
        let path = format!("/v1beta/models/gemini-3.6-flash:{verb}");
        let got = lab.post(&path, &ask).await.json();
        let got = if got.is_array() { got[0].clone() } else { got };
        let call = &got["candidates"][0]["content"]["parts"][0]["functionCall"];
        let call = json!({"id": call["id"], "name": call["name"], "args": call["args"]});
        let response = json!({"id": call["id"], "name": "step", "response": {"output": "ok"}});
        contents.push(json!({"role": "model", "parts": [{"functionCall": call}]}));
        contents.push(json!({"role": "user", "parts": [{"functionResponse": response}]}));
        let id = format!("call-{}", call["args"]["n"]);
        let function = json!({"name": "step", "arguments": call["args"].to_string()});
        let call = json!({"id": id, "type": "function", "function": function});
        messages.push(json!({"role": "assistant", "tool_calls": [call]}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": "ok"}));
    }
    let tools = json!([{"type": "function", "function": {"name": "step", "parameters": schema}}]);
    let ask = json!({"model": "gemini-3.6-flash", "messages": messages, "tools": tools});
    let got = lab.post("/v1/chat/completions", &ask).await;
    assert!(got.text().contains("Done."), "{}", got.text());
    let counters = lab.sim.counters();
    let seen = (counters.refusals, counters.placeholders, counters.signatures, counters.doubled);
    assert_eq!(seen, (1, 0, 10, 0), "{counters:?}");
}
