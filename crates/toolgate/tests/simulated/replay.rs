//! Unusual forms of calls, and conversations from elsewhere.

use serde_json::json;
use toolgate::{CallResult, Client, FunctionTool as _, Message, Request, Toolset};
use toolgate_sim::{Script, Sim, SimConfig};

use crate::support::{clean, client, last};
use crate::tools::{clock, weather};

#[tokio::test]
async fn r028_a_call_without_arguments_is_a_call_with_none() {
    let script =
        Script::new().part(json!({"functionCall": {"name": "clock"}})).finish().text("Noon.");
    for streamed in [false, true] {
        let (client, sim) = client(script.clone());
        let tools = Toolset::new().with::<clock>();
        let request = Request::new("Go.").model("gemini-2.5-flash").tools(tools);
        let response = match streamed {
            true => client.stream(request).finish().await.unwrap(),
            false => client.generate(request).await.unwrap(),
        };
        assert_eq!(response.text(), "Noon.");
        clean(&sim, 2);
        let said = sim.requests()[1].function_response("clock").unwrap();
        assert_eq!(said["response"], json!({"result": "noon"}));
    }
}

#[tokio::test]
async fn r035_r044_r045_turns_are_rebuilt_from_stored_data() {
    let (client, sim) = client(Script::new().text("Ok."));
    let model = Message::new("Let me look.").call("call_1", "weather", r#"{"city": "Oslo"}"#).call(
        "call_2",
        "weather",
        "not JSON at all",
    );
    let results = Message::default()
        .result(CallResult::success("call_1", "22 °C"))
        .result(CallResult::error("call_2", "no such city"));
    let request = Request::new("Weather?")
        .model("gemini-2.5-flash")
        .assistant(model)
        .user(results)
        .tools(Toolset::new().with::<weather>());
    assert_eq!(client.generate(request).await.unwrap().text(), "Ok.");
    let contents = last(&sim)["contents"].clone();
    assert_eq!(contents[1]["role"], "model");
    assert_eq!(contents[1]["parts"][0]["text"], "Let me look.");
    assert_eq!(contents[1]["parts"][1]["functionCall"]["args"], json!({"city": "Oslo"}));
    assert!(contents[1]["parts"][2]["functionCall"]["args"].is_object());
    // R43: the results are in the next user turn.
    assert_eq!(contents[2]["role"], "user");
    let said = |at: usize| contents[2]["parts"][at]["functionResponse"].clone();
    assert_eq!(said(0)["response"], json!({"result": "22 °C"}));
    assert_eq!(said(0)["name"], "weather");
    assert_eq!(said(1)["response"], json!({"error": "no such city"}));
}

#[test]
fn r036_arguments_can_be_checked() {
    let tool = weather::tool();
    assert!(tool.violations(&json!({"city": "Oslo"})).is_empty());
    let violations = tool.violations(&json!({"city": 1}));
    assert_eq!(violations.len(), 1);
    assert_eq!(violations[0].at, "args.city");
}

#[tokio::test]
async fn r66_arguments_that_are_streamed_in_pieces_are_run_too() {
    let script = Script::new()
        .call("weather", json!({"city": "Oslo"}))
        .call("clock", json!({}))
        .finish()
        .text("Ok.");
    let sim = Sim::new(SimConfig::scripted(script));
    let client = Client::builder()
        .vertex("p", "global")
        .token("a token".to_owned())
        .base_url("http://simulator")
        .transport(sim.clone())
        .build()
        .unwrap();
    let request = Request::new("Go.")
        .tools(Toolset::new().with::<weather>().with::<clock>())
        .field("toolConfig.streamFunctionCallArguments", &json!(true));
    let response = client.stream(request).finish().await.unwrap();
    assert_eq!(response.text(), "Ok.");
    clean(&sim, 2);
    let first = sim.requests()[0].json();
    let config = &first["toolConfig"]["functionCallingConfig"];
    assert_eq!(config["streamFunctionCallArguments"], true);
    let said = sim.requests()[1].function_response("weather").unwrap();
    assert_eq!(said["response"], json!({"result": "22 °C in Oslo"}));
}

#[tokio::test]
async fn r037_r061_finished_is_emitted_once_with_usage() {
    let (client, _sim) = client(Script::new().text("Ok."));
    let mut stream = client.stream("Hi?");
    let mut ends = Vec::new();
    while let Some(event) = stream.next().await {
        if let toolgate::Event::Finished(response) = event.unwrap() {
            ends.push((response.has_calls(), response.usage().total.unwrap_or(0) > 0));
        }
    }
    assert_eq!(ends, [(false, true)]);
}
