//! Anthropic's rules for an answer, streamed or whole, as its documentation and its SDKs have them.
//!
//! Written without a look at the encoder. Sources:
//! <https://docs.claude.com/en/docs/build-with-claude/streaming>,
//! <https://docs.claude.com/en/api/messages>, and what SDKs and Claude Code break on.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Checks a whole stream, from the first byte to the last.
pub fn check_stream(bytes: &[u8]) -> Result<(), String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    if let Some(bad) = text.chars().find(|it| matches!(it, '\u{2028}' | '\u{2029}' | '\u{85}')) {
        return Err(format!("{bad:?} is a line break to some readers"));
    }
    let mut stream = Stream::default();
    for (number, frame) in frames(text)?.into_iter().enumerate() {
        stream.feed(&frame).map_err(|reason| format!("frame {number}: {reason}: {frame}"))?;
    }
    match stream.stage {
        Stage::Stopped | Stage::Failed => Ok(()),
        Stage::Before | Stage::Content | Stage::Delta => Err("the stream has no end".to_owned()),
    }
}

/// Checks a whole message.
pub fn check_message(json: &[u8]) -> Result<(), String> {
    let message: Value = serde_json::from_slice(json).map_err(|error| error.to_string())?;
    check_head(&message)?;
    let mut seen = EarlierBlocks::default();
    let blocks = message["content"].as_array().ok_or("content is not an array")?;
    for (index, block) in blocks.iter().enumerate() {
        let mut whole = Block::open(block, Form::Whole, &mut seen)
            .map_err(|reason| format!("block {index}: {reason}"))?;
        whole.close(&mut seen).map_err(|reason| format!("block {index}: {reason}"))?;
    }
    seen.finish()?;
    check_stop(&message, &seen)?;
    check_usage(&message["usage"], &["input_tokens", "output_tokens"])
}

/// The data of each frame; its `event:` line must say the same type.
fn frames(text: &str) -> Result<Vec<Value>, String> {
    let text = text.replace("\r\n", "\n");
    if !text.is_empty() && !text.ends_with("\n\n") {
        return Err("the last frame is not finished".to_owned());
    }
    let mut frames = Vec::new();
    for block in text.split("\n\n").filter(|block| !block.is_empty()) {
        let (mut event, mut data) = (None, None);
        for line in block.lines() {
            let (field, value) = line.split_once(':').ok_or_else(|| format!("a line {line:?}"))?;
            let value = value.strip_prefix(' ').unwrap_or(value);
            let slot = match field {
                "" => continue,
                "event" => &mut event,
                "data" => &mut data,
                other => return Err(format!("a field {other:?}")),
            };
            if slot.replace(value).is_some() {
                return Err(format!("two {field} lines in one frame"));
            }
        }
        match (event, data) {
            (None, None) => {}
            (Some(event), Some(data)) => {
                let data: Value =
                    serde_json::from_str(data).map_err(|error| format!("{error} in {data}"))?;
                if data["type"] != event {
                    return Err(format!("the event line says {event}, the data {}", data["type"]));
                }
                frames.push(data);
            }
            (event, _) => return Err(format!("half a frame: event {event:?}")),
        }
    }
    Ok(frames)
}

#[derive(Default)]
struct Stream {
    stage: Stage,
    open: Option<Block>,
    next_index: u64,
    seen: EarlierBlocks,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Before,
    Content,
    Delta,
    Stopped,
    Failed,
}

impl Stream {
    fn feed(&mut self, frame: &Value) -> Result<(), String> {
        if matches!(self.stage, Stage::Stopped | Stage::Failed) {
            return Err("something after the end".to_owned());
        }
        let kind = string(frame, "type")?;
        match (kind, self.stage) {
            ("ping", _) => Ok(()),
            ("message_start", Stage::Before) => {
                let message = &frame["message"];
                check_head(message)?;
                if message["content"] != Value::Array(Vec::new()) {
                    return Err("a message starts without content".to_owned());
                }
                for field in ["stop_reason", "stop_sequence"] {
                    if message.get(field) != Some(&Value::Null) {
                        return Err(format!("{field} is not null at the start"));
                    }
                }
                check_usage(&message["usage"], &["input_tokens", "output_tokens"])?;
                self.stage = Stage::Content;
                Ok(())
            }
            ("error", Stage::Content | Stage::Delta) => {
                self.stage = Stage::Failed;
                check_error(frame)
            }
            ("content_block_start", Stage::Content) => {
                if self.open.is_some() {
                    return Err("two open blocks".to_owned());
                }
                if frame["index"] != self.next_index {
                    return Err(format!("the next index is {}", self.next_index));
                }
                self.open =
                    Some(Block::open(&frame["content_block"], Form::Streamed, &mut self.seen)?);
                Ok(())
            }
            ("content_block_delta", Stage::Content) => {
                let next_index = self.next_index;
                let block = self.open.as_mut().ok_or("a delta outside of a block")?;
                if frame["index"] != next_index {
                    return Err(format!("the open block has index {next_index}"));
                }
                block.delta(&frame["delta"])
            }
            ("content_block_stop", Stage::Content) => {
                let mut block = self.open.take().ok_or("a stop outside of a block")?;
                if frame["index"] != self.next_index {
                    return Err(format!("the open block has index {}", self.next_index));
                }
                self.next_index += 1;
                block.close(&mut self.seen)
            }
            ("message_delta", Stage::Content) => {
                if self.open.is_some() {
                    return Err("a block is still open".to_owned());
                }
                self.stage = Stage::Delta;
                self.seen.finish()?;
                check_stop(&frame["delta"], &self.seen)?;
                check_usage(&frame["usage"], &["output_tokens"])
            }
            ("message_stop", Stage::Delta) => {
                self.stage = Stage::Stopped;
                Ok(())
            }
            (kind, _) => Err(format!("{kind} cannot stand here")),
        }
    }
}

/// Ids of earlier blocks that later ones refer to.
#[derive(Default)]
struct EarlierBlocks {
    calls: usize,
    ids: BTreeSet<String>,
    /// Calls of server tools that have no result yet, with the type that it will have.
    unanswered: Vec<(String, String)>,
}

impl EarlierBlocks {
    fn id(&mut self, block: &Value, prefix: &str) -> Result<String, String> {
        let id = string(block, "id")?;
        let plain = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
        if !id.starts_with(prefix) || id.len() > 64 || !id.chars().all(plain) {
            return Err(format!("an id {id:?}"));
        }
        if !self.ids.insert(id.to_owned()) {
            return Err(format!("the id {id:?} for the second time"));
        }
        Ok(id.to_owned())
    }

    fn finish(&self) -> Result<(), String> {
        match self.unanswered.first() {
            Some((id, _)) => Err(format!("the server tool's call {id} has no result")),
            None => Ok(()),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Empty at first, filled by deltas.
    Streamed,
    /// All at once.
    Whole,
}

enum Block {
    Text { len: usize },
    Thinking { signatures: usize },
    Call { input: String, server: Option<(String, String)> },
    Complete,
}

const SERVER_TOOLS: [&str; 7] = [
    "web_search",
    "web_fetch",
    "code_execution",
    "bash_code_execution",
    "text_editor_code_execution",
    "tool_search_tool_regex",
    "tool_search_tool_bm25",
];

impl Block {
    fn open(block: &Value, form: Form, seen: &mut EarlierBlocks) -> Result<Self, String> {
        let is_streamed = form == Form::Streamed;
        let empty = |field: &str| match string(block, field)? {
            text if is_streamed && !text.is_empty() => Err(format!("{field} is not empty yet")),
            text => Ok(text),
        };
        match string(block, "type")? {
            "text" => Ok(Self::Text { len: empty("text")?.len() }),
            "thinking" => {
                empty("thinking")?;
                empty("signature")?;
                Ok(Self::Thinking { signatures: usize::from(!is_streamed) })
            }
            "redacted_thinking" => match string(block, "data")? {
                "" => Err("no data".to_owned()),
                _ => Ok(Self::Complete),
            },
            kind @ ("tool_use" | "server_tool_use") => {
                let is_server = kind == "server_tool_use";
                let id = seen.id(block, if is_server { "srvtoolu_" } else { "toolu_" })?;
                let name = string(block, "name")?;
                if name.is_empty() || (is_server && !SERVER_TOOLS.contains(&name)) {
                    return Err(format!("a tool {name:?}"));
                }
                let input = block["input"].as_object().ok_or("input is not an object")?;
                if is_streamed && !input.is_empty() {
                    return Err("input comes in deltas; clients ignore it here".to_owned());
                }
                let server = is_server.then(|| (id, format!("{name}_tool_result")));
                seen.calls += usize::from(!is_server);
                let input = if is_streamed { String::new() } else { block["input"].to_string() };
                Ok(Self::Call { input, server })
            }
            kind @ ("web_search_tool_result" | "code_execution_tool_result") => {
                let id = string(block, "tool_use_id")?;
                let call = seen.unanswered.iter().position(|(call, _)| call == id);
                let (_, wanted) = seen
                    .unanswered
                    .remove(call.ok_or_else(|| format!("a result of {id}, which is not open"))?);
                if wanted != kind {
                    return Err(format!("a {kind} where a {wanted} was due"));
                }
                check_result(kind, &block["content"])?;
                Ok(Self::Complete)
            }
            kind => Err(format!("a block of type {kind}")),
        }
    }

    fn delta(&mut self, delta: &Value) -> Result<(), String> {
        match (string(delta, "type")?, self) {
            ("text_delta", Self::Text { len }) => *len += string(delta, "text")?.len(),
            ("thinking_delta", Self::Thinking { signatures: 0 }) => {
                string(delta, "thinking")?;
            }
            // The last one wins in clients, so there must be one and it must be whole.
            ("signature_delta", Self::Thinking { signatures }) => {
                string(delta, "signature")?;
                *signatures += 1;
            }
            ("input_json_delta", Self::Call { input, .. }) => {
                input.push_str(string(delta, "partial_json")?);
            }
            (kind, _) => return Err(format!("a {kind} in a block of another type")),
        }
        Ok(())
    }

    fn close(&mut self, seen: &mut EarlierBlocks) -> Result<(), String> {
        match self {
            Self::Text { len: 0 } => Err("an empty text".to_owned()),
            Self::Thinking { signatures } if *signatures != 1 => {
                Err(format!("{signatures} signatures"))
            }
            Self::Call { input, server } => {
                serde_json::from_str::<Map<String, Value>>(input)
                    .map_err(|error| format!("the input {input:?}: {error}"))?;
                seen.unanswered.extend(server.take());
                Ok(())
            }
            Self::Text { .. } | Self::Thinking { .. } | Self::Complete => Ok(()),
        }
    }
}

fn check_result(kind: &str, content: &Value) -> Result<(), String> {
    if kind == "web_search_tool_result" {
        let Some(hits) = content.as_array() else {
            return expect(content, "web_search_tool_result_error", &["error_code"]);
        };
        return hits.iter().try_for_each(|hit| {
            expect(hit, "web_search_result", &["url", "title", "encrypted_content"])
        });
    }
    if content["type"] == "code_execution_tool_result_error" {
        return expect(content, "code_execution_tool_result_error", &["error_code"]);
    }
    expect(content, "code_execution_result", &["stdout", "stderr"])?;
    match (content["return_code"].is_i64(), content["content"].is_array()) {
        (true, true) => Ok(()),
        _ => Err("return_code or content is missing".to_owned()),
    }
}

fn expect(value: &Value, kind: &str, strings: &[&str]) -> Result<(), String> {
    if value["type"] != kind {
        return Err(format!("{} is not {kind}", value["type"]));
    }
    strings.iter().try_for_each(|field| string(value, field).map(|_| ()))
}

fn check_head(message: &Value) -> Result<(), String> {
    if !string(message, "id")?.starts_with("msg_") {
        return Err("the id of a message".to_owned());
    }
    if string(message, "model")?.is_empty() {
        return Err("no model".to_owned());
    }
    match (string(message, "type")?, string(message, "role")?) {
        ("message", "assistant") => Ok(()),
        other => Err(format!("type and role are {other:?}")),
    }
}

fn check_stop(holder: &Value, seen: &EarlierBlocks) -> Result<(), String> {
    let sequence = holder.get("stop_sequence").ok_or("no stop_sequence")?;
    match (string(holder, "stop_reason")?, seen.calls) {
        ("tool_use", 0) => return Err("tool_use without a call".to_owned()),
        ("tool_use" | "max_tokens", _) => {}
        (reason, 1..) => return Err(format!("{reason} although a tool was called")),
        ("end_turn" | "pause_turn" | "refusal" | "model_context_window_exceeded", 0) => {}
        ("stop_sequence", 0) if sequence.is_string() => return Ok(()),
        (reason, _) => return Err(format!("stop_reason {reason}")),
    }
    if sequence.is_null() { Ok(()) } else { Err("stop_sequence is not null".to_owned()) }
}

fn check_usage(usage: &Value, required: &[&str]) -> Result<(), String> {
    let usage = usage.as_object().ok_or("no usage")?;
    for field in required {
        if !usage.contains_key(*field) {
            return Err(format!("usage without {field}"));
        }
    }
    let counts =
        ["input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
    for field in counts {
        if usage.get(field).is_some_and(|count| !count.is_u64()) {
            return Err(format!("usage.{field} is not a count"));
        }
    }
    Ok(())
}

fn check_error(frame: &Value) -> Result<(), String> {
    const KINDS: [&str; 11] = [
        "invalid_request_error",
        "authentication_error",
        "billing_error",
        "permission_error",
        "not_found_error",
        "request_too_large",
        "rate_limit_error",
        "timeout_error",
        "api_error",
        "overloaded_error",
        "not_supported",
    ];
    let error = &frame["error"];
    string(error, "message")?;
    let kind = string(error, "type")?;
    if KINDS.contains(&kind) { Ok(()) } else { Err(format!("an error of type {kind}")) }
}

fn string<'v>(value: &'v Value, field: &str) -> Result<&'v str, String> {
    value[field].as_str().ok_or_else(|| format!("{field} is not a string"))
}
