//! Use renews the retention; expired state is reported as a loss.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use toolgate_sim::{Script, SimConfig};

use super::shared::File;
use super::support::{Gate, asked, tool, until};

const MODEL: &str = "gemini-3-flash";
/// How long things are kept, in seconds.
const KEEP: i64 = 3600;

async fn gate(file: &File) -> Gate {
    let store = format!("store = \"sqlite:{}\"", file.path().display());
    let script = SimConfig::scripted(Script::new().text("Yes.").times(0));
    Gate::with(script, &format!("state_retention_minutes = {}\n{store}", KEEP / 60)).await
}

/// With settings that are kept apart from the second time on.
fn turn(input: &str, more: Value) -> Value {
    let mut body = json!({"model": MODEL, "input": input, "instructions": "Be brief. ".repeat(40), "tools": [tool("t")]});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

fn from(response: &Value, input: &str) -> Value {
    turn(input, json!({"previous_response_id": response["id"]}))
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs().try_into().unwrap()
}

/// Kinds and ids of all that sessions keep, and for how many seconds still.
fn left(file: &File) -> BTreeMap<String, i64> {
    let file = rusqlite::Connection::open(file.path()).unwrap();
    let all = "SELECT kind || ' ' || id, expires FROM entry
        WHERE kind IN ('answer', 'shared', 'conversation', 'tools', 'log')";
    let mut rows = file.prepare(all).unwrap();
    let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)? / 1000 - now())));
    rows.unwrap().map(Result::unwrap).collect()
}

/// Makes all of it older.
fn age(file: &File, seconds: i64) {
    let file = rusqlite::Connection::open(file.path()).unwrap();
    file.execute("UPDATE entry SET expires = expires - 1000 * ?1", [seconds]).unwrap();
    let mut rows = file
        .prepare("SELECT seq, value FROM entry WHERE kind IN ('answer', 'conversation')")
        .unwrap();
    let rows = rows.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?)));
    for (number, value) in rows.unwrap().map(Result::unwrap) {
        let mut value = String::from_utf8(value).unwrap();
        for name in ["\"at\":", "\"used\":"] {
            let Some(start) = value.find(name).map(|at| at + name.len()) else { continue };
            let length = value[start..].find(|it: char| !it.is_ascii_digit()).unwrap();
            let then: i64 = value[start..start + length].parse().unwrap();
            value.replace_range(start..start + length, &(then - seconds).to_string());
        }
        file.execute("UPDATE entry SET value = ?1 WHERE seq = ?2", (value.as_bytes(), number))
            .unwrap();
    }
}

#[tokio::test]
async fn what_a_turn_goes_on_from_lives_on() {
    let file = File::new("ageing");
    let first = gate(&file).await;
    first.respond(turn("note", json!({"conversation": "c"}))).await;
    let mut last = first.respond(turn("one", json!({"conversation": "c"}))).await;
    for input in ["two", "three"] {
        last = first.respond(from(&last, input)).await;
    }
    // Who comes to a file finds everything in its place.
    let second = gate(&file).await;
    let kept = left(&file);
    assert_eq!(kept.keys().filter(|key| key.starts_with("answer")).count(), 4, "{kept:?}");
    for kind in ["shared", "conversation", "tools", "log"] {
        assert!(kept.keys().any(|key| key.starts_with(kind)), "{kind} {kept:?}");
    }
    let said = ["note", "Yes.", "one", "Yes.", "two", "Yes.", "three", "Yes.", "more"];
    // Recent entries are not renewed.
    age(&file, KEEP * 2 / 5);
    second.respond(from(&last, "more")).await;
    assert_eq!(asked(&second), said);
    let third = gate(&file).await;
    let now = left(&file);
    let before = |key: &str| now[key] < KEEP * 7 / 10;
    assert!(kept.keys().filter(|key| !key.starts_with("shared")).all(|key| before(key)), "{now:?}");
    age(&file, KEEP * 2 / 5);
    third.respond(from(&last, "more")).await;
    assert_eq!(asked(&third), said);
    let fourth = gate(&file).await;
    let now = left(&file);
    let old: Vec<_> = kept.keys().filter(|key| now[*key] < KEEP * 9 / 10).collect();
    // The note was told from the conversation, not from its own response.
    assert!(matches!(old[..], [it] if it.starts_with("answer")), "{now:?}");
    age(&file, KEEP * 2 / 5);
    fourth.respond(from(&last, "more")).await;
    assert_eq!(asked(&fourth), said);
}

/// Reading a conversation is using it.
#[tokio::test]
async fn a_conversation_that_is_read_lives_on() {
    let file = File::new("reading");
    let first = gate(&file).await;
    first.respond(turn("note", json!({"conversation": "c"}))).await;
    let second = gate(&file).await;
    age(&file, KEEP * 3 / 5);
    let items = second.get("/v1/conversations/c/items").await.ok();
    // The write is not awaited.
    let keys = ["conversation c", "tools c", "log c"];
    until(async || keys.iter().all(|key| left(&file)[*key] > KEEP * 9 / 10)).await;
    assert_eq!(second.get("/v1/conversations/c/items").await.ok(), items);
}

/// An old one that is gone is a loss; only the one that is named must be there.
#[tokio::test]
async fn a_chain_goes_on_without_what_is_no_longer_kept() {
    let file = File::new("missing");
    let first = gate(&file).await;
    let one = first.respond(turn("one", json!({}))).await;
    let two = first.respond(from(&one, "two")).await;
    let second = gate(&file).await;
    let forget = |response: &Value| {
        let file = rusqlite::Connection::open(file.path()).unwrap();
        let id = response["id"].as_str().unwrap();
        file.execute("DELETE FROM entry WHERE kind = 'answer' AND id = ?1", [id]).unwrap();
    };
    forget(&one);
    let (report, got) = second.reported("/v1/responses", &from(&two, "three")).await;
    assert_eq!((got.status, asked(&second).join(" ")), (200, "two Yes. three".to_owned()));
    let id = one["id"].as_str().unwrap();
    assert!(report.contains(id) && report.contains("no longer kept"), "{report}");
    forget(&two);
    let refused = second.post("/v1/responses", from(&two, "three")).await;
    assert_eq!(refused.json()["error"]["code"], "previous_response_not_found", "{refused:?}");
}
