//! Answers of Gemini's in every dialect.

use std::sync::Arc;

use serde_json::Value;
use toolgate_core::canon::{
    Assembler, Backend, FailureKind, Finish, IdGen, LossCode, Target, ToolName,
};
use toolgate_core::dialect::Stamp;
use toolgate_core::schema::Checker;
use toolgate_core::seal::Sealer;
use toolgate_core::translate::{Dialect, Translator};
use toolgate_core::upstream::generate_content::{Exchange, StreamDecoder, ToolEntry, ToolInput};

use crate::bodies::decode;

const DIALECTS: [Dialect; 4] =
    [Dialect::Anthropic, Dialect::Chat, Dialect::Gemini, Dialect::Responses];

/// An answer as a client gets it.
pub(crate) struct Told {
    pub(crate) unary: Value,
    /// All data lines of the stream, each of which is JSON.
    pub(crate) stream: String,
    pub(crate) finish: Finish,
}

/// An exchange about a tool `f` that takes anything.
pub(crate) fn exchange() -> Exchange {
    let tool = |name: &str| ToolEntry {
        alias: name.to_owned(),
        name: ToolName::plain(name.to_owned()),
        input: ToolInput::Json(Arc::new(Checker::default())),
    };
    Exchange {
        target: Target { model: "gemini-3.6-flash".into(), backend: Backend::Developer },
        tools: vec![tool("f"), tool("apply_patch"), tool("shell"), tool("computer")],
        one_call: false,
        answer_function: None,
    }
}

const ASKED: [&str; 4] = [
    r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}]}"#,
    r#"{"model":"m","messages":[{"role":"user","content":"x"}]}"#,
    r#"{"model":"m","contents":[{"parts":[{"text":"x"}]}]}"#,
    r#"{"model":"m","input":"x","tools":[{"type":"apply_patch"},{"type":"shell"},{"type":"computer"}]}"#,
];

/// Tells an answer with these parts to a client.
#[track_caller]
pub(crate) fn answer(dialect: Dialect, exchange: Exchange, parts: &str, finish: &str) -> Told {
    let body = format!(
        r#"{{"candidates":[{{"content":{{"role":"model","parts":[{parts}]}},"finishReason":"{finish}"}}]}}"#
    );
    let asked = DIALECTS.iter().zip(ASKED).find(|(it, _)| **it == dialect).map(|(_, body)| body);
    let echo = decode(dialect, asked.unwrap()).unwrap().echo;
    let sealer = Sealer::with_key([7; 32]);
    let stamp = || Stamp::new(IdGen::new(1), 0);
    let exchange = Arc::new(exchange);

    let mut whole = Assembler::default();
    let mut decoder = StreamDecoder::new(Arc::clone(&exchange), IdGen::new(7));
    decoder.feed(body.as_bytes(), &mut whole);
    decoder.finish(&mut whole);
    let whole = whole.finish().unwrap_or_else(|failure| panic!("{failure:?}: {body}"));
    let unary = echo.encode_response(&whole, &stamp(), &sealer);
    let unary = serde_json::from_slice(&unary).unwrap();

    let mut out = Vec::new();
    let mut translator = Translator::new(exchange, IdGen::new(7), echo.encoder(stamp(), sealer));
    translator.feed(format!("data: {body}\r\n\r\n").as_bytes(), &mut out);
    translator.finish(&mut out);
    let out = String::from_utf8(out).unwrap();
    let data: Vec<&str> = out
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .filter(|data| *data != "[DONE]")
        .collect();
    for data in &data {
        serde_json::from_str::<Value>(data).unwrap_or_else(|error| panic!("{error}: {data}"));
    }
    Told { unary, stream: data.join("\n"), finish: whole.finish }
}

const CALL: &str = r#"{"functionCall":{"name":"f","args":{"a":1}}}"#;

/// The finish that each dialect shows.
fn reason(dialect: Dialect, told: &Value) -> String {
    let place = match dialect {
        Dialect::Anthropic => &told["stop_reason"],
        Dialect::Chat => &told["choices"][0]["finish_reason"],
        Dialect::Gemini => &told["candidates"][0]["finishReason"],
        Dialect::Responses => &told["status"],
    };
    place.as_str().unwrap_or_default().to_owned()
}

/// A call that came whole is the client's to run, in every dialect, and the reason is told as a loss.
#[test]
fn a_whole_call_before_a_block_is_a_call_in_every_dialect() {
    for word in ["SAFETY", "RECITATION", "PROHIBITED_CONTENT", "SPII", "BLOCKLIST", "IMAGE_SAFETY"]
    {
        for (dialect, want) in
            DIALECTS.into_iter().zip(["tool_use", "tool_calls", "STOP", "completed"])
        {
            let told = answer(dialect, exchange(), CALL, word);
            assert_eq!(reason(dialect, &told.unary), want, "{word}: {}", told.unary);
            let loss = told.finish.losses.iter().find(|loss| loss.at == "finishReason");
            assert!(
                loss.is_some_and(|loss| loss.detail.contains(word)),
                "{:?}",
                told.finish.losses
            );
        }
        for (dialect, want) in
            DIALECTS.into_iter().zip(["refusal", "content_filter", word, "incomplete"])
        {
            let told = answer(dialect, exchange(), r#"{"text":"a"}"#, word);
            assert_eq!(reason(dialect, &told.unary), want, "{word}: {}", told.unary);
        }
    }
}

#[test]
fn an_unknown_reason_after_a_full_text_is_a_stop() {
    for (dialect, want) in DIALECTS.into_iter().zip(["end_turn", "stop", "STOP", "completed"]) {
        let told = answer(dialect, exchange(), r#"{"text":"a"}"#, "HALTED_BY_MOON");
        assert_eq!(reason(dialect, &told.unary), want, "{}", told.unary);
        let loss = told.finish.losses.iter().find(|loss| loss.at == "finishReason");
        assert!(loss.is_some_and(|loss| loss.detail.contains("HALTED_BY_MOON")));
    }
    let mut whole = Assembler::default();
    let mut decoder = StreamDecoder::new(Arc::new(exchange()), IdGen::new(7));
    decoder.feed(br#"{"candidates":[{"finishReason":"HALTED_BY_MOON"}]}"#, &mut whole);
    decoder.finish(&mut whole);
    assert_eq!(whole.finish().unwrap_err().kind, FailureKind::Internal);
}

#[test]
fn a_call_that_the_client_does_not_want_beside_another_is_a_loss() {
    let exchange = || Exchange { one_call: true, ..exchange() };
    for dialect in DIALECTS {
        let told = answer(dialect, exchange(), &[CALL; 3].join(","), "STOP");
        let dropped: Vec<&str> = told
            .finish
            .losses
            .iter()
            .filter(|loss| loss.code == LossCode::CallDropped)
            .map(|loss| loss.at.as_str())
            .collect();
        assert_eq!(dropped, ["calls[1]", "calls[2]"]);
    }
}

/// Arguments that do not fit the item of a hosted tool become a call of a function with its name.
#[test]
fn arguments_that_do_not_fit_a_hosted_call_are_not_lost() {
    for (tool, args) in [
        ("apply_patch", r#"{"patch":"*** Begin Patch"}"#),
        ("apply_patch", r#"{"type":"update_file","path":7,"diff":"+a"}"#),
        ("apply_patch", r#"{"type":"update_file","path":"a"}"#),
        ("apply_patch", r#"{"operation":"delete a"}"#),
        ("shell", r#"{"script":"ls"}"#),
        ("computer", r#"{"click":[1,2]}"#),
    ] {
        let part = format!(r#"{{"functionCall":{{"name":"{tool}","args":{args}}}}}"#);
        let told = answer(Dialect::Responses, exchange(), &part, "STOP");
        let item = &told.unary["output"][0];
        assert_eq!(
            (&item["type"], &item["name"]),
            (&"function_call".into(), &tool.into()),
            "{item}"
        );
        let given: Value = serde_json::from_str(item["arguments"].as_str().unwrap()).unwrap();
        assert_eq!(given, serde_json::from_str::<Value>(args).unwrap());
        assert!(told.stream.contains("response.function_call_arguments.done"), "{}", told.stream);
    }
    for args in [
        r#"{"type":"create_file","path":"a","diff":"+x"}"#,
        r#"{"operation":{"type":"delete_file","path":"a"}}"#,
    ] {
        let part = format!(r#"{{"functionCall":{{"name":"apply_patch","args":{args}}}}}"#);
        let told = answer(Dialect::Responses, exchange(), &part, "STOP");
        assert_eq!(told.unary["output"][0]["type"], "apply_patch_call", "{}", told.unary);
    }
}

/// The parts as they were written are looked for once a chunk, not once a candidate.
#[test]
fn many_candidates_with_parts_of_geminis_own_are_read_in_time() {
    let candidate = r#"{"index":0,"content":{"parts":[{"executableCode":{"code":"1"}}]}}"#;
    let chunk = format!(r#"{{"candidates":[{}]}}"#, vec![candidate; 20_000].join(","));
    let mut whole = Assembler::default();
    let mut decoder = StreamDecoder::new(Arc::new(exchange()), IdGen::new(7));
    decoder.feed(format!("data: {chunk}\r\n\r\n").as_bytes(), &mut whole);
    let end = "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\r\n\r\n";
    decoder.feed(end.as_bytes(), &mut whole);
    decoder.finish(&mut whole);
    assert_eq!(whole.finish().unwrap().items.len(), 20_000);
}
