//! Responses that are generated whether or not a client waits for them.

use std::time::Duration;

use serde_json::{Value, json};
use toolgate_sim::{Fault, FaultRule, Script, SimConfig, When};

use super::support::{Gate, asked, grammar, words};

const MODEL: &str = "gemini-3-flash";

fn path(response: &Value, rest: &str) -> String {
    format!("/v1/responses/{}{rest}", response["id"].as_str().unwrap())
}

#[tokio::test]
async fn a_background_response_is_polled_and_streamed_again() {
    let gate = Gate::scripted(Script::new().text("A long story.").times(0)).await;
    let body = json!({"model": MODEL, "input": "x", "background": true, "stream": true});
    let got = gate.post("/v1/responses", body).await;
    let events = got.events();
    let made = &events.last().unwrap()["response"];
    assert_eq!((&made["status"], &made["background"]), (&json!("completed"), &json!(true)));
    let again = gate.get(&path(made, "?stream=true")).await;
    assert_eq!(again.text, got.text);
    let rest = gate.get(&path(made, "?stream=true&starting_after=3")).await.events();
    assert_eq!(rest, events[4..]);

    let body = json!({"model": MODEL, "input": "x", "background": true});
    let queued = gate.respond(body).await;
    assert_eq!(queued["status"], "queued");
    // Streaming it waits for the end.
    let events = gate.get(&path(&queued, "?stream=true")).await.events();
    assert_eq!(events.last().unwrap()["type"], "response.completed");
    let done = gate.get(&path(&queued, "")).await.ok();
    assert_eq!((&done["status"], words(&done).as_str()), (&json!("completed"), "A long story."));
    let next = json!({"model": MODEL, "input": "y", "previous_response_id": queued["id"]});
    assert_eq!(gate.post("/v1/responses", next).await.status, 200);
    let unstored = json!({"model": MODEL, "input": "x", "background": true, "store": false});
    assert_eq!(gate.post("/v1/responses", unstored).await.status, 400);
}

#[tokio::test]
async fn a_background_response_is_cancelled() {
    let fault = Fault::Stall { after: 0, ms: None };
    let config = SimConfig {
        faults: vec![FaultRule { fault, when: When::Always }],
        ..SimConfig::scripted(Script::new().text("never").times(0))
    };
    let gate = Gate::with(config, "").await;
    let queued = gate.respond(json!({"model": MODEL, "input": "x", "background": true})).await;
    let cancelled = gate.post(&path(&queued, "/cancel"), json!({})).await.ok();
    assert_eq!(cancelled["status"], "cancelled");
    assert_eq!(gate.get(&path(&queued, "")).await.ok()["status"], "cancelled");
    let again = gate.post(&path(&queued, "/cancel"), json!({})).await.ok();
    assert_eq!(again["status"], "cancelled");
}

#[tokio::test]
async fn a_background_failure_can_be_asked_for() {
    let fault = serde_json::from_value(json!({"kind": "status", "code": 400})).unwrap();
    let config = SimConfig {
        faults: vec![FaultRule { fault, when: When::Always }],
        ..SimConfig::scripted(Script::new().text("never").times(0))
    };
    let gate = Gate::with(config, "").await;
    let queued = gate.respond(json!({"model": MODEL, "input": "x", "background": true})).await;
    let events = gate.get(&path(&queued, "?stream=true")).await.events();
    assert_eq!(events.last().unwrap()["type"], "response.failed");
    assert_eq!(gate.get(&path(&queued, "")).await.ok()["status"], "failed");
}

/// A model that says one sentence of two and falls silent.
async fn silent() -> Gate {
    let script = Script::new().chunk("A sentence, ").chunk("cut.");
    Gate::scripted(script.fault(Fault::Stall { after: 1, ms: None }).times(0)).await
}

/// Waits until a response is as far as that.
async fn until(gate: &Gate, response: &Value, status: &str) {
    for _ in 0..2000 {
        if gate.get(&path(response, "")).await.ok()["status"] == status {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it never was {status}");
}

#[tokio::test]
async fn a_background_response_is_in_progress_while_the_model_speaks() {
    let gate = silent().await;
    let queued = gate.respond(json!({"model": MODEL, "input": "x", "background": true})).await;
    assert_eq!(queued["status"], "queued");
    until(&gate, &queued, "in_progress").await;
    let now = gate.get(&path(&queued, "")).await.ok();
    assert_eq!((&now["id"], &now["error"]), (&queued["id"], &Value::Null));
    gate.post(&path(&queued, "/cancel"), json!({})).await.ok();
}

/// A client that streams a response gets its end, in mid-text and before the first event.
#[tokio::test]
async fn whoever_watches_a_cancelled_response_sees_its_end() {
    let stalled = Fault::Stall { after: 0, ms: None };
    let wordless = SimConfig {
        faults: vec![FaultRule { fault: stalled, when: When::Always }],
        ..SimConfig::scripted(Script::new().text("never").times(0))
    };
    for (gate, said) in [(silent().await, true), (Gate::with(wordless, "").await, false)] {
        let queued = gate.respond(json!({"model": MODEL, "input": "x", "background": true})).await;
        let at = path(&queued, "?stream=true");
        let watch = gate.get(&at);
        let cancel = async {
            if said {
                until(&gate, &queued, "in_progress").await;
            }
            gate.post(&path(&queued, "/cancel"), json!({})).await.ok()
        };
        let (watched, cancelled) = tokio::join!(watch, cancel);
        assert_eq!(
            (&cancelled["status"], &cancelled["error"]),
            (&"cancelled".into(), &Value::Null)
        );
        assert_eq!(words(&cancelled), if said { "A sentence, " } else { "" });
        grammar::check_response(cancelled.to_string().as_bytes()).unwrap();
        assert_eq!(gate.get(&path(&queued, "")).await.ok(), cancelled);
        grammar::check_stream(watched.text.as_bytes()).unwrap();
        let last = watched.events().pop().unwrap();
        assert_eq!(last["type"], "response.failed", "{last}");
        assert_eq!(last["response"]["error"]["message"], "the response was cancelled");
        assert_eq!(last["response"]["output"], cancelled["output"]);
        assert_eq!(gate.get(&at).await.text, watched.text, "and so does whoever comes later");
    }
}

/// There is no answer yet that could be gone on from.
#[tokio::test]
async fn what_is_being_made_is_not_gone_on_from() {
    let (gate, hold) = Gate::held(Script::new().text("Yes.").times(0), "").await;
    let queued = gate.respond(json!({"model": MODEL, "input": "one", "background": true})).await;
    let next = json!({"model": MODEL, "input": "two", "previous_response_id": queued["id"]});
    let refused = gate.post("/v1/responses", next.clone()).await;
    assert_eq!(refused.status, 400, "{refused:?}");
    assert_eq!(refused.json()["error"]["param"], "previous_response_id", "{refused:?}");
    hold.set(false);
    until(&gate, &queued, "completed").await;
    gate.respond(next).await;
    assert_eq!(asked(&gate).concat(), "oneYes.two");
}

/// A client that disconnects before the model answers knows the id, and gets the rest later. Signs of
/// life are no answer.
#[tokio::test]
async fn a_background_stream_begins_before_the_model_does() {
    let script = Script::new().text("A story.").times(0);
    let (gate, hold) = Gate::held(script, "[liveness]\nping_seconds = 1").await;
    let body = json!({"model": MODEL, "input": "x", "background": true, "stream": true});
    for count in [1, 2] {
        hold.set(true);
        let events = gate.first_events("/v1/responses", &body, count).await;
        let seen = events.len();
        assert_eq!(events[0]["type"], "response.created");
        assert!(events[1..].iter().all(|event| event["type"] == "response.in_progress"));
        let queued = &events[0]["response"];
        assert_eq!(gate.get(&path(queued, "")).await.ok()["status"], "queued");
        let whole = path(queued, "?stream=true");
        let rest = path(queued, &format!("?stream=true&starting_after={}", seen - 1));
        let watch = async { tokio::join!(gate.get(&whole), gate.get(&rest)) };
        let ((whole, rest), ()) = tokio::join!(watch, async { hold.set(false) });
        grammar::check_stream(whole.text.as_bytes()).unwrap();
        let all = whole.events();
        assert_eq!(all[..seen], events);
        assert_eq!(all[seen..], rest.events());
        assert_eq!(all.last().unwrap()["type"], "response.completed");
    }
}
