//! Tools of every type, and the choice among them.

use serde_json::{Value, json};
use toolgate_core::canon::{Function, ServerTool, Tool, ToolChoice, ToolName};

use super::requests::{body, decode, losses};

/// Checks the names of the tools, deferred ones in brackets, and the losses.
#[track_caller]
fn check(fields: &Value, names: &[&str], lost: &[&str]) {
    let body = body(fields);
    let decoded = decode(&body);
    let told: Vec<_> = decoded
        .request
        .tools
        .iter()
        .map(|tool| match tool {
            Tool::Function(function) if function.deferred => format!("({})", function.name),
            Tool::Function(function) => function.name.to_string(),
            Tool::Freeform { name, .. } => name.to_string(),
            Tool::Server(server) => match server {
                ServerTool::WebSearch { name } => format!("search {name}"),
                ServerTool::UrlContext { name } => format!("read {name}"),
                ServerTool::CodeExecution { name } => format!("run {name}"),
                ServerTool::Gemini { kind, .. } => format!("gemini {kind}"),
            },
        })
        .collect();
    assert_eq!(told, names);
    assert_eq!(losses(&decoded), lost);
}

/// The one function that a tool becomes, as name, description, schema.
#[track_caller]
fn function(tool: &Value) -> (String, String, Value) {
    let body = body(&json!({"tools": [tool]}));
    match decode(&body).request.tools.first() {
        Some(Tool::Function(Function { name, description, parameters, .. })) => (
            name.to_string(),
            description.as_ref().map(|it| it.decode().into_owned()).unwrap_or_default(),
            parameters.as_ref().map(|it| it.to().unwrap()).unwrap_or_default(),
        ),
        other => panic!("{other:?}"),
    }
}

fn members(schema: &Value) -> Vec<&str> {
    schema["properties"].as_object().unwrap().keys().map(String::as_str).collect()
}

fn choices<'s>(schema: &'s Value, member: &str) -> Vec<&'s str> {
    let values = schema["properties"][member]["enum"].as_array().unwrap();
    values.iter().map(|it| it.as_str().unwrap()).collect()
}

#[test]
fn r17_r112_custom_tools() {
    let schema =
        json!({"$schema": "x", "type": "object", "properties": {"-A": {"type": "integer"}}});
    let tool = json!({
        "name": "grep", "description": "Finds \"text\".", "input_schema": schema,
        "strict": true, "eager_input_streaming": true, "cache_control": {"type": "ephemeral"},
    });
    assert_eq!(function(&tool), ("grep".into(), "Finds \"text\".".into(), schema));
    check(
        &json!({"tools": [
            {"name": "a", "input_schema": {}},
            {"type": "custom", "name": "b", "input_schema": {"type": "object"}},
            {"type": null, "name": "c", "novel": 1},
            {"name": "d", "input_schema": {}, "allowed_callers": ["code_execution_20250825"]},
            {"name": "e", "input_schema": {}, "strict": true},
            {"name": "f", "input_schema": {}, "strict": false},
        ]}),
        &["a", "b", "c", "d", "e", "f"],
        &[
            "tools[2].novel UnknownField",
            "tools[3].allowed_callers Ignored",
            "tools[4].strict Ignored",
        ],
    );
    let examples =
        json!({"name": "a", "description": "Adds.", "input_examples": [{"x": 1}, {"x": 2}]});
    assert_eq!(function(&examples).1, "Adds.\n\nExamples of input:\n{\"x\":1}\n{\"x\":2}");
}

#[test]
fn deferred_tools_wait_until_they_are_loaded() {
    let tools = json!([
        {"name": "ToolSearch", "input_schema": {}},
        {"name": "Loaded", "input_schema": {}, "defer_loading": true},
        {"name": "Used", "input_schema": {}, "defer_loading": true},
        {"name": "Waiting", "input_schema": {}, "defer_loading": true},
        {"name": "DeferredToolPlaceholder", "input_schema": {}, "defer_loading": true},
    ]);
    let messages = json!([
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [
            {"type": "tool_use", "id": "t1", "name": "ToolSearch", "input": {}},
            {"type": "tool_use", "id": "t2", "name": "Used", "input": {}},
        ]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [
            {"type": "tool_reference", "tool_name": "Loaded"},
            {"type": "tool_reference", "tool_name": "DeferredToolPlaceholder"},
        ]}]},
    ]);
    let shown = ["ToolSearch", "Loaded", "Used", "(Waiting)", "(DeferredToolPlaceholder)"];
    check(&json!({"tools": tools, "messages": messages}), &shown, &[]);
    check(
        &json!({"tools": tools, "tool_choice": {"type": "tool", "name": "Waiting"}}),
        &["ToolSearch", "(Loaded)", "(Used)", "Waiting", "(DeferredToolPlaceholder)"],
        &[],
    );
}

/// Anthropic's own search is not run, so nothing could be loaded by it.
#[test]
fn a_search_that_nobody_runs_hides_nothing() {
    check(
        &json!({"tools": [
            {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"},
            {"name": "a", "input_schema": {}, "defer_loading": true},
        ]}),
        &["a"],
        &["tools[0] ToolDropped"],
    );
}

#[test]
fn tools_come_and_go_in_the_conversation() {
    let change = |kind: &str, tool: Value| json!({"type": kind, "tool": tool});
    let messages = json!([
        {"role": "user", "content": "go"},
        {"role": "system", "content": [
            change("tool_addition", json!({"type": "tool_reference", "name": "late"})),
            change("tool_removal", json!({"type": "tool_reference", "name": "early"})),
            change("tool_addition", json!({"type": "tool_definition", "definition": {
                "name": "inline", "description": "New.", "input_schema": {"type": "object"}}})),
            change("tool_addition", json!({"type": "mcp_toolset_reference", "server_name": "s"})),
        ]},
    ]);
    check(
        &json!({"messages": messages, "tools": [
            {"name": "early", "input_schema": {}},
            {"name": "late", "input_schema": {}, "defer_loading": true},
        ]}),
        &["(early)", "late", "inline"],
        &["messages[1].content[3].tool Ignored"],
    );
}

#[test]
fn g1_server_tools() {
    check(
        &json!({"tools": [
            {"type": "web_search_20250305", "name": "web_search", "max_uses": 8,
             "allowed_domains": ["a.example"], "user_location": {"type": "approximate"}},
            {"type": "web_fetch_20260318", "name": "web_fetch", "citations": {"enabled": true}},
            {"type": "code_execution_20250825", "name": "code_execution"},
        ], "tool_choice": {"type": "tool", "name": "web_search"}}),
        &["search web_search", "read web_fetch", "run code_execution"],
        &[
            "tools[0].allowed_domains Ignored",
            "tools[0].max_uses Ignored",
            "tools[0].user_location Ignored",
        ],
    );
    let fields = body(&json!({"tools": [{"type": "web_search_20260318", "name": "web_search"}]}));
    assert!(decode(&fields).echo.web_search);
}

#[test]
fn a9_a_tool_that_nobody_knows_does_not_spoil_the_others() {
    check(
        &json!({"tools": [
            {"type": "mcp_toolset", "mcp_server_name": "s", "configs": {}},
            {"type": "time_machine_20300101", "name": 7, "description": ["x"]},
            {"name": "a", "input_schema": {}},
        ]}),
        &["a"],
        &["tools[0] ToolDropped", "tools[1] ToolDropped"],
    );
}

#[test]
fn vendor_tools_take_the_input_that_clients_expect() {
    let tool = |kind: &str, name: &str| json!({"type": kind, "name": name});
    let (name, _, schema) = function(&tool("bash_20250124", "bash"));
    assert_eq!((&*name, members(&schema)), ("bash", vec!["command", "restart"]));

    let old = ["command", "path", "file_text", "old_str", "new_str", "insert_line", "view_range"];
    let (_, _, schema) = function(&tool("text_editor_20250124", "str_replace_editor"));
    assert_eq!(members(&schema), old);
    assert!(choices(&schema, "command").contains(&"undo_edit"));
    let (name, about, schema) = function(
        &json!({"type": "text_editor_20250728", "max_characters": 9000, "name": "str_replace_based_edit_tool"}),
    );
    assert_eq!(name, "str_replace_based_edit_tool");
    assert_eq!(choices(&schema, "command"), ["view", "create", "str_replace", "insert"]);
    assert!(members(&schema).contains(&"insert_text"), "{schema}");
    assert!(about.contains("9000"), "{about}");
    assert_eq!(schema["required"], json!(["command", "path"]));

    let (_, _, schema) = function(&tool("memory_20250818", "memory"));
    let commands = ["view", "create", "str_replace", "insert", "delete", "rename"];
    assert_eq!(choices(&schema, "command"), commands);
    assert!(members(&schema).contains(&"old_path"));
}

#[test]
fn the_computer_grows_with_its_version() {
    let computer = |kind: &str, zoom: bool| {
        let tool = json!({
            "type": kind, "name": "computer", "display_width_px": 1024, "display_height_px": 768,
            "display_number": 1, "enable_zoom": zoom,
        });
        let (_, about, schema) = function(&tool);
        assert!(about.contains("1024 x 768"), "{about}");
        (choices(&schema, "action").len(), members(&schema).len())
    };
    assert_eq!(computer("computer_20241022", false), (10, 3));
    assert_eq!(computer("computer_20250124", true), (16, 7));
    assert_eq!(computer("computer_20251124", false), (16, 7));
    assert_eq!(computer("computer_20251124", true), (17, 8));
    assert_eq!(computer("computer_20990101", true), (17, 8));
}

#[test]
fn toolsets_are_unfolded() {
    let toolset = |kind: &str, configs: Value| {
        let body = body(&json!({"tools": [{"type": kind, "configs": configs}]}));
        let tools = decode(&body).request.tools;
        let names = tools.iter().map(|tool| match tool {
            Tool::Function(function) => {
                assert!(function.parameters.is_some(), "{}", function.name);
                function.name.to_string()
            }
            other @ (Tool::Freeform { .. } | Tool::Server(_)) => panic!("{other:?}"),
        });
        names.collect::<Vec<_>>()
    };
    let computer = toolset("computer_toolset_20260801", json!({"zoom": {"enabled": false}}));
    assert_eq!(computer.len(), 16);
    assert_eq!(computer[0], "computer.key");
    let browser =
        toolset("browser_toolset_20260801", json!({"javascript_exec": {"enabled": true}}));
    assert_eq!(browser.len(), 28);
    assert!(browser.contains(&"browser.javascript_exec".to_owned()));
    assert!(!browser.contains(&"browser.file_upload".to_owned()));
}

#[test]
fn r24_choices() {
    let choice = |given: Value| {
        let body = body(&json!({"tool_choice": given}));
        let request = decode(&body).request;
        let choice = match request.tool_choice {
            ToolChoice::One(name) => ToolChoice::One(name.into_owned()),
            ToolChoice::Unset => ToolChoice::Unset,
            ToolChoice::Auto => ToolChoice::Auto,
            ToolChoice::Any => ToolChoice::Any,
            ToolChoice::None => ToolChoice::None,
            ToolChoice::Allowed { .. } => panic!("not in this dialect"),
        };
        (choice, request.parallel_calls)
    };
    assert_eq!(choice(Value::Null), (ToolChoice::Unset, None));
    assert_eq!(choice(json!({"type": "auto"})), (ToolChoice::Auto, None));
    let alone = json!({"type": "any", "disable_parallel_tool_use": true});
    assert_eq!(choice(alone), (ToolChoice::Any, Some(false)));
    assert_eq!(choice(json!({"type": "none"})), (ToolChoice::None, None));
    let one = json!({"type": "tool", "name": "f", "disable_parallel_tool_use": false});
    assert_eq!(choice(one), (ToolChoice::One(ToolName::plain("f")), Some(true)));
}

#[test]
fn broken_tools_are_refused_with_the_place() {
    use super::requests::refused;
    refused(&json!({"tools": [{"input_schema": {}}]}), "tools[0].name");
    refused(&json!({"tools": [{"name": "a"}, {"name": 5}]}), "tools[1].name");
    refused(&json!({"tools": {"name": "a"}}), "tools");
    refused(&json!({"tools": ["a"]}), "tools[0]");
    refused(&json!({"tool_choice": {"type": "tool"}}), "tool_choice.name");
    refused(&json!({"tool_choice": {"type": "maybe"}}), "tool_choice.type");
    refused(&json!({"tool_choice": "auto"}), "tool_choice");
}
