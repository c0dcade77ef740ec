//! A gateway that is killed in the middle of a crowd of turns.

use std::cell::{Cell, RefCell};

use futures_util::future::{join_all, select};
use http::Method;
use serde_json::{Value, json};
use tokio::sync::Notify;
use toolgate_sim::{Script, Sim, SimConfig};

use super::process::{Folder, Toolgate};

const CLIENTS: usize = 8;
/// So many answers have come when it is killed, the first time and the others.
const ANSWERS: [usize; 4] = [1, 40, 300, 17];

/// A completed answer is in the next process, byte for byte, and can be continued
/// from: whether it was in a transaction already or not.
#[tokio::test]
async fn what_was_answered_survives_kill_9_in_a_crowd() {
    let sim = Sim::start(SimConfig::scripted(Script::new().text("Hi.").times(0))).await.unwrap();
    let folder = Folder::new();
    let store = format!("sqlite:{}", folder.path().join("state.db").display());
    let mut all: Vec<String> = Vec::new();
    for wanted in ANSWERS {
        let gate = Toolgate::start(&sim.url(), &store);
        let (answers, number) = (RefCell::new(Vec::new()), Cell::new(0));
        let enough = Notify::new();
        let client = async || loop {
            let length = [1, 900, 20_000][number.replace(number.get() + 1) % 3];
            let body = json!({"model": "gemini-3-flash", "input": "x".repeat(length)});
            let (status, text) = gate.send(Method::POST, "/v1/responses", &[], Some(&body)).await;
            assert_eq!(status, 200, "{text}");
            answers.borrow_mut().push(text);
            if answers.borrow().len() >= wanted {
                enough.notify_one();
            }
        };
        let clients = join_all((0..CLIENTS).map(|_| client()));
        select(Box::pin(enough.notified()), Box::pin(clients)).await;
        gate.kill();
        all.append(&mut answers.into_inner());
    }
    let gate = Toolgate::start(&sim.url(), &store);
    let id_of = |answer: &str| -> String {
        let answer: Value = serde_json::from_str(answer).unwrap();
        answer["id"].as_str().unwrap().to_owned()
    };
    for answer in &all {
        let (status, text) = gate.get(&format!("/v1/responses/{}", id_of(answer))).await;
        assert_eq!((status, &text), (200, answer));
    }
    for answer in [&all[0], all.last().unwrap()] {
        let previous = id_of(answer);
        let body =
            json!({"model": "gemini-3-flash", "input": "and?", "previous_response_id": previous});
        gate.post("/v1/responses", &[], &body).await;
    }
}
