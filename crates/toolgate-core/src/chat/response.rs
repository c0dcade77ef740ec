//! A whole answer as `chat.completion`.

use std::borrow::Cow;

use super::Echo;
use super::carrier::{Carrier, seal_call};
use crate::canon::{
    Answer, Call, CallInput, Citation, FinishReason, Grounding, Item, Media, MediaSource, Usage,
    citations,
};
use crate::dialect::Stamp;
use crate::json::{Text, write};
use crate::seal::Sealer;

/// Writes the body that answers a request without `stream`.
pub fn encode_response(answer: &Answer, echo: &Echo, stamp: &Stamp, sealer: &Sealer) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    out.push(b'{');
    write_head(&mut out, "chat.completion", echo, stamp);
    out.extend_from_slice(b",\"choices\":[");
    write_choice(&mut out, answer, 0, echo, sealer);
    for (at, other) in answer.finish.candidates.iter().enumerate() {
        write::comma(&mut out);
        write_choice(&mut out, other, at + 1, echo, sealer);
    }
    out.push(b']');
    write::key(&mut out, "usage");
    write_usage(&mut out, &answer.finish.usage);
    out.push(b'}');
    out
}

/// Writes one member of `choices`.
fn write_choice(out: &mut Vec<u8>, answer: &Answer, index: usize, echo: &Echo, sealer: &Sealer) {
    let message = Message::of(answer);
    out.extend_from_slice(b"{\"index\":");
    write::integer(out, index as u64);
    out.extend_from_slice(b",\"message\":{\"role\":\"assistant\"");
    write::key(out, "content");
    match &message.content {
        Some(text) => text.write(out),
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(b",\"refusal\":null");
    if let Some(thought) = &message.thought {
        write::key(out, "reasoning_content");
        thought.write(out);
    }
    write_calls(out, &message.calls, echo, sealer);
    write::key(out, "annotations");
    write_annotations(out, &message.citations(echo));
    let is_called = !message.calls.is_empty();
    if let Some(field) = message.carrier.finish(sealer) {
        write_extra_content(out, &field);
    }
    out.extend_from_slice(b"},\"logprobs\":null,\"finish_reason\":");
    write::string(out, finish_reason(&answer.finish.reason, is_called, echo));
    out.push(b'}');
}

/// An answer, sorted into the fields that a message has.
#[derive(Default)]
pub(super) struct Message<'a> {
    pub(super) content: Option<Text<'static>>,
    pub(super) thought: Option<Text<'static>>,
    pub(super) calls: Vec<&'a Call<'static>>,
    groundings: Vec<Grounding>,
    pub(super) carrier: Carrier,
}

impl<'a> Message<'a> {
    /// Pages that the text rests on, where the client wants them.
    pub(super) fn citations(&self, echo: &Echo) -> Vec<Citation> {
        let text = self.content.as_ref().filter(|_| echo.citations);
        citations(&self.groundings, &text.map(Text::decode).unwrap_or_default())
    }

    pub(super) fn of(answer: &'a Answer) -> Self {
        let mut message = Self::default();
        for item in &answer.items {
            match item {
                Item::Text(text) => {
                    message.carrier.grown(false);
                    push(&mut message.content, text);
                }
                Item::Thought(text) => {
                    message.carrier.grown(true);
                    push(&mut message.thought, text);
                }
                Item::Signature { thought, len, signature } => {
                    message.carrier.signature(*thought, *len, signature);
                }
                Item::Call(call) => {
                    message.carrier.seen(call.signature.as_ref());
                    message.calls.push(call);
                }
                Item::Media(media) => {
                    message.carrier.grown(false);
                    push(&mut message.content, &markdown(media));
                }
                Item::Server(activity) => message.carrier.server(activity),
                Item::Grounding(grounding) => message.groundings.push(grounding.clone()),
            }
        }
        message
    }
}

fn push(all: &mut Option<Text<'static>>, more: &Text<'static>) {
    match all {
        Some(text) => text.push(more),
        None => *all = Some(more.clone()),
    }
}

/// Writes what every body and every chunk begins with.
pub(super) fn write_head(out: &mut Vec<u8>, object: &str, echo: &Echo, stamp: &Stamp) {
    write::key(out, "id");
    write::string(out, &format!("chatcmpl-{}", stamp.ids.clone().token()));
    write::key(out, "object");
    write::string(out, object);
    write::key(out, "created");
    write::integer(out, stamp.created);
    write::key(out, "model");
    write::string(out, &echo.model);
}

fn write_calls(out: &mut Vec<u8>, calls: &[&Call<'_>], echo: &Echo, sealer: &Sealer) {
    match calls {
        [] => {}
        [first, ..] if echo.legacy_functions => {
            write::key(out, "function_call");
            write_function_call(out, first, sealer);
        }
        _ => {
            write::key(out, "tool_calls");
            out.push(b'[');
            for call in calls {
                write::comma(out);
                write_tool_call(out, call, None, sealer);
            }
            out.push(b']');
        }
    }
}

/// Writes one member of `tool_calls`; a stream says its index.
pub(super) fn write_tool_call(
    out: &mut Vec<u8>,
    call: &Call<'_>,
    index: Option<u32>,
    sealer: &Sealer,
) {
    out.push(b'{');
    if let Some(index) = index {
        write::key(out, "index");
        write::integer(out, index);
    }
    write::key(out, "id");
    write::string(out, &format!("call_{}", call.id));
    let (kind, input_key) = match &call.input {
        CallInput::Json(_) => ("function", "arguments"),
        CallInput::Text(_) => ("custom", "input"),
    };
    write::key(out, "type");
    write::string(out, kind);
    write::key(out, kind);
    out.push(b'{');
    write_name_and_input(out, call, input_key);
    out.push(b'}');
    if let Some(field) = seal_call(call, sealer) {
        write_extra_content(out, &field);
    }
    out.push(b'}');
}

/// Writes the legacy `function_call`.
pub(super) fn write_function_call(out: &mut Vec<u8>, call: &Call<'_>, sealer: &Sealer) {
    out.push(b'{');
    write_name_and_input(out, call, "arguments");
    if let Some(field) = seal_call(call, sealer) {
        write_extra_content(out, &field);
    }
    out.push(b'}');
}

fn write_name_and_input(out: &mut Vec<u8>, call: &Call<'_>, input_key: &str) {
    write::key(out, "name");
    write::string(out, &call.tool.to_string());
    write::key(out, input_key);
    match &call.input {
        CallInput::Json(raw) => write::json_in_string(out, raw.get()),
        CallInput::Text(text) => text.write(out),
    }
}

/// Writes `"extra_content":…`.
pub(super) fn write_extra_content(out: &mut Vec<u8>, field: &str) {
    write::key(out, "extra_content");
    out.extend_from_slice(b"{\"google\":{\"thought_signature\":");
    write::string(out, field);
    out.extend_from_slice(b"}}");
}

/// Writes the list of `url_citation`s.
pub(super) fn write_annotations(out: &mut Vec<u8>, citations: &[Citation]) {
    out.push(b'[');
    for citation in citations {
        write::comma(out);
        out.extend_from_slice(b"{\"type\":\"url_citation\",\"url_citation\":{");
        write::key(out, "start_index");
        write::integer(out, citation.start as u64);
        write::key(out, "end_index");
        write::integer(out, citation.end as u64);
        write::key(out, "url");
        write::string(out, &citation.url);
        write::key(out, "title");
        write::string(out, &citation.title);
        out.extend_from_slice(b"}}");
    }
    out.push(b']');
}

/// Writes the token counts; unknown ones are 0, as OpenAI knows no others.
pub(super) fn write_usage(out: &mut Vec<u8>, usage: &Usage) {
    let (input, output) = (usage.input(), usage.output());
    out.push(b'{');
    write::key(out, "prompt_tokens");
    write::integer(out, input);
    write::key(out, "completion_tokens");
    write::integer(out, output);
    write::key(out, "total_tokens");
    write::integer(out, input.saturating_add(output));
    out.extend_from_slice(b",\"prompt_tokens_details\":{\"cached_tokens\":");
    write::integer(out, usage.cached.unwrap_or(0));
    out.extend_from_slice(b"},\"completion_tokens_details\":{\"reasoning_tokens\":");
    write::integer(out, usage.thoughts.unwrap_or(0));
    out.extend_from_slice(b"}}");
}

/// `tool_calls` whenever there is a call: a client that reads `stop` or `length` does not run it.
pub(super) fn finish_reason(reason: &FinishReason, called: bool, echo: &Echo) -> &'static str {
    match reason {
        FinishReason::Blocked(_) => "content_filter",
        FinishReason::Stop | FinishReason::ToolCalls | FinishReason::MaxTokens if called => {
            if echo.legacy_functions { "function_call" } else { "tool_calls" }
        }
        FinishReason::MaxTokens => "length",
        FinishReason::Stop | FinishReason::ToolCalls => "stop",
    }
}

/// A medium as text: Chat has no other place for it, and Markdown is what clients show.
pub(super) fn markdown(media: &Media<'_>) -> Text<'static> {
    let mime: Cow<'_, str> = media.mime.as_deref().unwrap_or("application/octet-stream").into();
    let (mark, name) = if mime.starts_with("image/") { ("!", "image") } else { ("", &*mime) };
    let (address, end) = match &media.source {
        MediaSource::Inline(data) => (format!("data:{mime};base64,"), data),
        MediaSource::Uri(uri) => (String::new(), uri),
    };
    let mut text = Text::new(&format!("\n{mark}[{name}]({address}"));
    text.push(end);
    text.push(&Text::new(")\n"));
    text
}
