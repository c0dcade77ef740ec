//! JSON for an answer.

use serde_json::{Value, json};
use toolgate_core::canon::{
    LossCode, OutputFormat, Request, SchemaForm, ServerTool, Tool, ToolChoice, ToolName,
};
use toolgate_core::json::Text;
use toolgate_core::upstream::generate_content::{AnswerFunction, Encoded};

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

fn plain(schema: &str) -> OutputFormat<'static> {
    let (schema, form) = (raw(schema), SchemaForm::JsonSchema);
    OutputFormat::JsonSchema { name: None, description: None, schema, form }
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
    let (body, encoded) = ask(NEW, plain(list), vec![], ToolChoice::Unset);
    let schema: Value = serde_json::from_str(list).unwrap();
    assert_eq!(body["generationConfig"]["responseJsonSchema"], schema);
    assert_eq!(codes(&encoded), []);
    // Unions and `null` at the root are kept.
    for schema in [
        r#"{"anyOf":[{"type":"array","items":{"type":"integer"}},{"type":"object","properties":{"a":{"type":"string"}}}]}"#,
        r#"{"anyOf":[{"type":"object","properties":{"a":{}},"required":["a"]},{"type":"object","properties":{"b":{}},"required":["b"]}]}"#,
        r#"{"type":["object","null"],"properties":{"a":{"type":"string"}}}"#,
        r#"{"type":["string","integer"]}"#,
    ] {
        for tools in [vec![], vec![tool("a")]] {
            let (body, encoded) = ask(NEW, plain(schema), tools, ToolChoice::Unset);
            let want: Value = serde_json::from_str(schema).unwrap();
            assert_eq!(body["generationConfig"]["responseJsonSchema"], want);
            assert_eq!(codes(&encoded), []);
        }
    }
    // Keywords that the schema loses are put into its description.
    let odd = r#"{"type":"object","description":"A place.","properties":{"a":{"type":"string"}},"if":{"required":["a"]},"then":{"minProperties":2},"dependentRequired":{"a":["b"]},"minProperties":1,"patternProperties":{"^x":{"type":"string"}}}"#;
    let (body, _) = ask(NEW, form(odd), vec![], ToolChoice::Unset);
    let said = body["generationConfig"]["responseJsonSchema"]["description"].as_str().unwrap();
    for words in ["A place.", "If it fits", "With `a` also give `b`", "^x", "t least 1"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    // A schema that says nothing is not sent.
    let (body, _) = ask(NEW, form("true"), vec![], ToolChoice::Unset);
    assert_eq!(body["generationConfig"], json!({"responseMimeType": "application/json"}));
    let own = OutputFormat::JsonSchema {
        name: None,
        description: None,
        schema: raw(r#"{"type":"ARRAY","items":{"type":"STRING"}}"#),
        form: SchemaForm::Gemini,
    };
    let (body, _) = ask(NEW, own, vec![], ToolChoice::Unset);
    assert_eq!(body["generationConfig"]["responseSchema"]["type"], "ARRAY");
    for schema in [
        r#"{"anyOf":[{"type":"ARRAY","items":{"type":"STRING"}},{"type":"OBJECT","properties":{"a":{"type":"STRING"}}}]}"#,
        r#"{"type":"OBJECT","nullable":true,"properties":{"a":{"type":"STRING"}}}"#,
    ] {
        let (name, description, form) = (None, None, SchemaForm::Gemini);
        let own = OutputFormat::JsonSchema { name, description, schema: raw(schema), form };
        let (body, _) = ask(NEW, own, vec![], ToolChoice::Unset);
        let want: Value = serde_json::from_str(schema).unwrap();
        assert_eq!(body["generationConfig"]["responseSchema"], want);
    }
}

#[test]
fn the_answers_description_goes_along() {
    for (schema, said) in [
        (SCHEMA, "Where it is."),
        (r#"{"type":"array","items":{},"description":"A list."}"#, "Where it is.\n\nA list."),
    ] {
        let (body, encoded) = ask(NEW, form(schema), vec![], ToolChoice::Unset);
        assert_eq!(body["generationConfig"]["responseJsonSchema"]["description"], said);
        assert_eq!(codes(&encoded), []);
    }
    let (_, encoded) = ask(NEW, form("true"), vec![], ToolChoice::Unset);
    assert_eq!(codes(&encoded), [LossCode::Ignored]);
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
        let answer = AnswerFunction { name: "final_answer".to_owned(), argument: None };
        assert_eq!(encoded.exchange.answer_function, Some(answer));
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
    // A tool that has the name keeps it, in history too.
    let request = Request {
        output: form(SCHEMA),
        tools: vec![tool("a"), tool("final_answer")],
        ..says(vec![user(vec![text("Go.")]), model(vec![call("1", "final_answer_2", "{}")])])
    };
    let (_, encoded) = encode(&request, &dev(OLD));
    let answer = encoded.exchange.answer_function.map(|function| function.name);
    assert_eq!(answer.as_deref(), Some("final_answer_3"));
}

#[test]
fn before_3_an_answer_that_need_not_be_an_object_is_an_argument() {
    let union = r#"{"anyOf":[{"type":"array","items":{"type":"integer"}},{"type":"object","properties":{"a":{"type":"string"}}}]}"#;
    for (schema, argument) in [
        (r#"{"type":"array","items":{"type":"integer"}}"#, true),
        (r#"{"type":["object","null"],"properties":{"a":{}}}"#, true),
        (union, true),
        (r##"{"$ref":"#/$defs/A","$defs":{"A":{"type":"integer"}}}"##, true),
        ("true", true),
        (r#"{"properties":{"a":{"type":"string"}},"minProperties":1}"#, false),
    ] {
        let (body, encoded) = ask(OLD, form(schema), vec![tool("a")], ToolChoice::Auto);
        let function = &body["tools"][0]["functionDeclarations"][1];
        let parameters = &function["parametersJsonSchema"];
        assert_eq!(parameters["type"], "object", "{schema}");
        let answer = encoded.exchange.answer_function.unwrap();
        assert_eq!(answer.argument, argument.then_some("answer"), "{schema}");
        assert_eq!(parameters["properties"].get("answer").is_some(), argument, "{schema}");
        assert_eq!(parameters.get("required").is_some(), argument, "{schema}");
    }
    let (body, _) = ask(OLD, form(union), vec![tool("a")], ToolChoice::Auto);
    let function = &body["tools"][0]["functionDeclarations"][1];
    let own: Value = serde_json::from_str(union).unwrap();
    assert_eq!(function["parametersJsonSchema"]["properties"]["answer"], own);
}

#[test]
fn before_3_the_rest_is_said_in_words() {
    for (output, tools, word) in [
        (OutputFormat::Json, vec![tool("a")], "one JSON object"),
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
