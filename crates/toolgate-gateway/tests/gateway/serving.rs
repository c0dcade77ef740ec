//! Nothing holds up a serving thread, and no client is left without a sign of life.
#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

use std::net::SocketAddr;
use std::time::Duration;

use crate::harness::{ENDPOINTS, Endpoint, Lab};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;
use toolgate_sim::{Fault, Script, Sim, SimConfig};

fn scripted(fault: Fault) -> SimConfig {
    SimConfig::scripted(Script::new().text("First words.").fault(fault).times(0))
}

/// The head of a request, without its end.
fn head(path: &str, body: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n", body.len())
}

/// A gateway with one serving thread before a simulator.
async fn one_thread() -> Lab {
    Lab::with(SimConfig::scripted(Script::new().text("Done.").times(0)), "threads = 1").await
}

/// Many short messages, the most expensive to translate. The user has the first and the last word.
fn many(model: &str, message: impl Fn(&str) -> Value) -> Vec<Value> {
    (0..=100_000).map(|at| message(if at % 2 == 0 { "user" } else { model })).collect()
}

/// Sends a large request on a connection of its own, all but its last byte first, and asks for
/// `/healthz` again and again from then on. The upstream must not have seen the request after 20 answers.
async fn check_others_are_served(path: &str, body: Value) {
    let lab = one_thread().await;
    let body = body.to_string();
    let mut client = TcpStream::connect(lab.gateway.addr).await.unwrap();
    let head = format!("{}connection: close\r\n\r\n", head(path, &body));
    let (most, last) = body.as_bytes().split_at(body.len() - 1);
    for bytes in [head.as_bytes(), most, last] {
        client.write_all(bytes).await.unwrap();
    }
    for _ in 0..20 {
        assert!(lab.get("/healthz").await.status.is_success());
    }
    assert_eq!(lab.sim.counters().requests, 0, "{path}: others had to wait");
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
    assert_eq!(lab.sim.counters().requests, 1, "{path}");
}

#[tokio::test]
async fn a_large_messages_request_holds_nobody_up() {
    let messages = many("assistant", |role| json!({"role": role, "content": "a".repeat(100)}));
    let body = json!({"model": "gemini-3.6-flash", "max_tokens": 9, "messages": messages});
    check_others_are_served("/v1/messages", body.clone()).await;
    check_others_are_served("/v1/messages/count_tokens", body).await;
}

#[tokio::test]
async fn a_large_chat_or_responses_request_holds_nobody_up() {
    let messages = many("assistant", |role| json!({"role": role, "content": "a".repeat(100)}));
    let body = json!({"model": "gemini-3.6-flash", "messages": messages, "stream": true});
    check_others_are_served("/v1/chat/completions", body).await;
    let body = json!({"model": "gemini-3.6-flash", "input": messages});
    check_others_are_served("/v1/responses", body).await;
}

#[tokio::test]
async fn a_large_gemini_request_holds_nobody_up() {
    let contents =
        many("model", |role| json!({"role": role, "parts": [{"text": "a".repeat(100)}]}));
    let body = json!({"model": "gemini-3.6-flash", "contents": contents});
    check_others_are_served("/v1/gemini", body).await;
}

/// A server that speaks HTTP and answers every request with a stream: `opening`, then `again` until
/// `finish` is sent, then `end`.
async fn drip(
    opening: &'static str,
    again: &'static str,
    end: &'static str,
) -> (SocketAddr, watch::Sender<bool>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let (finish, finished) = watch::channel(false);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut finished = finished.clone();
            tokio::spawn(async move {
                let mut read = vec![0; 1 << 16];
                let count = stream.read(&mut read).await.unwrap();
                assert!(count > 0);
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
                stream.write_all(head.as_bytes()).await.unwrap();
                stream.write_all(opening.as_bytes()).await.unwrap();
                let mut beat = tokio::time::interval(Duration::from_millis(50));
                loop {
                    let told = async { drop(finished.wait_for(|it| *it).await) };
                    tokio::select! {
                        () = told => break,
                        _ = beat.tick() => if stream.write_all(again.as_bytes()).await.is_err() { return },
                    }
                }
                stream.write_all(end.as_bytes()).await.unwrap();
            });
        }
    });
    (addr, finish)
}

async fn before(addr: SocketAddr, settings: &str) -> Lab {
    let sim = Sim::start(SimConfig::default()).await.unwrap();
    Lab::before(sim, &format!("http://{addr}"), settings).await
}

const STOP: &str = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Done.\"}],\"role\":\"model\"},\"finishReason\":\"STOP\"}]}\n\n";

/// Where a sign of life is missing, the test fails instead of waiting for ever.
const GUARD: Duration = Duration::from_secs(60);

/// Keep-alives are timed by the bytes that the client gets, not by those that Gemini sends.
#[tokio::test]
async fn whatever_the_client_does_not_see_is_silence() {
    for again in [
        ": a comment\n\n",
        "data: {}\n\n",
        "data: {\"usageMetadata\":{\"promptTokenCount\":5}}\n\n",
        "data: {\"candidates\":[{\"content\":{\"parts\":[],\"role\":\"model\"}}]}\n\n",
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"id\":\"1\",\"name\":\"f\",\"partialArgs\":[{\"jsonPath\":\"$.a\",\"stringValue\":\"x\",\"willContinue\":true}],\"willContinue\":true}}],\"role\":\"model\"}}]}\n\n",
    ] {
        let (addr, finish) = drip("", again, STOP).await;
        let lab = before(addr, "[liveness]\nping_seconds = 1").await;
        let endpoint = Endpoint::Chat;
        let ask = endpoint.ask(true);
        let open = timeout(GUARD, lab.open(endpoint.path(), &ask));
        let mut body = open.await.unwrap().into_body();
        let mut signs = 0;
        let mut text = String::new();
        while let Some(frame) = timeout(GUARD, body.frame()).await.unwrap() {
            let bytes = frame.unwrap().into_data().unwrap();
            text.push_str(std::str::from_utf8(&bytes).unwrap());
            signs = text.matches(": ping").count();
            if signs >= 2 {
                finish.send_replace(true);
            }
        }
        assert!(signs >= 2, "{again}: {text}");
    }
}

/// A piece of an array that never ends is silence too; white space is the sign of life.
#[tokio::test]
async fn an_array_gets_white_space_between_its_elements() {
    let opening = "[{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"First\"}],\"role\":\"model\"}}]}\n,\n{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"";
    let end = "\"}],\"role\":\"model\"},\"finishReason\":\"STOP\"}]}]";
    let (addr, finish) = drip(opening, "word ", end).await;
    let lab = before(addr, "[liveness]\nping_seconds = 1").await;
    let plain = json!({"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]});
    let path = "/v1beta/models/gemini-3.6-flash:streamGenerateContent";
    let mut body = lab.open(path, &plain).await.into_body();
    let (mut signs, mut text) = (0, String::new());
    while let Some(frame) = timeout(GUARD, body.frame()).await.unwrap() {
        let bytes = frame.unwrap().into_data().unwrap();
        signs += usize::from(&bytes[..] == b"\n");
        text.push_str(std::str::from_utf8(&bytes).unwrap());
        if signs >= 2 {
            finish.send_replace(true);
        }
    }
    let elements: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(elements.len(), 2, "{text}");
}

/// Some clients close their side when they have sent their request, and wait for the answer.
#[tokio::test]
async fn a_client_that_half_closes_gets_its_answer() {
    for fault in [Fault::Delay { ms: 300 }, Fault::Delay { ms: 0 }] {
        let lab = Lab::with(scripted(fault), "").await;
        for stream in [false, true] {
            for endpoint in ENDPOINTS {
                let body = endpoint.ask(stream).to_string();
                let mut client = TcpStream::connect(lab.gateway.addr).await.unwrap();
                let request = format!("{}\r\n{body}", head(endpoint.path(), &body));
                client.write_all(request.as_bytes()).await.unwrap();
                client.shutdown().await.unwrap();
                let mut answer = String::new();
                client.read_to_string(&mut answer).await.unwrap();
                let interim = "HTTP/1.1 100 Continue\r\n\r\n";
                let answer = answer.strip_prefix(interim).unwrap_or(&answer);
                assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("First"), "{answer}");
            }
        }
    }
}

/// A client that is gone before the answer begins looks like one that half-closes; its turn ends all the
/// same.
#[tokio::test]
async fn a_client_that_leaves_before_the_answer_cancels_the_upstream() {
    let lab = Lab::with(scripted(Fault::Stall { after: 0, ms: None }), "").await;
    for (number, endpoint) in ENDPOINTS.into_iter().enumerate() {
        let body = endpoint.ask(true).to_string();
        let mut client = TcpStream::connect(lab.gateway.addr).await.unwrap();
        let request = format!("{}\r\n{body}", head(endpoint.path(), &body));
        client.write_all(request.as_bytes()).await.unwrap();
        while lab.sim.counters().requests == number as u64 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        drop(client);
        while lab.sim.counters().cancels == number as u64 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
