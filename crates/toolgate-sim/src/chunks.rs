//! Chunks and signatures of a turn, by generation of the model.
//!
//! Recorded shapes (`*` signed, `!` finished, `|` next chunk):
//!
//! ```text
//! 2.5  call                call* !STOP
//!      calls               call*,call !STOP
//!      thinking, call      thought+ | call* !STOP
//!      text                text+ | text !STOP
//!      code, twice         code | result | code !STOP | result | text | text !STOP
//! 3…   call                thought? | call* | "" !STOP
//!      calls               call* | call | … | "" !STOP
//!      text                thought? | text+ | ""* !STOP
//!      code                code* | result | text+ | "" !STOP
//! ```

use serde_json::{Map, Value, json};
use toolgate_validate::{Data, Generation, Model, Request};

use crate::tokens;
use crate::turn::{ItemKind, Turn};

/// A part to be written.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) kind: PartKind,
    pub(crate) signed: bool,
}

/// Kind of a part, with its data.
#[derive(Clone, Debug)]
pub(crate) enum PartKind {
    Thought(String),
    Text(String),
    Call { name: String, args: Map<String, Value>, id: Option<String> },
    Code { code: String, id: Option<String> },
    CodeResult { output: String, id: Option<String> },
    Part(Value),
}

impl PartKind {
    /// Data that a signature of the part covers.
    pub(crate) fn data(&self) -> Data {
        match self {
            Self::Thought(text) | Self::Text(text) => Data::Text(text.clone()),
            Self::Call { name, args, .. } => {
                Data::Call { id: None, name: name.clone(), args: args.clone() }
            }
            Self::Code { code, .. } => {
                Data::Server("executableCode".to_owned(), json!({ "code": code }))
            }
            Self::CodeResult { .. } => Data::Server("codeExecutionResult".to_owned(), json!({})),
            Self::Part(part) => part_data(part),
        }
    }

    /// Tokens of the part.
    pub(crate) fn tokens(&self) -> u64 {
        match self {
            Self::Thought(text) | Self::Text(text) => tokens::of_text(text),
            Self::Call { name, args, .. } => {
                tokens::of_text(name) + args.values().map(tokens::of_json).sum::<u64>() + 4
            }
            Self::Code { code, .. } => tokens::of_text(code),
            Self::CodeResult { .. } => 0,
            Self::Part(part) => tokens::of_json(part),
        }
    }
}

fn part_data(part: &Value) -> Data {
    let call = &part["functionCall"];
    match (call["name"].as_str(), part["text"].as_str()) {
        (Some(name), _) => Data::Call {
            id: None,
            name: name.to_owned(),
            args: call["args"].as_object().cloned().unwrap_or_default(),
        },
        (None, text) => Data::Text(text.unwrap_or("").to_owned()),
    }
}

/// A chunk of a stream, or a complete answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chunk {
    pub(crate) pieces: Vec<Piece>,
    pub(crate) finish: Option<String>,
    /// Whether `index` is omitted, as Google does beside results of code.
    pub(crate) without_index: bool,
}

/// Splitter of turns into chunks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunker<'a> {
    pub(crate) model: Model,
    pub(crate) request: &'a Request,
    pub(crate) stream: bool,
}

impl Chunker<'_> {
    fn is_new(&self) -> bool {
        self.model.generation >= Generation::G3
    }

    /// Whether the model thinks.
    pub(crate) fn thinks(&self) -> bool {
        let by_default = !(self.model.lite && self.model.generation <= Generation::G2_5);
        self.request.settings.thinking_budget.map_or(by_default, |budget| budget != 0)
    }

    /// Splits a turn into chunks; a unary answer is a single chunk.
    pub(crate) fn split(&self, turn: &Turn, mut id: impl FnMut() -> String) -> Vec<Chunk> {
        let pieces = self.pieces(turn, &mut id);
        let finish = turn.finish.clone().unwrap_or_else(|| "STOP".to_owned());
        if !self.stream {
            return vec![Chunk {
                pieces: merged(pieces),
                finish: Some(finish),
                ..Chunk::default()
            }];
        }
        let mut chunks: Vec<Chunk> = Vec::new();
        let mut codes = 0;
        let all_codes = count_codes(&pieces);
        for piece in pieces {
            let joins = !self.is_new()
                && matches!(piece.kind, PartKind::Call { .. })
                && chunks.last().is_some_and(|chunk| {
                    chunk.pieces.iter().all(|piece| matches!(piece.kind, PartKind::Call { .. }))
                });
            let mut chunk = Chunk {
                without_index: matches!(piece.kind, PartKind::CodeResult { .. }),
                ..Chunk::default()
            };
            if matches!(piece.kind, PartKind::Code { .. }) {
                codes += 1;
                // 2.5 sends STOP with its last code part and continues.
                if !self.is_new() && codes > 1 && codes == all_codes {
                    chunk.finish = Some("STOP".to_owned());
                }
            }
            match chunks.last_mut() {
                Some(last) if joins => last.pieces.push(piece),
                _ => {
                    chunk.pieces.push(piece);
                    chunks.push(chunk);
                }
            }
        }
        self.end(&mut chunks, &finish, all_codes > 0);
        chunks
    }

    fn end(&self, chunks: &mut Vec<Chunk>, finish: &str, has_code: bool) {
        let finish = finish.to_owned();
        let has_calls = chunks
            .iter()
            .flat_map(|chunk| &chunk.pieces)
            .any(|piece| matches!(piece.kind, PartKind::Call { .. } | PartKind::Part(_)));
        let has_output = |chunk: &Chunk| {
            chunk
                .pieces
                .iter()
                .any(|piece| matches!(piece.kind, PartKind::Text(_) | PartKind::Call { .. }))
        };
        match (finish.as_str(), self.is_new(), chunks.last_mut()) {
            // A signed empty text ends a turn of text only, an unsigned one every other turn.
            ("STOP", true, last) => {
                let signed = last.is_some() && !has_calls && !has_code;
                let piece = Piece { kind: PartKind::Text(String::new()), signed };
                let pieces = vec![piece];
                chunks.push(Chunk { pieces, finish: Some(finish), ..Chunk::default() });
            }
            ("STOP" | "MAX_TOKENS", _, Some(last)) if has_output(last) => {
                last.finish = Some(finish)
            }
            _ => chunks.push(Chunk { finish: Some(finish), ..Chunk::default() }),
        }
    }

    fn pieces(&self, turn: &Turn, id: &mut impl FnMut() -> String) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut position = self.signature_position(turn);
        for item in &turn.items {
            let mut push = |kind: PartKind, signed: bool| {
                pieces.push(Piece { kind, signed: item.signed.unwrap_or(signed) });
            };
            match &item.kind {
                ItemKind::Thought(_) if !self.request.settings.include_thoughts => {}
                ItemKind::Thought(text) => push(PartKind::Thought(text.clone()), false),
                ItemKind::Chunk(text) => {
                    push(PartKind::Text(text.clone()), position.take_for_text())
                }
                ItemKind::Text(text) => {
                    for text in if self.stream { split_text(text) } else { vec![text.as_str()] } {
                        push(PartKind::Text(text.to_owned()), position.take_for_text());
                    }
                }
                ItemKind::Call { name, args } => {
                    let id = self.model.issues_call_ids().then(&mut *id);
                    push(
                        PartKind::Call { name: name.clone(), args: args.clone(), id },
                        position.take_for_call(),
                    );
                }
                ItemKind::Code { code, output } => {
                    let id = self.model.issues_call_ids().then(&mut *id);
                    push(PartKind::Code { code: code.clone(), id: id.clone() }, self.is_new());
                    push(PartKind::CodeResult { output: output.clone(), id }, false);
                }
                ItemKind::Part(part) => push(PartKind::Part(part.clone()), false),
            }
        }
        let last_text =
            pieces.iter_mut().rev().find(|piece| matches!(piece.kind, PartKind::Text(_)));
        if let (Some(last), true) = (last_text, self.is_new() && !self.stream) {
            last.signed |= !turn.has_calls();
        }
        pieces
    }

    /// Position of the signature by the generation's default.
    fn signature_position(&self, turn: &Turn) -> SignaturePosition {
        if self.is_new() {
            return if turn.has_calls() {
                SignaturePosition::FirstCall
            } else {
                SignaturePosition::Nothing
            };
        }
        let has_budget = self.request.settings.thinking_budget.is_some();
        let has_tools = !self.request.functions.is_empty();
        if self.thinks() && has_tools && (turn.has_calls() || has_budget) {
            SignaturePosition::FirstPart
        } else {
            SignaturePosition::Nothing
        }
    }
}

/// The part that is signed next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SignaturePosition {
    FirstCall,
    FirstPart,
    Nothing,
}

impl SignaturePosition {
    /// Whether a call is signed. The position is used up.
    fn take_for_call(&mut self) -> bool {
        std::mem::replace(self, Self::Nothing) != Self::Nothing
    }

    /// Whether a text is signed. The position is then used up.
    fn take_for_text(&mut self) -> bool {
        if *self != Self::FirstPart {
            return false;
        }
        *self = Self::Nothing;
        true
    }
}

fn count_codes(pieces: &[Piece]) -> usize {
    pieces.iter().filter(|piece| matches!(piece.kind, PartKind::Code { .. })).count()
}

/// Merges neighbouring texts, and neighbouring thoughts, up to a signed one.
fn merged(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut out: Vec<Piece> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        match (out.last_mut(), &piece.kind) {
            (Some(Piece { kind: PartKind::Text(have), signed: false }), PartKind::Text(more)) => {
                have.push_str(more);
                if let Some(last) = out.last_mut() {
                    last.signed = piece.signed;
                }
            }
            (
                Some(Piece { kind: PartKind::Thought(have), signed: false }),
                PartKind::Thought(more),
            ) if !piece.signed => {
                have.push_str(more);
            }
            _ => out.push(piece),
        }
    }
    out
}

/// Splits a text at spaces: a short first piece, then pieces of forty characters or more.
fn split_text(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    let mut max = 12;
    while rest.len() > max {
        let cut = rest
            .char_indices()
            .skip(1)
            .find(|(at, letter)| *at >= max / 2 && letter.is_whitespace())
            .map(|(at, _)| at);
        let Some((piece, tail)) = cut.and_then(|at| rest.split_at_checked(at)) else { break };
        pieces.push(piece);
        rest = tail;
        max = 80;
    }
    if !rest.is_empty() || pieces.is_empty() {
        pieces.push(rest);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_split_at_spaces_without_loss() {
        for text in [
            "",
            "42",
            "It is sunny.",
            "Überall scheint die Sonne, 22 °C, und so weiter und so fort, bis sie untergeht und ein neuer Tag beginnt.",
            "nospacesatallinthisverylongword",
        ] {
            let pieces = split_text(text);
            assert_eq!(pieces.concat(), text);
            assert!(!pieces.is_empty());
        }
        assert_eq!(split_text("It is sunny in Paris."), ["It is sunny", " in Paris."]);
    }
}
