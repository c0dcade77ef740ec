//! The thirteen scenarios in which popular gateways fail, and the shapes beside them.

use toolgate_core::translate::{Dialect, encode_error};

use toolgate_testing::client::{self, Seen};
use toolgate_testing::golden::{bodies, streams};
use toolgate_testing::pipeline::{Asked, DIALECTS, answer, asked, stamp, stream};

fn input(files: Vec<(String, Vec<u8>)>, scenario: &str) -> Option<Vec<u8>> {
    files.into_iter().find(|(name, _)| name == scenario).map(|(_, bytes)| bytes)
}

/// The streamed answer, and the unary one where there is one.
fn seen(asked: &Asked, scenario: &str) -> (Seen, Option<Result<Seen, u16>>) {
    let bytes = input(streams(), scenario).unwrap();
    let streamed = client::read(asked.dialect, &stream(asked, [&bytes[..]]));
    let unary = input(bodies(), scenario).map(|bytes| match answer(asked, &bytes) {
        Ok(answer) => {
            let body = asked.echo.encode_response(&answer, &stamp(), &asked.sealer);
            Ok(client::read(asked.dialect, &body))
        }
        Err(failure) => Err(encode_error(asked.dialect, &failure, "req_1").status),
    });
    (streamed, unary)
}

/// What each dialect's client sees as the reason, in the order of [`DIALECTS`].
type Stops = [&'static str; 4];
const CALLS: Stops = ["tool_use", "completed", "tool_calls", "STOP"];
const END: Stops = ["end_turn", "completed", "stop", "STOP"];

/// An answer with these words and calls, streamed and unary.
#[track_caller]
fn check(scenario: &str, stops: Stops, text: &str, calls: &[(&str, &str)]) {
    for (dialect, stop) in DIALECTS.into_iter().zip(stops) {
        let (streamed, unary) = seen(&asked(dialect), scenario);
        let unary = unary.map(|it| it.unwrap_or_else(|status| panic!("HTTP {status}")));
        for seen in [Some(streamed), unary].into_iter().flatten() {
            assert_eq!(seen.error, None, "{dialect:?}");
            assert_eq!(seen.stop, stop, "{dialect:?}");
            assert_eq!(seen.text, text, "{dialect:?}");
            let got: Vec<_> =
                seen.calls.iter().map(|call| (call.name.as_str(), call.args.as_str())).collect();
            assert_eq!(got, calls, "{dialect:?}");
            assert!(seen.usage.0 > 0, "{dialect:?} counts tokens");
        }
    }
}

/// A failure that the client is told of: an event in a stream, a status otherwise.
#[track_caller]
fn check_failure(scenario: &str, events: [&str; 4], statuses: [u16; 4]) {
    for (at, dialect) in DIALECTS.into_iter().enumerate() {
        let (streamed, unary) = seen(&asked(dialect), scenario);
        assert_eq!(streamed.error.as_deref(), Some(events[at]), "{dialect:?}");
        if let Some(unary) = unary {
            assert_eq!(unary.map(|seen| seen.stop), Err(statuses[at]), "{dialect:?}");
        }
    }
}

#[test]
fn parallel() {
    let calls = [
        ("Bash", r#"{"command":"ls -la src","description":"List the sources"}"#),
        ("Read", r#"{"file_path":"/repo/README.md"}"#),
    ];
    check("parallel", CALLS, "", &calls);
}

#[test]
fn r120_textsig() {
    check("textsig", END, "The build passes. Nothing else is open.", &[]);
}

#[test]
fn sigsibling() {
    check("sigsibling", CALLS, "", &[("Bash", r#"{"command":"ls"}"#)]);
}

#[test]
fn noargs() {
    check("noargs", CALLS, "", &[("TodoWrite", "{}")]);
}

#[test]
fn malformed_and_empty() {
    for scenario in ["malformed", "empty", "thinking_only"] {
        let events = ["api_error", "server_error", "server_error", "INTERNAL"];
        check_failure(scenario, events, [502, 502, 502, 500]);
    }
}

#[test]
fn safety_and_blocked() {
    for scenario in ["safety", "blocked"] {
        let gemini = if scenario == "safety" { "SAFETY" } else { "PROHIBITED_CONTENT" };
        check(scenario, ["refusal", "incomplete", "content_filter", gemini], "", &[]);
    }
}

#[test]
fn twofinish() {
    check("twofinish", END, "The sum is 45, and twice that is 90.", &[]);
}

#[test]
fn partial() {
    let todos = r#"{"todos":[{"content":"Read the \"notes\"","status":"pending","priority":2},{"content":"修复错误 🐛","status":"in_progress","urgent":true}]}"#;
    check("partial", CALLS, "", &[("TodoWrite", todos)]);
    check("partial_no_end", CALLS, "", &[("Bash", r#"{"command":"git status"}"#)]);
}

#[test]
fn i6_a_call_that_was_cut_off_is_never_finished() {
    let stops = ["max_tokens", "incomplete", "length", "MAX_TOKENS"];
    check("max_tokens_mid_call", stops, "I will write it down.", &[]);
}

#[test]
fn d12_an_error_in_the_middle_is_told() {
    let overloaded = ["overloaded_error", "server_is_overloaded", "server_error", "UNAVAILABLE"];
    check_failure("error_mid_bare", overloaded, [0; 4]);
    let limited =
        ["rate_limit_error", "rate_limit_exceeded", "rate_limit_error", "RESOURCE_EXHAUSTED"];
    check_failure("error_mid_framed", limited, [0; 4]);
}

#[test]
fn d9_zero_arguments_between_two_others() {
    let calls = [
        ("Bash", r#"{"command":"pwd"}"#),
        ("TodoWrite", "{}"),
        ("Read", r#"{"file_path":"/repo/a.txt","offset":1}"#),
    ];
    check("zero_arg_between", CALLS, "", &calls);
}

#[test]
fn d1_d2_d5_c13() {
    let read = ("Read", r#"{"file_path":"/repo/src/main.rs","limit":200}"#);
    check("d1", CALLS, "Let me look at the file first.", &[read]);
    let calls = [
        ("Bash", r#"{"command":"cargo fmt --check"}"#),
        ("Bash", r#"{"command":"cargo clippy"}"#),
        ("Bash", r#"{"command":"cargo test","timeout":60000}"#),
    ];
    check("d2", CALLS, "Meanwhile the lints.", &calls);
    check("d5", END, "One, two, three.", &[]);
    check("c13", CALLS, "", &[("Read", r#"{"file_path":"/repo/Cargo.toml"}"#)]);
}

#[test]
fn r114_usage_is_each_dialects_own_count() {
    // 120 in, none cached; 38 of answer and 64 of thought out.
    for (dialect, want) in DIALECTS.into_iter().zip([(120, 102), (120, 102), (120, 102), (120, 38)])
    {
        let (streamed, unary) = seen(&asked(dialect), "parallel");
        assert_eq!(streamed.usage, want, "{dialect:?}");
        assert_eq!(unary.unwrap().unwrap().usage, want, "{dialect:?}");
    }
    // 69 and 150 of tools in, 32 of it cached: Anthropic counts the cached apart.
    for (dialect, want) in DIALECTS.into_iter().zip([(187, 44), (219, 44), (219, 44), (69, 18)]) {
        assert_eq!(seen(&asked(dialect), "server_search").0.usage, want, "{dialect:?}");
    }
}

#[test]
fn every_stream_says_what_its_twin_says() {
    for dialect in DIALECTS {
        let asked = asked(dialect);
        for (scenario, _) in bodies() {
            let (streamed, unary) = seen(&asked, &scenario);
            let Some(Ok(unary)) = unary else {
                assert!(streamed.error.is_some(), "{scenario} in {dialect:?}");
                continue;
            };
            assert_eq!(streamed.text, unary.text, "{scenario} in {dialect:?}");
            assert_eq!(streamed.thoughts, unary.thoughts, "{scenario} in {dialect:?}");
            assert_eq!(streamed.names(), unary.names(), "{scenario} in {dialect:?}");
            assert_eq!(streamed.stop, unary.stop, "{scenario} in {dialect:?}");
            assert_eq!(streamed.usage, unary.usage, "{scenario} in {dialect:?}");
        }
    }
}

#[test]
fn d11_thoughts_come_first_and_once() {
    for dialect in DIALECTS {
        let (streamed, _) = seen(&asked(dialect), "parallel");
        let words = "**Looking around**\n\nTwo things are worth reading before I change anything.";
        assert_eq!(streamed.thoughts, words, "{dialect:?}");
    }
    let bytes = input(streams(), "parallel").unwrap();
    let text = String::from_utf8(stream(&asked(Dialect::Anthropic), [&bytes[..]])).unwrap();
    assert_eq!(text.matches("event: message_start").count(), 1);
}
