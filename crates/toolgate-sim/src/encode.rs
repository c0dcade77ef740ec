//! Encoding of turns as Google's JSON.

use std::borrow::Cow;

use toolgate_core::canon::{Backend, Target};
use toolgate_core::json::write;
use toolgate_validate::{Mode, Model, Request};

use crate::chunks::{Chunk, Chunker, PartKind, Piece};
use crate::sign::Signer;
use crate::tokens::{self, PromptTokens};
use crate::turn::{ItemKind, Turn};
use crate::usage::Usage;

/// Context of an answer.
#[derive(Debug)]
pub(crate) struct AnswerContext<'a> {
    /// The resolved model, and the service.
    pub(crate) target: &'a Target,
    pub(crate) model: Model,
    pub(crate) request: &'a Request,
    /// Tokens of the prompt that came from a cache.
    pub(crate) cached: u64,
    pub(crate) signer: &'a Signer,
    /// Source of ids, seeded per request.
    pub(crate) ids: SeededRng,
    pub(crate) stream: bool,
    /// Prefix of every streamed response.
    pub(crate) frame: &'static [u8],
}

/// Deterministic generator of ids and probabilities.
#[derive(Clone, Debug)]
pub(crate) struct SeededRng {
    state: u64,
}

impl SeededRng {
    pub(crate) fn new(seed: u64, request: u64) -> Self {
        Self { state: seed ^ request.wrapping_mul(0xD1B5_4A32_D192_ED03) }
    }

    /// Next number, by splitmix64.
    pub(crate) fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn letters(&mut self, alphabet: &[u8], length: usize) -> String {
        let base = u64::try_from(alphabet.len()).unwrap_or(1).max(1);
        (0..length)
            .map(|_| {
                let at = usize::try_from(self.draw() % base).unwrap_or(0);
                char::from(alphabet.get(at).copied().unwrap_or(b'0'))
            })
            .collect()
    }

    /// Id of a call: eight letters and digits, as Google's.
    fn call_id(&mut self) -> String {
        self.letters(b"0123456789abcdefghijklmnopqrstuvwxyz", 8)
    }

    /// Id of a response.
    fn response_id(&mut self) -> String {
        self.letters(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-", 22)
    }
}

/// Encodes a turn: one response per chunk.
pub(crate) fn encode(turn: &Turn, context: &mut AnswerContext<'_>) -> Vec<Vec<u8>> {
    let response_id = context.ids.response_id();
    let prompt = tokens::of_request(context.request);
    if let Some(reason) = &turn.blocked {
        return vec![blocked(reason, context, &response_id, prompt)];
    }
    let turn = &*limited(turn, context);
    let chunker =
        Chunker { model: context.model, request: context.request, stream: context.stream };
    let mut ids = context.ids.clone();
    let mut chunks = chunker.split(turn, || ids.call_id());
    if streams_arguments(context) {
        chunks = crate::partial_args::split_calls(chunks);
    }
    let thinks = chunker.thinks();
    let ending = ending(context, &response_id);
    let mut usage = Usage { prompt, cached: context.cached, ..Usage::default() };
    let last = chunks.len().saturating_sub(1);
    let mut out = Vec::with_capacity(chunks.len());
    for (at, chunk) in chunks.iter().enumerate() {
        account(chunk, &mut usage, thinks, chunker.model.signs_calls());
        let mut json = Vec::with_capacity(512);
        if context.stream {
            json.extend_from_slice(context.frame);
        }
        json.extend_from_slice(b"{\"candidates\":[");
        let count = context.request.settings.candidates.unwrap_or(1).clamp(1, 8);
        for index in 0..count {
            write::comma(&mut json);
            candidate(&mut json, chunk, turn, context, index);
        }
        json.push(b']');
        json.extend_from_slice(b",\"usageMetadata\":");
        usage.write(&mut json, context.target.backend, at == last);
        json.extend_from_slice(&ending);
        out.push(json);
    }
    out
}

fn streams_arguments(context: &AnswerContext<'_>) -> bool {
    context.stream
        && context.target.backend == Backend::Vertex
        && context.request.calling.stream_arguments
        && context.request.calling.mode != Mode::None
}

/// Adds a chunk to the usage. Newer models report thinking only once they have output.
fn account(chunk: &Chunk, usage: &mut Usage, thinks: bool, is_new: bool) {
    let mut has_output = false;
    for piece in &chunk.pieces {
        match &piece.kind {
            PartKind::Thought(text) => {
                if !is_new {
                    usage.thoughts += 24 + tokens::of_text(text);
                }
            }
            PartKind::CodeResult { output, .. } => usage.tool_use += 64 + tokens::of_text(output),
            PartKind::Text(_)
            | PartKind::Call { .. }
            | PartKind::Code { .. }
            | PartKind::Part(_) => {
                has_output = true;
                usage.candidates += piece.kind.tokens();
            }
        }
    }
    if has_output && thinks && usage.thoughts == 0 {
        usage.thoughts = 48;
    }
}

/// Applies `stopSequences` and `maxOutputTokens` to a turn.
fn limited<'t>(turn: &'t Turn, context: &AnswerContext<'_>) -> Cow<'t, Turn> {
    let settings = &context.request.settings;
    if settings.stop.is_empty() && settings.max_output_tokens.is_none() {
        return Cow::Borrowed(turn);
    }
    let mut turn = turn.clone();
    // A script that sets the finish reason has chosen the length itself.
    let limit = settings.max_output_tokens.filter(|_| turn.finish.is_none());
    let mut left = limit.map(|limit| u64::try_from(limit).unwrap_or(0).max(1));
    for at in 0..turn.items.len() {
        let (ItemKind::Text(text) | ItemKind::Chunk(text)) = &mut turn.items[at].kind else {
            continue;
        };
        let stop = settings.stop.iter().filter(|stop| !stop.is_empty());
        let stopped = stop.filter_map(|stop| text.find(stop.as_str())).min();
        if let Some(end) = stopped {
            text.truncate(end);
        }
        let length = tokens::of_text(text);
        let ends = match left {
            Some(left) if length > left => {
                let letters = usize::try_from(left * 4).unwrap_or(usize::MAX);
                let end = text.char_indices().nth(letters).map_or(text.len(), |(end, _)| end);
                text.truncate(end);
                turn.finish = Some("MAX_TOKENS".to_owned());
                true
            }
            _ => stopped.is_some(),
        };
        if ends {
            turn.items.truncate(at + 1);
            break;
        }
        left = left.map(|left| left - length);
    }
    Cow::Owned(turn)
}

fn candidate(
    out: &mut Vec<u8>,
    chunk: &Chunk,
    turn: &Turn,
    context: &AnswerContext<'_>,
    index: i64,
) {
    out.push(b'{');
    write_content(out, chunk, context);
    if let Some(finish) = &chunk.finish {
        write::key(out, "finishReason");
        write::string(out, finish);
    }
    if !chunk.without_index {
        write::comma(out);
        out.extend_from_slice(b"\"index\":");
        out.extend_from_slice(index.to_string().as_bytes());
    }
    if chunk.finish.is_some() {
        let has_calls = chunk.pieces.iter().any(|it| matches!(it.kind, PartKind::Call { .. }));
        let default_message = (has_calls && !context.model.signs_calls())
            .then_some("Model generated function call(s).");
        if let Some(message) = turn.finish_message.as_deref().or(default_message) {
            write::key(out, "finishMessage");
            write::string(out, message);
        }
        for (name, value) in &turn.candidate {
            write::key(out, name);
            write::literal(out, &value.to_string());
        }
    }
    out.push(b'}');
}

fn write_content(out: &mut Vec<u8>, chunk: &Chunk, context: &AnswerContext<'_>) {
    let finish = chunk.finish.as_deref().unwrap_or("");
    if chunk.pieces.is_empty() {
        match finish {
            "STOP" | "MAX_TOKENS" => {
                out.extend_from_slice(br#""content":{"role":"model"}"#);
            }
            "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" => {
                out.extend_from_slice(br#""content":{}"#);
            }
            _ => {}
        }
        return;
    }
    out.extend_from_slice(br#""content":{"parts":["#);
    for piece in &chunk.pieces {
        write::comma(out);
        write_part(out, piece, context);
    }
    out.extend_from_slice(br#"],"role":"model"}"#);
}

fn write_part(out: &mut Vec<u8>, piece: &Piece, context: &AnswerContext<'_>) {
    out.push(b'{');
    match &piece.kind {
        PartKind::Thought(text) => {
            write::key(out, "text");
            write::string(out, text);
            write::key(out, "thought");
            out.extend_from_slice(b"true");
        }
        PartKind::Text(text) => {
            out.extend_from_slice(b"\"text\":");
            write::string(out, text);
        }
        PartKind::Call { name, args, id } => {
            write::key(out, "functionCall");
            out.push(b'{');
            if let Some(id) = id {
                write::key(out, "id");
                write::string(out, id);
            }
            write::key(out, "name");
            write::string(out, name);
            write::key(out, "args");
            write::literal(out, &serde_json::to_string(args).unwrap_or_default());
            out.push(b'}');
        }
        PartKind::Code { code, id } => {
            write::key(out, "executableCode");
            members(out, &[("language", "PYTHON"), ("code", code)], id.as_deref());
        }
        PartKind::CodeResult { output, id } => {
            write::key(out, "codeExecutionResult");
            members(out, &[("outcome", "OUTCOME_OK"), ("output", output)], id.as_deref());
        }
        PartKind::Part(part) => {
            for (name, value) in part.as_object().into_iter().flatten() {
                write::key(out, name);
                write::literal(out, &value.to_string());
            }
        }
    }
    if piece.signed {
        write::key(out, "thoughtSignature");
        let nonce = context.ids.clone().draw();
        write::string(out, &context.signer.sign(context.target, &piece.kind.data(), nonce));
    }
    out.push(b'}');
}

fn members(out: &mut Vec<u8>, fields: &[(&str, &str)], id: Option<&str>) {
    out.push(b'{');
    for (name, value) in fields.iter().copied().chain(id.map(|id| ("id", id))) {
        write::key(out, name);
        write::string(out, value);
    }
    out.push(b'}');
}

/// Members that end every response of an answer.
fn ending(context: &AnswerContext<'_>, response_id: &str) -> Vec<u8> {
    let mut out = b",\"modelVersion\":".to_vec();
    write::string(&mut out, &context.target.model);
    out.extend_from_slice(b",\"responseId\":");
    write::string(&mut out, response_id);
    out.push(b'}');
    out
}

fn blocked(
    reason: &str,
    context: &AnswerContext<'_>,
    response_id: &str,
    prompt: PromptTokens,
) -> Vec<u8> {
    let mut out = if context.stream { context.frame.to_vec() } else { Vec::new() };
    out.extend_from_slice(b"{\"promptFeedback\":{\"blockReason\":");
    write::string(&mut out, reason);
    out.push(b'}');
    out.extend_from_slice(b",\"usageMetadata\":");
    Usage { prompt, ..Usage::default() }.write(&mut out, context.target.backend, true);
    out.extend_from_slice(&ending(context, response_id));
    out
}
