//! The Responses dialect's answers: streams and whole bodies, each past the grammar's checker.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod checker;
mod laws;

use serde_json::{Value, json};
use toolgate_core::canon::{
    Assembler, Backend, Call, CallInput, Encoder, Event, Failure, FailureKind, Finish,
    FinishReason, Grammar, IdGen, Issuer, Media, MediaSource, Part, Signature, Sink, Start,
    ToolName, Usage, call_token,
};
use toolgate_core::dialect::{DecodeOptions, Stamp};
use toolgate_core::json::{Raw, Text};
use toolgate_core::responses::{
    Echo, Framing, StreamEncoder, compaction_item, decode_request, encode_compacted,
    encode_response,
};
use toolgate_core::seal::{Envelope, Opened, Sealed, Sealer};
use toolgate_core::upstream::generate_content::{decode_activity, decode_grounding};
use toolgate_testing::grammar::responses as grammar;

const SEED: u128 = 11;

fn issuer() -> Issuer {
    Issuer { model: "gemini-3-flash".into(), backend: Backend::Developer }
}

fn signature(value: &str) -> Signature<'_> {
    Signature::new(value, Some(issuer())).unwrap()
}

fn start() -> Event<'static> {
    Event::Start(Start::default())
}

fn text(words: &str) -> Event<'static> {
    Event::Text(Text::new(words))
}

fn thought(words: &str) -> Event<'static> {
    Event::Thought(Text::new(words))
}

fn signs(thought: bool, len: usize) -> Event<'static> {
    Event::Signature { thought, len, signature: signature("sig/=") }
}

fn raw(json: &str) -> Raw<'_> {
    serde_json::from_str(json).unwrap()
}

fn call<'a>(id: &'a str, name: &'a str, args: &'a str) -> Call<'a> {
    Call {
        id: id.into(),
        upstream_id: None,
        tool: ToolName::plain(name),
        input: CallInput::Json(raw(args)),
        signature: None,
    }
}

fn signed<'a>(id: &'a str, name: &'a str, args: &'a str) -> Event<'a> {
    Event::Call(Call { signature: Some(signature("callsig")), ..call(id, name, args) })
}

fn usage() -> Usage {
    Usage {
        prompt: Some(100),
        cached: Some(40),
        candidates: Some(7),
        thoughts: Some(5),
        tool_use_prompt: Some(3),
        total: Some(115),
    }
}

fn finish(reason: FinishReason) -> Event<'static> {
    Event::Finish(Finish { reason, usage: usage(), ..Finish::default() })
}

fn stop() -> Event<'static> {
    finish(FinishReason::Stop)
}

fn echo_of(body: &Value) -> Echo {
    let sealer = Sealer::default();
    decode_request(&body.to_string(), &DecodeOptions { sealer: &sealer }).unwrap().echo
}

/// An echo of a client that wants to read thoughts.
fn curious() -> Echo {
    echo_of(&json!({"model": "my-model", "input": "x", "reasoning": {"summary": "auto"}}))
}

fn stamp() -> Stamp {
    Stamp::new(IdGen::new(SEED), 1_700_000_000)
}

/// Encodes events both ways, checks both, and gives the stream's events.
#[track_caller]
fn encode(events: &[Event<'_>], echo: &Echo) -> Vec<Value> {
    let mut grammar = Grammar::default();
    let mut encoder = StreamEncoder::new(echo.clone(), stamp(), Sealer::default());
    let mut lines = encoder.clone().framed(Framing::Messages);
    let (mut out, mut messages) = (Vec::new(), Vec::new());
    let mut whole = Assembler::default();
    for event in events {
        grammar.feed(event).unwrap();
        encoder.event(event, &mut out);
        lines.event(event, &mut messages);
        whole.event(event);
    }
    grammar.finish().unwrap();
    let shown = String::from_utf8(out.clone()).unwrap();
    grammar::check_stream(&out).unwrap_or_else(|why| panic!("{why}\n\n{shown}"));
    let frames: Vec<Value> = shown
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    let messages: Vec<Value> = String::from_utf8(messages)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(frames, messages);
    if let Ok(answer) = whole.finish() {
        let body = encode_response(&answer, echo, &stamp(), &Sealer::default());
        grammar::check_response(&body).unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body, frames.last().unwrap()["response"], "unary and streamed differ");
    }
    frames
}

/// The items of the answer, one line each.
#[track_caller]
fn items(events: &[Event<'_>], echo: &Echo) -> Vec<String> {
    let frames = encode(events, echo);
    let response = &frames.last().unwrap()["response"];
    response["output"].as_array().unwrap().iter().map(show).collect()
}

fn show(item: &Value) -> String {
    let sealed = item["encrypted_content"].as_str().map_or(String::new(), |sealed| {
        match Sealer::default().open(sealed) {
            Opened::Ours(Envelope { on, .. }) => match on {
                Sealed::Call { token, .. } => format!(" <call {token}>"),
                Sealed::Text { len, .. } => format!(" <text {len}>"),
                Sealed::Thought { len, .. } => format!(" <thought {len}>"),
                Sealed::Part(part) => format!(" <part {}>", part.get()),
            },
            Opened::Forged | Opened::Foreign => " not ours".to_owned(),
        }
    });
    match item["type"].as_str().unwrap() {
        "message" => {
            let part = &item["content"][0];
            let cited = part["annotations"].as_array().unwrap().len();
            let cited = if cited > 0 { format!(" ({cited} cited)") } else { String::new() };
            format!("message {}{cited}", part["text"].as_str().unwrap())
        }
        "reasoning" => {
            let said = item["summary"][0]["text"].as_str().unwrap_or("-");
            format!("reasoning {said}{sealed}")
        }
        "function_call" => format!(
            "function_call {}{}({})",
            item["namespace"].as_str().map_or(String::new(), |space| format!("{space}.")),
            item["name"].as_str().unwrap(),
            item["arguments"].as_str().unwrap()
        ),
        "custom_tool_call" => {
            format!("custom {} {}", item["name"].as_str().unwrap(), item["input"])
        }
        "web_search_call" => format!("search {}", item["action"]),
        "code_interpreter_call" => format!("code {} {}", item["code"], item["outputs"]),
        "image_generation_call" => format!("image {}", item["result"]),
        kind => {
            let body = ["action", "operation", "actions", "arguments"]
                .into_iter()
                .find_map(|name| item.get(name))
                .unwrap();
            format!("{kind} {body}")
        }
    }
}

#[track_caller]
fn check(events: &[Event<'_>], want: &[&str]) {
    assert_eq!(items(events, &curious()), want);
}

/// Types of the events, without `response.`.
fn types(frames: &[Value]) -> Vec<&str> {
    frames
        .iter()
        .map(|frame| frame["type"].as_str().unwrap().strip_prefix("response.").unwrap())
        .collect()
}

#[test]
fn r98_r99_plain_text_is_one_message() {
    let frames = encode(&[start(), text("Hel"), text("lo"), stop()], &curious());
    assert_eq!(
        types(&frames),
        [
            "created",
            "in_progress",
            "output_item.added",
            "content_part.added",
            "output_text.delta",
            "output_text.delta",
            "output_text.done",
            "content_part.done",
            "output_item.done",
            "completed",
        ]
    );
    let response = &frames.last().unwrap()["response"];
    assert_eq!(response["model"], "my-model");
    assert_eq!(response["created_at"], 1_700_000_000);
}

#[test]
fn j3_usage_has_every_count() {
    let frames = encode(&[start(), text("a"), stop()], &curious());
    assert_eq!(
        frames.last().unwrap()["response"]["usage"],
        json!({
            "input_tokens": 103,
            "input_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 0},
            "output_tokens": 12,
            "output_tokens_details": {"reasoning_tokens": 5},
            "total_tokens": 115,
        })
    );
}

#[test]
fn r86_i5_calls_are_added_said_and_done() {
    let frames = encode(&[start(), signed("tg1_a", "look", r#"{"q": "ä"}"#), stop()], &curious());
    assert_eq!(
        types(&frames),
        [
            "created",
            "in_progress",
            "output_item.added",
            "output_item.done",
            "output_item.added",
            "function_call_arguments.delta",
            "function_call_arguments.done",
            "output_item.done",
            "completed",
        ]
    );
    let item = &frames[7]["item"];
    assert_eq!(
        *item,
        json!({
            "id": "fc_tg1_a",
            "type": "function_call",
            "status": "completed",
            "call_id": "call_tg1_a",
            "name": "look",
            "arguments": "{\"q\":\"ä\"}",
        })
    );
    assert_eq!(call_token(item["call_id"].as_str().unwrap()), "tg1_a");
}

#[test]
fn r88_r89_text_and_calls_stay_in_order() {
    check(
        &[
            start(),
            text("First."),
            Event::Call(call("tga", "one", "{}")),
            Event::Call(call("tgb", "one", r#"{"a":1.0}"#)),
            text("Then."),
            finish(FinishReason::ToolCalls),
        ],
        &[
            "message First.",
            "function_call one({})",
            r#"function_call one({"a":1.0})"#,
            "message Then.",
        ],
    );
}

#[test]
fn c1_a_calls_signature_rides_before_it() {
    check(
        &[start(), thought("Hm"), thought("m."), signed("tga", "f", "{}"), stop()],
        &["reasoning Hmm. <call tga>", "function_call f({})"],
    );
    check(
        &[start(), text("Now"), signed("tga", "f", "{}"), stop()],
        &["message Now", "reasoning - <call tga>", "function_call f({})"],
    );
}

#[test]
fn c6_a_signature_is_said_once() {
    let frames = encode(&[start(), text("Now"), signed("tga", "f", "{}"), stop()], &curious());
    let output = frames.last().unwrap()["response"]["output"].to_string();
    assert_eq!(output.matches("callsig").count(), 1);
}

#[test]
fn law8_debug_keeps_signatures_secret() {
    let mut encoder = StreamEncoder::new(curious(), stamp(), Sealer::default());
    for event in [start(), signed("tga", "f", "{}"), text("a"), signs(false, 1)] {
        encoder.event(&event, &mut Vec::new());
    }
    let shown = format!("{encoder:?}");
    assert!(!shown.contains("sig"), "{shown}");
}

#[test]
fn c2_a_thoughts_signature_stays_with_the_thought() {
    check(
        &[start(), thought("Hmm."), signs(true, 4), Event::Call(call("tga", "f", "{}")), stop()],
        &["reasoning Hmm. <thought 4>", "function_call f({})"],
    );
    // One item carries one envelope.
    check(
        &[
            start(),
            thought("Hmm."),
            signs(true, 4),
            signed("tga", "f", "{}"),
            thought("More."),
            stop(),
        ],
        &[
            "reasoning Hmm. <thought 4>",
            "reasoning - <call tga>",
            "function_call f({})",
            "reasoning More.",
        ],
    );
}

#[test]
fn c7_a_texts_signature_follows_the_message() {
    check(
        &[start(), text("Hello"), signs(false, 5), stop()],
        &["message Hello", "reasoning - <text 5>"],
    );
    check(
        &[start(), text("Hello"), signs(false, 2), text("you"), signs(false, 0), stop()],
        &["message Hello", "reasoning - <text 2>", "message you", "reasoning - <text 0>"],
    );
}

#[test]
fn c13_a_late_signature_stands_alone() {
    check(
        &[start(), Event::Call(call("tga", "f", "{}")), signs(false, 0), stop()],
        &["function_call f({})", "reasoning - <text 0>"],
    );
}

#[test]
fn c9_only_the_signed_call_has_a_carrier() {
    check(
        &[start(), signed("tga", "f", "{}"), Event::Call(call("tgb", "f", "{}")), stop()],
        &["reasoning - <call tga>", "function_call f({})", "function_call f({})"],
    );
}

#[test]
fn thoughts_that_nobody_asked_for_leave_only_carriers() {
    let echo = echo_of(&json!({"model": "m", "input": "x"}));
    assert_eq!(
        items(
            &[
                start(),
                thought("Hmm"),
                signs(true, 3),
                thought("b"),
                signed("tga", "f", "{}"),
                stop()
            ],
            &echo
        ),
        ["reasoning - <thought 0>", "reasoning - <call tga>", "function_call f({})"]
    );
}

#[test]
fn c8_what_gemini_did_itself_is_carried_whole() {
    let part = |part: &'static str, kind: &'static str| {
        let body = raw(part).fields().unwrap().get(kind).unwrap().get().to_owned();
        Event::Server(decode_activity(
            kind.into(),
            Raw::parse(body).unwrap(),
            raw(part),
            Some(issuer()),
        ))
    };
    let search = r#"{"toolCall":{"id":"s1","toolType":"GOOGLE_SEARCH_WEB","args":{"queries":["x"]}},"thoughtSignature":"s"}"#;
    let found = r#"{"toolResponse":{"id":"s1","toolType":"GOOGLE_SEARCH_WEB","response":{}}}"#;
    let mut echo = curious();
    echo.issuer = Some(issuer());
    assert_eq!(
        items(
            &[start(), part(search, "toolCall"), part(found, "toolResponse"), text("a"), stop()],
            &echo
        ),
        [
            format!("reasoning - <part {search}>"),
            r#"search {"type":"search","query":"x","queries":["x"]}"#.to_owned(),
            format!("reasoning - <part {found}>"),
            "message a".to_owned(),
        ]
    );
    let code =
        r#"{"executableCode":{"language":"PYTHON","code":"print(1)"},"thoughtSignature":"s"}"#;
    let result = r#"{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1\n"}}"#;
    assert_eq!(
        items(
            &[start(), part(code, "executableCode"), part(result, "codeExecutionResult"), stop()],
            &echo
        ),
        [
            format!("reasoning - <part {code}>"),
            r#"code "print(1)" [{"type":"logs","logs":"1\n"}]"#.to_owned(),
            format!("reasoning - <part {result}>"),
        ]
    );
}

#[test]
fn g3_a_search_is_shown_and_cited() {
    let metadata = r#"{"webSearchQueries":["höhe"],"groundingChunks":[{"web":{"uri":"https://a","title":"A"}}],"groundingSupports":[{"segment":{"startIndex":0,"endIndex":5,"text":"Höhe"},"groundingChunkIndices":[0]}]}"#;
    let grounding = || Event::Grounding(decode_grounding(raw(metadata)));
    let events =
        [start(), text("Höhe"), text(" 42"), signs(false, 8), grounding(), grounding(), stop()];
    check(
        &events,
        &[
            "message Höhe 42 (1 cited)",
            "reasoning - <text 8>",
            r#"search {"type":"search","query":"höhe","queries":["höhe"]}"#,
        ],
    );
    let frames = encode(&events, &curious());
    let cited = frames.iter().find(|it| it["type"] == "response.output_text.annotation.added");
    assert_eq!(
        cited.unwrap()["annotation"],
        json!({"type": "url_citation", "start_index": 0, "end_index": 4, "url": "https://a", "title": "A"})
    );
    // Text may go on after grounding, in the same message.
    check(
        &[start(), text("Höhe"), grounding(), text("!"), stop()],
        &[
            "message Höhe! (1 cited)",
            r#"search {"type":"search","query":"höhe","queries":["höhe"]}"#,
        ],
    );
}

#[test]
fn pictures_are_items() {
    let media = |source, mime: &'static str| {
        Event::Media(Media { mime: Some(mime.into()), source, name: None, modifiers: Vec::new() })
    };
    check(
        &[start(), media(MediaSource::Inline(Text::new("iVBO")), "image/png"), stop()],
        &[r#"image "iVBO""#],
    );
    check(
        &[start(), media(MediaSource::Uri(Text::new("https://a/b")), "image/png"), stop()],
        &["message https://a/b"],
    );
    check(
        &[start(), media(MediaSource::Inline(Text::new("UklG")), "audio/wav"), stop()],
        &["message data:audio/wav;base64,UklG"],
    );
    // Media told as text stand apart from the text around them.
    let file = || media(MediaSource::Uri(Text::new("https://a/b")), "application/pdf");
    check(
        &[start(), text("See"), file(), file(), text("and"), text(" read."), stop()],
        &["message See\n\nhttps://a/b\n\nhttps://a/b\n\nand read."],
    );
}

#[test]
fn i1_i2_calls_come_back_in_their_own_form() {
    let echo = echo_of(&json!({
        "model": "m",
        "input": "x",
        "tools": [
            {"type": "namespace", "name": "mcp__repl", "tools": [
                {"type": "function", "name": "run", "parameters": {}},
                {"type": "custom", "name": "exec"},
            ]},
            {"type": "custom", "name": "patch", "format": {"type": "text"}},
            {"type": "tool_search", "execution": "client"},
            {"type": "local_shell"},
            {"type": "shell"},
            {"type": "apply_patch"},
            {"type": "computer"},
        ],
    }));
    let spaced = |id: &'static str, name: &'static str, input| {
        let tool = ToolName { namespace: Some("mcp__repl".into()), name: name.into() };
        Event::Call(Call { tool, input, ..call(id, name, "{}") })
    };
    let json = |json| CallInput::Json(raw(json));
    assert_eq!(
        items(
            &[
                start(),
                spaced("tg1", "run", json(r#"{"a":1}"#)),
                spaced("tg2", "exec", CallInput::Text(Text::new("a\nb"))),
                Event::Call(call("tg3", "patch", r#"{"input":"*** Begin"}"#)),
                Event::Call(call("tg4", "patch", r#"{"content":"*** Begin"}"#)),
                Event::Call(call("tg5", "patch", r#""*** Begin""#)),
                Event::Call(call("tg6", "patch", r#"{"a":1, "b":2}"#)),
                Event::Call(call("tg7", "tool_search", r#"{"query":"q"}"#)),
                Event::Call(call("tg8", "local_shell", r#"{"command":["ls"]}"#)),
                Event::Call(call("tg9", "shell", r#"{"commands":["ls"]}"#)),
                Event::Call(call("tga", "apply_patch", r#"{"type":"delete_file","path":"p"}"#)),
                Event::Call(call("tgb", "computer", r#"{"actions":[{"type":"wait"}]}"#)),
                finish(FinishReason::ToolCalls),
            ],
            &echo
        ),
        [
            r#"function_call mcp__repl.run({"a":1})"#,
            r#"custom exec "a\nb""#,
            r#"custom patch "*** Begin""#,
            r#"custom patch "*** Begin""#,
            r#"custom patch "*** Begin""#,
            r#"custom patch "{\"a\":1,\"b\":2}""#,
            r#"tool_search_call {"query":"q"}"#,
            r#"local_shell_call {"type":"exec","command":["ls"],"env":{}}"#,
            r#"shell_call {"commands":["ls"],"timeout_ms":null,"max_output_length":null}"#,
            r#"apply_patch_call {"type":"delete_file","path":"p"}"#,
            r#"computer_call [{"type":"wait"}]"#,
        ]
    );
}

#[test]
fn i6_what_was_cut_short_is_incomplete() {
    for (reason, want) in [
        (FinishReason::MaxTokens, "max_output_tokens"),
        (FinishReason::Blocked("SAFETY".into()), "content_filter"),
    ] {
        let events = [start(), Event::Call(call("tga", "f", "{}")), text("Hel"), finish(reason)];
        let frames = encode(&events, &curious());
        let last = frames.last().unwrap();
        assert_eq!(last["type"], "response.incomplete");
        assert_eq!(last["response"]["incomplete_details"]["reason"], want);
        assert_eq!(last["response"]["output"][0]["status"], "completed");
        assert_eq!(last["response"]["output"][1]["status"], "incomplete");
    }
    let frames = encode(&[start(), finish(FinishReason::Blocked("OTHER".into()))], &curious());
    assert_eq!(frames.last().unwrap()["response"]["output"], json!([]));
}

#[test]
fn d12_a_failure_in_mid_stream_is_told() {
    let failure =
        |kind| Failure { retry_after_ms: Some(34_400), ..Failure::new(kind, "Too many requests.") };
    for (kind, code, message) in [
        (
            FailureKind::RateLimited,
            "rate_limit_exceeded",
            "Too many requests. Please try again in 35s.",
        ),
        (FailureKind::Overloaded, "server_is_overloaded", "Too many requests."),
        (FailureKind::QuotaExhausted, "insufficient_quota", "Too many requests."),
        (FailureKind::ContextTooLong, "context_length_exceeded", "Too many requests."),
        (FailureKind::InvalidRequest, "invalid_prompt", "Too many requests."),
        (FailureKind::Cut, "server_error", "Too many requests."),
    ] {
        for before in [vec![], vec![start()], vec![start(), text("Hel")]] {
            let mut events = before;
            events.push(Event::Fail(failure(kind)));
            let frames = encode(&events, &curious());
            let last = frames.last().unwrap();
            assert_eq!(last["type"], "response.failed");
            assert_eq!(last["response"]["error"], json!({"code": code, "message": message}));
        }
    }
}

#[test]
fn k1_a_ping_repeats_the_response() {
    let mut encoder = StreamEncoder::new(curious(), stamp(), Sealer::default());
    let mut out = Vec::new();
    encoder.ping(&mut out);
    for event in [start(), text("a")] {
        encoder.event(&event, &mut out);
        encoder.ping(&mut out);
    }
    encoder.event(&stop(), &mut out);
    let length = out.len();
    encoder.ping(&mut out);
    encoder.event(&text("late"), &mut out);
    assert_eq!(out.len(), length, "something after the end");
    grammar::check_stream(&out).unwrap();
    let pings = String::from_utf8(out).unwrap().matches("event: response.in_progress").count();
    assert_eq!(pings, 3);
}

#[test]
fn i3_messages_have_a_line_and_a_lane_each() {
    let echo = echo_of(&json!({
        "type": "response.create", "model": "m", "input": "x", "generate": false, "stream_id": "s1",
    }));
    assert!(echo.prewarm);
    let mut encoder =
        StreamEncoder::new(echo, stamp(), Sealer::default()).framed(Framing::Messages);
    let mut out = Vec::new();
    encoder.event(&start(), &mut out);
    encoder.event(&stop(), &mut out);
    let lines: Vec<Value> = String::from_utf8(out)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(types(&lines), ["created", "in_progress", "completed"]);
    for line in &lines {
        assert_eq!(line["stream_id"], "s1");
        assert_eq!(line["response"]["id"], encoder.response_id());
    }
    let whole: Value = serde_json::from_slice(&encoder.response()).unwrap();
    assert_eq!(whole, lines[2]["response"]);
}

#[test]
fn the_response_repeats_the_request() {
    let body = json!({
        "model": "gpt-5.5",
        "input": "x",
        "instructions": "Be brief",
        "tools": [{
            "type": "function", "name": "f", "parameters": {"b": 1, "a": 2}, "description": null,
            "strict": true,
        }],
        "tool_choice": {"type": "function", "name": "f"},
        "parallel_tool_calls": false,
        "text": {"format": {"type": "json_object"}, "verbosity": "low"},
        "reasoning": {"effort": "low", "summary": "auto"},
        "max_output_tokens": 9,
        "temperature": 0.5,
        "top_p": 0.9,
        "store": false,
        "metadata": {"k": "v"},
        "user": "u",
        "conversation": {"id": "conv_1"},
        "previous_response_id": "resp_0",
        "truncation": "auto",
    });
    let frames = encode(&[start(), text("{}"), stop()], &echo_of(&body));
    for frame in [&frames[0], &frames[1], frames.last().unwrap()] {
        let response = &frame["response"];
        for name in [
            "model",
            "instructions",
            "tools",
            "tool_choice",
            "parallel_tool_calls",
            "text",
            "reasoning",
            "max_output_tokens",
            "temperature",
            "top_p",
            "store",
            "metadata",
            "user",
            "conversation",
            "previous_response_id",
            "truncation",
        ] {
            assert_eq!(response[name], body[name], "{name}");
        }
    }
}

#[test]
fn frames_stay_on_one_line() {
    let odd = "a\u{2028}b\u{85}c\nd\"\\";
    let args = "{\"x\" :\n \"\u{2029}\"}";
    let frames = encode(
        &[start(), text(odd), thought(odd), Event::Call(call("tga", "f", args)), stop()],
        &curious(),
    );
    let output = &frames.last().unwrap()["response"]["output"];
    assert_eq!(output[0]["content"][0]["text"], odd);
    let arguments: Value = serde_json::from_str(output[2]["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(arguments, json!({"x": "\u{2029}"}));
}

#[test]
fn c1_what_the_client_echoes_is_understood_again() {
    let sealer = Sealer::with_key([3; 32]);
    let events = [
        start(),
        thought("Hmm."),
        text("Now"),
        signs(false, 3),
        signed("tga", "f", r#"{"n":1}"#),
        finish(FinishReason::ToolCalls),
    ];
    let mut encoder = StreamEncoder::new(curious(), stamp(), sealer.clone());
    for event in &events {
        encoder.event(event, &mut Vec::new());
    }
    let items: Value = serde_json::from_slice(&encoder.output_items()).unwrap();
    let mut input = vec![json!({"role": "user", "content": "Go"})];
    input.extend(items.as_array().unwrap().iter().cloned());
    input.push(json!({"type": "function_call_output", "call_id": "call_tga", "output": "1"}));
    let body = json!({"model": "m", "input": input}).to_string();
    let decoded = decode_request(&body, &DecodeOptions { sealer: &sealer }).unwrap();
    assert!(decoded.losses.is_empty(), "{:?}", decoded.losses);
    let turns = &decoded.request.turns;
    assert_eq!(turns.len(), 3);
    let [
        Part::Thought { .. },
        Part::Text { .. },
        Part::Sealed(Envelope { on: Sealed::Text { len: 3, .. }, .. }),
        Part::Sealed(Envelope { on: Sealed::Call { token, .. }, issuer: who }),
        Part::Call(call),
    ] = turns[1].parts.as_slice()
    else {
        panic!("{:?}", turns[1]);
    };
    assert_eq!((&**token, who), ("tga", &issuer()));
    assert_eq!(call_token(&call.id), "tga");
    // Another key's envelopes mean nothing.
    let other = Sealer::with_key([4; 32]);
    let decoded = decode_request(&body, &DecodeOptions { sealer: &other }).unwrap();
    assert_eq!(decoded.losses.len(), 2);
}

#[test]
fn a_compaction_is_one_item_and_comes_back_as_words() {
    let sealer = Sealer::default();
    let body = json!({"model": "m", "input": [
        {"role": "user", "content": "a"},
        {"type": "compaction_trigger"},
    ], "tools": [{"type": "function", "name": "f"}]});
    let echo = echo_of(&body);
    assert!(echo.compact);
    let frames = encode(&[start(), thought("x"), text("All "), text("done."), stop()], &echo);
    let output = &frames.last().unwrap()["response"]["output"];
    assert_eq!(output.as_array().unwrap().len(), 1);
    let item = &output[0];
    assert_eq!(item["type"], "compaction");

    let again =
        json!({"model": "m", "input": [item, {"role": "user", "content": "b"}]}).to_string();
    let decoded = decode_request(&again, &DecodeOptions { sealer: &sealer }).unwrap();
    assert!(decoded.losses.is_empty());
    let [Part::Text { text: words, .. }, Part::Text { .. }] =
        decoded.request.turns[0].parts.as_slice()
    else {
        panic!("{:?}", decoded.request.turns);
    };
    assert!(words.decode().ends_with("All done."), "{words:?}");

    let mut whole = Assembler::default();
    for event in [start(), text("All done."), stop()] {
        whole.event(&event);
    }
    let kept = [raw(r#"{"role": "user", "content": "a"}"#)];
    let compacted = encode_compacted(&whole.finish().unwrap(), &kept, &stamp(), &sealer);
    let compacted: Value = serde_json::from_slice(&compacted).unwrap();
    assert_eq!(compacted["object"], "response.compaction");
    assert_eq!(compacted["output"].as_array().unwrap().len(), 2);
    assert_eq!(compacted["output"][1]["encrypted_content"], item["encrypted_content"]);
    let item: Value = serde_json::from_slice(&compaction_item("cmp_1", "s", &sealer)).unwrap();
    assert!(item["id"].as_str().unwrap().starts_with("cmp_"));
}
