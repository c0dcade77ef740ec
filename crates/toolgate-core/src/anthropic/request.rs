//! From Anthropic's request to the canonical one.

use std::borrow::Cow;

use super::message::{Reader, required};
use super::{tools, wire};
use crate::canon::{
    BadRequest, DecodeOptions, Decoded, Effort, LossCode, Losses, OutputFormat, Request,
    SchemaForm, ServerTool, Settings, Thinking, ThinkingMode, Tool, check_name,
};
use crate::json::{self, Element, Kind, Path, Raw, Slice, Text};
use crate::seal::Sealer;

/// What an answer must know of its request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Echo {
    /// The model by the name that the client used: clients compare it when they resume.
    pub model: String,
    /// Whether the answer is streamed.
    pub stream: bool,
    /// Whether the client asked for thinking, so that it expects blocks of it.
    pub thinking: bool,
    /// Whether the client wants to read the thoughts.
    pub show_thoughts: bool,
    /// Whether the client declared a web search, so that it expects blocks of it.
    pub web_search: bool,
    /// Whether the client wants the conversation remembered.
    pub thread: Thread,
}

/// Whether the server shall remember the conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Thread {
    /// No: the request holds all of it.
    #[default]
    None,
    /// Yes: it begins here.
    Create,
    /// It did: the request holds only what is new.
    Continue {
        /// The answer that it goes on from.
        previous_message_id: String,
    },
}

/// Reads the body of `POST /v1/messages`.
pub fn decode_request<'a>(
    body: &'a str,
    options: &DecodeOptions<'_>,
) -> Result<Decoded<'a, Echo>, BadRequest> {
    decode(body, options.sealer, Purpose::Answer)
}

/// Reads the body of `POST /v1/messages/count_tokens`, which asks for no answer and so has no
/// limit on it.
pub fn decode_count_tokens<'a>(
    body: &'a str,
    options: &DecodeOptions<'_>,
) -> Result<Decoded<'a, Echo>, BadRequest> {
    decode(body, options.sealer, Purpose::Count)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Answer,
    Count,
}

fn decode<'a>(
    body: &'a str,
    sealer: &Sealer,
    purpose: Purpose,
) -> Result<Decoded<'a, Echo>, BadRequest> {
    let mut reader = Reader::new(sealer, body.len());
    let read = json::read::<wire::Body<'a, Element<wire::Tool<'a>>>>;
    if let Ok(mut body) = read(body, &Path::Root, &mut reader.losses)
        && tools::are_known(body.tools.as_deref().unwrap_or_default())
    {
        let tools = body.tools.take().unwrap_or_default();
        return understand(body, tools, reader, purpose);
    }
    // Something is broken, or a tool is new: which one is found tool by tool.
    reader.losses.clear();
    let read = json::read::<wire::Body<'a, Raw<'a>>>;
    let mut body = read(body, &Path::Root, &mut reader.losses)?;
    let tools = tools::read(&body.tools.take().unwrap_or_default(), &mut reader.losses)?;
    understand(body, tools, reader, purpose)
}

fn understand<'a, T>(
    body: wire::Body<'a, T>,
    tools: Vec<Element<wire::Tool<'a>>>,
    mut reader: Reader<'a, '_>,
    purpose: Purpose,
) -> Result<Decoded<'a, Echo>, BadRequest> {
    if purpose == Purpose::Answer && body.compaction.is_some() {
        return Err(Path::Root.field("compaction").bad("compaction is not offered here"));
    }
    note_ignored(&body, &mut reader.losses);

    let losses = &mut reader.losses;
    let mut request = Request {
        model: required(body.model, &Path::Root.field("model"))?,
        settings: Settings {
            max_output_tokens: max_tokens(body.max_tokens, purpose, losses)?,
            temperature: body.temperature,
            top_p: body.top_p,
            top_k: body.top_k,
            stop: body.stop_sequences.unwrap_or_default(),
            ..Settings::default()
        },
        thinking: thinking(body.thinking, losses)?,
        stream: body.stream.unwrap_or(false),
        ..Request::default()
    };
    let config_format = match body.output_config {
        Some(config) => {
            request.thinking.effort = effort(config.effort, losses);
            config.format
        }
        None => None,
    };
    request.output = match (config_format, body.output_format) {
        (Some(format), _) => {
            output_format(format, &Path::Root.field("output_config").field("format"), losses)?
        }
        (None, Some(format)) => output_format(format, &Path::Root.field("output_format"), losses)?,
        (None, None) => OutputFormat::Text,
    };
    if let Some(choice) = body.tool_choice {
        request.parallel_calls = choice.disable_parallel_tool_use.map(|disabled| !disabled);
        request.tool_choice = tools::choice(choice)?;
    }

    if let Some(system) = &body.system {
        request.system = reader.system(Slice::new(system))?;
    }
    let messages = body.messages.ok_or_else(|| Path::Root.field("messages").bad("is missing"))?;
    reader.messages(messages, &mut request)?;
    request.tools = tools::decode(tools, &mut reader, &request.tool_choice)?;

    check_name(&request.model, &Path::Root.field("model"))?;
    request.check_bounds(reader.body_len(), "messages")?;
    let echo = Echo {
        model: request.model.clone().into_owned(),
        stream: request.stream,
        thinking: request.thinking.mode == ThinkingMode::On,
        show_thoughts: request.thinking.show == Some(true),
        web_search: request
            .tools
            .iter()
            .any(|tool| matches!(tool, Tool::Server(ServerTool::WebSearch { .. }))),
        thread: thread(body.thread)?,
    };
    Ok(Decoded { request, echo, losses: reader.losses })
}

/// Names the fields that were understood and that nobody will honour.
fn note_ignored<T>(body: &wire::Body<'_, T>, losses: &mut Losses) {
    let given = |raw: &Option<Raw<'_>>| raw.as_ref().is_some_and(|raw| !is_empty(raw));
    let differs = |text: &Option<Text<'_>>, usual: &str| {
        text.as_ref().is_some_and(|text| text.decode() != usual)
    };
    let fields = [
        ("container", given(&body.container), "Gemini has no containers to reuse"),
        ("context_management", given(&body.context_management), "the conversation is sent whole"),
        ("fallbacks", given(&body.fallbacks), "the gateway's own settings decide on other models"),
        ("inference_geo", given(&body.inference_geo), "the upstream's address decides where"),
        ("mcp_servers", given(&body.mcp_servers), "Gemini does not call MCP servers"),
        ("service_tier", differs(&body.service_tier, "auto"), "Gemini has other tiers"),
        ("speed", differs(&body.speed, "standard"), "Gemini has one speed for a model"),
    ];
    for (name, given, why) in fields {
        if given {
            losses.add(&Path::Root.field(name), LossCode::Ignored, why);
        }
    }
    if body.output_config.as_ref().is_some_and(|config| config.task_budget.is_some()) {
        let at = Path::Root.field("output_config");
        losses.add(&at.field("task_budget"), LossCode::Ignored, "Gemini has no task budgets");
    }
}

fn is_empty(raw: &Raw<'_>) -> bool {
    matches!(raw.kind(), Kind::Array | Kind::Object)
        && raw.get().bytes().skip(1).find(|byte| !byte.is_ascii_whitespace())
            == raw.get().bytes().last()
}

fn max_tokens(
    given: Option<i64>,
    purpose: Purpose,
    losses: &mut Losses,
) -> Result<Option<i64>, BadRequest> {
    let at = Path::Root.field("max_tokens");
    match given {
        None if purpose == Purpose::Answer => Err(at.bad("is missing")),
        Some(limit) if limit < 0 => Err(at.bad("must not be negative")),
        // Anthropic fills its cache and says nothing; Gemini refuses the number.
        Some(0) => {
            losses.add(&at, LossCode::Changed, "Gemini's answers have at least one token");
            Ok(Some(1))
        }
        limit => Ok(limit),
    }
}

fn thinking(
    given: Option<wire::Thinking<'_>>,
    losses: &mut Losses,
) -> Result<Thinking, BadRequest> {
    let Some(given) = given else { return Ok(Thinking::default()) };
    let at = Path::Root.field("thinking");
    let kind = required(given.kind, &at.field("type"))?;
    let show = given.display.as_ref().is_none_or(|display| display.decode() != "omitted");
    let on = Thinking {
        mode: ThinkingMode::On,
        effort: None,
        budget: given.budget_tokens,
        show: Some(show),
    };
    Ok(match &*kind {
        "enabled" => on,
        "adaptive" => Thinking { budget: None, ..on },
        "disabled" => {
            Thinking { mode: ThinkingMode::Off, show: Some(false), ..Thinking::default() }
        }
        other => {
            let detail = format_args!("Gemini thinks when it likes, which is not quite `{other}`");
            losses.add(&at.field("type"), LossCode::Changed, detail);
            Thinking { budget: None, ..on }
        }
    })
}

fn effort(given: Option<Text<'_>>, losses: &mut Losses) -> Option<Effort> {
    let given = given?;
    match &*given.decode() {
        "low" => Some(Effort::Low),
        "medium" => Some(Effort::Medium),
        "high" => Some(Effort::High),
        "xhigh" => Some(Effort::XHigh),
        "max" => Some(Effort::Max),
        other => {
            let at = Path::Root.field("output_config");
            let detail = format_args!("`{other}` is not an effort that this version knows");
            losses.add(&at.field("effort"), LossCode::Ignored, detail);
            None
        }
    }
}

fn output_format<'a>(
    format: wire::Format<'a>,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<OutputFormat<'a>, BadRequest> {
    let kind = required(format.kind, &at.field("type"))?;
    if kind != "json_schema" {
        let detail = format_args!("`{kind}` is not a format that this version knows");
        losses.add(&at.field("type"), LossCode::Ignored, detail);
        return Ok(OutputFormat::Text);
    }
    let schema = format.schema.ok_or_else(|| at.field("schema").bad("is missing"))?;
    Ok(OutputFormat::JsonSchema {
        name: None,
        description: None,
        schema,
        form: SchemaForm::JsonSchema,
    })
}

fn thread(given: Option<wire::Thread<'_>>) -> Result<Thread, BadRequest> {
    let Some(given) = given else { return Ok(Thread::None) };
    let at = Path::Root.field("thread");
    let kind: Cow<'_, str> = required(given.kind, &at.field("type"))?;
    match &*kind {
        "create" => Ok(Thread::Create),
        "continue" => {
            let id = required(given.previous_message_id, &at.field("previous_message_id"))?;
            Ok(Thread::Continue { previous_message_id: id.into_owned() })
        }
        _ => Err(at.field("type").bad("expected create or continue")),
    }
}
