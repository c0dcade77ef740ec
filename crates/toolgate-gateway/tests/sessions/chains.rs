//! Long chains of responses, and the traces that deleted ones leave.

use serde_json::{Value, json};
use toolgate_sim::Script;

use super::shared::File;
use super::support::{Gate, asked};

const MODEL: &str = "gemini-3-flash";

async fn follow_up(gate: &Gate, input: &str, previous: Option<&Value>) -> Value {
    let mut body = json!({"model": MODEL, "input": input});
    if let Some(previous) = previous {
        body["previous_response_id"] = previous["id"].clone();
    }
    gate.respond(body).await
}

/// Size of the stored response.
fn stored_bytes(file: &File, response: &Value) -> i64 {
    let file = rusqlite::Connection::open(file.path()).unwrap();
    let size = "SELECT length(value) FROM entry WHERE kind = 'answer' AND id = ?";
    file.query_row(size, [response["id"].as_str().unwrap()], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn a_turn_stores_the_same_at_the_end_of_a_long_chain_as_in_its_middle() {
    let file = File::new("long-chain");
    let gate = file.gate(Script::new().text("Yes.").times(0)).await;
    let mut chain: Vec<Value> = Vec::new();
    for n in 0..100 {
        let next = follow_up(&gate, &format!("turn {n:03}"), chain.last()).await;
        chain.push(next);
    }
    let sizes: Vec<i64> = chain.iter().map(|response| stored_bytes(&file, response)).collect();
    assert!(sizes[20..].iter().all(|size| (size - sizes[20]).abs() < 64), "{sizes:?}");
    // The whole chain is read, by a gateway that has not seen it, too.
    let other = file.gate(Script::new().text("Yes.").times(0)).await;
    follow_up(&other, "last", chain.last()).await;
    let said = asked(&other);
    let users: Vec<&String> = said.iter().filter(|it| it.starts_with("turn")).collect();
    assert!(users.iter().map(|it| it.as_str()).eq((0..100).map(|n| format!("turn {n:03}"))));
    // So it is without some that were deleted, more than a response names.
    for response in &chain[30..60] {
        gate.delete(&format!("/v1/responses/{}", response["id"].as_str().unwrap())).await.ok();
    }
    let branch = follow_up(&other, "last", Some(&chain[79])).await;
    let users = asked(&other).iter().filter(|it| it.starts_with("turn")).count();
    assert_eq!(users, 50);
    follow_up(&other, "more", Some(&branch)).await;
    assert_eq!(asked(&other).iter().filter(|it| it.starts_with("turn")).count(), 50);
}

/// A response that is no longer stored does not hide those before it.
#[tokio::test]
async fn a_chain_is_read_past_responses_that_are_gone() {
    let file = File::new("gaps");
    let gate = file.gate(Script::new().text("Yes.").times(0)).await;
    let mut chain: Vec<Value> = Vec::new();
    for n in 0..40 {
        let next = follow_up(&gate, &format!("turn {n:03}"), chain.last()).await;
        chain.push(next);
    }
    let connection = rusqlite::Connection::open(file.path()).unwrap();
    for response in &chain[15..30] {
        let id = response["id"].as_str().unwrap();
        connection.execute("DELETE FROM entry WHERE id = ?", [id]).unwrap();
    }
    follow_up(&gate, "last", chain.last()).await;
    let users: Vec<String> = asked(&gate).into_iter().filter(|it| it.starts_with("turn")).collect();
    let wanted = (0..15).chain(30..40).map(|n| format!("turn {n:03}"));
    assert_eq!(users, wanted.collect::<Vec<_>>());
}

#[tokio::test]
async fn a_deleted_response_leaves_no_text_in_the_file() {
    let file = File::new("no-text");
    let gate = file.gate(Script::new().text("Nothing to add.").times(0)).await;
    let has_text = |text: &str| {
        let folder = file.path().parent().unwrap().to_owned();
        std::fs::read_dir(folder).unwrap().any(|entry| {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap();
            bytes.windows(text.len()).any(|it| it == text.as_bytes())
        })
    };
    let body = json!({"model": MODEL, "input": "my regrets, in full", "stream": true});
    let events = gate.post("/v1/responses", body).await.events();
    let response = events.last().unwrap()["response"].clone();
    let note = json!({"items": [{"role": "user", "content": "a slip of the pen"}]});
    let conversation = gate.post("/v1/conversations", note).await.ok();
    assert!(has_text("my regrets, in full") && has_text("a slip of the pen"));
    gate.delete(&format!("/v1/responses/{}", response["id"].as_str().unwrap())).await.ok();
    let items = format!("/v1/conversations/{}/items", conversation["id"].as_str().unwrap());
    let item = gate.get(&items).await.ok()["data"][0]["id"].as_str().unwrap().to_owned();
    gate.delete(&format!("{items}/{item}")).await.ok();
    assert!(!has_text("my regrets, in full") && !has_text("a slip of the pen"));
}
