//! Signatures: genuine ones are accepted, altered and moved ones are refused.

use serde_json::{Value, json};

use super::*;

fn body() -> Value {
    prompt("Weather in Paris and Rome?", json!({"tools": tools(&["get_weather"])}))
}

/// First step of the demo model, and the request with its results.
fn second_step(sim: &Sim, model: &str) -> Value {
    let turn = model_turn(&stream(sim, model, &body()));
    let mut next = body();
    let answer = answers(&turn, json!({"output": "sunny"}));
    next["contents"].as_array_mut().unwrap().extend([turn, answer]);
    next
}

fn refusal(sim: &Sim, model: &str, body: &Value) -> Option<String> {
    let (status, body) = generate(sim, model, body);
    (status != 200).then(|| body["error"]["message"].as_str().unwrap().to_owned())
}

#[test]
fn issued_signatures_are_accepted() {
    for model in [OLD, THREE, "gemini-3.5-flash", NEW, "gemini-3.8-flash", "gemini-flash-latest"] {
        let sim = Sim::new(SimConfig::default());
        assert_eq!(refusal(&sim, model, &second_step(&sim, model)), None, "{model}");
        let counters = sim.counters();
        assert_eq!(
            (counters.signatures, counters.placeholders, counters.doubled),
            (1, 0, 0),
            "{model}"
        );
        // So are the signatures of unary answers and of a text's end.
        let (_, whole) = generate(&sim, model, &body());
        let mut next = body();
        let turn = whole["candidates"][0]["content"].clone();
        let answer = answers(&turn, json!({"output": "sunny"}));
        next["contents"].as_array_mut().unwrap().extend([turn, answer]);
        let words = stream(&sim, model, &next);
        next["contents"].as_array_mut().unwrap().extend([model_turn(&words), user("Thanks!")]);
        assert_eq!(refusal(&sim, model, &next), None, "{model}");
    }
}

#[test]
fn altered_and_moved_signatures_are_refused() {
    let sim = Sim::new(SimConfig::default());
    let good = second_step(&sim, NEW);
    let signature =
        good["contents"][1]["parts"][0]["thoughtSignature"].as_str().unwrap().to_owned();
    let other =
        second_step(&sim, "gemini-3.7-flash")["contents"][1]["parts"][0]["thoughtSignature"]
            .clone();
    let with = |change: &dyn Fn(&mut Value)| {
        let mut body = good.clone();
        change(&mut body["contents"][1]["parts"]);
        refusal(&sim, NEW, &body)
    };
    let missing = with(&|parts| drop(parts[0].as_object_mut().unwrap().remove("thoughtSignature")));
    assert!(
        missing
            .unwrap()
            .contains("Function call is missing a thought_signature in functionCall parts.")
    );
    let altered = signature.replacen('A', "B", 1).replacen('B', "C", 1);
    assert_eq!(
        with(&|parts| parts[0]["thoughtSignature"] = json!(altered)).as_deref(),
        Some("Corrupted thought signature.")
    );
    assert_eq!(
        with(&|parts| parts[0]["thoughtSignature"] = other.clone()).as_deref(),
        Some("Invalid thought signature.")
    );
    assert_eq!(
        with(&|parts| parts[0]["thoughtSignature"] = json!("EqQBCgIYAhIMforeign")).as_deref(),
        Some("Corrupted thought signature.")
    );
    // Moved to the other call; the first call then needs another signature.
    let moved = with(&|parts| {
        parts[1]["thoughtSignature"] = json!(signature);
        parts[0]["thoughtSignature"] = json!("skip_thought_signature_validator");
    });
    assert_eq!(moved.as_deref(), Some("Invalid thought signature."));
    assert_eq!(
        with(&|parts| parts[0]["thoughtSignature"] = json!("skip_thought_signature_validator")),
        None
    );
    assert_eq!(sim.counters().placeholders, 1);
    // Sent to another service.
    let path =
        format!("/v1beta1/projects/p/locations/l/publishers/google/models/{NEW}:generateContent");
    let plan = sim.plan(&post(&path, &good));
    assert_eq!(plan.status, 400);
    assert!(String::from_utf8(plan.bytes()).unwrap().contains("Thought signature is not valid"));
    // In its own position and on the other call.
    assert_eq!(with(&|parts| parts[1]["thoughtSignature"] = json!(signature)), None);
    assert_eq!(sim.counters().doubled, 1);
}

#[test]
fn repeated_signatures_are_counted() {
    let sim = Sim::new(SimConfig::default());
    let words = stream(&sim, NEW, &prompt("Hello", json!({})));
    let turn = model_turn(&words);
    let body = json!({"contents": [user("Hello"), turn, user("Again"), turn, user("And again")]});
    assert_eq!(refusal(&sim, NEW, &body), None);
    assert_eq!(sim.counters().doubled, 1);
}

#[test]
fn signatures_survive_a_restart_with_the_same_seed() {
    let next = second_step(&Sim::new(SimConfig::default()), NEW);
    assert_eq!(refusal(&Sim::new(SimConfig::default()), NEW, &next), None);
    let foreign = Sim::new(SimConfig { seed: 7, ..SimConfig::default() });
    assert_eq!(refusal(&foreign, NEW, &next).as_deref(), Some("Corrupted thought signature."));
}

#[test]
fn mismatched_responses_get_an_empty_answer() {
    let sim = Sim::new(SimConfig::default());
    let good = second_step(&sim, NEW);
    let with = |change: &dyn Fn(&mut Value)| {
        let mut body = good.clone();
        change(&mut body["contents"][2]["parts"]);
        shape(&stream(&sim, NEW, &body))
    };
    assert_eq!(with(&|_| {}), "text | text | text | empty*!STOP");
    assert_eq!(with(&|parts| parts[0]["functionResponse"]["id"] = json!("zzzz9999")), "empty!STOP");
    assert_eq!(with(&|parts| parts[0]["functionResponse"]["name"] = json!("other")), "empty!STOP");
    assert_eq!(with(&|parts| drop(parts.as_array_mut().unwrap().pop())), "empty!STOP");
    assert_eq!(sim.counters().mismatches, 3);
    let without_ids = |parts: &mut Value| {
        for part in parts.as_array_mut().unwrap() {
            part["functionResponse"].as_object_mut().unwrap().remove("id");
        }
    };
    assert_eq!(with(&without_ids), "text | text | text | empty*!STOP");
    assert_eq!(sim.counters().missing_ids, 2);
    let strict = Sim::new(SimConfig { strict_ids: true, ..SimConfig::default() });
    let mut body = good.clone();
    without_ids(&mut body["contents"][2]["parts"]);
    assert_eq!(shape(&stream(&strict, NEW, &body)), "empty!STOP");
}
