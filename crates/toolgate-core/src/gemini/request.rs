//! From a `GenerateContentRequest` to [`Request`].
//!
//! Clients mix camelCase and snake_case, leave out roles, ids and brackets, and send `null` for
//! what they do not set. Signatures are Gemini's own and are passed on as they are.

use std::borrow::Cow;

use super::{request_config, request_parts, request_tools, wire};
use crate::canon::{
    BadRequest, DecodeOptions, Decoded, LossCode, Losses, Part, Request, Role, Turn,
};
use crate::json::{self, Kind, Path, Raw, Text};

/// What the answers must know of the request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Echo {
    /// The model by the name that the client used.
    pub model: String,
    /// How a stream is framed.
    pub framing: Framing,
}

/// How a stream is framed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// `?alt=sse`
    #[default]
    Sse,
    /// One JSON array, member by member.
    Array,
}

/// A request to our own `POST /v1/gemini`.
#[derive(Clone, Debug)]
pub struct Native<'a> {
    /// The request.
    pub decoded: Decoded<'a, Echo>,
    /// The conversation that it belongs to.
    pub conversation: Option<Cow<'a, str>>,
    /// Whether it says anything about tools. If not, those of the conversation stay.
    pub has_tools: bool,
}

/// Reads the body of `generateContent` or `streamGenerateContent`.
///
/// The model, and whether the answer is streamed, stand in the address.
pub fn decode_request<'a>(
    body: &'a str,
    model: &str,
    stream: bool,
    _options: &DecodeOptions<'_>,
) -> Result<Decoded<'a, Echo>, BadRequest> {
    let mut losses = Losses::new();
    let wire: wire::Request<'a> = json::read(body, &Path::Root, &mut losses)?;
    report_strays(&wire, &mut losses);
    let request = Request { stream, ..decode(wire, &Path::Root, &mut losses)? };
    Ok(named(request, model, losses))
}

/// Reads the body of `countTokens`: contents alone, or a whole request inside.
pub fn decode_count_tokens<'a>(
    body: &'a str,
    model: &str,
    _options: &DecodeOptions<'_>,
) -> Result<Decoded<'a, Echo>, BadRequest> {
    let mut losses = Losses::new();
    let mut wire: wire::Request<'a> = json::read(body, &Path::Root, &mut losses)?;
    let at = Path::Root.field("generateContentRequest");
    let request = match wire.generate_content_request.take() {
        Some(whole) => {
            let whole: wire::Request<'a> = reread(&whole, &at, &mut losses)?;
            decode(whole, &at, &mut losses)?
        }
        None => decode(wire, &Path::Root, &mut losses)?,
    };
    Ok(named(request, model, losses))
}

/// Reads the body of our own `POST /v1/gemini`: Gemini's fields, with the model and whether to
/// stream in the body, `input` as a string, parts or contents, and a conversation's name.
pub fn decode_native<'a>(
    body: &'a str,
    _options: &DecodeOptions<'_>,
) -> Result<Native<'a>, BadRequest> {
    let mut losses = Losses::new();
    let mut wire: wire::Request<'a> = json::read(body, &Path::Root, &mut losses)?;
    let root = Path::Root;
    let Some(model) = wire.model.take() else {
        return Err(root.field("model").bad("a model is needed"));
    };
    let conversation = conversation(wire.conversation.take(), &root.field("conversation"))?;
    let stream = match wire.stream.take() {
        None => false,
        Some(raw) => raw.to().ok_or_else(|| root.field("stream").bad("expected true or false"))?,
    };
    let input = wire.input.take();
    let has_tools = wire.tools.is_some();
    let mut request = Request { stream, ..decode(wire, &root, &mut losses)? };
    if let Some(input) = input {
        decode_input(input, &root.field("input"), &mut request, &mut losses)?;
    }
    let decoded = named(request, &model.decode(), losses);
    Ok(Native { decoded, conversation, has_tools })
}

/// A string, a part, parts, a content or contents.
fn decode_input<'a>(
    input: Raw<'a>,
    at: &Path<'_>,
    request: &mut Request<'a>,
    losses: &mut Losses,
) -> Result<(), BadRequest> {
    let is_content = |raw: &Raw<'_>| {
        raw.fields()
            .is_some_and(|fields| fields.get("parts").is_some() || fields.get("role").is_some())
    };
    let contents = match input.kind() {
        Kind::Object => is_content(&input),
        Kind::Array => input.items().is_some_and(|items| items.first().is_some_and(is_content)),
        Kind::Bool | Kind::Null | Kind::Number | Kind::String => false,
    };
    if contents {
        let wire::List(list) = reread(&input, at, losses)?;
        return request_parts::decode_contents(list, at, request, losses);
    }
    let parts = request_parts::decode_parts(input, at, losses)?;
    request.turns.push(Turn { role: Role::User, parts });
    Ok(())
}

/// `"name"` or `{"id": "name"}`.
fn conversation<'a>(
    raw: Option<Raw<'a>>,
    at: &Path<'_>,
) -> Result<Option<Cow<'a, str>>, BadRequest> {
    let Some(raw) = raw else { return Ok(None) };
    if let Some(fields) = raw.fields() {
        let id = fields.get("id").and_then(Raw::as_text);
        return match id {
            Some(id) => Ok(Some(Cow::Owned(id.decode().into_owned()))),
            None => Err(at.field("id").bad("a name is needed")),
        };
    }
    match raw.into_text() {
        Some(text) => Ok(Some(text.into_cow())),
        None => Err(at.bad("expected a string")),
    }
}

fn named<'a>(mut request: Request<'a>, model: &str, losses: Losses) -> Decoded<'a, Echo> {
    let model = model.strip_prefix("models/").unwrap_or(model);
    request.model = Cow::Owned(model.to_owned());
    let echo = Echo { model: model.to_owned(), framing: Framing::default() };
    Decoded { request, echo, losses }
}

fn decode<'a>(
    wire: wire::Request<'a>,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<Request<'a>, BadRequest> {
    let mut request = Request::default();
    if let Some(system) = wire.system_instruction {
        decode_system(system, &at.field("systemInstruction"), &mut request, losses)?;
    }
    let wire::List(contents) = wire.contents.unwrap_or(wire::List(Vec::new()));
    request_parts::decode_contents(contents, &at.field("contents"), &mut request, losses)?;
    request_tools::decode_tools(wire.tools, &at.field("tools"), &mut request, losses)?;
    request_tools::decode_tool_config(
        wire.tool_config,
        &at.field("toolConfig"),
        &mut request,
        losses,
    )?;
    request_config::decode_generation_config(
        wire.generation_config,
        &at.field("generationConfig"),
        &mut request,
        losses,
    )?;
    let copied = [
        ("safetySettings", wire.safety_settings),
        ("cachedContent", wire.cached_content),
        ("labels", wire.labels),
        ("serviceTier", wire.service_tier),
        ("store", wire.store),
        ("continuationToken", wire.continuation_token),
        ("modelArmorConfig", wire.model_armor_config),
        ("outputConfig", wire.output_config),
    ];
    request.gemini.extend(copied.into_iter().filter_map(|(key, raw)| Some((key, raw?))));
    Ok(request)
}

/// Google takes a content; a bare string or bare parts mean the same.
fn decode_system<'a>(
    system: Raw<'a>,
    at: &Path<'_>,
    request: &mut Request<'a>,
    losses: &mut Losses,
) -> Result<(), BadRequest> {
    let parts = match system.kind() {
        Kind::Object if system.fields().is_some_and(|fields| fields.get("text").is_none()) => {
            let content: wire::Content<'a> = reread(&system, at, losses)?;
            match content.parts {
                Some(parts) => request_parts::decode_parts(parts, &at.field("parts"), losses)?,
                None => Vec::new(),
            }
        }
        Kind::Object | Kind::Array | Kind::String => {
            request_parts::decode_parts(system, at, losses)?
        }
        Kind::Bool | Kind::Null | Kind::Number => {
            return Err(at.bad("expected a content, parts or a string"));
        }
    };
    for part in parts {
        push_instruction(part, at, &mut request.system, losses);
    }
    Ok(())
}

/// Keeps the words of a part of the system instruction; it cannot have anything else.
pub(super) fn push_instruction<'a>(
    part: Part<'a>,
    at: &Path<'_>,
    system: &mut Vec<Text<'a>>,
    losses: &mut Losses,
) {
    match part {
        Part::Text { text, .. } | Part::Thought { text, .. } => {
            if !text.is_empty() {
                system.push(text);
            }
        }
        Part::Media(_) | Part::Call(_) | Part::Result(_) | Part::Sealed(_) | Part::Gemini(_) => {
            losses.push(at.loss(LossCode::PartDropped, "instructions are text"));
        }
    }
}

/// Fields of our own path mean nothing to Google's.
fn report_strays(wire: &wire::Request<'_>, losses: &mut Losses) {
    let strays = [
        ("input", &wire.input),
        ("conversation", &wire.conversation),
        ("stream", &wire.stream),
        ("generateContentRequest", &wire.generate_content_request),
    ];
    for (name, raw) in strays {
        if raw.is_some() {
            let detail = "this field does not belong here; it was left out";
            losses.push(Path::Root.field(name).loss(LossCode::UnknownField, detail));
        }
    }
}

/// Reads a value that stands in the body, once it is known what it must be.
pub(super) fn reread<'a, T: serde::Deserialize<'a>>(
    raw: &Raw<'a>,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<T, BadRequest> {
    match raw.as_borrowed() {
        Some(json) => json::read(json, at, losses),
        None => Err(at.bad("not a part of the body")),
    }
}

/// `function_call` → `functionCall`
pub(super) fn camel(name: Cow<'_, str>) -> Cow<'_, str> {
    if !name.contains('_') {
        return name;
    }
    let mut camel = String::with_capacity(name.len());
    let mut upper = false;
    for letter in name.trim_start_matches('_').chars() {
        match letter {
            '_' => upper = true,
            _ if upper => {
                camel.push(letter.to_ascii_uppercase());
                upper = false;
            }
            _ => camel.push(letter),
        }
    }
    Cow::Owned(camel)
}
