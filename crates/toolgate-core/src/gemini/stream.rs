//! An answer as a stream of `GenerateContentResponse`s.
//!
//! ```text
//! sse   = ("data: " response "\r\n\r\n")*
//! array = "[" response ("\n,\r\n" response)* "]"
//! ```
//!
//! Google's SDKs read lines: no event names, no comments, no `[DONE]`. There is no sign of life.

use super::error::write_error;
use super::response::{
    part, write_call, write_finish, write_media, write_tail, write_text, write_usage,
};
use super::{Echo, Framing};
use crate::canon::{Encoder, Event, FailureKind, Stamp, Start, Usage};
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
    begun: bool,
    ended: bool,
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
            begun: false,
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

    fn raw(&mut self, out: &mut Vec<u8>, raw: &Raw<'_>) {
        self.chunk(out, None, |out| raw.write(out), |_| {});
    }
}

impl Encoder for StreamEncoder {
    fn event(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        if self.ended {
            return;
        }
        match event {
            Event::Start(start) => self.start(start),
            Event::Text(text) => self.one(out, |out| write_text(out, text, false, None)),
            Event::Thought(text) => self.one(out, |out| write_text(out, text, true, None)),
            // The text that it signs is on its way already. Gemini itself signs with an empty
            // part at the end of a stream, and clients send that back.
            Event::Signature { thought, signature, len: _ } => {
                self.one(out, |out| write_text(out, &Text::EMPTY, *thought, Some(signature)));
            }
            Event::Call(call) => self.one(out, |out| write_call(out, call)),
            Event::Media(media) => self.one(out, |out| write_media(out, media)),
            Event::Server(activity) => self.raw(out, &activity.part),
            Event::Grounding(raw) => self.chunk(out, None, empty_part, |out| {
                write::key(out, "groundingMetadata");
                raw.write(out);
            }),
            Event::Finish(finish) => {
                self.chunk(out, Some(&finish.usage), empty_part, |out| write_finish(out, finish));
                self.end(out);
            }
            Event::Fail(failure) => {
                // Clients ask again after a stream that just ends, and give up after one that breaks.
                if failure.kind != FailureKind::Cut {
                    self.open(out);
                    write_error(out, failure, None);
                    self.close(out);
                }
                self.end(out);
            }
        }
    }

    fn ping(&mut self, _out: &mut Vec<u8>) {}
}

/// A content without parts makes some SDKs forget the whole turn.
fn empty_part(out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"text\":\"\"}");
}
