//! Gateways that share a file, and a response that one of them makes in the background.

use serde_json::{Value, json};
use toolgate_sim::Script;

use super::shared::File;
use super::support::{Gate, Hold, grammar, words};

const MODEL: &str = "gemini-3-flash";

fn path(response: &Value, rest: &str) -> String {
    format!("/v1/responses/{}{rest}", response["id"].as_str().unwrap())
}

/// A gateway that makes a response, what holds it back, and another gateway.
async fn two(file: &File) -> (Gate, Hold, Gate) {
    let script = Script::new().text("A story.").times(0);
    let settings = format!("store = \"sqlite:{}\"", file.path().display());
    let (maker, hold) = Gate::held(script.clone(), &settings).await;
    (maker, hold, file.gate(script).await)
}

async fn begun(maker: &Gate, input: &str) -> Value {
    let asked = maker.sim.requests().len();
    let body = json!({"model": MODEL, "input": input, "background": true});
    let queued = maker.respond(body).await;
    maker.until_asked(asked + 1).await;
    queued
}

#[tokio::test]
async fn another_gateway_on_the_file_shows_a_response_in_progress() {
    let file = File::new("replicas-shown");
    let (maker, hold, other) = two(&file).await;
    let queued = begun(&maker, "go").await;
    assert_eq!(other.get(&path(&queued, "")).await.ok()["status"], "queued");
    let next = json!({"model": MODEL, "input": "next", "previous_response_id": queued["id"]});
    assert_eq!(other.post("/v1/responses", next).await.status, 400);
    let at = path(&queued, "?stream=true");
    let (streamed, ()) = tokio::join!(other.get(&at), async { hold.set(false) });
    grammar::check_stream(streamed.text.as_bytes()).unwrap();
    assert_eq!(streamed.events().last().unwrap()["type"], "response.completed");
    let done = other.get(&path(&queued, "")).await.ok();
    assert_eq!((&done["status"], words(&done).as_str()), (&json!("completed"), "A story."));
    assert_eq!(maker.get(&path(&queued, "")).await.ok(), done);
}

#[tokio::test]
async fn another_gateway_on_the_file_cancels_a_response_in_progress() {
    let file = File::new("replicas-cancelled");
    let (maker, _hold, other) = two(&file).await;
    let queued = begun(&maker, "go").await;
    let cancelled = other.post(&path(&queued, "/cancel"), json!({})).await.ok();
    assert_eq!(cancelled["status"], "cancelled");
    // Its maker hears of it, and its watchers see an end.
    let events = maker.get(&path(&queued, "?stream=true")).await.events();
    assert_eq!(events.last().unwrap()["type"], "response.failed");
    for gate in [&maker, &other] {
        assert_eq!(gate.get(&path(&queued, "")).await.ok()["status"], "cancelled");
    }
}

/// Neither an end that comes later nor one that comes now brings it back.
#[tokio::test]
async fn another_gateway_on_the_file_deletes_a_response_in_progress() {
    for is_near in [false, true] {
        let file = File::new("replicas-deleted");
        let (maker, hold, other) = two(&file).await;
        let queued = begun(&maker, "go").await;
        let at = path(&queued, "");
        let (deleted, ()) = tokio::join!(other.delete(&at), async { hold.set(!is_near) });
        assert_eq!(deleted.status, 200);
        hold.set(false);
        maker.running.drain().await;
        assert_eq!(other.get(&at).await.status, 404, "{is_near}");
    }
}
