//! History in the response.

use serde_json::json;
use toolgate::canon::{Part, Role, Turn};
use toolgate::{Automatic, Request, Toolset};
use toolgate_sim::Script;

use crate::support::{clean, client};
use crate::tools::weather;

pub(crate) fn brief(turns: &[Turn<'static>]) -> Vec<String> {
    let brief = |part: &Part<'static>| match part {
        Part::Text { text, .. } => format!("{:?}", text.decode()),
        Part::Call(call) => format!("call {}", call.tool),
        Part::Result(result) => {
            format!(
                "{} {}",
                if result.is_error { "error" } else { "result" },
                result.tool.as_ref().unwrap()
            )
        }
        Part::Thought { .. } | Part::Media(_) | Part::Sealed(_) | Part::Gemini(_) => {
            format!("{part:?}")
        }
    };
    let role = |role: Role| if role == Role::Model { "model" } else { "user" };
    let line = |turn: &Turn<'static>| {
        let parts: Vec<_> = turn.parts.iter().map(brief).filter(|it| it != "\"\"").collect();
        format!("{}: {}", role(turn.role), parts.join(", "))
    };
    turns.iter().map(line).collect()
}

#[tokio::test]
async fn r072_history_has_calls_results_and_the_answer() {
    let script = Script::new()
        .text("One moment.")
        .call("weather", json!({"city": "Oslo"}))
        .call("weather", json!({"city": "Atlantis"}))
        .finish()
        .text("Fine.");
    for streamed in [false, true] {
        let (client, sim) = client(script.clone());
        let request = Request::new("Go.").tools(Toolset::new().with::<weather>());
        let response = match streamed {
            true => client.stream(request).finish().await.unwrap(),
            false => client.generate(request).await.unwrap(),
        };
        assert_eq!(
            brief(response.history()),
            [
                "model: \"One moment.\", call weather, call weather",
                "user: result weather, error weather",
                "model: \"Fine.\"",
            ]
        );
        clean(&sim, 2);
    }
}

#[tokio::test]
async fn history_can_be_turned_off() {
    let script = Script::new().call("weather", json!({"city": "Oslo"})).finish().text("Fine.");
    let (client, _sim) = client(script);
    let automatic = Automatic { keep_history: false, ..Automatic::default() };
    let tools = Toolset::new().with::<weather>();
    let request = Request::new("Go.").tools(tools).automatic(automatic);
    let response = client.generate(request).await.unwrap();
    assert_eq!(response.text(), "Fine.");
    assert!(response.history().is_empty());
}

#[tokio::test]
async fn r046_a_history_can_be_sent_again() {
    let script = Script::new()
        .call("weather", json!({"city": "Oslo"}))
        .finish()
        .text("Fine.")
        .finish()
        .text("As I said.");
    let (client, sim) = client(script);
    let tools = Toolset::new().with::<weather>();
    let first = Request::new("Go.").tools(tools.clone());
    let said = first.canon.turns.clone();
    let response = client.generate(first).await.unwrap();
    let again = Request::default()
        .history(said)
        .history(response.history().to_vec())
        .user("Again?")
        .tools(tools);
    assert_eq!(client.generate(again).await.unwrap().text(), "As I said.");
    // Signatures are returned on their parts.
    clean(&sim, 3);
}
