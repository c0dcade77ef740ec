//! Requests, in the shapes that real clients send.

use serde_json::{Value, json};
use toolgate_core::anthropic::{Echo, Thread, decode_count_tokens, decode_request};
use toolgate_core::canon::{
    BadRequest, Effort, LossCode, Media, MediaSource, OutputFormat, Part, ResultPart, Role,
    ThinkingMode, Turn,
};
use toolgate_core::dialect::{DecodeOptions, Decoded};

use super::{sealer, show};

/// Decodes a body that must be understood.
#[track_caller]
pub(crate) fn decode(body: &str) -> Decoded<'_, Echo> {
    try_decode(body).unwrap_or_else(|error| panic!("{error}"))
}

fn try_decode(body: &str) -> Result<Decoded<'_, Echo>, BadRequest> {
    let sealer = sealer();
    decode_request(body, &DecodeOptions { sealer: &sealer })
}

/// A body around some fields.
pub(crate) fn body(fields: &Value) -> String {
    let mut body = json!({
        "model": "claude-opus-5-5",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "go"}],
    });
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    body.to_string()
}

/// The losses, as `place code`.
pub(crate) fn losses(decoded: &Decoded<'_, Echo>) -> Vec<String> {
    decoded.losses.iter().map(|loss| format!("{} {:?}", loss.at, loss.code)).collect()
}

/// Checks the parts of one message, and its losses.
#[track_caller]
fn check(role: &str, content: &Value, parts: &[&str], lost: &[&str]) {
    let body = body(&json!({"messages": [
        {"role": "user", "content": "go"},
        {"role": role, "content": content},
    ]}));
    let decoded = decode(&body);
    assert_eq!(decoded.request.turns[1].parts.iter().map(tell).collect::<Vec<_>>(), parts);
    assert_eq!(losses(&decoded), lost);
}

fn tell(part: &Part<'_>) -> String {
    match part {
        Part::Media(media) => tell_media(media),
        Part::Result(result) => {
            let content: Vec<_> = result
                .content
                .iter()
                .map(|piece| match piece {
                    ResultPart::Text(text) => format!("text {}", text.decode()),
                    ResultPart::Json(raw) => format!("json {}", raw.get()),
                    ResultPart::Media(media) => tell_media(media),
                })
                .collect();
            let mark = if result.is_error { "error" } else { "result" };
            format!("{mark} {} [{}]", result.call_id.as_deref().unwrap_or("-"), content.join(", "))
        }
        Part::Text { .. }
        | Part::Thought { .. }
        | Part::Call(_)
        | Part::Sealed(_)
        | Part::Gemini(_) => show(part),
    }
}

fn tell_media(media: &Media<'_>) -> String {
    let (place, what) = match &media.source {
        MediaSource::Inline(data) => ("inline", data.decode()),
        MediaSource::Uri(uri) => ("uri", uri.decode()),
    };
    let name = media.name.as_deref().map_or(String::new(), |name| format!(" named {name}"));
    format!("{place} {} {what}{name}", media.mime.as_deref().unwrap_or("-"))
}

#[track_caller]
pub(crate) fn refused(fields: &Value, at: &str) {
    let body = body(fields);
    let error = try_decode(&body).err().unwrap_or_else(|| panic!("{body} was accepted"));
    assert_eq!(error.at, at, "{error}");
}

/// The first request of a coding agent: accounting line, environment in the middle, effort.
#[test]
fn r126_a_coding_agents_first_request() {
    let body = json!({
        "model": "claude-opus-5-5",
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "<reminder>be brief</reminder>"},
                {"type": "text", "text": "Write a file.", "cache_control": {"type": "ephemeral"}},
            ]},
            {"role": "system", "content": [{"type": "text", "text": "# Place\n/tmp"}],
             "output_config": {"effort": "medium"}},
        ],
        "system": [
            {"type": "text", "text": "x-anthropic-billing-header: v=1; e=cli;"},
            {"type": "text", "text": "You help.", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
            {"type": "text", "text": ""},
            {"type": "text", "text": "Always."},
        ],
        "tools": [],
        "metadata": {"user_id": "{\"device\":1}"},
        "max_tokens": 128_000,
        "thinking": {"type": "adaptive", "display": "updates"},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "output_config": {"effort": "xhigh"},
        "stream": true,
    })
    .to_string();
    let decoded = decode(&body);
    let request = &decoded.request;
    let system: Vec<_> = request.system.iter().map(|text| text.decode()).collect();
    assert_eq!(system, ["You help.", "Always."]);
    let roles: Vec<_> = request.turns.iter().map(|turn| turn.role).collect();
    assert_eq!(roles, [Role::User, Role::Instruction]);
    assert_eq!(request.settings.max_output_tokens, Some(128_000));
    assert_eq!(request.thinking.mode, ThinkingMode::On);
    assert_eq!(request.thinking.effort, Some(Effort::XHigh));
    assert_eq!(request.thinking.show, Some(true));
    assert!(request.stream);
    assert_eq!(
        losses(&decoded),
        [
            "context_management Ignored",
            "system[0] Ignored",
            "messages[1].output_config.effort Ignored",
        ]
    );
    let echo = Echo {
        model: "claude-opus-5-5".into(),
        stream: true,
        thinking: true,
        show_thoughts: true,
        web_search: false,
        signatures_stored: false,
        thread: Thread::None,
    };
    assert_eq!(decoded.echo, echo);
}

#[test]
fn r118_r119_strings_and_settings() {
    let body = body(&json!({
        "system": "x-anthropic-billing-header: v=1;\nBe kind.",
        "temperature": 0.25, "top_p": 0.5, "top_k": 40,
        "stop_sequences": ["END", "\n\n"],
        "service_tier": "auto",
        "betas": ["x"],
        "mcp_servers": [],
    }));
    let decoded = decode(&body);
    let request = &decoded.request;
    assert_eq!(request.system[0].decode(), "Be kind.");
    assert_eq!(request.turns[0].parts.iter().map(show).collect::<Vec<_>>(), ["text go"]);
    let settings = &request.settings;
    let sampling = (settings.temperature, settings.top_p, settings.top_k);
    assert_eq!(sampling, (Some(0.25), Some(0.5), Some(40.0)));
    assert_eq!(settings.stop.iter().map(|it| it.decode()).collect::<Vec<_>>(), ["END", "\n\n"]);
    assert!(!request.stream);
    assert_eq!(losses(&decoded), ["system[0] Ignored"]);
}

#[test]
fn what_means_nothing_to_gemini_is_named() {
    let decoded_body = body(&json!({
        "container": "c1", "mcp_servers": [{"url": "https://a.example"}], "speed": "fast",
        "service_tier": "standard_only", "inference_geo": "eu", "future": {"a": 1},
        "output_config": {"task_budget": {"type": "tokens", "total": 9}, "effort": "huge"},
        "max_tokens": 0,
    }));
    let decoded = decode(&decoded_body);
    assert_eq!(
        losses(&decoded),
        [
            "future UnknownField",
            "container Ignored",
            "inference_geo Ignored",
            "mcp_servers Ignored",
            "service_tier Ignored",
            "speed Ignored",
            "output_config.task_budget Ignored",
            "max_tokens Changed",
            "output_config.effort Ignored",
        ]
    );
}

#[test]
fn thinking_in_all_modes() {
    let thinking = |given: Value| decode(&body(&json!({"thinking": given}))).request.thinking;
    let enabled = thinking(json!({"type": "enabled", "budget_tokens": 2048}));
    assert_eq!((enabled.mode, enabled.budget), (ThinkingMode::On, Some(2048)));
    assert_eq!(enabled.show, Some(true));
    let omitted = thinking(json!({"type": "adaptive", "display": "omitted"}));
    assert_eq!((omitted.mode, omitted.show), (ThinkingMode::On, Some(false)));
    let disabled = thinking(json!({"type": "disabled"}));
    assert_eq!((disabled.mode, disabled.show), (ThinkingMode::Off, Some(false)));
    assert_eq!(thinking(Value::Null).mode, ThinkingMode::Unset);
    assert_eq!(thinking(json!({"type": "between_tools"})).mode, ThinkingMode::On);
}

#[test]
fn output_formats() {
    let format = json!({"type": "json_schema", "schema": {"type": "object", "title": "T"}});
    for fields in [json!({"output_config": {"format": format}}), json!({"output_format": format})] {
        let body = body(&fields);
        match decode(&body).request.output {
            OutputFormat::JsonSchema { schema, .. } => {
                assert_eq!(schema.get(), r#"{"type":"object","title":"T"}"#);
            }
            other @ (OutputFormat::Text | OutputFormat::Json) => panic!("{other:?}"),
        }
    }
}

#[test]
fn threads_are_told_to_the_gateway() {
    let thread = |given: Value| decode(&body(&json!({"thread": given}))).echo.thread;
    assert_eq!(thread(Value::Null), Thread::None);
    assert_eq!(thread(json!({"type": "create"})), Thread::Create);
    assert_eq!(
        thread(json!({"type": "continue", "previous_message_id": "msg_1"})),
        Thread::Continue { previous_message_id: "msg_1".into() }
    );
    refused(&json!({"thread": {"type": "continue"}}), "thread.previous_message_id");
    refused(&json!({"thread": {"type": "fork"}}), "thread.type");
}

#[test]
fn j2_counting_needs_no_limit() {
    let sealer = sealer();
    let options = DecodeOptions { sealer: &sealer };
    let body = r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"compaction":{}}"#;
    assert!(decode_count_tokens(body, &options).is_ok());
    assert_eq!(decode_request(body, &options).unwrap_err().at, "compaction");
}

#[test]
fn pictures_and_documents() {
    let base64 = json!({"type": "base64", "media_type": "image/png", "data": "iVBO/+=="});
    let pdf = json!({"type": "base64", "media_type": "application/pdf", "data": "JVBE"});
    check(
        "user",
        &json!([{"type": "image", "source": base64}]),
        &["inline image/png iVBO/+=="],
        &[],
    );
    check(
        "user",
        &json!([
            {"type": "image", "source": {"type": "url", "url": "https://a.example/p.png"}},
            {"type": "image", "source": {"type": "url", "url": "data:image/gif;base64,R0lG"}},
            {"type": "image", "source": {"type": "file", "file_id": "file_01"}},
            {"type": "document", "source": {"type": "file", "file_id": "01"}, "title": "T"},
            {"type": "document", "source": {"type": "file", "file_id": "files/abc"}},
            {"type": "image", "source": {"type": "file", "file_id": "gs://b/p.png"}},
        ]),
        &[
            "uri - https://a.example/p.png",
            "inline image/gif R0lG",
            "uri application/pdf files/abc",
            "uri - gs://b/p.png",
        ],
        &[
            "messages[1].content[2].source.file_id PartDropped",
            "messages[1].content[3].source.file_id PartDropped",
        ],
    );
    check(
        "user",
        &json!([
            {"type": "document", "source": pdf, "title": "Plan", "context": "Draft.",
             "citations": {"enabled": false}, "cache_control": {"type": "ephemeral"}},
            {"type": "document", "source": {"type": "url", "url": "https://a.example/p.pdf"}},
            {"type": "document", "title": "Notes",
             "source": {"type": "text", "media_type": "text/plain", "data": "one\ntwo"}},
            {"type": "document", "source": {"type": "content", "content": [
                {"type": "text", "text": "page"}, {"type": "image", "source": base64},
            ]}},
            {"type": "document", "source": {"type": "content", "content": "all"}},
        ]),
        &[
            "text Draft.",
            "inline application/pdf JVBE named Plan",
            "uri application/pdf https://a.example/p.pdf",
            "text Document: Notes",
            "text one\ntwo",
            "text page",
            "inline image/png iVBO/+==",
            "text all",
        ],
        &[],
    );
    check(
        "user",
        &json!([{"type": "search_result", "source": "https://a.example", "title": "A",
                 "content": [{"type": "text", "text": "found"}]}]),
        &["text Search result: A\nSource: https://a.example", "text found"],
        &[],
    );
}

#[test]
fn r116_r117_f1_results_in_all_forms() {
    check(
        "user",
        &json!([
            {"tool_use_id": "toolu_1", "type": "tool_result", "content": "22 °C", "is_error": false,
             "cache_control": {"type": "ephemeral"}},
            {"type": "tool_result", "tool_use_id": "toolu_2", "is_error": true, "content": [
                {"type": "text", "text": "PDF read"},
                {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE"}},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}},
            ]},
            {"type": "tool_result", "tool_use_id": "toolu_3"},
            {"type": "tool_result", "tool_use_id": "toolu_4", "content": null},
            {"type": "tool_result", "tool_use_id": "toolu_5", "content": [
                {"type": "tool_reference", "tool_name": "WebSearch"},
            ]},
            {"type": "text", "text": "Tool loaded."},
        ]),
        &[
            "result toolu_1 [text 22 °C]",
            "error toolu_2 [text PDF read, inline application/pdf JVBE, inline image/png iVBO]",
            "result toolu_3 []",
            "result toolu_4 []",
            "result toolu_5 [text The tool WebSearch is loaded and can be called now.]",
            "text Tool loaded.",
        ],
        &[],
    );
}

#[test]
fn a10_calls_are_kept_to_the_letter() {
    let body = r#"{"model":"m","max_tokens":1,"messages":[{"role":"assistant","content":[
        {"type":"tool_use","id":"toolu_01-a b","name":"todo","input":{"items": [{"title":1.0,"const":null}]},"caller":{"type":"direct"}},
        {"type":"tool_use","id":"t2","name":"todo"},
        {"type":"tool_use","id":"t3","name":"key","toolset_name":"computer","input":"odd"}]}]}"#;
    let decoded = decode(body);
    let parts: Vec<_> = decoded.request.turns[0].parts.iter().map(show).collect();
    assert_eq!(
        parts,
        [
            r#"call toolu_01-a b Json({"items": [{"title":1.0,"const":null}]})"#,
            "call t2 Json({})",
            r#"call t3 Json("odd")"#,
        ]
    );
    let namespaces: Vec<_> = decoded.request.calls().map(|it| it.tool.to_string()).collect();
    assert_eq!(namespaces, ["todo", "todo", "computer.key"]);
    assert_eq!(losses(&decoded), Vec::<String>::new());
}

#[test]
fn c11_foreign_signatures_are_left_out() {
    check(
        "assistant",
        &json!([
            {"type": "thinking", "thinking": "Let me see.", "signature": "EqQBCgIYAhIM"},
            {"type": "redacted_thinking", "data": "EmwKAhgB"},
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking", "thinking": "x", "signature": "tg1.AAAA.d.Zw.t:1.sig"},
            {"type": "text", "text": "Hi."},
        ]),
        &["thought Let me see.", "thought x", "text Hi."],
        &[
            "messages[1].content[0].signature ForeignSignature",
            "messages[1].content[1].data ForeignSignature",
            "messages[1].content[3].signature ForeignSignature",
        ],
    );
}

#[test]
fn server_tools_of_the_past_are_told_in_words() {
    let at = |index: usize| format!("messages[1].content[{index}] Changed");
    let lost: Vec<_> = (0..12).map(at).collect();
    check(
        "assistant",
        &json!([
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "rust"}},
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [
                {"type": "web_search_result", "url": "https://a.example", "title": "A",
                 "encrypted_content": "Eq", "page_age": null}]},
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_2",
             "content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}},
            {"type": "web_fetch_tool_result", "tool_use_id": "srvtoolu_3", "content": {
                "type": "web_fetch_result", "url": "https://b.example", "content": {
                    "type": "document", "title": "B", "source": {
                        "type": "text", "media_type": "text/plain", "data": "words"}}}},
            {"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_4", "content": {
                "type": "code_execution_result", "stdout": "4\n", "stderr": "", "return_code": 0, "content": []}},
            {"type": "bash_code_execution_tool_result", "tool_use_id": "srvtoolu_5", "content": {
                "type": "bash_code_execution_result", "stdout": "", "stderr": "no", "return_code": 1, "content": []}},
            {"type": "text_editor_code_execution_tool_result", "tool_use_id": "srvtoolu_6", "content": {
                "type": "text_editor_code_execution_view_result", "file_type": "text", "content": "line"}},
            {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "ask", "server_name": "odd", "input": {}},
            {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "is_error": true,
             "content": [{"type": "text", "text": "broken"}]},
            {"type": "container_upload", "file_id": "file_1"},
            {"type": "advisor_tool_result", "tool_use_id": "srvtoolu_7",
             "content": {"type": "advisor_result", "text": "Wait."}},
            {"type": "compaction", "content": "So far: nothing."},
        ]),
        &[
            r#"text [Called web_search with {"query":"rust"}]"#,
            "text [Result of web_search\n- A: https://a.example]",
            "text [Result of web_search\nerror: max_uses_exceeded]",
            "text [Result of web_fetch\naddress: https://b.example\ntitle: B\nwords]",
            "text [Result of code_execution\nstdout: 4\n\nreturn code: 0]",
            "text [Result of bash_code_execution\nstderr: no\nreturn code: 1]",
            "text [Result of text_editor_code_execution\nline]",
            "text [Called ask of odd with {}]",
            "text [Failure of mcp\nbroken]",
            "text [A file was put into the container: file_1]",
            "text [Result of advisor\nWait.]",
            "text So far: nothing.",
        ],
        &lost.iter().map(String::as_str).collect::<Vec<_>>(),
    );
}

#[test]
fn citations_of_earlier_words_are_named() {
    let cited = json!([{"type": "char_location", "cited_text": "a", "document_index": 0}]);
    check(
        "assistant",
        &json!([
            {"type": "text", "text": "a", "citations": cited},
            {"type": "text", "text": "b", "citations": null},
            {"type": "text", "text": "c", "citations": []},
        ]),
        &["text a", "text b", "text c"],
        &["messages[1].content[0].citations Ignored"],
    );
}

#[test]
fn citations_that_will_not_come_are_named() {
    let source = json!({"type": "text", "media_type": "text/plain", "data": "one"});
    check(
        "user",
        &json!([
            {"type": "document", "source": source, "citations": {"enabled": true}},
            {"type": "document", "source": source, "citations": {"enabled": false}},
            {"type": "document", "source": source, "citations": {}},
            {"type": "document", "source": source, "citations": null},
        ]),
        &["text one"; 4],
        &["messages[1].content[0].citations Ignored"],
    );
}

/// What our own answers show of Gemini's searches and code is nothing that the model said.
#[test]
fn what_we_show_is_not_put_into_the_models_mouth() {
    let code = |id: &str| {
        json!([
            {"type": "text", "text": "Let me see."},
            {"type": "server_tool_use", "id": id, "name": "code_execution", "input": {"code": "1"}},
            {"type": "code_execution_tool_result", "tool_use_id": id, "content": {
                "type": "code_execution_result", "stdout": "1", "stderr": "", "return_code": 0, "content": []}},
        ])
    };
    let search = |id: &str| {
        json!([
            {"type": "text", "text": "Found."},
            {"type": "server_tool_use", "id": id, "name": "web_search", "input": {"query": "rust"}},
            {"type": "web_search_tool_result", "tool_use_id": id, "content": []},
        ])
    };
    check("assistant", &search("srvtoolu_tgAAAAAAAAAAAA"), &["text Found."], &[]);
    check(
        "assistant",
        &code("srvtoolu_tgAAAAAAAAAAAA"),
        &["text Let me see."],
        &["messages[1].content[1] PartDropped", "messages[1].content[2] PartDropped"],
    );
    // Another vendor's are told in words.
    for content in [search("srvtoolu_01"), code("srvtoolu_01")] {
        let said =
            json!([{"role": "user", "content": "go"}, {"role": "assistant", "content": content}]);
        let body = body(&json!({"messages": said}));
        let decoded = decode(&body);
        assert_eq!(decoded.request.turns[1].parts.len(), 3);
    }
}

/// A block of tomorrow is kept, whatever its fields hold, and does not spoil the others.
#[test]
fn r34_unknown_blocks_are_kept() {
    check(
        "user",
        &json!([
            {"type": "hologram", "text": {"deep": [1]}, "id": 5},
            {"type": "text", "text": "Look.", "novel": true},
        ]),
        &[r#"text {"type":"hologram","text":{"deep":[1]},"id":5}"#, "text Look."],
        &["messages[1].content[0] Changed", "messages[1].content[1].novel UnknownField"],
    );
    check(
        "user",
        &json!([{"type": "tool_result", "tool_use_id": "t", "content": [
            {"type": "browser_state", "tabs": []},
            {"type": "tool_use", "id": "x", "name": "y", "input": {}},
        ]}]),
        &[concat!(
            r#"result t [text {"type":"browser_state","tabs":[]}, "#,
            r#"text {"type":"tool_use","id":"x","name":"y","input":{}}]"#
        )],
        &["messages[1].content[0].content[0] Changed", "messages[1].content[0].content[1] Changed"],
    );
}

#[test]
fn instructions_find_their_place() {
    let body = body(&json!({"messages": [
        {"role": "system", "content": "First."},
        {"role": "user", "content": "a"},
        {"role": "system", "content": "For this turn only.", "clear_at": "next_user_message"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": ""},
        {"role": "system", "content": "Stays.", "clear_at": "next_user_message"},
        {"role": "system", "output_config": {"effort": "low"}},
        {"role": "assistant", "content": "The answer is ("},
    ]}));
    let decoded = decode(&body);
    assert_eq!(decoded.request.system[0].decode(), "First.");
    let said = |turn: &Turn<'_>| {
        format!("{:?} {:?}", turn.role, turn.parts.iter().map(show).collect::<Vec<_>>())
    };
    let turns: Vec<_> = decoded.request.turns.iter().map(said).collect();
    assert_eq!(
        turns,
        [
            r#"User ["text a"]"#,
            r#"Model ["text b"]"#,
            "User []",
            r#"Instruction ["text Stays."]"#,
            r#"Model ["text The answer is ("]"#,
        ]
    );
}

#[test]
fn half_a_character_does_not_break_a_request() {
    let body = r#"{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"a\ud83d"}]}"#;
    assert_eq!(
        decode(body).request.turns[0].parts.iter().map(show).collect::<Vec<_>>(),
        ["text a\u{fffd}"]
    );
}

#[test]
fn broken_requests_are_refused_with_the_place() {
    let messages = |content: Value| json!({"messages": [{"role": "user", "content": content}]});
    refused(&json!({"messages": []}), "messages");
    refused(&json!({"messages": null}), "messages");
    refused(&json!({"messages": "hi"}), "messages");
    refused(&json!({"messages": [{"role": "tool", "content": "x"}]}), "messages[0].role");
    refused(&json!({"messages": [{"content": "x"}]}), "messages[0].role");
    refused(&json!({"messages": [{"role": "user"}]}), "messages[0].content");
    refused(&messages(json!(5)), "messages[0].content");
    refused(&messages(json!([5])), "messages[0].content[0]");
    refused(&messages(json!([{"text": "x"}])), "messages[0].content[0].type");
    refused(&messages(json!([{"type": "text"}])), "messages[0].content[0].text");
    refused(&messages(json!([{"type": "text", "text": 5}])), "messages[0].content[0].text");
    refused(
        &messages(json!([{"type": "tool_result", "content": "x"}])),
        "messages[0].content[0].tool_use_id",
    );
    refused(
        &messages(json!([{"type": "tool_result", "tool_use_id": "t", "content": {}}])),
        "messages[0].content[0].content",
    );
    refused(
        &messages(
            json!([{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "image"}]}]),
        ),
        "messages[0].content[0].content[0].source",
    );
    refused(
        &messages(json!([{"type": "image", "source": {"type": "moon"}}])),
        "messages[0].content[0].source.type",
    );
    refused(&messages(json!([{"type": "tool_use", "name": "f"}])), "messages[0].content[0].id");
    refused(&messages(json!([{"type": "tool_use", "id": "t"}])), "messages[0].content[0].name");
    refused(&json!({"model": null}), "model");
    refused(&json!({"model": ""}), "model");
    refused(&json!({"max_tokens": null}), "max_tokens");
    refused(&json!({"max_tokens": "many"}), "max_tokens");
    refused(&json!({"max_tokens": -1}), "max_tokens");
    refused(&json!({"stream": "yes"}), "stream");
    refused(&json!({"thinking": {"budget_tokens": 5}}), "thinking.type");
    refused(
        &json!({"output_config": {"format": {"type": "json_schema"}}}),
        "output_config.format.schema",
    );
    refused(&json!({"system": 5}), "system");
    refused(&json!({"stop_sequences": [1]}), "stop_sequences[0]");
    assert!(try_decode("").is_err());
    assert!(try_decode("[]").is_err());
    assert!(try_decode("{\"model\":").is_err());
}

#[test]
fn law8_a_request_does_not_show_signatures() {
    let body = body(&json!({"messages": [{"role": "assistant", "content": [
        {"type": "thinking", "thinking": "x", "signature": "EqQBSecret"},
    ]}]}));
    let decoded = decode(&body);
    let shown = format!("{:?} {:?}", decoded.request, decoded.losses);
    assert!(!shown.contains("EqQBSecret"), "{shown}");
    assert_eq!(decoded.losses[0].code, LossCode::ForeignSignature);
}
