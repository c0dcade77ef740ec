//! Structured answers.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolgate::{Error, Request, Tool, Toolset};
use toolgate_sim::Script;

use crate::support::{clean, client, last};
use crate::tools::weather;

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
struct Report {
    city: String,
    /// In °C.
    degrees: i32,
}

fn report() -> Report {
    Report { city: "Oslo".to_owned(), degrees: 22 }
}

const JSON: &str = r#"{"city": "Oslo", "degrees": 22}"#;

#[tokio::test]
async fn answers_are_parsed_into_types() {
    let (client, sim) = client(Script::new().text(JSON));
    let read = client.generate_as::<Report>("Weather in Oslo?").await.unwrap();
    assert_eq!((&read.value, read.degrees), (&report(), 22));
    assert!(read.response.usage().total.is_some());
    assert_eq!(read.response.history().len(), 1);
    let config = &last(&sim)["generationConfig"];
    assert_eq!(config["responseMimeType"], "application/json");
    assert_eq!(config["responseJsonSchema"]["properties"]["degrees"]["description"], "In °C.");
    clean(&sim, 1);
}

#[tokio::test]
async fn json_output_with_tools() {
    for model in ["gemini-3-flash-preview", "gemini-3.6-flash", "gemini-4-argon"] {
        let script = Script::new().call("weather", json!({"city": "Oslo"})).finish().text(JSON);
        let (client, sim) = client(script);
        let request = Request::new("Go.").model(model).tools(Toolset::new().with::<weather>());
        assert_eq!(client.generate_as::<Report>(request).await.unwrap().value, report(), "{model}");
        clean(&sim, 2);
    }
}

#[tokio::test(start_paused = true)]
async fn json_output_with_tools_on_models_without_support() {
    // Gemini 2.5 refuses JSON output with functions, so the answer is the arguments of a function.
    let script = Script::new().call("weather", json!({"city": "Oslo"})).finish();
    let (client, sim) = client(script.clone());
    let request =
        Request::new("Go.").model("gemini-2.5-flash").tools(Toolset::new().with::<weather>());
    let _ = client.generate_as::<Report>(request.clone()).await;
    let names = sim.requests()[0].function_names();
    assert_eq!(names.len(), 2, "{names:?}");
    let answer = names.iter().find(|name| *name != "weather").unwrap();

    let script = script.call(answer, json!({"city": "Oslo", "degrees": 22})).finish();
    let (client, sim) = crate::support::client(script);
    assert_eq!(client.generate_as::<Report>(request).await.unwrap().value, report());
    clean(&sim, 2);
}

#[tokio::test]
async fn answers_of_another_form_are_errors() {
    let (client, _sim) = client(Script::new().text(r#"{"city": "Oslo", "degrees": "warm"}"#));
    let error = client.generate_as::<Report>("Weather?").await.unwrap_err();
    assert!(error.is_retryable());
    let Error::Output { reason, text } = error else { panic!("{error}") };
    assert_eq!(reason, "degrees: invalid type: string \"warm\", expected i32");
    assert!(text.contains("warm"));
}

#[tokio::test]
async fn structured_answers_after_returned_calls() {
    let script = Script::new().call("ask", json!({})).finish().text(JSON);
    let (client, sim) = client(script);
    let ask = Tool::declared_json(&json!({"name": "ask", "description": "Asks."})).unwrap();
    let request = Request::new("Go.").tools(Toolset::new().tool(ask)).output::<Report>();
    let response = client.generate(request).await.unwrap();
    let error = response.parse::<Report>().unwrap_err().to_string();
    assert!(error.contains("`ask`"), "{error}");
    let results: Vec<_> = response.calls().iter().map(|call| call.succeed("yes")).collect();
    let response = response.resume(results).await.unwrap();
    assert_eq!(response.parse::<Report>().unwrap(), report());
    // The second response covers only the rounds after the first.
    assert_eq!((response.requests(), response.history().len()), (1, 3));
    clean(&sim, 2);
}

#[tokio::test]
async fn a_chat_answers_in_json_and_then_in_text() {
    let (client, sim) = client(Script::new().text(JSON).finish().text("You are welcome."));
    let mut chat = client.chat(Request::default());
    assert_eq!(chat.send_as::<Report>("Weather?").await.unwrap().value, report());
    assert_eq!(chat.send("Thanks.").await.unwrap().text(), "You are welcome.");
    assert!(last(&sim)["generationConfig"].get("responseMimeType").is_none());
    clean(&sim, 2);
}

#[tokio::test]
async fn d9_the_model_is_told_why_its_answer_does_not_parse() {
    let wrong = r#"{"city": "Oslo", "degrees": "warm"}"#;
    let script = Script::new().text(wrong).finish().text("No idea.").finish().text(JSON);
    for in_chat in [false, true] {
        let (client, sim) = client(script.clone());
        let request = Request::default().output_retries(2);
        let read = match in_chat {
            true => client.chat(request).send_as::<Report>("Weather?").await.unwrap(),
            false => client.generate_as::<Report>(request.user("Weather?")).await.unwrap(),
        };
        assert_eq!(read.value, report());
        assert_eq!(read.response.requests(), 3);
        let told = sim.requests()[1].json()["contents"][2]["parts"][0]["text"].clone();
        let told = told.as_str().unwrap();
        assert!(told.contains("degrees: invalid type: string \"warm\", expected i32"), "{told}");
        let total = read.response.usage().total.unwrap();
        assert!(total > read.response.answer().finish.usage.total.unwrap());
        clean(&sim, 3);
    }
    let (client, sim) = client(script);
    let request = Request::new("Weather?").output_retries(1);
    let error = client.generate_as::<Report>(request).await.unwrap_err();
    assert!(matches!(error, Error::Output { .. }), "{error}");
    assert_eq!(sim.counters().requests, 2);
}
