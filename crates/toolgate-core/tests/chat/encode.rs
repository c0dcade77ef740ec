//! Answers, streamed and whole.

use serde_json::{Value, json};
use toolgate_core::canon::{
    Assembler, Backend, Call, CallInput, Encoder as _, Event, Failure, FailureKind, Finish,
    FinishReason, Grammar, IdGen, Issuer, Media, MediaSource, Signature, Sink as _, Start,
    ToolName, Usage,
};
use toolgate_core::chat::{self, Echo, ModelInfo, StreamEncoder};
use toolgate_core::dialect::{DecodeOptions, Stamp};
use toolgate_core::json::{Raw, Text};
use toolgate_core::seal::Sealer;
use toolgate_core::upstream::generate_content::{decode_activity, decode_grounding};

use toolgate_testing::grammar::chat::{self as grammar, Seen};
use toolgate_testing::outline;

fn echo() -> Echo {
    Echo { model: "my-model".into(), ..Echo::default() }
}

fn stamp() -> Stamp {
    Stamp::new(IdGen::new(7), 1_700_000_000)
}

fn text(words: &str) -> Event<'static> {
    Event::Text(Text::new(words))
}

fn thought(words: &str) -> Event<'static> {
    Event::Thought(Text::new(words))
}

fn raw(json: &str) -> Raw<'static> {
    Raw::parse(json.to_owned()).unwrap()
}

fn signature(value: &str) -> Signature<'static> {
    let issuer = Issuer { model: "gemini-3-pro".into(), backend: Backend::Developer };
    Signature::new(value.to_owned(), Some(issuer)).unwrap()
}

fn call(id: &str, name: &str, args: &str, signed: Option<&str>) -> Event<'static> {
    Event::Call(Call {
        id: id.to_owned().into(),
        upstream_id: None,
        tool: ToolName::plain(name.to_owned()),
        input: CallInput::Json(raw(args)),
        signature: signed.map(signature),
    })
}

fn signs(is_thought: bool, len: usize, value: &str) -> Event<'static> {
    Event::Signature { thought: is_thought, len, signature: signature(value) }
}

fn finish(reason: FinishReason) -> Event<'static> {
    Event::Finish(Finish { reason, ..Finish::default() })
}

/// Encodes events both ways and sees to it that both say the same.
#[track_caller]
fn encode(pieces: &[Event<'_>], echo: &Echo, sealer: &Sealer) -> Seen {
    let start = Event::Start(Start::default());
    let events: Vec<_> = std::iter::once(start).chain(pieces.iter().cloned()).collect();
    encode_all(&events, echo, sealer)
}

#[track_caller]
fn encode_all(events: &[Event<'_>], echo: &Echo, sealer: &Sealer) -> Seen {
    let mut encoder = StreamEncoder::new(echo.clone(), stamp(), sealer.clone());
    let (mut assembler, mut grammar) = (Assembler::default(), Grammar::default());
    let mut stream = Vec::new();
    for event in events {
        grammar.feed(event).unwrap();
        assembler.event(event);
        encoder.ping(&mut stream);
        encoder.event(event, &mut stream);
    }
    let seen = grammar::check_stream(&stream, echo.include_usage);
    if let Ok(answer) = assembler.finish() {
        let body = chat::encode_response(&answer, echo, &stamp(), sealer);
        let whole = grammar::check_response(&body);
        assert_eq!(whole.content.unwrap_or_default(), seen.content.clone().unwrap_or_default());
        assert_eq!(whole.reasoning, seen.reasoning);
        assert_eq!(whole.calls, seen.calls);
        assert_eq!(whole.finish, seen.finish);
        for key in ["tool_calls", "function_call", "extra_content"] {
            assert_eq!(whole.message.get(key), seen.message.get(key), "{key}");
        }
        let none = Value::Array(Vec::new());
        assert_eq!(whole.message["annotations"], *seen.message.get("annotations").unwrap_or(&none));
        if echo.include_usage {
            assert_eq!(whole.usage, seen.usage);
        }
    }
    seen
}

#[track_caller]
fn plain(pieces: &[Event<'_>]) -> Seen {
    encode(pieces, &echo(), &Sealer::default())
}

#[test]
fn a_stream_byte_by_byte() {
    let mut encoder =
        StreamEncoder::new(Echo { include_usage: true, ..echo() }, stamp(), Sealer::default());
    let mut out = Vec::new();
    let usage = Usage { prompt: Some(3), candidates: Some(2), ..Usage::default() };
    for event in [
        Event::Start(Start::default()),
        text("Hi\u{2028}"),
        call("tgaaaaaaaaaaaa", "f", r#"{ "a" : "\"" }"#, None),
        Event::Finish(Finish { reason: FinishReason::ToolCalls, usage, ..Finish::default() }),
        text("never"),
    ] {
        encoder.event(&event, &mut out);
    }
    let id = IdGen::new(7).token();
    let head = format!(
        r#"data: {{"id":"chatcmpl-{id}","object":"chat.completion.chunk","created":1700000000,"model":"my-model","choices":["#
    );
    let want = [
        format!(
            "{head}{}",
            r#"{"index":0,"delta":{"role":"assistant","content":"Hi\u2028"},"logprobs":null,"finish_reason":null}],"usage":null}"#
        ),
        format!(
            "{head}{}",
            r#"{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_tgaaaaaaaaaaaa","type":"function","function":{"name":"f","arguments":"{\"a\":\"\\\"\"}"}}]},"logprobs":null,"finish_reason":null}],"usage":null}"#
        ),
        format!(
            "{head}{}",
            r#"{"index":0,"delta":{},"logprobs":null,"finish_reason":"tool_calls"}],"usage":null}"#
        ),
        format!(
            "{head}{}",
            r#"],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}"#
        ),
        "data: [DONE]".to_owned(),
    ];
    assert_eq!(String::from_utf8(out).unwrap(), want.map(|frame| frame + "\n\n").concat());
}

#[test]
fn d1_text_then_a_call_loses_nothing() {
    let seen = plain(&[
        text("Let me "),
        text("look."),
        call("tg1", "weather", r#"{"city":"Rome","n":1.0}"#, None),
        finish(FinishReason::ToolCalls),
    ]);
    assert_eq!(seen.content.as_deref(), Some("Let me look."));
    assert_eq!(
        seen.calls,
        [(
            "call_tg1".into(),
            "function".into(),
            "weather".into(),
            r#"{"city":"Rome","n":1.0}"#.into()
        )]
    );
}

#[test]
fn d2_parallel_calls_keep_apart() {
    let seen = plain(&[
        call("tg1", "f", r#"{"a":1}"#, Some("AA==")),
        text("and"),
        call("tg2", "f", r#"{"b":2}"#, None),
        call("tg3", "f", "{}", None),
        finish(FinishReason::Stop),
    ]);
    let args: Vec<_> = seen.calls.iter().map(|(.., args)| args.as_str()).collect();
    assert_eq!(args, [r#"{"a":1}"#, r#"{"b":2}"#, "{}"]);
    assert_eq!(seen.finish.as_deref(), Some("tool_calls"), "D3: STOP with calls");
}

#[test]
fn r38_finish_reasons() {
    let blocked = || FinishReason::Blocked("SAFETY".into());
    for (reason, alone, with_call) in [
        (FinishReason::Stop, "stop", "tool_calls"),
        (FinishReason::MaxTokens, "length", "tool_calls"),
        (blocked(), "content_filter", "content_filter"),
    ] {
        let seen = plain(&[text("a"), finish(reason.clone())]);
        assert_eq!(seen.finish.as_deref(), Some(alone));
        let seen = plain(&[call("tg1", "f", "{}", None), finish(reason)]);
        assert_eq!(seen.finish.as_deref(), Some(with_call));
    }
    assert_eq!(plain(&[finish(blocked())]).content.as_deref(), Some(""));
}

#[test]
fn d11_thoughts_are_kept_apart_from_words() {
    let seen = plain(&[thought("Hm, "), thought("yes."), text("Yes."), finish(FinishReason::Stop)]);
    assert_eq!((seen.reasoning.as_str(), seen.content.as_deref()), ("Hm, yes.", Some("Yes.")));
}

#[test]
fn i2_freeform_calls_are_custom_calls() {
    let freeform = Event::Call(Call {
        id: "tg1".into(),
        upstream_id: None,
        tool: ToolName::plain("patch"),
        input: CallInput::Text(Text::new("*** Begin \"x\"\n")),
        signature: None,
    });
    let seen = plain(&[freeform, finish(FinishReason::ToolCalls)]);
    assert_eq!(
        seen.calls,
        [("call_tg1".into(), "custom".into(), "patch".into(), "*** Begin \"x\"\n".into())]
    );
}

#[test]
fn legacy_clients_get_a_function_call() {
    let echo = Echo { legacy_functions: true, ..echo() };
    let pieces = [
        call("tg1", "f", r#"{"a":1}"#, Some("AA==")),
        call("tg2", "g", "{}", None),
        finish(FinishReason::ToolCalls),
    ];
    let seen = encode(&pieces, &echo, &Sealer::default());
    assert_eq!(seen.finish.as_deref(), Some("function_call"));
    assert_eq!(seen.message["function_call"]["name"], "f");
    assert_eq!(seen.message["function_call"]["arguments"], r#"{"a":1}"#);
    assert_eq!(
        echoed(&seen.message, &Sealer::default()),
        [r#"model: call  f {"a":1} signed AA== by us"#]
    );
}

/// The parts of a message that a client sends back.
#[track_caller]
fn echoed(message: &Value, sealer: &Sealer) -> Vec<String> {
    let body = json!({"model": "m", "messages": [message]}).to_string();
    let decoded = chat::decode_request(&body, &DecodeOptions { sealer }).unwrap();
    assert_eq!(outline::losses(&decoded.losses), [""; 0]);
    outline::turns(&decoded.request)
}

#[test]
fn c1_c6_signatures_come_back_once_and_in_place() {
    let sealer = Sealer::with_key([3; 32]);
    let pieces = [
        thought("hm"),
        signs(true, 2, "TT=="),
        text("Look"),
        text("ing."),
        signs(false, 4, "XX=="),
        call("tgaaaaaaaaaaaa_id1", "f", "{}", Some("CC+/")),
        call("tgbbbbbbbbbbbb", "f", "{}", None),
        signs(false, 0, "EE=="),
        finish(FinishReason::ToolCalls),
    ];
    let seen = encode(&pieces, &echo(), &sealer);
    let shown = seen.message.to_string();
    for value in ["TT==", "XX==", "CC+/", "EE=="] {
        assert_eq!(shown.matches(value).count(), 1, "{value}");
    }
    assert_eq!(
        echoed(&seen.message, &sealer),
        [
            r#"model: thought "hm""#,
            "model: sealed thought 2",
            r#"model: "Looking.""#,
            "model: sealed text 4",
            "model: sealed text 0",
            "model: call call_tgaaaaaaaaaaaa_id1 f {} signed CC+/ by us",
            "model: call call_tgbbbbbbbbbbbb f {}",
        ],
    );
}

#[test]
fn c3_a_client_with_ids_of_its_own_keeps_the_signature() {
    let sealer = Sealer::with_key([3; 32]);
    let seen = encode(
        &[call("tgaaaaaaaaaaaa", "f", "{}", Some("CC==")), finish(FinishReason::Stop)],
        &echo(),
        &sealer,
    );
    let mut message = seen.message;
    message["tool_calls"][0]["id"] = json!("chosen-by-client");
    assert_eq!(echoed(&message, &sealer), ["model: call chosen-by-client f {} signed CC== by us"]);
    message["tool_calls"][0]["id"] = json!("call_tgzzzzzzzzzzzz");
    assert_eq!(
        echoed(&message, &sealer),
        ["model: sealed call tgaaaaaaaaaaaa", "model: call call_tgzzzzzzzzzzzz f {}"]
    );
}

#[test]
fn c7_text_signed_before_more_text_is_not_missigned() {
    let seen = plain(&[
        text("signed"),
        signs(false, 6, "AA=="),
        text(" and more"),
        signs(false, 0, "BB=="),
        finish(FinishReason::Stop),
    ]);
    assert_eq!(
        echoed(&seen.message, &Sealer::default()),
        [r#"model: "signed and more""#, "model: sealed text 0"],
    );
}

#[test]
fn c8_server_side_parts_come_back_whole() {
    let part =
        r#"{"toolCall":{"id":"s1","toolType":"GOOGLE_SEARCH_WEB"},"thoughtSignature":"SS=="}"#;
    let activity = |issuer| {
        let body = raw(r#"{"id":"s1"}"#);
        Event::Server(decode_activity("toolCall".into(), body, raw(part), issuer))
    };
    let seen = plain(&[
        activity(None),
        text("Found."),
        call("tgaaaaaaaaaaaa", "f", "{}", Some("CC==")),
        finish(FinishReason::ToolCalls),
    ]);
    assert_eq!(seen.content.as_deref(), Some("Found."));
    assert_eq!(
        echoed(&seen.message, &Sealer::default()),
        [
            &format!("model: sealed part {part}"),
            r#"model: "Found.""#,
            "model: call call_tgaaaaaaaaaaaa f {} signed CC== by us",
        ],
    );
    let issuer = Issuer { model: "gemini-3-pro".into(), backend: Backend::Developer };
    let seen = plain(&[activity(Some(issuer)), text("Found."), finish(FinishReason::Stop)]);
    assert_eq!(
        echoed(&seen.message, &Sealer::default()),
        [&format!("model: sealed part {part}"), r#"model: "Found.""#],
    );
}

#[test]
fn pictures_are_markdown() {
    let picture = |source| {
        Event::Media(Media {
            mime: Some("image/png".into()),
            source,
            name: None,
            modifiers: Vec::new(),
        })
    };
    let seen = plain(&[
        text("See"),
        picture(MediaSource::Inline(Text::new("iV+/"))),
        picture(MediaSource::Uri(Text::new("https://a.test/p.png"))),
        finish(FinishReason::Stop),
    ]);
    assert_eq!(
        seen.content.as_deref(),
        Some("See\n![image](data:image/png;base64,iV+/)\n\n![image](https://a.test/p.png)\n"),
    );
}

#[test]
fn g3_grounding_becomes_citations() {
    let grounding = Event::Grounding(decode_grounding(raw(
        r#"{"groundingChunks":[{"web":{"uri":"https://a.test","title":"A"}}],
            "groundingSupports":[{"segment":{"startIndex":3,"endIndex":8,"text":"kühl"},"groundingChunkIndices":[0]}]}"#,
    )));
    let echo = Echo { citations: true, ..echo() };
    let pieces = [text("Es "), text("kühl."), grounding, finish(FinishReason::Stop)];
    let seen = encode(&pieces, &echo, &Sealer::default());
    assert_eq!(
        seen.message["annotations"],
        json!([{"type":"url_citation","url_citation":{"start_index":3,"end_index":7,"url":"https://a.test","title":"A"}}]),
    );
}

#[test]
fn j3_usage_counts_everything_once() {
    let usage = Usage {
        prompt: Some(150_000),
        cached: Some(149_900),
        candidates: Some(20),
        thoughts: Some(5),
        tool_use_prompt: Some(40),
        total: Some(150_065),
    };
    let echo = Echo { include_usage: true, ..echo() };
    let end = Event::Finish(Finish { usage, ..Finish::default() });
    let seen = encode(&[text("a"), end], &echo, &Sealer::default());
    assert_eq!(
        seen.usage.unwrap(),
        json!({"prompt_tokens":150_040,"completion_tokens":25,"total_tokens":150_065,
               "prompt_tokens_details":{"cached_tokens":149_900},"completion_tokens_details":{"reasoning_tokens":5}}),
    );
}

#[test]
fn d12_a_late_failure_is_an_error_frame() {
    let failure = Failure::new(FailureKind::Cut, "the upstream closed the stream");
    let seen = plain(&[text("a"), Event::Fail(failure)]);
    let error = seen.error.unwrap();
    assert_eq!(
        (&error["type"], &error["code"]),
        (&json!("server_error"), &json!("upstream_disconnected"))
    );
    assert_eq!(seen.finish, None);
}

#[test]
fn law8_debug_keeps_signatures_secret() {
    let mut encoder = StreamEncoder::new(echo(), stamp(), Sealer::default());
    let mut out = Vec::new();
    encoder.event(&signs(false, 0, "SECRET=="), &mut out);
    let part = raw(r#"{"toolCall":{},"thoughtSignature":"SECRET=="}"#);
    let kind = "toolCall".into();
    let activity = decode_activity(kind, raw("{}"), part, None);
    encoder.event(&Event::Server(activity), &mut out);
    assert!(!format!("{encoder:?}").contains("SECRET"));
}

#[test]
fn k4_errors() {
    #[track_caller]
    fn check(kind: FailureKind, status: u16, code: Option<&str>, retry_after: Option<u64>) {
        let reply = chat::encode_error(&Failure::new(kind, "it broke"), "req_1");
        let body: Value = serde_json::from_slice(&reply.body).unwrap();
        grammar::check_error(&body);
        assert_eq!((reply.status, reply.retry_after), (status, retry_after), "{kind:?}");
        assert_eq!(body["error"]["code"].as_str(), code, "{kind:?}");
        assert_eq!(body["error"]["message"], "it broke (request id: req_1)");
        assert_eq!(reply.do_not_retry, !kind.is_retryable());
    }
    use FailureKind as Kind;
    check(Kind::InvalidRequest, 400, None, None);
    check(Kind::ContextTooLong, 400, Some("context_length_exceeded"), None);
    check(Kind::Authentication, 401, Some("invalid_api_key"), None);
    check(Kind::Permission, 403, Some("permission_denied"), None);
    check(Kind::NotFound, 404, Some("model_not_found"), None);
    check(Kind::TooLarge, 413, Some("request_too_large"), None);
    check(Kind::RateLimited, 429, Some("rate_limit_exceeded"), Some(5));
    check(Kind::QuotaExhausted, 429, Some("insufficient_quota"), None);
    check(Kind::Billing, 429, Some("insufficient_quota"), None);
    check(Kind::Internal, 500, Some("internal_error"), None);
    check(Kind::Unsupported, 501, Some("unsupported"), None);
    check(Kind::MalformedCall, 502, Some("malformed_function_call"), None);
    check(Kind::EmptyTurn, 502, Some("empty_response"), None);
    check(Kind::Cut, 502, Some("upstream_disconnected"), None);
    check(Kind::UpstreamProtocol, 502, Some("bad_gateway"), None);
    check(Kind::Overloaded, 503, Some("overloaded"), None);
    check(Kind::Timeout, 504, Some("timeout"), None);

    let mut limited = Failure::new(Kind::RateLimited, "slow down");
    limited.retry_after_ms = Some(34_400);
    assert_eq!(chat::encode_error(&limited, "r").retry_after, Some(35));
    let bad = Failure::new(Kind::InvalidRequest, "messages[1].content: expected a string");
    let body: Value = serde_json::from_slice(&chat::encode_error(&bad, "r").body).unwrap();
    assert_eq!(body["error"]["param"], "messages[1].content");
}

#[test]
fn models() {
    let model = ModelInfo { id: "gemini-3-pro".into(), created: 1, owned_by: "google".into() };
    let one = json!({"id":"gemini-3-pro","object":"model","created":1,"owned_by":"google"});
    assert_eq!(serde_json::from_slice::<Value>(&chat::encode_model(&model)).unwrap(), one);
    let list: Value =
        serde_json::from_slice(&chat::encode_models(&[model.clone(), model])).unwrap();
    assert_eq!(list, json!({"object":"list","data":[one.clone(), one]}));
}

proptest::proptest! {
    #[test]
    fn law4_every_stream_follows_the_grammar(
        events in toolgate_testing::events::events(),
        include_usage: bool,
        legacy_functions: bool,
        citations: bool,
    ) {
        let echo = Echo { include_usage, legacy_functions, citations, ..echo() };
        let sealer = Sealer::with_key([1; 32]);
        let seen = encode_all(&events, &echo, &sealer);
        if seen.error.is_none() {
            echoed(&seen.message, &sealer);
        }
    }
}

#[test]
fn several_candidates_are_several_choices() {
    let mut other = Assembler::default();
    for event in [
        Event::Start(Start::default()),
        text("I look."),
        call("tgB", "look", r#"{"at":2}"#, Some("sigB")),
        finish(FinishReason::ToolCalls),
    ] {
        other.event(&event);
    }
    let candidates = vec![other.finish().unwrap()];
    let end = Event::Finish(Finish { candidates, ..Finish::default() });
    let events = [Event::Start(Start::default()), text("It "), text("passes."), end];
    let echo = Echo { include_usage: true, ..echo() };
    let streamed = encode_all(&events, &echo, &Sealer::default());
    let mut whole = Assembler::default();
    events.iter().for_each(|event| whole.event(event));
    let body = chat::encode_response(&whole.finish().unwrap(), &echo, &stamp(), &Sealer::default());
    for seen in [streamed, grammar::check_response(&body)] {
        assert_eq!(seen.content.as_deref(), Some("It passes."));
        assert_eq!(seen.finish.as_deref(), Some("stop"));
        let [other] = seen.others.as_slice() else { panic!("{seen:?}") };
        assert_eq!(other.content.as_deref(), Some("I look."));
        assert_eq!(other.calls[0].2, "look");
        assert_eq!(other.finish.as_deref(), Some("tool_calls"));
        let carried = &other.message["tool_calls"][0]["extra_content"]["google"];
        assert!(carried["thought_signature"].is_string(), "{other:?}");
    }
}
