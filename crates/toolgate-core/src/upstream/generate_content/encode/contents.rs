//! `contents`.

use std::borrow::Cow;

use super::media::{write_media, write_source};
use super::response::{COMES_LATER, NO_RESULT, is_deep, write_response};
use crate::canon::{Backend, Call, CallInput, Loss, LossCode, Losses, ResultPart};
use crate::json::Kind;
use crate::json::write::{self, ObjectWriter};
use crate::upstream::generate_content::history::{
    CallSite, Content, Conversation, Piece, RawPart, Rules, Speaker, camel,
};
use crate::upstream::generate_content::signatures::Sent;

/// Writes `"contents":[…]`.
pub(super) fn write_contents(
    body: &mut ObjectWriter<'_>,
    conversation: &Conversation<'_>,
    rules: &Rules<'_>,
    losses: &mut Losses,
) {
    let mut contents = body.array("contents");
    for content in &conversation.contents {
        write_content(&mut contents.object(), content, &conversation.calls, rules, losses);
    }
}

fn write_content(
    out: &mut ObjectWriter<'_>,
    content: &Content<'_>,
    calls: &[CallSite<'_>],
    rules: &Rules<'_>,
    losses: &mut Losses,
) {
    out.json(
        "role",
        match content.speaker {
            Speaker::User => "\"user\"",
            Speaker::Model => "\"model\"",
        },
    );
    let mut parts = out.array("parts");
    for piece in &content.pieces {
        let part = &mut parts.object();
        match piece {
            Piece::Text { text, signature, .. } => {
                part.text("text", text);
                write_signature(part, *signature);
            }
            Piece::Thought { text, signature } => {
                part.text("text", text);
                part.bool("thought", true);
                write_signature(part, Some(*signature));
            }
            Piece::Words(words) => part.string("text", words),
            Piece::Media { media, signed } => {
                write_media(part, media, *signed, rules.target.backend, losses);
            }
            Piece::Call { site, signature } => {
                if let Some(site) = calls.get(*site) {
                    write_call(&mut part.object("functionCall"), site, rules, losses);
                }
                write_signature(part, *signature);
            }
            Piece::Response { site } => {
                if let Some(site) = calls.get(*site) {
                    write_result(&mut part.object("functionResponse"), site, rules, losses);
                }
            }
            Piece::Raw(raw) => write_raw(part, raw),
        }
    }
}

fn write_signature(part: &mut ObjectWriter<'_>, signature: Option<Sent<'_>>) {
    if let Some(signature) = signature {
        // Base64, so that there is nothing to escape.
        let out = part.key("thoughtSignature");
        out.push(b'"');
        out.extend_from_slice(signature.text().as_bytes());
        out.push(b'"');
    }
}

fn write_raw(part: &mut ObjectWriter<'_>, raw: &RawPart<'_>) {
    if raw.bare {
        part.json("text", "\"\"");
    }
    for (name, value) in &raw.members {
        part.raw(name, value);
    }
}

/// Ids go on both the call and its response, or on neither.
fn write_id(out: &mut ObjectWriter<'_>, site: &CallSite<'_>, rules: &Rules<'_>) {
    if rules.profile.call_ids && !rules.learned.no_call_ids {
        out.string("id", &site.id);
    }
}

fn write_call(
    out: &mut ObjectWriter<'_>,
    site: &CallSite<'_>,
    rules: &Rules<'_>,
    losses: &mut Losses,
) {
    write_id(out, site, rules);
    out.string("name", rules.names.alias(&site.call.tool));
    if let Some(detail) = write_args(out.key("args"), site.call) {
        losses.add_with(LossCode::Changed, || loss(site, LossCode::Changed, detail));
    }
}

/// Writes the arguments, which must be an object. Returns the change that made them one.
fn write_args(out: &mut Vec<u8>, call: &Call<'_>) -> Option<&'static str> {
    match &call.input {
        CallInput::Text(text) => {
            ObjectWriter::new(out).text("input", text);
            None
        }
        CallInput::Json(raw) => match raw.kind() {
            _ if is_deep(raw.get()) => {
                write::json_in_string(ObjectWriter::new(out).key("value"), raw.get());
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
                ObjectWriter::new(out).raw("value", raw);
                Some("the stored arguments are not an object; they were put into one")
            }
        },
    }
}

fn write_result(
    out: &mut ObjectWriter<'_>,
    site: &CallSite<'_>,
    rules: &Rules<'_>,
    losses: &mut Losses,
) {
    write_id(out, site, rules);
    out.string("name", rules.names.alias(&site.call.tool));
    let Some(result) = site.result else {
        out.json("response", if site.is_late { COMES_LATER } else { NO_RESULT });
        return;
    };
    write_response(out.key("response"), result);
    let mut within = result.content.iter().filter_map(|part| match part {
        ResultPart::Media(media) if rules.fits_response(media) => Some(media),
        ResultPart::Media(_) | ResultPart::Text(_) | ResultPart::Json(_) => None,
    });
    if let Some(first) = within.next() {
        let mut parts = out.array("parts");
        for media in std::iter::once(first).chain(within) {
            write_source(&mut parts.object(), media, rules.target.backend, losses);
            if !media.modifiers.is_empty() {
                let detail = "a medium in a response has no place for its other members";
                losses.add_with(LossCode::Ignored, || loss(site, LossCode::Ignored, detail));
            }
        }
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
        out.raw(&name, value);
    }
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
