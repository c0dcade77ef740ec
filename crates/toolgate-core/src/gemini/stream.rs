//! An answer as a stream of `GenerateContentResponse`s.
//!
//! ```text
//! sse   = ("data: " response "\r\n\r\n")*
//! array = "[" response ("\n,\r\n" response)* "]"
//! ```
//!
//! Google's SDKs read lines: no event names, no comments, no `[DONE]`. There is no sign of life.
//!
//! An error is said twice in SSE: as an event, which Google does at times, and after that as it is,
//! which Google does as a rule. Some clients see only the one, some only the other.

use super::error::write_error;
use super::response::{
    part, write_call, write_feedback, write_finish, write_media, write_tail, write_text,
    write_usage,
};
use super::{Echo, Framing};
use crate::canon::{Encoder, Event, FailureKind, Signature, Stamp, Start, Usage};
use crate::json::{Raw, Text, write};
use crate::seal::Sealer;

/// Writes events as chunks of `streamGenerateContent`.
#[derive(Clone, Debug)]
pub struct StreamEncoder {
    echo: Echo,
    stamp: Stamp,
    /// `"modelVersion":…,"responseId":…}` as every chunk ends.
    tail: Vec<u8>,
    /// Tokens as counted at the beginning, said with the first chunk.
    usage: Usage,
    /// The last text, while its signature may still follow: a signed text is one part.
    held: Option<Held>,
    begun: bool,
    /// The client has a call to run.
    called: bool,
    ended: bool,
}

/// A text that is not written yet.
#[derive(Clone, Debug)]
struct Held {
    text: Text<'static>,
    thought: bool,
}

impl StreamEncoder {
    /// An encoder for one answer. Signatures are passed on as Gemini gave them, so that nothing
    /// is sealed.
    pub fn new(echo: Echo, stamp: Stamp, _sealer: Sealer) -> Self {
        let mut encoder = Self {
            echo,
            stamp,
            tail: Vec::new(),
            usage: Usage::default(),
            held: None,
            begun: false,
            called: false,
            ended: false,
        };
        encoder.start(&Start::default());
        encoder
    }

    fn start(&mut self, start: &Start<'_>) {
        self.tail.clear();
        write_tail(&mut self.tail, start, &self.echo, &self.stamp);
        self.tail.push(b'}');
        self.usage = start.usage;
    }

    fn open(&mut self, out: &mut Vec<u8>) {
        match (self.echo.framing, std::mem::replace(&mut self.begun, true)) {
            (Framing::Sse, _) => out.extend_from_slice(b"data: "),
            (Framing::Array, false) => out.push(b'['),
            (Framing::Array, true) => out.extend_from_slice(b"\n,\r\n"),
        }
    }

    fn close(&self, out: &mut Vec<u8>) {
        match self.echo.framing {
            Framing::Sse => out.extend_from_slice(b"\r\n\r\n"),
            Framing::Array => {}
        }
    }

    /// Writes one chunk. `parts` writes its parts, `candidate` further members of its candidate.
    fn chunk(
        &mut self,
        out: &mut Vec<u8>,
        usage: Option<&Usage>,
        parts: impl FnOnce(&mut Vec<u8>),
        candidate: impl FnOnce(&mut Vec<u8>),
    ) {
        self.open(out);
        out.extend_from_slice(b"{\"candidates\":[{\"content\":{\"parts\":[");
        parts(out);
        out.extend_from_slice(b"],\"role\":\"model\"}");
        candidate(out);
        out.extend_from_slice(b",\"index\":0}]");
        let first = std::mem::take(&mut self.usage);
        write_usage(out, usage.unwrap_or(&first));
        out.push(b',');
        out.extend_from_slice(&self.tail);
        self.close(out);
    }

    fn one(&mut self, out: &mut Vec<u8>, members: impl FnOnce(&mut Vec<u8>)) {
        self.chunk(out, None, |out| part(out, members), |_| {});
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.ended = true;
        match (self.echo.framing, self.begun) {
            (Framing::Sse, _) => {}
            (Framing::Array, false) => out.extend_from_slice(b"[]"),
            (Framing::Array, true) => out.push(b']'),
        }
    }

    /// Keeps a text back until it is known whether it is signed.
    fn hold(&mut self, text: &Text<'_>, thought: bool) {
        self.held = Some(Held { text: text.clone().into_owned(), thought });
    }

    /// Writes a signature: on the text that it signs where that is at hand, else on an empty part,
    /// as Gemini itself does at the end of a stream.
    fn sign(&mut self, thought: bool, len: usize, signature: &Signature<'_>, out: &mut Vec<u8>) {
        let is_its = |held: &mut Held| held.thought == thought && held.text.decode().len() == len;
        let text = match self.held.take_if(is_its) {
            Some(held) => held.text,
            None => {
                self.flush(out);
                Text::EMPTY
            }
        };
        self.one(out, |out| write_text(out, &text, thought, Some(signature)));
    }

    fn raw(&mut self, out: &mut Vec<u8>, raw: &Raw<'_>) {
        self.chunk(out, None, |out| raw.write(out), |_| {});
    }
}

impl Encoder for StreamEncoder {
    fn event(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        if self.ended {
            return;
        }
        if let Event::Signature { thought, signature, len } = event {
            self.sign(*thought, *len, signature, out);
            return;
        }
        self.flush(out);
        match event {
            Event::Start(start) => self.start(start),
            Event::Text(text) => self.hold(text, false),
            Event::Thought(text) => self.hold(text, true),
            Event::Signature { .. } => {}
            Event::Call(call) => {
                self.called = true;
                self.one(out, |out| write_call(out, call));
            }
            Event::Media(media) => self.one(out, |out| write_media(out, media)),
            Event::Server(activity) => self.raw(out, &activity.part),
            Event::Grounding(raw) => self.chunk(out, None, empty_part, |out| {
                write::key(out, "groundingMetadata");
                raw.write(out);
            }),
            Event::Finish(finish) if finish.is_prompt_blocked => {
                self.open(out);
                out.push(b'{');
                write_feedback(out, finish);
                write_usage(out, &finish.usage);
                out.push(b',');
                out.extend_from_slice(&self.tail);
                self.close(out);
                self.end(out);
            }
            Event::Finish(finish) => {
                self.chunk(out, Some(&finish.usage), empty_part, |out| write_finish(out, finish));
                self.end(out);
            }
            Event::Fail(failure) => {
                // Clients go on from the calls that they have, and would run them twice if they
                // asked again. Without any they take a stream that just ends for an answer.
                if failure.kind != FailureKind::Cut || !self.called {
                    self.open(out);
                    write_error(out, failure, None);
                    self.close(out);
                    if self.echo.framing == Framing::Sse {
                        write_error(out, failure, None);
                        out.push(b'\n');
                    }
                }
                self.end(out);
            }
        }
    }

    fn flush(&mut self, out: &mut Vec<u8>) {
        if let Some(Held { text, thought }) = self.held.take() {
            self.one(out, |out| write_text(out, &text, thought, None));
        }
    }

    fn is_holding(&self) -> bool {
        self.held.is_some()
    }

    /// White space in an array. Events have no sign of life: Google's SDK for Go refuses comments and
    /// empty lines, the one for JavaScript comments.
    fn ping(&mut self, out: &mut Vec<u8>) {
        if self.begun && !self.ended && self.echo.framing == Framing::Array {
            out.push(b'\n');
        }
    }
}

/// A content without parts makes some SDKs forget the whole turn.
fn empty_part(out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"text\":\"\"}");
}
