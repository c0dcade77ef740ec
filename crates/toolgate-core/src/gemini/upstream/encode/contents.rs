//! `contents`.

use std::borrow::Cow;

use super::media::{write_media, write_source};
use super::response::{COMES_LATER, NO_RESULT, is_deep, write_response};
use crate::canon::{Call, CallInput, Loss, LossCode, Losses, ResultPart};
use crate::gemini::upstream::Backend;
use crate::gemini::upstream::history::{
    CallSite, Content, Conversation, Piece, RawPart, Rules, Speaker, camel,
};
use crate::gemini::upstream::signatures::Sent;
use crate::json::{Kind, write};

/// Writes `"contents":[…]`.
pub(super) fn write_contents(
    out: &mut Vec<u8>,
    conversation: &Conversation<'_>,
    rules: &Rules<'_>,
    losses: &mut Losses,
) {
    write::key(out, "contents");
    out.push(b'[');
    for content in &conversation.contents {
        write::comma(out);
        write_content(out, content, &conversation.calls, rules, losses);
    }
    out.push(b']');
}

fn write_content(
    out: &mut Vec<u8>,
    content: &Content<'_>,
    calls: &[CallSite<'_>],
    rules: &Rules<'_>,
    losses: &mut Losses,
) {
    out.extend_from_slice(match content.speaker {
        Speaker::User => b"{\"role\":\"user\",\"parts\":[" as &[u8],
        Speaker::Model => b"{\"role\":\"model\",\"parts\":[",
    });
    for piece in &content.pieces {
        write::comma(out);
        out.push(b'{');
        match piece {
            Piece::Text { text, signature, .. } => {
                write::key(out, "text");
                text.write(out);
                write_signature(out, *signature);
            }
            Piece::Thought { text, signature } => {
                write::key(out, "text");
                text.write(out);
                out.extend_from_slice(b",\"thought\":true");
                write_signature(out, Some(*signature));
            }
            Piece::Words(words) => {
                write::key(out, "text");
                write::string(out, words);
            }
            Piece::Media { media, signed } => {
                write_media(out, media, *signed, rules.target.backend, losses);
            }
            Piece::Call { site, signature } => {
                if let Some(site) = calls.get(*site) {
                    write_call(out, site, rules, losses);
                }
                write_signature(out, *signature);
            }
            Piece::Response { site } => {
                if let Some(site) = calls.get(*site) {
                    write_result(out, site, rules, losses);
                }
            }
            Piece::Raw(part) => write_raw(out, part),
        }
        out.push(b'}');
    }
    out.extend_from_slice(b"]}");
}

fn write_signature(out: &mut Vec<u8>, signature: Option<Sent<'_>>) {
    if let Some(signature) = signature {
        // Base64, so that there is nothing to escape.
        out.extend_from_slice(b",\"thoughtSignature\":\"");
        out.extend_from_slice(signature.text().as_bytes());
        out.push(b'"');
    }
}

fn write_raw(out: &mut Vec<u8>, part: &RawPart<'_>) {
    if part.bare {
        out.extend_from_slice(b"\"text\":\"\"");
    }
    for (name, value) in &part.members {
        write::key(out, name);
        value.write(out);
    }
}

/// Ids go on both the call and its response, or on neither.
fn write_id(out: &mut Vec<u8>, site: &CallSite<'_>, rules: &Rules<'_>) {
    if rules.profile.call_ids && !rules.learned.no_call_ids {
        write::key(out, "id");
        write::string(out, &site.id);
    }
}

fn write_call(out: &mut Vec<u8>, site: &CallSite<'_>, rules: &Rules<'_>, losses: &mut Losses) {
    write::key(out, "functionCall");
    out.push(b'{');
    write_id(out, site, rules);
    write::key(out, "name");
    write::string(out, rules.names.alias(&site.call.tool));
    write::key(out, "args");
    if let Some(detail) = write_args(out, site.call) {
        losses.add_with(LossCode::Changed, || loss(site, LossCode::Changed, detail));
    }
    out.push(b'}');
}

/// Writes the arguments, which must be an object; says what was changed to make them one.
fn write_args(out: &mut Vec<u8>, call: &Call<'_>) -> Option<&'static str> {
    match &call.input {
        CallInput::Text(text) => {
            out.extend_from_slice(b"{\"input\":");
            text.write(out);
            out.push(b'}');
            None
        }
        CallInput::Json(raw) => match raw.kind() {
            _ if is_deep(raw.get()) => {
                out.extend_from_slice(b"{\"value\":");
                write::json_in_string(out, raw.get());
                out.push(b'}');
                Some("the arguments nest deeper than Gemini reads; they are told as text")
            }
            Kind::Object => {
                raw.write(out);
                None
            }
            Kind::Null => {
                out.extend_from_slice(b"{}");
                None
            }
            Kind::Array | Kind::Bool | Kind::Number | Kind::String => {
                out.extend_from_slice(b"{\"value\":");
                raw.write(out);
                out.push(b'}');
                Some("the stored arguments are not an object; they were put into one")
            }
        },
    }
}

fn write_result(out: &mut Vec<u8>, site: &CallSite<'_>, rules: &Rules<'_>, losses: &mut Losses) {
    write::key(out, "functionResponse");
    out.push(b'{');
    write_id(out, site, rules);
    write::key(out, "name");
    write::string(out, rules.names.alias(&site.call.tool));
    write::key(out, "response");
    match site.result {
        Some(result) => write_response(out, result),
        None if site.is_late => out.extend_from_slice(COMES_LATER.as_bytes()),
        None => out.extend_from_slice(NO_RESULT.as_bytes()),
    }
    let Some(result) = site.result else {
        out.push(b'}');
        return;
    };
    let mut within = result.content.iter().filter_map(|part| match part {
        ResultPart::Media(media) if rules.fits_response(media) => Some(media),
        ResultPart::Media(_) | ResultPart::Text(_) | ResultPart::Json(_) => None,
    });
    if let Some(first) = within.next() {
        write::key(out, "parts");
        out.push(b'[');
        for media in std::iter::once(first).chain(within) {
            write::comma(out);
            out.push(b'{');
            write_source(out, media, rules.target.backend, losses);
            out.push(b'}');
            if !media.modifiers.is_empty() {
                let detail = "a medium in a response has no place for its other members";
                losses.add_with(LossCode::Ignored, || loss(site, LossCode::Ignored, detail));
            }
        }
        out.push(b']');
    }
    for (name, value) in &result.modifiers {
        let name = camel(Cow::Borrowed(name));
        if value.kind() == Kind::Null || matches!(&*name, "id" | "name" | "response" | "parts") {
            continue;
        }
        if name == "willContinue" && rules.target.backend == Backend::Vertex {
            let detail = "Vertex does not know `willContinue` on responses";
            losses.add_with(LossCode::Ignored, || loss(site, LossCode::Ignored, detail));
            continue;
        }
        write::key(out, &name);
        value.write(out);
    }
    out.push(b'}');
}

fn loss(site: &CallSite<'_>, code: LossCode, detail: &str) -> Loss {
    let (turn, part) = site.at;
    Loss {
        at: format!("turns[{turn}].parts[{part}]"),
        code,
        detail: detail.to_owned(),
        tool: Some(site.call.tool.to_string()),
    }
}
