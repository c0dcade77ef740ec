//! Every golden answer, streamed and as one body.

use toolgate_testing::decoding::{decode, exchange, shown};
use toolgate_testing::golden;

/// The stream, and the twin where there is one, decode to `want`.
#[track_caller]
fn check(scenario: &str, has_twin: bool, want: &[&str]) {
    let exchange = exchange();
    let stream = golden::file(&format!("stream/{scenario}.gemini.sse"));
    let streamed = decode(&exchange, &[&stream]);
    assert_eq!(shown(streamed.answer.clone().finish()), want);
    if has_twin {
        let body = golden::file(&format!("unary/{scenario}.gemini.json"));
        let whole = decode(&exchange, &[&body]).answer.finish();
        assert_eq!(shown(whole.clone()), want, "unary");
        if let (Ok(streamed), Ok(whole)) = (streamed.answer.finish(), whole) {
            assert_eq!(streamed.finish.usage, whole.finish.usage, "usage");
            assert_eq!(streamed.start.response_id, whole.start.response_id);
        }
    }
}

#[test]
fn parallel() {
    check(
        "parallel",
        true,
        &[
            r#"thought "**Looking around**\n\nTwo things are worth reading before I change anything.""#,
            r#"call Bash {"command":"ls -la src","description":"List the sources"} id k3f9x2ab signature c2lnbmF0dXJlIG9mIHBhcmFsbGVs"#,
            r#"call Read {"file_path":"/repo/README.md"} id p0w7q4cd signature -"#,
            "finish ToolCalls",
        ],
    );
}

#[test]
fn c7_textsig() {
    check(
        "textsig",
        true,
        &[
            r#"text "The build passes. Nothing else is open.""#,
            "signature on text 21: c2lnbmF0dXJlIG9mIHRleHRzaWc=",
            "finish Stop",
        ],
    );
}

#[test]
fn c2_sigsibling() {
    check(
        "sigsibling",
        true,
        &[
            r#"thought "I should see which files there are.""#,
            "signature on thought 35: c2lnbmF0dXJlIG9mIHNpZ3NpYmxpbmc=",
            r#"call Bash {"command":"ls"} id m1n2b3v4 signature -"#,
            "finish ToolCalls",
        ],
    );
}

#[test]
fn r28_noargs() {
    check(
        "noargs",
        true,
        &[
            "call TodoWrite {} id z9y8x7w6 signature c2lnbmF0dXJlIG9mIG5vYXJncw==",
            "finish ToolCalls",
        ],
    );
}

#[test]
fn h1_malformed() {
    check("malformed", true, &["fail MalformedCall"]);
}

#[test]
fn safety_and_blocked() {
    check("safety", true, &[r#"finish Blocked("SAFETY")"#]);
    check("blocked", true, &[r#"finish Blocked("PROHIBITED_CONTENT")"#]);
}

#[test]
fn h2_empty() {
    check("empty", true, &["fail EmptyTurn"]);
    check("thinking_only", true, &["fail EmptyTurn"]);
}

#[test]
fn d4_twofinish() {
    check(
        "twofinish",
        true,
        &[
            r#"server executableCode {"language":"PYTHON","code":"print(sum(range(10)))\n"}"#,
            r#"server codeExecutionResult {"outcome":"OUTCOME_OK","output":"45\n"}"#,
            r#"server executableCode {"language":"PYTHON","code":"print(45 * 2)\n"}"#,
            r#"server codeExecutionResult {"outcome":"OUTCOME_OK","output":"90\n"}"#,
            r#"text "The sum is 45, and twice that is 90.""#,
            "finish Stop",
        ],
    );
}

#[test]
fn d8_partial() {
    check(
        "partial",
        true,
        &[
            r#"call TodoWrite {"todos":[{"content":"Read the \"notes\"","status":"pending","priority":2},{"content":"修复错误 🐛","status":"in_progress","urgent":true}]} id - signature c2lnbmF0dXJlIG9mIHBhcnRpYWw="#,
            "finish ToolCalls",
        ],
    );
}

#[test]
fn d8_partial_no_end() {
    check(
        "partial_no_end",
        false,
        &[
            r#"call Bash {"command":"git status"} id - signature c2lnbmF0dXJlIG9mIHBhcnRpYWxfbm9fZW5k"#,
            "finish ToolCalls",
        ],
    );
}

#[test]
fn d1_text_then_call_and_finish_in_one_chunk() {
    check(
        "d1",
        true,
        &[
            r#"text "Let me look at the file first.""#,
            r#"call Read {"file_path":"/repo/src/main.rs","limit":200} id t5r6e7w8 signature c2lnbmF0dXJlIG9mIGQx"#,
            "finish ToolCalls",
        ],
    );
}

#[test]
fn d2_calls_of_one_function_keep_apart() {
    check(
        "d2",
        true,
        &[
            r#"call Bash {"command":"cargo fmt --check"} id aaaa1111 signature c2lnbmF0dXJlIG9mIGQy"#,
            r#"text "Meanwhile the lints.""#,
            r#"call Bash {"command":"cargo clippy"} id bbbb2222 signature -"#,
            r#"call Bash {"command":"cargo test","timeout":60000} id cccc3333 signature -"#,
            "finish ToolCalls",
        ],
    );
}

#[test]
fn d5_stop_on_every_chunk() {
    check("d5", true, &[r#"text "One, two, three.""#, "finish Stop"]);
}

#[test]
fn d6_every_script() {
    check(
        "d6",
        true,
        &[
            r#"thought "先看目录 📁。""#,
            "text \"你好，世界！👩‍👩‍👧‍👦 naïve café — Ω≈ç√∫ \u{2028} ok\"",
            r#"call Bash {"command":"echo \"日本語 🎌\" > ファイル.txt"} id d6d6d6d6 signature c2lnbmF0dXJlIG9mIGQ2"#,
            "finish ToolCalls",
        ],
    );
}

#[test]
fn c13_the_signature_comes_after_the_call() {
    check(
        "c13",
        true,
        &[
            r#"call Read {"file_path":"/repo/Cargo.toml"} id q1w2e3r4 signature -"#,
            "signature on text 0: c2lnbmF0dXJlIG9mIGMxMw==",
            "finish ToolCalls",
        ],
    );
}

#[test]
fn d12_errors_in_the_middle_and_a_cut() {
    check("error_mid_bare", false, &["fail Overloaded"]);
    check("error_mid_framed", false, &["fail RateLimited"]);
    check("cut", false, &["fail Cut"]);
    let watch = decode(&exchange(), &[&golden::file("stream/error_mid_framed.gemini.sse")]);
    let failure = watch.answer.finish().unwrap_err();
    assert_eq!((failure.retry_after_ms, failure.upstream_status), (Some(12_000), Some(429)));
    assert_eq!(watch.events.len(), 4, "the texts come before the failure");
}

#[test]
fn i6_max_tokens_mid_call() {
    let exchange = exchange();
    let answer =
        decode(&exchange, &[&golden::file("stream/max_tokens_mid_call.gemini.sse")]).answer;
    assert_eq!(
        shown(answer.finish()),
        [r#"text "I will write it down.""#, "finish MaxTokens", "CallDropped calls[0]"]
    );
    let answer =
        decode(&exchange, &[&golden::file("unary/max_tokens_mid_call.gemini.json")]).answer;
    assert_eq!(shown(answer.finish()), [r#"text "I will write it down.""#, "finish MaxTokens"]);
}

#[test]
fn c8_server_search() {
    check(
        "server_search",
        true,
        &[
            r#"server toolCall {"id":"srch0001","toolType":"GOOGLE_SEARCH_WEB","args":{"queries":["rust 1.95 release date"]}}"#,
            r#"server toolResponse {"id":"srch0001","toolType":"GOOGLE_SEARCH_WEB","response":{"search_suggestions":"<div>search</div>"}}"#,
            r#"text "Rust 1.95 is out since April.""#,
            "signature on text 12: c2lnbmF0dXJlIG9mIHNlcnZlcl9zZWFyY2ggdGV4dA==",
            r#"grounding {"webSearchQueries":["rust 1.95 release date"],"groundingChunks":[{"web":{"uri":"https://example.com/rust","title":"example.com"}}],"groundingSupports":[{"segment":{"endIndex":29,"text":"Rust 1.95 is out since April."},"groundingChunkIndices":[0]}],"searchEntryPoint":{"renderedContent":"<div>search</div>"}}"#,
            "finish Stop",
        ],
    );
    let answer = decode(&exchange(), &[&golden::file("stream/server_search.gemini.sse")]).answer;
    let answer = answer.finish().unwrap();
    let toolgate_core::canon::Item::Server(activity) = &answer.items[0] else { panic!() };
    assert!(activity.part.get().contains("thoughtSignature"), "the part goes back whole");
    let usage = answer.finish.usage;
    assert_eq!(
        (usage.prompt, usage.cached, usage.tool_use_prompt),
        (Some(69), Some(32), Some(150))
    );
    assert_eq!((usage.candidates, usage.thoughts, usage.total), (Some(18), Some(26), Some(263)));
}

#[test]
fn d9_zero_arg_between() {
    check(
        "zero_arg_between",
        true,
        &[
            r#"call Bash {"command":"pwd"} id one11111 signature c2lnbmF0dXJlIG9mIHplcm9fYXJnX2JldHdlZW4="#,
            "call TodoWrite {} id two22222 signature -",
            r#"call Read {"file_path":"/repo/a.txt","offset":1} id thr33333 signature -"#,
            "finish ToolCalls",
        ],
    );
}
