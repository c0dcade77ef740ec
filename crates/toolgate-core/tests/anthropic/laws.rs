//! Laws, for whatever Gemini or a client may say.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolgate_core::anthropic::{Echo, decode_count_tokens, decode_request};
use toolgate_core::canon::{Event, FinishReason, Media, MediaSource};
use toolgate_core::dialect::DecodeOptions;
use toolgate_core::json::Text;
use toolgate_core::upstream::generate_content::decode_grounding;

use super::{
    call, encode, finish, raw, returned, sealer, server, signature, start, text, thinker, thought,
};

/// Pieces of an answer; signatures are made to fit afterwards.
fn piece() -> impl Strategy<Value = u8> {
    0u8..14
}

fn events(pieces: &[u8], reason: FinishReason) -> Vec<Event<'static>> {
    let mut events = vec![start()];
    let (mut text_run, mut thought_run) = (0, 0);
    for (index, piece) in pieces.iter().enumerate() {
        let token = format!("sig{index}");
        let id = format!("tg{index}");
        let event = match piece {
            0 | 1 => text("é \u{2028}\"x\\"),
            2 | 3 => thought("hm\n"),
            4 => signature(false, text_run / 2, &token),
            5 => signature(true, thought_run, &token),
            6 => call(&id, "look", r#"{"at": [1.0, "\u2028"]}"#, Some(&token)),
            7 => call(&id, "look", "{}", None),
            8 => server("executableCode", r#"{"code":"1"}"#, Some(&token)),
            9 => server("executableCode", r#"{"code":"1"}"#, None),
            10 => server("codeExecutionResult", r#"{"outcome":"OUTCOME_OK"}"#, None),
            11 => server("toolCall", r#"{"toolType":"URL_CONTEXT"}"#, None),
            12 => Event::Grounding(decode_grounding(raw(
                r#"{"webSearchQueries":["q"],"groundingChunks":[{"web":{"uri":"u"}}]}"#,
            ))),
            _ => Event::Media(Media {
                mime: None,
                source: MediaSource::Inline(Text::new("AA==")),
                name: None,
                modifiers: Vec::new(),
            }),
        };
        (text_run, thought_run) = match &event {
            Event::Text(words) => (text_run + words.decode().len(), 0),
            Event::Thought(words) => (0, thought_run + words.decode().len()),
            Event::Start(_)
            | Event::Signature { .. }
            | Event::Call(_)
            | Event::Media(_)
            | Event::Server(_)
            | Event::Grounding(_)
            | Event::Finish(_)
            | Event::Fail(_) => (0, 0),
        };
        events.push(event);
    }
    events.push(finish(reason));
    events
}

/// What looks like a request, with something odd in it.
fn odd_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z_]{0,6}".prop_map(Value::from),
        prop::sample::select(WORDS).prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(WORDS), inner), 0..6)
                .prop_map(|members| members.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()),
        ]
    })
}

const WORDS: &[&str] = &[
    "type",
    "text",
    "tool_use",
    "tool_result",
    "tool_use_id",
    "id",
    "name",
    "input",
    "content",
    "source",
    "base64",
    "data",
    "url",
    "document",
    "image",
    "thinking",
    "signature",
    "custom",
    "redacted_thinking",
    "role",
    "user",
    "assistant",
    "system",
    "server_tool_use",
    "tool",
    "web_search_tool_result",
    "tool_reference",
    "tool_name",
    "search_result",
    "computer_20250124",
    "configs",
    "computer_toolset_20260801",
    "input_examples",
    "tool_addition",
    "definition",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    /// Law 4: every answer follows the grammar, streamed and whole, and comes back without a loss
    /// of what was sealed.
    #[test]
    fn law4_every_answer_follows_the_grammar(
        pieces in prop::collection::vec(piece(), 0..12),
        (thinking, show_thoughts, web_search) in any::<(bool, bool, bool)>(),
        is_cut in any::<bool>(),
    ) {
        let reason = if is_cut { FinishReason::MaxTokens } else { FinishReason::Stop };
        let events = events(&pieces, reason);
        let echo = Echo { thinking, show_thoughts: thinking && show_thoughts, web_search, ..thinker() };
        let message = encode(&echo, &events);
        let sealed = returned(&message).iter().filter(|it| it.starts_with("sealed call")).count();
        prop_assert_eq!(sealed, pieces.iter().filter(|piece| **piece == 6).count());
    }

    /// No request makes the decoder panic, and every refusal names its place.
    #[test]
    fn law5_odd_requests_are_read_or_refused(content in odd_value(), tools in odd_value()) {
        let sealer = sealer();
        let options = DecodeOptions { sealer: &sealer };
        for role in ["user", "assistant", "system"] {
            let message = json!({"role": role, "content": content});
            let body = json!({
                "model": "m", "max_tokens": 1, "tools": tools,
                "messages": [{"role": "user", "content": "go"}, message],
            });
            let body = body.to_string();
            let (one, two) = (decode_request(&body, &options), decode_count_tokens(&body, &options));
            prop_assert_eq!(one.is_ok(), two.is_ok());
            if let Err(error) = one {
                prop_assert!(error.at.starts_with("messages[1]") || error.at.starts_with("tools"));
            }
        }
    }
}
