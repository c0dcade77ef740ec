//! From Gemini's bytes to a client's bytes.
//!
//! ```text
//!   Gemini bytes ─► StreamDecoder ─► events ─┬─► Encoder ─► client bytes
//!                                            └─► Seen: progress, calls, usage
//! ```
//!
//! [`Translator`] is the whole stream path without its I/O. It holds failures back: its driver decides
//! whether to retry or to report the failure. With a [`ToolLoop`] it also holds back the calls that the
//! loop answers itself, and reports when another round is due.

use std::sync::Arc;

use crate::canon::{
    Answer, Assembler, BadRequest, CallLog, Encoder, Event, Failure, FailureKind, Finish, IdGen,
    LastText, Sink, Start, Turn, Usage,
};
use crate::dialect::{DecodeOptions, Decoded, ErrorReply, Stamp};
use crate::json::Text;
use crate::seal::Sealer;
use crate::tool_loop::{Outcome, Relay, Step, ToolLoop};
use crate::upstream::generate_content::{Exchange, StreamDecoder};
use crate::{anthropic, chat, gemini, responses};

/// The dialects that clients speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions.
    Chat,
    /// Gemini.
    Gemini,
    /// OpenAI Responses.
    Responses,
}

impl Dialect {
    /// Its name on the command line, in logs and in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Chat => "chat",
            Self::Gemini => "gemini",
            Self::Responses => "responses",
        }
    }

    /// The dialect with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Anthropic, Self::Chat, Self::Gemini, Self::Responses]
            .into_iter()
            .find(|dialect| dialect.name() == name)
    }
}

/// Facts of a request that its answers need, in the client's dialect.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each request, and it is moved once"
)]
pub enum Echo {
    /// For Anthropic Messages.
    Anthropic(anthropic::Echo),
    /// For OpenAI Chat Completions.
    Chat(chat::Echo),
    /// For Gemini.
    Gemini(gemini::Echo),
    /// For OpenAI Responses.
    Responses(responses::Echo),
}

/// Decodes a request. Gemini's names its model in the path: for it, use
/// [`gemini::decode_request`] itself.
pub fn decode_request<'a>(
    dialect: Dialect,
    body: &'a str,
    options: &DecodeOptions<'_>,
) -> Result<Decoded<'a, Echo>, BadRequest> {
    Ok(match dialect {
        Dialect::Anthropic => anthropic::decode_request(body, options)?.map_echo(Echo::Anthropic),
        Dialect::Chat => chat::decode_request(body, options)?.map_echo(Echo::Chat),
        Dialect::Gemini => gemini::decode_native(body, options)?.decoded.map_echo(Echo::Gemini),
        Dialect::Responses => responses::decode_request(body, options)?.map_echo(Echo::Responses),
    })
}

impl Echo {
    /// The dialect.
    pub fn dialect(&self) -> Dialect {
        match self {
            Self::Anthropic(_) => Dialect::Anthropic,
            Self::Chat(_) => Dialect::Chat,
            Self::Gemini(_) => Dialect::Gemini,
            Self::Responses(_) => Dialect::Responses,
        }
    }

    /// Writes an answer as a stream.
    pub fn encoder(self, stamp: Stamp, sealer: Sealer) -> AnyEncoder {
        match self {
            Self::Anthropic(echo) => {
                AnyEncoder::Anthropic(Box::new(anthropic::StreamEncoder::new(echo, stamp, sealer)))
            }
            Self::Chat(echo) => {
                AnyEncoder::Chat(Box::new(chat::StreamEncoder::new(echo, stamp, sealer)))
            }
            Self::Gemini(echo) => {
                AnyEncoder::Gemini(Box::new(gemini::StreamEncoder::new(echo, stamp, sealer)))
            }
            Self::Responses(echo) => {
                AnyEncoder::Responses(Box::new(responses::StreamEncoder::new(echo, stamp, sealer)))
            }
        }
    }

    /// Writes an answer in one piece.
    pub fn encode_response(&self, answer: &Answer, stamp: &Stamp, sealer: &Sealer) -> Vec<u8> {
        match self {
            Self::Anthropic(echo) => anthropic::encode_response(answer, echo, stamp, sealer),
            Self::Chat(echo) => chat::encode_response(answer, echo, stamp, sealer),
            Self::Gemini(echo) => gemini::encode_response(answer, echo, stamp, sealer),
            Self::Responses(echo) => responses::encode_response(answer, echo, stamp, sealer),
        }
    }
}

/// Writes a failure as an HTTP answer.
pub fn encode_error(dialect: Dialect, failure: &Failure, request_id: &str) -> ErrorReply {
    match dialect {
        Dialect::Anthropic => anthropic::encode_error(failure, request_id),
        Dialect::Chat => chat::encode_error(failure, request_id),
        Dialect::Gemini => gemini::encode_error(failure, request_id),
        Dialect::Responses => responses::encode_error(failure, request_id),
    }
}

/// The encoder of any dialect.
#[derive(Debug)]
pub enum AnyEncoder {
    /// For Anthropic Messages.
    Anthropic(Box<anthropic::StreamEncoder>),
    /// For OpenAI Chat Completions.
    Chat(Box<chat::StreamEncoder>),
    /// For Gemini.
    Gemini(Box<gemini::StreamEncoder>),
    /// For OpenAI Responses.
    Responses(Box<responses::StreamEncoder>),
}

impl Encoder for AnyEncoder {
    fn event(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        match self {
            Self::Anthropic(encoder) => encoder.event(event, out),
            Self::Chat(encoder) => encoder.event(event, out),
            Self::Gemini(encoder) => encoder.event(event, out),
            Self::Responses(encoder) => encoder.event(event, out),
        }
    }

    fn flush(&mut self, out: &mut Vec<u8>) {
        match self {
            Self::Anthropic(encoder) => encoder.flush(out),
            Self::Chat(encoder) => encoder.flush(out),
            Self::Gemini(encoder) => encoder.flush(out),
            Self::Responses(encoder) => encoder.flush(out),
        }
    }

    fn is_holding(&self) -> bool {
        match self {
            Self::Anthropic(encoder) => encoder.is_holding(),
            Self::Chat(encoder) => encoder.is_holding(),
            Self::Gemini(encoder) => encoder.is_holding(),
            Self::Responses(encoder) => encoder.is_holding(),
        }
    }

    fn ping(&mut self, out: &mut Vec<u8>) {
        match self {
            Self::Anthropic(encoder) => encoder.ping(out),
            Self::Chat(encoder) => encoder.ping(out),
            Self::Gemini(encoder) => encoder.ping(out),
            Self::Responses(encoder) => encoder.ping(out),
        }
    }
}

/// Progress of an answer.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The client's stream has been opened.
    pub started: bool,
    /// The client has been shown more than the opening.
    pub visible: bool,
    /// The client has been shown more than thoughts: it is too late to ask again. Thoughts bind to
    /// nothing, and another answer may follow them.
    pub settled: bool,
    /// The calls. Their arguments are kept on request only.
    pub calls: CallLog,
    /// The last text, with its signature if it has one.
    pub last_text: LastText,
    /// How it ended, where it ended well.
    pub finish: Option<Finish>,
    /// How it ended, where it did not. The client has not been told yet.
    pub failure: Option<Failure>,
    /// Usage of a round after which the turn goes on: the model gets its faulty calls answered first.
    pub next_round: Option<Usage>,
}

/// The stream path: bytes in, bytes out.
#[derive(Debug)]
pub struct Translator<E> {
    decoder: StreamDecoder,
    tap: Tap<E>,
}

#[derive(Debug)]
struct Tap<E> {
    encoder: E,
    seen: Seen,
    /// Signatures and blank text before the first words or call. A turn that ends after them is empty
    /// and can be retried.
    held: Vec<Event<'static>>,
    /// The whole answer, where [`Translator::collect`] asked for it.
    whole: Option<Assembler>,
    /// The loop that judges the calls, where there is one.
    judge: Option<Box<Judge>>,
}

/// Decides which events of a round the client sees.
#[derive(Debug)]
struct Judge {
    tool_loop: ToolLoop,
    relay: Relay,
}

impl<E: Encoder> Translator<E> {
    /// A translator for one answer.
    pub fn new(exchange: Arc<Exchange>, ids: IdGen, encoder: E) -> Self {
        let tap =
            Tap { encoder, seen: Seen::default(), held: Vec::new(), whole: None, judge: None };
        Self { decoder: StreamDecoder::new(exchange, ids), tap }
    }

    /// Lets a loop judge the calls. The client does not see the calls that the loop answers itself.
    #[must_use]
    pub fn judged_by(mut self, tool_loop: ToolLoop) -> Self {
        let relay = Relay::new(&tool_loop);
        self.tap.judge = Some(Box::new(Judge { tool_loop, relay }));
        self
    }

    /// Turns that the next round adds to the conversation, where one is due.
    pub fn next_turns(&self) -> Option<&[Turn<'static>]> {
        match self.tap.judge.as_ref()?.tool_loop.step() {
            Step::Generate(next) if self.tap.seen.next_round.is_some() => Some(next.turns),
            Step::Generate(_) | Step::RunTools(_) | Step::Done(_) => None,
        }
    }

    /// How the loop ended, where there is one and it has.
    pub fn outcome(&self) -> Option<&Outcome> {
        match self.tap.judge.as_ref()?.tool_loop.step() {
            Step::Done(outcome) => Some(outcome),
            Step::Generate(_) | Step::RunTools(_) => None,
        }
    }

    /// Begins the next round. The client's stream goes on.
    pub fn round(&mut self, exchange: Arc<Exchange>, ids: IdGen) {
        self.decoder = StreamDecoder::new(exchange, ids);
        let seen = &mut self.tap.seen;
        (seen.settled, seen.next_round) = (false, None);
    }

    /// Takes more of Gemini's bytes.
    pub fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.decoder.feed(bytes, &mut Into { tap: &mut self.tap, out });
        self.tap.encoder.flush(out);
    }

    /// Takes the end of Gemini's bytes.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.decoder.finish(&mut Into { tap: &mut self.tap, out });
        self.tap.encoder.flush(out);
    }

    /// Takes the end of Gemini's bytes, unless they are to be continued: see
    /// [`StreamDecoder::pause`].
    pub fn pause(&mut self, out: &mut Vec<u8>) -> Option<String> {
        let token = self.decoder.pause(&mut Into { tap: &mut self.tap, out });
        self.tap.encoder.flush(out);
        token
    }

    /// Progress of the answer.
    pub fn seen(&self) -> &Seen {
        &self.tap.seen
    }

    /// The encoder, for its facts about the answer.
    pub fn encoder(&self) -> &E {
        &self.tap.encoder
    }

    /// From now on, puts the whole answer together on the side.
    pub fn collect(&mut self) {
        self.tap.whole = Some(Assembler::default());
    }

    /// The whole answer, where it ended well and [`collect`](Self::collect) asked for it.
    pub fn answer(&self) -> Option<Answer> {
        self.tap.whole.clone()?.finish().ok()
    }

    /// Starts over with another answer of Gemini's. Only sensible while nothing is settled.
    pub fn again(&mut self, exchange: Arc<Exchange>, ids: IdGen) {
        self.decoder = StreamDecoder::new(exchange, ids);
        let Seen { started, visible, .. } = self.tap.seen;
        self.tap.seen = Seen { started, visible, ..Seen::default() };
        self.tap.held.clear();
        let judge = self.tap.judge.as_mut();
        let is_later = judge.is_some_and(|judge| {
            // The events of this round are dropped; those of the rounds before it were shown.
            drop(judge.relay.round());
            matches!(judge.tool_loop.step(), Step::Generate(next) if next.round > 1)
        });
        if !is_later {
            self.tap.whole = self.tap.whole.take().map(|_| Assembler::default());
        }
    }

    /// Shows a sign of life; opens the client's stream for it where need be.
    pub fn ping(&mut self, out: &mut Vec<u8>) {
        if !self.tap.seen.started {
            self.tap.seen.started = true;
            self.tap.encoder.event(&Event::Start(Start::default()), out);
        }
        self.tap.encoder.ping(out);
    }

    /// Tells the client of the failure, within its stream.
    pub fn fail(&mut self, failure: Failure, out: &mut Vec<u8>) {
        if !self.tap.seen.started {
            self.tap.seen.started = true;
            self.tap.encoder.event(&Event::Start(Start::default()), out);
        }
        self.tap.encoder.event(&Event::Fail(failure), out);
    }
}

struct Into<'a, E> {
    tap: &'a mut Tap<E>,
    out: &'a mut Vec<u8>,
}

impl<E: Encoder> Sink for Into<'_, E> {
    fn event(&mut self, event: &Event<'_>) {
        let Some(mut judge) = self.tap.judge.take() else {
            self.show(event);
            return;
        };
        judge.relay.feed(event, &mut |event: &Event<'_>| self.show(event));
        match event {
            Event::Fail(_) => {
                drop(judge.relay.round());
                self.show(event);
            }
            Event::Finish(finish) => {
                match judge.relay.round().map(|round| judge.tool_loop.answer(round)) {
                    Ok(Ok(())) => {
                        judge.relay.settle(&judge.tool_loop, &mut |event: &Event<'_>| {
                            self.show(event);
                        });
                    }
                    Ok(Err(error)) => {
                        // Unreachable: the relay feeds the loop the input that it waits for.
                        self.show(&Event::Fail(Failure::new(
                            FailureKind::Internal,
                            error.to_string(),
                        )));
                    }
                    Err(failure) => self.show(&Event::Fail(failure)),
                }
                let goes_on = matches!(judge.tool_loop.step(), Step::Generate(_));
                self.tap.seen.next_round = goes_on.then_some(finish.usage);
            }
            Event::Start(_)
            | Event::Text(_)
            | Event::Thought(_)
            | Event::Signature { .. }
            | Event::Call(_)
            | Event::Media(_)
            | Event::Server(_)
            | Event::Grounding(_) => {}
        }
        self.tap.judge = Some(judge);
    }
}

impl<E: Encoder> Into<'_, E> {
    fn show(&mut self, event: &Event<'_>) {
        if let Some(whole) = &mut self.tap.whole {
            whole.event(event);
        }
        let Seen { started, visible, settled, calls, last_text, finish, failure, next_round: _ } =
            &mut self.tap.seen;
        calls.event(event);
        last_text.event(event);
        match event {
            Event::Start(_) => {
                if !std::mem::replace(started, true) {
                    self.tap.encoder.event(event, self.out);
                }
                return;
            }
            Event::Fail(why) => {
                *failure = Some(why.clone());
                return;
            }
            Event::Finish(end) => *finish = Some(end.clone()),
            // A shown thought's own signature belongs right behind it.
            Event::Signature { thought, .. } if !*visible || (!*settled && !thought) => {
                self.tap.held.push(event.clone().into_owned());
                return;
            }
            Event::Text(text) if !*settled && is_blank(text) => {
                self.tap.held.push(event.clone().into_owned());
                return;
            }
            Event::Text(_)
            | Event::Thought(_)
            | Event::Signature { .. }
            | Event::Call(_)
            | Event::Media(_)
            | Event::Server(_)
            | Event::Grounding(_) => {}
        }
        let before = self.out.len();
        let binds = !matches!(event, Event::Thought(_)) || !self.tap.held.is_empty();
        for held in self.tap.held.drain(..) {
            self.tap.encoder.event(&held, self.out);
        }
        self.tap.encoder.event(event, self.out);
        let shown = self.out.len() > before || self.tap.encoder.is_holding();
        *visible |= shown;
        *settled |= shown && binds;
    }
}

/// Whether there is nothing to see: white space, and characters without width.
fn is_blank(text: &Text<'_>) -> bool {
    let is_hidden = |it: char| {
        it.is_whitespace() || matches!(it, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}')
    };
    text.decode().chars().all(is_hidden)
}
