//! Who is let in, what that costs, and what one client can take from the others.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use crate::harness::{ENDPOINTS, Endpoint, Lab, Reply};
use base64::Engine as _;
use futures_util::{SinkExt as _, StreamExt as _};
use http::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use toolgate_sim::{Fault, FaultRule, SimConfig, When};

const GEMINI: &str = "/v1beta/models/gemini-3.6-flash:generateContent";
const NOTHING: &str = "/v1beta/nothing";

/// A connection whose bytes the test writes.
struct Wire(TcpStream);

impl Wire {
    async fn open(lab: &Lab) -> Self {
        Self(TcpStream::connect(lab.gateway.addr).await.unwrap())
    }

    async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).await.unwrap();
    }

    /// One answer with a length: status, head and body.
    async fn answer(&mut self) -> (u16, String, String) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.0.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
        self.0.read_exact(&mut body).await.unwrap();
        let status = head.get(9..12).unwrap().parse().unwrap();
        (status, head, String::from_utf8(body).unwrap())
    }

    /// Waits for the end of the connection.
    async fn end(mut self) {
        let mut rest = Vec::new();
        // A reset is an end too.
        drop(self.0.read_to_end(&mut rest).await);
        assert!(rest.is_empty(), "{}", String::from_utf8_lossy(&rest));
    }
}

fn head(path: &str, more: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nhost: localhost\r\n{more}\r\n")
}

async fn active(lab: &Lab, key: &str) -> u64 {
    let text = lab.send(Method::GET, "/metrics", &[("x-api-key", key)], "").await.text();
    let line = text.lines().find_map(|line| line.strip_prefix("toolgate_active_requests "));
    line.unwrap().parse().unwrap()
}

async fn until_active(lab: &Lab, key: &str, count: u64) {
    let reached = async {
        while active(lab, key).await != count {
            tokio::task::yield_now().await;
        }
    };
    let is_reached = tokio::time::timeout(Duration::from_secs(120), reached).await.is_ok();
    assert!(is_reached, "the gateway never had {count} active requests");
}

async fn ask_as(lab: &Lab, endpoint: Endpoint, key: &str) -> Reply {
    let body = endpoint.ask(false).to_string();
    lab.send(Method::POST, endpoint.path(), &[("x-api-key", key)], body).await
}

/// A body of which only the beginning has come when the key is refused is not waited for, and takes no
/// slot from those who have a key.
#[tokio::test]
async fn a_request_without_a_valid_key_takes_no_slot_and_is_not_read() {
    let settings = "[limits]\nconcurrency = 1\n[clients]\nkeys = [\"right-key\"]";
    let lab = Lab::with(SimConfig::default(), settings).await;
    for more in ["content-length: 99999999\r\n", "transfer-encoding: chunked\r\n"] {
        let mut strangers = Vec::new();
        for _ in 0..3 {
            let mut wire = Wire::open(&lab).await;
            wire.send(head("/v1/messages", more)).await;
            strangers.push(wire);
        }
        for mut wire in strangers {
            let (status, head, body) = wire.answer().await;
            assert_eq!(status, 401, "{body}");
            assert!(head.contains("\r\nconnection: close\r\n"), "{head}");
            assert!(ask_as(&lab, Endpoint::Anthropic, "right-key").await.status.is_success());
            wire.end().await;
        }
    }
}

/// A refused client gets the error, and the next request on a connection is never read out of an old body.
#[tokio::test]
async fn a_connection_with_an_unread_body_says_that_it_closes() {
    let lab = Lab::with(SimConfig::default(), "[limits]\nbody_mib = 1").await;
    let long = "content-length: 9999999\r\n";
    for (path, more, want) in [
        (NOTHING, long, 404),
        ("/v1/nothing", long, 404),
        ("/v1/messages", long, 413),
        (GEMINI, long, 413),
        ("/v1/messages", "content-length: 9999999\r\ncontent-encoding: br\r\n", 415),
        ("/v1/messages", "content-length: 9\r\nexpect: something\r\n", 417),
        ("/v1/messages", "content-length: 9\r\nhost: localhost\r\n", 400),
        ("/", "content-length: 9999999\r\n", 405),
    ] {
        let mut wire = Wire::open(&lab).await;
        wire.send(head(path, more)).await;
        let (status, head, body) = wire.answer().await;
        assert_eq!(status, want, "{path} {more}: {body}");
        assert!(head.contains("\r\nconnection: close\r\n"), "{path} {more}: {head}");
        drop(wire);
    }
    // A short body is read, and the connection goes on.
    for path in [NOTHING, "/v1/nothing", "/api/event_logging/batch", "/"] {
        let mut wire = Wire::open(&lab).await;
        wire.send(head(path, "content-length: 2\r\n") + "{}").await;
        let (_, first, _) = wire.answer().await;
        assert!(!first.contains("connection: close"), "{path}: {first}");
        wire.send("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
        assert_eq!(wire.answer().await.0, 200, "{path}");
    }
}

#[tokio::test]
async fn methods_that_a_path_does_not_have_are_405() {
    let lab = Lab::new().await;
    for (line, allow) in [
        ("CONNECT localhost:80", "get, head"),
        ("TRACE /", "get, head"),
        ("PUT /", "get, head"),
        ("POST /metrics", "get, head"),
        ("DELETE /healthz", "get, head"),
        ("GET /v1/messages", "post"),
        ("PATCH /v1/conversations/conv_1", "get, post, delete"),
        ("DELETE /v1beta/models/m:generateContent", "post"),
    ] {
        let mut wire = Wire::open(&lab).await;
        wire.send(format!("{line} HTTP/1.1\r\nhost: localhost\r\n\r\n")).await;
        let (status, head, body) = wire.answer().await;
        assert_eq!(status, 405, "{line}: {body}");
        assert!(head.contains(&format!("\r\nallow: {allow}\r\n")), "{line}: {head}");
    }
    let got = lab.send(Method::DELETE, GEMINI, &[], "").await;
    assert_eq!(got.json()["error"]["code"], 405, "Gemini's body repeats the status");
}

#[tokio::test]
async fn requests_without_one_host_are_400() {
    let lab = Lab::new().await;
    for hosts in ["", "host: localhost\r\nhost: localhost\r\n", "host: a b\r\n"] {
        let mut wire = Wire::open(&lab).await;
        wire.send(format!("GET /v1/models HTTP/1.1\r\n{hosts}\r\n")).await;
        assert_eq!(wire.answer().await.0, 400, "{hosts}");
    }
}

/// A body that stalls is dropped, whichever way it is framed, and its slot is free again.
#[tokio::test]
async fn a_body_that_stalls_is_a_408_however_it_is_framed() {
    let settings = "[limits]\nconcurrency = 1\nreceive_seconds = 1";
    let lab = Lab::with(SimConfig::default(), settings).await;
    let packed = gzip(Endpoint::Chat.ask(false).to_string().as_bytes());
    let chunk = format!("{:x}\r\n", packed.len());
    let chunked = [chunk.as_bytes(), &packed, b"\r\n"].concat();
    for (path, more, body) in [
        ("/v1/messages", "content-length: 99\r\n", b"{".to_vec()),
        ("/v1/messages", "transfer-encoding: chunked\r\n", Vec::new()),
        ("/v1/responses", "transfer-encoding: chunked\r\n", b"5\r\n{\"mod".to_vec()),
        (GEMINI, "transfer-encoding: chunked\r\n", b"1\r\n{\r\n".to_vec()),
        ("/v1/messages/count_tokens", "transfer-encoding: chunked\r\n", b"1\r\n{\r\n".to_vec()),
        ("/v1/conversations", "transfer-encoding: chunked\r\n", b"1\r\n{\r\n".to_vec()),
        // In the trailers, and within compressed data.
        ("/v1/messages", "transfer-encoding: chunked\r\n", b"2\r\n{}\r\n0\r\nx-a: b\r\n".to_vec()),
        (
            "/v1/chat/completions",
            "transfer-encoding: chunked\r\ncontent-encoding: gzip\r\n",
            chunked,
        ),
    ] {
        let mut wire = Wire::open(&lab).await;
        wire.send(head(path, more)).await;
        wire.send(body).await;
        let (status, head, body) = wire.answer().await;
        assert_eq!(status, 408, "{path} {more}: {body}");
        assert!(head.contains("\r\nconnection: close\r\n"), "{head}");
        assert!(body.contains("limits.receive_seconds"), "{body}");
        let body: Value = serde_json::from_str(&body).unwrap();
        if path == GEMINI {
            assert_eq!(body["error"]["code"], 408, "{body}");
        }
        // The slot is held until the connection has written the reply.
        until_active(&lab, "", 0).await;
        let reply = ask_as(&lab, Endpoint::Chat, "").await;
        assert!(reply.status.is_success(), "the slot is free: {} {}", reply.status, reply.text());
    }
    // Half a head is no request: the connection is closed.
    let mut wire = Wire::open(&lab).await;
    wire.send("POST /v1/messages HTTP/1.1\r\nhost: local").await;
    wire.end().await;
}

/// A byte now and then does not keep a body alive.
#[tokio::test]
async fn a_body_that_drips_is_a_408() {
    let lab = Lab::with(SimConfig::default(), "[limits]\nreceive_seconds = 1").await;
    let wire = Wire::open(&lab).await;
    let (mut read, mut write) = wire.0.into_split();
    write
        .write_all(head("/v1/messages", "transfer-encoding: chunked\r\n").as_bytes())
        .await
        .unwrap();
    let drip = tokio::spawn(async move {
        while write.write_all(b"1\r\n \r\n").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    let mut status = [0; 12];
    read.read_exact(&mut status).await.unwrap();
    assert_eq!(&status, b"HTTP/1.1 408");
    drop(read);
    drip.await.unwrap();
}

/// The same holds for a WebSocket message of which only a part comes.
#[tokio::test]
async fn a_websocket_message_that_stalls_is_an_error() {
    let lab = Lab::with(SimConfig::default(), "[limits]\nreceive_seconds = 1").await;
    let mut socket = websocket(&lab, "k").await;
    // The socket of an idle connection stays open for longer than that: the first message comes through.
    let ask = json!({"type": "response.create", "model": "gemini-3.6-flash", "input": "Hi."});
    socket.send(ask.to_string().into()).await.unwrap();
    while !next(&mut socket).await.unwrap().contains("response.completed") {}
    // A text frame of 100 bytes, of which two come.
    socket.get_mut().write_all(&[0x81, 0x80 | 100, 0, 0, 0, 0, b'{', b'"']).await.unwrap();
    let error = next(&mut socket).await.unwrap();
    assert!(error.contains("limits.receive_seconds"), "{error}");
    assert_eq!(next(&mut socket).await, None, "the connection is closed");
}

type ClientSocket = tokio_tungstenite::WebSocketStream<TcpStream>;

async fn websocket(lab: &Lab, key: &str) -> ClientSocket {
    use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
    let url = format!("ws://{}/v1/responses", lab.gateway.addr);
    let mut request = url.into_client_request().unwrap();
    request.headers_mut().insert("x-api-key", key.parse().unwrap());
    let stream = TcpStream::connect(lab.gateway.addr).await.unwrap();
    tokio_tungstenite::client_async(request, stream).await.unwrap().0
}

/// The next text; `None` once the gateway closes.
async fn next(socket: &mut ClientSocket) -> Option<String> {
    loop {
        match socket.next().await?.ok()? {
            Message::Text(text) => return Some(text.to_string()),
            Message::Close(_) => return None,
            Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
        }
    }
}

/// One key gets half of the slots; the other key's requests go on as before.
#[tokio::test]
async fn one_key_cannot_take_all_slots() {
    for (limits, most, status) in
        [("concurrency = 8", 4, 429), ("concurrency = 8\nconcurrency_per_key = 2", 2, 429)]
    {
        let settings =
            format!("[limits]\n{limits}\n[clients]\nkeys = [\"client-one\", \"client-two\"]");
        let lab = Lab::with(SimConfig::default(), &settings).await;
        let mut held = Vec::new();
        for count in 1..=most {
            let mut wire = Wire::open(&lab).await;
            let more = "x-api-key: client-one\r\ncontent-length: 9\r\n";
            wire.send(head("/v1/messages", more)).await;
            held.push(wire);
            until_active(&lab, "client-one", count).await;
        }
        for endpoint in ENDPOINTS {
            let got = ask_as(&lab, endpoint, "client-one").await;
            assert_eq!(got.status.as_u16(), status, "{endpoint:?} {}", got.text());
            endpoint.check_error(&got);
            assert!(got.text().contains("limits.concurrency_per_key"), "{}", got.text());
            assert!(got.header("retry-after").is_some());
            assert!(ask_as(&lab, endpoint, "client-two").await.status.is_success());
        }
        drop(held);
        until_active(&lab, "client-one", 0).await;
        assert!(ask_as(&lab, Endpoint::Chat, "client-one").await.status.is_success());
    }
}

/// A WebSocket's turns take slots of their key too.
#[tokio::test]
async fn turns_on_a_websocket_count_for_their_key() {
    let settings =
        "[limits]\nconcurrency_per_key = 1\n[clients]\nkeys = [\"client-one\", \"client-two\"]";
    let lab = Lab::with(SimConfig::default(), settings).await;
    let mut sockets = [websocket(&lab, "client-one").await, websocket(&lab, "client-two").await];
    let mut wire = Wire::open(&lab).await;
    wire.send(head("/v1/messages", "x-api-key: client-one\r\ncontent-length: 9\r\n")).await;
    until_active(&lab, "client-one", 1).await;
    let ask = json!({"type": "response.create", "model": "gemini-3.6-flash", "input": "Hi."});
    for (socket, want) in sockets.iter_mut().zip(["limits.concurrency_per_key", "response.created"])
    {
        socket.send(ask.to_string().into()).await.unwrap();
        let first = next(socket).await.unwrap();
        assert!(first.contains(want), "{first}");
    }
}

/// A simulator whose first answers never end.
fn stalled(count: u64) -> SimConfig {
    let fault = Fault::Stall { after: 0, ms: None };
    let faults = vec![FaultRule { fault, when: When::Requests((1..=count).collect()) }];
    SimConfig { faults, ..SimConfig::default() }
}

/// A question whose body has this many bytes.
fn of_length(length: usize, stream: bool) -> Vec<u8> {
    let mut body = Endpoint::Anthropic.ask(stream).to_string().into_bytes();
    body.resize(length, b' ');
    body
}

fn post(
    lab: &Arc<Lab>,
    headers: &[(&'static str, &'static str)],
    body: Vec<u8>,
) -> tokio::task::JoinHandle<Reply> {
    let (lab, headers) = (Arc::clone(lab), headers.to_vec());
    tokio::spawn(async move { lab.send(Method::POST, "/v1/messages", &headers, body).await })
}

/// Large bodies wait for memory, in whichever form they come; small ones do not wait for them.
#[tokio::test]
async fn large_bodies_wait_for_memory_and_small_ones_do_not() {
    // The large bodies' quarter of 128 MiB has room for eight of 2 MiB, each counted twice.
    let settings = "[limits]\nbody_mib = 2\nmemory_mib = 128";
    let lab = Arc::new(Lab::with(stalled(8), settings).await);
    let mut held: Vec<_> = (0..8).map(|_| post(&lab, &[], of_length(2 << 20, true))).collect();
    while lab.sim.requests().len() < 8 {
        tokio::task::yield_now().await;
    }
    let ninth = post(&lab, &[], of_length(2 << 20, true));
    until_active(&lab, "", 9).await;
    let small = post(&lab, &[], of_length(10_000, false)).await.unwrap();
    assert!(small.status.is_success(), "{}", small.text());
    let packed = gzip(&of_length(900_000, false));
    let small = post(&lab, &[("content-encoding", "gzip")], packed).await.unwrap();
    assert!(small.status.is_success(), "{}", small.text());
    assert_eq!(lab.sim.requests().len(), 10, "the ninth has not come so far");
    // What grows while there is no room is refused instead: it holds memory already.
    let swelling = gzip(&of_length(2 << 20, false));
    let refused = post(&lab, &[("content-encoding", "gzip")], swelling).await.unwrap();
    assert_eq!(refused.status.as_u16(), 529, "{}", refused.text());
    assert!(refused.text().contains("limits.memory_mib"), "{}", refused.text());
    assert!(refused.header("retry-after").is_some());
    held.remove(0).abort();
    assert!(ninth.await.unwrap().status.is_success());
}

/// Memory is given back, whatever became of the request.
#[tokio::test]
async fn memory_is_given_back() {
    let settings = "[limits]\nbody_mib = 1\nmemory_mib = 64";
    let lab = Arc::new(Lab::with(SimConfig::default(), settings).await);
    // Each of them takes 2 of 16 MiB for its body, and all 16 for its translation.
    for at in 0..40 {
        let body = match at % 4 {
            0 => of_length(1 << 20, false),
            1 => of_length(1 << 20, true),
            2 => vec![b'x'; 1 << 20],
            _ => of_length((1 << 20) + 1, false),
        };
        let want = [200, 200, 400, 413][at % 4];
        let got = post(&lab, &[], body).await.unwrap();
        assert_eq!(got.status.as_u16(), want, "{at}: {}", got.text());
    }
    let together: Vec<_> = (0..12).map(|_| post(&lab, &[], of_length(1 << 20, false))).collect();
    for got in together {
        let got = got.await.unwrap();
        assert!(got.status.is_success(), "{}", got.text());
    }
}

/// One key's large bodies leave memory for another's.
#[tokio::test]
async fn one_key_cannot_take_all_memory() {
    let settings = "[limits]\nbody_mib = 2\nmemory_mib = 128\n[clients]\nkeys = [\"client-one\", \"client-two\"]";
    let lab = Arc::new(Lab::with(stalled(4), settings).await);
    let one = [("x-api-key", "client-one")];
    let held: Vec<_> = (0..4).map(|_| post(&lab, &one, of_length(2 << 20, true))).collect();
    while lab.sim.requests().len() < 4 {
        tokio::task::yield_now().await;
    }
    let fifth = post(&lab, &one, of_length(2 << 20, true));
    until_active(&lab, "client-one", 5).await;
    let other =
        post(&lab, &[("x-api-key", "client-two")], of_length(2 << 20, false)).await.unwrap();
    assert!(other.status.is_success(), "{}", other.text());
    assert!(!fifth.is_finished(), "it waits for its own key's bodies");
    held.iter().for_each(|held| held.abort());
    assert!(fifth.await.unwrap().status.is_success());
}

/// With client keys set, nothing but the probes answers without one.
#[tokio::test]
async fn counters_and_telemetry_need_a_key_where_there_are_any() {
    let lab = Lab::with(SimConfig::default(), "[clients]\nkeys = [\"client-1\"]").await;
    let basic = base64::engine::general_purpose::STANDARD.encode("me:client-1");
    let basic = format!("Basic {basic}");
    for path in ["/", "/metrics"] {
        let got = lab.get(path).await;
        assert_eq!(got.status.as_u16(), 401, "{path}");
        assert_eq!(got.header("www-authenticate"), Some("Basic realm=\"toolgate\""));
        assert!(!got.text().contains("toolgate_"), "{}", got.text());
        for (name, value) in [
            ("authorization", basic.as_str()),
            ("authorization", "Bearer client-1"),
            ("x-api-key", "client-1"),
        ] {
            let got = lab.send(Method::GET, path, &[(name, value)], "").await;
            assert_eq!(got.status.as_u16(), 200, "{path} {value}");
        }
        assert_eq!(lab.get(&format!("{path}?key=client-1")).await.status.as_u16(), 200);
        assert_eq!(lab.get(&format!("{path}?key=client-2")).await.status.as_u16(), 401);
    }
    for path in ["/v1/logs", "/v1/traces", "/v1/metrics", "/api/event_logging/batch"] {
        assert_eq!(lab.post(path, &json!({})).await.status.as_u16(), 401, "{path}");
        let got = lab.send(Method::POST, path, &[("x-api-key", "client-1")], "{}").await;
        assert_eq!(got.status.as_u16(), 200, "{path}");
    }
    for path in ["/healthz", "/readyz"] {
        assert_eq!(lab.get(path).await.status.as_u16(), 200, "{path}");
    }
    // Basic authentication is for people who look: pages cannot make a browser use it for turns.
    let body = Endpoint::Chat.ask(false).to_string();
    let got = lab
        .send(Method::POST, Endpoint::Chat.path(), &[("authorization", &basic)], body.clone())
        .await;
    assert_eq!(got.status.as_u16(), 401);
    let both = [("x-api-key", "sk-foreign"), ("authorization", "Bearer client-1")];
    let got = lab.send(Method::POST, Endpoint::Chat.path(), &both, body).await;
    assert!(got.status.is_success(), "{}", got.text());
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
