//! Silence, broken connections, and the end of the service.

#[path = "support/harness.rs"]
mod harness;

use std::time::Duration;

use harness::{DOORS, Door, Got, Lab};
use http_body_util::BodyExt as _;
use toolgate_sim::{Driver, Fault, FaultRule, Script, SimConfig, When};

fn scripted(fault: Fault) -> SimConfig {
    let script =
        Script::new().text("First words, and then some more of them.").fault(fault).times(0);
    SimConfig { driver: Driver::Script(script), ..SimConfig::default() }
}

/// One question at each door, all at a time: they take a while.
async fn asked_together(lab: &Lab) -> Vec<(Door, Got)> {
    let ask = |door: Door| async move { (door, lab.post(door.path(), &door.ask(true)).await) };
    let [first, second, third] = DOORS.map(ask);
    let (first, second, third) = tokio::join!(first, second, third);
    vec![first, second, third]
}

/// K1: while the upstream is silent, each dialect's own sign of life, between events only.
#[tokio::test]
async fn k1_silence_gets_a_sign_of_life() {
    let lab = Lab::with(scripted(Fault::Delay { ms: 1500 }), "[liveness]\nping_seconds = 1").await;
    for (door, got) in asked_together(&lab).await {
        assert!(got.status.is_success(), "{}", got.text());
        door.check(&got, true);
        let text = got.text();
        let signs = match door {
            Door::Anthropic => text.matches("event: ping").count(),
            Door::Chat => text.matches("\n: ").count() + usize::from(text.starts_with(": ")),
            Door::Responses => text.matches("event: response.in_progress").count() - 1,
        };
        assert!(signs >= 1, "{door:?}: {text}");
        assert!(text.contains("First"), "{door:?}: the answer still came");
    }
}

/// K2: signs of life stop when the upstream is silent for too long; the client is told.
#[tokio::test]
async fn k2_a_dead_upstream_is_an_error() {
    let settings = "[liveness]\nping_seconds = 1\n[upstream]\nidle_seconds = 2";
    let lab = Lab::with(scripted(Fault::Stall { after: 1, ms: None }), settings).await;
    for (door, got) in asked_together(&lab).await {
        assert!(got.status.is_success(), "{door:?}: it had begun");
        door.check(&got, true);
        assert!(got.text().contains("silent"), "{door:?}: {}", got.text());
    }
    let lab =
        Lab::with(scripted(Fault::Stall { after: 0, ms: None }), "[upstream]\nidle_seconds = 1")
            .await;
    for (door, got) in asked_together(&lab).await {
        assert_eq!(got.status.as_u16(), 504, "{door:?}: {}", got.text());
        door.check_error(&got);
    }
}

/// K1, K2: Gemini's clients take nothing but data. A stream whose upstream is silent for too long ends
/// without a finish, which makes them ask again.
#[tokio::test]
async fn k2_gemini_clients_get_data_and_an_end() {
    let settings = "[liveness]\nping_seconds = 1\n[upstream]\nidle_seconds = 2";
    let lab = Lab::with(scripted(Fault::Stall { after: 1, ms: None }), settings).await;
    let ask = serde_json::json!({"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]});
    let path = "/v1beta/models/gemini-3.6-flash:streamGenerateContent?alt=sse";
    let got = lab.post(path, &ask).await;
    assert!(got.status.is_success());
    let text = got.text();
    assert!(text.contains("First") && !text.contains("finishReason"), "{text}");
    assert!(text.lines().all(|line| line.is_empty() || line.starts_with("data: ")), "{text}");
    assert!(text.ends_with("\n\n") || text.ends_with("\r\n\r\n"), "{text}");
}

/// A connection that breaks in the middle is an error that the client can see.
#[tokio::test]
async fn a_broken_upstream_is_an_error() {
    for fault in [Fault::Reset { after: 900 }, Fault::Cut { after: 900 }] {
        let lab = Lab::with(scripted(fault), "").await;
        for door in DOORS {
            let got = lab.post(door.path(), &door.ask(true)).await;
            door.check(&got, true);
            let text = got.text();
            assert!(text.contains("error") || text.contains("failed"), "{door:?}: {text}");
        }
    }
}

/// H2: thoughts bind to nothing. A turn that ends after them is asked for again, and what it says
/// then follows them in the same stream.
#[tokio::test]
async fn h2_a_turn_that_only_thought_is_asked_for_again() {
    for fault in [Fault::ThinkingOnly, Fault::MalformedCall] {
        for door in DOORS {
            let thought = "**Looking**\n\nThe folder first.\n\n\n";
            let script = Script::new().thought(thought).text("Words in the end.").times(0);
            let rule = FaultRule { fault: fault.clone(), when: When::Requests(vec![1]) };
            let config = SimConfig {
                driver: Driver::Script(script),
                faults: vec![rule],
                ..SimConfig::default()
            };
            let lab = Lab::with(config, "").await;
            let got = lab.post(door.path(), &door.ask(true)).await;
            door.check(&got, true);
            assert!(!door.is_error(&got), "{fault:?} {door:?}: {}", got.text());
            assert_eq!(lab.sim.counters().requests, 2, "{fault:?} {door:?}");
            let text = got.text();
            assert!(text.matches("The folder first").count() >= 2, "{door:?}: {text}");
            assert!(text.contains("Words"), "{door:?}: {text}");
        }
    }
}

/// A client that goes away takes the upstream's call with it.
#[tokio::test]
async fn a_client_that_leaves_cancels_the_upstream() {
    let lab = Lab::with(scripted(Fault::Stall { after: 1, ms: None }), "").await;
    for door in DOORS {
        let before = lab.sim.counters().cancels;
        let response = lab.open(door.path(), &door.ask(true)).await;
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

/// Bytes may arrive one by one.
#[tokio::test]
async fn r58_any_chunk_boundary() {
    let whole = Lab::with(SimConfig::default(), "").await;
    let split = SimConfig {
        faults: vec![FaultRule { fault: Fault::Split { size: 1 }, when: When::Always }],
        ..SimConfig::default()
    };
    let split = Lab::with(split, "").await;
    for door in DOORS {
        let shape = |text: String| text.matches("\"delta\"").count();
        let want = whole.post(door.path(), &door.ask(true)).await;
        let got = split.post(door.path(), &door.ask(true)).await;
        door.check(&got, true);
        assert_eq!(shape(got.text()), shape(want.text()), "{door:?}");
    }
}

/// SIGTERM lets running turns finish and takes no new ones.
#[tokio::test]
async fn draining_finishes_streams() {
    let lab = Lab::with(scripted(Fault::Trickle { ms: 20 }), "").await;
    let mut bodies = Vec::new();
    for _ in 0..30 {
        for door in DOORS {
            bodies.push((door, lab.open(door.path(), &door.ask(true)).await.into_body()));
        }
    }
    let Lab { gateway, .. } = lab;
    let draining = tokio::spawn(gateway.drain());
    for (door, body) in bodies {
        let whole = body.collect().await.unwrap().to_bytes();
        let got = Got::ok(whole);
        door.check(&got, true);
        assert!(got.text().contains("more of them") || got.text().contains("them."), "{door:?}");
    }
    draining.await.unwrap();
}
