//! A state file that another program has locked.

use serde_json::json;
use toolgate_sim::Script;

use super::shared::File;
use super::support::{Gate, asked, until};

const MODEL: &str = "gemini-3-flash";

async fn metric(gate: &Gate, name: &str) -> u64 {
    let text = gate.get("/metrics").await.text;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap().parse().unwrap()
}

#[tokio::test]
async fn turns_go_on_unconfirmed_and_are_committed_when_the_lock_is_gone() {
    let file = File::new("locked");
    let gate = file.gate(Script::new().text("Yes.").times(0)).await;
    let before = gate.respond(json!({"model": MODEL, "input": "before"})).await;
    let tool = rusqlite::Connection::open(file.path()).unwrap();
    tool.execute_batch("BEGIN IMMEDIATE").unwrap();
    let next = |previous: &serde_json::Value, input: &str| json!({"model": MODEL, "input": input, "previous_response_id": previous["id"]});
    let during = gate.respond(next(&before, "during")).await;
    assert_eq!(asked(&gate), ["before", "Yes.", "during"], "what was confirmed can be read");
    assert_eq!(metric(&gate, "toolgate_store_unconfirmed_total").await, 1);
    // It is not known to be missing.
    assert_eq!(gate.post("/v1/responses", next(&during, "after")).await.status, 503);
    tool.execute_batch("ROLLBACK").unwrap();
    until(async || gate.post("/v1/responses", next(&during, "after")).await.status == 200).await;
    assert_eq!(asked(&gate), ["before", "Yes.", "during", "Yes.", "after"]);
    assert_eq!(metric(&gate, "toolgate_store_lost_total").await, 0);
}
