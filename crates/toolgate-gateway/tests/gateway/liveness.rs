//! Silence, broken connections, and the end of the service.

use std::time::Duration;

use crate::harness::{ENDPOINTS, Endpoint, Lab, Reply};
use http_body_util::BodyExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use toolgate_sim::{Driver, Fault, FaultRule, Script, SimConfig, When};

fn scripted(fault: Fault) -> SimConfig {
    let script =
        Script::new().text("First words, and then some more of them.").fault(fault).times(0);
    SimConfig { driver: Driver::Script(script), ..SimConfig::default() }
}

/// One question at each endpoint, all at a time: they take a while.
async fn asked_together(lab: &Lab) -> Vec<(Endpoint, Reply)> {
    let ask = |endpoint: Endpoint| async move {
        (endpoint, lab.post(endpoint.path(), &endpoint.ask(true)).await)
    };
    let [first, second, third] = ENDPOINTS.map(ask);
    let (first, second, third) = tokio::join!(first, second, third);
    vec![first, second, third]
}

/// K1: while the upstream is silent, each dialect's own sign of life, between events only.
#[tokio::test]
async fn k1_silence_gets_a_sign_of_life() {
    let lab = Lab::with(scripted(Fault::Delay { ms: 1500 }), "[liveness]\nping_seconds = 1").await;
    for (endpoint, got) in asked_together(&lab).await {
        assert!(got.status.is_success(), "{}", got.text());
        endpoint.check(&got, true);
        let text = got.text();
        let signs = match endpoint {
            Endpoint::Anthropic => text.matches("event: ping").count(),
            Endpoint::Chat => text.matches("\n: ").count() + usize::from(text.starts_with(": ")),
            Endpoint::Responses => text.matches("event: response.in_progress").count() - 1,
        };
        assert!(signs >= 1, "{endpoint:?}: {text}");
        assert!(text.contains("First"), "{endpoint:?}: the answer still came");
    }
}

/// K2: signs of life stop when the upstream is silent for too long; the client is told.
#[tokio::test]
async fn k2_a_dead_upstream_is_an_error() {
    let settings = "[liveness]\nping_seconds = 1\n[upstream]\nidle_seconds = 2";
    let lab = Lab::with(scripted(Fault::Stall { after: 1, ms: None }), settings).await;
    for (endpoint, got) in asked_together(&lab).await {
        assert!(got.status.is_success(), "{endpoint:?}: it had begun");
        endpoint.check(&got, true);
        assert!(got.text().contains("silent"), "{endpoint:?}: {}", got.text());
    }
    let lab =
        Lab::with(scripted(Fault::Stall { after: 0, ms: None }), "[upstream]\nidle_seconds = 1")
            .await;
    for (endpoint, got) in asked_together(&lab).await {
        assert_eq!(got.status.as_u16(), 504, "{endpoint:?}: {}", got.text());
        endpoint.check_error(&got);
    }
}

/// Answer that a client of Gemini's own dialect gets.
async fn asked_as_gemini(lab: &Lab) -> String {
    let ask = serde_json::json!({
        "contents": [{"role": "user", "parts": [{"text": "Hi."}]}],
        "generationConfig": {"thinkingConfig": {"includeThoughts": true}},
    });
    let path = "/v1beta/models/gemini-3.6-flash:streamGenerateContent?alt=sse";
    let got = lab.post(path, &ask).await;
    assert!(got.status.is_success(), "{}", got.text());
    got.text()
}

/// Data alone, and at the end an error: as an event, and as Google's own errors stand in a stream.
#[track_caller]
fn check_told(text: &str, code: u16) {
    assert!(text.contains("First") && !text.contains("finishReason"), "{text}");
    let (events, bare) = text.rsplit_once("\r\n\r\n").unwrap_or_default();
    assert!(events.lines().all(|line| line.is_empty() || line.starts_with("data: ")), "{text}");
    let framed = events.lines().next_back().and_then(|line| line.strip_prefix("data: "));
    assert_eq!(framed, Some(bare), "{text}");
    assert!(bare.starts_with(&format!("{{\"error\":{{\"code\":{code},")), "{text}");
    assert!(bare.ends_with("}}"), "{text}");
}

/// K1, K2: Gemini's clients take nothing but data. Where the upstream is silent for too long they are
/// told; an end without a finish is an answer to gemini-cli once it has given results.
#[tokio::test]
async fn k2_gemini_clients_get_data_and_an_error() {
    let settings = "[liveness]\nping_seconds = 1\n[upstream]\nidle_seconds = 2";
    let lab = Lab::with(scripted(Fault::Stall { after: 1, ms: None }), settings).await;
    check_told(&asked_as_gemini(&lab).await, 504);
}

/// D12: so they are where the stream is cut, in the middle of an event or between two.
#[tokio::test]
async fn d12_gemini_clients_are_told_that_a_stream_was_cut() {
    for fault in [Fault::Reset { after: 900 }, Fault::Cut { after: 900 }] {
        check_told(&asked_as_gemini(&Lab::with(scripted(fault), "").await).await, 503);
    }
}

/// H2: so they are where there were only thoughts, or a call that could not be read: not every client
/// knows what that means.
#[tokio::test]
async fn h2_gemini_clients_are_told_that_a_turn_was_only_thoughts() {
    for fault in [Fault::ThinkingOnly, Fault::MalformedCall] {
        let script =
            Script::new().thought("First, thoughts.").text("Words.").fault(fault.clone()).times(0);
        let config = SimConfig { driver: Driver::Script(script), ..SimConfig::default() };
        let text = asked_as_gemini(&Lab::with(config, "").await).await;
        assert!(text.contains("First") && !text.contains("finishReason"), "{fault:?}: {text}");
        assert_eq!(text.matches("{\"error\":{\"code\":500,").count(), 2, "{fault:?}: {text}");
    }
}

/// D12: a turn that has a call continues from it. A client that retried would run the call twice.
#[tokio::test]
async fn d12_gemini_clients_keep_a_call_before_a_cut() {
    let script = Script::new()
        .call("list_files", serde_json::json!({}))
        .text("And more words than will ever come. ".repeat(20))
        .fault(Fault::Cut { after: 900 })
        .times(0);
    let config = SimConfig { driver: Driver::Script(script), ..SimConfig::default() };
    let text = asked_as_gemini(&Lab::with(config, "").await).await;
    assert!(text.contains("functionCall") && !text.contains("error"), "{text}");
    assert!(text.ends_with("\r\n\r\n"), "{text}");
}

/// A connection that breaks in the middle is an error that the client can see.
#[tokio::test]
async fn r64_a_broken_upstream_is_an_error() {
    for fault in [Fault::Reset { after: 900 }, Fault::Cut { after: 900 }] {
        let lab = Lab::with(scripted(fault), "").await;
        for endpoint in ENDPOINTS {
            let got = lab.post(endpoint.path(), &endpoint.ask(true)).await;
            endpoint.check(&got, true);
            let text = got.text();
            assert!(text.contains("error") || text.contains("failed"), "{endpoint:?}: {text}");
        }
    }
}

/// A stream that ends before it began is asked for again, and is an error with a status in the end: at
/// every endpoint, as often.
#[tokio::test]
async fn a_stream_that_was_cut_before_it_began_is_an_error_status() {
    let plain = serde_json::json!({"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]});
    let model = "/v1beta/models/gemini-3.6-flash";
    let gemini = ["streamGenerateContent?alt=sse", "streamGenerateContent", "generateContent"]
        .map(|verb| (format!("{model}:{verb}"), plain.clone()));
    let endpoints = ENDPOINTS.map(|endpoint| (endpoint.path().to_owned(), endpoint.ask(true)));
    for (path, ask) in endpoints.into_iter().chain(gemini) {
        let lab = Lab::with(scripted(Fault::Cut { after: 0 }), "").await;
        let got = lab.post(&path, &ask).await;
        assert!(matches!(got.status.as_u16(), 502 | 503), "{path}: {} {}", got.status, got.text());
        assert_eq!(lab.sim.counters().requests, 3, "{path}");
        assert!(got.json()["error"]["message"].is_string(), "{path}: {}", got.text());
    }
}

/// H2: thoughts bind to nothing. A turn that ends after them is asked for again, and its answer
/// then follows them in the same stream.
#[tokio::test]
async fn h2_a_turn_that_only_thought_is_asked_for_again() {
    for fault in [Fault::ThinkingOnly, Fault::MalformedCall] {
        for endpoint in ENDPOINTS {
            let thought = "**Looking**\n\nThe folder first.\n\n\n";
            let script = Script::new().thought(thought).text("Words in the end.").times(0);
            let rule = FaultRule { fault: fault.clone(), when: When::Requests(vec![1]) };
            let config = SimConfig {
                driver: Driver::Script(script),
                faults: vec![rule],
                ..SimConfig::default()
            };
            let lab = Lab::with(config, "").await;
            let got = lab.post(endpoint.path(), &endpoint.ask(true)).await;
            endpoint.check(&got, true);
            assert!(!endpoint.is_error(&got), "{fault:?} {endpoint:?}: {}", got.text());
            assert_eq!(lab.sim.counters().requests, 2, "{fault:?} {endpoint:?}");
            let text = got.text();
            assert!(text.matches("The folder first").count() >= 2, "{endpoint:?}: {text}");
            assert!(text.contains("Words"), "{endpoint:?}: {text}");
        }
    }
}

/// A client that goes away takes the upstream's call with it.
#[tokio::test]
async fn a_client_that_leaves_cancels_the_upstream() {
    let lab = Lab::with(scripted(Fault::Stall { after: 1, ms: None }), "").await;
    for endpoint in ENDPOINTS {
        let before = lab.sim.counters().cancels;
        let response = lab.open(endpoint.path(), &endpoint.ask(true)).await;
        let mut body = response.into_body();
        assert!(body.frame().await.unwrap().is_ok(), "the first words");
        drop(body);
        // The simulator notices when its connection is closed.
        while lab.sim.counters().cancels == before {
            tokio::task::yield_now().await;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// A turn has its time limit, also where the client does not read: its stream is not polled then.
#[tokio::test]
async fn a_client_that_does_not_read_cannot_hold_a_turn() {
    let mut script = Script::new();
    for _ in 0..12 {
        script = script.chunk("x".repeat(1 << 20));
    }
    let script = script.chunk("y").fault(Fault::Stall { after: 12, ms: None }).times(0);
    let config = SimConfig { driver: Driver::Script(script), ..SimConfig::default() };
    let lab = Lab::with(config, "[upstream]\ntotal_seconds = 1").await;
    let gemini = "/v1beta/models/gemini-3.6-flash:streamGenerateContent?alt=sse";
    let plain = serde_json::json!({"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]});
    let asks = ENDPOINTS.map(|endpoint| (endpoint.path(), endpoint.ask(true)));
    let mut clients = Vec::new();
    for (path, ask) in asks.into_iter().chain([(gemini, plain)]) {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let mut client = socket.connect(lab.gateway.addr).await.unwrap();
        let (ask, length) = (ask.to_string(), ask.to_string().len());
        let head =
            format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n");
        client.write_all(format!("{head}\r\n{ask}").as_bytes()).await.unwrap();
        clients.push(client);
    }
    // On a slow machine a turn may end before the simulator has begun its answer, which is not a
    // cancellation there: the end of all turns is what counts.
    while lab.sim.counters().requests < clients.len() as u64
        || !lab.get("/metrics").await.text().contains("toolgate_active_requests 0\n")
    {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// So it is where Gemini's own bytes go through and never stop.
#[tokio::test]
async fn a_stream_that_goes_through_has_its_time_too() {
    let mut script = Script::new();
    for _ in 0..100 {
        script = script.chunk("First of many words. ");
    }
    let script = script.pace(Duration::ZERO, Duration::from_millis(50)).times(0);
    let config = SimConfig { driver: Driver::Script(script), ..SimConfig::default() };
    let text = asked_as_gemini(&Lab::with(config, "[upstream]\ntotal_seconds = 1").await).await;
    check_told(&text, 504);
    assert!(text.contains("took longer than 1 s"), "{text}");
}

/// A client without a free slot gets an error in its dialect, and slots become free again.
#[tokio::test]
async fn too_many_requests_are_refused_as_overload() {
    let settings = "[limits]\nconcurrency = 1";
    let lab = Lab::with(scripted(Fault::Stall { after: 1, ms: None }), settings).await;
    let held = lab.open(Endpoint::Anthropic.path(), &Endpoint::Anthropic.ask(true)).await;
    for endpoint in ENDPOINTS {
        let got = lab.post(endpoint.path(), &endpoint.ask(true)).await;
        let want = if endpoint == Endpoint::Anthropic { 529 } else { 503 };
        assert_eq!(got.status.as_u16(), want, "{endpoint:?}: {}", got.text());
        endpoint.check_error(&got);
    }
    assert_eq!(lab.sim.counters().requests, 1);
    drop(held);
    while lab.get("/v1/models").await.status.is_server_error() {
        tokio::task::yield_now().await;
    }
}

/// Bytes may arrive one by one.
#[tokio::test]
async fn r58_any_chunk_boundary() {
    let whole = Lab::with(SimConfig::default(), "").await;
    let split = SimConfig {
        faults: vec![FaultRule { fault: Fault::Split { size: 1 }, when: When::Always }],
        ..SimConfig::default()
    };
    let split = Lab::with(split, "").await;
    for endpoint in ENDPOINTS {
        let shape = |text: String| text.matches("\"delta\"").count();
        let want = whole.post(endpoint.path(), &endpoint.ask(true)).await;
        let got = split.post(endpoint.path(), &endpoint.ask(true)).await;
        endpoint.check(&got, true);
        assert_eq!(shape(got.text()), shape(want.text()), "{endpoint:?}");
    }
}

/// SIGTERM lets running turns finish and takes no new ones.
#[tokio::test]
async fn draining_finishes_streams() {
    let lab = Lab::with(scripted(Fault::Trickle { ms: 20 }), "").await;
    let mut bodies = Vec::new();
    for _ in 0..30 {
        for endpoint in ENDPOINTS {
            bodies
                .push((endpoint, lab.open(endpoint.path(), &endpoint.ask(true)).await.into_body()));
        }
    }
    let Lab { gateway, .. } = lab;
    let draining = tokio::spawn(gateway.drain());
    for (endpoint, body) in bodies {
        let whole = body.collect().await.unwrap().to_bytes();
        let got = Reply::ok(whole);
        endpoint.check(&got, true);
        assert!(
            got.text().contains("more of them") || got.text().contains("them."),
            "{endpoint:?}"
        );
    }
    draining.await.unwrap();
}

/// A request that is not whole is no running turn: it has a moment to come, and holds nothing up.
#[tokio::test]
async fn draining_does_not_wait_for_half_a_request() {
    let lab = Lab::with(SimConfig::default(), "").await;
    let connect = || TcpStream::connect(lab.gateway.addr);
    let mut head = connect().await.unwrap();
    head.write_all(b"POST /v1/mess").await.unwrap();
    let whole = Endpoint::Anthropic.ask(false).to_string();
    let asking = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\nexpect: 100-continue\r\n\r\n",
        whole.len()
    );
    let (mut half, mut late) = (connect().await.unwrap(), connect().await.unwrap());
    for client in [&mut half, &mut late] {
        client.write_all(asking.as_bytes()).await.unwrap();
        // It is being read.
        let mut go_on = [0; 25];
        client.read_exact(&mut go_on).await.unwrap();
        assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    }
    let Lab { gateway, .. } = lab;
    let draining = tokio::spawn(gateway.drain());
    half.write_all(&whole.as_bytes()[..9]).await.unwrap();
    late.write_all(whole.as_bytes()).await.unwrap();
    let mut answer = String::new();
    late.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    draining.await.unwrap();
    let mut told = String::new();
    half.read_to_string(&mut told).await.unwrap();
    assert!(told.starts_with("HTTP/1.1 529") && told.contains("stopping"), "{told}");
}
