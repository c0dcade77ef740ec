//! The conversation.

use std::borrow::Cow;

use super::content::{Piece, decode_content};
use super::tools::tool_name;
use super::{carrier, wire};
use crate::canon::{
    BadRequest, Call, CallInput, LossCode, Losses, Part, Request, ResultPart, Role, Signature,
    ToolName, ToolResult, Turn,
};
use crate::json::{Element, Kind, Path, Raw, Text};
use crate::seal::Sealer;

/// Fills in the instructions and the turns.
pub(super) fn decode_messages<'a>(
    messages: Vec<Element<wire::Message<'a>>>,
    sealer: &Sealer,
    request: &mut Request<'a>,
    losses: &mut Losses,
) -> Result<(), BadRequest> {
    let list = Path::Root.field("messages");
    request.turns.reserve(messages.len());
    for (index, message) in messages.into_iter().enumerate() {
        let at = list.index(index);
        let role = message.role.as_ref().map(Text::decode);
        match role.as_deref() {
            Some("system" | "developer") => instruction(*message, &at, request, losses)?,
            Some("user") => {
                report_name(&message, &at, losses);
                let pieces = decode_content(message.content, &at.field("content"), losses)?;
                request.turns.push(Turn { role: Role::User, parts: all_said(pieces) });
            }
            Some("assistant") => {
                let parts = Assistant { sealer, at: &at, losses }.decode(*message)?;
                request.turns.push(Turn { role: Role::Model, parts });
            }
            Some("tool" | "function") => {
                let result = decode_result(*message, &at, losses)?;
                let parts = vec![Part::Result(result)];
                request.turns.push(Turn { role: Role::User, parts });
            }
            Some(_) | None => {
                let reason = "expected system, developer, user, assistant, tool or function";
                return Err(at.field("role").bad(reason));
            }
        }
    }
    Ok(())
}

/// Pieces as parts, without room for more: most messages have one.
fn all_said(pieces: Vec<Piece<'_>>) -> Vec<Part<'_>> {
    let mut parts = Vec::with_capacity(pieces.len());
    parts.extend(pieces.into_iter().filter_map(said));
    parts
}

/// A piece as a part; nothing where it is empty.
fn said(piece: Piece<'_>) -> Option<Part<'_>> {
    match piece {
        Piece::Text(text) if text.is_empty() => None,
        Piece::Text(text) => Some(Part::text(text)),
        Piece::Media(media) => Some(Part::Media(media)),
    }
}

fn report_name(message: &wire::Message<'_>, at: &Path<'_>, losses: &mut Losses) {
    if message.name.is_some() {
        let detail = "Gemini knows one user; the name was left out";
        losses.add(&at.field("name"), LossCode::Ignored, detail);
    }
}

/// Before the first turn, instructions belong to the request; later on they stand where they are.
fn instruction<'a>(
    message: wire::Message<'a>,
    at: &Path<'_>,
    request: &mut Request<'a>,
    losses: &mut Losses,
) -> Result<(), BadRequest> {
    report_name(&message, at, losses);
    let at = at.field("content");
    let pieces = decode_content(message.content, &at, losses)?;
    if !request.turns.is_empty() {
        request.turns.push(Turn { role: Role::Instruction, parts: all_said(pieces) });
        return Ok(());
    }
    for piece in pieces {
        match piece {
            Piece::Text(text) if text.is_empty() => {}
            Piece::Text(text) => request.system.push(text),
            Piece::Media(_) => {
                losses.add(&at, LossCode::PartDropped, "instructions are text");
            }
        }
    }
    Ok(())
}

/// A `tool` message, or the legacy `function` message, which knows its function by name only.
fn decode_result<'a>(
    message: wire::Message<'a>,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<ToolResult<'a>, BadRequest> {
    let call_id = message.tool_call_id.filter(|id| !id.is_empty()).map(Text::into_cow);
    let name = message.name.filter(|name| !name.is_empty()).map(Text::into_cow);
    if call_id.is_none() && name.is_none() {
        return Err(at.field("tool_call_id").bad("a result must say which call it answers"));
    }
    let pieces = decode_content(message.content, &at.field("content"), losses)?;
    Ok(ToolResult {
        call_id,
        tool: name.map(ToolName::plain),
        is_error: false,
        content: pieces
            .into_iter()
            .map(|piece| match piece {
                Piece::Text(text) => ResultPart::Text(text),
                Piece::Media(media) => ResultPart::Media(media),
            })
            .collect(),
        modifiers: Vec::new(),
    })
}

/// Reads an assistant's message.
///
/// Chat keeps thoughts, words and calls apart, so their order among each other is that of every
/// answer: server-side parts, thoughts, words, calls.
struct Assistant<'c> {
    sealer: &'c Sealer,
    at: &'c Path<'c>,
    losses: &'c mut Losses,
}

impl Assistant<'_> {
    fn decode<'a>(mut self, message: wire::Message<'a>) -> Result<Vec<Part<'a>>, BadRequest> {
        report_name(&message, self.at, self.losses);
        if message.audio.is_some() {
            let detail = "what was spoken is kept at OpenAI; it was left out";
            self.losses.add(&self.at.field("audio"), LossCode::PartDropped, detail);
        }
        let content = decode_content(message.content, &self.at.field("content"), self.losses)?;
        let mut words = all_said(content);
        if words.is_empty() {
            let refusal = message.refusal.filter(|text| !text.is_empty());
            words.extend(refusal.map(Part::text));
        }
        let thought = [message.reasoning_content, message.reasoning, message.thinking]
            .into_iter()
            .flatten()
            .filter_map(Raw::into_text)
            .find(|text| !text.is_empty());
        let kept = self.kept(message.extra_content);

        let mut parts = kept.parts;
        let calls = message.tool_calls.as_ref().map_or(0, Vec::len);
        parts.reserve_exact(words.len() + calls + usize::from(thought.is_some()));
        parts.extend(thought.map(|text| Part::Thought { text, signature: None }));
        parts.extend(kept.thoughts);
        if let Some(signature) = kept.signature {
            sign_last_text(&mut words, signature);
        }
        parts.append(&mut words);
        parts.extend(kept.texts);

        let list = self.at.field("tool_calls");
        for (index, call) in message.tool_calls.into_iter().flatten().enumerate() {
            self.call(*call, &list.index(index), &mut parts)?;
        }
        if let Some(mut function) = message.function_call {
            let extra = function.extra_content.take();
            let at = self.at.field("function_call");
            let call = self.function(Cow::Borrowed(""), function, &at)?;
            self.push_call(call, extra, &at, &mut parts);
        }
        Ok(parts)
    }

    /// Content of the message's carrier, beside its calls.
    fn kept<'a>(&mut self, extra: Option<wire::ExtraContent<'a>>) -> carrier::Kept<'a> {
        let Some(text) = signature_field(extra) else { return carrier::Kept::default() };
        let at = self.at.field("extra_content");
        carrier::open_message(text, self.sealer, &at, self.losses)
    }

    fn call<'a>(
        &mut self,
        mut call: wire::ToolCall<'a>,
        at: &Path<'_>,
        parts: &mut Vec<Part<'a>>,
    ) -> Result<(), BadRequest> {
        let id = call.id.take().map(Text::into_cow).unwrap_or_default();
        let mut extra = call.extra_content.take();
        let kind = call.kind.as_ref().map(Text::decode);
        let call = match (kind.as_deref(), call.function, call.custom) {
            (Some("custom"), _, Some(custom)) | (None, None, Some(custom)) => {
                let at = at.field("custom");
                Call {
                    id,
                    upstream_id: None,
                    tool: tool_name(custom.name, &at)?,
                    input: CallInput::Text(custom.input.unwrap_or(Text::EMPTY)),
                    signature: None,
                }
            }
            (Some("function") | None, Some(mut function), _) => {
                extra = extra.or_else(|| function.extra_content.take());
                self.function(id, function, &at.field("function"))?
            }
            (Some("custom"), _, None) => return Err(at.field("custom").bad("a call is needed")),
            (Some("function") | None, None, _) => {
                return Err(at.field("function").bad("a call is needed"));
            }
            (Some(_), _, _) => {
                return Err(at.field("type").bad("expected function or custom"));
            }
        };
        self.push_call(call, extra, at, parts);
        Ok(())
    }

    fn function<'a>(
        &mut self,
        id: Cow<'a, str>,
        function: wire::FunctionCall<'a>,
        at: &Path<'_>,
    ) -> Result<Call<'a>, BadRequest> {
        let arguments = self.arguments(function.arguments, &at.field("arguments"));
        Ok(Call {
            id,
            upstream_id: None,
            tool: tool_name(function.name, at)?,
            input: CallInput::Json(arguments),
            signature: None,
        })
    }

    /// Arguments are a string that holds JSON. Models and clients have put other things there; a
    /// conversation must not die of it.
    fn arguments<'a>(&mut self, arguments: Option<Raw<'a>>, at: &Path<'_>) -> Raw<'a> {
        let Some(arguments) = arguments else { return Raw::empty_object() };
        if arguments.kind() != Kind::String {
            return arguments;
        }
        let text = arguments.as_text().unwrap_or(Text::EMPTY);
        let plain = text.decode();
        if plain.trim().is_empty() {
            return Raw::empty_object();
        }
        Raw::parse(plain.into_owned()).unwrap_or_else(|| {
            self.losses.add(
                at,
                LossCode::Changed,
                "this is not JSON; it was put as text under `_raw`",
            );
            Raw::parse(format!("{{\"_raw\":{}}}", text.literal())).unwrap_or_else(Raw::empty_object)
        })
    }

    fn push_call<'a>(
        &mut self,
        mut call: Call<'a>,
        extra: Option<wire::ExtraContent<'a>>,
        at: &Path<'_>,
        parts: &mut Vec<Part<'a>>,
    ) {
        if let Some(text) = signature_field(extra) {
            let at = at.field("extra_content");
            let sealed = carrier::open_call(text, &mut call, self.sealer, &at, self.losses);
            parts.extend(sealed.map(Part::Sealed));
        }
        parts.push(Part::Call(call));
    }
}

fn signature_field<'a>(extra: Option<wire::ExtraContent<'a>>) -> Option<Cow<'a, str>> {
    let signature = extra?.google?.thought_signature?;
    (!signature.is_empty()).then(|| signature.into_cow())
}

fn sign_last_text<'a>(words: &mut Vec<Part<'a>>, signed: Signature<'a>) {
    match words.last_mut() {
        Some(Part::Text { signature, .. }) => *signature = Some(signed),
        _ => words.push(Part::Text { text: Text::EMPTY, signature: Some(signed) }),
    }
}
