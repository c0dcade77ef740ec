//! Conversations and runs that go on in another process.

use serde_json::json;
use toolgate::{Client, Error, Request, SavedChat, SavedRun, SavedTurns, Tool, Toolset};
use toolgate_sim::{Script, Sim, SimConfig};

use crate::history::brief;
use crate::support::{clean, client};
use crate::tools::{clock, weather};

/// A client that shares nothing with another one but the server.
fn another(sim: &Sim) -> Client {
    let builder = Client::builder().api_key("another key").base_url("http://simulator");
    builder.transport(sim.clone()).build().unwrap()
}

fn ask() -> Tool {
    Tool::declared_json(&json!({"name": "ask", "description": "Asks a person."})).unwrap()
}

/// Saves as text and reads it back, as another process would.
fn stored<T: serde::Serialize + serde::de::DeserializeOwned>(value: &T) -> T {
    serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
}

#[tokio::test]
async fn d1_a_chat_goes_on_in_another_process() {
    let script = || {
        Script::new()
            .thought("Where is Oslo?")
            .call("weather", json!({"city": "Oslo"}))
            .call("clock", json!({}))
            .finish()
            .text("22 °C.")
            .finish()
            .text("Noon.")
    };
    let template = || {
        let tools = Toolset::new().with::<weather>().with::<clock>();
        Request::default().system("Be brief.").tools(tools).show_thoughts(true)
    };
    // The final request is the same whether or not the chat was saved in between.
    let mut bodies = Vec::new();
    for is_saved in [false, true] {
        let (client, sim) = client(script());
        let mut chat = client.chat(template());
        assert_eq!(chat.send("Weather and time?").await.unwrap().text(), "22 °C.");
        if is_saved {
            let saved: SavedChat = stored(&chat.save().unwrap());
            chat = another(&sim).resume_chat(saved, template()).unwrap();
        }
        assert_eq!(chat.send("Time again?").await.unwrap().text(), "Noon.");
        assert_eq!(brief(chat.full_history()), brief(chat.history()));
        clean(&sim, 3);
        sim.assert_script_done();
        assert!(sim.counters().signatures > 0);
        bodies.push(sim.requests()[2].json());
    }
    assert_eq!(bodies[0], bodies[1]);
}

#[tokio::test]
async fn d1_an_approval_may_come_from_another_process() {
    let script = Script::new()
        .call("clock", json!({}))
        .finish()
        .call("weather", json!({"city": "Oslo"}))
        .call("ask", json!({"what": "Shall I?"}))
        .finish()
        .text("Done.");
    let (client, sim) = client(script);
    let tools = || Toolset::new().with::<weather>().with::<clock>().tool(ask());
    let template = || Request::new("Go.").tools(tools());
    let response = client.generate(template()).await.unwrap();
    assert_eq!(response.calls().len(), 1);
    let saved: SavedRun = stored(&response.save().unwrap());

    let response = another(&sim).resume_run(&saved, template()).unwrap();
    let [call] = response.calls() else { panic!("{:?}", response.calls()) };
    assert_eq!((call.name(), call.arguments()), ("ask", json!({"what": "Shall I?"})));
    assert_eq!(response.unfinished(), Some(toolgate::Unfinished::Caller));
    // It can be saved again before it goes on.
    let again = stored(&response.save().unwrap());
    let response = another(&sim).resume_run(&again, template()).unwrap();
    let results: Vec<_> = response.calls().iter().map(|call| call.succeed("yes")).collect();
    let answer = response.resume(results).await.unwrap();
    assert_eq!(answer.text(), "Done.");
    assert_eq!(
        brief(answer.history()),
        ["model: call weather, call ask", "user: result weather, result ask", "model: \"Done.\""]
    );
    clean(&sim, 3);
    sim.assert_script_done();
    assert!(matches!(answer.save(), Err(Error::NothingToResume)));
}

#[tokio::test]
async fn d1_a_chat_with_open_calls_is_saved_with_them() {
    let script =
        Script::new().call("ask", json!({})).finish().text("Thanks.").finish().text("Bye.");
    let (client, sim) = client(script);
    let template = || Request::default().tools(Toolset::new().tool(ask()));
    let mut chat = client.chat(template());
    chat.send("Go.").await.unwrap();
    let saved = stored(&chat.save().unwrap());
    let mut chat = another(&sim).resume_chat(saved, template()).unwrap();
    let calls = chat.open_calls();
    assert_eq!(calls.len(), 1);
    let answer = chat.answer(calls.iter().map(|call| call.succeed("yes"))).await.unwrap();
    assert_eq!(answer.text(), "Thanks.");
    assert!(chat.open_calls().is_empty());
    assert_eq!(chat.send("Bye!").await.unwrap().text(), "Bye.");
    assert_eq!(chat.history().len(), 6);
    clean(&sim, 3);
}

#[tokio::test]
async fn d1_every_kind_of_part_survives() {
    let part = json!({"text": "x", "partMetadata": {"a": 1}});
    let script = Script::new()
        .code("print(1)", "1")
        .part(json!({"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}}))
        .text("A picture.");
    let (client, _sim) = client(script);
    let tools = Toolset::new().code_execution();
    let answer = client.generate(Request::new("Draw.").tools(tools)).await.unwrap();
    let mut turns = answer.history().to_vec();
    let message = toolgate::Message::new("See.")
        .media("image/png", b"\x89PNG")
        .part(toolgate::canon::Part::Gemini(toolgate::Raw::of(&part).unwrap()))
        .file("audio/wav", "gs://bucket/a.wav")
        .result(toolgate::CallResult::error("call_1", "no"))
        .result(toolgate::CallResult::success("call_2", vec![1, 2]))
        .result(toolgate::CallResult::success("call_3", toolgate::Output::media("a/b", b"x")));
    turns.extend(
        Request::new(message)
            .assistant(toolgate::Message::default().call(
                "call_1",
                "f",
                r#"{"b":1e400,"a":9007199254740993}"#,
            ))
            .canon
            .turns,
    );
    let saved = SavedTurns::new(&turns).unwrap();
    let first = serde_json::to_string(&saved).unwrap();
    let read = serde_json::from_str::<SavedTurns>(&first).unwrap().turns().unwrap();
    assert_eq!(serde_json::to_string(&SavedTurns::new(&read).unwrap()).unwrap(), first);
    assert_eq!(read.len(), turns.len());
    for (read, turn) in read.iter().zip(&turns) {
        let kinds = |turn: &toolgate::canon::Turn<'static>| {
            turn.parts.iter().map(std::mem::discriminant).collect::<Vec<_>>()
        };
        assert_eq!(kinds(read), kinds(turn));
    }
    assert!(first.contains(r#""args":{"b":1e400,"a":9007199254740993}"#), "{first}");
    assert!(first.contains(r#""partMetadata":{"a":1}"#), "{first}");
    assert!(first.contains(r#""issuer":{"model":"#), "{first}");
    assert!(!format!("{saved:?}").contains("thoughtSignature"));
}

#[test]
fn invalid_saved_conversations_are_errors() {
    let client = Client::builder().base_url("http://s").transport(Sim::new(SimConfig::default()));
    let client = client.build().unwrap();
    for (saved, want) in [
        (json!({"version": 2, "history": [], "full_history": []}), "its version is 2"),
        (
            json!({"version": 1, "history": [{"role": "x"}], "full_history": []}),
            "content 0: the role",
        ),
        (
            json!({"version": 1, "history": [{"role": "user", "parts": [{"text": 1}]}], "full_history": []}),
            "`text` is not a string",
        ),
    ] {
        let saved: SavedChat = serde_json::from_value(saved).unwrap();
        let error = client.resume_chat(saved, Request::default()).unwrap_err().to_string();
        assert!(error.contains(want), "{error}");
    }
}
