//! Conversations.

use serde_json::json;
use toolgate::{Error, Event, Request, Tool, Toolset};
use toolgate_sim::{Fault, Script};

use crate::history::brief;
use crate::support::{clean, client};
use crate::tools::{clock, weather};

#[tokio::test]
async fn a_chat_keeps_its_history() {
    let script = Script::new()
        .call("weather", json!({"city": "Oslo"}))
        .finish()
        .text("22 °C.")
        .finish()
        .text("Noon.")
        .finish()
        .text("Bye.");
    let (client, sim) = client(script);
    let mut chat =
        client.chat(Request::default().system("Be brief.").tools(Toolset::new().with::<weather>()));
    assert_eq!(chat.send("Weather?").await.unwrap().text(), "22 °C.");
    assert_eq!(chat.send("Time?").await.unwrap().text(), "Noon.");
    let mut stream = chat.stream("Bye!");
    let mut said = String::new();
    while let Some(event) = stream.next().await {
        if let Event::Text(text) = event.unwrap() {
            said.push_str(&text);
        }
    }
    assert_eq!(said, "Bye.");
    assert_eq!(
        brief(chat.history()),
        [
            "user: \"Weather?\"",
            "model: call weather",
            "user: result weather",
            "model: \"22 °C.\"",
            "user: \"Time?\"",
            "model: \"Noon.\"",
            "user: \"Bye!\"",
            "model: \"Bye.\"",
        ]
    );
    assert_eq!(brief(chat.full_history()), brief(chat.history()));
    clean(&sim, 4);
}

#[tokio::test]
async fn failed_and_blocked_exchanges_are_not_sent_again() {
    let script = Script::new()
        .text("One.")
        .finish()
        .text("No.")
        .fault(Fault::Safety)
        .finish()
        .text("No.")
        .fault(Fault::Status {
            code: 400,
            message: "bad".into(),
            retry_after: None,
            quota: None,
            html: false,
        })
        .finish()
        .text("Four.");
    let (client, sim) = client(script);
    let mut chat = client.chat(Request::default());
    chat.send("1").await.unwrap();
    chat.send("2").await.unwrap();
    assert!(chat.send("3").await.is_err());
    chat.send("4").await.unwrap();
    assert_eq!(
        brief(chat.history()),
        ["user: \"1\"", "model: \"One.\"", "user: \"4\"", "model: \"Four.\""]
    );
    assert_eq!(
        chat.full_history()
            .iter()
            .filter(|turn| brief(std::slice::from_ref(turn))[0].starts_with("user"))
            .count(),
        4
    );
    assert_eq!(sim.requests()[3].parts().len(), 3);
}

#[tokio::test]
async fn calls_are_returned_in_a_chat() {
    let script = Script::new()
        .call("ask", json!({}))
        .call("clock", json!({}))
        .finish()
        .text("Thanks.")
        .finish()
        .call("ask", json!({}))
        .finish()
        .text("Never mind.");
    let (client, sim) = client(script);
    let ask = Tool::declared_json(&json!({"name": "ask", "description": "Asks."})).unwrap();
    let tools = Toolset::new().with::<clock>().tool(ask);
    let mut chat = client.chat(Request::default().tools(tools));
    let response = chat.send("Go.").await.unwrap();
    // An exchange enters the history when it is complete.
    assert!(chat.history().is_empty());
    let results: Vec<_> = response.calls().iter().map(|call| call.succeed("yes")).collect();
    assert_eq!(chat.answer(results).await.unwrap().text(), "Thanks.");
    assert_eq!(chat.history().len(), 4);
    assert!(matches!(chat.answer([]).await, Err(Error::NothingToResume)));
    // A message instead of the results of the open calls.
    chat.send("Go again.").await.unwrap();
    assert_eq!(chat.send("Leave it.").await.unwrap().text(), "Never mind.");
    assert_eq!(
        brief(chat.history())[4..],
        [
            "user: \"Go again.\"",
            "model: call ask",
            "user: error ask",
            "user: \"Leave it.\"",
            "model: \"Never mind.\"",
        ]
    );
    clean(&sim, 4);
}

#[tokio::test]
async fn calls_are_returned_in_a_streamed_chat() {
    let script = Script::new().call("ask", json!({})).finish().text("Thanks.");
    let (client, sim) = client(script);
    let ask = Tool::declared_json(&json!({"name": "ask", "description": "Asks."})).unwrap();
    let mut chat = client.chat(Request::default().tools(Toolset::new().tool(ask)));
    let mut calls = Vec::new();
    let mut stream = chat.stream("Go.");
    while let Some(event) = stream.next().await {
        if let Event::Finished(response) = event.unwrap() {
            calls = response.calls().to_vec();
        }
    }
    let mut said = String::new();
    let mut stream = chat.answer_stream(calls.iter().map(|call| call.succeed("yes")));
    while let Some(event) = stream.next().await {
        if let Event::Text(text) = event.unwrap() {
            said.push_str(&text);
        }
    }
    assert_eq!(said, "Thanks.");
    assert_eq!(
        brief(chat.history()),
        ["user: \"Go.\"", "model: call ask", "user: result ask", "model: \"Thanks.\""]
    );
    clean(&sim, 2);
    let nothing = chat.answer_stream([]).next().await;
    assert!(matches!(nothing, Some(Err(Error::NothingToResume))));
}
