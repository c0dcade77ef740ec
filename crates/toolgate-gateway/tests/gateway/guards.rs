//! Access control, redaction and the log.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use crate::harness::{ENDPOINTS, Endpoint, Lab};
use http::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use toolgate_gateway::config::{Config, Sources};
use toolgate_gateway::{Embedded, Options, Running, start, start_with};
use toolgate_sim::{Fault, Script, Sim, SimConfig};

const GEMINI: &str = "/v1beta/models/gemini-3.6-flash:generateContent";

fn plain() -> Value {
    json!({"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]})
}

fn config(file: &str) -> Config {
    let file = format!("listen = \"127.0.0.1:0\"\nlog = \"off\"\n{file}");
    let sources = Sources { file: Some(("test.toml", &file)), env: &|_| None, flags: &[] };
    Config::resolve(&sources).unwrap()
}

/// A gateway with a simulator in this process.
async fn simulated(config: Config) -> Running {
    let simulator = Sim::new(SimConfig::default());
    let simulator = Some(Embedded::new(move || simulator.connect()));
    start_with(config, Options { simulator, ..Options::default() }).await.unwrap()
}

/// Only the gateway's own pages may call it, over HTTP and over a WebSocket.
#[tokio::test]
async fn foreign_origins_are_refused_at_every_endpoint() {
    let lab = Lab::new().await;
    for origin in [
        "null",
        "https://evil.example",
        "http://localhost:3000",
        "http://evil.localhost",
        "file://",
        "chrome-extension://abc",
    ] {
        let headers = [("origin", origin), ("content-type", "text/plain")];
        for path in ["/v1/messages", "/v1/responses", GEMINI, "/metrics"] {
            let got = lab.send(Method::POST, path, &headers, plain().to_string()).await;
            assert_eq!(got.status.as_u16(), 403, "{path} {origin}");
        }
        assert_eq!(upgrade(&lab, origin).await, 403, "{origin}");
    }
    let own = format!("http://{}", lab.gateway.addr);
    let got = lab.send(Method::POST, GEMINI, &[("origin", &own)], plain().to_string()).await;
    assert!(got.status.is_success(), "{}", got.text());
    assert_eq!(upgrade(&lab, &own).await, 101);
}

/// The status of a request for a WebSocket by a page of this origin.
async fn upgrade(lab: &Lab, origin: &str) -> u16 {
    let headers = [
        ("origin", origin),
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    let mut request = http::Request::get(format!("{}/v1/responses", lab.url));
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let request = request.body(http_body_util::Full::default()).unwrap();
    lab.http.request(request).await.unwrap().status().as_u16()
}

/// Law 8: Google repeats keys in some errors; clients and logs do not get them.
#[tokio::test]
async fn law8_a_key_in_an_error_goes_nowhere() {
    let key = format!("AIza{}", "q".repeat(35));
    let message = format!("Permission denied: Consumer 'api_key:{key}' has been suspended.");
    let error = json!({"error": {"code": 403, "message": message, "status": "PERMISSION_DENIED"}})
        .to_string();
    let lab = Lab::replaying(&[(403, "application/json", &error)], "").await;
    for stream in [true, false] {
        for endpoint in ENDPOINTS {
            let got = lab.post(endpoint.path(), &endpoint.ask(stream)).await;
            assert_eq!(got.status.as_u16(), 403, "{endpoint:?}");
            assert!(!got.text().contains(&key) && got.text().contains("suspended"), "{endpoint:?}");
        }
    }
    let native = json!({"model": "gemini-3.6-flash", "input": "Hi."});
    for (path, ask) in [(GEMINI, plain()), ("/v1/gemini", native.clone())] {
        let got = lab.post(path, &ask).await;
        assert!(!got.text().contains(&key) && got.text().contains("suspended"), "{}", got.text());
    }
    // In the middle of a stream, too.
    let words = json!({"candidates": [{"content": {"parts": [{"text": "Words."}]}}]});
    let stream = format!("data: {words}\r\n\r\ndata: {error}\r\n\r\n");
    let lab = Lab::replaying(&[(200, "text/event-stream", &stream)], "").await;
    let streamed = json!({"model": "gemini-3.6-flash", "input": "Hi.", "stream": true});
    let path = "/v1beta/models/gemini-3.6-flash:streamGenerateContent?alt=sse";
    for (path, ask) in [(path, plain()), ("/v1/gemini", streamed)] {
        let got = lab.post(path, &ask).await;
        assert!(!got.text().contains(&key) && got.text().contains("suspended"), "{}", got.text());
        assert!(got.text().contains("Words."), "{}", got.text());
    }
}

/// A new configuration leads where it says, and nowhere else.
#[tokio::test]
async fn a_reload_changes_the_upstream() {
    let real = Sim::start(SimConfig::default()).await.unwrap();
    let developer =
        format!("[upstream]\nkind = \"developer\"\nurl = \"{}\"\napi_keys = [\"k\"]", real.url());
    let lab = Lab::of(real, simulated(config("")).await);
    for (file, asked) in [("", 0), (developer.as_str(), 1), ("", 1)] {
        lab.gateway.reload(config(file)).unwrap();
        assert!(lab.post(GEMINI, &plain()).await.status.is_success());
        assert_eq!(lab.sim.requests().len(), asked, "{file}");
    }

    let other = start(config(&developer)).await.unwrap();
    let why = other.reload(config("")).unwrap_err().to_string();
    assert!(why.contains("no built-in simulator"), "{why}");
}

/// The port that is open decides, not the one that the new file names.
#[tokio::test]
async fn a_reload_never_leaves_an_open_port_without_keys() {
    let resolved = |listen: &str, keys: &str| {
        let file = format!("listen = \"{listen}\"\n[clients]\nkeys = [{keys}]");
        let sources = Sources { file: Some(("test.toml", &file)), env: &|_| None, flags: &[] };
        Config::resolve(&sources).unwrap()
    };
    let sim = Sim::start(SimConfig::default()).await.unwrap();
    let mut lab = Lab::of(sim, simulated(resolved("0.0.0.0:0", "\"client-1\"")).await);
    lab.url = format!("http://127.0.0.1:{}", lab.gateway.addr.port());
    let with = async |key: &'static str| {
        // A name that is not loopback's: the port is open to those, whatever the file says.
        let headers = [("host", "gate.example"), ("x-api-key", key)];
        lab.send(Method::POST, GEMINI, &headers, plain().to_string()).await.status.as_u16()
    };
    let why = lab.gateway.reload(resolved("127.0.0.1:0", "")).unwrap_err().to_string();
    assert!(why.contains("listens on 0.0.0.0") && why.contains("clients.keys"), "{why}");
    assert_eq!((with("").await, with("client-1").await), (401, 200), "it is as it was");
    lab.gateway.reload(resolved("127.0.0.1:0", "\"client-2\"")).unwrap();
    assert_eq!((with("client-1").await, with("client-2").await), (401, 200));
}

/// Clients that are refused are logged.
#[tokio::test]
async fn refusals_at_the_door_are_counted() {
    let lab = Lab::with(SimConfig::default(), "[clients]\nkeys = [\"right-key\"]").await;
    lab.send(Method::POST, "/v1/messages", &[("x-api-key", "wrong")], "{}").await;
    lab.send(Method::POST, "/v1/nowhere", &[("x-api-key", "right-key")], "{}").await;
    lab.send(Method::POST, "/v1/messages", &[("origin", "https://evil.example")], "{}").await;
    let long = [("x-api-key", "right-key"), ("x-long", &"x".repeat(70_000))];
    lab.send(Method::POST, "/v1/messages", &long, "{}").await;
    let metrics = lab.send(Method::GET, "/metrics", &[("x-api-key", "right-key")], "").await.text();
    for kind in ["authentication", "not_found", "permission", "too_large"] {
        let line = format!("toolgate_failures_total{{kind=\"{kind}\"}} 1\n");
        assert!(metrics.contains(&line), "{line} in {metrics}");
    }
    // All of them are the client's mistake.
    for (endpoint, count) in [("anthropic", 3), ("chat", 1)] {
        let line = format!(
            "toolgate_requests_total{{endpoint=\"{endpoint}\",outcome=\"rejected\"}} {count}\n"
        );
        assert!(metrics.contains(&line), "{line} in {metrics}");
    }
    assert!(metrics.contains("toolgate_active_requests 0\n"), "{metrics}");
}

/// Admitted requests are counted, also while their bodies are on the way.
#[tokio::test]
async fn requests_that_are_read_are_active() {
    let lab = Lab::with(SimConfig::default(), "[limits]\nconcurrency = 1").await;
    let mut client = tokio::net::TcpStream::connect(lab.gateway.addr).await.unwrap();
    let head = "POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\nexpect: 100-continue\r\n\r\n";
    client.write_all(head.as_bytes()).await.unwrap();
    let mut go_on = [0; 25];
    client.read_exact(&mut go_on).await.unwrap();
    assert_eq!(lab.post(GEMINI, &plain()).await.status.as_u16(), 503, "there is no room");
    let metrics = lab.get("/metrics").await.text();
    assert!(metrics.contains("toolgate_active_requests 1\n"), "{metrics}");
    drop(client);
    while !lab.get("/metrics").await.text().contains("toolgate_active_requests 0\n") {
        tokio::task::yield_now().await;
    }
}

/// Every error names the request, also within a stream.
#[tokio::test]
async fn errors_within_a_stream_name_the_request() {
    let script = Script::new()
        .text("Words that are seen. ".repeat(20))
        .fault(Fault::Cut { after: 700 })
        .times(0);
    let lab = Lab::with(SimConfig::scripted(script), "").await;
    for endpoint in ENDPOINTS {
        let got = lab.post(endpoint.path(), &endpoint.ask(true)).await;
        endpoint.check(&got, true);
        let id = got.header("x-toolgate-request-id").unwrap();
        assert!(endpoint.is_error(&got) && got.text().contains(id), "{endpoint:?} {}", got.text());
    }
}

/// A head that is too long is told so in the client's dialect.
#[tokio::test]
async fn long_heads_are_refused_in_the_dialect() {
    let lab = Lab::with(SimConfig::default(), "[limits]\nheader_kib = 8").await;
    let long = "x".repeat(9000);
    for endpoint in ENDPOINTS {
        let got = lab.send(Method::POST, endpoint.path(), &[("x-long", &long)], "{}").await;
        assert_eq!(got.status.as_u16(), 431);
        endpoint.check_error(&got);
    }
}

fn counts(metrics: &str) -> [u64; 3] {
    ["tool_calls_total", "tool_calls_ok_total", "tool_calls_failed_total"].map(|name| {
        let line = metrics.lines().find_map(|line| line.strip_prefix(&format!("toolgate_{name} ")));
        line.unwrap().parse().unwrap()
    })
}

/// R146: calls are counted, not their faults; also those whose turn broke off after them.
#[tokio::test]
async fn r146_calls_are_counted_once_each() {
    let bad = json!({"cmd": 1, "timeout": "x", "more": []});
    let good = json!({"command": "ls"});
    let cases = [
        (Script::new().call("Bash", good.clone()).call("Bash", bad.clone()).finish(), [2, 1, 1]),
        (
            Script::new()
                .call("Bash", bad)
                .call("Bash", good.clone())
                .call("Read", json!({"file_path": "/a"}))
                .finish(),
            [3, 2, 1],
        ),
        (
            Script::new()
                .call("Bash", good)
                .text("And then some. ".repeat(80))
                .fault(Fault::Cut { after: 1200 })
                .times(0),
            [1, 1, 0],
        ),
        (Script::new().text("x").fault(Fault::MalformedCall).times(0), [1, 0, 1]),
    ];
    for (script, want) in cases {
        let lab = Lab::with(SimConfig::scripted(script), "[upstream]\nrescue_retries = 0").await;
        lab.post(Endpoint::Anthropic.path(), &Endpoint::Anthropic.ask(true)).await;
        assert_eq!(counts(&lab.get("/metrics").await.text()), want);
    }
}

/// C1: a call that the client has got is signed when its result comes, however its turn ended.
#[tokio::test]
async fn c1_signatures_of_a_turn_that_broke_off_are_kept() {
    let script = Script::new()
        .call("Bash", json!({"command": "ls"}))
        .text("And then some. ".repeat(80))
        .fault(Fault::Cut { after: 1200 })
        .finish()
        .text("Done.");
    let lab = Lab::with(SimConfig::scripted(script), "").await;
    let got = lab.post(Endpoint::Chat.path(), &Endpoint::Chat.ask(true)).await;
    let call = got
        .events()
        .into_iter()
        .find_map(|event| event["choices"][0]["delta"]["tool_calls"].get(0).cloned());
    let call = call.unwrap();
    let mut ask = Endpoint::Chat.ask(false);
    let messages = ask["messages"].as_array_mut().unwrap();
    let function = json!({"name": "Bash", "arguments": call["function"]["arguments"]});
    messages.push(json!({"role": "assistant", "tool_calls": [{"id": call["id"], "type": "function", "function": function}]}));
    messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": "ok"}));
    let got = lab.post(Endpoint::Chat.path(), &ask).await;
    assert!(got.text().contains("Done."), "{}", got.text());
    let counters = lab.sim.counters();
    assert_eq!((counters.placeholders, counters.refusals), (0, 0), "{counters:?}");
}
