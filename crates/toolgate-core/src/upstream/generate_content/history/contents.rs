//! Putting the contents in order.

use std::borrow::Cow;

use super::raw::{RawPart, raw_part};
use super::scan::{CallSite, Fate, Fates, is_models};
use super::steps::{put_placeholders, reattach};
use crate::canon::{
    Backend, BadRequest, Issuer, Loss, LossCode, Losses, Media, Part, Request, ResultPart, Sealed,
    Target, ToolResult, Turn,
};
use crate::json::{Raw, Text};
use crate::upstream::generate_content::encode::media;
use crate::upstream::generate_content::names::Aliases;
use crate::upstream::generate_content::signatures::{Ledger, Sent};
use crate::upstream::generate_content::{Learned, Profile};

/// Instruction for a conversation that ends with the model's own words (an Anthropic prefill), where
/// the model does not accept that.
const GO_ON: &str = "Continue your last message from where it ends, without repeating any of it.";

/// Author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::upstream::generate_content) enum Speaker {
    User,
    Model,
}

/// One of Gemini's contents.
#[derive(Debug)]
pub(in crate::upstream::generate_content) struct Content<'r> {
    pub(in crate::upstream::generate_content) speaker: Speaker,
    /// It holds responses, and nothing else.
    pub(in crate::upstream::generate_content) responses: bool,
    pub(in crate::upstream::generate_content) pieces: Vec<Piece<'r>>,
}

/// One of Gemini's parts.
#[derive(Debug)]
pub(in crate::upstream::generate_content) enum Piece<'r> {
    Text {
        text: &'r Text<'r>,
        signature: Option<Sent<'r>>,
        /// The signature came in an envelope, which clients put where it suits them.
        is_loose: bool,
    },
    Thought {
        text: &'r Text<'r>,
        signature: Sent<'r>,
    },
    /// Words of ours.
    Words(Cow<'r, str>),
    Media {
        media: &'r Media<'r>,
        signed: bool,
    },
    /// A call, by its number.
    Call {
        site: usize,
        signature: Option<Sent<'r>>,
    },
    /// The response to a call, by the call's number.
    Response {
        site: usize,
    },
    Raw(RawPart<'r>),
}

/// The conversation as Gemini will take it.
#[derive(Debug)]
pub(in crate::upstream::generate_content) struct Conversation<'r> {
    pub(in crate::upstream::generate_content) contents: Vec<Content<'r>>,
    pub(in crate::upstream::generate_content) calls: Vec<CallSite<'r>>,
    /// Some parts are of tools that Gemini ran itself.
    pub(in crate::upstream::generate_content) server_parts: bool,
}

/// Rules of the target that the contents depend on.
#[derive(Clone, Copy, Debug)]
pub(in crate::upstream::generate_content) struct Rules<'r> {
    pub(in crate::upstream::generate_content) target: &'r Target,
    pub(in crate::upstream::generate_content) profile: &'r Profile,
    pub(in crate::upstream::generate_content) learned: &'r Learned,
    pub(in crate::upstream::generate_content) names: &'r Aliases<'r>,
}

impl<'r> Conversation<'r> {
    /// Puts the request's turns in order.
    pub(in crate::upstream::generate_content) fn of(
        request: &'r Request<'r>,
        rules: Rules<'r>,
        ledger: &mut Ledger<'r>,
        losses: &mut Losses,
    ) -> Result<Self, BadRequest> {
        let (calls, fates) = super::calls_and_results(request, losses);
        let mut builder = Builder {
            rules,
            calls: &calls,
            fates,
            ledger,
            losses,
            contents: Vec::with_capacity(request.turns.len() + 2),
            step: None,
            next_call: 0,
            server_parts: false,
            thoughts_left: Vec::new(),
        };
        for (at, turn) in request.turns.iter().enumerate() {
            builder.turn(at, turn);
        }
        builder.finish()?;
        let Builder { contents, server_parts, .. } = builder;
        Ok(Self { contents, calls, server_parts })
    }
}

struct Builder<'r, 'x> {
    rules: Rules<'r>,
    calls: &'x [CallSite<'r>],
    fates: Fates,
    ledger: &'x mut Ledger<'r>,
    losses: &'x mut Losses,
    contents: Vec<Content<'r>>,
    /// The step whose calls the last content holds and whose responses are still to come.
    step: Option<usize>,
    next_call: usize,
    server_parts: bool,
    thoughts_left: Vec<(usize, usize)>,
}

impl<'r> Builder<'r, '_> {
    fn turn(&mut self, turn_at: usize, turn: &'r Turn<'r>) {
        for (part_at, part) in turn.parts.iter().enumerate() {
            let at = (turn_at, part_at);
            match part {
                Part::Call(call) => {
                    let signature = self.ledger.judge_call(call, at);
                    let site = self.next_call;
                    let step = self.calls.get(site).map(|call| call.step);
                    if self.step != step {
                        self.answer_calls();
                    }
                    self.step = step;
                    self.next_call += 1;
                    self.push(Speaker::Model, Piece::Call { site, signature });
                }
                Part::Result(result) => {
                    self.answer_calls();
                    match self.fates.of(at) {
                        Some(Fate::Orphan) => self.tell_orphan(result, at),
                        Some(Fate::Late(site)) => self.tell_late(result, site, at),
                        Some(Fate::Answers | Fate::Superseded) | None => {}
                    }
                }
                Part::Text { .. }
                | Part::Thought { .. }
                | Part::Media(_)
                | Part::Sealed(_)
                | Part::Gemini(_) => {
                    let models = is_models(turn, part);
                    let Some(piece) = self.piece(part, models, at) else { continue };
                    if !models {
                        self.answer_calls();
                    }
                    let speaker = if models { Speaker::Model } else { Speaker::User };
                    self.push(speaker, piece);
                }
            }
        }
    }

    /// What Gemini is told of a part that is neither a call nor a result.
    fn piece(&mut self, part: &'r Part<'r>, models: bool, at: (usize, usize)) -> Option<Piece<'r>> {
        match part {
            Part::Text { text, signature } => {
                let is_loose = signature.as_ref().is_some_and(|own| own.issuer().is_some());
                let signature =
                    if models { self.ledger.judge(signature.as_ref(), at) } else { None };
                (signature.is_some() || !text.is_empty()).then_some(Piece::Text {
                    text,
                    signature,
                    is_loose,
                })
            }
            Part::Thought { text, signature } => {
                let signature =
                    if models { self.ledger.judge(signature.as_ref(), at) } else { None };
                if signature.is_none() && !text.is_empty() {
                    self.thoughts_left.push(at);
                }
                Some(Piece::Thought { text, signature: signature? })
            }
            Part::Media(media) => {
                let carried = media.modifiers.iter().find(|(name, _)| name == "thoughtSignature");
                let signed = carried
                    .filter(|_| models)
                    .and_then(|(_, raw)| raw.as_text())
                    .is_some_and(|text| self.ledger.judge_text(&text.decode(), None, at));
                Some(Piece::Media { media, signed })
            }
            Part::Gemini(raw) => self.raw(raw, None, models, at),
            Part::Sealed(envelope) => match &envelope.on {
                Sealed::Part(raw) => self.raw(raw, Some(&envelope.issuer), models, at),
                // Placed before, or belonging to nothing.
                Sealed::Call { .. } | Sealed::Text { .. } | Sealed::Thought { .. } => None,
            },
            Part::Call(_) | Part::Result(_) => None,
        }
    }

    fn raw(
        &mut self,
        raw: &'r Raw<'r>,
        issuer: Option<&Issuer>,
        models: bool,
        at: (usize, usize),
    ) -> Option<Piece<'r>> {
        match raw_part(raw, issuer, models, at, &self.rules, self.ledger) {
            Ok(part) => {
                self.server_parts |= part.is_servers;
                Some(Piece::Raw(part))
            }
            Err(detail) => {
                self.lose(at, LossCode::PartDropped, detail);
                None
            }
        }
    }

    fn push(&mut self, speaker: Speaker, piece: Piece<'r>) {
        match self.contents.last_mut() {
            Some(last) if last.speaker == speaker && !last.responses => last.pieces.push(piece),
            _ => self.contents.push(Content { speaker, responses: false, pieces: vec![piece] }),
        }
    }

    /// Answers the calls of the last content, if it has any: one response for each, in their
    /// order, and what does not fit into a response behind them.
    fn answer_calls(&mut self) {
        let Some(step) = self.step.take() else { return };
        let end = self.next_call;
        let mut start = end;
        while start > 0 && self.calls.get(start - 1).is_some_and(|site| site.step == step) {
            start -= 1;
        }
        let pieces = (start..end).map(|site| Piece::Response { site }).collect();
        self.contents.push(Content { speaker: Speaker::User, responses: true, pieces });
        for site in start..end {
            let Some(call) = self.calls.get(site) else { continue };
            let mut introduced = false;
            for part in call.result.iter().flat_map(|result| &result.content) {
                let ResultPart::Media(media) = part else { continue };
                if self.rules.fits_response(media) {
                    continue;
                }
                if !std::mem::replace(&mut introduced, true) {
                    let name = self.rules.names.alias(&call.call.tool);
                    let words = format!("From the result of {name} (call {}):", call.id);
                    self.push(Speaker::User, Piece::Words(words.into()));
                    self.losses.add_with(LossCode::Changed, || Loss {
                        at: "turns".to_owned(),
                        code: LossCode::Changed,
                        detail: "media that cannot be part of a response follow the responses"
                            .to_owned(),
                        tool: Some(call.call.tool.to_string()),
                    });
                }
                self.push(Speaker::User, Piece::Media { media, signed: false });
            }
        }
    }

    /// A result whose call is gone is still something that the client said.
    fn tell_orphan(&mut self, result: &'r ToolResult<'r>, at: (usize, usize)) {
        let mut words = String::from(if result.is_error { "Error" } else { "Result" });
        words.push_str(" of an earlier tool call");
        if let Some(tool) = &result.tool {
            words.push_str(&format!(" of {tool}"));
        }
        if let Some(id) = &result.call_id {
            words.push_str(&format!(" ({id})"));
        }
        words.push_str(" that is no longer part of this conversation:");
        self.tell(words, result);
        let detail = "the result's call is not in the conversation; it is told as text";
        self.losses.add_with(LossCode::OrphanResult, || Loss {
            tool: result.tool.as_ref().map(ToString::to_string),
            ..loss(at, LossCode::OrphanResult, detail)
        });
    }

    /// A result that came when the model had spoken again. Gemini wants it right behind the call,
    /// where the model did not have it yet; there it says so, and the result is told here.
    fn tell_late(&mut self, result: &'r ToolResult<'r>, site: usize, at: (usize, usize)) {
        let Some(call) = self.calls.get(site) else { return };
        let what = if result.is_error { "an error" } else { "this result" };
        let name = self.rules.names.alias(&call.call.tool);
        let words = format!("The earlier call of {name} (call {}) has come to {what}:", call.id);
        self.tell(words, result);
        let detail = "the model has spoken since the call; the result is told as text";
        self.losses.add_with(LossCode::Changed, || Loss {
            tool: Some(call.call.tool.to_string()),
            ..loss(at, LossCode::Changed, detail)
        });
    }

    /// Tells a result in the user's turn.
    fn tell(&mut self, words: String, result: &'r ToolResult<'r>) {
        self.push(Speaker::User, Piece::Words(words.into()));
        for part in &result.content {
            match part {
                ResultPart::Text(text) if text.is_empty() => {}
                ResultPart::Text(text) => {
                    let (signature, is_loose) = (None, false);
                    self.push(Speaker::User, Piece::Text { text, signature, is_loose });
                }
                ResultPart::Json(raw) => self.push(Speaker::User, Piece::Words(raw.compact())),
                ResultPart::Media(media) => {
                    self.push(Speaker::User, Piece::Media { media, signed: false });
                }
            }
        }
    }

    /// The rules for the conversation as a whole.
    fn finish(&mut self) -> Result<(), BadRequest> {
        self.answer_calls();
        if self.rules.target.backend == Backend::Vertex {
            self.drop_empty_contents();
        }
        let Some(first) = self.contents.first() else {
            let reason = "there is nothing to answer: the conversation is empty".to_owned();
            return Err(BadRequest { at: String::new(), reason });
        };
        if first.speaker == Speaker::Model {
            // Accepted as a first turn, and says nothing that the user did not say.
            let words = match self.rules.target.backend {
                Backend::Developer => "",
                Backend::Vertex => " ",
            };
            let pieces = vec![Piece::Words(words.into())];
            let content = Content { speaker: Speaker::User, responses: false, pieces };
            self.contents.insert(0, content);
            let detail = "the conversation begins with the model; an empty user turn was put first";
            self.lose((0, 0), LossCode::Changed, detail);
        }
        let ends_with_model =
            self.contents.last().is_some_and(|last| last.speaker == Speaker::Model);
        if ends_with_model && !self.rules.profile.trailing_model_turn {
            self.push(Speaker::User, Piece::Words(GO_ON.into()));
            let detail = "this model does not go on from its own words; it was asked to instead";
            self.losses.add_with(LossCode::Changed, || Loss {
                at: "turns".to_owned(),
                code: LossCode::Changed,
                detail: detail.to_owned(),
                tool: None,
            });
        }
        if self.rules.profile.signatures_required {
            reattach(&mut self.contents);
            put_placeholders(&mut self.contents, self.calls, self.ledger, self.losses);
        }
        if let Some(&at) = self.thoughts_left.first() {
            let count = self.thoughts_left.len();
            let detail = format!("thoughts that this model has not signed were left out: {count}");
            self.losses.add_with(LossCode::Ignored, || loss(at, LossCode::Ignored, &detail));
        }
        Ok(())
    }

    /// Vertex refuses a content whose only part is an empty text, signed or not.
    fn drop_empty_contents(&mut self) {
        for content in std::mem::take(&mut self.contents) {
            let empty = content
                .pieces
                .iter()
                .all(|piece| matches!(piece, Piece::Text { text, .. } if text.is_empty()));
            match self.contents.last_mut() {
                _ if empty => self.lose((0, 0), LossCode::PartDropped, "an empty signed turn"),
                Some(last)
                    if last.speaker == content.speaker && !last.responses && !content.responses =>
                {
                    last.pieces.extend(content.pieces);
                }
                _ => self.contents.push(content),
            }
        }
    }

    fn lose(&mut self, at: (usize, usize), code: LossCode, detail: &str) {
        self.losses.add_with(code, || loss(at, code, detail));
    }
}

impl Rules<'_> {
    /// Whether a medium can stand inside of a function's response.
    pub(in crate::upstream::generate_content) fn fits_response(&self, media: &Media<'_>) -> bool {
        self.profile.response_media && !self.learned.no_response_media && media::fits(media)
    }
}

pub(super) fn loss((turn, part): (usize, usize), code: LossCode, detail: &str) -> Loss {
    let at = format!("turns[{turn}].parts[{part}]");
    Loss { at, code, detail: detail.to_owned(), tool: None }
}
