//! The simulator on a socket: connections, resets and delays.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use toolgate_sim::{ControlKey, Fault, FaultRule, RunningSim, SimConfig, When};

use super::*;

async fn start(fault: Option<Fault>) -> RunningSim {
    let faults = fault.map(|fault| FaultRule { fault, when: When::Always }).into_iter().collect();
    Sim::start(SimConfig { faults, ..SimConfig::default() }).await.unwrap()
}

/// Sends a request and leaves the connection open.
async fn send(sim: &RunningSim, method: &str) -> TcpStream {
    let body =
        prompt("What is the weather in Oslo?", json!({"tools": tools(&["weather"])})).to_string();
    let mut socket = TcpStream::connect(sim.address()).await.unwrap();
    let head = format!(
        "POST /v1beta/models/{NEW}:{method} HTTP/1.1\r\nhost: localhost\r\nx-goog-api-key: k\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    socket.write_all(body.as_bytes()).await.unwrap();
    socket
}

/// Reads up to the last chunk of a chunked body.
async fn read(socket: &mut TcpStream) -> std::io::Result<String> {
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = socket.read(&mut buffer).await?;
        seen.extend_from_slice(&buffer[..count]);
        if count == 0 || seen.ends_with(b"\r\n0\r\n\r\n") {
            return Ok(String::from_utf8_lossy(&seen).into_owned());
        }
    }
}

#[tokio::test]
async fn streams_and_keeps_the_connection() {
    let sim = start(None).await;
    let mut socket = send(&sim, "streamGenerateContent?alt=sse").await;
    let first = read(&mut socket).await.unwrap();
    assert!(first.starts_with("HTTP/1.1 200 OK\r\n"), "{first}");
    assert!(first.contains("content-type: text/event-stream\r\n"));
    assert!(first.contains("transfer-encoding: chunked"));
    assert!(first.contains("\r\n\r\n\r\n0\r\n\r\n") || first.contains("\r\n\r\n"));
    let again =
        "GET /v1beta/models?pageSize=1 HTTP/1.1\r\nhost: localhost\r\nx-goog-api-key: k\r\n\r\n";
    socket.write_all(again.as_bytes()).await.unwrap();
    let mut buffer = vec![0; 4096];
    let count = socket.read(&mut buffer).await.unwrap();
    let second = String::from_utf8_lossy(&buffer[..count]).into_owned();
    assert!(
        second.starts_with("HTTP/1.1 200 OK\r\n") && second.contains("content-length:"),
        "{second}"
    );
    assert_eq!(sim.requests().len(), 2);
    sim.shutdown().await;
}

#[tokio::test]
async fn unary_answers_have_a_length() {
    let sim = start(None).await;
    let mut socket = send(&sim, "generateContent").await;
    let mut buffer = vec![0; 8192];
    let count = socket.read(&mut buffer).await.unwrap();
    let head = String::from_utf8_lossy(&buffer[..count]).into_owned();
    assert!(head.contains("content-length:") && head.contains("application/json; charset=UTF-8"));
}

#[tokio::test]
async fn d6_bodies_are_sent_byte_by_byte() {
    let sim = start(Some(Fault::Split { size: 1 })).await;
    let mut socket = send(&sim, "streamGenerateContent?alt=sse").await;
    let text = read(&mut socket).await.unwrap();
    // Each byte is a chunk of its own on the wire.
    assert!(text.contains("\r\n1\r\nd\r\n1\r\na\r\n1\r\nt\r\n1\r\na\r\n"), "{text}");
}

#[tokio::test]
async fn a_closed_connection_counts_as_a_cancel() {
    let sim = start(Some(Fault::Stall { after: 1, ms: None })).await;
    let mut socket = send(&sim, "streamGenerateContent?alt=sse").await;
    let mut buffer = [0; 64];
    assert!(socket.read(&mut buffer).await.unwrap() > 0);
    assert_eq!(sim.counters().cancels, 0);
    drop(socket);
    for _ in 0..200 {
        if sim.counters().cancels == 1 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the simulator did not notice: {:?}", sim.counters());
}

#[tokio::test]
async fn connections_are_reset_on_demand() {
    let sim = start(Some(Fault::Reset { after: 40 })).await;
    let mut socket = send(&sim, "streamGenerateContent?alt=sse").await;
    let error = read(&mut socket).await.expect_err("a reset");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    let sim = start(Some(Fault::Reset { after: 0 })).await;
    let mut socket = send(&sim, "generateContent").await;
    let nothing = read(&mut socket).await;
    assert!(nothing.as_ref().map_or(true, String::is_empty), "{nothing:?}");
    // A truncated body still ends with the last chunk of HTTP.
    let sim = start(Some(Fault::Cut { after: 25 })).await;
    let mut socket = send(&sim, "streamGenerateContent?alt=sse").await;
    let text = read(&mut socket).await.unwrap();
    assert!(text.ends_with("\r\n0\r\n\r\n"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn k1_stalls_last_as_long_as_configured() {
    let faults =
        vec![FaultRule { fault: Fault::Stall { after: 1, ms: Some(130_000) }, when: When::Always }];
    let sim = Sim::new(SimConfig { faults, ..SimConfig::default() });
    let started = tokio::time::Instant::now();
    let path = format!("/v1beta/models/{NEW}:streamGenerateContent?alt=sse");
    let response = sim.respond(post(&path, &prompt("Hi", json!({})))).await.unwrap();
    let body = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
    assert!(started.elapsed() >= Duration::from_secs(130));
    assert!(body.starts_with(b"data: {"));
    assert_eq!(sim.counters().cancels, 0);
}

#[tokio::test]
async fn large_bodies_are_refused() {
    let sim = Sim::start(SimConfig { max_body: 1000, ..SimConfig::default() }).await.unwrap();
    let mut socket = TcpStream::connect(sim.address()).await.unwrap();
    let body = "x".repeat(5000);
    let head = format!(
        "POST /v1beta/models/m:generateContent HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut buffer = vec![0; 4096];
    let count = socket.read(&mut buffer).await.unwrap();
    assert!(buffer[..count].starts_with(b"HTTP/1.1 413"));
    let _: Value = json!({});
}

/// Sends one request over a new connection; gives the whole answer.
async fn exchange(sim: &RunningSim, head: &str, body: &str) -> String {
    let mut socket = TcpStream::connect(sim.address()).await.unwrap();
    let length = body.len();
    let text = format!("{head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
    socket.write_all(text.as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn a_page_cannot_read_or_script_the_simulator() {
    let key = Some(ControlKey::new("right-key"));
    let sim = Sim::start(SimConfig { control_key: key, ..SimConfig::default() }).await.unwrap();
    let script = r#"{"turn":[{"text":"Injected."}]}"#;
    let page = "POST /__sim/script HTTP/1.1\r\nhost: localhost\r\norigin: https://evil.example\r\ncontent-type: text/plain";
    assert!(exchange(&sim, page, script).await.starts_with("HTTP/1.1 403"));
    let keyless = "GET /__sim/requests HTTP/1.1\r\nhost: localhost";
    assert!(exchange(&sim, keyless, "").await.starts_with("HTTP/1.1 403"));
    let rebound = "GET /v1beta/models HTTP/1.1\r\nhost: evil.example\r\nx-goog-api-key: k";
    assert!(exchange(&sim, rebound, "").await.starts_with("HTTP/1.1 403"));
    let keyed = "POST /__sim/script HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nx-toolgate-control-key: right-key";
    assert!(exchange(&sim, keyed, script).await.starts_with("HTTP/1.1 204"));
}

#[tokio::test]
async fn without_a_control_key_control_endpoints_are_off() {
    let sim = Sim::start(SimConfig::default()).await.unwrap();
    let head = "GET /__sim/requests HTTP/1.1\r\nhost: localhost\r\nx-toolgate-control-key: ";
    let answer = exchange(&sim, head, "").await;
    assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("no control key"), "{answer}");
}

#[tokio::test]
async fn an_in_memory_connection_answers_without_control_endpoints() {
    let sim = Sim::new(SimConfig::default());
    for (path, want) in [("/v1beta/models", "HTTP/1.1 200"), ("/__sim/requests", "HTTP/1.1 403")] {
        let mut pipe = sim.connect();
        let head = format!("GET {path} HTTP/1.1\r\nx-goog-api-key: k\r\nconnection: close\r\n\r\n");
        pipe.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        pipe.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with(want), "{path}: {answer}");
    }
}
