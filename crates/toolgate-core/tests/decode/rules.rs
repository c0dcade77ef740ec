//! Answers of Gemini, and their ends.

use std::sync::Arc;

use toolgate_core::canon::{Backend, Event, Failure, FailureKind, IdGen, Item};
use toolgate_core::sse::MAX_FRAME;
use toolgate_core::upstream::generate_content::StreamDecoder;

use toolgate_testing::decoding::{Watch, candidate, check, decode, exchange, shown, stream};

/// A whole body decodes to `want`.
#[track_caller]
fn check_body(body: &str, want: &[&str]) {
    assert_eq!(shown(decode(&exchange(), &[body.as_bytes()]).answer.finish()), want, "{body}");
}

fn failure_of(body: &str) -> Failure {
    decode(&exchange(), &[body.as_bytes()]).answer.finish().unwrap_err()
}

#[test]
fn c2_signatures_stay_where_they_were() {
    check(
        &[
            r#"{"thought":true,"thoughtSignature":"YQ"}"#,
            r#"{"thoughtSignature":"Yg"}"#,
            r#"{"text":"é\n","thought":true,"thoughtSignature":"Yw\u003d\u003d"}"#,
            r#"{"text":"x","thoughtSignature":""}"#,
        ],
        "STOP",
        &[
            "signature on thought 0: YQ",
            "signature on text 0: Yg",
            r#"thought "é\n""#,
            "signature on thought 3: Yw==",
            r#"text "x""#,
            "finish Stop",
        ],
    );
    let bytes = stream(&[&candidate(r#"{"text":"x","thoughtSignature":"YQ"}"#, "STOP")]);
    let mut exchange = exchange();
    exchange.target.backend = Backend::Vertex;
    let answer = decode(&exchange, &[&bytes]).answer.finish().unwrap();
    let Some(Item::Signature { signature, .. }) = answer.items.last() else { panic!() };
    assert_eq!(signature.issuer(), Some(&exchange.target.issuer()));
}

#[test]
fn law8_debug_shows_no_signature() {
    let mut decoder = StreamDecoder::new(Arc::new(exchange()), IdGen::new(1));
    let open =
        r#"{"functionCall":{"name":"Bash","willContinue":true},"thoughtSignature":"SECRET1"}"#;
    let mut bytes = stream(&[&candidate(open, "")]);
    bytes.extend_from_slice(br#"data: {"candidates":[{"thoughtSignature":"SECRET2"#);
    decoder.feed(&bytes, &mut |_: &Event<'_>| {});
    let shown = format!("{decoder:?}");
    assert!(!shown.contains("SECRET"), "{shown}");
    assert!(!shown.contains("83, 69, 67, 82, 69, 84"), "{shown}");
}

#[test]
fn media() {
    let inline = r#"{"inlineData":{"mimeType":"image/png","data":"QUJD"},"thoughtSignature":"YQ","mediaResolution":{"level":"X"}}"#;
    let file = r#"{"thought":true,"fileData":{"fileUri":"gs://a/b","mimeType":"video/mp4","displayName":"b"}}"#;
    check(
        &[inline, file, r#"{"inlineData":{"mimeType":"image/png"}}"#],
        "STOP",
        &[
            r#"media Media { mime: Some("image/png"), source: Inline("QUJD"), name: None, modifiers: ["mediaResolution", "thoughtSignature"] }"#,
            r#"media Media { mime: Some("video/mp4"), source: Uri("gs://a/b"), name: Some("b"), modifiers: ["thought"] }"#,
            "finish Stop",
            "PartDropped candidates[0].content.parts",
        ],
    );
}

#[test]
fn r34_unknown_kinds_are_kept() {
    check(
        &[
            r#"{"hologram":{"depth":3},"partMetadata":{"a":1}}"#,
            r#"{"executable_code":{"code":"1"}}"#,
            r#"{},null,{"partMetadata":{}}"#,
            r#"{"text":"x","sparkle":true}"#,
        ],
        "STOP",
        &[
            r#"server hologram {"depth":3}"#,
            r#"server executableCode {"code":"1"}"#,
            r#"text "x""#,
            "finish Stop",
            "UnknownField candidates[0].content.parts.partMetadata",
            "UnknownField candidates[0].content.parts.sparkle",
        ],
    );
}

#[test]
fn r38_finish_reasons() {
    let text = r#"{"text":"x"}"#;
    let blocked = [
        "SAFETY",
        "RECITATION",
        "LANGUAGE",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "IMAGE_SAFETY",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_OTHER",
        "NO_IMAGE",
        "IMAGE_RECITATION",
        "MODEL_ARMOR",
        "ESCALATION",
    ];
    for reason in blocked {
        let finish = format!("finish Blocked({reason:?})");
        check(&[text], reason, &[r#"text "x""#, &finish]);
        check(&[""], reason, &[&finish]);
    }
    for reason in ["MAX_TOKENS", "CONTINUATION"] {
        check(&[text], reason, &[r#"text "x""#, "finish MaxTokens"]);
        check(&[""], reason, &["finish MaxTokens"]);
    }
    for (reason, kind) in [
        ("MALFORMED_FUNCTION_CALL", "MalformedCall"),
        ("UNEXPECTED_TOOL_CALL", "MalformedCall"),
        ("MALFORMED_RESPONSE", "MalformedCall"),
        ("MISSING_THOUGHT_SIGNATURE", "InvalidRequest"),
        ("TOO_MANY_TOOL_CALLS", "Internal"),
        ("OTHER", "Internal"),
    ] {
        check(&[text], reason, &[&format!("fail {kind}")]);
    }
    check(&[text], "SOMETHING_NEW", &[r#"text "x""#, "finish Stop", "Changed finishReason"]);
    check(&[""], "SOMETHING_NEW", &["fail Internal"]);
    for reason in ["", "FINISH_REASON_UNSPECIFIED"] {
        check(&[text], reason, &["fail Cut"]);
    }
    let body = r#"{"candidates":[{"content":{},"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"print(x"}]}"#;
    let failure = failure_of(body);
    assert_eq!(failure.message, "Gemini ended its turn with MALFORMED_FUNCTION_CALL: print(x");
    assert_eq!(failure.upstream_code.as_deref(), Some("MALFORMED_FUNCTION_CALL"));
}

#[test]
fn h2_nothing_that_can_be_seen() {
    for text in ["\u{200b}\u{feff}", " \\n", "\\u200b", ""] {
        check(&[&format!(r#"{{"text":"{text}"}}"#)], "STOP", &["fail EmptyTurn"]);
    }
    check(
        &[r#"{"text":"\u200b"}"#, r#"{"text":"x"}"#],
        "STOP",
        &[r#"text "\u200bx""#, "finish Stop"],
    );
    assert!(FailureKind::EmptyTurn.is_retryable());
}

#[test]
fn h3_imitated_calls_are_counted() {
    check(
        &[r#"{"text":"<call_rec"}"#, r#"{"text":"ord tool=\"read\">{}"}"#],
        "STOP",
        &[r#"text "<call_record tool=\"read\">{}""#, "finish Stop", "CallAsText text"],
    );
}

#[test]
fn d5_finish_reasons_that_say_nothing() {
    let bytes = stream(&[
        r#""content":{"parts":[{"text":"a"}]},"finishReason":null"#,
        r#""content":{"parts":[{"text":"b"}]},"finishReason":"STOP","finish_reason":null"#,
        r#""content":null,"finishReason":"""#,
    ]);
    assert_eq!(
        shown(decode(&exchange(), &[&bytes]).answer.finish()),
        [r#"text "ab""#, "finish Stop"]
    );
}

#[test]
fn usage_is_merged_field_by_field() {
    let body = concat!(
        "data: {\"usageMetadata\":{\"trafficType\":\"ON_DEMAND\"},\"responseId\":\"r1\"}\n\n",
        "data: {\"usageMetadata\":{\"promptTokenCount\":131,\"cachedContentTokenCount\":\"7\"}}\n\n",
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"x\"}]}}],\"modelVersion\":\"m\",\"usageMetadata\":{\"candidatesTokenCount\":1}}\n\n",
        "data: {\"candidates\":[{\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":1278.0,\"thoughtsTokenCount\":3,\"totalTokenCount\":1289}}\n\n",
        "data: {\"usageMetadata\":{\"candidatesTokenCount\":8}}\n\n",
    );
    let watch = decode(&exchange(), &[body.as_bytes()]);
    assert_eq!(watch.events.len(), 3, "{:?}", watch.events);
    let answer = watch.answer.finish().unwrap();
    assert_eq!(
        (answer.start.response_id.as_deref(), answer.start.model_version.as_deref()),
        (Some("r1"), Some("m"))
    );
    assert_eq!((answer.start.usage.prompt, answer.start.usage.candidates), (Some(131), Some(1)));
    let usage = answer.finish.usage;
    assert_eq!(
        (usage.prompt, usage.cached, usage.candidates, usage.thoughts, usage.total),
        (Some(1278), Some(7), Some(8), Some(3), Some(1289))
    );
}

#[test]
fn the_prompt_is_blocked_with_words() {
    let body = r#"{"promptFeedback":{"blockReason":"JAILBREAK","blockReasonMessage":"no"}}"#;
    let finish = decode(&exchange(), &[body.as_bytes()]).answer.finish().unwrap().finish;
    assert_eq!(finish.message.as_deref(), Some("no"));
    check_body(body, &[r#"finish Blocked("JAILBREAK")"#]);
    check_body(r#"{"promptFeedback":{"blockReason":"BLOCKED_REASON_UNSPECIFIED"}}"#, &["fail Cut"]);
    check_body(r#"{"promptFeedback":{"safetyRatings":[]}}"#, &["fail Cut"]);
}

#[test]
fn other_candidates_are_left_out() {
    let body = r#"{"candidates":[{"index":1,"content":{"parts":[{"text":"b"}]},"finishReason":"SAFETY"},{"index":0,"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}"#;
    check_body(body, &[r#"text "a""#, "finish Stop", "PartDropped candidates[1]"]);
}

#[test]
fn snake_case_of_proxies() {
    let body = r#"{"candidates":[{"content":{"parts":[{"function_call":{"name":"TodoWrite","args":{}},"thought_signature":"YQ"}]},"finish_reason":"STOP","citationMetadata":{}}],"usage_metadata":{"prompt_token_count":5},"novel":1}"#;
    check_body(
        body,
        &[
            "call TodoWrite {} id - signature YQ",
            "finish ToolCalls",
            "UnknownField novel",
            "Ignored candidates[0].citationMetadata",
        ],
    );
}

#[test]
fn groundings_are_given_once_each_at_the_end() {
    let bytes = stream(&[
        r#""content":{"parts":[{"text":"a"}]},"groundingMetadata":{"n":1}"#,
        r#""content":{"parts":[{"text":"b"}]},"groundingMetadata":{"n":2}"#,
        r#""groundingMetadata":{"n":1},"finishReason":"STOP""#,
    ]);
    assert_eq!(
        shown(decode(&exchange(), &[&bytes]).answer.finish()),
        [r#"text "ab""#, r#"grounding {"n":1}"#, r#"grounding {"n":2}"#, "finish Stop"]
    );
}

#[test]
fn bodies_that_are_no_answer() {
    for (body, kind) in [
        ("", "Cut"),
        ("data: [DONE]\n\n", "Cut"),
        (r#"{"usageMetadata":{}}"#, "Cut"),
        (r#"{"candidates":[]}"#, "Cut"),
        (r#"{"candidates":[{"content":"#, "Cut"),
        ("data: {\"candidates\":[{\"con", "Cut"),
        ("<html><body>502</body></html>", "UpstreamProtocol"),
        ("no healthy upstream", "UpstreamProtocol"),
        ("data: {\"candidates\":[{]}\n\n", "UpstreamProtocol"),
        ("data: nonsense\n\n", "UpstreamProtocol"),
        ("data: 5\n\n", "UpstreamProtocol"),
        (r#"{"candidates":5}"#, "UpstreamProtocol"),
        (r#"{"candidates":[{"content":{"parts":[5]}}]}"#, "UpstreamProtocol"),
        (r#"{"candidates":[{"content":{"parts":[{"text":5}]}}]}"#, "UpstreamProtocol"),
        (r#"[{"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT"}}]"#, "InvalidRequest"),
        ("data: [{\"error\":{\"code\":404,\"message\":\"m\"}}]\n\n", "NotFound"),
        ("{\"error\":{\"status\":\"UNAVAILABLE\"}}", "Overloaded"),
        ("{\"error\":\"boom\"}", "Internal"),
    ] {
        check_body(body, &[&format!("fail {kind}")]);
    }
    let noise = failure_of("no healthy upstream\nat all");
    assert!(noise.message.ends_with("no healthy upstream"), "{}", noise.message);
}

#[test]
fn nothing_follows_a_failure() {
    let good = stream(&[&candidate(r#"{"text":"x"}"#, "STOP")]);
    let body = [b"data: {\"error\":{\"code\":503}}\n\n".as_slice(), &good].concat();
    let watch = decode(&exchange(), &[&body, &good]);
    assert_eq!(watch.events.len(), 1);
}

#[test]
fn a_stop_and_then_an_error_is_an_error() {
    let good = String::from_utf8(stream(&[&candidate(r#"{"text":"x"}"#, "STOP")])).unwrap();
    check_body(&format!("{good}{{\n\"error\":{{\"code\":503}}}}"), &["fail Overloaded"]);
    check_body(&format!("{good}{{\n\"error\":{{\"cod"), &["fail Cut"]);
}

#[test]
fn an_abort_is_the_last_word() {
    let mut decoder = StreamDecoder::new(Arc::new(exchange()), IdGen::new(1));
    let mut watch = Watch::default();
    decoder.feed(&stream(&[&candidate(r#"{"text":"x"}"#, "")]), &mut watch);
    decoder.abort(Failure::new(FailureKind::Timeout, "silent for too long"), &mut watch);
    decoder.abort(Failure::new(FailureKind::Cut, "again"), &mut watch);
    decoder.finish(&mut watch);
    assert!(decoder.is_ended());
    assert_eq!(watch.events.len(), 3);
    assert_eq!(shown(watch.answer.finish()), ["fail Timeout"]);
}

#[test]
fn frames_have_a_limit() {
    let text = "x".repeat(1000);
    let bytes = stream(&[&candidate(&format!(r#"{{"text":"{text}"}}"#), "STOP")]);
    for (limit, ends) in [(500, "fail UpstreamProtocol"), (MAX_FRAME, "finish Stop")] {
        for size in [1, bytes.len()] {
            let mut decoder =
                StreamDecoder::new(Arc::new(exchange()), IdGen::new(1)).with_max_frame(limit);
            let mut watch = Watch::default();
            bytes.chunks(size).for_each(|piece| decoder.feed(piece, &mut watch));
            decoder.finish(&mut watch);
            assert_eq!(shown(watch.answer.finish()).last().unwrap(), ends);
        }
    }
}

#[test]
fn broken_unicode_is_no_reason_to_fail() {
    let bytes = stream(&[&candidate(r#"{"text":"a@b\ud83d"}"#, "STOP")]);
    let bytes: Vec<u8> = bytes.iter().map(|it| if *it == b'@' { 0xFF } else { *it }).collect();
    assert_eq!(
        shown(decode(&exchange(), &[&bytes]).answer.finish()),
        ["text \"a\u{fffd}b\\ufffd\"", "finish Stop", "Changed candidates"]
    );
}

/// R38: an answer that Gemini stops in the middle goes on in the answer to the next request. It has one
/// start, one end and the tokens of both; a call may be cut in two.
#[test]
fn r38_an_answer_goes_on_after_a_continuation() {
    let chunk = |part: &str, more: &str, tokens: u32| {
        format!(
            "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{part}]}}{more}}}],\"usageMetadata\":{{\"promptTokenCount\":10,\"candidatesTokenCount\":{tokens}}}}}\r\n\r\n"
        )
    };
    let stop = r#","finishReason":"CONTINUATION","continuationToken":"QQ==""#;
    let open = r#"{"functionCall":{"name":"Bash","willContinue":true,"partialArgs":[{"jsonPath":"$.command","stringValue":"l","willContinue":true}]}}"#;
    let rest = r#"{"functionCall":{"partialArgs":[{"jsonPath":"$.command","stringValue":"s"}]}}"#;
    let pieces = [
        chunk(r#"{"text":"One "}"#, stop, 2),
        chunk(r#"{"text":"two."}"#, "", 3) + &chunk(open, stop, 4),
        chunk(rest, r#","finishReason":"STOP""#, 5),
    ];
    for size in [1, 7, 10_000] {
        let mut decoder = StreamDecoder::new(Arc::new(exchange()), IdGen::new(1));
        let mut watch = Watch::default();
        for (at, piece) in pieces.iter().enumerate() {
            for bytes in piece.as_bytes().chunks(size) {
                decoder.feed(bytes, &mut watch);
            }
            let token = decoder.pause(&mut watch);
            assert_eq!(token.as_deref(), (at < 2).then_some("QQ=="));
        }
        let answer = watch.answer.finish().unwrap();
        let usage = answer.finish.usage;
        assert_eq!((usage.prompt, usage.candidates), (Some(30), Some(11)));
        let shown = shown(Ok(answer));
        assert_eq!(shown[0], r#"text "One two.""#);
        assert!(shown[1].contains(r#"{"command":"ls"}"#), "{shown:?}");
        assert_eq!(shown[2..], ["finish ToolCalls"]);
    }
    // Without a token there is nothing to go on with, and an end is an end.
    let mut decoder = StreamDecoder::new(Arc::new(exchange()), IdGen::new(1));
    let mut watch = Watch::default();
    let alone = chunk(r#"{"text":"x"}"#, r#","finishReason":"CONTINUATION""#, 1);
    decoder.feed(alone.as_bytes(), &mut watch);
    assert_eq!(decoder.pause(&mut watch), None);
    assert_eq!(shown(watch.answer.finish()), [r#"text "x""#, "finish MaxTokens"]);
}

/// R30, R32, R60: a part without a call is no call, and a chunk with nothing in it is no event.
#[test]
fn r30_r32_r60_what_is_not_there_gives_nothing() {
    let chunks = [
        r#"{"usageMetadata":{"promptTokenCount":3}}"#,
        r#"{"candidates":[{"content":{"role":"model"},"index":0}]}"#,
        r#"{"candidates":[{"content":{"parts":[]}}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":""}]}}]}"#,
        r#"{"candidates":[]}"#,
    ];
    let end = r#"{"candidates":[{"content":{"parts":[{"text":"x"},{"functionCall":{"name":"Bash","args":{"command":"ls"}}}]},"finishReason":"STOP"}]}"#;
    let frames = chunks.into_iter().chain([end]).map(|chunk| format!("data: {chunk}\r\n\r\n"));
    let watch = decode(&exchange(), &[frames.collect::<String>().as_bytes()]);
    assert_eq!(watch.events.len(), 4, "start, text, call, finish: {:?}", watch.events);
}
