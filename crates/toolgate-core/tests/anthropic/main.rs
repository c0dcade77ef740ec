//! Anthropic's answers, checked against Anthropic's rules, and given back to us as clients do.
#![expect(clippy::panic, clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod laws;
mod requests;
mod tools;

use std::borrow::Cow;

use serde_json::{Value, json};
use toolgate_core::anthropic::{Echo, StreamEncoder, Thread, decode_request, encode_response};
use toolgate_core::canon::{
    Assembler, Backend, Call, CallInput, Encoder, Event, Failure, FailureKind, Finish,
    FinishReason, Grammar, IdGen, Issuer, LossCode, Media, MediaSource, Part, Request, Signature,
    Sink, Start, ToolName, Usage,
};
use toolgate_core::dialect::{DecodeOptions, Stamp};
use toolgate_core::json::{Raw, Text};
use toolgate_core::seal::{Envelope, Sealed, Sealer};
use toolgate_core::upstream::generate_content::{decode_activity, decode_grounding};
use toolgate_testing::grammar::anthropic::{check_message, check_stream};

fn issuer() -> Issuer {
    Issuer { model: "gemini-3.6-flash".into(), backend: Backend::Developer }
}

fn sealer() -> Sealer {
    Sealer::with_key([3; 32])
}

fn stamp() -> Stamp {
    Stamp::new(IdGen::new(1), 0)
}

/// A client that asked for thinking and wants to read it.
fn thinker() -> Echo {
    Echo {
        model: "claude-opus-5-5".into(),
        stream: true,
        thinking: true,
        show_thoughts: true,
        web_search: false,
        signatures_stored: false,
        thread: Thread::None,
    }
}

fn plain() -> Echo {
    Echo { thinking: false, show_thoughts: false, ..thinker() }
}

fn start() -> Event<'static> {
    let usage = Usage { prompt: Some(120), ..Usage::default() };
    Event::Start(Start { usage, ..Start::default() })
}

fn text(words: &str) -> Event<'static> {
    Event::Text(Text::new(words))
}

fn thought(words: &str) -> Event<'static> {
    Event::Thought(Text::new(words))
}

fn signed(token: &str) -> Signature<'static> {
    Signature::new(token.to_owned(), Some(issuer())).unwrap()
}

fn signature(thought: bool, len: usize, token: &str) -> Event<'static> {
    Event::Signature { thought, len, signature: signed(token) }
}

fn call(id: &str, name: &str, input: &str, token: Option<&str>) -> Event<'static> {
    Event::Call(Call {
        id: Cow::Owned(id.to_owned()),
        upstream_id: None,
        tool: ToolName::plain(name.to_owned()),
        input: CallInput::Json(raw(input)),
        signature: token.map(signed),
    })
}

fn server(kind: &'static str, body: &str, token: Option<&str>) -> Event<'static> {
    let signature = token.map_or(String::new(), |it| format!(r#","thoughtSignature":"{it}""#));
    Event::Server(decode_activity(
        kind.into(),
        raw(body),
        raw(&format!(r#"{{"{kind}":{body}{signature}}}"#)),
        Some(issuer()),
    ))
}

fn raw(json: &str) -> Raw<'static> {
    Raw::parse(json.to_owned()).unwrap()
}

fn finish(reason: FinishReason) -> Event<'static> {
    let usage = Usage {
        prompt: Some(150_000),
        cached: Some(149_900),
        candidates: Some(13),
        thoughts: Some(343),
        tool_use_prompt: Some(7),
        total: Some(150_363),
    };
    Event::Finish(Finish { reason, usage, ..Finish::default() })
}

fn stop() -> Event<'static> {
    finish(FinishReason::Stop)
}

/// Encodes both ways, checks both against the grammar, and that both say the same.
#[track_caller]
fn encode(echo: &Echo, events: &[Event<'_>]) -> Value {
    let stream = stream(echo, events);
    check_stream(stream.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{stream}"));
    let mut assembler = Assembler::default();
    events.iter().for_each(|event| assembler.event(event));
    let answer = assembler.finish().unwrap();
    let whole = encode_response(&answer, echo, &stamp(), &sealer());
    check_message(&whole)
        .unwrap_or_else(|error| panic!("{error}\n{}", String::from_utf8_lossy(&whole)));
    let whole: Value = serde_json::from_slice(&whole).unwrap();
    let streamed = accumulate(&stream);
    for field in ["id", "model", "content", "stop_reason", "stop_sequence", "usage"] {
        assert_eq!(streamed[field], whole[field], "{field}\n{stream}");
    }
    whole
}

#[track_caller]
fn stream(echo: &Echo, events: &[Event<'_>]) -> String {
    let mut grammar = Grammar::default();
    let mut encoder = StreamEncoder::new(echo.clone(), stamp(), sealer());
    let mut out = Vec::new();
    for event in events {
        grammar.feed(event).unwrap();
        encoder.event(event, &mut out);
        encoder.ping(&mut out);
    }
    grammar.finish().unwrap();
    String::from_utf8(out).unwrap()
}

/// Puts a message together from its stream, as SDKs do.
fn accumulate(stream: &str) -> Value {
    let mut message = Value::Null;
    let mut input = String::new();
    for line in stream.lines().filter_map(|line| line.strip_prefix("data: ")) {
        let frame: Value = serde_json::from_str(line).unwrap();
        let index = frame["index"].as_u64().unwrap_or(0) as usize;
        match frame["type"].as_str().unwrap() {
            "message_start" => message = frame["message"].clone(),
            "content_block_start" => {
                input.clear();
                let content = message["content"].as_array_mut().unwrap();
                content.push(frame["content_block"].clone());
            }
            "content_block_delta" => {
                let (block, delta) = (&mut message["content"][index], &frame["delta"]);
                let append = |to: &mut Value, more: &Value| {
                    *to = Value::String(format!(
                        "{}{}",
                        to.as_str().unwrap(),
                        more.as_str().unwrap()
                    ));
                };
                match delta["type"].as_str().unwrap() {
                    "text_delta" => append(&mut block["text"], &delta["text"]),
                    "thinking_delta" => append(&mut block["thinking"], &delta["thinking"]),
                    "signature_delta" => block["signature"] = delta["signature"].clone(),
                    _ => {
                        input.push_str(delta["partial_json"].as_str().unwrap());
                        block["input"] = serde_json::from_str(&input).unwrap();
                    }
                }
            }
            "message_delta" => {
                for (field, value) in frame["delta"].as_object().unwrap() {
                    message[field] = value.clone();
                }
                for (field, value) in frame["usage"].as_object().unwrap() {
                    message["usage"][field] = value.clone();
                }
            }
            _ => {}
        }
    }
    message
}

/// Types of the message's blocks.
fn types(message: &Value) -> Vec<&str> {
    message["content"].as_array().unwrap().iter().map(|it| it["type"].as_str().unwrap()).collect()
}

/// Gives the answer back as the assistant's message of the next request, as clients do, and shows
/// the parts that it becomes.
#[track_caller]
fn returned(message: &Value) -> Vec<String> {
    let body = json!({
        "model": "m", "max_tokens": 9,
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": message["content"]},
        ],
    })
    .to_string();
    let sealer = sealer();
    let decoded = decode_request(&body, &DecodeOptions { sealer: &sealer }).unwrap();
    for loss in &decoded.losses {
        assert_ne!(loss.code, LossCode::ForeignSignature, "{loss:?}");
    }
    shown(&decoded.request)
}

fn shown(request: &Request<'_>) -> Vec<String> {
    request.turns.last().unwrap().parts.iter().map(show).collect()
}

fn show(part: &Part<'_>) -> String {
    match part {
        Part::Text { text, .. } => format!("text {}", text.decode()),
        Part::Thought { text, .. } => format!("thought {}", text.decode()),
        Part::Call(call) => format!("call {} {:?}", call.id, call.input),
        Part::Sealed(Envelope { on, issuer: by }) => {
            assert_eq!(*by, issuer());
            match on {
                Sealed::Call { token, signature } => {
                    format!("sealed call {token} {}", signature.expose())
                }
                Sealed::Text { len, signature } => {
                    format!("sealed text {len} {}", signature.expose())
                }
                Sealed::Thought { len, signature } => {
                    format!("sealed thought {len} {}", signature.expose())
                }
                Sealed::Part(raw) => format!("sealed part {}", raw.get()),
            }
        }
        Part::Media(_) | Part::Result(_) | Part::Gemini(_) => format!("{part:?}"),
    }
}

#[test]
fn r121_text() {
    let message = encode(&plain(), &[start(), text("Hel"), text("lo \u{2028}\"you\""), stop()]);
    assert_eq!(
        message["content"],
        json!([{"type": "text", "citations": null, "text": "Hello \u{2028}\"you\""}])
    );
    assert_eq!(message["stop_reason"], "end_turn");
    assert_eq!(message["model"], "claude-opus-5-5");
}

#[test]
fn j1_j3_cached_tokens_are_counted_once() {
    let message = encode(&plain(), &[start(), text("x"), stop()]);
    let usage = json!({
        "input_tokens": 107, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 149_900,
        "output_tokens": 356, "output_tokens_details": {"thinking_tokens": 343},
        "server_tool_use": null, "service_tier": "standard", "inference_geo": null, "speed": null,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
    });
    assert_eq!(message["usage"], usage);
}

#[test]
fn r122_r123_d2_parallel_calls_keep_apart() {
    let events = [
        start(),
        call("tgA", "look", r#"{"at":1.0,"$ref":"x"}"#, Some("sigA")),
        call("tgB", "look", r#"{"at":2}"#, None),
        text("and"),
        call("tgC", "look", r#"{ "at" : 3 }"#, None),
        stop(),
    ];
    let message = encode(&thinker(), &events);
    assert_eq!(types(&message), ["redacted_thinking", "tool_use", "tool_use", "text", "tool_use"]);
    assert_eq!(message["content"][1]["id"], "toolu_tgA");
    assert_eq!(message["stop_reason"], "tool_use");
    assert_eq!(
        returned(&message),
        [
            "sealed call tgA sigA",
            r#"call toolu_tgA Json({"at":1.0,"$ref":"x"})"#,
            r#"call toolu_tgB Json({"at":2})"#,
            "text and",
            r#"call toolu_tgC Json({"at":3})"#,
        ]
    );
}

#[test]
fn law6_arguments_pass_through_unchanged() {
    let input = r##"{"b":1.50,"a":[1e3,"\u00e9\n"],"title":{"$ref":"#"}}"##;
    let stream = stream(&plain(), &[start(), call("tgA", "f", input, None), stop()]);
    let escaped = serde_json::to_string(input).unwrap();
    assert!(stream.contains(&format!(r#""partial_json":{escaped}"#)), "{stream}");
}

#[test]
fn d9_a_call_without_arguments_is_an_object() {
    let stream = stream(&plain(), &[start(), call("tgA", "f", "{}", None), stop()]);
    assert!(stream.contains(r#""partial_json":"{}""#), "{stream}");
    check_stream(stream.as_bytes()).unwrap();
}

#[test]
fn c2_a_thought_carries_its_own_signature() {
    let events = [
        start(),
        thought("Hm, "),
        thought("so."),
        signature(true, 7, "sigT"),
        call("tgA", "f", "{}", None),
        stop(),
    ];
    let message = encode(&thinker(), &events);
    assert_eq!(types(&message), ["thinking", "tool_use"]);
    assert_eq!(
        returned(&message),
        ["thought Hm, so.", "sealed thought 7 sigT", "call toolu_tgA Json({})"]
    );
}

#[test]
fn c6_a_calls_signature_rides_in_the_thought_before_it() {
    let events =
        [start(), thought("Look."), call("tgA", "f", "{}", Some("sigA")), text("Done."), stop()];
    let message = encode(&thinker(), &events);
    assert_eq!(types(&message), ["thinking", "tool_use", "text"]);
    assert_eq!(
        returned(&message),
        ["thought Look.", "sealed call tgA sigA", "call toolu_tgA Json({})", "text Done."]
    );
}

#[test]
fn a_thought_that_nobody_signed_comes_back_whole() {
    let message = encode(&thinker(), &[start(), thought("Hm."), text("Yes."), stop()]);
    assert_eq!(message["content"][0]["signature"], "");
    assert_eq!(returned(&message), ["thought Hm.", "text Yes."]);
}

#[test]
fn c7_the_signature_of_text_follows_it() {
    let a_call = || call("tgA", "f", "{}", None);
    let signed = || signature(false, 2, "sigX");
    let events = [start(), text("Hel"), text("lo"), signed(), a_call(), stop()];
    let message = encode(&thinker(), &events);
    assert_eq!(types(&message), ["text", "redacted_thinking", "tool_use"]);
    let back = ["text Hello", "sealed text 2 sigX", "call toolu_tgA Json({})"];
    assert_eq!(returned(&message), back);
    // A client that did not ask for thinking does not expect such a block.
    assert_eq!(types(&encode(&plain(), &events)), ["text", "tool_use"]);
}

/// Claude Code prints the last block: it must be the text, and all of it.
#[test]
fn c7_a_signature_neither_cuts_nor_follows_the_last_text() {
    for events in [
        &[start(), text("Hel"), text("lo"), signature(false, 2, "sigX"), stop()][..],
        &[start(), text("Hel"), signature(false, 3, "sigX"), text("lo"), stop()][..],
        &[start(), text("Hello"), signature(false, 0, "sigX"), stop()][..],
    ] {
        assert_eq!(returned(&encode(&thinker(), events)), ["text Hello"]);
    }
}

#[test]
fn c13_a_signature_after_the_call_is_kept() {
    let events = [start(), call("tgA", "f", "{}", None), signature(false, 0, "sigX"), stop()];
    let message = encode(&thinker(), &events);
    assert_eq!(returned(&message), ["call toolu_tgA Json({})", "sealed text 0 sigX"]);
}

#[test]
fn hidden_thoughts_leave_their_signatures() {
    let events = [
        start(),
        thought("secret"),
        signature(true, 6, "sigT"),
        text("Yes."),
        call("tgA", "f", "{}", Some("sigA")),
        stop(),
    ];
    let omitted = Echo { show_thoughts: false, ..thinker() };
    let message = encode(&omitted, &events);
    assert_eq!(types(&message), ["thinking", "text", "redacted_thinking", "tool_use"]);
    assert_eq!(message["content"][0]["thinking"], "");
    let back =
        ["sealed thought 0 sigT", "text Yes.", "sealed call tgA sigA", "call toolu_tgA Json({})"];
    assert_eq!(returned(&message), back);
    let message = encode(&plain(), &events);
    assert_eq!(types(&message), ["redacted_thinking", "text", "redacted_thinking", "tool_use"]);
    assert_eq!(returned(&message), back);
}

#[test]
fn r114_r115_stop_reasons() {
    let reason = |events: &[Event<'_>]| encode(&plain(), events)["stop_reason"].clone();
    let blocked = || FinishReason::Blocked("SAFETY".into());
    let a_call = || call("tgA", "f", "{}", None);
    assert_eq!(reason(&[start(), text("x"), stop()]), "end_turn");
    assert_eq!(reason(&[start(), a_call(), text("x"), stop()]), "tool_use");
    assert_eq!(reason(&[start(), a_call(), finish(FinishReason::ToolCalls)]), "tool_use");
    assert_eq!(reason(&[start(), a_call(), finish(FinishReason::MaxTokens)]), "tool_use");
    assert_eq!(reason(&[start(), text("x"), finish(FinishReason::MaxTokens)]), "max_tokens");
    assert_eq!(reason(&[start(), finish(blocked())]), "refusal");
    assert_eq!(reason(&[start(), a_call(), finish(blocked())]), "tool_use");
}

#[test]
fn a_refusal_says_why() {
    let reason = FinishReason::Blocked("PROHIBITED_CONTENT".into());
    let end = Finish { reason, message: Some("no".into()), ..Finish::default() };
    let message = encode(&plain(), &[start(), Event::Finish(end)]);
    assert_eq!(message["content"], json!([]));
    assert_eq!(message["stop_details"]["explanation"], "PROHIBITED_CONTENT: no");
}

#[test]
fn c8_server_side_parts_go_back_as_they_came() {
    let code = r#"{"language":"PYTHON","code":"print(6*7)\n","id":"c1"}"#;
    let result = r#"{"outcome":"OUTCOME_OK","output":"42\n","id":"c1"}"#;
    let events = [
        start(),
        server("executableCode", code, Some("sigE")),
        server("codeExecutionResult", result, None),
        text("It is 42."),
        stop(),
    ];
    let message = encode(&thinker(), &events);
    assert_eq!(
        types(&message),
        [
            "redacted_thinking",
            "server_tool_use",
            "redacted_thinking",
            "code_execution_tool_result",
            "text"
        ]
    );
    assert_eq!(message["content"][1]["input"], json!({"code": "print(6*7)\n"}));
    let content = json!({
        "type": "code_execution_result", "stdout": "42\n", "stderr": "", "return_code": 0, "content": [],
    });
    assert_eq!(message["content"][3]["content"], content);
    assert_eq!(
        returned(&message),
        [
            format!(r#"sealed part {{"executableCode":{code},"thoughtSignature":"sigE"}}"#),
            format!(r#"sealed part {{"codeExecutionResult":{result}}}"#),
            "text It is 42.".to_owned(),
        ]
    );
}

#[test]
fn unsigned_code_is_shown_and_does_not_come_back() {
    let events = [
        start(),
        server("executableCode", r#"{"language":"PYTHON","code":"1/0"}"#, None),
        server("codeExecutionResult", r#"{"outcome":"OUTCOME_FAILED","output":"oops"}"#, None),
        server("executableCode", r#"{"language":"PYTHON","code":"2"}"#, Some("sigE")),
        server("codeExecutionResult", r#"{"outcome":"OUTCOME_DEADLINE_EXCEEDED"}"#, None),
        stop(),
    ];
    let message = encode(&plain(), &events);
    assert_eq!(message["content"][1]["content"]["stderr"], "oops");
    let back = returned(&message);
    assert!(back.iter().all(|part| part.starts_with("sealed part")), "{back:?}");
    assert_eq!(back.len(), 2);
}

#[test]
fn a_result_without_code_still_has_a_call() {
    let result = r#"{"outcome":"OUTCOME_OK","output":"1"}"#;
    let message = encode(&plain(), &[start(), server("codeExecutionResult", result, None), stop()]);
    assert_eq!(types(&message), ["server_tool_use", "code_execution_tool_result"]);
}

#[test]
fn c8_parts_without_a_readable_form_are_sealed() {
    let body = r#"{"id":"s1","toolType":"GOOGLE_SEARCH_WEB","args":{"queries":["rust"]}}"#;
    let found = r#"{"webSearchQueries":["rust"],"groundingChunks":[{"web":{"uri":"https://a.example","title":"A"}}]}"#;
    let events = [
        start(),
        server("toolCall", body, Some("sigS")),
        server("somethingNew", "{}", None),
        text("Found."),
        Event::Grounding(decode_grounding(raw(found))),
        stop(),
    ];
    let message = encode(&Echo { web_search: true, ..plain() }, &events);
    let back = returned(&message);
    assert_eq!(back[0], format!(r#"sealed part {{"toolCall":{body},"thoughtSignature":"sigS"}}"#));
    assert_eq!(back[1], r#"sealed part {"somethingNew":{}}"#);
    assert_eq!(back[2..], ["text Found."]);
}

#[test]
fn g3_a_search_is_shown_where_one_was_asked_for() {
    let grounding = r#"{
        "webSearchQueries": ["rust gateway", "gemini"],
        "groundingChunks": [
            {"web": {"uri": "https://a.example/", "title": "A \"page\""}},
            {"retrievedContext": {"uri": "x"}},
            {"web": {"uri": "https://b.example/"}}
        ],
        "searchEntryPoint": {"renderedContent": "<b>"}
    }"#;
    let again = r#"{"webSearchQueries": ["gemini"]}"#;
    let events = [
        start(),
        text("Answer."),
        Event::Grounding(decode_grounding(raw(grounding))),
        Event::Grounding(decode_grounding(raw(again))),
        stop(),
    ];
    let message = encode(&Echo { web_search: true, ..plain() }, &events);
    assert_eq!(types(&message), ["text", "server_tool_use", "web_search_tool_result"]);
    assert_eq!(message["content"][1]["input"], json!({"query": "rust gateway, gemini"}));
    let hit = json!({
        "type": "web_search_result", "url": "https://a.example/", "title": "A \"page\"",
        "encrypted_content": "", "page_age": null,
    });
    assert_eq!(message["content"][2]["content"][0], hit);
    assert_eq!(message["content"][2]["content"][1]["title"], "https://b.example/");
    assert_eq!(message["usage"]["server_tool_use"]["web_search_requests"], 2);
    assert_eq!(returned(&message), ["text Answer."]);
    assert_eq!(types(&encode(&plain(), &events)), ["text"]);
}

#[test]
fn media_is_not_dropped() {
    let media = |source| Media {
        mime: Some("image/png".into()),
        source,
        name: None,
        modifiers: Vec::new(),
    };
    let events = [
        start(),
        text("Here:"),
        Event::Media(media(MediaSource::Inline(Text::new("iVBO/+==")))),
        Event::Media(media(MediaSource::Uri(Text::new("https://a.example/p.png")))),
        text("Nice"),
        text(", no?"),
        stop(),
    ];
    let message = encode(&plain(), &events);
    assert_eq!(
        message["content"][0]["text"],
        "Here:\n\n![image/png](data:image/png;base64,iVBO/+==)\n\n![image/png](https://a.example/p.png)\n\nNice, no?"
    );
}

/// A client that did not ask for thinking is not surprised by blocks of it, where the gateway finds
/// the signature by the id of the call.
#[test]
fn r124_stored_signatures_need_no_block_unless_thinking_was_requested() {
    let events = [start(), call("tg1", "Read", "{}", Some("c2ln")), stop()];
    let stored = |echo: Echo| Echo { signatures_stored: true, ..echo };
    assert_eq!(types(&encode(&plain(), &events)), ["redacted_thinking", "tool_use"]);
    assert_eq!(types(&encode(&stored(plain()), &events)), ["tool_use"]);
    assert_eq!(types(&encode(&stored(thinker()), &events)), ["redacted_thinking", "tool_use"]);
}

#[test]
fn d12_a_failure_in_the_middle_is_an_error_event() {
    let failure = Failure::new(FailureKind::Overloaded, "too \"busy\"");
    let stream = stream(&plain(), &[start(), text("Hel"), Event::Fail(failure)]);
    check_stream(stream.as_bytes()).unwrap();
    assert!(
        stream.ends_with(
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\
             \"message\":\"too \\\"busy\\\"\"},\"request_id\":null}\n\n"
        ),
        "{stream}"
    );
}

#[test]
fn k3_a_failure_before_anything_is_left_to_the_status() {
    let mut encoder = StreamEncoder::new(plain(), stamp(), sealer());
    let mut out = Vec::new();
    encoder.event(&Event::Fail(Failure::new(FailureKind::RateLimited, "later")), &mut out);
    encoder.ping(&mut out);
    assert!(out.is_empty());
}

#[test]
fn k2_no_ping_after_the_end() {
    let mut encoder = StreamEncoder::new(plain(), stamp(), sealer());
    let mut out = Vec::new();
    encoder.ping(&mut out);
    assert_eq!(out, b"event: ping\ndata: {\"type\":\"ping\"}\n\n");
    for event in [start(), text("x"), stop()] {
        encoder.event(&event, &mut out);
    }
    let len = out.len();
    encoder.ping(&mut out);
    encoder.event(&text("late"), &mut out);
    assert_eq!(out.len(), len);
}

#[test]
fn toolset_members_keep_their_toolset() {
    let event = Event::Call(Call {
        id: "tgA".into(),
        upstream_id: None,
        tool: ToolName { namespace: Some("computer".into()), name: "key".into() },
        input: CallInput::Json(raw(r#"{"text":"ctrl+s"}"#)),
        signature: None,
    });
    let message = encode(&plain(), &[start(), event, stop()]);
    assert_eq!(message["content"][0]["toolset_name"], "computer");
    assert_eq!(message["content"][0]["name"], "key");
}

#[test]
fn law8_an_encoder_does_not_show_signatures() {
    let mut encoder = StreamEncoder::new(thinker(), stamp(), sealer());
    let mut out = Vec::new();
    for event in [start(), call("tgA", "f", "{}", Some("sigSecret"))] {
        encoder.event(&event, &mut out);
    }
    assert!(!format!("{encoder:?}").contains("sigSecret"));
}

mod checker {
    //! The checker itself: streams that it must refuse.

    use super::*;

    const START: &str = r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}"#;
    const TEXT: &str =
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
    const MORE: &str =
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}"#;
    const CLOSE: &str = r#"{"type":"content_block_stop","index":0}"#;
    const DELTA: &str = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":1}}"#;
    const STOP: &str = r#"{"type":"message_stop"}"#;
    const USE: &str = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"f","input":{}}}"#;
    const INPUT: &str = r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#;
    const THINK: &str = r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#;

    fn is_accepted(frames: &[&str]) -> bool {
        let mut stream = String::new();
        for frame in frames {
            let kind = serde_json::from_str::<Value>(frame).unwrap()["type"].clone();
            stream.push_str(&format!("event: {}\ndata: {frame}\n\n", kind.as_str().unwrap()));
        }
        check_stream(stream.as_bytes()).is_ok()
    }

    #[test]
    fn what_it_refuses() {
        assert!(is_accepted(&[START, TEXT, MORE, CLOSE, DELTA, STOP]));
        assert!(!is_accepted(&[]), "nothing");
        assert!(!is_accepted(&[TEXT, MORE, CLOSE, DELTA, STOP]), "no start");
        assert!(!is_accepted(&[START, TEXT, MORE, DELTA, STOP]), "an open block");
        assert!(!is_accepted(&[START, TEXT, CLOSE, DELTA, STOP]), "an empty text");
        assert!(!is_accepted(&[START, TEXT, MORE, CLOSE, STOP]), "no delta");
        assert!(!is_accepted(&[START, TEXT, MORE, CLOSE, DELTA]), "no stop");
        assert!(!is_accepted(&[START, USE, INPUT, CLOSE, DELTA, STOP]), "end_turn with a call");
        assert!(!is_accepted(&[START, TEXT, INPUT, CLOSE, DELTA, STOP]), "a delta of another type");
        assert!(!is_accepted(&[START, THINK, CLOSE, DELTA, STOP]), "no signature");
        assert!(!is_accepted(&[START, TEXT, MORE, CLOSE, TEXT, MORE, CLOSE, DELTA, STOP]), "index");
        assert!(!is_accepted(&[START, TEXT, MORE, CLOSE, DELTA, STOP, STOP]), "after the end");
        let used = DELTA.replace("end_turn", "tool_use");
        assert!(is_accepted(&[START, USE, INPUT, CLOSE, &used, STOP]));
        assert!(!is_accepted(&[START, USE, CLOSE, &used, STOP]), "a call without input");
        assert!(!is_accepted(&[START, TEXT, MORE, CLOSE, &used, STOP]), "tool_use without a call");
        let bare = DELTA.replace(r#""output_tokens":1"#, "");
        assert!(!is_accepted(&[START, TEXT, MORE, CLOSE, &bare, STOP]), "no tokens");
        assert!(check_stream(format!("data: {START}\n\n").as_bytes()).is_err(), "no event line");
    }
}
