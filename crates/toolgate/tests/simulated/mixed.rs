//! Tools of the caller, of the program and of Gemini in one request.

use serde_json::json;
use toolgate::canon::{Function, SchemaForm, Tool as CanonTool, ToolName};
use toolgate::{Automatic, Error, Request, Tool, Toolset, Unfinished};
use toolgate_sim::Script;

use crate::support::{clean, client, last};
use crate::tools::{clock, weather};

fn confirm() -> Tool {
    let declaration = json!({
        "name": "confirm",
        "description": "Asks the user.",
        "parametersJsonSchema": {
            "type": "object",
            "properties": {"question": {"type": "string"}},
            "required": ["question"],
        },
    });
    Tool::declared_json(&declaration).unwrap()
}

fn both() -> Script {
    Script::new()
        .call("weather", json!({"city": "Oslo"}))
        .call("confirm", json!({"question": "Really?"}))
        .call("weather", json!({"city": "Atlantis"}))
        .finish()
        .text("Then so be it.")
}

#[tokio::test]
async fn calls_without_a_handler_are_returned_and_the_rest_is_run() {
    let (client, sim) = client(both());
    let tools = Toolset::new().with::<weather>().tool(confirm());
    let response = client.generate(Request::new("Go.").tools(tools)).await.unwrap();
    assert_eq!(response.unfinished(), Some(Unfinished::Caller));
    assert!(response.has_calls());
    let [call] = response.calls() else { panic!("{:?}", response.calls()) };
    assert_eq!((call.name(), call.arguments()), ("confirm", json!({"question": "Really?"})));
    assert!(call.id().starts_with("call_"), "{}", call.id());
    clean(&sim, 1);

    let result = call.succeed("yes");
    let response = response.resume([result]).await.unwrap();
    assert_eq!(response.text(), "Then so be it.");
    clean(&sim, 2);
    let contents = last(&sim)["contents"].clone();
    let results = contents[2]["parts"].as_array().unwrap();
    let said: Vec<_> =
        results.iter().map(|it| it["functionResponse"]["response"].clone()).collect();
    assert_eq!(
        said,
        [
            json!({"result": "22 °C in Oslo"}),
            json!({"result": "yes"}),
            json!({"error": "it is under water"}),
        ]
    );
    assert!(matches!(response.resume([]).await, Err(Error::NothingToResume)));
}

#[tokio::test]
async fn error_results_and_missing_results() {
    for (fails, want) in [
        (true, json!({"error": "the user has left"})),
        (false, json!({"error": "no result was given for this call"})),
    ] {
        let (client, sim) = client(both());
        let tools = Toolset::new().with::<weather>().tool(confirm());
        let response = client.generate(Request::new("Go.").tools(tools)).await.unwrap();
        let results: Vec<_> =
            fails.then(|| response.calls()[0].fail("the user has left")).into_iter().collect();
        response.resume(results).await.unwrap();
        clean(&sim, 2);
        let result = sim.requests()[1].function_response("confirm").unwrap();
        assert_eq!(result["response"], want);
    }
}

#[tokio::test]
async fn calls_of_functions_in_canon_are_returned() {
    let (client, sim) = client(Script::new().call("look", json!({})).finish());
    let mut request = Request::new("Look.");
    request.canon.tools.push(CanonTool::Function(Function {
        name: ToolName::plain("look"),
        description: None,
        parameters: None,
        form: SchemaForm::JsonSchema,
        response: None,
        deferred: false,
        at: "tools[0]".to_owned(),
        schema_field: "parameters",
    }));
    let response = client.generate(request).await.unwrap();
    assert_eq!(response.calls()[0].name(), "look");
    clean(&sim, 1);
}

#[tokio::test]
async fn automatic_calling_can_be_off() {
    let (client, sim) = client(both());
    let tools = Toolset::new().with::<weather>().tool(confirm());
    let request = Request::new("Go.").tools(tools).automatic(Automatic::OFF);
    let response = client.generate(request).await.unwrap();
    let names: Vec<_> = response.calls().iter().map(toolgate::Call::name).collect();
    assert_eq!(names, ["weather", "confirm", "weather"]);
    assert_eq!(response.unfinished(), Some(Unfinished::Limit));
    assert!(response.history().is_empty());
    clean(&sim, 1);
}

#[tokio::test]
async fn r004_server_tools_are_markers_beside_functions() {
    let (client, sim) = client(Script::new().text("Found.").finish().text("Found."));
    let tools = Toolset::new().google_search().url_context().code_execution().with::<clock>();
    client.generate(Request::new("Search.").tools(tools)).await.unwrap();
    let body = last(&sim);
    let tools = body["tools"].as_array().unwrap();
    let has = |name: &str| tools.iter().any(|tool| tool.get(name) == Some(&json!({})));
    assert!(has("googleSearch") && has("urlContext") && has("codeExecution"), "{tools:?}");
    assert_eq!(body["toolConfig"]["includeServerSideToolInvocations"], true);
    // R5: a tool that this version does not know.
    let tools = Toolset::new().server_tool("googleMaps", &json!({"enableWidget": true}));
    client.generate(Request::new("Where?").tools(tools)).await.unwrap();
    assert_eq!(last(&sim)["tools"], json!([{"googleMaps": {"enableWidget": true}}]));
    clean(&sim, 2);
}

#[tokio::test]
async fn executed_code_is_kept_and_sent_back() {
    let script = Script::new()
        .code("print(6*7)", "42\n")
        .call("clock", json!({}))
        .finish()
        .text("42 at noon.");
    let (client, sim) = client(script);
    let tools = Toolset::new().code_execution().with::<clock>();
    let response = client.generate(Request::new("Compute.").tools(tools)).await.unwrap();
    assert_eq!(response.text(), "42 at noon.");
    clean(&sim, 2);
    let parts = last(&sim)["contents"][1]["parts"].clone();
    let kinds: Vec<_> = ["executableCode", "codeExecutionResult", "functionCall"]
        .into_iter()
        .filter(|kind| parts.as_array().unwrap().iter().any(|part| part.get(*kind).is_some()))
        .collect();
    assert_eq!(kinds.len(), 3, "{parts}");
}

#[tokio::test]
async fn two_tools_of_one_name_are_refused() {
    let (client, sim) = client(Script::new());
    let tools = Toolset::new().with::<clock>().with::<clock>();
    let error = client.generate(Request::new("Go.").tools(tools)).await.unwrap_err();
    let want = "invalid request: tools: two tools are called `clock`";
    assert_eq!(error.to_string(), want);
    clean(&sim, 0);
}
