//! Automatic function calling in streams, with the semantics of unary requests.

use futures_util::StreamExt as _;
use serde_json::json;
use toolgate::{Automatic, Event, FailureKind, Request, Steps, Tool, Toolset};
use toolgate_sim::{Fault, Script};

use crate::steering::brief;
use crate::support::{clean, client, last};
use crate::tools::{clock, weather};

async fn events(stream: toolgate::EventStream) -> Vec<String> {
    stream
        .map(|event| event.map_or_else(|error| format!("error {error}"), |it| brief(&it)))
        .collect()
        .await
}

fn script() -> Script {
    Script::new()
        .chunk("Let me ")
        .chunk("look.")
        .call("weather", json!({"city": "Oslo"}))
        .call("clock", json!({}))
        .finish()
        .chunk("22 °C ")
        .chunk("at noon.")
}

#[tokio::test]
async fn r075_calls_are_run_and_the_answer_is_streamed() {
    let (client, sim) = client(script());
    let tools = Toolset::new().with::<weather>().with::<clock>();
    let mut seen = events(client.stream(Request::new("Go.").tools(tools))).await;
    // Concurrent calls end in any order.
    seen[5..7].sort();
    assert_eq!(
        seen,
        [
            "round 1",
            "text \"Let me \"",
            "text \"look.\"",
            "start weather({\"city\":\"Oslo\"})",
            "start clock({})",
            "end clock \"noon\"",
            "end weather \"22 °C in Oslo\"",
            "round 2",
            "text \"22 °C \"",
            "text \"at noon.\"",
            "finished \"22 °C at noon.\"",
        ]
    );
    clean(&sim, 2);
    // One model content per round, regardless of its chunks.
    let contents = last(&sim)["contents"].clone();
    assert_eq!(contents.as_array().unwrap().len(), 3);
    assert_eq!(contents[1]["parts"][0]["text"], "Let me look.");
}

#[tokio::test]
async fn r074_steps_can_be_hidden_in_a_stream() {
    let (client, sim) = client(script());
    let tools = Toolset::new().with::<weather>().with::<clock>();
    let automatic = Automatic { steps: Some(Steps::Hidden), ..Automatic::default() };
    let seen = events(client.stream(Request::new("Go.").tools(tools).automatic(automatic))).await;
    let texts: Vec<_> = seen.iter().filter(|it| it.starts_with("text")).collect();
    assert_eq!(texts, ["text \"22 °C \"", "text \"at noon.\""]);
    clean(&sim, 2);
}

#[tokio::test]
async fn r058_chunk_boundaries_do_not_matter() {
    for size in [1, 2, 3, 7, 64, 1000] {
        let script = Script::new()
            .text("Grüße aus Zürich 😀.")
            .call("weather", json!({"city": "Zürich"}))
            .fault(Fault::Split { size })
            .finish()
            .text("Schön.")
            .fault(Fault::Split { size });
        let (client, sim) = client(script);
        let tools = Toolset::new().with::<weather>();
        let response = client.stream(Request::new("Go.").tools(tools)).finish().await.unwrap();
        assert_eq!(response.text(), "Schön.");
        clean(&sim, 2);
        let result = sim.requests()[1].function_response("weather").unwrap();
        assert_eq!(result["response"]["result"], "22 °C in Zürich");
    }
}

#[tokio::test]
async fn r059_returned_calls_are_numbered() {
    let script = Script::new()
        .text("Two questions.")
        .call("ask", json!({"n": 1}))
        .call("clock", json!({}))
        .call("ask", json!({"n": 2}))
        .finish()
        .text("Thanks.");
    let (client, sim) = client(script);
    let ask = Tool::declared_json(&json!({"name": "ask", "description": "Asks."})).unwrap();
    let tools = Toolset::new().with::<clock>().tool(ask);
    let mut stream = client.stream(Request::new("Go.").tools(tools));
    let (mut seen, mut response) = (Vec::new(), None);
    while let Some(event) = stream.next().await {
        let event = event.unwrap();
        if let Event::Call { index, call } = event {
            seen.push((index, call.arguments()));
        } else if let Event::Finished(end) = event {
            response = Some(*end);
        }
    }
    assert_eq!(seen, [(0, json!({"n": 1})), (1, json!({"n": 2}))]);
    let response = response.unwrap();
    // R32: text and calls.
    assert_eq!(response.text(), "Two questions.");
    let results: Vec<_> = response.calls().iter().map(|call| call.succeed(call.id())).collect();
    let seen = events(response.resume_stream(results).unwrap()).await;
    assert_eq!(seen.last().unwrap(), "finished \"Thanks.\"");
    clean(&sim, 2);
}

#[tokio::test(start_paused = true)]
async fn r063_an_error_is_the_end_and_nothing_follows() {
    let script = Script::new().chunk("One ").chunk("two ").fault(Fault::MidStream {
        after: 1,
        code: 503,
        message: String::new(),
        framed: false,
    });
    let (client, sim) = client(script);
    let mut stream = client.stream("Count.");
    let mut seen = Vec::new();
    while let Some(event) = stream.next().await {
        seen.push(
            event
                .map_or_else(|error| format!("error {:?}", error.kind().unwrap()), |it| brief(&it)),
        );
    }
    assert_eq!(seen.last().unwrap(), "error Overloaded");
    assert_eq!(seen[1], "text \"One \"");
    assert!(stream.next().await.is_none());
    // The caller has seen a part of the answer, so there is no retry.
    assert_eq!(sim.counters().requests, 1);
}

#[tokio::test(start_paused = true)]
async fn r062_a_truncated_stream_is_an_error() {
    let script =
        Script::new().chunk("One ").chunk("two ").fault(Fault::Cut { after: 400 }).times(0);
    let (client, _sim) = client(script);
    let error = client.stream("Count.").finish().await.unwrap_err();
    assert_eq!(error.kind(), Some(FailureKind::Cut));
}

#[tokio::test]
async fn dropping_a_stream_cancels_everything() {
    let script =
        Script::new().chunk("One ").chunk("two ").fault(Fault::Stall { after: 1, ms: None });
    let (client, sim) = client(script);
    let mut stream = client.stream("Count.");
    while let Some(event) = stream.next().await {
        if matches!(event.unwrap(), Event::Text(_)) {
            break;
        }
    }
    drop(stream);
    assert_eq!(sim.counters().cancels, 1);
}

#[tokio::test]
async fn a_bad_request_is_the_only_event() {
    let (client, _sim) = client(Script::new());
    let tools = Toolset::new().with::<clock>().with::<clock>();
    let seen = events(client.stream(Request::new("Go.").tools(tools))).await;
    assert_eq!(seen, ["error invalid request: tools: two tools are called `clock`"]);
}
