//! A whole answer as a `GenerateContentResponse`, and the pieces that a stream has in common
//! with it.

use std::borrow::Cow;

use super::Echo;
use crate::canon::{
    Answer, Call, CallInput, Finish, FinishReason, Item, Media, MediaSource, Signature, Stamp,
    Start, Usage,
};
use crate::json::{Fields, Kind, Raw, Text, write};
use crate::seal::Sealer;

/// Writes the body that answers `generateContent`.
///
/// Signatures are Gemini's own and go to the client as Gemini gave them: nothing is sealed.
pub fn encode_response(answer: &Answer, echo: &Echo, stamp: &Stamp, _sealer: &Sealer) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    out.push(b'{');
    if answer.finish.is_prompt_blocked && answer.items.is_empty() {
        write_feedback(&mut out, &answer.finish);
    } else {
        write_candidate(&mut out, answer);
    }
    write_usage(&mut out, &answer.finish.usage);
    write_tail(&mut out, &answer.start, echo, stamp);
    out.push(b'}');
    out
}

fn write_candidate(out: &mut Vec<u8>, answer: &Answer) {
    out.extend_from_slice(b"\"candidates\":[{\"content\":{");
    write_parts(out, &answer.items);
    write::key(out, "role");
    out.extend_from_slice(b"\"model\"}");
    write_finish(out, &answer.finish);
    out.extend_from_slice(b",\"index\":0");
    let groundings = answer.items.iter().filter_map(|item| match item {
        Item::Grounding(raw) => Some(raw),
        Item::Text(_)
        | Item::Thought(_)
        | Item::Signature { .. }
        | Item::Call(_)
        | Item::Media(_)
        | Item::Server(_) => None,
    });
    if let Some(grounding) = merged(groundings) {
        write::key(out, "groundingMetadata");
        grounding.write(out);
    }
    out.extend_from_slice(b"}]");
}

/// Writes what a blocked prompt gets instead of a candidate.
pub(super) fn write_feedback(out: &mut Vec<u8>, finish: &Finish) {
    let reason = match &finish.reason {
        FinishReason::Blocked(word) => word,
        FinishReason::Stop | FinishReason::ToolCalls | FinishReason::MaxTokens => "OTHER",
    };
    write::key(out, "promptFeedback");
    out.push(b'{');
    write::key(out, "blockReason");
    write::string(out, reason);
    if let Some(message) = &finish.message {
        write::key(out, "blockReasonMessage");
        write::string(out, message);
    }
    out.push(b'}');
}

/// Writes `"parts":[…]`, or nothing where there are none.
fn write_parts(out: &mut Vec<u8>, items: &[Item]) {
    if items.iter().all(|item| matches!(item, Item::Grounding(_))) {
        return;
    }
    out.extend_from_slice(b"\"parts\":[");
    let mut items = items.iter().peekable();
    while let Some(item) = items.next() {
        match item {
            Item::Text(text) => write_run(out, text, false, signs(items.peek(), false)),
            Item::Thought(text) => write_run(out, text, true, signs(items.peek(), true)),
            Item::Signature { thought, len: 0, signature } => {
                part(out, |out| write_text(out, &Text::EMPTY, *thought, Some(signature)));
            }
            // Written with the run that it signs.
            Item::Signature { .. } => {}
            Item::Call(call) => part(out, |out| write_call(out, call)),
            Item::Media(media) => part(out, |out| write_media(out, media)),
            Item::Server(activity) => {
                write::comma(out);
                activity.part.write(out);
            }
            Item::Grounding(_) => {}
        }
    }
    out.push(b']');
}

fn signs<'a>(next: Option<&&'a Item>, of_thought: bool) -> Option<(usize, &'a Signature<'a>)> {
    match next {
        Some(Item::Signature { thought, len, signature }) if *thought == of_thought && *len > 0 => {
            Some((*len, signature))
        }
        _ => None,
    }
}

/// A run of text as the parts that it was made of: the signed one is the last `len` bytes.
fn write_run(
    out: &mut Vec<u8>,
    text: &Text<'_>,
    thought: bool,
    signed: Option<(usize, &Signature<'_>)>,
) {
    let Some((len, signature)) = signed else {
        return part(out, |out| write_text(out, text, thought, None));
    };
    let plain = text.decode();
    let cut = plain.len().saturating_sub(len);
    match (plain.get(..cut), plain.get(cut..)) {
        (Some(before), Some(last)) if cut > 0 => {
            part(out, |out| write_text(out, &Text::new(before), thought, None));
            part(out, |out| write_text(out, &Text::new(last), thought, Some(signature)));
        }
        _ => part(out, |out| write_text(out, text, thought, Some(signature))),
    }
}

/// Writes one part, with a comma before it where one is needed.
pub(super) fn part(out: &mut Vec<u8>, members: impl FnOnce(&mut Vec<u8>)) {
    write::comma(out);
    out.push(b'{');
    members(out);
    out.push(b'}');
}

/// Writes the members of a part of text or thought.
pub(super) fn write_text(
    out: &mut Vec<u8>,
    text: &Text<'_>,
    thought: bool,
    signature: Option<&Signature<'_>>,
) {
    write::key(out, "text");
    text.write(out);
    if thought {
        out.extend_from_slice(b",\"thought\":true");
    }
    write_signature(out, signature);
}

/// Writes the members of a part that calls. The id is Gemini's where it gave one.
pub(super) fn write_call(out: &mut Vec<u8>, call: &Call<'_>) {
    out.extend_from_slice(b"\"functionCall\":{");
    let id = call.upstream_id.as_deref().unwrap_or(&call.id);
    if !id.is_empty() {
        write::key(out, "id");
        write::string(out, id);
    }
    write::key(out, "name");
    write::string(out, &call.tool.to_string());
    write::key(out, "args");
    match &call.input {
        CallInput::Json(raw) => raw.write(out),
        CallInput::Text(text) => {
            out.extend_from_slice(b"{\"input\":");
            text.write(out);
            out.push(b'}');
        }
    }
    out.push(b'}');
    write_signature(out, call.signature.as_ref());
}

/// Writes the members of a part that holds a medium.
pub(super) fn write_media(out: &mut Vec<u8>, media: &Media<'_>) {
    let (member, key, source) = match &media.source {
        MediaSource::Inline(data) => ("inlineData", "data", data),
        MediaSource::Uri(uri) => ("fileData", "fileUri", uri),
    };
    write::key(out, member);
    out.push(b'{');
    // Google's SDKs insist on it where the bytes are here.
    let unknown = (member == "inlineData").then_some("application/octet-stream");
    if let Some(mime) = media.mime.as_deref().or(unknown) {
        write::key(out, "mimeType");
        write::string(out, mime);
    }
    write::key(out, key);
    source.write(out);
    if let Some(name) = &media.name {
        write::key(out, "displayName");
        write::string(out, name);
    }
    out.push(b'}');
    for (name, raw) in &media.modifiers {
        write::key(out, name);
        raw.write(out);
    }
}

fn write_signature(out: &mut Vec<u8>, signature: Option<&Signature<'_>>) {
    if let Some(signature) = signature {
        write::key(out, "thoughtSignature");
        write::string(out, signature.expose());
    }
}

/// Writes `,"finishReason":…` and what else Gemini said about the answer. Gemini has no reason of
/// its own for calls.
pub(super) fn write_finish(out: &mut Vec<u8>, finish: &Finish) {
    let reason = match &finish.reason {
        FinishReason::Stop | FinishReason::ToolCalls => "STOP",
        FinishReason::MaxTokens => "MAX_TOKENS",
        FinishReason::Blocked(word) => word,
    };
    write::key(out, "finishReason");
    write::string(out, reason);
    if let Some(message) = &finish.message {
        write::key(out, "finishMessage");
        write::string(out, message);
    }
    let mut names: Vec<&str> = finish.metadata.iter().map(|(name, _)| &**name).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let all = finish.metadata.iter().filter(|(own, _)| own == name).map(|(_, raw)| raw);
        if let Some(raw) = merged(all) {
            write::key(out, name);
            raw.write(out);
        }
    }
}

/// Writes `,"usageMetadata":…`, if there is anything to say.
pub(super) fn write_usage(out: &mut Vec<u8>, usage: &Usage) {
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
    write::key(out, "usageMetadata");
    out.push(b'{');
    for (name, count) in counts {
        if let Some(count) = count {
            write::key(out, name);
            write::integer(out, count);
        }
    }
    out.push(b'}');
}

/// Writes what names the answer.
pub(super) fn write_tail(out: &mut Vec<u8>, start: &Start<'_>, echo: &Echo, stamp: &Stamp) {
    write::key(out, "modelVersion");
    write::string(out, start.model_version.as_deref().unwrap_or(&echo.model));
    write::key(out, "responseId");
    match &start.response_id {
        Some(id) => write::string(out, id),
        None => write::string(out, &stamp.ids.clone().token()),
    }
}

/// All metadata of an answer as one: a stream's later ones hold only what is new.
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
    json.push(b'{');
    for (name, values) in &merged {
        write::key(&mut json, name);
        match values.as_slice() {
            [one] => one.write(&mut json),
            many => {
                json.push(b'[');
                for member in many.iter().filter_map(Raw::items).flatten() {
                    write::comma(&mut json);
                    member.write(&mut json);
                }
                json.push(b']');
            }
        }
    }
    json.push(b'}');
    String::from_utf8(json).ok().and_then(Raw::parse)
}
