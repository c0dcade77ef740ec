//! From Anthropic's request to the canonical one.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;

use super::message::{Reader, required};
use super::{tools, wire};
use crate::canon::{
    BadRequest, Effort, LossCode, Losses, OutputFormat, Request, SchemaForm, ServerTool, Settings,
    Thinking, ThinkingMode, Tool, check_name,
};
use crate::dialect::{DecodeOptions, Decoded};
use crate::json::{self, Element, Kind, Path, Placed, Raw, Slice, Text};

/// Members of a request that its answer depends on.
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
    /// Whether the caller stores the signatures of calls and finds them again by the call's id. A
    /// client that did not ask for thinking then gets no `redacted_thinking` block for them.
    pub signatures_stored: bool,
    /// Whether the client wants the conversation remembered.
    pub thread: Thread,
}

/// Whether the server stores the conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Thread {
    /// The request holds the whole conversation.
    #[default]
    None,
    /// Stored from here on.
    Create,
    /// The conversation is stored: the request holds only new messages.
    Continue {
        /// Id of the answer that the request continues.
        previous_message_id: String,
    },
}

/// Reads the body of `POST /v1/messages`.
pub fn decode_request<'a>(
    body: &'a str,
    options: &DecodeOptions<'_>,
) -> Result<Decoded<'a, Echo>, BadRequest> {
    parse_request(body)?.decode(&[], options)
}

/// Reads the body of `POST /v1/messages` without decoding it yet: the turns of its thread may have to be
/// fetched first.
pub fn parse_request(body: &str) -> Result<Parsed<'_>, BadRequest> {
    parse(body, Purpose::Answer)
}

/// Reads the body of `POST /v1/messages/count_tokens` without decoding it yet.
pub fn parse_count_tokens(body: &str) -> Result<Parsed<'_>, BadRequest> {
    parse(body, Purpose::Count)
}

/// Reads the body of `POST /v1/messages/count_tokens`, which asks for no answer and so has no
/// limit on it.
pub fn decode_count_tokens<'a>(
    body: &'a str,
    options: &DecodeOptions<'_>,
) -> Result<Decoded<'a, Echo>, BadRequest> {
    parse_count_tokens(body)?.decode(&[], options)
}

/// A request body that has been read.
#[derive(Debug)]
pub struct Parsed<'a> {
    form: Form<'a>,
    tools: Vec<Element<wire::Tool<'a>>>,
    /// The body has a field `tools`.
    has_tools: bool,
    /// Place of `tools` in the body.
    place: Option<Range<usize>>,
    losses: Losses,
    length: usize,
    purpose: Purpose,
}

/// A body by the type of its tools, which are in [`Parsed`].
#[derive(Debug)]
enum Form<'a> {
    Typed(Box<wire::Body<'a, Element<wire::Tool<'a>>>>),
    /// A tool is broken, or new.
    Untyped(Box<wire::Body<'a, Raw<'a>>>),
}

/// A turn of a message thread, as it was stored.
#[derive(Clone, Copy, Debug)]
pub struct StoredTurn<'a> {
    /// Body of the request.
    pub question: &'a str,
    /// The message that answered it.
    pub answer: &'a str,
}

impl<'a> Parsed<'a> {
    /// The message thread that the request is part of.
    pub fn thread(&self) -> Result<Thread, BadRequest> {
        match &self.form {
            Form::Typed(body) => thread(body.thread.as_ref()),
            Form::Untyped(body) => thread(body.thread.as_ref()),
        }
    }

    /// Places of `system` and `tools` in `source`, the body that was read: requests of a thread repeat them.
    pub fn repeated_places(&self, source: &str) -> Vec<Range<usize>> {
        let system = match &self.form {
            Form::Typed(body) => body.system.as_ref(),
            Form::Untyped(body) => body.system.as_ref(),
        };
        let place = |text: &str| {
            let start = (text.as_ptr() as usize).checked_sub(source.as_ptr() as usize)?;
            (start + text.len() <= source.len()).then_some(start..start + text.len())
        };
        let system = system.and_then(|system| place(system.get()));
        let mut places: Vec<_> = system.into_iter().chain(self.place.clone()).collect();
        places.sort_unstable_by_key(|place| place.start);
        places
    }

    /// Decodes the request after the earlier turns of its thread, oldest first.
    pub fn decode(
        self,
        earlier: &[StoredTurn<'a>],
        options: &DecodeOptions<'_>,
    ) -> Result<Decoded<'a, Echo>, BadRequest> {
        let Self { form, mut tools, has_tools, losses, length, purpose, .. } = self;
        let lengths = earlier.iter().map(|turn| turn.question.len() + turn.answer.len());
        let mut reader = Reader::new(options.sealer, length + lengths.sum::<usize>());
        reader.losses = losses;
        let before = Earlier::read(earlier, &mut reader.losses)?;
        if !has_tools && let Some(inherited) = &before.tools {
            tools = tools::read(inherited, &mut reader.losses)?;
        }
        match form {
            Form::Typed(body) => understand(*body, tools, before, reader, purpose),
            Form::Untyped(body) => understand(*body, tools, before, reader, purpose),
        }
    }
}

/// The earlier turns of a thread.
#[derive(Default)]
struct Earlier<'a> {
    messages: Vec<wire::Message<'a>>,
    /// The last that a request gave.
    system: Option<Raw<'a>>,
    tools: Option<Vec<Raw<'a>>>,
}

impl<'a> Earlier<'a> {
    fn read(turns: &[StoredTurn<'a>], losses: &mut Losses) -> Result<Self, BadRequest> {
        /// The fields of a stored request that later ones inherit. The others were reported then.
        #[derive(Deserialize)]
        struct Question<'a> {
            #[serde(borrow)]
            messages: Option<Vec<Raw<'a>>>,
            #[serde(borrow)]
            system: Option<Raw<'a>>,
            #[serde(borrow)]
            tools: Option<Vec<Raw<'a>>>,
        }
        #[derive(Deserialize)]
        struct Reply<'a> {
            #[serde(borrow)]
            role: Option<Text<'a>>,
            #[serde(borrow)]
            content: Option<Raw<'a>>,
        }
        let root = Path::Root;
        let at = root.field("thread");
        let messages_at = at.field("messages");
        let mut earlier = Self::default();
        for turn in turns {
            let question: Question<'a> = json::look(turn.question, &at)?;
            for message in question.messages.unwrap_or_default() {
                let at = messages_at.index(earlier.messages.len());
                earlier.messages.push(json::read(Slice::new(&message).get(), &at, losses)?);
            }
            earlier.system = question.system.or(earlier.system);
            earlier.tools = question.tools.or(earlier.tools);
            let Reply { role, content } = json::look(turn.answer, &at)?;
            let (clear_at, output_config) = (None, None);
            earlier.messages.push(wire::Message { role, content, clear_at, output_config });
        }
        Ok(earlier)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Answer,
    Count,
}

fn parse(source: &str, purpose: Purpose) -> Result<Parsed<'_>, BadRequest> {
    let (mut losses, length) = (Losses::new(), source.len());
    let read = json::read_placed::<wire::Body<'_, Element<wire::Tool<'_>>>>;
    if let Ok((mut body, place)) = read(source, &Path::Root, &mut losses)
        && body.tools.as_ref().is_none_or(|Placed(tools)| tools::are_known(tools))
    {
        let tools = body.tools.take().map(|Placed(tools)| tools);
        let (has_tools, tools) = (tools.is_some(), tools.unwrap_or_default());
        let form = Form::Typed(Box::new(body));
        return Ok(Parsed { form, tools, has_tools, place, losses, length, purpose });
    }
    // Something is broken, or a tool is new: which one is found tool by tool.
    losses.clear();
    let read = json::read_placed::<wire::Body<'_, Raw<'_>>>;
    let (mut body, place) = read(source, &Path::Root, &mut losses)?;
    let tools = body.tools.take().map(|Placed(tools)| tools);
    let has_tools = tools.is_some();
    let tools = tools::read(&tools.unwrap_or_default(), &mut losses)?;
    let form = Form::Untyped(Box::new(body));
    Ok(Parsed { form, tools, has_tools, place, losses, length, purpose })
}

fn understand<'a, T>(
    body: wire::Body<'a, T>,
    tools: Vec<Element<wire::Tool<'a>>>,
    mut earlier: Earlier<'a>,
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

    let system = body.system.or(earlier.system);
    if let Some(system) = &system {
        request.system = reader.system(Slice::new(system))?;
    }
    let count = earlier.messages.len();
    match body.messages {
        Some(own) => earlier.messages.extend(own),
        None if count > 0 => {}
        None => return Err(Path::Root.field("messages").bad("is missing")),
    }
    reader.messages(earlier.messages, count, &mut request)?;
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
        signatures_stored: false,
        thread: thread(body.thread.as_ref())?,
    };
    Ok(Decoded { request, echo, losses: reader.losses })
}

/// Reports known fields that have no effect.
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
    let kind = required(given.kind.clone(), &at.field("type"))?;
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

fn thread(given: Option<&wire::Thread<'_>>) -> Result<Thread, BadRequest> {
    let Some(given) = given else { return Ok(Thread::None) };
    let at = Path::Root.field("thread");
    let kind: Cow<'_, str> = required(given.kind.clone(), &at.field("type"))?;
    match &*kind {
        "create" => Ok(Thread::Create),
        "continue" => {
            let id = required(given.previous_message_id.clone(), &at.field("previous_message_id"))?;
            Ok(Thread::Continue { previous_message_id: id.into_owned() })
        }
        _ => Err(at.field("type").bad("expected create or continue")),
    }
}
