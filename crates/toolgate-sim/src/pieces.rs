//! How each generation cuts a turn into chunks, and what it signs.
//!
//! As recorded (`*` signed, `!` finished, `|` next chunk):
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
use crate::turn::{Turn, What};

/// A part, as it will be written.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) kind: Kind,
    pub(crate) signed: bool,
}

/// What a part holds.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Thought(String),
    Text(String),
    Call { name: String, args: Map<String, Value>, id: Option<String> },
    Code { code: String, id: Option<String> },
    CodeResult { output: String, id: Option<String> },
    Part(Value),
}

impl Kind {
    /// What a signature of it is about.
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

    /// The tokens that it costs.
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

/// A chunk: its parts, and why the turn ends with it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chunk {
    pub(crate) pieces: Vec<Piece>,
    pub(crate) finish: Option<String>,
    /// Google leaves `index` out beside the results of code.
    pub(crate) without_index: bool,
}

/// What decides how a turn is cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner<'a> {
    pub(crate) model: Model,
    pub(crate) request: &'a Request,
    pub(crate) stream: bool,
}

impl Manner<'_> {
    fn is_new(&self) -> bool {
        self.model.generation >= Generation::G3
    }

    /// Whether the model thinks before it speaks.
    pub(crate) fn thinks(&self) -> bool {
        let by_default = !(self.model.lite && self.model.generation <= Generation::G2_5);
        self.request.settings.thinking_budget.map_or(by_default, |budget| budget != 0)
    }

    /// Cuts a turn into chunks: one, if it is not streamed.
    pub(crate) fn cut(&self, turn: &Turn, mut id: impl FnMut() -> String) -> Vec<Chunk> {
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
                && matches!(piece.kind, Kind::Call { .. })
                && chunks.last().is_some_and(|chunk| {
                    chunk.pieces.iter().all(|piece| matches!(piece.kind, Kind::Call { .. }))
                });
            let mut chunk = Chunk {
                without_index: matches!(piece.kind, Kind::CodeResult { .. }),
                ..Chunk::default()
            };
            if matches!(piece.kind, Kind::Code { .. }) {
                codes += 1;
                // 2.5 says STOP at its last round of code, and goes on.
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
            .any(|piece| matches!(piece.kind, Kind::Call { .. } | Kind::Part(_)));
        let is_spoken = |chunk: &Chunk| {
            chunk.pieces.iter().any(|piece| matches!(piece.kind, Kind::Text(_) | Kind::Call { .. }))
        };
        match (finish.as_str(), self.is_new(), chunks.last_mut()) {
            // A signed empty text ends a turn of words, an unsigned one every other.
            ("STOP", true, last) => {
                let signed = last.is_some() && !has_calls && !has_code;
                let piece = Piece { kind: Kind::Text(String::new()), signed };
                let pieces = vec![piece];
                chunks.push(Chunk { pieces, finish: Some(finish), ..Chunk::default() });
            }
            ("STOP" | "MAX_TOKENS", _, Some(last)) if is_spoken(last) => last.finish = Some(finish),
            _ => chunks.push(Chunk { finish: Some(finish), ..Chunk::default() }),
        }
    }

    fn pieces(&self, turn: &Turn, id: &mut impl FnMut() -> String) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut signs = self.signs(turn);
        for item in &turn.items {
            let mut push = |kind: Kind, signed: bool| {
                pieces.push(Piece { kind, signed: item.signed.unwrap_or(signed) });
            };
            match &item.what {
                What::Thought(_) if !self.request.settings.include_thoughts => {}
                What::Thought(text) => push(Kind::Thought(text.clone()), false),
                What::Chunk(text) => push(Kind::Text(text.clone()), signs.text()),
                What::Text(text) => {
                    for text in if self.stream { split(text) } else { vec![text.as_str()] } {
                        push(Kind::Text(text.to_owned()), signs.text());
                    }
                }
                What::Call { name, args } => {
                    let id = self.model.issues_call_ids().then(&mut *id);
                    push(Kind::Call { name: name.clone(), args: args.clone(), id }, signs.call());
                }
                What::Code { code, output } => {
                    let id = self.model.issues_call_ids().then(&mut *id);
                    push(Kind::Code { code: code.clone(), id: id.clone() }, self.is_new());
                    push(Kind::CodeResult { output: output.clone(), id }, false);
                }
                What::Part(part) => push(Kind::Part(part.clone()), false),
            }
        }
        let last_text = pieces.iter_mut().rev().find(|piece| matches!(piece.kind, Kind::Text(_)));
        if let (Some(last), true) = (last_text, self.is_new() && !self.stream) {
            last.signed |= !turn.has_calls();
        }
        pieces
    }

    /// What gets the signature that the generation gives by itself.
    fn signs(&self, turn: &Turn) -> Signs {
        if self.is_new() {
            return if turn.has_calls() { Signs::FirstCall } else { Signs::Nothing };
        }
        let asked = self.request.settings.thinking_budget.is_some();
        let has_tools = !self.request.functions.is_empty();
        if self.thinks() && has_tools && (turn.has_calls() || asked) {
            Signs::FirstPart
        } else {
            Signs::Nothing
        }
    }
}

/// Which part is signed next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signs {
    FirstCall,
    FirstPart,
    Nothing,
}

impl Signs {
    fn call(&mut self) -> bool {
        std::mem::replace(self, Self::Nothing) != Self::Nothing
    }

    fn text(&mut self) -> bool {
        if *self != Self::FirstPart {
            return false;
        }
        *self = Self::Nothing;
        true
    }
}

fn count_codes(pieces: &[Piece]) -> usize {
    pieces.iter().filter(|piece| matches!(piece.kind, Kind::Code { .. })).count()
}

/// Neighbouring words are one part, unless one of them is signed by itself.
fn merged(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut out: Vec<Piece> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        match (out.last_mut(), &piece.kind) {
            (Some(Piece { kind: Kind::Text(have), signed: false }), Kind::Text(more)) => {
                have.push_str(more);
                if let Some(last) = out.last_mut() {
                    last.signed = piece.signed;
                }
            }
            (Some(Piece { kind: Kind::Thought(have), signed: false }), Kind::Thought(more))
                if !piece.signed =>
            {
                have.push_str(more);
            }
            _ => out.push(piece),
        }
    }
    out
}

/// A first word, then runs of some forty characters, as Google's streams have them.
fn split(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    let mut most = 12;
    while rest.len() > most {
        let cut = rest
            .char_indices()
            .skip(1)
            .find(|(at, letter)| *at >= most / 2 && letter.is_whitespace())
            .map(|(at, _)| at);
        let Some((piece, tail)) = cut.and_then(|at| rest.split_at_checked(at)) else { break };
        pieces.push(piece);
        rest = tail;
        most = 80;
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
    fn texts_are_cut_at_words_and_nothing_is_lost() {
        for text in [
            "",
            "42",
            "It is sunny.",
            "Überall scheint die Sonne, 22 °C, und so weiter und so fort, bis sie untergeht und ein neuer Tag beginnt.",
            "nospacesatallinthisverylongword",
        ] {
            let pieces = split(text);
            assert_eq!(pieces.concat(), text);
            assert!(!pieces.is_empty());
        }
        assert_eq!(split("It is sunny in Paris."), ["It is sunny", " in Paris."]);
    }
}
