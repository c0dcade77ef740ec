//! docs/tool-calling.md, row by row: its tables are compared with the code and with what is sent.
#![expect(clippy::expect_used, clippy::panic, reason = "helpers of tests may panic as tests may")]

use serde_json::{Value, json};
use toolgate_core::canon::{Backend, Losses, Target, ToolName};
use toolgate_core::dialect::DecodeOptions;
use toolgate_core::json::Raw;
use toolgate_core::schema::{Cache, Checker, Repair};
use toolgate_core::seal::Sealer;
use toolgate_core::translate::{self, Dialect};
use toolgate_core::upstream::generate_content::{EncodeOptions, alias, encode_request};

const PAGE: &str = include_str!("../../../docs/tool-calling.md");
const OLD: &str = "gemini-2.5-flash";
const NEW: &str = "gemini-3.8-flash";

/// Rows of the table under a heading, cells trimmed.
fn rows(heading: &str) -> Vec<Vec<&'static str>> {
    let (_, section) = PAGE.split_once(&format!("## {heading}\n")).expect("the heading");
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with("| ")).skip(1);
    rows.map(|row| row.trim_matches('|').split(" | ").map(str::trim).collect()).collect()
}

/// Sends a request to a model: the body for Gemini, and all losses.
#[track_caller]
fn sent(dialect: Dialect, body: &Value, model: &str) -> (Value, Losses) {
    let (sealer, cache) = (Sealer::with_key([1; 32]), Cache::default());
    let body = body.to_string();
    let options = DecodeOptions { sealer: &sealer };
    let decoded = translate::decode_request(dialect, &body, &options).expect("a good request");
    let target = Target { model: model.to_owned(), backend: Backend::Developer };
    let encoded = encode_request(&decoded.request, &target, &EncodeOptions::new(&cache));
    let encoded = encoded.expect("a good request");
    let mut losses = decoded.losses;
    losses.append(&mut encoded.losses.clone());
    (serde_json::from_slice(&encoded.body).expect("JSON"), losses)
}

fn tools(count: usize) -> Value {
    let tool = |at: usize| {
        json!({"type": "function", "function": {
            "name": format!("f{at}"),
            "parameters": {"type": "object", "properties": {"a": {"type": "string"}}},
        }})
    };
    (0..count).map(tool).collect()
}

#[test]
fn r171_the_documented_tool_choices_are_sent() {
    let rows = rows("Tool choice");
    assert_eq!(rows.len(), 8);
    let names = |count: usize| -> Value {
        (0..count).map(|at| json!({"type": "function", "name": format!("f{at}")})).collect()
    };
    let allowed = |mode: &str| json!({"type": "allowed_tools", "mode": mode, "tools": names(2)});
    let choices = [
        (Value::Null, "none", 0),
        (json!("auto"), "AUTO", 0),
        (json!("required"), "ANY", 0),
        (json!("none"), "NONE", 0),
        (json!({"type": "function", "name": "f0"}), "ANY", 1),
        (allowed("required"), "ANY", 2),
        (allowed("auto"), "VALIDATED", 2),
        (json!({"type": "web_search"}), "NONE", 0),
    ];
    for ((choice, mode, count), row) in choices.into_iter().zip(rows) {
        let mut list = tools(3).as_array().cloned().expect("tools");
        if choice["type"] == "web_search" {
            list.push(json!({"type": "web_search"}));
        }
        let mut body = json!({"model": "m", "input": "x", "tools": list});
        if !choice.is_null() {
            body["tool_choice"] = choice;
        }
        let (body, _) = sent(Dialect::Responses, &body, NEW);
        let config = &body["toolConfig"]["functionCallingConfig"];
        assert_eq!(config["mode"].as_str().unwrap_or("none"), mode, "{row:?}");
        let names = config["allowedFunctionNames"].as_array().map_or(0, Vec::len);
        assert_eq!(names, count, "{row:?}");
        assert!(row[4].trim_matches('`').starts_with(mode) || row[4].starts_with(mode), "{row:?}");
    }
}

#[test]
fn r171_the_documented_aliases_are_given() {
    assert!(PAGE.contains("^[A-Za-z_][A-Za-z0-9_.-]{0,63}$"));
    let plain = |name: &str| alias(&ToolName::plain(name.to_owned()));
    assert_eq!(plain("a.b-c_1"), "a.b-c_1");
    let spaced = ToolName { namespace: Some("space".into()), name: "name".into() };
    assert_eq!(alias(&spaced), "space__name");
    let long = plain(&"abcdefghij".repeat(10));
    assert!(long.len() <= 64 && long.starts_with("abcdefghijabcdefghij"), "{long}");
    assert_ne!(plain("a/b"), plain("a b"));
    assert!(plain("a/b").starts_with("a_b_"), "{}", plain("a/b"));
}

#[test]
fn r171_the_documented_number_of_functions_is_sent() {
    assert!(PAGE.contains("Gemini accepts 512 functions."));
    let choice = json!({"type": "function", "function": {"name": "f519"}});
    let body = json!({
        "model": "m", "messages": [{"role": "user", "content": "x"}], "tools": tools(520),
        "tool_choice": choice,
    });
    let (body, losses) = sent(Dialect::Chat, &body, NEW);
    let declared = body["tools"][0]["functionDeclarations"].as_array().expect("functions");
    assert_eq!(declared.len(), 512);
    assert_eq!(declared.last().map(|it| it["name"].clone()), Some(json!("f519")));
    assert_eq!(losses.iter().filter(|loss| name(loss.code) == "tool_dropped").count(), 8);
}

#[test]
fn r171_the_documented_repairs_are_made() {
    let documented: Vec<&str> = rows("Repairs of arguments").iter().map(|row| row[0]).collect();
    let known: Vec<&str> = Repair::ALL.iter().map(|repair| repair.detail()).collect();
    assert_eq!(documented, known);
    let examples = [
        (r#"{"limit":{"type":"integer","default":10}}"#, r#"["limit"]"#, "{}", r#"{"limit":10}"#),
        (r#"{"limit":{"type":"integer"}}"#, "[]", r#"{"limit":3.0}"#, r#"{"limit":3}"#),
        (r#"{"limit":{"type":"integer"}}"#, "[]", r#""{\"limit\":3}""#, r#"{"limit":3}"#),
        (
            r#"{"unit":{"enum":["celsius"]}}"#,
            "[]",
            r#"{"unit":"Celsius"}"#,
            r#"{"unit":"celsius"}"#,
        ),
        (r#"{"limit":{"type":"integer"}}"#, "[]", r#"{"limit":null}"#, "{}"),
        (r#"{"limit":{"type":"integer"}}"#, "[]", r#"{"limit":"3"}"#, r#"{"limit":3}"#),
    ];
    for ((properties, required, before, after), repair) in examples.into_iter().zip(Repair::ALL) {
        let raw = |json: &str| Raw::parse(json.to_owned()).expect("JSON");
        let schema =
            format!(r#"{{"type":"object","properties":{properties},"required":{required}}}"#);
        let checked = Checker::new(Some(&raw(&schema))).check(raw(before));
        assert_eq!(checked.args.get(), after, "{repair:?}");
        assert_eq!(checked.losses[0].detail, repair.detail());
    }
}

#[test]
fn r171_results_are_wrapped_as_documented() {
    let deep = format!("{}1{}", "[".repeat(30), "]".repeat(30));
    let rows = [
        (json!("one"), json!({"result": "one"})),
        (
            json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
            json!({"result": "a\nb"}),
        ),
        (json!(""), json!({"result": ""})),
        (json!(deep), json!({"result": deep})),
    ];
    for (content, want) in rows {
        let call =
            json!({"id": "c1", "type": "function", "function": {"name": "f0", "arguments": "{}"}});
        let body = json!({"model": "m", "tools": tools(1), "messages": [
            {"role": "user", "content": "x"},
            {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": content},
        ]});
        let (body, _) = sent(Dialect::Chat, &body, NEW);
        let got = &body["contents"][2]["parts"][0]["functionResponse"]["response"];
        assert_eq!(*got, want);
    }
}

fn name(code: toolgate_core::canon::LossCode) -> String {
    let name = serde_json::to_value(code).expect("a name");
    name.as_str().expect("a name").to_owned()
}

/// One conversation for each row of the table of added text.
fn conversations() -> Vec<(Dialect, &'static str, Value)> {
    let call =
        json!({"id": "c1", "type": "function", "function": {"name": "f0", "arguments": "{}"}});
    let called = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let user = |text: &str| json!({"role": "user", "content": text});
    let assistant = |text: &str| json!({"role": "assistant", "content": text});
    let result = json!({"role": "tool", "tool_call_id": "c1", "content": "done"});
    let chat = |messages: &[&Value]| json!({"model": "m", "tools": tools(1), "messages": messages});
    let messages = |messages: &[Value]| {
        json!({
            "model": "m", "max_tokens": 9, "messages": messages,
            "tools": [{"name": "f0", "input_schema": {"type": "object"}}],
        })
    };
    let image = json!({"type": "image", "source": {
        "type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo=",
    }});
    let mut structured = chat(&[&user("x")]);
    structured["response_format"] = json!({"type": "json_object"});
    vec![
        (Dialect::Chat, NEW, chat(&[&user("x"), &called, &user("go on")])),
        (
            Dialect::Chat,
            NEW,
            chat(&[&user("x"), &called, &user("hurry"), &assistant("soon"), &result]),
        ),
        (Dialect::Chat, NEW, chat(&[&user("x"), &result])),
        (
            Dialect::Anthropic,
            OLD,
            messages(&[
                user("x"),
                json!({"role": "assistant", "content": [
                    {"type": "tool_use", "id": "t1", "name": "f0", "input": {}},
                ]}),
                json!({"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": [image]},
                ]}),
            ]),
        ),
        (Dialect::Anthropic, NEW, messages(&[user("x"), assistant("It is")])),
        (Dialect::Chat, NEW, chat(&[&assistant("Hello"), &user("x")])),
        (
            Dialect::Anthropic,
            NEW,
            messages(&[
                user("x"),
                json!({"role": "assistant", "content": [
                    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
                    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
                    {"type": "text", "text": "found"},
                ]}),
                user("and?"),
            ]),
        ),
        (
            Dialect::Responses,
            NEW,
            json!({"model": "m", "input": [user("x"), {"type": "strange_item", "a": 1}]}),
        ),
        (Dialect::Chat, OLD, structured),
    ]
}

/// README and the page promise that each text is added in its case only, and reported.
#[test]
fn added_text_is_documented_and_reported() {
    let rows = rows("Text that toolgate adds to a conversation");
    let conversations = conversations();
    assert_eq!(rows.len(), conversations.len());
    for (row, (dialect, model, body)) in rows.iter().zip(&conversations) {
        let (body, losses) = sent(*dialect, body, model);
        let code = row[3].trim_matches('`');
        assert!(losses.iter().any(|loss| name(loss.code) == code), "{row:?}: {losses:?}");
        let mut text = String::new();
        strings(&body, &mut text);
        for quoted in quotations(row[1]) {
            for piece in quoted.split('…').map(str::trim).filter(|it| !it.is_empty()) {
                assert!(text.contains(piece), "{piece:?} of {row:?} is not in {text}");
            }
        }
    }
    let plain = json!({"model": "m", "tools": tools(1), "messages": [
        {"role": "user", "content": "one"}, {"role": "assistant", "content": "two"},
        {"role": "user", "content": "three"},
    ]});
    let (body, _) = sent(Dialect::Chat, &plain, NEW);
    let parts: Vec<&Value> = body["contents"].as_array().expect("contents").iter().collect();
    let words: Vec<&Value> = parts.iter().map(|it| &it["parts"][0]["text"]).collect();
    assert_eq!(words, ["one", "two", "three"]);
}

/// Texts in `code`, as the strings of its JSON, and in “quotation marks”.
fn quotations(cell: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (open, close) in [('`', '`'), ('“', '”')] {
        let mut rest = cell;
        while let Some((_, after)) = rest.split_once(open) {
            let Some((quoted, after)) = after.split_once(close) else { panic!("{cell}") };
            match serde_json::from_str::<Value>(quoted) {
                Ok(json) => {
                    let mut text = String::new();
                    strings(&json, &mut text);
                    found.push(text.trim().to_owned());
                }
                Err(_) => found.push(quoted.to_owned()),
            }
            rest = after;
        }
    }
    found
}

/// Adds every string of a value, a line each.
fn strings(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => {
            out.push_str(text);
            out.push('\n');
        }
        Value::Array(items) => items.iter().for_each(|item| strings(item, out)),
        Value::Object(members) => members.values().for_each(|member| strings(member, out)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
