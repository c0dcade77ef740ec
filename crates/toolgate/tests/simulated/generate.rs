//! Automatic function calling in unary requests.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use toolgate::{FinishReason, Request, Toolset};
use toolgate_sim::{Cassette, Driver, Exchange, Script};

use crate::support::{clean, client, last};
use crate::tools::{broken, clock, slow, slow_in_line, stock, stuck, weather};

#[tokio::test]
async fn r069_an_answer_without_calls_is_returned_unchanged() {
    let (client, sim) = client(Script::new().text("Four."));
    let response = client.generate("What is 2+2?").await.unwrap();
    assert_eq!(response.text(), "Four.");
    assert_eq!(response.requests(), 1);
    assert_eq!(*response.finish_reason(), FinishReason::Stop);
    assert!(!response.has_calls());
    assert!(response.usage().total.is_some_and(|total| total > 0));
    clean(&sim, 1);
    // R3: no tools, no field.
    assert!(last(&sim).get("tools").is_none());
}

#[tokio::test]
async fn r068_to_r074_the_steps_of_automatic_calling() {
    let script = Script::new()
        .thought("The weather is asked for.")
        .text("Let me look. ")
        .call("weather", json!({"city": "Oslo"}))
        .finish()
        .text("It is 22 °C.");
    let (client, sim) = client(script);
    let tools = Toolset::new().with::<weather>().with::<clock>();
    let response = client.generate(Request::new("Weather in Oslo?").tools(tools)).await.unwrap();
    // R74: only the final text.
    assert_eq!(response.text(), "It is 22 °C.");
    assert_eq!(response.answer().text(), "It is 22 °C.");
    assert_eq!(response.requests(), 2);
    clean(&sim, 2);
    // R2: one entry with all declarations, in order; R1: exactly these members.
    let first = sim.requests()[0].json();
    assert_eq!(first["tools"].as_array().unwrap().len(), 1);
    let declared = &first["tools"][0]["functionDeclarations"];
    let members: Vec<_> = declared[0].as_object().unwrap().keys().collect();
    assert_eq!(members, ["name", "description", "parametersJsonSchema"]);
    assert_eq!(declared[1]["name"], "clock");
    assert!(declared[1].get("parametersJsonSchema").is_none());
    // R46, R72: the whole history, then the results.
    let second = last(&sim);
    let contents = second["contents"].as_array().unwrap();
    let roles: Vec<_> = contents.iter().map(|it| it["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "model", "user"]);
    // R49: not a byte of the result is changed.
    let result = sim.requests()[1].function_response("weather").unwrap();
    assert_eq!(result["response"], json!({"result": "22 °C in Oslo"}));
    // Ids are echoed in calls and results.
    let call = &contents[1]["parts"].as_array().unwrap().last().unwrap()["functionCall"];
    assert_eq!(call["id"], result["id"]);
    assert!(sim.counters().signatures > 0);
}

#[tokio::test]
async fn r031_r042_parallel_calls_are_answered_together_and_in_order() {
    let script = Script::new()
        .call("weather", json!({"city": "Paris"}))
        .call("clock", json!({}))
        .call("weather", json!({"city": "Rome"}))
        .finish()
        .text("Sunny in both.");
    let (client, sim) = client(script);
    let tools = Toolset::new().with::<weather>().with::<clock>();
    let response = client.generate(Request::new("Weather?").tools(tools)).await.unwrap();
    assert_eq!(response.text(), "Sunny in both.");
    clean(&sim, 2);
    let contents = last(&sim)["contents"].clone();
    let results = contents[2]["parts"].as_array().unwrap();
    let said: Vec<_> =
        results.iter().map(|it| it["functionResponse"]["response"]["result"].clone()).collect();
    assert_eq!(said, [json!("22 °C in Paris"), json!("noon"), json!("22 °C in Rome")]);
}

/// Three calls of ten seconds each.
fn three(tool: &str) -> Script {
    let script = Script::new();
    let script =
        ["a", "b", "c"].iter().fold(script, |it, name| it.call(tool, json!({"name": name})));
    script.finish().text("Done.")
}

#[tokio::test(start_paused = true)]
async fn r167_three_slow_tools_take_the_time_of_one() {
    let took = async |tool: &str, tools: Toolset| {
        let (client, sim) = client(three(tool));
        let start = Instant::now();
        client.generate(Request::new("Go.").tools(tools)).await.unwrap();
        clean(&sim, 2);
        start.elapsed()
    };
    let parallel = took("slow", Toolset::new().with::<slow>()).await;
    let sequential = took("slow_in_line", Toolset::new().with::<slow_in_line>()).await;
    let limited = took("slow", Toolset::new().with::<slow>().max_parallel(1)).await;
    assert_eq!(parallel, Duration::from_secs(10));
    assert_eq!(sequential, Duration::from_secs(30));
    assert_eq!(limited, Duration::from_secs(30));
}

#[tokio::test(start_paused = true)]
async fn r071_r054_failing_tools_do_not_end_the_loop() {
    let script = Script::new()
        .call("weather", json!({"city": "Atlantis"}))
        .call("stuck", json!({}))
        .call("broken", json!({}))
        .call("weather", json!({"city": "Oslo"}))
        .finish()
        .text("Oslo is fine.");
    let (client, sim) = client(script);
    let tools = Toolset::new().with::<weather>().with::<stuck>().with::<broken>();
    let response = client.generate(Request::new("Try all.").tools(tools)).await.unwrap();
    assert_eq!(response.text(), "Oslo is fine.");
    clean(&sim, 2);
    let contents = last(&sim)["contents"].clone();
    let results = contents[2]["parts"].as_array().unwrap();
    let said: Vec<_> =
        results.iter().map(|it| it["functionResponse"]["response"].clone()).collect();
    let panicked = "the tool panicked: called `Option::unwrap()` on a `None` value";
    // R41: errors are errors; R54: a timeout names its limit, and the others still finish.
    assert_eq!(
        said,
        [
            json!({"error": "it is under water"}),
            json!({"error": "the tool took longer than 3s and was given up"}),
            json!({"error": panicked}),
            json!({"result": "22 °C in Oslo"}),
        ]
    );
}

#[tokio::test]
async fn r047_objects_are_wrapped_and_deterministic_results_are_cached() {
    let script = Script::new()
        .call("stock", json!({"sku": "tea"}))
        .finish()
        .call("stock", json!({"sku": "tea"}))
        .finish()
        .text("Three.");
    let (client, sim) = client(script);
    let (seen, log) = std::sync::mpsc::channel();
    let tools = Toolset::new().with::<stock>();
    let request = Request::new("How many?").tools(tools);
    let request = request.observe(move |event| {
        if let toolgate::Event::ToolFinished { cached, .. } = event {
            seen.send(*cached).unwrap();
        }
    });
    client.generate(request).await.unwrap();
    clean(&sim, 3);
    let result = sim.requests()[2].function_response("stock").unwrap();
    assert_eq!(result["response"], json!({"result": {"sku": "tea", "left": 3}}));
    assert_eq!(log.iter().collect::<Vec<_>>(), [false, true]);
}

#[tokio::test]
async fn r048_several_rounds_one_after_the_other() {
    let script = Script::new()
        .call("clock", json!({}))
        .finish()
        .call("weather", json!({"city": "Oslo"}))
        .finish()
        .call("weather", json!({"city": "Rome"}))
        .finish()
        .text("Done.");
    for model in
        ["gemini-2.5-flash", "gemini-3-flash-preview", "gemini-3.6-flash", "gemini-4-argon"]
    {
        let (client, sim) = client(script.clone());
        let tools = Toolset::new().with::<weather>().with::<clock>();
        let request = Request::new("Go.").tools(tools).model(model);
        let response = client.generate(request).await.unwrap();
        assert_eq!(response.text(), "Done.", "{model}");
        assert_eq!(response.requests(), 4);
        // Calls and results of all rounds, then the answer.
        assert_eq!(response.history().len(), 7);
        clean(&sim, 4);
    }
}

/// R38: an answer that Gemini pauses is continued to its end.
#[tokio::test]
async fn r38_an_answer_is_continued() {
    let piece = |text: &str, more: Value| {
        let mut candidate = json!({"content": {"parts": [{"text": text}]}});
        candidate.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"candidates": [candidate], "usageMetadata": {"totalTokenCount": 7}})
    };
    let (client, sim) = client(Script::new());
    let pieces = [
        piece("One ", json!({"finishReason": "CONTINUATION", "continuationToken": "QQ=="})),
        piece("two.", json!({"finishReason": "STOP"})),
    ];
    let exchanges = pieces.map(|response| Exchange {
        path: format!("/v1beta/models/{}:generateContent", client.model()),
        status: 200,
        content_type: "application/json".to_owned(),
        response,
        ..Exchange::default()
    });
    sim.set_driver(Driver::Replay(Cassette::new(exchanges.to_vec())));
    let response = client.generate("Count.").await.unwrap();
    assert_eq!(response.text(), "One two.");
    assert_eq!(response.usage().total, Some(14));
    assert_eq!(last(&sim)["continuationToken"], "QQ==");
}
