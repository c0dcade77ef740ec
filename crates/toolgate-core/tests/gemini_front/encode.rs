//! Answers, streamed and whole.

use serde_json::{Value, json};
use toolgate_core::canon::{
    Assembler, Call, CallInput, Encoder as _, Event, Failure, FailureKind, Finish, FinishReason,
    Grammar, IdGen, Media, MediaSource, Signature, Sink as _, Start, ToolName, Usage,
};
use toolgate_core::dialect::{DecodeOptions, Stamp};
use toolgate_core::gemini::{self, Echo, Framing, StreamEncoder};
use toolgate_core::json::{Raw, Text};
use toolgate_core::seal::Sealer;
use toolgate_core::upstream::generate_content::{decode_activity, decode_grounding};

use toolgate_testing::grammar::gemini::{self as grammar, Seen};
use toolgate_testing::outline;

fn stamp() -> Stamp {
    Stamp::new(IdGen::new(7), 1_700_000_000)
}

fn text(words: &str) -> Event<'static> {
    Event::Text(Text::new(words))
}

fn raw(json: &str) -> Raw<'static> {
    Raw::parse(json.to_owned()).unwrap()
}

fn signature(value: &str) -> Signature<'static> {
    Signature::new(value.to_owned(), None).unwrap()
}

fn call(upstream_id: Option<&'static str>, args: &str, signed: Option<&str>) -> Event<'static> {
    Event::Call(Call {
        id: "tgaaaaaaaaaaaa".into(),
        upstream_id: upstream_id.map(Into::into),
        tool: ToolName::plain("f"),
        input: CallInput::Json(raw(args)),
        signature: signed.map(signature),
    })
}

fn signs(thought: bool, len: usize, value: &str) -> Event<'static> {
    Event::Signature { thought, len, signature: signature(value) }
}

fn finish(reason: FinishReason) -> Event<'static> {
    Event::Finish(Finish { reason, ..Finish::default() })
}

fn stream(pieces: &[Event<'_>], framing: Framing) -> Vec<u8> {
    let echo = Echo { model: "gemini-3-pro".into(), framing };
    let mut encoder = StreamEncoder::new(echo, stamp(), Sealer::default());
    let mut grammar = Grammar::default();
    let mut out = Vec::new();
    for event in pieces {
        grammar.feed(event).unwrap();
        encoder.ping(&mut out);
        encoder.event(event, &mut out);
    }
    out
}

/// Encodes events in all three ways: both streams have the same content, and a whole answer has it
/// say together.
#[track_caller]
fn encode(pieces: &[Event<'_>]) -> (Seen, Option<Seen>) {
    let start = Event::Start(Start {
        response_id: Some("resp1".into()),
        model_version: Some("gemini-3-pro-001".into()),
        usage: Usage { prompt: Some(9), ..Usage::default() },
    });
    let events: Vec<_> = std::iter::once(start).chain(pieces.iter().cloned()).collect();
    encode_all(&events)
}

#[track_caller]
fn encode_all(events: &[Event<'_>]) -> (Seen, Option<Seen>) {
    let sse = grammar::check_sse(&stream(events, Framing::Sse));
    let array = grammar::check_array(&stream(events, Framing::Array));
    assert_eq!((&sse.parts, &sse.finish, &sse.usage), (&array.parts, &array.finish, &array.usage));
    assert_eq!((&sse.error, &sse.grounding), (&array.error, &array.grounding));
    let mut assembler = Assembler::default();
    for event in events {
        assembler.event(event);
    }
    let echo = Echo { model: "gemini-3-pro".into(), framing: Framing::Sse };
    let whole = assembler.finish().ok().map(|answer| {
        let body = gemini::encode_response(&answer, &echo, &stamp(), &Sealer::default());
        let whole = grammar::check_response(&body);
        assert_eq!((whole.text(), &whole.finish), (sse.text(), &sse.finish));
        whole
    });
    (sse, whole)
}

#[test]
fn a_stream_byte_by_byte() {
    let pieces = [
        Event::Start(Start {
            response_id: Some("r".into()),
            model_version: None,
            usage: Usage { prompt: Some(3), ..Usage::default() },
        }),
        text("Hi\u{2028}"),
        call(Some("x1"), r#"{ "b": 1.0 }"#, Some("A+/=")),
        Event::Finish(Finish {
            usage: Usage { prompt: Some(3), thoughts: Some(2), total: Some(5), ..Usage::default() },
            ..Finish::default()
        }),
    ];
    let chunks = [
        r#"{"candidates":[{"content":{"parts":[{"text":"Hi\u2028"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":3},"modelVersion":"gemini-3-pro","responseId":"r"}"#,
        r#"{"candidates":[{"content":{"parts":[{"functionCall":{"id":"x1","name":"f","args":{"b":1.0}},"thoughtSignature":"A+/="}],"role":"model"},"index":0}],"modelVersion":"gemini-3-pro","responseId":"r"}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":3,"thoughtsTokenCount":2,"totalTokenCount":5},"modelVersion":"gemini-3-pro","responseId":"r"}"#,
    ];
    let sse: String = chunks.map(|chunk| format!("data: {chunk}\r\n\r\n")).concat();
    assert_eq!(String::from_utf8(stream(&pieces, Framing::Sse)).unwrap(), sse);
    let array = format!("[{}]", chunks.join("\n,\r\n"));
    // Signs of life are white space between the elements.
    let got = String::from_utf8(stream(&pieces, Framing::Array)).unwrap();
    assert_eq!(got.replace('\n', ""), array.replace('\n', ""));
}

#[test]
fn calls_have_geminis_id_or_ours() {
    let (sse, whole) = encode(&[
        call(Some("x1"), "{}", None),
        call(None, r#"{"a":[1.0]}"#, None),
        finish(FinishReason::ToolCalls),
    ]);
    let want = [
        json!({"functionCall":{"id":"x1","name":"f","args":{}}}),
        json!({"functionCall":{"id":"tgaaaaaaaaaaaa","name":"f","args":{"a":[1.0]}}}),
    ];
    assert_eq!(sse.parts[..2], want);
    assert_eq!(whole.unwrap().parts, want);
    assert_eq!(sse.finish.as_deref(), Some("STOP"));
}

#[test]
fn c7_signatures_stay_with_their_part() {
    let (sse, whole) = encode(&[
        Event::Thought(Text::new("hm")),
        signs(true, 2, "TT=="),
        text("Hello "),
        text("wörld"),
        signs(false, 6, "XX=="),
        text("more"),
        signs(false, 0, "EE=="),
        finish(FinishReason::Stop),
    ]);
    assert_eq!(
        sse.parts,
        [
            json!({"text":"hm","thought":true,"thoughtSignature":"TT=="}),
            json!({"text":"Hello "}),
            json!({"text":"wörld","thoughtSignature":"XX=="}),
            json!({"text":"more"}),
            json!({"text":"","thoughtSignature":"EE=="}),
            json!({"text":""}),
        ],
    );
    assert_eq!(
        whole.unwrap().parts,
        [
            json!({"text":"hm","thought":true,"thoughtSignature":"TT=="}),
            json!({"text":"Hello "}),
            json!({"text":"wörld","thoughtSignature":"XX=="}),
            json!({"text":"more"}),
            json!({"text":"","thoughtSignature":"EE=="}),
        ],
    );
}

#[test]
fn what_is_sent_can_be_sent_back() {
    let part = r#"{"toolCall":{"id":"s1"},"thoughtSignature":"SS=="}"#;
    let kind = "toolCall".into();
    let server = decode_activity(kind, raw("{}"), raw(part), None);
    let picture = Media {
        mime: Some("image/png".into()),
        source: MediaSource::Inline(Text::new("iV")),
        name: None,
        modifiers: vec![("thoughtSignature".into(), raw(r#""PP==""#))],
    };
    let (sse, _) = encode(&[
        Event::Server(server),
        Event::Media(picture),
        call(Some("x1"), r#"{"a":"22 °C"}"#, Some("CC==")),
        finish(FinishReason::ToolCalls),
    ]);
    let body = json!({"contents": [{"role": "model", "parts": sse.parts}]}).to_string();
    let sealer = Sealer::default();
    let decoded =
        gemini::decode_request(&body, "m", false, &DecodeOptions { sealer: &sealer }).unwrap();
    assert_eq!(
        outline::turns(&decoded.request),
        [
            format!("model: gemini {part}"),
            r#"model: media image/png inline "iV" thoughtSignature="PP==""#.to_owned(),
            r#"model: call x1 f {"a":"22 °C"} signed CC=="#.to_owned(),
            r#"model: """#.to_owned(),
        ],
    );
    assert_eq!(outline::tools(&decoded.request), [""; 0]);
    assert_eq!(outline::losses(&decoded.losses), [""; 0]);
}

#[test]
fn r38_finish_reasons() {
    for (reason, want) in [
        (FinishReason::Stop, "STOP"),
        (FinishReason::ToolCalls, "STOP"),
        (FinishReason::MaxTokens, "MAX_TOKENS"),
        (FinishReason::Blocked("PROHIBITED_CONTENT".into()), "PROHIBITED_CONTENT"),
    ] {
        let (sse, _) = encode(&[text("a"), finish(reason)]);
        assert_eq!(sse.finish.as_deref(), Some(want));
    }
    let (_, whole) = encode(&[finish(FinishReason::MaxTokens)]);
    assert_eq!(whole.unwrap().parts, [json!(null); 0]);
}

#[test]
fn r38_a_blocked_prompt_has_no_candidate() {
    let blocked = |message: Option<&str>| {
        Event::Finish(Finish {
            reason: FinishReason::Blocked("PROHIBITED_CONTENT".into()),
            message: message.map(str::to_owned),
            is_prompt_blocked: true,
            ..Finish::default()
        })
    };
    for message in [None, Some("no")] {
        let (sse, whole) = encode(&[blocked(message)]);
        for seen in [sse, whole.unwrap()] {
            assert_eq!(seen.finish.as_deref(), Some("PROHIBITED_CONTENT"));
            assert!(seen.parts.is_empty());
        }
    }
}

#[test]
fn citations_and_read_pages_are_passed_on() {
    let members = [
        ("urlContextMetadata", r#"{"urlMetadata":[{"retrievedUrl":"https://a.test"}]}"#),
        ("citationMetadata", r#"{"citationSources":[{"startIndex":1}]}"#),
        ("citationMetadata", r#"{"citationSources":[{"startIndex":2}]}"#),
    ];
    let metadata = members.map(|(name, json)| (name.into(), raw(json))).to_vec();
    let end = Event::Finish(Finish { metadata, ..Finish::default() });
    let want = vec![
        (
            "citationMetadata".to_owned(),
            json!({"citationSources": [{"startIndex": 1}, {"startIndex": 2}]}),
        ),
        (
            "urlContextMetadata".to_owned(),
            json!({"urlMetadata": [{"retrievedUrl": "https://a.test"}]}),
        ),
    ];
    let (sse, whole) = encode(&[text("a"), end]);
    assert_eq!((sse.metadata, whole.unwrap().metadata), (want.clone(), want));
}

#[test]
fn g3_grounding_is_passed_on() {
    let first =
        r#"{"webSearchQueries":["a"],"groundingChunks":[{"web":{"uri":"https://a.test"}}]}"#;
    let more = r#"{"webSearchQueries":["b"],"groundingChunks":[],"searchEntryPoint":{"renderedContent":"x"}}"#;
    let (sse, whole) = encode(&[
        text("a"),
        Event::Grounding(decode_grounding(raw(first))),
        Event::Grounding(decode_grounding(raw(more))),
        finish(FinishReason::Stop),
    ]);
    assert_eq!(sse.grounding.len(), 2);
    assert_eq!(
        whole.unwrap().grounding,
        [json!({"webSearchQueries":["a","b"],"groundingChunks":[{"web":{"uri":"https://a.test"}}],
                "searchEntryPoint":{"renderedContent":"x"}})],
    );
    let (_, whole) = encode(&[
        text("a"),
        Event::Grounding(decode_grounding(raw(first))),
        finish(FinishReason::Stop),
    ]);
    assert_eq!(whole.unwrap().grounding, [serde_json::from_str::<Value>(first).unwrap()]);
}

#[test]
fn d12_late_failures() {
    let cut = Failure::new(FailureKind::Cut, "the upstream closed the stream");
    let (sse, _) = encode(&[text("a"), Event::Fail(cut.clone())]);
    assert_eq!(sse.error.unwrap()["code"], 503);
    assert!(sse.finish.is_none());
    // As an event for those who read events, and bare, as Google does it, for those who look for that.
    let both = String::from_utf8(stream(&[Event::Fail(cut.clone())], Framing::Sse)).unwrap();
    let (framed, bare) = both.split_once("\r\n\r\n").unwrap();
    assert_eq!(framed.strip_prefix("data: "), bare.strip_suffix('\n'), "{both}");
    // Who has a call goes on from it.
    let (sse, _) = encode(&[call(None, "{}", None), Event::Fail(cut.clone())]);
    assert!(sse.error.is_none() && sse.finish.is_none());
    assert!(
        String::from_utf8(stream(&[Event::Fail(cut)], Framing::Array))
            .unwrap()
            .starts_with("[{\"error\":")
    );

    let own = Failure::new(FailureKind::Overloaded, "busy");
    let (sse, _) = encode(&[text("a"), Event::Fail(own)]);
    assert_eq!(sse.error.unwrap(), json!({"code":503,"message":"busy","status":"UNAVAILABLE"}));

    let mut theirs = Failure::new(FailureKind::RateLimited, "quota");
    theirs.upstream_body =
        Some("[{\n \"error\": {\"code\": 429, \"message\": \"slow\", \"status\": \"RESOURCE_EXHAUSTED\"}\n}]".into());
    let (sse, _) = encode(&[text("a"), Event::Fail(theirs)]);
    assert_eq!(
        sse.error.unwrap(),
        json!({"code":429,"message":"slow","status":"RESOURCE_EXHAUSTED"})
    );
}

#[test]
fn k4_errors() {
    #[track_caller]
    fn check(kind: FailureKind, status: u16, word: &str) {
        let failure = Failure::new(kind, "it broke");
        for (reply, list) in [
            (gemini::encode_error(&failure, "req_1"), false),
            (gemini::encode_error_list(&failure, "req_1"), true),
        ] {
            let mut body: Value = serde_json::from_slice(&reply.body).unwrap();
            if list {
                body = body[0].take();
            }
            grammar::check_error(&body);
            assert_eq!(reply.status, status, "{kind:?}");
            assert_eq!(body["error"]["code"], status);
            assert_eq!(body["error"]["status"], word);
            assert_eq!(body["error"]["message"], "it broke (request id: req_1)");
        }
    }
    use FailureKind as Kind;
    check(Kind::InvalidRequest, 400, "INVALID_ARGUMENT");
    check(Kind::ContextTooLong, 400, "INVALID_ARGUMENT");
    check(Kind::Authentication, 401, "UNAUTHENTICATED");
    check(Kind::Billing, 402, "RESOURCE_EXHAUSTED");
    check(Kind::Permission, 403, "PERMISSION_DENIED");
    check(Kind::NotFound, 404, "NOT_FOUND");
    check(Kind::TooLarge, 413, "INVALID_ARGUMENT");
    check(Kind::RateLimited, 429, "RESOURCE_EXHAUSTED");
    check(Kind::QuotaExhausted, 429, "RESOURCE_EXHAUSTED");
    check(Kind::Internal, 500, "INTERNAL");
    check(Kind::MalformedCall, 500, "INTERNAL");
    check(Kind::EmptyTurn, 500, "INTERNAL");
    check(Kind::UpstreamProtocol, 500, "INTERNAL");
    check(Kind::Unsupported, 501, "UNIMPLEMENTED");
    check(Kind::Cut, 503, "UNAVAILABLE");
    check(Kind::Overloaded, 503, "UNAVAILABLE");
    check(Kind::Timeout, 504, "DEADLINE_EXCEEDED");
}

#[test]
fn errors_have_details() {
    let details = |failure: &Failure| {
        let body: Value = serde_json::from_slice(&gemini::encode_error(failure, "r").body).unwrap();
        body["error"]["details"].clone()
    };
    let bad = Failure::new(FailureKind::InvalidRequest, "contents[0].role: expected user");
    assert_eq!(
        details(&bad),
        json!([{"@type":"type.googleapis.com/google.rpc.BadRequest",
                "fieldViolations":[{"field":"contents[0].role","description":"expected user"}]}]),
    );
    let mut limited = Failure::new(FailureKind::RateLimited, "slow down");
    let retry = |delay: &str| json!([{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":delay}]);
    assert_eq!(details(&limited), retry("5s"));
    limited.retry_after_ms = Some(34_400);
    assert_eq!(details(&limited), retry("34.400s"));
    assert_eq!(gemini::encode_error(&limited, "r").retry_after, Some(35));
}

#[test]
fn what_google_said_is_passed_on_unchanged() {
    let own = "{\n  \"error\": {\n    \"code\": 400,\n    \"message\": \"API key not valid.\",\n    \"status\": \"INVALID_ARGUMENT\"\n  }\n}\n";
    let mut failure = Failure::new(FailureKind::Authentication, "the key is wrong");
    failure.upstream_status = Some(400);
    failure.upstream_body = Some(own.into());
    let reply = gemini::encode_error(&failure, "req_1");
    assert_eq!((reply.status, reply.body.as_slice()), (400, own.as_bytes()));
    let list = gemini::encode_error_list(&failure, "req_1");
    assert_eq!(
        list.body,
        br#"[{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT"}}]"#
    );

    failure.upstream_body = Some("<html>413</html>".into());
    let reply = gemini::encode_error(&failure, "req_1");
    grammar::check_error(&serde_json::from_slice(&reply.body).unwrap());
    assert_eq!(reply.status, 401);
}

proptest::proptest! {
    #[test]
    fn law4_every_stream_follows_the_grammar(events in toolgate_testing::events::events()) {
        let (seen, _) = encode_all(&events);
        let body = json!({"contents": [{"role": "model", "parts": seen.parts}]}).to_string();
        let sealer = Sealer::default();
        let options = DecodeOptions { sealer: &sealer };
        let decoded = gemini::decode_request(&body, "m", false, &options).unwrap();
        assert_eq!(decoded.request.calls().count(), body.matches("functionCall").count());
    }
}
