//! Faults of the model, their repair and retries.

use serde_json::json;
use toolgate::{FailureKind, Request, Toolset, tool};
use toolgate_sim::{Fault, Script};

use crate::support::{builder, clean, client, last};
use crate::tools::{clock, weather};

/// Counts up to a number.
#[tool]
#[expect(clippy::needless_pass_by_value, reason = "that is how it arrives")]
fn count(
    /// How far.
    #[schemars(range(max = 9))]
    to: u32,
    /// By what step.
    step: Option<f64>,
    mode: Option<Mode>,
) -> String {
    format!("{to} {step:?} {mode:?}")
}

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Loud,
    Quiet,
}

#[tokio::test]
async fn r130_an_unknown_tool_is_answered_to_the_model() {
    let script = Script::new()
        .call("forecast", json!({"city": "Oslo"}))
        .call("weather", json!({"city": "Oslo"}))
        .finish()
        .text("22 °C.");
    let (client, sim) = client(script);
    let tools = Toolset::new().with::<weather>().with::<clock>();
    let response = client.generate(Request::new("Go.").tools(tools)).await.unwrap();
    assert_eq!(response.text(), "22 °C.");
    let told = sim.requests()[1].function_response("forecast").unwrap();
    let want = "there is no tool `forecast`; the tools are `clock`, `weather`";
    assert_eq!(told["response"], json!({"error": want}));
    assert!(response.losses().iter().any(|loss| loss.tool.as_deref() == Some("forecast")));
    clean(&sim, 2);
}

#[tokio::test]
async fn r131_bad_arguments_are_answered_to_the_model() {
    let script = Script::new()
        .call("count", json!({"to": 70}))
        .call("weather", json!({}))
        .finish()
        .call("count", json!({"to": 7}))
        .finish()
        .text("Done.");
    let (client, sim) = client(script);
    let tools = Toolset::new().with::<weather>().with::<count>();
    let response = client.generate(Request::new("Go.").tools(tools)).await.unwrap();
    assert_eq!(response.text(), "Done.");
    clean(&sim, 3);
    for (tool, want) in [("count", "to"), ("weather", "city")] {
        let told = sim.requests()[1].function_response(tool).unwrap();
        let error = told["response"]["error"].as_str().unwrap().to_owned();
        assert!(error.starts_with("the arguments do not fit the tool's schema"), "{error}");
        assert!(error.contains(want), "{error}");
    }
}

#[tokio::test]
async fn harmless_differences_are_repaired() {
    let script = Script::new()
        .call("count", json!({"to": 7.0, "step": 1, "mode": "LOUD"}))
        .call("count", json!({"to": "8"}))
        .finish()
        .text("Done.");
    let (client, sim) = client(script);
    let tools = Toolset::new().with::<count>();
    client.generate(Request::new("Go.").tools(tools)).await.unwrap();
    clean(&sim, 2);
    let parts = last(&sim)["contents"][2]["parts"].clone();
    let said = |at: usize| parts[at]["functionResponse"]["response"]["result"].clone();
    assert_eq!(said(0), "7 Some(1.0) Some(Loud)");
    assert_eq!(said(1), "8 None None");
}

#[tokio::test]
async fn r135_malformed_and_empty_turns_are_retried() {
    for fault in
        [Fault::MalformedCall, Fault::EmptyStop, Fault::ThinkingOnly, Fault::UnexpectedCall]
    {
        for streamed in [false, true] {
            let script = Script::new()
                .call("clock", json!({}))
                .fault(fault.clone())
                .finish()
                .call("clock", json!({}))
                .finish()
                .text("Noon.");
            let (client, sim) = client(script);
            let request = Request::new("Go.").tools(Toolset::new().with::<clock>());
            let response = match streamed {
                true => client.stream(request).finish().await,
                false => client.generate(request).await,
            };
            assert_eq!(response.unwrap().text(), "Noon.", "{fault:?} {streamed}");
            clean(&sim, 3);
        }
    }
}

#[tokio::test]
async fn exhausted_retries_are_an_error_with_the_history() {
    let script = Script::new()
        .call("clock", json!({}))
        .finish()
        .call("clock", json!({}))
        .fault(Fault::MalformedCall)
        .times(0)
        .finish();
    let (client, sim) = client(script);
    let request = Request::new("Go.").tools(Toolset::new().with::<clock>());
    let error = client.generate(request).await.unwrap_err();
    assert_eq!(error.kind(), Some(FailureKind::MalformedCall));
    assert!(error.is_retryable());
    let toolgate::Error::Failed { history, .. } = error else { panic!("{error}") };
    assert_eq!(history.len(), 2);
    // One round, then one request and two retries.
    assert_eq!(sim.counters().requests, 4);
}

#[tokio::test(start_paused = true)]
async fn failed_requests_are_retried() {
    let overloaded = Fault::Status {
        code: 503,
        message: String::new(),
        retry_after: None,
        quota: None,
        html: false,
    };
    for fault in [overloaded, Fault::Cut { after: 20 }, Fault::Reset { after: 0 }] {
        for streamed in [false, true] {
            let script =
                Script::new().text("Hi.").fault(fault.clone()).times(2).finish().text("Hello.");
            let (client, sim) = client(script);
            let response = match streamed {
                true => client.stream("Hi?").finish().await,
                false => client.generate("Hi?").await,
            };
            assert_eq!(response.unwrap().text(), "Hello.", "{fault:?}");
            assert_eq!(sim.counters().requests, 3);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn timeouts_end_slow_and_silent_answers() {
    let second = std::time::Duration::from_secs(1);
    let script =
        Script::new().text("Hi, all of you.").fault(Fault::Stall { after: 1, ms: None }).times(0);
    let (builder, _sim) = builder(script);
    let client = builder.timeout(20 * second).idle_timeout(10 * second).build().unwrap();
    let start = tokio::time::Instant::now();
    let error = client.generate("Hi?").await.unwrap_err();
    assert_eq!(error.to_string(), "Gemini did not answer within 20s");
    let error = client.stream("Hi?").finish().await.unwrap_err();
    assert_eq!(error.to_string(), "Gemini sent nothing for 10s");
    assert_eq!(error.kind(), Some(FailureKind::Timeout));
    assert_eq!(start.elapsed(), 30 * second);
}

#[tokio::test]
async fn blocked_answers_have_their_reason() {
    let script = Script::new().text("Hm").fault(Fault::Safety).finish();
    let (client, _sim) = client(script);
    let response = client.generate("Hi?").await.unwrap();
    assert!(matches!(response.finish_reason(), toolgate::FinishReason::Blocked(_)));
    assert_eq!(response.history().len(), usize::from(!response.text().is_empty()));
}
