//! The report of `toolgate check-tools`.

use toolgate_core::canon::ToolName;
use toolgate_core::schema::Emit;
use toolgate_core::schema::report::{
    Dialect, Kind, Options, Report, Severity, Verdict, check, json_for_terminal, render,
};

use crate::{validator, value};

fn checked(text: &str) -> Report {
    check("tools.json", text, &Options::default())
}

/// Place, form, kind and name of each tool.
#[track_caller]
fn shapes(text: &str, want: &[(&str, Dialect, Kind, &str)]) {
    let report = checked(text);
    assert_eq!(report.problems.len(), 0, "{:?}", report.problems);
    let got: Vec<_> = report
        .tools
        .iter()
        .map(|tool| (tool.at.as_str(), tool.dialect, tool.kind, tool.name.as_str()))
        .collect();
    assert_eq!(got, want, "{text}");
}

#[test]
fn tools_are_found_by_their_shape() {
    use Dialect::{Anthropic, Chat, Gemini, Mcp, Responses, Unknown};
    use Kind::{BuiltIn, Freeform, Function};
    let schema = r#"{"type":"object","properties":{"a":{"type":"string"}}}"#;
    let with = |text: &str| text.replace('@', schema);
    shapes(&with(r#"[{"name":"f","input_schema":@}]"#), &[("[0]", Anthropic, Function, "f")]);
    shapes(
        &with(
            r#"{"model":"m","messages":[],"tools":[{"type":"custom","name":"f","input_schema":@},{"type":"web_search_20250305","name":"web_search"}]}"#,
        ),
        &[("tools[0]", Anthropic, Function, "f"), ("tools[1]", Unknown, BuiltIn, "web_search")],
    );
    shapes(
        &with(
            r#"{"input":"x","tools":[{"type":"function","name":"f","parameters":@,"strict":true},
            {"type":"namespace","name":"n","tools":[{"type":"function","name":"g","parameters":@},{"type":"custom","name":"c","format":{"type":"grammar","syntax":"lark","definition":"start: x"}}]},
            {"type":"custom","name":"patch"},{"type":"web_search"}]}"#,
        ),
        &[
            ("tools[0]", Responses, Function, "f"),
            ("tools[1].tools[0]", Responses, Function, "n.g"),
            ("tools[1].tools[1]", Responses, Freeform, "n.c"),
            ("tools[2]", Responses, Freeform, "patch"),
            ("tools[3]", Unknown, BuiltIn, ""),
        ],
    );
    shapes(
        &with(
            r#"{"input":[{"type":"message"},{"type":"additional_tools","tools":[{"type":"function","name":"f","parameters":@}]}]}"#,
        ),
        &[("input[1].tools[0]", Responses, Function, "f")],
    );
    shapes(
        &with(
            r#"{"messages":[],"tools":[{"type":"function","function":{"name":"f","parameters":@}},{"type":"custom","custom":{"name":"c"}}]}"#,
        ),
        &[("tools[0]", Chat, Function, "f"), ("tools[1]", Chat, Freeform, "c")],
    );
    shapes(
        &with(r#"{"messages":[],"functions":[{"name":"f","parameters":@}]}"#),
        &[("functions[0]", Chat, Function, "f")],
    );
    shapes(
        &with(
            r#"{"contents":[],"tools":[{"functionDeclarations":[{"name":"f","parameters":@},{"name":"g","parametersJsonSchema":@}]},{"googleSearch":{}}]}"#,
        ),
        &[
            ("tools[0].functionDeclarations[0]", Gemini, Function, "f"),
            ("tools[0].functionDeclarations[1]", Gemini, Function, "g"),
            ("tools[1]", Gemini, BuiltIn, "googleSearch"),
        ],
    );
    shapes(
        &with(r#"{"function_declarations":[{"name":"f","parameters":@}]}"#),
        &[("function_declarations[0]", Gemini, Function, "f")],
    );
    shapes(
        &with(r#"{"tools":[{"name":"f","inputSchema":@}]}"#),
        &[("tools[0]", Mcp, Function, "f")],
    );
    shapes(
        &with(r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"f","inputSchema":@}]}}"#),
        &[("result.tools[0]", Mcp, Function, "f")],
    );
    shapes(&with(r#"{"name":"f","inputSchema":@}"#), &[("", Mcp, Function, "f")]);
    shapes(
        &with(r#"{"type":"function","function":{"name":"f","parameters":@}}"#),
        &[("", Chat, Function, "f")],
    );
    shapes(r#"[{"name":"f"}]"#, &[("[0]", Unknown, Function, "f")]);
}

#[test]
fn every_diagnostic_knows_its_line_and_column() {
    let text = "{\"tools\": [\n  {\"name\": \"f\", \"description\": \"d\",\n   \"input_schema\": {\"type\": \"object\", \"properties\": {\n     \"ü\": {\"type\": \"string\", \"pattern\": \"^a\"},\n     \"l\": {\"type\": \"array\", \"items\": {\"not\": {}}}}}}]}";
    let report = checked(text);
    let got: Vec<_> = report.tools[0]
        .diagnostics
        .iter()
        .map(|it| (it.at.as_str(), it.position.line, it.position.column))
        .collect();
    assert_eq!(
        got,
        [
            ("tools[0].input_schema.properties.ü.pattern", 4, 30),
            ("tools[0].input_schema.properties.l.items.not", 5, 39),
        ]
    );
    assert_eq!((report.tools[0].position.line, report.tools[0].position.column), (2, 3));
}

#[test]
fn it_reads_like_a_compiler() {
    let text = r#"[
  {
    "name": "find",
    "description": "Finds things.",
    "input_schema": {
      "type": "object",
      "properties": {
        "kind": { "const": "file" },
        "size": { "type": "integer", "multipleOf": 5, "x-unit": "kB" }
      },
      "required": ["kind", "name"]
    }
  },
  { "name": "list", "description": "Lists things.", "input_schema": { "type": "object" } },
  { "description": "Who knows.", "input_schema": {} }
]"#;
    let want = r#"find ([0]) is changed
note: `const` is sent as an `enum` with one value
 --> tools.json:8:19
  |
8 |         "kind": { "const": "file" },
  |                   ^^^^^^^
  = at: [0].input_schema.properties.kind.const
  = help: write `"enum": [value]`
note: Gemini does not act on `multipleOf`; the description says it
 --> tools.json:9:38
  |
9 |         "size": { "type": "integer", "multipleOf": 5, "x-unit": "kB" }
  |                                      ^^^^^^^^^^^^
  = at: [0].input_schema.properties.size.multipleOf
  = help: to choose the words yourself, say it in `description`
warning: the extension `x-unit` means nothing to Gemini; it was left out
 --> tools.json:9:55
  |
9 |         "size": { "type": "integer", "multipleOf": 5, "x-unit": "kB" }
  |                                                       ^^^^^^^^
  = at: [0].input_schema.properties.size.x-unit
  = help: take it out, or say it in `description`
warning: `name` is no property here; Gemini refuses such names
  --> tools.json:11:7
   |
11 |       "required": ["kind", "name"]
   |       ^^^^^^^^^^
   = at: [0].input_schema.required
   = help: add the property, or take the name out of `required`
  = Gemini will see:
      {
        "name": "find",
        "description": "Finds things.",
        "parametersJsonSchema": {
          "type": "object",
          "properties": {
            "kind": {"type":"string","enum":["file"]},
            "size": {"type":"integer","description":"A multiple of 5."}
          },
          "required": ["kind"]
        }
      }

list ([1]) goes through as written

(no name) ([2]) cannot be sent
error: a tool needs a name, a string that is not empty
  --> tools.json:15:3
   |
15 |   { "description": "Who knows.", "input_schema": {} }
   |   ^
   = at: [2]
   = help: add `name`

tools.json: 3 tools, 1 as written, 1 changed, 1 refused
"#;
    let report = checked(text);
    assert_eq!(render(&report), want);
    assert!(report.is_refused());
}

#[test]
fn what_gemini_will_see_is_what_is_sent() {
    let text = r#"[{"name":"f","description":"d","input_schema":{"oneOf":[{"properties":{"a":{"const":1}},"required":["a"]},{"properties":{"b":{}}}]}}]"#;
    for (emit, member) in
        [(Emit::JsonSchema, "parametersJsonSchema"), (Emit::ParametersVertex, "parameters")]
    {
        let report = check("f", text, &Options { emit, ..Options::default() });
        let declaration = value(report.tools[0].declaration.as_ref().unwrap().get());
        let schema = &declaration[member];
        if member == "parameters" {
            validator::parameters(schema).unwrap()
        } else {
            validator::json_schema(schema).unwrap()
        }
        assert!(
            declaration["description"].as_str().unwrap().starts_with("d\n\nGive one of these sets")
        );
    }
}

#[test]
fn names_are_told_where_they_change() {
    let rename = |name: &ToolName<'_>| name.to_string().replace(['.', ' '], "_");
    let options = Options { rename: Some(&rename), ..Options::default() };
    let report = check(
        "f",
        r#"[{"name":"a b","description":"d"},{"name":"ok","description":"d"},{"name":"ok","description":"d"}]"#,
        &options,
    );
    let first = &report.tools[0];
    assert_eq!(first.upstream_name.as_deref(), Some("a_b"));
    assert_eq!(first.verdict, Verdict::Ok);
    assert_eq!(first.diagnostics[0].severity, Severity::Note);
    // B5: the last registration counts, as in the gateway.
    assert_eq!((report.tools[1].verdict, report.tools[1].diagnostics.len()), (Verdict::Changed, 1));
    assert_eq!(report.tools[1].declaration, None);
    assert_eq!((report.tools[2].verdict, report.tools[2].diagnostics.len()), (Verdict::Ok, 0));
    assert!(report.tools[2].declaration.is_some());
}

#[test]
fn files_that_hold_no_tools_say_so() {
    for (text, message, line, column) in [
        ("", "not JSON: EOF while parsing a value", 1, 1),
        ("{\"tools\": [\n  1,}", "not JSON: expected value", 2, 5),
        ("{\"a\": 1}", "no tools in this file", 1, 1),
        ("{\"tools\": []}", "no tools in this file", 1, 1),
        ("7", "no tools in this file", 1, 1),
    ] {
        let report = checked(text);
        let problem = &report.problems[0];
        assert_eq!(problem.message, message, "{text}");
        assert_eq!((problem.position.line, problem.position.column), (line, column), "{text}");
        assert!(report.is_refused());
        assert!(render(&report).starts_with("error: "));
    }
    assert!(!checked("\u{feff}[{\"name\":\"f\"}]").is_refused());
    assert!(
        checked("[{\"type\":\"teleport\",\"name\":\"t\"},5]")
            .tools
            .iter()
            .all(|it| it.verdict == Verdict::Refused)
    );
}

#[test]
fn json_for_programs() {
    let report = checked(
        r#"[{"name":"f","description":"d","input_schema":{"properties":{"a":{"const":1}}}}]"#,
    );
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["tools"][0]["verdict"], "changed");
    assert_eq!(
        json["tools"][0]["diagnostics"][0]["position"],
        serde_json::json!({"line":1,"column":67})
    );
    assert_eq!(
        json["tools"][0]["declaration"]["parametersJsonSchema"]["properties"]["a"]["enum"][0],
        1
    );
}

#[test]
fn minified_files_are_shown_in_part() {
    let properties: Vec<String> =
        (0..200).map(|at| format!(r#""p{at}":{{"const":{at}}}"#)).collect();
    let text = format!(
        r#"[{{"name":"f","description":"d","input_schema":{{"properties":{{{}}}}}}}]"#,
        properties.join(",")
    );
    let report = checked(&text);
    let diagnostic = &report.tools[0].diagnostics[50];
    assert!(diagnostic.snippet.text.chars().count() <= 102);
    let marked: String = diagnostic
        .snippet
        .text
        .chars()
        .skip(diagnostic.snippet.before)
        .take(diagnostic.snippet.length)
        .collect();
    assert_eq!(marked, "\"const\"");
}

#[test]
fn a_schema_that_is_too_large_is_refused_by_name() {
    let branches = vec!["{}"; 60_000].join(",");
    let text = format!(
        r#"[{{"name":"big","input_schema":{{"anyOf":[{branches}]}}}},{{"name":"small","description":"d","input_schema":{{}}}}]"#
    );
    let report = checked(&text);
    assert_eq!(report.tools[0].verdict, Verdict::Refused);
    let why = &report.tools[0].diagnostics[0].message;
    assert!(why.contains("more than 50000 values"), "{why}");
    assert_eq!(report.tools[1].verdict, Verdict::Ok);
    assert!(report.is_refused());
}

#[test]
fn changes_beyond_those_that_are_listed_are_counted() {
    let properties: Vec<String> =
        (0..1_334).map(|at| format!(r#""p{at}":{{"pattern":"x"}}"#)).collect();
    let tool = |name: usize| {
        let properties = properties.join(",");
        format!(r#"{{"name":"t{name}","input_schema":{{"properties":{{{properties}}}}}}}"#)
    };
    let report = checked(&format!("[{}]", tool(0)));
    // One is about the description that misses.
    assert_eq!((report.tools[0].diagnostics.len(), report.tools[0].unlisted), (101, 1_234));
    assert!(render(&report).contains("  = and 1234 more\n"));
    let tools: Vec<String> = (0..30).map(tool).collect();
    let report = checked(&format!("[{}]", tools.join(",")));
    let listed: usize = report.tools.iter().map(|tool| tool.diagnostics.len()).sum();
    assert_eq!((listed, report.unlisted), (2_010, 30 * 1_335 - 2_010));
    assert!(report.tools.iter().all(|tool| !tool.diagnostics.is_empty()));
}

#[test]
fn a_file_of_too_many_values_is_read_in_part_and_says_so() {
    let report = checked(&format!("[{}]", vec!["{}"; 600_000].join(",")));
    assert!(report.problems[0].message.contains("more than 500000 values"));
    assert!(report.is_refused() && report.tools.len() <= 500_000);
}

#[test]
fn nothing_in_a_file_can_move_the_cursor_or_turn_text_around() {
    let evil = r"\u001b[2J\u202e\u009b\u0007";
    let text = format!(
        r#"[{{"name":"n{evil}","description":"d{evil}","input_schema":{{"properties":{{"p{evil}":{{"{evil}":1,"const":"c{evil}","title":"t{evil}"}}}}}}}},{{"type":"{evil}","name":"x"}}]"#
    );
    let raw = text.replace(r"\u202e", "\u{202e}").replace(r"\u009b", "\u{9b}");
    for text in [text, raw] {
        let report = check("file\u{1b}[31m.json", &text, &Options::default());
        let shown = render(&report);
        let bad = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!shown.contains(bad), "{}", shown.escape_debug());
        assert!(shown.contains(r"n\u{1b}[2J\u{202e}\u{9b}\u{7}"), "{shown}");
        let json = json_for_terminal(&serde_json::to_string_pretty(&report).unwrap()).into_owned();
        assert!(!json.contains(bad), "{}", json.escape_debug());
        assert_eq!(value(&json)[0], serde_json::Value::Null);
        assert_eq!(value(&json)["tools"][0]["name"], "n\u{1b}[2J\u{202e}\u{9b}\u{7}");
    }
}
