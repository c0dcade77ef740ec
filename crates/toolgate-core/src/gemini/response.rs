//! A whole answer as a `GenerateContentResponse`, and the pieces that a stream has in common
//! with it.

use std::borrow::Cow;

use super::Echo;
use crate::canon::{
    Answer, Call, CallInput, Finish, FinishReason, Item, Media, MediaSource, Signature, Start,
    Usage,
};
use crate::dialect::Stamp;
use crate::json::write::{ArrayWriter, ObjectWriter};
use crate::json::{Fields, Kind, Raw, Text};
use crate::seal::Sealer;

/// Writes the body that answers `generateContent`.
///
/// Signatures are Gemini's own and go to the client as Gemini gave them: nothing is sealed.
pub fn encode_response(answer: &Answer, echo: &Echo, stamp: &Stamp, _sealer: &Sealer) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    let mut body = ObjectWriter::new(&mut out);
    if answer.finish.is_prompt_blocked && answer.items.is_empty() {
        write_feedback(&mut body, &answer.finish);
    } else {
        let mut candidates = body.array("candidates");
        write_candidate(&mut candidates.object(), answer, 0);
        for (at, other) in answer.finish.candidates.iter().enumerate() {
            write_candidate(&mut candidates.object(), other, at + 1);
        }
    }
    write_usage(&mut body, &answer.finish.usage);
    write_tail(&mut body, &answer.start, echo, stamp);
    drop(body);
    out
}

/// Writes a whole candidate.
pub(super) fn write_candidate(out: &mut ObjectWriter<'_>, answer: &Answer, index: usize) {
    let mut content = out.object("content");
    write_parts(&mut content, &answer.items);
    content.string("role", "model");
    drop(content);
    write_finish(out, &answer.finish);
    out.integer("index", index as u64);
    let groundings = answer.items.iter().filter_map(|item| match item {
        Item::Grounding(grounding) => Some(&grounding.raw),
        Item::Text(_)
        | Item::Thought(_)
        | Item::Signature { .. }
        | Item::Call(_)
        | Item::Media(_)
        | Item::Server(_) => None,
    });
    if let Some(grounding) = merged(groundings) {
        out.raw("groundingMetadata", &grounding);
    }
}

/// Writes `promptFeedback`, which a blocked prompt gets instead of a candidate.
pub(super) fn write_feedback(body: &mut ObjectWriter<'_>, finish: &Finish) {
    let reason = match &finish.reason {
        FinishReason::Blocked(word) => word,
        FinishReason::Stop | FinishReason::ToolCalls | FinishReason::MaxTokens => "OTHER",
    };
    let mut feedback = body.object("promptFeedback");
    feedback.string("blockReason", reason);
    feedback.optional_string("blockReasonMessage", finish.message.as_deref());
}

/// Writes `"parts":[…]`, or nothing where there are none.
fn write_parts(content: &mut ObjectWriter<'_>, items: &[Item]) {
    if items.iter().all(|item| matches!(item, Item::Grounding(_))) {
        return;
    }
    let mut parts = content.array("parts");
    let mut items = items.iter().peekable();
    while let Some(item) = items.next() {
        match item {
            Item::Text(text) => write_run(&mut parts, text, false, signs(items.peek(), false)),
            Item::Thought(text) => write_run(&mut parts, text, true, signs(items.peek(), true)),
            Item::Signature { thought, len: 0, signature } => {
                write_text(&mut parts.object(), &Text::EMPTY, *thought, Some(signature));
            }
            // Written with the run that it signs.
            Item::Signature { .. } => {}
            Item::Call(call) => write_call(&mut parts.object(), call),
            Item::Media(media) => write_media(&mut parts.object(), media),
            Item::Server(activity) => activity.part.write(parts.element()),
            Item::Grounding(_) => {}
        }
    }
}

fn signs<'a>(next: Option<&&'a Item>, of_thought: bool) -> Option<(usize, &'a Signature<'a>)> {
    match next {
        Some(Item::Signature { thought, len, signature }) if *thought == of_thought && *len > 0 => {
            Some((*len, signature))
        }
        _ => None,
    }
}

/// Writes a run of text as the parts that it was made of: the signed one is the last `len` bytes.
fn write_run(
    parts: &mut ArrayWriter<'_>,
    text: &Text<'_>,
    thought: bool,
    signed: Option<(usize, &Signature<'_>)>,
) {
    let Some((len, signature)) = signed else {
        return write_text(&mut parts.object(), text, thought, None);
    };
    let plain = text.decode();
    let cut = plain.len().saturating_sub(len);
    match (plain.get(..cut), plain.get(cut..)) {
        (Some(before), Some(last)) if cut > 0 => {
            write_text(&mut parts.object(), &Text::new(before), thought, None);
            write_text(&mut parts.object(), &Text::new(last), thought, Some(signature));
        }
        _ => write_text(&mut parts.object(), text, thought, Some(signature)),
    }
}

/// Writes the members of a part of text or thought.
pub(super) fn write_text(
    part: &mut ObjectWriter<'_>,
    text: &Text<'_>,
    thought: bool,
    signature: Option<&Signature<'_>>,
) {
    part.text("text", text);
    if thought {
        part.bool("thought", true);
    }
    part.optional_string("thoughtSignature", signature.map(Signature::expose));
}

/// Writes the members of a part that calls. The id is Gemini's where it gave one.
pub(super) fn write_call(part: &mut ObjectWriter<'_>, call: &Call<'_>) {
    let mut out = part.object("functionCall");
    let id = call.upstream_id.as_deref().unwrap_or(&call.id);
    if !id.is_empty() {
        out.string("id", id);
    }
    out.string("name", &call.tool.to_string());
    match &call.input {
        CallInput::Json(raw) => out.raw("args", raw),
        CallInput::Text(text) => out.object("args").text("input", text),
    }
    drop(out);
    part.optional_string("thoughtSignature", call.signature.as_ref().map(Signature::expose));
}

/// Writes the members of a part that holds a medium.
pub(super) fn write_media(part: &mut ObjectWriter<'_>, media: &Media<'_>) {
    let (member, key, source) = match &media.source {
        MediaSource::Inline(data) => ("inlineData", "data", data),
        MediaSource::Uri(uri) => ("fileData", "fileUri", uri),
    };
    let mut out = part.object(member);
    // Google's SDKs insist on a type where the bytes are here.
    let unknown = (member == "inlineData").then_some("application/octet-stream");
    out.optional_string("mimeType", media.mime.as_deref().or(unknown));
    out.text(key, source);
    out.optional_string("displayName", media.name.as_deref());
    drop(out);
    for (name, raw) in &media.modifiers {
        part.raw(name, raw);
    }
}

/// Writes `finishReason` and Gemini's other members about the end of the answer. Gemini has no
/// reason of its own for calls.
pub(super) fn write_finish(candidate: &mut ObjectWriter<'_>, finish: &Finish) {
    let reason = match &finish.reason {
        FinishReason::Stop | FinishReason::ToolCalls => "STOP",
        FinishReason::MaxTokens => "MAX_TOKENS",
        FinishReason::Blocked(word) => word,
    };
    candidate.string("finishReason", reason);
    candidate.optional_string("finishMessage", finish.message.as_deref());
    let mut names: Vec<&str> = finish.metadata.iter().map(|(name, _)| &**name).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let all = finish.metadata.iter().filter(|(own, _)| own == name).map(|(_, raw)| raw);
        if let Some(raw) = merged(all) {
            candidate.raw(name, &raw);
        }
    }
}

/// Writes `usageMetadata`, if there are counts.
pub(super) fn write_usage(body: &mut ObjectWriter<'_>, usage: &Usage) {
    let counts = [
        ("promptTokenCount", usage.prompt),
        ("cachedContentTokenCount", usage.cached),
        ("candidatesTokenCount", usage.candidates),
        ("thoughtsTokenCount", usage.thoughts),
        ("toolUsePromptTokenCount", usage.tool_use_prompt),
        ("totalTokenCount", usage.total),
    ];
    if counts.iter().all(|(_, count)| count.is_none()) {
        return;
    }
    let mut out = body.object("usageMetadata");
    for (name, count) in counts {
        if let Some(count) = count {
            out.integer(name, count);
        }
    }
}

/// Writes the model and the identifier of the answer.
pub(super) fn write_tail(
    body: &mut ObjectWriter<'_>,
    start: &Start<'_>,
    echo: &Echo,
    stamp: &Stamp,
) {
    body.string("modelVersion", start.model_version.as_deref().unwrap_or(&echo.model));
    match &start.response_id {
        Some(id) => body.string("responseId", id),
        None => body.string("responseId", &stamp.ids.clone().token()),
    }
}

/// Merges the metadata of an answer: a later chunk of a stream has only new entries.
fn merged<'a>(mut all: impl Iterator<Item = &'a Raw<'a>>) -> Option<Raw<'a>> {
    let first = all.next()?;
    let rest: Vec<&Raw<'_>> = all.collect();
    if rest.is_empty() {
        return Some(first.borrowed());
    }
    let mut merged: Vec<(Cow<'_, str>, Vec<Raw<'_>>)> = Vec::new();
    for raw in std::iter::once(first).chain(rest) {
        let Fields(fields) = raw.fields().unwrap_or_default();
        for (name, value) in fields {
            match merged.iter_mut().find(|(known, _)| *known == name) {
                Some((_, values)) if value.kind() == Kind::Array => values.push(value),
                Some((_, values)) => *values = vec![value],
                None => merged.push((name, vec![value])),
            }
        }
    }
    let mut json = Vec::new();
    let mut object = ObjectWriter::new(&mut json);
    for (name, values) in &merged {
        match values.as_slice() {
            [one] => object.raw(name, one),
            many => {
                let mut array = object.array(name);
                let members = many.iter().filter_map(Raw::items).flatten();
                members.for_each(|member| member.write(array.element()));
            }
        }
    }
    drop(object);
    String::from_utf8(json).ok().and_then(Raw::parse)
}
