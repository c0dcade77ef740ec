//! JSON for an answer.

use serde_json::{Value, json};
use toolgate_core::canon::{
    LossCode, OutputFormat, Request, SchemaForm, ServerTool, Tool, ToolChoice, ToolName,
};
use toolgate_core::gemini::upstream::Encoded;
use toolgate_core::json::Text;

use crate::support::{
    NEW, OLD, asks, call, codes, dev, encode, model, raw, says, text, tool, user,
};

const SCHEMA: &str =
    r#"{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}"#;

fn form(schema: &str) -> OutputFormat<'static> {
    OutputFormat::JsonSchema {
        name: Some(Text::new("place")),
        description: Some(Text::new("Where it is.")),
        schema: raw(schema),
        form: SchemaForm::JsonSchema,
    }
}

fn ask(
    target: &str,
    output: OutputFormat<'static>,
    tools: Vec<Tool<'static>>,
    tool_choice: ToolChoice<'static>,
) -> (Value, Encoded) {
    encode(&Request { output, tools, tool_choice, ..asks("Where?") }, &dev(target))
}

fn city(schema: &Value) -> &Value {
    &schema["properties"]["city"]["type"]
}

fn search() -> Tool<'static> {
    Tool::Server(ServerTool::WebSearch { name: "web_search".into() })
}

#[test]
fn without_tools_json_mode_serves() {
    for target in ["gemini-2.0-flash", OLD, NEW] {
        let (body, _) = ask(target, form(SCHEMA), vec![], ToolChoice::Unset);
        let config = &body["generationConfig"];
        assert_eq!(config["responseMimeType"], "application/json");
        assert_eq!(city(&config["responseJsonSchema"]), "string");
        let (body, _) = ask(target, OutputFormat::Json, vec![], ToolChoice::Unset);
        assert_eq!(body["generationConfig"], json!({"responseMimeType": "application/json"}));
    }
}

#[test]
fn an_answer_need_not_be_an_object() {
    let list = r#"{"type":"array","items":{"type":"integer"}}"#;
    let (body, encoded) = ask(NEW, form(list), vec![], ToolChoice::Unset);
    let schema: Value = serde_json::from_str(list).unwrap();
    assert_eq!(body["generationConfig"]["responseJsonSchema"], schema);
    assert_eq!(codes(&encoded), []);
    let own = OutputFormat::JsonSchema {
        name: None,
        description: None,
        schema: raw(r#"{"type":"ARRAY","items":{"type":"STRING"}}"#),
        form: SchemaForm::Gemini,
    };
    let (body, _) = ask(NEW, own, vec![], ToolChoice::Unset);
    assert_eq!(body["generationConfig"]["responseSchema"]["type"], "ARRAY");
}

#[test]
fn from_3_on_json_mode_goes_with_functions_unless_one_is_forced() {
    for choice in [ToolChoice::Unset, ToolChoice::Auto, ToolChoice::None] {
        let (body, encoded) = ask(NEW, form(SCHEMA), vec![tool("a")], choice);
        assert_eq!(body["generationConfig"]["responseMimeType"], "application/json");
        assert_eq!(encoded.exchange.answer_function, None);
    }
    for target in [OLD, NEW] {
        for choice in [ToolChoice::Any, ToolChoice::One(ToolName::plain("a"))] {
            let (body, encoded) = ask(target, form(SCHEMA), vec![tool("a")], choice);
            assert_eq!(body.get("generationConfig"), None);
            assert_eq!(body["toolConfig"]["functionCallingConfig"]["mode"], "ANY");
            assert_eq!(codes(&encoded), [LossCode::Ignored]);
        }
    }
}

#[test]
fn before_3_a_function_takes_the_answer() {
    for choice in [ToolChoice::Unset, ToolChoice::Auto] {
        let (body, encoded) = ask(OLD, form(SCHEMA), vec![tool("a")], choice);
        assert_eq!(encoded.exchange.answer_function.as_deref(), Some("final_answer"));
        assert_eq!(encoded.exchange.tools.len(), 1);
        let functions = &body["tools"][0]["functionDeclarations"];
        assert_eq!(functions[1]["name"], "final_answer");
        let description = functions[1]["description"].as_str().unwrap();
        assert!(description.starts_with("Where it is.\n\n"), "{description}");
        assert_eq!(city(&functions[1]["parametersJsonSchema"]), "string");
        let calling = &body["toolConfig"]["functionCallingConfig"];
        assert_eq!(*calling, json!({"mode": "ANY"}));
        assert_eq!(body.get("generationConfig"), None);
        assert_eq!(codes(&encoded), [LossCode::Changed]);
    }
    let only = ToolChoice::Allowed { required: false, names: vec![ToolName::plain("b")] };
    let (body, _) = ask(OLD, form(SCHEMA), vec![tool("a"), tool("b")], only);
    let calling = &body["toolConfig"]["functionCallingConfig"];
    assert_eq!(calling["allowedFunctionNames"], json!(["b", "final_answer"]));
    // Whoever has the name keeps it, in history too.
    let request = Request {
        output: form(SCHEMA),
        tools: vec![tool("a"), tool("final_answer")],
        ..says(vec![user(vec![text("Go.")]), model(vec![call("1", "final_answer_2", "{}")])])
    };
    let (_, encoded) = encode(&request, &dev(OLD));
    assert_eq!(encoded.exchange.answer_function.as_deref(), Some("final_answer_3"));
}

#[test]
fn before_3_the_rest_is_said_in_words() {
    let list = r#"{"type":"array","items":{"type":"integer"}}"#;
    for (output, tools, word) in [
        (OutputFormat::Json, vec![tool("a")], "one JSON object"),
        (form(list), vec![tool("a")], list),
        (form(SCHEMA), vec![search()], SCHEMA),
    ] {
        let (body, encoded) = ask(OLD, output, tools, ToolChoice::Auto);
        let said = body["systemInstruction"]["parts"][0]["text"].as_str().unwrap();
        assert!(said.contains(word), "{said}");
        assert_eq!(body.get("generationConfig"), None);
        assert!(codes(&encoded).contains(&LossCode::Changed));
    }
    let (body, _) = ask(OLD, form(SCHEMA), vec![tool("a")], ToolChoice::None);
    assert_eq!(body.get("tools"), None);
    assert_eq!(body["generationConfig"]["responseMimeType"], "application/json");
}
