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
    write_call, write_candidate, write_feedback, write_finish, write_media, write_tail, write_text,
    write_usage,
};
use super::{Echo, Framing};
use crate::canon::{Encoder, Event, FailureKind, Signature, Start, Usage};
use crate::dialect::Stamp;
use crate::json::write::{ArrayWriter, ObjectWriter};
use crate::json::{Raw, Text};
use crate::seal::Sealer;

/// Writes events as chunks of `streamGenerateContent`.
#[derive(Clone, Debug)]
pub struct StreamEncoder {
    echo: Echo,
    stamp: Stamp,
    /// `{"modelVersion":…,"responseId":…}`, the last members of every chunk.
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
        write_tail(&mut ObjectWriter::new(&mut self.tail), start, &self.echo, &self.stamp);
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
        parts: impl FnOnce(&mut ArrayWriter<'_>),
        candidate: impl FnOnce(&mut ObjectWriter<'_>),
    ) {
        let first = std::mem::take(&mut self.usage);
        self.frame(out, usage.unwrap_or(&first), |body| {
            let mut candidates = body.array("candidates");
            let mut object = candidates.object();
            let mut content = object.object("content");
            parts(&mut content.array("parts"));
            content.string("role", "model");
            drop(content);
            candidate(&mut object);
            object.integer("index", 0);
        });
    }

    /// Writes one response. `members` writes its first members.
    fn frame(
        &mut self,
        out: &mut Vec<u8>,
        usage: &Usage,
        members: impl FnOnce(&mut ObjectWriter<'_>),
    ) {
        self.open(out);
        let mut body = ObjectWriter::new(out);
        members(&mut body);
        write_usage(&mut body, usage);
        body.members_of(&self.tail);
        drop(body);
        self.close(out);
    }

    fn one(&mut self, out: &mut Vec<u8>, members: impl FnOnce(&mut ObjectWriter<'_>)) {
        self.chunk(out, None, |parts| members(&mut parts.object()), |_| {});
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
        self.one(out, |part| write_text(part, &text, thought, Some(signature)));
    }

    fn raw(&mut self, out: &mut Vec<u8>, raw: &Raw<'_>) {
        self.chunk(out, None, |parts| raw.write(parts.element()), |_| {});
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
                self.one(out, |part| write_call(part, call));
            }
            Event::Media(media) => self.one(out, |part| write_media(part, media)),
            Event::Server(activity) => self.raw(out, &activity.part),
            Event::Grounding(grounding) => self.chunk(out, None, empty_part, |candidate| {
                candidate.raw("groundingMetadata", &grounding.raw);
            }),
            Event::Finish(finish) if finish.is_prompt_blocked => {
                self.frame(out, &finish.usage, |body| write_feedback(body, finish));
                self.end(out);
            }
            Event::Finish(finish) => {
                for (at, other) in finish.candidates.iter().enumerate() {
                    self.frame(out, &Usage::default(), |body| {
                        write_candidate(&mut body.array("candidates").object(), other, at + 1);
                    });
                }
                self.chunk(out, Some(&finish.usage), empty_part, |candidate| {
                    write_finish(candidate, finish);
                });
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
            self.one(out, |part| write_text(part, &text, thought, None));
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
fn empty_part(parts: &mut ArrayWriter<'_>) {
    parts.object().text("text", &Text::EMPTY);
}
