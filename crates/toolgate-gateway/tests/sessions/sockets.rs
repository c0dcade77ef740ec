//! The Responses API over a WebSocket, as Codex speaks it.

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use toolgate_sim::{Fault, Script, SimConfig};

use super::support::{Gate, asked, items, tool, words};

const MODEL: &str = "gemini-3-flash";

pub(crate) struct Socket(WebSocketStream<TcpStream>);

impl Socket {
    async fn open(gate: &Gate) -> Self {
        Self::open_as(gate, "k").await
    }

    /// With a key.
    pub(crate) async fn open_as(gate: &Gate, key: &str) -> Self {
        let stream = TcpStream::connect(gate.running.addr).await.unwrap();
        let url = format!("ws://{}/v1/responses", gate.running.addr);
        let mut request = url.into_client_request().unwrap();
        let bearer = format!("Bearer client-{key}").parse().unwrap();
        request.headers_mut().insert("authorization", bearer);
        let (socket, response) = tokio_tungstenite::client_async(request, stream).await.unwrap();
        assert_eq!(response.status(), 101);
        Self(socket)
    }

    pub(crate) async fn send(&mut self, body: Value) {
        self.0.send(Message::text(body.to_string())).await.unwrap();
    }

    async fn next(&mut self) -> Value {
        loop {
            match self.0.next().await.unwrap().unwrap() {
                Message::Text(text) => return serde_json::from_str(text.as_str()).unwrap(),
                Message::Pong(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// The events of one answer.
    pub(crate) async fn answer(&mut self) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            let event = self.next().await;
            let kind = event["type"].as_str().unwrap().to_owned();
            events.push(event);
            if matches!(kind.as_str(), "response.completed" | "response.failed" | "error") {
                return events;
            }
        }
    }

    async fn response(&mut self, body: Value) -> Value {
        self.send(body).await;
        self.answer().await.pop().unwrap()["response"].take()
    }
}

fn create(more: Value) -> Value {
    let mut body = json!({
        "type": "response.create", "model": MODEL, "stream": true, "store": false,
        "include": ["reasoning.encrypted_content"], "tools": [tool("exec")]
    });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

#[tokio::test]
async fn codex_session_sends_only_what_is_new() {
    let script = Script::new().call("exec", json!({"city": "ls"})).finish().text("Two files.");
    let gate = Gate::scripted(script).await;
    let mut socket = Socket::open(&gate).await;
    let developer = json!({"type": "message", "role": "developer", "content": "You code."});
    let warm = socket.response(create(json!({"generate": false, "input": [developer]}))).await;
    assert_eq!(warm["status"], "completed");
    assert_eq!(gate.sim.counters().requests, 0, "nothing was asked");
    let user = json!({"type": "message", "role": "user", "content": "List files."});
    let first =
        socket.response(create(json!({"previous_response_id": warm["id"], "input": [user]}))).await;
    let call = &items(&first, "function_call")[0]["call_id"];
    let result = json!({"type": "function_call_output", "call_id": call, "output": "a b"});
    socket.0.send(Message::Ping("x".into())).await.unwrap();
    let second = socket
        .response(create(json!({"previous_response_id": first["id"], "input": [result]})))
        .await;
    assert_eq!(words(&second), "Two files.");
    let asked = gate.last_asked();
    assert_eq!(asked["contents"].as_array().unwrap().len(), 3, "{asked}");
    assert!(asked["systemInstruction"].to_string().contains("You code."), "{asked}");
    gate.check_signatures(true);
}

#[tokio::test]
async fn errors_are_frames_and_the_connection_goes_on() {
    let gate = Gate::scripted(Script::new().text("fine")).await;
    let mut socket = Socket::open(&gate).await;
    for (body, status) in [
        (json!({"type": "response.create", "model": MODEL, "input": 5}), 400),
        (json!({"type": "nonsense"}), 400),
        (create(json!({"input": "x", "previous_response_id": "resp_other"})), 404),
    ] {
        socket.send(body).await;
        let error = socket.next().await;
        assert_eq!(
            (&error["type"], &error["status"]),
            (&json!("error"), &json!(status)),
            "{error}"
        );
        assert!(error["error"]["message"].is_string());
    }
    let answer = socket.response(create(json!({"input": "x"}))).await;
    assert_eq!(words(&answer), "fine");
}

/// What cannot be taken is refused in its turn, in words, before the connection is closed.
#[tokio::test]
async fn what_is_too_long_is_told_so() {
    let script = SimConfig::scripted(Script::new().text("one"));
    let gate = Gate::with(script, "[limits]\nbody_mib = 1").await;
    let mut socket = Socket::open(&gate).await;
    socket.0.send(Message::binary("{}")).await.unwrap();
    socket.send(create(json!({"input": "x"}))).await;
    socket.send(create(json!({"input": "x".repeat(40 << 20)}))).await;
    let refused = socket.answer().await.pop().unwrap();
    assert_eq!((&refused["type"], &refused["status"]), (&json!("error"), &json!(400)), "{refused}");
    let answered = socket.answer().await.pop().unwrap();
    assert_eq!(words(&answered["response"]), "one");
    let refused = socket.answer().await.pop().unwrap();
    assert_eq!((&refused["type"], &refused["status"]), (&json!("error"), &json!(413)), "{refused}");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("1 MiB") && message.contains("request id"), "{message}");
    let Some(Ok(Message::Close(Some(frame)))) = socket.0.next().await else { panic!() };
    assert_eq!(u16::from(frame.code), 1009);
}

#[tokio::test]
async fn answers_come_one_after_the_other() {
    let gate =
        Gate::scripted(Script::new().text("one").finish().text("two").finish().text("three")).await;
    let mut socket = Socket::open(&gate).await;
    for input in ["a", "b", "c"] {
        socket.send(create(json!({"input": input}))).await;
    }
    let mut all = Vec::new();
    for _ in 0..3 {
        let events = socket.answer().await;
        assert_eq!(events[0]["type"], "response.created");
        let ids: Vec<_> = events.iter().filter_map(|it| it["response"]["id"].as_str()).collect();
        assert!(ids.windows(2).all(|pair| pair[0] == pair[1]));
        all.push(words(&events.last().unwrap()["response"]));
    }
    assert_eq!(all, ["one", "two", "three"]);
}

#[tokio::test]
async fn other_replicas_know_what_was_stored() {
    let gate = Gate::scripted(Script::new().text("one").finish().text("two")).await;
    let mut socket = Socket::open(&gate).await;
    let first = socket.response(create(json!({"input": "a", "store": true}))).await;
    let mut other = Socket::open(&gate).await;
    let body = create(json!({"input": "b", "previous_response_id": first["id"]}));
    assert_eq!(words(&other.response(body).await), "two");
}

#[tokio::test]
async fn a_plain_get_is_told_to_upgrade() {
    let gate = Gate::new().await;
    assert_eq!(gate.get("/v1/responses").await.status, 426);
}

#[tokio::test]
async fn a_drain_closes_idle_sockets() {
    let gate = Gate::new().await;
    let mut socket = Socket::open(&gate).await;
    gate.running.drain().await;
    assert!(matches!(socket.0.next().await, Some(Ok(Message::Close(_))) | None));
}

/// A client that leaves is told so, also in the middle of an answer.
#[tokio::test]
async fn a_leaving_client_gets_its_close_back() {
    let stall = Fault::Stall { after: 0, ms: None };
    let gate = Gate::scripted(Script::new().text("never").fault(stall)).await;
    for is_asking in [false, true] {
        let mut socket = Socket::open(&gate).await;
        if is_asking {
            socket.send(create(json!({"input": "x"}))).await;
        }
        socket.0.close(None).await.unwrap();
        let last = socket.0.next().await;
        assert!(matches!(last, Some(Ok(Message::Close(_)))), "{is_asking}: {last:?}");
    }
}

/// An idle connection takes no room from others, and a key that was taken away is of no use in it.
#[tokio::test]
async fn an_idle_socket_holds_nothing() {
    let settings = |keys: &str| format!("[limits]\nconcurrency = 1\n[clients]\nkeys = [{keys}]");
    let gate = Gate::with(SimConfig::default(), &settings("\"client-k\", \"client-a\"")).await;
    let mut socket = Socket::open(&gate).await;
    let ask = json!({"model": MODEL, "input": "Hi."});
    gate.respond(ask.clone()).await;
    let answered = socket.response(create(json!({"input": "Hi."}))).await;
    assert_eq!(answered["status"], "completed", "{answered}");
    gate.respond(ask).await;

    gate.reload(&settings("\"client-a\""));
    socket.send(create(json!({"input": "Hi."}))).await;
    let refused = socket.answer().await.pop().unwrap();
    assert_eq!((&refused["type"], &refused["status"]), (&json!("error"), &json!(401)), "{refused}");
}

/// A connection continues from the items of a conversation in another dialect, too.
#[tokio::test]
async fn r101_a_connection_goes_on_from_what_gemini_s_form_said() {
    let gate = Gate::scripted(Script::new().text("Yes.").times(0)).await;
    let mut socket = Socket::open_as(&gate, "a").await;
    for input in ["one", "two"] {
        let body = json!({"model": MODEL, "input": input, "conversation": "c"});
        gate.post("/v1/gemini", body).await.ok();
        let body = json!({"model": MODEL, "input": "and", "conversation": "c"});
        gate.respond(body).await;
    }
    let warm = create(json!({"generate": false, "input": "warm", "conversation": "c"}));
    let mut last = socket.response(warm).await;
    for input in ["three", "four"] {
        let body = create(json!({"input": input, "previous_response_id": last["id"]}));
        last = socket.response(body).await;
    }
    let said = asked(&gate).concat();
    assert_eq!(said, "oneYes.andYes.twoYes.andYes.warmthreeYes.four");
    gate.check_signatures(true);
}

/// How a raw frame, in a connection whose client has sent nothing else, is answered: the code of the close.
async fn closed_after(gate: &Gate, frame: &[u8]) -> u16 {
    let mut socket = Socket::open(gate).await;
    socket.0.get_mut().write_all(frame).await.unwrap();
    loop {
        match socket.0.next().await {
            Some(Ok(Message::Close(Some(frame)))) => return frame.code.into(),
            Some(Ok(_)) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn broken_frames_are_closed_with_the_code_that_says_what_is_wrong() {
    let gate = Gate::new().await;
    // Masked with zeros: fin and opcode, mask and length, mask, payload.
    for (what, frame, code) in [
        ("a reserved opcode", &b"\x83\x80\0\0\0\0"[..], 1002),
        ("a frame without a mask", b"\x81\x02hi", 1002),
        ("a reserved bit", b"\xC1\x82\0\0\0\0hi", 1002),
        ("a text that is no UTF-8", b"\x81\x82\0\0\0\0\xFF\xFE", 1007),
    ] {
        assert_eq!(closed_after(&gate, frame).await, code, "{what}");
    }
}

#[tokio::test]
async fn an_idle_socket_is_pinged_and_then_closed() {
    let settings = "[liveness]\nping_seconds = 1\nwebsocket_idle_seconds = 2";
    let gate = Gate::with(SimConfig::default(), settings).await;
    let mut socket = Socket::open(&gate).await;
    let mut pings = 0;
    loop {
        match socket.0.next().await {
            Some(Ok(Message::Ping(_))) => pings += 1,
            Some(Ok(Message::Close(Some(frame)))) => {
                assert_eq!(u16::from(frame.code), 1000);
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(pings > 0);
}
