//! Deleted state is gone, also for turns that have read it before.

use serde_json::{Value, json};
use toolgate_sim::Script;

use super::support::{Gate, asked};

const MODEL: &str = "gemini-3-flash";

/// A turn of a conversation.
fn turn(conversation: &str, input: &str) -> Value {
    json!({"model": MODEL, "input": input, "conversation": conversation})
}

/// A turn that goes on from a response.
fn from(response: &Value, input: &str) -> Value {
    json!({"model": MODEL, "input": input, "previous_response_id": response["id"]})
}

fn yes() -> Script {
    Script::new().text("Yes.").times(0)
}

/// A name does not say which conversation it was: another one that has it now is not read.
#[tokio::test]
async fn a_name_that_is_used_again_brings_nothing_into_old_responses() {
    let gate = Gate::scripted(yes()).await;
    let first = gate.respond(turn("c", "old one")).await;
    let second = gate.respond(turn("c", "old two")).await;
    gate.respond(from(&second, "and?")).await;
    assert_eq!(asked(&gate), ["old one", "Yes.", "old two", "Yes.", "and?"]);
    gate.delete("/v1/conversations/c").await.ok();
    for _ in 0..2 {
        let (report, _) = gate.reported("/v1/responses", &from(&second, "and?")).await;
        assert_eq!(asked(&gate), ["old two", "Yes.", "and?"]);
        assert!(report.contains("conversation `c`"), "{report}");
        for input in ["new one", "new two"] {
            gate.respond(turn("c", input)).await;
        }
    }
    // The first one needs no other.
    let (report, _) = gate.reported("/v1/responses", &from(&first, "and?")).await;
    assert_eq!((asked(&gate), report.as_str()), (words(&["old one", "Yes.", "and?"]), "[]"));
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// A deleted item is not sent, also where a response has read it, or holds it.
#[tokio::test]
async fn a_deleted_item_is_not_told_to_who_goes_on_from_a_response() {
    let gate = Gate::scripted(yes()).await;
    let note = |text: &str| json!({"role": "user", "content": text});
    let items = json!({"items": [note("password"), note("note")]});
    let made = gate.post("/v1/conversations", items).await.ok();
    let id = made["id"].as_str().unwrap();
    let first = gate.respond(turn(id, "secret")).await;
    let second = gate.respond(from(&first, "and?")).await;
    let list = gate.get(&format!("/v1/conversations/{id}/items?order=asc")).await.ok();
    for (at, text) in [(0, "password"), (2, "secret")] {
        let item = &list["data"][at];
        assert_eq!(item["content"][0]["text"], text);
        let item = item["id"].as_str().unwrap();
        gate.delete(&format!("/v1/conversations/{id}/items/{item}")).await.ok();
    }
    gate.respond(from(&second, "more?")).await;
    assert_eq!(asked(&gate), ["note", "Yes.", "and?", "Yes.", "more?"]);
    // One that is said later under a name that was free again is another.
    let again = json!({"items": [{"id": "x", "role": "user", "content": "one"}]});
    let items = format!("/v1/conversations/{id}/items");
    gate.post(&items, again.clone()).await.ok();
    gate.delete(&format!("{items}/x")).await.ok();
    gate.post(&items, again).await.ok();
    gate.respond(turn(id, "go on")).await;
    assert_eq!(asked(&gate), ["note", "Yes.", "one", "go on"]);
}

/// A turn in progress restores nothing, and adds nothing to a conversation that was created since.
#[tokio::test]
async fn a_conversation_that_is_deleted_in_the_middle_of_a_turn_stays_deleted() {
    let (gate, hold) = Gate::held(yes(), "").await;
    // Without asking the model.
    let begin = async |name: &str, input: &str| {
        let mut body = turn(name, input);
        body["generate"] = json!(false);
        gate.respond(body).await;
    };
    for door in ["/v1/responses", "/v1/gemini"] {
        let made = gate.post("/v1/conversations", json!({})).await.ok();
        for (name, is_anew) in [(made["id"].as_str().unwrap(), false), ("c", false), ("c", true)] {
            let (at, way) = (format!("/v1/conversations/{name}"), format!("{name} {door}"));
            begin(name, "before").await;
            hold.set(true);
            let asked = gate.sim.requests().len();
            let late = gate.post(door, turn(name, "late"));
            let delete = async {
                gate.until_asked(asked + 1).await;
                gate.delete(&at).await.ok();
                if is_anew {
                    begin(name, "anew").await;
                }
                hold.set(false);
            };
            let (answered, ()) = tokio::join!(late, delete);
            assert!(answered.text.contains("Yes."), "{way}: {answered:?}");
            if is_anew {
                let list = gate.get(&format!("{at}/items")).await.ok();
                assert_eq!(list["data"].as_array().unwrap().len(), 1, "{way}: {list}");
                assert_eq!(list["data"][0]["content"][0]["text"], "anew", "{way}");
            } else {
                assert_eq!(gate.get(&at).await.status, 404, "{way}");
            }
        }
    }
}
