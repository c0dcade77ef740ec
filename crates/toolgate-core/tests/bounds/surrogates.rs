//! Halves of surrogate pairs, as a text has them that was cut in the middle of an emoji.

use serde_json::Value;
use toolgate_core::translate::Dialect;

use crate::answers::{answer, exchange};
use crate::bodies::translate;

/// A body in which `~` stands for half a pair in a string, and `^` for one in a string that holds JSON.
#[track_caller]
fn check(dialect: Dialect, body: &str) {
    for half in ["\\ud83d", "\\uDE00", "\\ud83dx", "\\ud83d\\ud83d"] {
        let body = body.replace('^', &half.replace('\\', "\\\\")).replace('~', half);
        let encoded = translate(dialect, &body).unwrap_or_else(|bad| panic!("{bad}: {body}"));
        let sent: Value = serde_json::from_slice(&encoded.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&encoded.body)));
        assert!(sent.to_string().contains('\u{fffd}'), "{sent}");
    }
    // A whole pair stays one.
    let body = body.replace('^', r"\\ud83d\\ude00").replace('~', r"\ud83d\ude00");
    let sent: Value = serde_json::from_slice(&translate(dialect, &body).unwrap().body).unwrap();
    assert!(sent.to_string().contains('\u{1f600}'), "{sent}");
    assert!(!sent.to_string().contains('\u{fffd}'), "{sent}");
}

#[test]
fn halves_of_surrogate_pairs_are_replaced_in_messages() {
    check(
        Dialect::Anthropic,
        r#"{"model":"m","max_tokens":9,"~":1,"metadata":{"user_id":"~"},"system":"~","stop_sequences":["~"],
        "tools":[{"name":"f~","description":"~","input_schema":{"type":"object","properties":{"~":{"type":"string","description":"~","enum":["~"]}}}}],
        "messages":[{"role":"user","content":"~"},
        {"role":"assistant","content":[{"type":"text","text":"~"},{"type":"tool_use","id":"t~","name":"f~","input":{"~":"~","a":["~"]}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"t~","content":"~"},{"type":"q~","~":"~"}]}]}"#,
    );
}

#[test]
fn halves_of_surrogate_pairs_are_replaced_in_chat_completions() {
    check(
        Dialect::Chat,
        r#"{"model":"m","user":"~","metadata":{"~":"~"},"stop":["~"],
        "tools":[{"type":"function","function":{"name":"f~","description":"~","parameters":{"type":"object","properties":{"~":{"description":"~"}}}}}],
        "messages":[{"role":"system","content":"~"},{"role":"user","content":[{"type":"text","text":"~"}]},
        {"role":"assistant","content":"~","tool_calls":[{"id":"c~","type":"function","function":{"name":"f~","arguments":"{\"^\":\"^ ~\"}"}},
        {"id":"d","type":"function","function":{"name":"g","arguments":"^"}}]},
        {"role":"tool","tool_call_id":"c~","content":"~"}]}"#,
    );
}

#[test]
fn halves_of_surrogate_pairs_are_replaced_in_responses() {
    check(
        Dialect::Responses,
        r#"{"model":"m","user":"~","metadata":{"~":"~"},"instructions":"~",
        "tools":[{"type":"function","name":"f~","description":"~","parameters":{"type":"object","properties":{"~":{"description":"~"}}}}],
        "input":[{"role":"user","content":[{"type":"input_text","text":"~"}]},
        {"type":"function_call","call_id":"c~","name":"f~","arguments":"{\"^\":\"^ ~\"}"},
        {"type":"function_call_output","call_id":"c~","output":{"~":"~"}},{"type":"q~","~":"~"}]}"#,
    );
    check(Dialect::Responses, r#"{"model":"m","input":"~"}"#);
}

#[test]
fn halves_of_surrogate_pairs_are_replaced_for_gemini() {
    check(
        Dialect::Gemini,
        r#"{"model":"m","labels":{"~":"~"},"generationConfig":{"stopSequences":["~"],"~":"~"},"systemInstruction":{"parts":[{"text":"~"}]},
        "tools":[{"functionDeclarations":[{"name":"f~","description":"~","parameters":{"type":"OBJECT","properties":{"~":{"type":"STRING","description":"~"}}}}]}],
        "contents":[{"parts":[{"text":"~"}]},{"role":"model","parts":[{"functionCall":{"id":"~","name":"f~","args":{"~":"~"}}},{"executableCode":{"code":"~"}}]},
        {"parts":[{"functionResponse":{"id":"~","name":"f~","response":{"~":"~"}}}]}]}"#,
    );
}

#[test]
fn halves_of_surrogate_pairs_in_answers_are_replaced_for_every_client() {
    let parts = r#"{"text":"~","thought":true},{"text":"~"},{"functionCall":{"id":"~","name":"f","args":{"~":"~","a":["~"]}}}"#;
    for half in [r"\ud83d", r"\uDE00"] {
        for dialect in [Dialect::Anthropic, Dialect::Chat, Dialect::Gemini, Dialect::Responses] {
            let told = answer(dialect, exchange(), &parts.replace('~', half), "STOP");
            assert!(told.unary.to_string().contains('\u{fffd}'), "{}", told.unary);
            assert!(
                told.stream.contains('\u{fffd}') || told.stream.contains("\\ufffd"),
                "{}",
                told.stream
            );
        }
    }
}
