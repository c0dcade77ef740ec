//! A turn to Google's JSON.

use std::borrow::Cow;

use toolgate_core::gemini::{Backend, Target};
use toolgate_core::json::write;
use toolgate_validate::{Mode, Model, Request};

use crate::pieces::{Chunk, Kind, Manner, Piece};
use crate::sign::Signer;
use crate::tokens::{self, Prompt};
use crate::turn::{Turn, What};
use crate::usage::Usage;

/// Whom an answer is for.
#[derive(Debug)]
pub(crate) struct Scene<'a> {
    /// The model by its own name, and the service.
    pub(crate) target: &'a Target,
    pub(crate) model: Model,
    pub(crate) request: &'a Request,
    /// How many of its tokens were kept.
    pub(crate) cached: u64,
    pub(crate) signer: &'a Signer,
    /// Where ids come from: different for every request.
    pub(crate) ids: Ids,
    pub(crate) stream: bool,
    /// What every streamed response begins with.
    pub(crate) frame: &'static [u8],
}

/// Makes the ids of one answer.
#[derive(Clone, Debug)]
pub(crate) struct Ids {
    state: u64,
}

impl Ids {
    pub(crate) fn new(seed: u64, request: u64) -> Self {
        Self { state: seed ^ request.wrapping_mul(0xD1B5_4A32_D192_ED03) }
    }

    /// splitmix64
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

    /// Eight letters and digits, as Google's calls have them.
    fn call(&mut self) -> String {
        self.letters(b"0123456789abcdefghijklmnopqrstuvwxyz", 8)
    }

    fn response(&mut self) -> String {
        self.letters(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-", 22)
    }
}

/// The whole answer: one response a chunk.
pub(crate) fn encode(turn: &Turn, scene: &mut Scene<'_>) -> Vec<Vec<u8>> {
    let response_id = scene.ids.response();
    let prompt = tokens::of_request(scene.request);
    if let Some(reason) = &turn.blocked {
        return vec![blocked(reason, scene, &response_id, prompt)];
    }
    let turn = &*limited(turn, scene);
    let manner = Manner { model: scene.model, request: scene.request, stream: scene.stream };
    let mut ids = scene.ids.clone();
    let mut chunks = manner.cut(turn, || ids.call());
    if streams_arguments(scene) {
        chunks = crate::partial::spread(chunks);
    }
    let thinks = manner.thinks();
    let ending = ending(scene, &response_id);
    let mut usage = Usage { prompt, cached: scene.cached, ..Usage::default() };
    let last = chunks.len().saturating_sub(1);
    let mut out = Vec::with_capacity(chunks.len());
    for (at, chunk) in chunks.iter().enumerate() {
        account(chunk, &mut usage, thinks, manner.model.signs_calls());
        let mut json = Vec::with_capacity(512);
        if scene.stream {
            json.extend_from_slice(scene.frame);
        }
        json.extend_from_slice(b"{\"candidates\":[");
        let count = scene.request.settings.candidates.unwrap_or(1).clamp(1, 8);
        for index in 0..count {
            write::comma(&mut json);
            candidate(&mut json, chunk, turn, scene, index);
        }
        json.push(b']');
        json.extend_from_slice(b",\"usageMetadata\":");
        usage.write(&mut json, scene.target.backend, at == last);
        json.extend_from_slice(&ending);
        out.push(json);
    }
    out
}

fn streams_arguments(scene: &Scene<'_>) -> bool {
    scene.stream
        && scene.target.backend == Backend::Vertex
        && scene.request.calling.stream_arguments
        && scene.request.calling.mode != Mode::None
}

/// Adds a chunk to what has been used: thinking is told late by newer models.
fn account(chunk: &Chunk, usage: &mut Usage, thinks: bool, is_new: bool) {
    let mut spoken = false;
    for piece in &chunk.pieces {
        match &piece.kind {
            Kind::Thought(text) => {
                if !is_new {
                    usage.thoughts += 24 + tokens::of_text(text);
                }
            }
            Kind::CodeResult { output, .. } => usage.tool_use += 64 + tokens::of_text(output),
            Kind::Text(_) | Kind::Call { .. } | Kind::Code { .. } | Kind::Part(_) => {
                spoken = true;
                usage.candidates += piece.kind.tokens();
            }
        }
    }
    if spoken && thinks && usage.thoughts == 0 {
        usage.thoughts = 48;
    }
}

/// Holds a turn to `stopSequences` and `maxOutputTokens`.
fn limited<'t>(turn: &'t Turn, scene: &Scene<'_>) -> Cow<'t, Turn> {
    let settings = &scene.request.settings;
    if settings.stop.is_empty() && settings.max_output_tokens.is_none() {
        return Cow::Borrowed(turn);
    }
    let mut turn = turn.clone();
    // Who says how a turn ends has counted already.
    let most = settings.max_output_tokens.filter(|_| turn.finish.is_none());
    let mut left = most.map(|most| u64::try_from(most).unwrap_or(0).max(1));
    for at in 0..turn.items.len() {
        let (What::Text(text) | What::Chunk(text)) = &mut turn.items[at].what else { continue };
        let stop = settings.stop.iter().filter(|stop| !stop.is_empty());
        let stopped = stop.filter_map(|stop| text.find(stop.as_str())).min();
        if let Some(end) = stopped {
            text.truncate(end);
        }
        let length = tokens::of_text(text);
        let ends = match left {
            Some(most) if length > most => {
                let letters = usize::try_from(most * 4).unwrap_or(usize::MAX);
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
        left = left.map(|most| most - length);
    }
    Cow::Owned(turn)
}

fn candidate(out: &mut Vec<u8>, chunk: &Chunk, turn: &Turn, scene: &Scene<'_>, index: i64) {
    out.push(b'{');
    write_content(out, chunk, scene);
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
        let has_calls = chunk.pieces.iter().any(|it| matches!(it.kind, Kind::Call { .. }));
        let by_itself = (has_calls && !scene.model.signs_calls())
            .then_some("Model generated function call(s).");
        if let Some(message) = turn.finish_message.as_deref().or(by_itself) {
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

fn write_content(out: &mut Vec<u8>, chunk: &Chunk, scene: &Scene<'_>) {
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
        write_part(out, piece, scene);
    }
    out.extend_from_slice(br#"],"role":"model"}"#);
}

fn write_part(out: &mut Vec<u8>, piece: &Piece, scene: &Scene<'_>) {
    out.push(b'{');
    match &piece.kind {
        Kind::Thought(text) => {
            write::key(out, "text");
            write::string(out, text);
            write::key(out, "thought");
            out.extend_from_slice(b"true");
        }
        Kind::Text(text) => {
            out.extend_from_slice(b"\"text\":");
            write::string(out, text);
        }
        Kind::Call { name, args, id } => {
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
        Kind::Code { code, id } => {
            write::key(out, "executableCode");
            members(out, &[("language", "PYTHON"), ("code", code)], id.as_deref());
        }
        Kind::CodeResult { output, id } => {
            write::key(out, "codeExecutionResult");
            members(out, &[("outcome", "OUTCOME_OK"), ("output", output)], id.as_deref());
        }
        Kind::Part(part) => {
            for (name, value) in part.as_object().into_iter().flatten() {
                write::key(out, name);
                write::literal(out, &value.to_string());
            }
        }
    }
    if piece.signed {
        write::key(out, "thoughtSignature");
        let nonce = scene.ids.clone().draw();
        write::string(out, &scene.signer.sign(scene.target, &piece.kind.data(), nonce));
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

/// What every response of an answer ends with.
fn ending(scene: &Scene<'_>, response_id: &str) -> Vec<u8> {
    let mut out = b",\"modelVersion\":".to_vec();
    write::string(&mut out, &scene.target.model);
    out.extend_from_slice(b",\"responseId\":");
    write::string(&mut out, response_id);
    out.push(b'}');
    out
}

fn blocked(reason: &str, scene: &Scene<'_>, response_id: &str, prompt: Prompt) -> Vec<u8> {
    let mut out = if scene.stream { scene.frame.to_vec() } else { Vec::new() };
    out.extend_from_slice(b"{\"promptFeedback\":{\"blockReason\":");
    write::string(&mut out, reason);
    out.push(b'}');
    out.extend_from_slice(b",\"usageMetadata\":");
    Usage { prompt, ..Usage::default() }.write(&mut out, scene.target.backend, true);
    out.extend_from_slice(&ending(scene, response_id));
    out
}
