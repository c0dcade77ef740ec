//! What many answers repeat is kept once, and is there in every one of them.

use std::path::PathBuf;

use serde_json::{Value, json};
use toolgate_sim::{Script, SimConfig};

use super::support::{Gate, items, tool};

const MODEL: &str = "gemini-3-flash";

/// A file for a store, in a folder of its own.
pub(crate) struct File(PathBuf);

impl File {
    pub(crate) fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("toolgate-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.join("state.db")
    }

    /// A gateway on it without state of its own.
    pub(crate) async fn gate(&self, script: Script) -> Gate {
        let settings = format!("store = \"sqlite:{}\"", self.path().display());
        Gate::with(SimConfig::scripted(script), &settings).await
    }

    /// Its entries as a reader of the file sees them: kind and value.
    fn entries(&self) -> Vec<(String, String)> {
        let file = rusqlite::Connection::open(self.path()).unwrap();
        let mut rows = file.prepare("SELECT kind, CAST(value AS TEXT) FROM entry").unwrap();
        let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.map(Result::unwrap).collect()
    }

    fn delete_shared(&self) {
        let file = rusqlite::Connection::open(self.path()).unwrap();
        file.execute("DELETE FROM entry WHERE kind = 'shared'", []).unwrap();
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn path(response: &Value, rest: &str) -> String {
    format!("/v1/responses/{}{rest}", response["id"].as_str().unwrap())
}

/// A request whose settings are long, and always the same.
fn body(words: &str, more: Value) -> Value {
    let mut body = json!({
        "model": MODEL,
        "input": words,
        "instructions": "Be careful with \"quotes\" and\nlines. ".repeat(40),
        "tools": [tool("weather"), tool("news")]
    });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

#[tokio::test]
async fn what_answers_repeat_is_kept_once() {
    let file = File::new("once");
    let gate = file.gate(Script::new().text("Hi.").times(0)).await;
    let (mut made, mut streams) = (Vec::new(), Vec::new());
    for n in 0..4 {
        made.push(gate.respond(body(&format!("whole {n}"), json!({}))).await);
        let streamed = body(&format!("stream {n}"), json!({"stream": true}));
        streams.push(gate.post("/v1/responses", streamed).await);
    }
    // Who comes to a file finds everything in its place.
    let other = file.gate(Script::new().text("Hi.").times(0)).await;
    // The first is stored in place: it was the only one then.
    let entries = file.entries();
    let holding = |kind: &str| {
        let whole = |(it, value): &&(String, String)| it == kind && value.contains("Be careful");
        entries.iter().filter(whole).count()
    };
    assert_eq!((holding("answer"), holding("events"), holding("shared")), (1, 0, 1));
    // A gateway that has seen none of them shows the same.
    for gate in [&gate, &other] {
        for made in &made {
            assert_eq!(&gate.get(&path(made, "")).await.ok(), made);
            let mut tools = body("", json!({}))["tools"].clone();
            for tool in tools.as_array_mut().unwrap() {
                // A response shows members that the request leaves out.
                tool["strict"] = Value::Null;
            }
            assert_eq!(made["tools"], tools);
        }
        for streamed in &streams {
            let events = streamed.events();
            let made = &events.last().unwrap()["response"];
            assert_eq!(&gate.get(&path(made, "")).await.ok(), made);
            assert_eq!(gate.get(&path(made, "?stream=true")).await.text, streamed.text);
        }
    }
    let last = made.last().unwrap();
    let goes_on = json!({"model": MODEL, "input": "and?", "previous_response_id": last["id"]});
    other.respond(goes_on).await;
    assert!(other.last_asked().to_string().contains("whole 3"));
}

/// An entry that is incomplete counts as evicted.
#[tokio::test]
async fn an_answer_without_what_it_shares_is_gone() {
    let file = File::new("gone");
    let gate = file.gate(Script::new().text("Hi.").times(0)).await;
    let first = gate.respond(body("a", json!({}))).await;
    let second = gate.respond(body("b", json!({}))).await;
    let other = file.gate(Script::new().text("Hi.").times(0)).await;
    file.delete_shared();
    assert_eq!(other.get(&path(&first, "")).await.ok(), first);
    assert_eq!(other.get(&path(&second, "")).await.status, 404);
    let goes_on = json!({"model": MODEL, "input": "c", "previous_response_id": second["id"]});
    let refused = other.post("/v1/responses", goes_on).await;
    assert_eq!(refused.json()["error"]["code"], "previous_response_not_found");
    assert_eq!(gate.get(&path(&second, "")).await.ok(), second, "it knows the text itself");
}

#[tokio::test]
async fn background_answers_share_too() {
    let file = File::new("background");
    let gate = file.gate(Script::new().text("Hi.").times(0)).await;
    let mut made = Value::Null;
    for n in 0..3 {
        let body = body(&format!("{n}"), json!({"background": true, "stream": true}));
        let streamed = gate.post("/v1/responses", body).await;
        made = streamed.events().last().unwrap()["response"].clone();
        assert_eq!(gate.get(&path(&made, "?stream=true")).await.text, streamed.text);
    }
    let other = file.gate(Script::new()).await;
    assert_eq!(other.get(&path(&made, "")).await.ok(), made);
    assert_eq!(made["status"], "completed");
}

/// A thread's questions share repeated texts, and inherited ones are restored.
#[tokio::test]
async fn threads_share_their_tools() {
    let file = File::new("threads");
    let script = Script::new().call("step", json!({})).times(0);
    let gate = file.gate(script.clone()).await;
    let mut answer = Value::Null;
    for n in 0..3 {
        let body = json!({
            "model": MODEL, "max_tokens": 100, "thread": {"type": "create"},
            "tools": [{"name": "step", "description": "One of very many steps. ".repeat(20), "input_schema": {"type": "object"}}],
            "system": "Do not stop before the end. ".repeat(20),
            "messages": [{"role": "user", "content": format!("Go {n}.")}]
        });
        answer = gate.post("/v1/messages", body).await.ok();
    }
    let other = file.gate(script).await;
    let entries = file.entries();
    assert_eq!(entries.iter().filter(|(kind, _)| kind == "shared").count(), 2);
    let call = answer["content"].as_array().unwrap().iter().find(|it| it["type"] == "tool_use");
    let result =
        json!({"type": "tool_result", "tool_use_id": call.unwrap()["id"], "content": "ok"});
    let thread = json!({"type": "continue", "previous_message_id": answer["id"]});
    let body = json!({
        "model": MODEL, "max_tokens": 100, "thread": thread,
        "messages": [{"role": "user", "content": [result]}]
    });
    other.post("/v1/messages", body).await.ok();
    let asked = other.last_asked().to_string();
    for words in ["One of very many", "before the end", "Go 2."] {
        assert!(asked.contains(words), "{words}: {asked}");
    }
}

/// Items are named after their answer: references to items of a request are found like those to items
/// of an answer.
#[tokio::test]
async fn references_lead_to_questions_and_answers() {
    let gate = Gate::scripted(Script::new().text("Well said.").times(0)).await;
    let first = gate.respond(body("a thing", json!({}))).await;
    let asked = gate.get(&path(&first, "/input_items")).await.ok();
    let ids = [&asked["data"][0]["id"], &items(&first, "message")[0]["id"]];
    let mut input: Vec<Value> = ids.map(|id| json!({"type": "item_reference", "id": id})).to_vec();
    input.push(json!({"role": "user", "content": "b"}));
    gate.respond(json!({"model": MODEL, "input": input})).await;
    let asked = gate.last_asked();
    assert_eq!(asked["contents"][0]["parts"][0]["text"], "a thing", "{asked}");
    assert_eq!(asked["contents"][1]["parts"][0]["text"], "Well said.", "{asked}");
}
