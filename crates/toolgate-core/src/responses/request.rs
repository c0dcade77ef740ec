//! From a client's body to the canonical request.

use super::choice::decode_choice;
use super::compaction::SUMMARY_REQUEST;
use super::echo::Echo;
use super::items::Conversation;
use super::options::check_management;
use super::stored::{Parsed, Stored};
use super::wire::{self, Body, Format, Str};
use crate::canon::{
    BadRequest, Effort, LossCode, Losses, OutputFormat, Request, SchemaForm, Settings, Thinking,
    ThinkingMode, ToolChoice, check_name,
};
use crate::dialect::{DecodeOptions, Decoded};
use crate::json::{self, Kind, Path, Placed, Raw, Text};

/// Reads the body of `POST /v1/responses`, or a `response.create` message.
///
/// ```
/// use toolgate_core::dialect::DecodeOptions;
/// use toolgate_core::responses::decode_request;
/// use toolgate_core::seal::Sealer;
///
/// let sealer = Sealer::default();
/// let body = r#"{"model":"gemini-3-flash","input":"What is 2+2?"}"#;
/// let decoded = decode_request(body, &DecodeOptions { sealer: &sealer })?;
/// assert_eq!(decoded.request.turns.len(), 1);
/// assert_eq!(decoded.echo.model, "gemini-3-flash");
/// # Ok::<(), toolgate_core::canon::BadRequest>(())
/// ```
pub fn decode_request<'a>(
    source: &'a str,
    options: &DecodeOptions<'_>,
) -> Result<Decoded<'a, Echo>, BadRequest> {
    parse_request(source)?.decode(&Stored::default(), options)
}

/// Reads a body without decoding it yet: stored state that it refers to may have to be fetched first.
pub fn parse_request(source: &str) -> Result<Parsed<'_>, BadRequest> {
    let mut losses = Losses::new();
    let (body, place): (Body<'_>, _) = json::read_placed(source, &Path::Root, &mut losses)?;
    let conversation = conversation(body.conversation.as_ref(), &mut losses)?;
    Ok(Parsed { source, body, place, conversation, losses, summarizes: false })
}

pub(super) fn decode_parsed<'a>(
    parsed: Parsed<'a>,
    stored: &Stored<'a>,
    options: DecodeOptions<'_>,
) -> Result<Decoded<'a, Echo>, BadRequest> {
    let root = Path::Root;
    let Parsed { source, mut body, place, conversation, mut losses, summarizes } = parsed;
    if body.tools.is_none() {
        body.tools = stored_member(stored.tools, &root.field("tools"))?;
    }
    if body.tool_choice.is_none() {
        body.tool_choice = stored_member(stored.tool_choice, &root.field("tool_choice"))?;
    }
    let model = body.model.take().ok_or_else(|| root.field("model").bad("missing"))?.0;
    check_name(&model, &root.field("model"))?;

    let mut said = Conversation::new(&options);
    if let Some(tools) = &body.tools {
        said.toolbox.declare(tools, &root.field("tools"), false, &mut losses)?;
    }
    if let Some(instructions) = &body.instructions {
        said.read_instructions(instructions, &mut losses)?;
    }
    said.read_stored(stored, &mut losses)?;
    match body.input.take() {
        Some(Placed(input)) => said.read_input(input, source, &mut losses)?,
        None if continues(&body) || !stored.items.is_empty() => {}
        None => return Err(root.field("input").bad("missing")),
    }
    said.toolbox.show_unreachable(&mut losses);
    if let Some(metadata) = &body.metadata {
        check_metadata(metadata)?;
    }
    if let Some(metadata) = &body.client_metadata
        && metadata.kind() != Kind::Object
    {
        return Err(root.field("client_metadata").bad("expected an object"));
    }
    if let Some(management) = &body.context_management {
        check_management(management, &mut losses)?;
    }

    let mut tool_choice = match &body.tool_choice {
        Some(choice) => {
            decode_choice(choice, &said.toolbox, &root.field("tool_choice"), &mut losses)?
        }
        None => ToolChoice::Unset,
    };
    let text = said.text.take().or_else(|| body.text.take()).unwrap_or_default();
    let mut output = match &text.format {
        Some(format) => decode_format(format, &root.field("text").field("format"), &mut losses)?,
        None => OutputFormat::Text,
    };
    said.compact |= summarizes;
    if said.compact {
        said.push_user(Text::new(SUMMARY_REQUEST));
        tool_choice = ToolChoice::None;
        output = OutputFormat::Text;
    }
    let mut reasoning = body.reasoning.take();
    if let Some(update) = said.reasoning.take() {
        reasoning.get_or_insert_default().effort = update.effort;
    }
    let (thinking, show_thoughts) = decode_reasoning(reasoning.as_ref(), &mut losses);
    report_ignored(&body, &text, &mut losses);

    let echo = Echo {
        model: model.clone().into_owned(),
        stream: body.stream.unwrap_or(false),
        show_thoughts,
        calls: std::mem::take(&mut said.toolbox.kinds),
        compact: said.compact,
        references: std::mem::take(&mut said.references),
        conversation,
        input: place,
        ..echo(&body, &text, reasoning.as_ref())
    };
    let request = Request {
        model,
        system: said.system,
        turns: said.turns,
        tools: said.toolbox.tools,
        tool_choice,
        parallel_calls: body.parallel_tool_calls,
        settings: Settings {
            max_output_tokens: body.max_output_tokens,
            temperature: body.temperature,
            top_p: body.top_p,
            ..Settings::default()
        },
        thinking,
        output,
        stream: echo.stream,
        ..Request::default()
    };
    request.check_bounds(source.len() + stored.size(), "input")?;
    Ok(Decoded { request, echo, losses })
}

fn stored_member<'a>(json: Option<&'a str>, at: &Path<'_>) -> Result<Option<Raw<'a>>, BadRequest> {
    Ok(json.map(|json| json::look(json, at)).transpose()?)
}

/// Whether the conversation is elsewhere, so that nothing new need be said.
fn continues(body: &Body<'_>) -> bool {
    body.previous_response_id.is_some()
        || body.conversation.is_some()
        || body.prompt.is_some()
        || body.generate == Some(false)
}

fn decode_format<'a>(
    format: &Raw<'a>,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<OutputFormat<'a>, BadRequest> {
    let outer: Format<'a> =
        json::read(format.as_borrowed().ok_or_else(|| at.bad("cannot be read"))?, at, losses)?;
    match outer.kind.as_ref().map(|kind| &*kind.0) {
        Some("text") => Ok(OutputFormat::Text),
        Some("json_object") => Ok(OutputFormat::Json),
        Some("json_schema") => {
            let inner = at.field("json_schema");
            let (format, at) = match &outer.json_schema {
                Some(nested) => {
                    let json = nested.as_borrowed().ok_or_else(|| inner.bad("cannot be read"))?;
                    (json::read(json, &inner, losses)?, &inner)
                }
                None => (outer, at),
            };
            Ok(OutputFormat::JsonSchema {
                name: format.name,
                description: format.description,
                schema: format.schema.ok_or_else(|| at.field("schema").bad("missing"))?,
                form: SchemaForm::JsonSchema,
            })
        }
        Some(kind) => {
            losses.add(at, LossCode::Ignored, format_args!("`{kind}` is not known here"));
            Ok(OutputFormat::Text)
        }
        None => Err(at.field("type").bad("missing")),
    }
}

/// How hard to think, and whether the client wants to read about it.
fn decode_reasoning(
    reasoning: Option<&wire::Reasoning<'_>>,
    losses: &mut Losses,
) -> (Thinking, bool) {
    let Some(reasoning) = reasoning else { return (Thinking::default(), false) };
    let root = Path::Root;
    let at = root.field("reasoning");
    let effort = reasoning.effort.as_ref().and_then(|word| match &*word.0 {
        "none" => Some(Effort::None),
        "minimal" => Some(Effort::Minimal),
        "low" => Some(Effort::Low),
        "medium" => Some(Effort::Medium),
        "high" => Some(Effort::High),
        "xhigh" => Some(Effort::XHigh),
        "max" => Some(Effort::Max),
        "ultra" => {
            losses.add(&at.field("effort"), LossCode::Changed, "`ultra` is taken as `max`");
            Some(Effort::Max)
        }
        other => {
            losses.add(
                &at.field("effort"),
                LossCode::Ignored,
                format_args!("`{other}` is not known"),
            );
            None
        }
    });
    let mode = match effort {
        None => ThinkingMode::Unset,
        Some(Effort::None) => ThinkingMode::Off,
        Some(_) => ThinkingMode::On,
    };
    let summary = reasoning.summary.as_ref().or(reasoning.generate_summary.as_ref());
    let show = match summary.map(|word| &*word.0) {
        Some("none") => Some(false),
        Some(_) => Some(true),
        None => (mode == ThinkingMode::On).then_some(true),
    };
    (Thinking { mode, effort, budget: None, show }, show == Some(true))
}

/// Settings that would have changed the answer.
fn report_ignored(body: &Body<'_>, text: &wire::TextConfig<'_>, losses: &mut Losses) {
    let root = Path::Root;
    let is = |word: &Option<Str<'_>>, value: &str| word.as_ref().is_some_and(|it| it.0 == value);
    let include = body.include.as_deref().unwrap_or_default();
    let wants_logprobs = body.top_logprobs.is_some_and(|n| n > 0)
        || include.iter().any(|it| it.0 == "message.output_text.logprobs");
    let ignored = [
        (body.max_tool_calls.is_some(), "max_tool_calls", "Gemini has no such limit"),
        (wants_logprobs, "top_logprobs", "probabilities are not returned"),
        (is(&body.truncation, "auto"), "truncation", "nothing is cut off a long conversation"),
        (body.prompt.is_some(), "prompt", "stored prompts are not known here; send their text"),
        (body.moderation.is_some(), "moderation", "Gemini's own safety settings apply"),
    ];
    for (_, name, why) in ignored.into_iter().filter(|(given, ..)| *given) {
        losses.add(&root.field(name), LossCode::Ignored, why);
    }
    if is(&text.verbosity, "low") || is(&text.verbosity, "high") {
        let at = root.field("text");
        losses.add(&at.field("verbosity"), LossCode::Ignored, "Gemini has no such setting");
    }
}

/// `conversation` is an id or an object that holds one.
fn conversation(
    conversation: Option<&Raw<'_>>,
    losses: &mut Losses,
) -> Result<Option<String>, BadRequest> {
    let Some(raw) = conversation else { return Ok(None) };
    let root = Path::Root;
    let at = root.field("conversation");
    if let Some(id) = raw.as_text() {
        return Ok(Some(id.decode().into_owned()));
    }
    if raw.kind() != Kind::Object {
        return Err(at.bad("expected a string or an object"));
    }
    let object: wire::Conversation<'_> = json::read(raw.get(), &at, losses)?;
    let id = object.id.ok_or_else(|| at.field("id").bad("missing"))?;
    Ok(Some(id.0.into_owned()))
}

/// Whether `metadata` is what OpenAI's clients get back: names with strings, within its limits.
pub fn check_metadata(metadata: &Raw<'_>) -> Result<(), BadRequest> {
    const PAIRS: usize = 16;
    const NAME: usize = 64;
    const VALUE: usize = 512;
    let root = Path::Root;
    let at = root.field("metadata");
    let fields = metadata.fields().ok_or_else(|| at.bad("expected an object"))?;
    if fields.0.len() > PAIRS {
        return Err(at.bad(format!("has more than {PAIRS} members")));
    }
    for (name, value) in &fields.0 {
        if name.chars().count() > NAME {
            return Err(at.bad(format!("a name has more than {NAME} characters")));
        }
        let at = at.field(name);
        let text = value.as_text().ok_or_else(|| at.bad("expected a string"))?;
        if text.decode().chars().count() > VALUE {
            return Err(at.bad(format!("has more than {VALUE} characters")));
        }
    }
    Ok(())
}

/// Members that are repeated unchanged.
fn echo(
    body: &Body<'_>,
    text: &wire::TextConfig<'_>,
    reasoning: Option<&wire::Reasoning<'_>>,
) -> Echo {
    let owned = |raw: &Option<Raw<'_>>| raw.clone().map(Raw::into_owned);
    let string = |text: &Option<Str<'_>>| text.as_ref().map(|text| text.0.to_string());
    Echo {
        instructions: owned(&body.instructions),
        tools: owned(&body.tools),
        tool_choice: owned(&body.tool_choice),
        format: owned(&text.format),
        verbosity: string(&text.verbosity),
        effort: reasoning.and_then(|it| string(&it.effort)),
        summary: reasoning
            .and_then(|it| string(&it.summary).or_else(|| string(&it.generate_summary))),
        parallel_tool_calls: body.parallel_tool_calls,
        max_output_tokens: body.max_output_tokens,
        max_tool_calls: body.max_tool_calls,
        temperature: body.temperature,
        top_p: body.top_p,
        top_logprobs: body.top_logprobs,
        truncation: string(&body.truncation),
        user: string(&body.user),
        safety_identifier: string(&body.safety_identifier),
        service_tier: string(&body.service_tier),
        prompt_cache_key: string(&body.prompt_cache_key),
        metadata: owned(&body.metadata),
        include: body.include.iter().flatten().map(|it| it.0.to_string()).collect(),
        store: body.store,
        background: body.background,
        previous_response_id: string(&body.previous_response_id),
        context_management: owned(&body.context_management),
        client_metadata: owned(&body.client_metadata),
        stream_id: string(&body.stream_id),
        prewarm: body.generate == Some(false),
        ..Echo::default()
    }
}
