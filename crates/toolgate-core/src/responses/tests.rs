//! What becomes of requests: one line a part, a tool or a loss.

use super::*;
use crate::canon::{
    CallInput, Effort, MediaSource, OutputFormat, Part, ResultPart, Role, ThinkingMode, Tool,
    ToolChoice,
};
use crate::dialect::{DecodeOptions, Decoded};
use crate::seal::{Sealed, Sealer};

#[track_caller]
fn decode(body: &str) -> Decoded<'_, Echo> {
    let sealer = Sealer::default();
    decode_request(body, &DecodeOptions { sealer: &sealer })
        .unwrap_or_else(|bad| panic!("{bad}\n{body}"))
}

fn with_input(items: &str) -> String {
    format!(r#"{{"model":"m","input":[{items}]}}"#)
}

/// Checks the conversation that `items` form, and its losses.
#[track_caller]
fn check(items: &str, want: &[&str]) {
    let body = with_input(items);
    let decoded = decode(&body);
    let mut lines = Vec::new();
    lines.extend(decoded.request.system.iter().map(|text| format!("system {}", text.literal())));
    for turn in &decoded.request.turns {
        let role = match turn.role {
            Role::User => "user",
            Role::Model => "model",
            Role::Instruction => "instruction",
        };
        let parts: Vec<_> = turn.parts.iter().map(show).collect();
        lines.push(format!("{role} {}", parts.join(" ")));
    }
    lines.extend(decoded.losses.iter().map(|loss| format!("{:?} {}", loss.code, loss.at)));
    assert_eq!(lines, want, "{items}");
}

#[track_caller]
fn check_bad(items: &str, want: &str) {
    let sealer = Sealer::default();
    let body = with_input(items);
    let bad = decode_request(&body, &DecodeOptions { sealer: &sealer }).unwrap_err();
    assert_eq!(bad.to_string(), want, "{items}");
}

fn show(part: &Part<'_>) -> String {
    match part {
        Part::Text { text, .. } => text.literal().to_owned(),
        Part::Thought { text, .. } => format!("({})", text.decode()),
        Part::Media(media) => show_media(media),
        Part::Call(call) => {
            let input = match &call.input {
                CallInput::Json(raw) => raw.get().to_owned(),
                CallInput::Text(text) => format!("~{}", text.literal()),
            };
            format!("{}={}{input}", call.id, call.tool)
        }
        Part::Result(result) => {
            let id = result.call_id.as_deref().unwrap_or("?");
            let name = result.tool.as_ref().map_or(String::new(), |name| format!(" {name}"));
            let error = if result.is_error { "!" } else { "" };
            let content: Vec<_> = result
                .content
                .iter()
                .map(|piece| match piece {
                    ResultPart::Text(text) => text.literal().to_owned(),
                    ResultPart::Json(raw) => raw.get().to_owned(),
                    ResultPart::Media(media) => show_media(media),
                })
                .collect();
            format!("{error}[{id}{name}: {}]", content.join(" "))
        }
        Part::Sealed(envelope) => match &envelope.on {
            Sealed::Call { token, .. } => format!("<call {token}>"),
            Sealed::Text { len, .. } => format!("<text {len}>"),
            Sealed::Thought { len, .. } => format!("<thought {len}>"),
            Sealed::Part(raw) => format!("<part {}>", raw.get()),
        },
        Part::Gemini(raw) => raw.get().to_owned(),
    }
}

fn show_media(media: &crate::canon::Media<'_>) -> String {
    let mime = media.mime.as_deref().unwrap_or("?");
    match &media.source {
        MediaSource::Inline(data) => format!("<{mime} {}>", data.decode()),
        MediaSource::Uri(uri) => format!("<{mime} @{}>", uri.decode()),
    }
}

#[test]
fn messages() {
    check(
        r#"{"role":"developer","content":"a"},{"type":"message","role":"system","content":[{"type":"input_text","text":"b"}]},{"role":"user","content":"c"},{"role":"assistant","content":[{"type":"output_text","text":"d","annotations":[],"logprobs":[]}],"id":"msg_1","status":"completed","phase":"commentary"},{"role":"developer","content":"e"}"#,
        &[r#"system "a""#, r#"system "b""#, r#"user "c""#, r#"model "d""#, r#"instruction "e""#],
    );
    check(
        r#"{"role":"user","content":"a"},{"role":"user","content":[]},{"role":"user","content":"b"}"#,
        &[r#"user "a" "b""#],
    );
    check_bad(
        r#"{"role":"tool","content":"a"}"#,
        r#"input[0].role: expected "user", "assistant", "system" or "developer""#,
    );
    check_bad(r#"{"content":"a"}"#, "input[0].type: missing");
    let odd = decode(r#"{"model":"m","input":"a\ud800"}"#);
    assert_eq!(odd.request.turns.len(), 1);
    check_bad(
        r#"{"role":"user","content":[{"type":"input_text","text":1}]}"#,
        "input[0].content[0].text: expected a string",
    );
}

#[test]
fn r90_r91_r92_results_follow_calls() {
    check(
        r#"{"role":"user","content":"go"},{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"content":null},{"role":"assistant","content":"ok"},{"type":"function_call","call_id":"c1","name":"f","arguments":"{\"a\": 1.0}","status":"completed","parsed_arguments":{}},{"type":"function_call","call_id":"c2","name":"g","namespace":"ns","arguments":""},{"type":"function_call_output","call_id":"c2","output":"{\"x\":1}"},{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"see"},{"type":"input_image","image_url":"data:image/png;base64,iVBO"}]},{"role":"user","content":"and?"}"#,
        &[
            r#"user "go""#,
            r#"model (hm) "ok" c1=f{"a": 1.0} c2=ns.g{}"#,
            r#"user [c2: "{\"x\":1}"] [c1: "see" <image/png iVBO>] "and?""#,
        ],
    );
}

#[test]
fn c5_e3_ids_that_do_not_match_are_passed_on() {
    check(
        r#"{"type":"function_call_output","call_id":"toolu_01-ab","output":"x"},{"type":"function_call","call_id":"call_a","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"call_a__sig","output":"y"},{"type":"function_call_output","name":"f","namespace":"n","output":"z"}"#,
        &[
            r#"user [toolu_01-ab: "x"]"#,
            "model call_a=f{}",
            r#"user [call_a__sig: "y"] [? n.f: "z"]"#,
        ],
    );
}

#[test]
fn r47_outputs_of_any_form() {
    let check = |output: &str, want: &str| {
        let items = format!(r#"{{"type":"function_call_output","call_id":"c","output":{output}}}"#);
        check(&items, &[&format!("user [c: {want}]")]);
    };
    check(r#""22 °C""#, r#""22 °C""#);
    check(r#"{"b":1,"a":[1.0]}"#, r#"{"b":1,"a":[1.0]}"#);
    check("[1,2]", "[1,2]");
    check(r#"[{"type":"dog"}]"#, r#"[{"type":"dog"}]"#);
    check(r#"[{"type":"input_text","text":"a"},5]"#, r#"[{"type":"input_text","text":"a"},5]"#);
    check("[]", "[]");
    check("true", "true");
    check("null", "");
}

#[test]
fn r45_arguments_that_are_not_json() {
    let check = |arguments: &str, want: &[&str]| {
        check(
            &format!(
                r#"{{"type":"function_call","call_id":"c","name":"f","arguments":{arguments}}}"#
            ),
            want,
        );
    };
    check(r#""{not json""#, &[r#"model c=f{"_raw":"{not json"}"#, "Changed input[0].arguments"]);
    check(r#"" ""#, &["model c=f{}"]);
    check(r#""null""#, &["model c=f{}"]);
    check(r#""[1]""#, &["model c=f[1]"]);
    check(r#"{"a":1}"#, &[r#"model c=f{"a":1}"#]);
    check(r#""{\"a\":\"\\ud800\"}""#, &[r#"model c=f{"a":"\ud800"}"#]);
    let odd = r#"{"type":"function_call","call_id":"c","name":"f","arguments":5}"#;
    check_bad(odd, "input[0].arguments: expected a string that holds JSON");
    check_bad(r#"{"type":"function_call","name":"f"}"#, "input[0].call_id: missing");
    check_bad(r#"{"type":"function_call","call_id":"c"}"#, "input[0].name: missing");
    check_bad(r#"{"type":"function_call_output","output":"x"}"#, "input[0].call_id: missing");
}

#[test]
fn i2_custom_calls_are_text() {
    check(
        r#"{"type":"custom_tool_call","id":"ctc_1","call_id":"c","name":"patch","input":"*** Begin\n"},{"type":"custom_tool_call_output","call_id":"c","output":"done"}"#,
        &[r#"model c=patch~"*** Begin\n""#, r#"user [c: "done"]"#],
    );
}

#[test]
fn hosted_calls_are_calls() {
    check(
        r#"{"type":"local_shell_call","id":"lsh_1","call_id":"c1","status":"completed","action":{"type":"exec","command":["ls"],"env":{}}},{"type":"local_shell_call_output","id":"lsh_1","output":"a"}"#,
        &[r#"model c1=local_shell{"command":["ls"]}"#, r#"user [c1: "a"]"#],
    );
    check(
        r#"{"type":"shell_call","id":"sh_1","call_id":"c1","action":{"commands":["ls"],"timeout_ms":null},"environment":{"type":"local"}},{"type":"shell_call_output","call_id":"c1","max_output_length":9,"output":[{"stdout":"a","stderr":"","outcome":{"type":"exit","exit_code":0}}]}"#,
        &[
            r#"model c1=shell{"commands":["ls"]}"#,
            r#"user [c1: [{"stdout":"a","stderr":"","outcome":{"type":"exit","exit_code":0}}]]"#,
        ],
    );
    check(
        r#"{"type":"apply_patch_call","call_id":"c1","status":"completed","operation":{"type":"delete_file","path":"p"}},{"type":"apply_patch_call_output","call_id":"c1","status":"failed","output":"no"},{"type":"apply_patch_call_output","call_id":"c2","status":"completed"}"#,
        &[
            r#"model c1=apply_patch{"type":"delete_file","path":"p"}"#,
            r#"user ![c1: "no"] [c2: "completed"]"#,
        ],
    );
    check(
        r#"{"type":"computer_call","id":"cu_1","call_id":"c1","action":{"type":"wait"},"pending_safety_checks":[]},{"type":"computer_call_output","call_id":"c1","output":{"type":"computer_screenshot","image_url":"data:image/png;base64,iVBO"}}"#,
        &[r#"model c1=computer{"actions":[{"type":"wait"}]}"#, "user [c1: <image/png iVBO>]"],
    );
}

#[test]
fn what_only_openai_ran_is_kept_as_text() {
    check(
        r#"{"type":"mcp_call","id":"mcp_1","server_label":"s","name":"n","arguments":"{}","output":"o"}"#,
        &[
            r#"user "mcp_call: {\"type\":\"mcp_call\",\"id\":\"mcp_1\",\"server_label\":\"s\",\"name\":\"n\",\"arguments\":\"{}\",\"output\":\"o\"}""#,
            "Changed input[0]",
        ],
    );
    check(
        r#"{"type":"from_the_future","id":"x"}"#,
        &[
            r#"user "from_the_future: {\"type\":\"from_the_future\",\"id\":\"x\"}""#,
            "Changed input[0]",
        ],
    );
    // An unknown type may use any name for anything.
    check(
        r#"{"type":"note","text":"a","id":5,"status":{},"reasoning":[],"role":1}"#,
        &[
            r#"user "note: {\"type\":\"note\",\"text\":\"a\",\"id\":5,\"status\":{},\"reasoning\":[],\"role\":1}""#,
            "Changed input[0]",
        ],
    );
    check(
        r#"{"role":"user","content":[{"type":"clip","text":{"v":1},"input_audio":"x"}]}"#,
        &[
            r#"user "{\"type\":\"clip\",\"text\":{\"v\":1},\"input_audio\":\"x\"}""#,
            "Changed input[0].content[0]",
        ],
    );
    for kind in ["file_search_call", "mcp_approval_request", "program", "code_interpreter_call"] {
        let body = with_input(&format!(r#"{{"type":"{kind}","id":"x"}}"#));
        assert_eq!(decode(&body).request.turns.len(), 1, "{kind}");
    }
    check(
        r#"{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q"}}"#,
        &["PartDropped input[0]"],
    );
    check(
        r#"{"type":"mcp_list_tools","id":"l","server_label":"s","tools":[]}"#,
        &["PartDropped input[0]"],
    );
    check(
        r#"{"type":"image_generation_call","id":"ig_1","status":"completed","result":"iVBO"}"#,
        &["model <image/png iVBO>"],
    );
}

#[test]
fn c11_foreign_signatures_are_left_out() {
    check(
        r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAAAABo"}"#,
        &["ForeignSignature input[0].encrypted_content"],
    );
    check(r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":""}"#, &[]);
    check(
        r#"{"type":"compaction","encrypted_content":"gAAAAABo"}"#,
        &["ForeignSignature input[0].encrypted_content"],
    );
}

#[test]
fn envelopes_are_opened_however_they_are_escaped() {
    for sealed in ["tg1.-.d.bQ.c:tga.sig/+=", r"tg1.-.d.bQ.c:tga.sig\/+=", r"tg1.-.d.bQ.c:tga.sig/"]
    {
        check(
            &format!(r#"{{"type":"reasoning","summary":[],"encrypted_content":"{sealed}"}}"#),
            &["model <call tga>"],
        );
    }
    // What Gemini's own tools did came sealed before the item that shows it.
    check(
        r#"{"type":"reasoning","summary":[],"encrypted_content":"tg1.-.d.bQ.p.e30"},{"type":"code_interpreter_call","id":"ci_1","code":"1","container_id":"gemini","outputs":[]},{"type":"reasoning","summary":[],"encrypted_content":"tg1.-.d.bQ.p.e30"},{"type":"web_search_call","id":"ws_1","action":{}}"#,
        &["model <part {}> <part {}>"],
    );
}

#[test]
fn references_are_named() {
    let body = with_input(
        r#"{"role":"user","content":"a"},{"type":"item_reference","id":"rs_1"},{"id":"msg_2"}"#,
    );
    let decoded = decode(&body);
    let named: Vec<_> =
        decoded.echo.references.iter().map(|it| (it.index, it.id.as_str())).collect();
    assert_eq!(named, [(1, "rs_1"), (2, "msg_2")]);
    assert!(decoded.losses[0].detail.contains("rs_1"));
}

/// Checks the declared tools, and the losses.
#[track_caller]
fn check_tools(tools: &str, want: &[&str]) {
    let body = format!(r#"{{"model":"m","input":"x","tools":[{tools}]}}"#);
    let decoded = decode(&body);
    let mut lines: Vec<_> = decoded.request.tools.iter().map(show_tool).collect();
    lines.extend(decoded.losses.iter().map(|loss| {
        let tool = loss.tool.as_deref().map_or(String::new(), |tool| format!(" {tool}"));
        format!("{:?} {}{tool}", loss.code, loss.at)
    }));
    assert_eq!(lines, want, "{tools}");
}

fn show_tool(tool: &Tool<'_>) -> String {
    match tool {
        Tool::Function(function) => {
            let parameters = function.parameters.as_ref().map_or("-", |raw| raw.get());
            let deferred = if function.deferred { " deferred" } else { "" };
            format!("{} {} {parameters}{deferred}", function.at, function.name)
        }
        Tool::Freeform { name, grammar, .. } => {
            format!("~{name} {}", grammar.as_ref().map_or("-", |text| text.literal()))
        }
        Tool::Server(server) => format!("{server:?}"),
    }
}

#[test]
fn r15_r102_functions_flat_and_nested() {
    check_tools(
        r#"{"type":"function","name":"a","description":"d","parameters":{"$schema":"x"},"strict":true},{"type":"function","function":{"name":"b","parameters":null,"strict":false}},{"name":"c"}"#,
        &[r#"tools[0] a {"$schema":"x"}"#, "tools[1] b -", "tools[2] c -"],
    );
    // Doubles are sorted out later.
    check_tools(
        r#"{"type":"function","name":"a"},{"type":"function","name":"a"}"#,
        &["tools[0] a -", "tools[1] a -"],
    );
    let sealer = Sealer::default();
    for (tool, at) in [
        (r#"{"type":"function","function":{}}"#, "tools[0].name"),
        (r#"{"type":"function","name":5}"#, "tools[0].name"),
        (r#"{"type":"function","name":"a","description":5}"#, "tools[0].description"),
        (r#"{"type":"function","name":"a","defer_loading":5}"#, "tools[0].defer_loading"),
        (r#"{"type":"custom","name":"a","format":{"definition":5}}"#, "tools[0].format.definition"),
    ] {
        let body = format!(r#"{{"model":"m","input":"x","tools":[{tool}]}}"#);
        let bad = decode_request(&body, &DecodeOptions { sealer: &sealer }).unwrap_err();
        assert_eq!(bad.at, at, "{tool}");
    }
}

#[test]
fn r85_r102_the_acceptance_requests_are_understood() {
    let first = r#"{"model":"gemini-3-flash","input":"What is the weather in Tokyo?","tools":[{"type":"function","function":{"name":"get_weather","description":"Get weather","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}],"tool_choice":"auto","conversation":"tool-test","stream":false}"#;
    let Decoded { request, echo, losses } = decode(first);
    assert!(losses.is_empty() && !request.stream);
    assert_eq!(request.tool_choice, ToolChoice::Auto);
    assert_eq!(echo.conversation.as_deref(), Some("tool-test"));
    let Tool::Function(function) = &request.tools[0] else { panic!("{:?}", request.tools) };
    assert_eq!(function.name.name, "get_weather");
    assert_eq!(function.description.as_ref().unwrap().decode(), "Get weather");

    let second = r#"{"model":"gemini-3-flash","input":[{"type":"function_call_output","call_id":"call_1","output":"{\"temp\":72,\"unit\":\"F\"}"}],"conversation":"tool-test","stream":false}"#;
    let Decoded { request, echo, losses } = decode(second);
    assert!(losses.is_empty() && echo.tools.is_none());
    assert_eq!(show(&request.turns[0].parts[0]), r#"[call_1: "{\"temp\":72,\"unit\":\"F\"}"]"#);

    let fourth = r#"{"model":"gemini-3-flash","input":"What is 2+2?","stream":false}"#;
    let Decoded { request, losses, .. } = decode(fourth);
    assert!(losses.is_empty() && request.tools.is_empty());
    assert_eq!(request.tool_choice, ToolChoice::Unset);
}

#[test]
fn i1_namespaces_and_custom_tools() {
    check_tools(
        r#"{"type":"namespace","name":"mcp__repl","description":"","tools":[{"type":"function","name":"run"},{"type":"custom","name":"exec","format":{"type":"grammar","syntax":"lark","definition":"start: /x/"}}]},{"type":"custom","name":"free","format":{"type":"text"}}"#,
        &[
            "tools[0].tools[0] mcp__repl.run -",
            r#"~mcp__repl.exec "syntax: lark\nstart: /x/""#,
            "~free -",
        ],
    );
}

#[test]
fn tools_that_others_run() {
    check_tools(
        r#"{"type":"web_search","external_web_access":true,"search_content_types":["text"]},{"type":"web_search_preview_2025_03_11","user_location":{"type":"approximate"},"search_context_size":"high"},{"type":"code_interpreter","container":{"type":"auto"}}"#,
        &[
            r#"WebSearch { name: "web_search" }"#,
            r#"WebSearch { name: "web_search" }"#,
            r#"CodeExecution { name: "code_interpreter" }"#,
            "Ignored tools[1].user_location",
            "Ignored tools[1].search_context_size",
        ],
    );
    check_tools(
        r#"{"type":"mcp","server_label":"docs","server_url":"https://x"},{"type":"file_search","vector_store_ids":[]},{"type":"computer_use_preview","display_width":1},{"type":"image_generation"},{"type":"from_the_future"},{"type":"shell","environment":{"type":"container_auto"}},{"type":"tool_search"}"#,
        &[
            "ToolDropped tools[0] docs",
            "ToolDropped tools[1] file_search",
            "ToolDropped tools[2] computer_use_preview",
            "ToolDropped tools[3] image_generation",
            "ToolDropped tools[4] from_the_future",
            "ToolDropped tools[5] shell",
            "ToolDropped tools[6] tool_search",
        ],
    );
    check_tools(
        r#"{"type":"painter","name":{},"description":[],"format":"png","defer_loading":"x"}"#,
        &["ToolDropped tools[0] painter"],
    );
    let body = r#"{"model":"m","input":"x","tools":[{"type":"local_shell"},{"type":"shell","environment":{"type":"local"}},{"type":"apply_patch"},{"type":"computer"},{"type":"tool_search","execution":"client"}]}"#;
    let decoded = decode(body);
    let names =
        decoded.request.tools.iter().map(|it| show_tool(it).split(' ').nth(1).map(str::to_owned));
    let names: Vec<_> = names.map(Option::unwrap).collect();
    assert_eq!(names, ["local_shell", "shell", "apply_patch", "computer", "tool_search"]);
    assert_eq!(decoded.echo.calls.len(), 5);
    assert!(decoded.losses.is_empty());
}

#[test]
fn deferred_tools_are_shown_when_they_are_loaded() {
    let deferred = r#"{"type":"function","name":"a","defer_loading":true}"#;
    let search = r#"{"type":"tool_search","execution":"client","parameters":{}}"#;
    check_tools(
        &format!("{deferred},{search}"),
        &["tools[0] a - deferred", "tools[1] tool_search {}"],
    );
    // Without a search it could never be loaded.
    check_tools(deferred, &["tools[0] a -", "Changed tools[0].defer_loading a"]);
    let found = r#"{"type":"tool_search_call","call_id":"c","execution":"client","arguments":{"query":"q"}},{"type":"tool_search_output","call_id":"c","tools":[{"type":"function","name":"a","defer_loading":true},{"type":"namespace","name":"n","tools":[{"type":"function","name":"b","defer_loading":true}]}]},{"type":"additional_tools","role":"developer","tools":[{"type":"custom","name":"z"}]}"#;
    let body = format!(r#"{{"model":"m","tools":[{deferred},{search}],"input":[{found}]}}"#);
    let decoded = decode(&body);
    let tools: Vec<_> = decoded.request.tools.iter().map(show_tool).collect();
    assert_eq!(
        tools,
        ["tools[0] a -", "tools[1] tool_search {}", "input[1].tools[1].tools[0] n.b -", "~z -"]
    );
    let parts: Vec<_> =
        decoded.request.turns.iter().flat_map(|turn| &turn.parts).map(show).collect();
    assert_eq!(
        parts,
        [r#"c=tool_search{"query":"q"}"#, r#"[c: "these tools can be called now: a, n.b"]"#]
    );
}

#[track_caller]
fn check_choice(choice: &str, want: &str) {
    let body = format!(
        r#"{{"model":"m","input":"x","tool_choice":{choice},"tools":[{{"type":"function","name":"f"}},{{"type":"namespace","name":"n","tools":[{{"type":"function","name":"g"}},{{"type":"custom","name":"h"}}]}},{{"type":"web_search"}},{{"type":"shell"}}]}}"#
    );
    let decoded = decode(&body);
    let shown = match &decoded.request.tool_choice {
        ToolChoice::Unset => "unset".to_owned(),
        ToolChoice::Auto => "auto".to_owned(),
        ToolChoice::Any => "any".to_owned(),
        ToolChoice::None => "none".to_owned(),
        ToolChoice::One(name) => format!("one {name}"),
        ToolChoice::Allowed { required, names } => {
            let names: Vec<_> = names.iter().map(ToString::to_string).collect();
            format!("{} {}", if *required { "required" } else { "allowed" }, names.join(" "))
        }
    };
    let lost = if decoded.losses.is_empty() { "" } else { " (lost)" };
    assert_eq!(format!("{shown}{lost}"), want, "{choice}");
}

#[test]
fn r25_r26_tool_choice() {
    check_choice("null", "unset");
    check_choice("\"auto\"", "auto");
    check_choice("\"required\"", "any");
    check_choice("\"none\"", "none");
    check_choice(r#"{"type":"function","name":"f"}"#, "one f");
    check_choice(r#"{"type":"function","function":{"name":"f"}}"#, "one f");
    check_choice(r#"{"type":"function","name":"g"}"#, "one n.g");
    check_choice(r#"{"type":"custom","name":"h","namespace":"n"}"#, "one n.h");
    check_choice(r#"{"type":"function","name":"unknown"}"#, "one unknown");
    check_choice(r#"{"type":"web_search_preview"}"#, "one web_search");
    check_choice(r#"{"type":"shell"}"#, "one shell");
    check_choice(r#"{"type":"apply_patch"}"#, "auto (lost)");
    check_choice(r#"{"type":"mcp","server_label":"s"}"#, "auto (lost)");
    check_choice(
        r#"{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f"},{"type":"web_search"},{"type":"function","name":"f"}]}"#,
        "allowed f web_search",
    );
    check_choice(
        r#"{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"namespace","name":"n"},{"type":"mcp","server_label":"s"}]}}"#,
        "required n.g n.h (lost)",
    );
    check_choice(
        r#"{"type":"allowed_tools","mode":"auto","tools":[{"type":"image_generation"}]}"#,
        "none (lost)",
    );
    let sealer = Sealer::default();
    for (choice, at) in [
        ("\"sometimes\"", "tool_choice"),
        (r#"{"type":"function"}"#, "tool_choice.name"),
        (r#"{"type":"allowed_tools","mode":"x"}"#, "tool_choice.mode"),
        (r#"{"type":"allowed_tools","tools":[{"type":"function"}]}"#, "tool_choice.tools[0].name"),
    ] {
        let body = format!(r#"{{"model":"m","input":"x","tool_choice":{choice}}}"#);
        let bad = decode_request(&body, &DecodeOptions { sealer: &sealer }).unwrap_err();
        assert_eq!(bad.at, at, "{choice}");
    }
}

#[test]
fn settings() {
    let body = r#"{"model":"m","input":"x","stream":true,"instructions":"be","max_output_tokens":9,"temperature":0.5,"top_p":1,"parallel_tool_calls":false,"text":{"format":{"type":"json_schema","name":"n","schema":{"a":1},"strict":true}},"store":false,"include":["reasoning.encrypted_content"],"conversation":"c","previous_response_id":"resp_1","metadata":{},"prompt_cache_key":"k","safety_identifier":"s","service_tier":"auto","user":"u","background":false,"client_metadata":{"a":"b"},"stream_options":{"include_obfuscation":false},"generate":false,"type":"response.create","context_management":[],"prompt_cache_retention":"24h","prompt_cache_options":{"mode":"explicit","ttl":"30m"}}"#;
    let Decoded { request, echo, losses } = decode(body);
    assert!(losses.is_empty(), "{losses:?}");
    assert!(request.stream && echo.stream && echo.prewarm);
    assert_eq!(request.parallel_calls, Some(false));
    assert_eq!(request.settings.max_output_tokens, Some(9));
    assert_eq!((request.settings.temperature, request.settings.top_p), (Some(0.5), Some(1.0)));
    let OutputFormat::JsonSchema { schema, .. } = &request.output else { panic!("no schema") };
    assert_eq!(schema.get(), r#"{"a":1}"#);
    assert_eq!(request.system.len(), 1);
    assert_eq!((echo.store, echo.conversation.as_deref()), (Some(false), Some("c")));
    assert_eq!(echo.previous_response_id.as_deref(), Some("resp_1"));
    assert_eq!(echo.prompt_cache_key.as_deref(), Some("k"));
    assert_eq!(echo.include, ["reasoning.encrypted_content"]);
    assert!(echo.context_management.is_some() && echo.client_metadata.is_some());

    let lossy = r#"{"model":"m","input":"x","truncation":"auto","max_tool_calls":3,"top_logprobs":2,"text":{"verbosity":"low"},"prompt":{"id":"p","version":"1","variables":{"a":"b"}},"moderation":{"model":"m"},"context_management":[{"type":"compaction","compact_threshold":1000}],"new_field":1,"reasoning":{"effort":"odd","new":1}}"#;
    let at: Vec<_> = decode(lossy).losses.into_kept().into_iter().map(|loss| loss.at).collect();
    assert_eq!(
        at,
        [
            "new_field",
            "reasoning.new",
            "context_management",
            "reasoning.effort",
            "max_tool_calls",
            "top_logprobs",
            "truncation",
            "prompt",
            "moderation",
            "text.verbosity"
        ]
    );
    let sealer = Sealer::default();
    for (body, at) in [
        (r#"{"input":"x"}"#, "model"),
        (r#"{"model":"m"}"#, "input"),
        (r#"{"model":"m","input":5}"#, "input"),
        (r#"{"model":"m","input":"x","temperature":"hot"}"#, "temperature"),
        (r#"{"model":"m","input":"x","tools":[5]}"#, "tools[0]"),
        (r#"{"model":"m","input":"x","conversation":5}"#, "conversation"),
        (
            r#"{"model":"m","input":"x","text":{"format":{"type":"json_schema"}}}"#,
            "text.format.schema",
        ),
        (r#"{"model":"m","input":["x"]}"#, "input[0]"),
        (r#"{"model":"m","input":"x","context_management":5}"#, "context_management"),
        (r#"{"model":"m","input":"x","context_management":"zz"}"#, "context_management"),
        (r#"{"model":"m","input":"x","context_management":["x"]}"#, "context_management[0]"),
        (r#"{"model":"m","input":"x","context_management":[{}]}"#, "context_management[0].type"),
        (
            r#"{"model":"m","input":"x","context_management":[{"type":5}]}"#,
            "context_management[0].type",
        ),
        (
            r#"{"model":"m","input":"x","context_management":[{"type":"compaction","compact_threshold":"1"}]}"#,
            "context_management[0].compact_threshold",
        ),
        (r#"{"model":"m","input":"x","prompt":"p"}"#, "prompt"),
        (r#"{"model":"m","input":"x","prompt":{"id":5}}"#, "prompt.id"),
        (r#"{"model":"m","input":"x","stream_options":true}"#, "stream_options"),
        (
            r#"{"model":"m","input":"x","stream_options":{"include_obfuscation":1}}"#,
            "stream_options.include_obfuscation",
        ),
        (r#"{"model":"m","input":"x","prompt_cache_retention":24}"#, "prompt_cache_retention"),
        (r#"{"model":"m","input":"x","prompt_cache_options":"30m"}"#, "prompt_cache_options"),
        (r#"{"model":"m","input":"x","client_metadata":"a"}"#, "client_metadata"),
        (r#"{"model":"m","input":"x","moderation":"low"}"#, "moderation"),
        ("[]", ""),
    ] {
        let bad = decode_request(body, &DecodeOptions { sealer: &sealer }).unwrap_err();
        assert_eq!(bad.at, at, "{body}");
    }
}

#[test]
fn reasoning() {
    let think = |reasoning: &str| {
        let body = format!(r#"{{"model":"m","input":"x","reasoning":{reasoning}}}"#);
        let Decoded { request, echo, .. } = decode(&body);
        assert_eq!(request.thinking.show == Some(true), echo.show_thoughts);
        (request.thinking.mode, request.thinking.effort, request.thinking.show)
    };
    assert_eq!(think("null"), (ThinkingMode::Unset, None, None));
    assert_eq!(think("{}"), (ThinkingMode::Unset, None, None));
    assert_eq!(think(r#"{"summary":"auto"}"#), (ThinkingMode::Unset, None, Some(true)));
    assert_eq!(
        think(r#"{"effort":"xhigh","context":"all_turns"}"#),
        (ThinkingMode::On, Some(Effort::XHigh), Some(true))
    );
    assert_eq!(think(r#"{"effort":"none"}"#), (ThinkingMode::Off, Some(Effort::None), None));
    assert_eq!(
        think(r#"{"effort":"ultra","generate_summary":"concise"}"#),
        (ThinkingMode::On, Some(Effort::Max), Some(true))
    );
}

#[test]
fn a_trigger_asks_for_a_summary() {
    let body = r#"{"model":"m","input":[{"role":"user","content":"a"},{"type":"compaction_trigger"}],"tool_choice":"auto"}"#;
    let Decoded { request, echo, .. } = decode(body);
    assert!(echo.compact);
    assert_eq!(request.tool_choice, ToolChoice::None);
    assert_eq!(request.turns[0].parts.len(), 2);

    let trigger = r#"{"type":"compaction_trigger"}"#;
    let early = with_input(&format!(r#"{trigger},{{"role":"user","content":"a"}}"#));
    let instructed = format!(r#"{{"model":"m","input":"a","instructions":[{trigger}]}}"#);
    for (body, lost) in [(early, vec!["input[0]"]), (instructed, vec![])] {
        let Decoded { request, echo, losses } = decode(&body);
        assert!(!echo.compact, "{body}");
        assert_eq!(request.turns[0].parts.len(), 1, "{body}");
        assert_eq!(losses.iter().map(|loss| &loss.at).collect::<Vec<_>>(), lost, "{body}");
    }
}

#[test]
fn a_configuration_update_counts_from_there() {
    let body = with_input(
        r#"{"role":"user","content":"a"},{"type":"configuration_update","reasoning":{"effort":"high"},"text":{"format":{"type":"json_object"}}}"#,
    );
    let Decoded { request, losses, .. } = decode(&body);
    assert_eq!(request.thinking.effort, Some(Effort::High));
    assert_eq!(request.output, OutputFormat::Json);
    assert!(losses.is_empty());
}

#[test]
fn metadata_has_its_limits() {
    let pairs = |count: usize| {
        let pairs: Vec<_> = (0..count).map(|n| format!(r#""k{n}":"v""#)).collect();
        format!("{{{}}}", pairs.join(","))
    };
    let pair = |name: usize, value: usize| {
        format!(r#"{{"{}":"{}"}}"#, "\u{e9}".repeat(name), "\u{e9}".repeat(value))
    };
    let sealer = Sealer::default();
    for (metadata, at) in [
        ("null".to_owned(), None),
        ("{}".to_owned(), None),
        (pairs(16), None),
        (pair(64, 512), None),
        (pairs(17), Some("metadata".to_owned())),
        (pair(65, 1), Some("metadata".to_owned())),
        (pair(1, 513), Some("metadata.\u{e9}".to_owned())),
        (r#"{"a":5}"#.to_owned(), Some("metadata.a".to_owned())),
        ("[]".to_owned(), Some("metadata".to_owned())),
    ] {
        let body = format!(r#"{{"model":"m","input":"x","metadata":{metadata}}}"#);
        let refused = decode_request(&body, &DecodeOptions { sealer: &sealer }).err();
        assert_eq!(refused.map(|bad| bad.at), at, "{metadata}");
    }
}
