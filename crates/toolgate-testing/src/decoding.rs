//! The decoder of Gemini's answers, run over pieces of a body.

use std::sync::Arc;

use serde_json::Value;
use toolgate_core::canon::{
    Answer, Assembler, Backend, CallInput, Event, Failure, Grammar, IdGen, Item, Sink, Target,
    ToolName,
};
use toolgate_core::json::Raw;
use toolgate_core::schema::Checker;
use toolgate_core::upstream::generate_content::{Exchange, StreamDecoder, ToolEntry, ToolInput};

use crate::golden;

/// An exchange about Anthropic tools (`name`, `input_schema`).
pub fn exchange_of(tools: &[Value]) -> Exchange {
    let entry = |tool: &Value| {
        let name = tool["name"].as_str().unwrap().to_owned();
        let schema = tool.get("input_schema").map(|it| Raw::of(it).unwrap());
        ToolEntry {
            alias: name.clone(),
            name: ToolName::plain(name),
            input: ToolInput::Json(Arc::new(Checker::new(schema.as_ref()))),
        }
    };
    Exchange {
        target: Target { model: "gemini-3.6-flash".into(), backend: Backend::Developer },
        tools: tools.iter().map(entry).collect(),
        one_call: false,
        answer_function: None,
    }
}

/// The exchange that the golden answers belong to.
pub fn exchange() -> Exchange {
    let request: Value = serde_json::from_slice(&golden::file("tools.anthropic.json")).unwrap();
    exchange_of(request["tools"].as_array().unwrap())
}

/// Keeps the answer and every event's `Debug`, and holds the events against the grammar.
#[derive(Debug, Default)]
pub struct Watch {
    pub answer: Assembler,
    pub events: Vec<String>,
    pub grammar: Grammar,
}

impl Sink for Watch {
    fn event(&mut self, event: &Event<'_>) {
        self.grammar.feed(event).unwrap_or_else(|error| panic!("{error}: {event:?}"));
        self.events.push(format!("{event:?}"));
        self.answer.event(event);
    }
}

/// Decodes pieces of a body.
pub fn decode(exchange: &Exchange, pieces: &[&[u8]]) -> Watch {
    let mut decoder = StreamDecoder::new(Arc::new(exchange.clone()), IdGen::new(7));
    let mut watch = Watch::default();
    for piece in pieces {
        decoder.feed(piece, &mut watch);
    }
    decoder.finish(&mut watch);
    assert!(decoder.is_ended());
    watch.grammar.finish().unwrap();
    watch
}

/// An answer in a few words a line.
pub fn shown(answer: Result<Answer, Failure>) -> Vec<String> {
    let answer = match answer {
        Ok(answer) => answer,
        Err(failure) => return vec![format!("fail {:?}", failure.kind)],
    };
    let mut lines: Vec<String> = answer.items.iter().map(shown_item).collect();
    let finish = &answer.finish;
    lines.push(format!("finish {:?}", finish.reason));
    lines.extend(finish.losses.iter().map(|loss| format!("{:?} {}", loss.code, loss.at)));
    lines
}

fn shown_item(item: &Item) -> String {
    match item {
        Item::Text(text) => format!("text {text:?}"),
        Item::Thought(text) => format!("thought {text:?}"),
        Item::Signature { thought, len, signature } => {
            let on = if *thought { "thought" } else { "text" };
            format!("signature on {on} {len}: {}", signature.expose())
        }
        Item::Call(call) => {
            let input = match &call.input {
                CallInput::Json(raw) => raw.compact().into_owned(),
                CallInput::Text(text) => format!("freeform {text:?}"),
            };
            let id = call.upstream_id.as_deref().unwrap_or("-");
            let signature = call.signature.as_ref().map_or("-", |it| it.expose());
            format!("call {} {input} id {id} signature {signature}", call.tool)
        }
        Item::Media(media) => format!("media {media:?}"),
        Item::Server(activity) => format!("server {} {}", activity.kind, activity.body.compact()),
        Item::Grounding(grounding) => format!("grounding {}", grounding.raw.compact()),
    }
}

/// A stream of chunks, each a candidate's members (`"content":…`), as Google frames them.
pub fn stream(candidates: &[&str]) -> Vec<u8> {
    let frame = |it: &&str| format!("data: {{\"candidates\":[{{{it}}}]}}\r\n\r\n");
    candidates.iter().map(frame).collect::<String>().into_bytes()
}

/// A candidate's members: parts, and a finish reason where it is not empty.
pub fn candidate(parts: &str, finish: &str) -> String {
    let finish =
        if finish.is_empty() { String::new() } else { format!(",\"finishReason\":\"{finish}\"") };
    format!("\"content\":{{\"parts\":[{parts}],\"role\":\"model\"}}{finish}")
}

/// Chunks with these parts, the last one with `finish`, decode to `want`.
#[track_caller]
pub fn check_with(exchange: &Exchange, chunks: &[&str], finish: &str, want: &[&str]) {
    let last = chunks.len().saturating_sub(1);
    let candidates: Vec<String> = chunks
        .iter()
        .enumerate()
        .map(|(index, parts)| candidate(parts, if index == last { finish } else { "" }))
        .collect();
    let bytes = stream(&candidates.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(shown(decode(exchange, &[&bytes]).answer.finish()), want);
}

/// The same for the tools of the golden request.
#[track_caller]
pub fn check(chunks: &[&str], finish: &str, want: &[&str]) {
    check_with(&exchange(), chunks, finish, want);
}
