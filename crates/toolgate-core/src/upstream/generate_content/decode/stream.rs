//! The decoder's outside: bytes in, events out.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::turn::Turn;
use crate::canon::{Answer, Assembler, Failure, FailureKind, IdGen, Sink};
use crate::json::Raw;
use crate::sse::{Frame, FrameKind, Reader, TooLarge};
use crate::upstream::generate_content::Exchange;

/// Reads one answer of Gemini's, in whatever form and pieces its bytes come.
///
/// Feed it, then [`finish`](Self::finish) it at the end of the input; the events that it gives to
/// the sink follow the grammar of [`Event`](crate::canon::Event) whatever the bytes are, and depend
/// on the bytes alone, not on how they were cut.
///
/// ```
/// use std::sync::Arc;
/// use toolgate_core::canon::{Event, IdGen, Backend, Target};
/// use toolgate_core::upstream::generate_content::{Exchange, StreamDecoder};
///
/// let target = Target { model: "gemini-3.6-flash".into(), backend: Backend::Developer };
/// let exchange =
///     Arc::new(Exchange { target, tools: Vec::new(), one_call: false, answer_function: None });
/// let mut decoder = StreamDecoder::new(exchange, IdGen::new(1));
/// let mut said = String::new();
/// let mut sink = |event: &Event<'_>| {
///     if let Event::Text(text) = event {
///         said.push_str(&text.decode());
///     }
/// };
/// let chunk = br#"data: {"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"STOP"}]}"#;
/// decoder.feed(chunk, &mut sink);
/// decoder.finish(&mut sink);
/// assert_eq!(said, "Hi");
/// ```
#[derive(Clone, Debug)]
pub struct StreamDecoder {
    reader: Reader,
    turn: Turn,
}

impl StreamDecoder {
    /// A decoder for the answer to one request.
    pub fn new(exchange: Arc<Exchange>, ids: IdGen) -> Self {
        Self { reader: Reader::default(), turn: Turn::new(exchange, ids) }
    }

    /// Takes frames of at most `limit` bytes instead of [`MAX_FRAME`](crate::sse::MAX_FRAME).
    #[must_use]
    pub fn with_max_frame(self, limit: usize) -> Self {
        Self { reader: Reader::with_limit(limit), turn: self.turn }
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut dyn Sink) {
        let Self { reader, turn } = self;
        if !turn.is_ended() {
            let fed = reader.feed(bytes, &mut |frame| take(turn, frame, sink));
            refuse(turn, fed, sink);
        }
    }

    /// Takes the end of the input: gives the last events, a `Finish` or a `Fail` among them.
    pub fn finish(&mut self, sink: &mut dyn Sink) {
        self.drain(sink);
        if !self.turn.is_ended() {
            self.turn.conclude(sink);
        }
    }

    /// Takes the end of the input like [`finish`](Self::finish), unless Gemini has stopped in the
    /// middle (`CONTINUATION`): then the answer stays open, and the token is returned that the same
    /// request must carry for the rest of it. The bytes of the rest are fed like those before.
    pub fn pause(&mut self, sink: &mut dyn Sink) -> Option<String> {
        self.drain(sink);
        if self.turn.is_ended() {
            return None;
        }
        let token = self.turn.pause();
        match &token {
            Some(_) => self.reader = self.reader.fresh(),
            None => self.turn.conclude(sink),
        }
        token
    }

    fn drain(&mut self, sink: &mut dyn Sink) {
        let Self { reader, turn } = self;
        if !turn.is_ended() {
            let fed = reader.finish(&mut |frame| take(turn, frame, sink));
            refuse(turn, fed, sink);
        }
    }

    /// Ends the answer with a failure that the upstream's bytes do not tell of: a reset, a
    /// timeout. Does nothing after the end.
    pub fn abort(&mut self, failure: Failure, sink: &mut dyn Sink) {
        if !self.turn.is_ended() {
            self.turn.fail(failure, sink);
        }
    }

    /// Whether the last event was given.
    pub fn is_ended(&self) -> bool {
        self.turn.is_ended()
    }
}

/// Reads a whole answer: the body of a unary call, or a recorded stream.
pub fn decode_response(
    body: &[u8],
    exchange: Arc<Exchange>,
    ids: IdGen,
) -> Result<Answer, Failure> {
    let mut decoder = StreamDecoder::new(exchange, ids);
    let mut answer = Assembler::default();
    decoder.feed(body, &mut answer);
    decoder.finish(&mut answer);
    answer.finish()
}

fn take(turn: &mut Turn, frame: Frame<'_>, sink: &mut dyn Sink) -> ControlFlow<()> {
    let json = match std::str::from_utf8(frame.bytes) {
        Ok(json) => Cow::Borrowed(json),
        Err(_) => {
            turn.broken_unicode();
            String::from_utf8_lossy(frame.bytes)
        }
    };
    let json = json.trim_ascii();
    match frame.kind {
        FrameKind::Noise => turn.fail(protocol("it is no JSON", Some(json)), sink),
        FrameKind::Event if json.is_empty() || json == "[DONE]" => {}
        FrameKind::Event if json.starts_with('[') => match serde_json::from_str(json) {
            Ok(chunks) => {
                let chunks: Vec<Raw<'_>> = chunks;
                for chunk in &chunks {
                    read(turn, chunk.get(), true, sink);
                }
            }
            Err(error) => unreadable(turn, frame.whole, &error, sink),
        },
        FrameKind::Event | FrameKind::Value => read(turn, json, frame.whole, sink),
    }
    if turn.is_ended() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

fn read(turn: &mut Turn, json: &str, whole: bool, sink: &mut dyn Sink) {
    if turn.is_ended() {
        return;
    }
    if let Err(error) = turn.chunk(json, sink) {
        unreadable(turn, whole, &error, sink);
    }
}

fn unreadable(turn: &mut Turn, whole: bool, error: &dyn std::error::Error, sink: &mut dyn Sink) {
    let failure = if whole { protocol(&error.to_string(), None) } else { cut() };
    turn.fail(failure, sink);
}

fn refuse(turn: &mut Turn, fed: Result<(), TooLarge>, sink: &mut dyn Sink) {
    if let Err(error) = fed
        && !turn.is_ended()
    {
        turn.fail(protocol(&error.to_string(), None), sink);
    }
}

/// The input ended too soon.
pub(super) fn cut() -> Failure {
    Failure::new(FailureKind::Cut, "the upstream closed the stream before it finished")
}

fn protocol(why: &str, said: Option<&str>) -> Failure {
    use crate::upstream::generate_content::fail::excerpt;
    let why = excerpt(why);
    let message = match said.map(excerpt) {
        Some(said) => format!("the upstream said something that cannot be read ({why}): {said}"),
        None => format!("the upstream said something that cannot be read ({why})"),
    };
    Failure::new(FailureKind::UpstreamProtocol, message)
}
