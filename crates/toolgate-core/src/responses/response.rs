//! The response object, and answers that come in one piece.

use std::ops::Range;

use super::echo::Echo;
use super::echoed::{write_flat, write_tools};
use super::frames::{Frames, member, number};
use super::stream::StreamEncoder;
use crate::canon::{Answer, Encoder as _, Event, Item, Usage};
use crate::dialect::Stamp;
use crate::json::{Raw, write};
use crate::seal::Sealer;

/// A response object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its `id`.
    pub id: String,
    /// The object.
    pub json: Vec<u8>,
    /// Where the settings of its request stand in it. They are the same in many objects, and most
    /// of an object where there are tools: a store may keep them once.
    pub settings: Range<usize>,
    /// Its `status`.
    pub status: &'static str,
    /// Places of its items.
    pub items: Vec<Range<usize>>,
}

/// Writes a whole answer: the same items that a stream of it would end with.
pub fn encode_response(answer: &Answer, echo: &Echo, stamp: &Stamp, sealer: &Sealer) -> Vec<u8> {
    encode_object(answer, echo, stamp, sealer).json
}

/// The same, to be kept.
pub fn encode_object(answer: &Answer, echo: &Echo, stamp: &Stamp, sealer: &Sealer) -> Object {
    let mut encoder =
        StreamEncoder::with_frames(echo.clone(), stamp.clone(), sealer.clone(), Frames::silent());
    let mut none = Vec::new();
    replay(answer, |event| encoder.event(event, &mut none));
    encoder.object()
}

/// Replays an answer, event by event.
pub(super) fn replay(answer: &Answer, mut event: impl FnMut(&Event<'_>)) {
    event(&Event::Start(answer.start.clone()));
    for item in &answer.items {
        match item {
            Item::Text(text) => event(&Event::Text(text.borrowed())),
            Item::Thought(text) => event(&Event::Thought(text.borrowed())),
            Item::Signature { thought, len, signature } => event(&Event::Signature {
                thought: *thought,
                len: *len,
                signature: signature.clone(),
            }),
            Item::Call(call) => event(&Event::Call(call.clone())),
            Item::Media(media) => event(&Event::Media(media.clone())),
            Item::Server(activity) => event(&Event::Server(activity.clone())),
            Item::Grounding(grounding) => event(&Event::Grounding(grounding.clone())),
        }
    }
    event(&Event::Finish(answer.finish.clone()));
}

/// Members that are the same in every copy of a response object.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) id: String,
    /// `"id"` … : the members that come first.
    first: Vec<u8>,
    /// Members that repeat settings of this request alone.
    own: Vec<u8>,
    /// Members that repeat settings which requests of one client have in common.
    settings: Vec<u8>,
}

/// Members that change between two copies of a response object.
#[derive(Clone, Debug)]
pub(super) struct State<'s> {
    pub(super) status: &'static str,
    /// `completed_at`, in seconds since 1970.
    pub(super) completed: Option<u64>,
    /// `error`: its code and message.
    pub(super) error: Option<(&'s str, &'s str)>,
    /// `incomplete_details.reason`.
    pub(super) incomplete: Option<&'s str>,
    /// The items' JSON, with commas between.
    pub(super) items: &'s [u8],
    pub(super) usage: Option<&'s Usage>,
}

impl Head {
    pub(super) fn new(id: String, created: u64, echo: &Echo) -> Self {
        let mut first = Vec::new();
        member(&mut first, "id", &id);
        member(&mut first, "object", "response");
        number(&mut first, "created_at", created);
        Self { id, first, own: own(echo), settings: settings(echo) }
    }

    /// The settings. They stand at the end of the object.
    pub(super) fn settings(&self) -> &[u8] {
        &self.settings
    }

    /// Writes the response object. Returns the place of its first item.
    pub(super) fn write(&self, out: &mut Vec<u8>, state: &State<'_>) -> usize {
        out.reserve(self.settings.len());
        let items = self.write_opening(out, state);
        out.extend_from_slice(&self.settings);
        out.push(b'}');
        items
    }

    /// Writes the members before the settings. Returns the place of the first item.
    pub(super) fn write_opening(&self, out: &mut Vec<u8>, state: &State<'_>) -> usize {
        out.reserve(self.first.len() + self.own.len() + state.items.len() + 512);
        out.push(b'{');
        out.extend_from_slice(&self.first);
        match state.completed {
            Some(seconds) => number(out, "completed_at", seconds),
            None => null(out, "completed_at"),
        }
        member(out, "status", state.status);
        write::key(out, "error");
        match state.error {
            Some((code, message)) => {
                out.push(b'{');
                member(out, "code", code);
                member(out, "message", message);
                out.push(b'}');
            }
            None => out.extend_from_slice(b"null"),
        }
        null(out, "access_programs");
        write::key(out, "incomplete_details");
        match state.incomplete {
            Some(reason) => {
                out.push(b'{');
                member(out, "reason", reason);
                out.push(b'}');
            }
            None => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(b",\"output\":[");
        let items = out.len();
        out.extend_from_slice(state.items);
        out.extend_from_slice(b"],");
        out.extend_from_slice(&self.own);
        write::key(out, "usage");
        match state.usage {
            Some(usage) => write_usage(out, usage),
            None => out.extend_from_slice(b"null"),
        }
        out.push(b',');
        items
    }
}

/// Writes `usage`, every count present: clients fail on missing ones.
pub(super) fn write_usage(out: &mut Vec<u8>, usage: &Usage) {
    let (input, output) = (usage.input(), usage.output());
    out.push(b'{');
    number(out, "input_tokens", input);
    out.extend_from_slice(b",\"input_tokens_details\":{");
    number(out, "cached_tokens", usage.cached.unwrap_or(0));
    number(out, "cache_write_tokens", 0);
    out.push(b'}');
    number(out, "output_tokens", output);
    out.extend_from_slice(b",\"output_tokens_details\":{");
    number(out, "reasoning_tokens", usage.thoughts.unwrap_or(0));
    out.push(b'}');
    number(out, "total_tokens", input.saturating_add(output));
    out.push(b'}');
}

/// Members that identify the request or its place.
fn own(echo: &Echo) -> Vec<u8> {
    let mut out = Vec::new();
    let out = &mut out;
    string(out, "previous_response_id", echo.previous_response_id.as_deref(), None);
    if let Some(conversation) = &echo.conversation {
        write::key(out, "conversation");
        out.push(b'{');
        member(out, "id", conversation);
        out.push(b'}');
    }
    raw(out, "metadata", echo.metadata.as_ref(), "{}");
    string(out, "prompt_cache_key", echo.prompt_cache_key.as_deref(), None);
    string(out, "safety_identifier", echo.safety_identifier.as_deref(), None);
    string(out, "user", echo.user.as_deref(), None);
    std::mem::take(out)
}

/// Settings of the request, with OpenAI's defaults for those left out.
fn settings(echo: &Echo) -> Vec<u8> {
    let mut out = Vec::with_capacity(512 + echo.tools.as_ref().map_or(0, |it| it.get().len()));
    let out = &mut out;
    flag(out, "background", echo.background.unwrap_or(false));
    float(out, "frequency_penalty", 0.0);
    raw(out, "instructions", echo.instructions.as_ref(), "null");
    optional(out, "max_output_tokens", echo.max_output_tokens);
    optional(out, "max_tool_calls", echo.max_tool_calls);
    member(out, "model", &echo.model);
    flag(out, "parallel_tool_calls", echo.parallel_tool_calls.unwrap_or(true));
    float(out, "presence_penalty", 0.0);
    write::key(out, "reasoning");
    out.push(b'{');
    string(out, "effort", echo.effort.as_deref(), None);
    string(out, "summary", echo.summary.as_deref(), None);
    out.push(b'}');
    let tier = echo.service_tier.as_deref().filter(|tier| *tier != "auto");
    string(out, "service_tier", tier, Some("default"));
    flag(out, "store", echo.is_stored());
    float(out, "temperature", echo.temperature.unwrap_or(1.0));
    write::key(out, "text");
    out.push(b'{');
    write::key(out, "format");
    match &echo.format {
        Some(format) => write_flat(out, format, "json_schema"),
        None => out.extend_from_slice(br#"{"type":"text"}"#),
    }
    string(out, "verbosity", echo.verbosity.as_deref(), Some("medium"));
    out.push(b'}');
    write::key(out, "tool_choice");
    match &echo.tool_choice {
        Some(choice) => write_flat(out, choice, "function"),
        None => out.extend_from_slice(b"\"auto\""),
    }
    write::key(out, "tools");
    match &echo.tools {
        Some(tools) => write_tools(out, tools),
        None => out.extend_from_slice(b"[]"),
    }
    number(out, "top_logprobs", echo.top_logprobs.unwrap_or(0));
    float(out, "top_p", echo.top_p.unwrap_or(1.0));
    string(out, "truncation", echo.truncation.as_deref(), Some("disabled"));
    std::mem::take(out)
}

fn raw(out: &mut Vec<u8>, name: &str, value: Option<&Raw<'_>>, default: &str) {
    write::key(out, name);
    match value {
        Some(value) => write::one_line(out, value.get()),
        None => out.extend_from_slice(default.as_bytes()),
    }
}

fn string(out: &mut Vec<u8>, name: &str, value: Option<&str>, default: Option<&str>) {
    write::key(out, name);
    match value.or(default) {
        Some(value) => write::string(out, value),
        None => out.extend_from_slice(b"null"),
    }
}

fn flag(out: &mut Vec<u8>, name: &str, value: bool) {
    write::key(out, name);
    out.extend_from_slice(if value { b"true" } else { b"false" });
}

fn optional(out: &mut Vec<u8>, name: &str, value: Option<i64>) {
    write::key(out, name);
    match value {
        Some(value) => write::integer(out, value),
        None => out.extend_from_slice(b"null"),
    }
}

fn null(out: &mut Vec<u8>, name: &str) {
    write::key(out, name);
    out.extend_from_slice(b"null");
}

/// A JSON number; JSON has no infinities, and neither has a body that was read.
fn float(out: &mut Vec<u8>, name: &str, value: f64) {
    write::key(out, name);
    let number = serde_json::Number::from_f64(value);
    out.extend_from_slice(number.map_or_else(|| "1.0".to_owned(), |it| it.to_string()).as_bytes());
}
