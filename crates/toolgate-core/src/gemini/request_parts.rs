//! Contents and their parts.

use std::borrow::Cow;

use super::request::{Fill, push_instruction, reread};
use super::wire;
use crate::canon::{
    BadRequest, Call, CallInput, LossCode, Losses, Media, MediaSource, Part, Request, ResultPart,
    Role, Signature, ToolName, ToolResult, Turn,
};
use crate::json::{Kind, Path, Raw, Text};

impl<'a> Fill<'a> for Vec<wire::Content<'a, wire::Parts<'a>>> {
    fn fill(
        self,
        at: &Path<'_>,
        request: &mut Request<'a>,
        losses: &mut Losses,
    ) -> Result<(), BadRequest> {
        fill_turns(self, at, request, losses, decode_known_parts)
    }
}

impl<'a> Fill<'a> for wire::List<wire::Content<'a, Raw<'a>>> {
    fn fill(
        self,
        at: &Path<'_>,
        request: &mut Request<'a>,
        losses: &mut Losses,
    ) -> Result<(), BadRequest> {
        fill_turns(self.0, at, request, losses, decode_parts)
    }
}

fn fill_turns<'a, P>(
    contents: Vec<wire::Content<'a, P>>,
    at: &Path<'_>,
    request: &mut Request<'a>,
    losses: &mut Losses,
    decode_parts: impl Fn(P, &Path<'_>, &mut Losses) -> Result<Vec<Part<'a>>, BadRequest>,
) -> Result<(), BadRequest> {
    request.turns.reserve(contents.len());
    for (index, content) in contents.into_iter().enumerate() {
        let at = at.index(index);
        let role = decode_role(content.role.as_ref(), &at.field("role"))?;
        let at = at.field("parts");
        let parts = match content.parts {
            Some(parts) => decode_parts(parts, &at, losses)?,
            None => Vec::new(),
        };
        if role == Role::Instruction && request.turns.is_empty() {
            for part in parts {
                push_instruction(part, &at, &mut request.system, losses);
            }
        } else {
            request.turns.push(Turn { role, parts });
        }
    }
    Ok(())
}

/// A blank role is the user's. `function` is how results used to be sent.
fn decode_role(role: Option<&Text<'_>>, at: &Path<'_>) -> Result<Role, BadRequest> {
    let role = role.map(Text::decode).unwrap_or_default();
    match role.to_ascii_lowercase().as_str() {
        "" | "user" | "function" | "tool" => Ok(Role::User),
        "model" | "assistant" => Ok(Role::Model),
        "system" | "developer" => Ok(Role::Instruction),
        _ => Err(at.bad("expected user or model")),
    }
}

/// Takes over parts of which nothing has to be kept as it was written.
pub(super) fn decode_known_parts<'a>(
    list: wire::Parts<'a>,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<Vec<Part<'a>>, BadRequest> {
    let mut parts = Vec::with_capacity(list.len());
    for (index, part) in list.into_iter().enumerate() {
        decode_known(*part, &at.index(index), &mut parts, losses)?;
    }
    Ok(parts)
}

/// Reads parts: a list of them, one, or a bare string.
pub(super) fn decode_parts<'a>(
    raw: Raw<'a>,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<Vec<Part<'a>>, BadRequest> {
    let mut parts = Vec::new();
    if raw.kind() == Kind::Array {
        let list: Vec<Raw<'a>> = reread(&raw, at, losses)?;
        parts.reserve_exact(list.len());
        for (index, part) in list.into_iter().enumerate() {
            decode_part(part, &at.index(index), &mut parts, losses)?;
        }
    } else {
        decode_part(raw, at, &mut parts, losses)?;
    }
    Ok(parts)
}

fn decode_part<'a>(
    raw: Raw<'a>,
    at: &Path<'_>,
    parts: &mut Vec<Part<'a>>,
    losses: &mut Losses,
) -> Result<(), BadRequest> {
    match raw.kind() {
        Kind::Object => {}
        Kind::String => {
            parts.extend(raw.into_text().map(Part::text));
            return Ok(());
        }
        Kind::Array | Kind::Bool | Kind::Null | Kind::Number => {
            return Err(at.bad("expected a part"));
        }
    }
    let mut unknown = Losses::new();
    let part: wire::Part<'a> = reread(&raw, at, &mut unknown)?;
    if part.is_geminis_own() || (part.is_empty() && !unknown.is_empty()) {
        parts.push(Part::Gemini(raw));
        return Ok(());
    }
    losses.append(&mut unknown);
    decode_known(part, at, parts, losses)
}

fn decode_known<'a>(
    mut part: wire::Part<'a>,
    at: &Path<'_>,
    parts: &mut Vec<Part<'a>>,
    losses: &mut Losses,
) -> Result<(), BadRequest> {
    let before = parts.len();
    let (text, thought) = (part.text.take(), part.thought.unwrap_or(false));
    let call = part.function_call.take();
    let result = part.function_response.take();
    let media = media(part.inline_data.take(), part.file_data.take(), at)?;
    let signed = part.thought_signature.take();
    if let Some(media) = media {
        // Only one data member is allowed, so the signature is this one's.
        let modifiers = part
            .modifiers()
            .into_iter()
            .chain(signed.map(|signature| (Cow::Borrowed("thoughtSignature"), signature)));
        parts.push(Part::Media(Media { modifiers: modifiers.collect(), ..media }));
    } else if let Some(call) = call {
        let signature = decode_signature(signed, at)?;
        let at = at.field("functionCall");
        parts.extend(text.filter(|text| !text.is_empty()).map(Part::text));
        parts.extend(decode_call(*call, signature, &at, losses)?.map(Part::Call));
    } else if let Some(result) = result {
        if signed.is_some() {
            let detail = "a result is not signed; the signature was left out";
            losses.add(&at.field("thoughtSignature"), LossCode::Ignored, detail);
        }
        parts.push(Part::Result(decode_result(*result, &at.field("functionResponse"), losses)?));
    } else if text.is_some() || signed.is_some() {
        // A part with nothing but a signature is how clients send back one whose text was empty.
        let signature = decode_signature(signed, at)?;
        let text = text.unwrap_or(Text::EMPTY);
        parts.push(if thought {
            Part::Thought { text, signature }
        } else {
            Part::Text { text, signature }
        });
    }
    if parts.len() == before {
        losses.add(at, LossCode::PartDropped, "there is nothing in this part");
    }
    Ok(())
}

impl<'a> wire::Part<'a> {
    /// Whether the part goes back whole: steps that Gemini took itself, and text with members that
    /// have no canonical form.
    pub(super) fn is_geminis_own(&self) -> bool {
        let server = [
            &self.executable_code,
            &self.code_execution_result,
            &self.tool_call,
            &self.tool_response,
        ];
        server.into_iter().any(Option::is_some)
            || (self.text.is_some() && self.function_call.is_none() && self.has_modifiers())
    }

    /// Whether it has no data member that is known.
    fn is_empty(&self) -> bool {
        self.text.is_none()
            && self.inline_data.is_none()
            && self.file_data.is_none()
            && self.function_call.is_none()
            && self.function_response.is_none()
    }

    fn has_modifiers(&self) -> bool {
        [
            &self.video_metadata,
            &self.media_resolution,
            &self.media_processing,
            &self.part_metadata,
            &self.audio_transcription,
            &self.speech_metadata,
        ]
        .into_iter()
        .any(Option::is_some)
    }

    fn modifiers(self) -> Vec<(Cow<'a, str>, Raw<'a>)> {
        [
            ("videoMetadata", self.video_metadata),
            ("mediaResolution", self.media_resolution),
            ("mediaProcessing", self.media_processing),
            ("partMetadata", self.part_metadata),
            ("audioTranscription", self.audio_transcription),
            ("speechMetadata", self.speech_metadata),
        ]
        .into_iter()
        .filter_map(|(name, raw)| Some((Cow::Borrowed(name), raw?)))
        .collect()
    }
}

/// Either base64 alphabet will do: Google reads both.
fn decode_signature<'a>(
    signed: Option<Raw<'a>>,
    at: &Path<'_>,
) -> Result<Option<Signature<'a>>, BadRequest> {
    let Some(signed) = signed else { return Ok(None) };
    match signed.into_text() {
        Some(text) => Ok(Signature::new(text.into_cow(), None)),
        None => Err(at.field("thoughtSignature").bad("expected a string")),
    }
}

fn media<'a>(
    blob: Option<Box<wire::Blob<'a>>>,
    file: Option<Box<wire::FileData<'a>>>,
    at: &Path<'_>,
) -> Result<Option<Media<'a>>, BadRequest> {
    let (mime, source, name) = match (blob, file) {
        (Some(blob), _) => {
            let at = at.field("inlineData");
            let at = at.field("data");
            let data = blob.data.ok_or_else(|| at.bad("bytes are needed"))?;
            (blob.mime_type, MediaSource::inline(data, &at)?, blob.display_name)
        }
        (None, Some(file)) => {
            let Some(uri) = file.file_uri else {
                return Err(at.field("fileData").field("fileUri").bad("an address is needed"));
            };
            (file.mime_type, MediaSource::Uri(uri), file.display_name)
        }
        (None, None) => return Ok(None),
    };
    Ok(Some(Media {
        mime: mime.filter(|mime| !mime.is_empty()).map(Text::into_cow),
        source,
        name: name.map(Text::into_cow),
        modifiers: Vec::new(),
    }))
}

/// A call without an id has an empty one here.
fn decode_call<'a>(
    call: wire::FunctionCall<'a>,
    signature: Option<Signature<'a>>,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<Option<Call<'a>>, BadRequest> {
    if call.partial_args.is_some() {
        let detail = "a call in a conversation is whole; pieces of arguments were left out";
        losses.add(&at.field("partialArgs"), LossCode::Ignored, detail);
    }
    let Some(name) = call.name.filter(|name| !name.is_empty()) else {
        // What ends a call whose arguments came in pieces.
        if call.args.is_none() && call.id.is_none() {
            return Ok(None);
        }
        return Err(at.field("name").bad("the name of a function is needed"));
    };
    let args = match call.args {
        Some(args) => args,
        None => Raw::empty_object(),
    };
    Ok(Some(Call {
        id: call.id.map(Text::into_cow).unwrap_or_default(),
        upstream_id: None,
        tool: ToolName::plain(name.into_cow()),
        input: CallInput::Json(args),
        signature,
    }))
}

fn decode_result<'a>(
    result: wire::FunctionResponse<'a>,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<ToolResult<'a>, BadRequest> {
    let mut content = Vec::new();
    if let Some(response) = result.response {
        content.push(if response.kind() == Kind::String {
            ResultPart::Text(response.into_text().unwrap_or(Text::EMPTY))
        } else {
            ResultPart::Json(response)
        });
    }
    let list = at.field("parts");
    let parts = result.parts.map(|wire::List(parts)| parts);
    for (index, part) in parts.into_iter().flatten().enumerate() {
        let at = list.index(index);
        match media(part.inline_data, part.file_data, &at)? {
            Some(media) => content.push(ResultPart::Media(media)),
            None => losses.add(&at, LossCode::PartDropped, "there is nothing in this part"),
        }
    }
    let modifiers = [("scheduling", result.scheduling), ("willContinue", result.will_continue)];
    Ok(ToolResult {
        call_id: result.id.filter(|id| !id.is_empty()).map(Text::into_cow),
        tool: result
            .name
            .filter(|name| !name.is_empty())
            .map(|name| ToolName::plain(name.into_cow())),
        is_error: false,
        content,
        modifiers: modifiers
            .into_iter()
            .filter_map(|(name, raw)| Some((Cow::Borrowed(name), raw?)))
            .collect(),
    })
}
