//! From a `GenerateContentRequest` to [`Request`].
//!
//! Clients mix camelCase and snake_case, leave out roles, ids and brackets, and send `null` for
//! unset fields. Signatures are Gemini's own and are passed on as they are.
//!
//! A body is first read as Google documents it, each byte once. Only where that does not do (a
//! bracket is missing, a part is of a kind that must go back as it came) it is read loosely.

use std::borrow::Cow;

use super::{request_config, request_parts, wire};
use crate::canon::{BadRequest, LossCode, Losses, Part, Request, Role, Turn, check_name};
use crate::dialect::{DecodeOptions, Decoded};
use crate::json::{self, Kind, Path, Raw, Text};

/// Facts of the request that its answers need.
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
    check_name(model, &Path::Root.field("model"))?;
    let mut losses = Losses::new();
    let (request, rest) = read(body, &Path::Root, &mut losses)?;
    report_strays(&rest, &mut losses);
    Ok(named(Request { stream, ..request }, model, losses))
}

/// Reads the body of `countTokens`: contents alone, or a whole request inside.
pub fn decode_count_tokens<'a>(
    body: &'a str,
    model: &str,
    _options: &DecodeOptions<'_>,
) -> Result<Decoded<'a, Echo>, BadRequest> {
    check_name(model, &Path::Root.field("model"))?;
    let mut losses = Losses::new();
    let (mut request, rest) = read(body, &Path::Root, &mut losses)?;
    if let Some(json) = rest.generate_content_request.as_ref().and_then(Raw::as_borrowed) {
        let at = Path::Root.field("generateContentRequest");
        (request, _) = read(json, &at, &mut losses)?;
    }
    Ok(named(request, model, losses))
}

/// Reads the body of our own `POST /v1/gemini`: Gemini's fields, with the model and whether to
/// stream in the body, `input` as a string, parts or contents, and a conversation's name.
pub fn decode_native<'a>(
    body: &'a str,
    _options: &DecodeOptions<'_>,
) -> Result<Native<'a>, BadRequest> {
    let mut losses = Losses::new();
    let root = Path::Root;
    let (mut request, rest) = read(body, &root, &mut losses)?;
    let Some(model) = rest.model else {
        return Err(root.field("model").bad("a model is needed"));
    };
    check_name(&model.decode(), &root.field("model"))?;
    if let Some(raw) = rest.stream {
        request.stream =
            raw.to().ok_or_else(|| root.field("stream").bad("expected true or false"))?;
    }
    if let Some(input) = rest.input {
        decode_input(input, &root.field("input"), &mut request, &mut losses)?;
        request.check_bounds(body.len(), "input")?;
    }
    Ok(Native {
        decoded: named(request, &model.decode(), losses),
        conversation: conversation(rest.conversation, &root.field("conversation"))?,
        has_tools: rest.has_tools,
    })
}

/// A string, a part, parts, a content or contents.
fn decode_input<'a>(
    input: Raw<'a>,
    at: &Path<'_>,
    request: &mut Request<'a>,
    losses: &mut Losses,
) -> Result<(), BadRequest> {
    let contents = match input.kind() {
        Kind::Object => is_content(&input),
        Kind::Array => input.items().is_some_and(|items| items.first().is_some_and(is_content)),
        Kind::Bool | Kind::Null | Kind::Number | Kind::String => false,
    };
    if contents {
        let contents: wire::List<wire::Content<'a, Raw<'a>>> = reread(&input, at, losses)?;
        return contents.fill(at, request, losses);
    }
    let parts = request_parts::decode_parts(input, at, losses)?;
    request.turns.push(Turn { role: Role::User, parts });
    Ok(())
}

/// Whether a value is a content rather than a part.
pub(super) fn is_content(raw: &Raw<'_>) -> bool {
    raw.fields().is_some_and(|fields| fields.get("parts").is_some() || fields.get("role").is_some())
}

/// `"name"` or `{"id": "name"}`.
pub(super) fn conversation<'a>(
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

/// Members of a body that are not Gemini's.
struct Rest<'a> {
    model: Option<Text<'a>>,
    input: Option<Raw<'a>>,
    conversation: Option<Raw<'a>>,
    stream: Option<Raw<'a>>,
    generate_content_request: Option<Raw<'a>>,
    has_tools: bool,
}

/// A member of the body that fills in its piece of the request.
pub(super) trait Fill<'a> {
    /// Fills it in. `at` is where the member stands.
    fn fill(
        self,
        at: &Path<'_>,
        request: &mut Request<'a>,
        losses: &mut Losses,
    ) -> Result<(), BadRequest>;
}

fn read<'a>(
    json: &'a str,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<(Request<'a>, Rest<'a>), BadRequest> {
    let mut unknown = Losses::new();
    if let Ok(wire) = json::read::<wire::Documented<'a>>(json, at, &mut unknown)
        && wire.is_enough(&unknown, at)
    {
        losses.append(&mut unknown);
        return decode(wire, json.len(), at, losses);
    }
    decode(json::read::<wire::Loose<'a>>(json, at, losses)?, json.len(), at, losses)
}

impl wire::Documented<'_> {
    /// Whether nothing has to be kept as it was written.
    fn is_enough(&self, unknown: &Losses, at: &Path<'_>) -> bool {
        // The last begins both spellings of its field.
        let places = ["contents", "tools", "system"].map(|name| at.field(name).to_string());
        let kept = |path: &str| places.iter().any(|place| path.starts_with(place));
        let turns = self.contents.iter().flatten().chain(&self.system_instruction);
        let mut parts = turns.flat_map(|content| &content.parts).flatten();
        let is_counted = unknown.total() > unknown.len();
        !is_counted
            && !unknown.iter().any(|loss| kept(&loss.at))
            && !parts.any(|part| part.is_geminis_own())
    }
}

fn decode<'a>(
    wire: wire::Request<'a, impl Fill<'a>, impl Fill<'a>, impl Fill<'a>>,
    json_len: usize,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<(Request<'a>, Rest<'a>), BadRequest> {
    let mut request = Request::default();
    let has_tools = wire.tools.is_some();
    if let Some(system) = wire.system_instruction {
        system.fill(&at.field("systemInstruction"), &mut request, losses)?;
    }
    if let Some(contents) = wire.contents {
        contents.fill(&at.field("contents"), &mut request, losses)?;
    }
    if let Some(tools) = wire.tools {
        tools.fill(&at.field("tools"), &mut request, losses)?;
    }
    if let Some(config) = wire.tool_config {
        config.fill(&at.field("toolConfig"), &mut request, losses)?;
    }
    if let Some(config) = wire.generation_config {
        let at = at.field("generationConfig");
        request_config::decode_generation_config(config, &at, &mut request, losses)?;
    }
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
    request.check_bounds(json_len, &at.field("contents").to_string())?;
    request
        .gemini
        .extend(copied.into_iter().filter_map(|(key, raw)| Some((Cow::Borrowed(key), raw?))));
    let rest = Rest {
        model: wire.model,
        input: wire.input,
        conversation: wire.conversation,
        stream: wire.stream,
        generate_content_request: wire.generate_content_request,
        has_tools,
    };
    Ok((request, rest))
}

/// The system instruction.
impl<'a> Fill<'a> for wire::Content<'a, wire::Parts<'a>> {
    fn fill(
        self,
        at: &Path<'_>,
        request: &mut Request<'a>,
        losses: &mut Losses,
    ) -> Result<(), BadRequest> {
        let Some(parts) = self.parts else { return Ok(()) };
        let at = at.field("parts");
        for part in request_parts::decode_known_parts(parts, &at, losses)? {
            push_instruction(part, &at, &mut request.system, losses);
        }
        Ok(())
    }
}

/// The system instruction. Google takes a content; a bare string or bare parts mean the same.
impl<'a> Fill<'a> for Raw<'a> {
    fn fill(
        self,
        at: &Path<'_>,
        request: &mut Request<'a>,
        losses: &mut Losses,
    ) -> Result<(), BadRequest> {
        let is_content = self.fields().is_some_and(|fields| fields.get("text").is_none());
        let parts = if is_content {
            let content: wire::Content<'a, Self> = reread(&self, at, losses)?;
            let Some(parts) = content.parts else { return Ok(()) };
            request_parts::decode_parts(parts, &at.field("parts"), losses)?
        } else if matches!(self.kind(), Kind::Bool | Kind::Number) {
            return Err(at.bad("expected a content, parts or a string"));
        } else {
            request_parts::decode_parts(self, at, losses)?
        };
        for part in parts {
            push_instruction(part, at, &mut request.system, losses);
        }
        Ok(())
    }
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
            losses.add(at, LossCode::PartDropped, "instructions are text");
        }
    }
}

/// Fields of our own path mean nothing to Google's.
fn report_strays(wire: &Rest<'_>, losses: &mut Losses) {
    let strays = [
        ("input", &wire.input),
        ("conversation", &wire.conversation),
        ("stream", &wire.stream),
        ("generateContentRequest", &wire.generate_content_request),
    ];
    for (name, raw) in strays {
        if raw.is_some() {
            let detail = "this field does not belong here; it was left out";
            losses.add(&Path::Root.field(name), LossCode::UnknownField, detail);
        }
    }
}

/// Reads a value of the body whose type depends on other members.
pub(super) fn reread<'a, T: serde::Deserialize<'a>>(
    raw: &Raw<'a>,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<T, BadRequest> {
    match raw.as_borrowed() {
        Some(json) => Ok(json::read(json, at, losses)?),
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
