//! Streams of events that follow the grammar, made up.

use proptest::prelude::*;
use toolgate_core::canon::{
    Backend, Call, CallInput, Event, Failure, FailureKind, Finish, FinishReason, Grammar, Issuer,
    Media, MediaSource, Signature, Start, ToolName, Usage,
};
use toolgate_core::json::{Raw, Text};
use toolgate_core::upstream::generate_content::{decode_activity, decode_grounding};

/// Any answer: a start, pieces in any order, an end.
pub fn events() -> impl Strategy<Value = Vec<Event<'static>>> {
    (prop::collection::vec((0u8..8, "[a-c\"\\\\é\n\u{2028}😀]{1,5}", 0usize..9), 0..12), 0u8..5)
        .prop_map(|(pieces, end)| {
            let mut events = vec![Event::Start(Start::default())];
            let mut run = (false, 0);
            for (index, (kind, words, len)) in pieces.iter().enumerate() {
                events.push(piece(*kind, words, *len, index, &mut run));
            }
            events.push(last(end));
            let mut grammar = Grammar::default();
            events.iter().for_each(|event| grammar.feed(event).unwrap());
            events
        })
}

fn piece(
    kind: u8,
    words: &str,
    len: usize,
    index: usize,
    run: &mut (bool, usize),
) -> Event<'static> {
    let before = std::mem::take(run);
    let raw = |json: &str| Raw::parse(json.to_owned()).unwrap();
    let issuer = Issuer { model: "gemini-3-pro".into(), backend: Backend::Vertex };
    let signature = Signature::new("AB+/".to_owned(), Some(issuer)).unwrap();
    match kind {
        0 | 1 => {
            let thought = kind == 1;
            let text = Text::new(words);
            *run = (thought, words.len() + if before.0 == thought { before.1 } else { 0 });
            if thought { Event::Thought(text) } else { Event::Text(text) }
        }
        2 => Event::Signature { thought: before.0, len: len.min(before.1), signature },
        3 | 4 => Event::Call(Call {
            id: format!("tg{index}").into(),
            upstream_id: (kind == 4).then(|| format!("x{index}").into()),
            tool: ToolName::plain("f"),
            input: CallInput::Json(raw(&format!(r#"{{ "a": {} }}"#, Text::new(words).literal()))),
            signature: len.is_multiple_of(2).then_some(signature),
        }),
        5 => Event::Media(Media {
            mime: Some("image/png".into()),
            source: MediaSource::Inline(Text::new("iVBO")),
            name: None,
            modifiers: Vec::new(),
        }),
        6 => Event::Server(decode_activity(
            "executableCode".into(),
            raw(r#"{"code":"1"}"#),
            raw("{\n\"executableCode\": {\"code\":\"1\"}}"),
            None,
        )),
        _ => Event::Grounding(decode_grounding(raw(
            r#"{"groundingChunks":[{"web":{"uri":"https://a.test"}}]}"#,
        ))),
    }
}

fn last(end: u8) -> Event<'static> {
    let reason = match end {
        0 => FinishReason::Stop,
        1 => FinishReason::MaxTokens,
        2 => FinishReason::Blocked("SAFETY".into()),
        3 => FinishReason::ToolCalls,
        _ => return Event::Fail(Failure::new(FailureKind::Overloaded, "busy")),
    };
    let usage = Usage { prompt: Some(5), candidates: Some(3), ..Usage::default() };
    Event::Finish(Finish { reason, usage, ..Finish::default() })
}
