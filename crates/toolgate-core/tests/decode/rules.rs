//! Gemini's quirks, one by one.

use std::sync::Arc;

use toolgate_core::canon::{Event, Failure, FailureKind, IdGen, Item, ToolName};
use toolgate_core::gemini::{Backend, Exchange, StreamDecoder, ToolEntry, ToolInput};
use toolgate_core::sse::MAX_FRAME;

use crate::support::{Watch, candidate, decode, exchange, shown, stream};

/// Chunks with these parts, the last one with `finish`, decode to `want`.
#[track_caller]
fn check_with(exchange: &Exchange, chunks: &[&str], finish: &str, want: &[&str]) {
    let last = chunks.len().saturating_sub(1);
    let candidates: Vec<String> = chunks
        .iter()
        .enumerate()
        .map(|(index, parts)| candidate(parts, if index == last { finish } else { "" }))
        .collect();
    let bytes = stream(&candidates.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(shown(decode(exchange, &[&bytes]).answer.finish()), want);
}

#[track_caller]
fn check(chunks: &[&str], finish: &str, want: &[&str]) {
    check_with(&exchange(), chunks, finish, want);
}

/// A whole body decodes to `want`.
#[track_caller]
fn check_body(body: &str, want: &[&str]) {
    assert_eq!(shown(decode(&exchange(), &[body.as_bytes()]).answer.finish()), want, "{body}");
}

fn failure_of(body: &str) -> Failure {
    decode(&exchange(), &[body.as_bytes()]).answer.finish().unwrap_err()
}

#[test]
fn b4_names_are_mended() {
    let bash =
        |name: &str| format!(r#"{{"functionCall":{{"name":"{name}","args":{{"command":"ls"}}}}}}"#);
    let call = r#"call Bash {"command":"ls"} id - signature -"#;
    check(&[&bash("Bash")], "STOP", &[call, "finish ToolCalls"]);
    for name in
        ["default_api:Bash", "default_api.Bash", "functions.Bash", "bash", "default_api:bash"]
    {
        check(&[&bash(name)], "STOP", &[call, "finish ToolCalls", "NameRepaired calls.Bash.name"]);
    }
}

#[test]
fn r130_an_undeclared_tool_is_passed_on() {
    check(
        &[r#"{"functionCall":{"name":"Launch","args":{"x":1.0}}}"#],
        "STOP",
        &[
            r#"call Launch {"x":1.0} id - signature -"#,
            "finish ToolCalls",
            "UnknownTool calls.Launch.name",
        ],
    );
}

#[test]
fn b1_aliases_are_reversed() {
    let mut exchange = exchange();
    exchange.tools.push(ToolEntry {
        alias: "repl_run_1a2b3c4d".into(),
        name: ToolName { namespace: Some("mcp__repl".into()), name: "run/it".into() },
        input: ToolInput::Freeform,
    });
    check_with(
        &exchange,
        &[r#"{"functionCall":{"name":"repl_run_1a2b3c4d","args":{"input":"1+1"}}}"#],
        "STOP",
        &[r#"call mcp__repl.run/it freeform "1+1" id - signature -"#, "finish ToolCalls"],
    );
}

#[test]
fn a15_arguments_are_mended() {
    check(
        &[
            r#"{"functionCall":{"name":"Bash","args":{"command":"ls","timeout":"5","run_in_background":null}}}"#,
        ],
        "STOP",
        &[
            r#"call Bash {"command":"ls","timeout":5} id - signature -"#,
            "finish ToolCalls",
            "ArgumentRepaired calls.Bash.args.timeout",
            "ArgumentRepaired calls.Bash.args.run_in_background",
        ],
    );
    check(
        &[r#"{"functionCall":{"name":"Read","args":{"path":"x"}}}"#],
        "STOP",
        &[
            r#"call Read {"path":"x"} id - signature -"#,
            "finish ToolCalls",
            "ArgumentViolation calls.Read.args.path",
            "ArgumentViolation calls.Read.args.file_path",
        ],
    );
}

#[test]
fn law6_arguments_keep_their_bytes() {
    let args =
        r#"{"z": 1.50,  "a":{"title":"t","$ref":"r","n":12345678901234567890},"é":"\u00e9"}"#;
    let part = format!(r#"{{"functionCall":{{"name":"other","args":{args}}}}}"#);
    let bytes = stream(&[&candidate(&part, "STOP")]);
    let answer = decode(&exchange(), &[&bytes]).answer.finish().unwrap();
    let Some(Item::Call(call)) = answer.items.first() else { panic!() };
    assert_eq!(format!("{:?}", call.input), format!("Json({args})"));
}

#[test]
fn arguments_that_are_no_object() {
    let call = |args: &str| format!(r#"{{"functionCall":{{"name":"Bash","args":{args}}}}}"#);
    check(
        &[&call(r#""{\"command\":\"ls\"}""#)],
        "STOP",
        &[
            r#"call Bash {"command":"ls"} id - signature -"#,
            "finish ToolCalls",
            "ArgumentRepaired calls.Bash.args",
        ],
    );
    check(
        &[&call("[1]")],
        "STOP",
        &[
            r#"call Bash {"input":[1]} id - signature -"#,
            "finish ToolCalls",
            "ArgumentViolation calls.Bash.args",
        ],
    );
    check(
        &[&call("null").replace("Bash", "TodoWrite")],
        "STOP",
        &["call TodoWrite {} id - signature -", "finish ToolCalls"],
    );
}

#[test]
fn i2_freeform_tools_get_text() {
    let mut exchange = exchange();
    exchange.tools.push(ToolEntry {
        alias: "apply_patch".into(),
        name: ToolName::plain("apply_patch"),
        input: ToolInput::Freeform,
    });
    for (args, text, losses) in [
        (r#"{"input":"*** Begin Patch\n"}"#, r#""*** Begin Patch\n""#, 0),
        (r#"{"input":"x","content":"y"}"#, r#""x""#, 0),
        (r#"{"content":"*** Begin"}"#, r#""*** Begin""#, 1),
        (r#"{"patch":"*** Begin","strip":1}"#, r#""*** Begin""#, 1),
        (r#""*** Begin""#, r#""*** Begin""#, 1),
        (r#"{"input":{"a": 1}}"#, r#""{\"a\":1}""#, 1),
        (r#"{"a":"x", "b":"y"}"#, r#""{\"a\":\"x\",\"b\":\"y\"}""#, 1),
        ("{}", r#""""#, 0),
    ] {
        let part = format!(r#"{{"functionCall":{{"name":"apply_patch","args":{args}}}}}"#);
        let call = format!("call apply_patch freeform {text} id - signature -");
        let mut want = vec![call.as_str(), "finish ToolCalls"];
        want.extend(std::iter::repeat_n("ArgumentRepaired calls.apply_patch.args", losses));
        check_with(&exchange, &[&part], "STOP", &want);
    }
}

#[test]
fn a_structured_answer_is_text() {
    let mut exchange = exchange();
    exchange.answer_function = Some("final_answer".into());
    let call = r#"{"functionCall":{"name":"final_answer","args":{"a": [1, 2.0]}},"thoughtSignature":"c2ln"}"#;
    check_with(&exchange, &[call], "STOP", &[r#"text "{\"a\":[1,2.0]}""#, "finish Stop"]);
    check_with(
        &exchange,
        &[&call.replace("final_answer", "default_api:final_answer"), call],
        "STOP",
        &[r#"text "{\"a\":[1,2.0]}""#, "finish Stop", "CallDropped calls.final_answer"],
    );
}

#[test]
fn one_call_at_a_time() {
    let mut exchange = exchange();
    exchange.one_call = true;
    let call = |command: &str| {
        format!(r#"{{"functionCall":{{"name":"Bash","args":{{"command":"{command}"}}}}}}"#)
    };
    check_with(
        &exchange,
        &[&call("a"), &call("b"), r#"{"text":"c"}"#],
        "STOP",
        &[
            r#"call Bash {"command":"a"} id - signature -"#,
            r#"text "c""#,
            "finish ToolCalls",
            "CallDropped calls[1].Bash",
        ],
    );
}

#[test]
fn d10_a_name_without_arguments_and_arguments_without_a_name() {
    let whole = r#"call Bash {"command":"ls"} id - signature -"#;
    let args = r#"{"functionCall":{"name":"","args":{"command":"ls"}}}"#;
    let name = r#"{"functionCall":{"name":"Bash","args":{}}}"#;
    check(&[name, args, ""], "STOP", &[whole, "finish ToolCalls"]);
    check(&[args, name, r#"{"text":""}"#], "STOP", &[whole, "finish ToolCalls"]);
    check(&[&format!("{name},{args}")], "STOP", &[whole, "finish ToolCalls"]);
    check(
        &[name, args, r#"{"text":"and"}"#, r#"{"functionCall":{"name":"TodoWrite"}}"#],
        "STOP",
        &[whole, r#"text "and""#, "call TodoWrite {} id - signature -", "finish ToolCalls"],
    );
    // With nothing to go on with it is delivered as it is.
    check(
        &[name, name],
        "STOP",
        &[
            "call Bash {} id - signature -",
            "call Bash {} id - signature -",
            "finish ToolCalls",
            "ArgumentViolation calls.Bash.args.command",
        ],
    );
    // Two calls that say their ids are two calls.
    check(
        &[
            r#"{"functionCall":{"name":"","id":"a","args":{"command":"x"}}}"#,
            r#"{"functionCall":{"name":"Bash","id":"b","args":{"command":"y"}}}"#,
        ],
        "STOP",
        &[r#"call Bash {"command":"y"} id b signature -"#, "finish ToolCalls", "CallDropped calls"],
    );
    check(&[args], "STOP", &["fail MalformedCall"]);
    check(&[r#"{"text":"x"},{"functionCall":{}}"#], "STOP", &[r#"text "x""#, "finish Stop"]);
}

#[test]
fn d8_pieces_in_every_form() {
    let whole = r#"call Bash {"command":"git log"} id - signature c2ln"#;
    let open = r#"{"functionCall":{"name":"Bash","willContinue":true},"thoughtSignature":"c2ln"}"#;
    let piece = |text: &str, more: bool, rest: &str| {
        let more = if more { r#","willContinue":true"# } else { "" };
        format!(
            r#"{{"functionCall":{{{rest}"partialArgs":[{{"jsonPath":"$.command","stringValue":"{text}"{more}}}]}}}}"#
        )
    };
    let go_on = r#""willContinue":true,"#;
    // The last piece closes the call by not saying that there is more.
    check(
        &[open, &piece("git ", true, go_on), &piece("log", false, ""), r#"{"text":""}"#],
        "STOP",
        &[whole, "finish ToolCalls"],
    );
    // Every piece repeats the name.
    let named = r#""name":"Bash","willContinue":true,"#;
    check(
        &[open, &piece("git ", true, named), &piece("log", false, r#""name":"Bash","#)],
        "STOP",
        &[whole, "finish ToolCalls"],
    );
    // All in one part.
    check(
        &[
            r#"{"functionCall":{"name":"Bash","partialArgs":[{"jsonPath":"$.command","stringValue":"git log"}]},"thoughtSignature":"c2ln"}"#,
        ],
        "STOP",
        &[whole, "finish ToolCalls"],
    );
    // The next call begins before the first has been closed.
    check(
        &[
            open,
            &piece("git log", true, go_on),
            r#"{"functionCall":{"name":"TodoWrite","willContinue":true}}"#,
            r#"{"functionCall":{}}"#,
        ],
        "STOP",
        &[whole, "call TodoWrite {} id - signature -", "finish ToolCalls"],
    );
    // The same function twice, the first never closed.
    check(
        &[
            open,
            &piece("git log", true, go_on),
            r#"{"functionCall":{"name":"Bash","willContinue":true}}"#,
            &piece("ls", false, ""),
        ],
        "STOP",
        &[whole, r#"call Bash {"command":"ls"} id - signature -"#, "finish ToolCalls"],
    );
    // A path that leads nowhere.
    check(
        &[
            r#"{"functionCall":{"name":"TodoWrite","partialArgs":[{"jsonPath":"$[*]","numberValue":1}]}}"#,
        ],
        "STOP",
        &[
            "call TodoWrite {} id - signature -",
            "finish ToolCalls",
            "ArgumentViolation calls.TodoWrite.args",
        ],
    );
    // Cut off in the middle.
    check(&[open, &piece("git", true, go_on)], "", &["fail Cut"]);
    check(
        &[open, &piece("git", true, go_on)],
        "SAFETY",
        &[r#"finish Blocked("SAFETY")"#, "CallDropped calls.Bash"],
    );
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
            r#"media Media { mime: Some("image/png"), source: Inline("QUJD"), name: None, modifiers: [("mediaResolution", {"level":"X"}), ("thoughtSignature", "YQ")] }"#,
            r#"media Media { mime: Some("video/mp4"), source: Uri("gs://a/b"), name: Some("b"), modifiers: [("thought", true)] }"#,
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
        ("SOMETHING_NEW", "Internal"),
    ] {
        check(&[text], reason, &[&format!("fail {kind}")]);
    }
    for reason in ["", "FINISH_REASON_UNSPECIFIED"] {
        check(&[text], reason, &["fail Cut"]);
    }
    let body = r#"{"candidates":[{"content":{},"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"print(x"}]}"#;
    let failure = failure_of(body);
    assert_eq!(failure.message, "Gemini ended its turn with MALFORMED_FUNCTION_CALL: print(x");
    assert_eq!(failure.upstream_code.as_deref(), Some("MALFORMED_FUNCTION_CALL"));
}

#[test]
fn h1_a_call_beside_a_bad_reason() {
    let call = r#"{"functionCall":{"name":"list_files","args":{}}}"#;
    check(&[call], "MALFORMED_FUNCTION_CALL", &["fail MalformedCall"]);
    check(
        &[call],
        "UNEXPECTED_TOOL_CALL",
        &[
            "call list_files {} id - signature -",
            "finish ToolCalls",
            "UnknownTool calls.list_files.name",
            "UnknownTool finishReason",
        ],
    );
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
fn d3_calls_then_an_empty_stop() {
    check(
        &[r#"{"functionCall":{"name":"TodoWrite","args":{}}}"#, r#"{"text":""}"#],
        "STOP",
        &["call TodoWrite {} id - signature -", "finish ToolCalls"],
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

#[test]
fn ids_are_unique_and_carry_geminis_own() {
    let call = r#"{"functionCall":{"name":"TodoWrite","args":{},"id":"gjl2yj5t"}}"#;
    let bytes = stream(&[&candidate(call, ""), &candidate(call, "STOP")]);
    let answer = decode(&exchange(), &[&bytes]).answer.finish().unwrap();
    let ids: Vec<_> = answer.calls().map(|call| call.id.as_ref()).collect();
    assert_ne!(ids[0], ids[1]);
    assert!(ids.iter().all(|id| toolgate_core::canon::upstream_id(id) == "gjl2yj5t"), "{ids:?}");
}
