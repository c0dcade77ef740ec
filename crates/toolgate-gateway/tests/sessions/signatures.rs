//! What becomes of signatures, by what clients do to them.
//!
//! Each row is a tool session of ten steps on the strict simulator, which counts every signature
//! that comes back: real ones, placeholders, and those that come twice.

use serde_json::{Value, json};
use toolgate_sim::{Counters, Script, SimConfig};

use super::support::Gate;

const STEPS: usize = 10;

/// What a client does to a conversation before it sends it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Habit {
    Faithful,
    /// Keeps words, calls and results, and nothing else.
    DropsThinking,
    /// The same, with ids of 64 characters of its own.
    LongIds,
    /// The same, with numbers for ids.
    OtherAlphabet,
    /// The same, under another session every time.
    ChangesSession,
    /// Begins anew with a summary half way.
    Compacts,
    /// Forgets the oldest steps as it goes.
    ForgetsOldest,
}

fn script() -> Script {
    let mut script = Script::new();
    for n in 0..STEPS {
        script = script.call("step", json!({"n": n, "note": format!("step {n}")})).finish();
    }
    script.text("Done.")
}

/// Ids as the client keeps them.
fn renamed(habit: Habit, id: &str, number: usize) -> String {
    match habit {
        Habit::LongIds => format!("client-made-id-{number:049}"),
        Habit::OtherAlphabet | Habit::ForgetsOldest => format!("{number}"),
        Habit::Faithful | Habit::DropsThinking | Habit::ChangesSession | Habit::Compacts => {
            id.to_owned()
        }
    }
}

/// A session in Anthropic's dialect. The gateways answer by turns.
async fn run(habit: Habit, gates: &[&Gate]) -> Counters {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}, "note": {"type": "string"}}, "required": ["n"]});
    let tools = json!([{"name": "step", "input_schema": schema}]);
    let mut messages = vec![json!({"role": "user", "content": "Take ten steps."})];
    for turn in 0..=STEPS {
        let gate = gates[turn % gates.len()];
        let body = json!({"model": "gemini-3-flash", "max_tokens": 1000, "tools": tools, "messages": messages});
        let session =
            if habit == Habit::ChangesSession { format!("s{turn}") } else { "s".to_owned() };
        let header = [("x-claude-code-session-id", session.as_str())];
        let answer = gate.post_with("/v1/messages", &header, &body).await.ok();
        let blocks = answer["content"].as_array().unwrap();
        let Some(call) = blocks.iter().find(|block| block["type"] == "tool_use") else {
            assert_eq!(turn, STEPS, "{answer}");
            break;
        };
        let id = renamed(habit, call["id"].as_str().unwrap(), turn);
        let mut kept: Vec<Value> = match habit {
            Habit::Faithful | Habit::Compacts => blocks.clone(),
            Habit::DropsThinking
            | Habit::LongIds
            | Habit::OtherAlphabet
            | Habit::ChangesSession
            | Habit::ForgetsOldest => {
                vec![
                    json!({"type": "tool_use", "id": "", "name": call["name"], "input": call["input"]}),
                ]
            }
        };
        for block in kept.iter_mut().filter(|block| block["type"] == "tool_use") {
            block["id"] = json!(id);
        }
        messages.push(json!({"role": "assistant", "content": kept}));
        let result = json!({"type": "tool_result", "tool_use_id": id, "content": "ok"});
        messages.push(json!({"role": "user", "content": [result]}));
        if habit == Habit::Compacts && turn == STEPS / 2 {
            messages =
                vec![json!({"role": "user", "content": "Summary: half the steps are taken."})];
        }
        if habit == Habit::ForgetsOldest && messages.len() > 7 {
            messages.drain(1..3);
        }
    }
    gates[0].sim.counters()
}

#[track_caller]
fn check(table: &mut String, name: &str, counters: Counters, real: bool) {
    let Counters { signatures, placeholders, doubled, refusals, .. } = counters;
    table.push_str(&format!("| {name} | {signatures} | {placeholders} | {doubled} |\n"));
    assert_eq!((refusals, doubled), (0, 0), "{name}: {counters:?}");
    assert_eq!(placeholders == 0, real, "{name}: {counters:?}");
    assert!(signatures > 0, "{name}: {counters:?}");
}

#[tokio::test]
async fn c_signatures_survive_what_clients_do() {
    let mut table = "| case | real | placeholder | doubled |\n|---|---|---|---|\n".to_owned();
    for (name, habit) in [
        ("the client keeps everything", Habit::Faithful),
        ("the client strips thinking blocks and unknown fields", Habit::DropsThinking),
        ("the client makes ids of 64 characters", Habit::LongIds),
        ("the client makes ids of another alphabet", Habit::OtherAlphabet),
        ("the session header changes, thinking is stripped", Habit::ChangesSession),
        ("the conversation is compacted", Habit::Compacts),
        ("the client drops its oldest steps and changes ids", Habit::ForgetsOldest),
    ] {
        let gate = Gate::with(SimConfig::scripted(script()), "").await;
        check(&mut table, name, run(habit, &[&gate]).await, true);
    }
    println!("{table}");
}
