//! Two keys, one gateway: what one has made is not there for the other.

use http::Method;
use serde_json::{Value, json};
use toolgate_sim::{Fault, FaultRule, Script, SimConfig, When};

use super::sockets::Socket;
use super::support::{Gate, tool};

const MODEL: &str = "gemini-3-flash";
const KEYS: &str = "[clients]\nkeys = [\"client-a\", \"client-b\"]\n";

async fn gate(script: Script) -> Gate {
    Gate::with(SimConfig::scripted(script), KEYS).await
}

fn id(object: &Value) -> String {
    object["id"].as_str().unwrap().to_owned()
}

/// Everything of the key `a` that has an id.
struct Made {
    /// A response, whole; one that was streamed; one made in the background.
    responses: Vec<String>,
    conversation: String,
    item: String,
    message: String,
}

impl Made {
    async fn new(gate: &Gate) -> Self {
        let conversation = id(&gate.post("/v1/conversations", json!({})).await.ok());
        let body = json!({"model": MODEL, "input": "secret", "conversation": conversation});
        let whole = id(&gate.respond(body).await);
        let body = json!({"model": MODEL, "input": "secret", "stream": true});
        let streamed = gate.post("/v1/responses", body).await.events();
        let streamed = id(&streamed.last().unwrap()["response"]);
        let body = json!({"model": MODEL, "input": "secret", "background": true, "stream": true});
        let background = gate.post("/v1/responses", body).await.events();
        let background = id(&background.last().unwrap()["response"]);
        let list = gate.get(&format!("/v1/conversations/{conversation}/items")).await.ok();
        let thread = json!({"model": "claude-x", "max_tokens": 9, "thread": {"type": "create"}, "messages": [{"role": "user", "content": "secret"}]});
        let message = id(&gate.post("/v1/messages", thread).await.ok());
        let responses = vec![whole, streamed, background];
        Self { responses, conversation, item: id(&list["data"][0]), message }
    }

    /// Every way to name one of them.
    fn ways(&self) -> Vec<(Method, String, Option<Value>)> {
        let mut ways = Vec::new();
        for response in &self.responses {
            let at = format!("/v1/responses/{response}");
            let go_on = json!({"model": MODEL, "input": "x", "previous_response_id": response});
            ways.extend([
                (Method::GET, at.clone(), None),
                (Method::GET, format!("{at}?stream=true"), None),
                (Method::GET, format!("{at}?stream=true&starting_after=1"), None),
                (Method::GET, format!("{at}/input_items"), None),
                (Method::POST, format!("{at}/cancel"), Some(json!({}))),
                (Method::DELETE, at, None),
                (Method::POST, "/v1/responses".to_owned(), Some(go_on.clone())),
                (Method::POST, "/v1/responses/compact".to_owned(), Some(go_on)),
            ]);
        }
        let at = format!("/v1/conversations/{}", self.conversation);
        let item = format!("{at}/items/{}", self.item);
        let speak = json!({"model": MODEL, "input": "x", "conversation": self.conversation});
        let object =
            json!({"model": MODEL, "input": "x", "conversation": {"id": self.conversation}});
        let follow = json!({"model": "claude-x", "max_tokens": 9, "thread": {"type": "continue", "previous_message_id": self.message}, "messages": [{"role": "user", "content": "y"}]});
        ways.extend([
            (Method::GET, at.clone(), None),
            (Method::POST, at.clone(), Some(json!({}))),
            (Method::DELETE, at.clone(), None),
            (Method::GET, format!("{at}/items"), None),
            (Method::POST, format!("{at}/items"), Some(json!({}))),
            (Method::GET, item.clone(), None),
            (Method::DELETE, item, None),
            (Method::POST, "/v1/responses".to_owned(), Some(speak.clone())),
            (Method::POST, "/v1/responses".to_owned(), Some(object)),
            (Method::POST, "/v1/responses/compact".to_owned(), Some(speak.clone())),
            (Method::POST, "/v1/gemini".to_owned(), Some(speak)),
            (Method::POST, "/v1/messages".to_owned(), Some(follow)),
        ]);
        ways
    }
}

#[tokio::test]
async fn r97_every_id_of_one_key_is_a_404_for_another() {
    let gate = gate(Script::new().text("x").times(0)).await;
    let made = Made::new(&gate).await;
    let ways = made.ways();
    for (method, path, body) in &ways {
        let got = gate.send(method.clone(), path, "b", body.as_ref()).await;
        assert_eq!(got.status, 404, "{method} {path}: {got:?}");
        assert!(!got.text.contains("secret"), "{got:?}");
    }
    // The same ways lead there with the right key, and nothing was changed by the wrong one.
    for (method, path, body) in ways.iter().filter(|(method, ..)| *method != Method::DELETE) {
        let got = gate.send(method.clone(), path, "a", body.as_ref()).await;
        assert_ne!(got.status, 404, "{method} {path}: {got:?}");
    }
}

#[tokio::test]
async fn r97_a_socket_goes_on_only_from_its_own_key() {
    let gate = gate(Script::new().text("x").times(0)).await;
    let first = gate.respond(json!({"model": MODEL, "input": "secret"})).await;
    let go_on = json!({"type": "response.create", "model": MODEL, "input": "x", "previous_response_id": first["id"]});
    let mut own = Socket::open_as(&gate, "a").await;
    own.send(go_on.clone()).await;
    assert_eq!(own.answer().await.last().unwrap()["type"], "response.completed");
    let mut other = Socket::open_as(&gate, "b").await;
    other.send(go_on).await;
    let refused = other.answer().await.pop().unwrap();
    assert_eq!((&refused["type"], &refused["status"]), (&json!("error"), &json!(404)), "{refused}");
}

#[tokio::test]
async fn r97_a_response_in_progress_belongs_to_one_key() {
    let fault = Fault::Stall { after: 0, ms: None };
    let config = SimConfig {
        faults: vec![FaultRule { fault, when: When::Always }],
        ..SimConfig::scripted(Script::new().text("never").times(0))
    };
    let gate = Gate::with(config, KEYS).await;
    let queued = gate.respond(json!({"model": MODEL, "input": "x", "background": true})).await;
    let at = format!("/v1/responses/{}", id(&queued));
    for (method, path) in [
        (Method::GET, at.clone()),
        (Method::GET, format!("{at}?stream=true")),
        (Method::POST, format!("{at}/cancel")),
        (Method::DELETE, at.clone()),
    ] {
        let got = gate.send(method.clone(), &path, "b", None).await;
        assert_eq!(got.status, 404, "{method} {path}: {got:?}");
    }
    assert_eq!(gate.post(&format!("{at}/cancel"), json!({})).await.ok()["status"], "cancelled");
}

#[tokio::test]
async fn r97_names_and_references_of_another_key_mean_nothing() {
    let gate = gate(Script::new().text("x").times(0)).await;
    let made = Made::new(&gate).await;
    let reference = json!({"model": MODEL, "input": [{"type": "item_reference", "id": made.item}, {"role": "user", "content": "x"}]});
    gate.send(Method::POST, "/v1/responses", "b", Some(&reference)).await.ok();
    assert!(!gate.last_asked().to_string().contains("secret"));
    // A name of one's own choice is another conversation for another key.
    for (key, text, turns) in [("a", "secret", 1), ("b", "hello", 1), ("a", "again", 3)] {
        let body = json!({"model": MODEL, "input": text, "conversation": "ours"});
        gate.send(Method::POST, "/v1/responses", key, Some(&body)).await.ok();
        assert_eq!(gate.last_asked()["contents"].as_array().unwrap().len(), turns, "{key}");
    }
}

#[tokio::test]
async fn r97_signatures_of_another_key_are_not_found() {
    let call = |script: Script| script.call("t", json!({"city": "x"})).finish();
    let gate = gate(call(Script::new()).text("one").finish().text("two")).await;
    let question = json!({"role": "user", "content": "go"});
    let body = json!({"model": MODEL, "store": false, "input": [question], "tools": [tool("t")]});
    let first = gate.send(Method::POST, "/v1/responses", "a", Some(&body)).await.ok();
    let calls = first["output"].as_array().unwrap();
    let called = calls.iter().find(|item| item["type"] == "function_call").unwrap();
    let bare = json!({"type": "function_call", "call_id": called["call_id"], "name": "t", "arguments": called["arguments"]});
    let result =
        json!({"type": "function_call_output", "call_id": called["call_id"], "output": "ok"});
    let input = json!([question, bare, result]);
    let body = json!({"model": MODEL, "store": false, "input": input, "tools": [tool("t")]});
    gate.send(Method::POST, "/v1/responses", "b", Some(&body)).await.ok();
    let counters = gate.sim.counters();
    assert_eq!((counters.signatures, counters.placeholders), (0, 1), "{counters:?}");
    gate.send(Method::POST, "/v1/responses", "a", Some(&body)).await.ok();
    let counters = gate.sim.counters();
    assert_eq!((counters.signatures, counters.placeholders), (1, 1), "{counters:?}");
}
