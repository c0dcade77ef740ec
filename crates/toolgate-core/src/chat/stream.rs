//! An answer as a stream of `chat.completion.chunk`s.
//!
//! ```text
//! stream = chunk(role, …) chunk* chunk(finish_reason) [chunk(usage)] "[DONE]"
//!        | chunk* error
//! ```
//!
//! Calls come whole, each in a chunk of its own. Thoughts are `reasoning_content`.

use super::Echo;
use super::carrier::Carrier;
use super::error::write_error;
use super::response::{
    Message, finish_reason, markdown, write_annotations, write_extra_content, write_function_call,
    write_head, write_tool_call, write_usage,
};
use crate::canon::{Answer, Call, Encoder, Event, Finish, Grounding, citations};
use crate::dialect::Stamp;
use crate::json::{Text, write};
use crate::seal::Sealer;

/// Writes events as Chat Completions chunks.
#[derive(Clone, Debug)]
pub struct StreamEncoder {
    echo: Echo,
    sealer: Sealer,
    request_id: Option<String>,
    /// `data: {"id":…` as every chunk begins, up to its choices.
    head: Vec<u8>,
    begun: bool,
    ended: bool,
    calls: u32,
    carrier: Carrier,
    /// The answer's words, where citations will have to point into them.
    cited: String,
    groundings: Vec<Grounding>,
}

impl StreamEncoder {
    /// An encoder for one answer.
    pub fn new(echo: Echo, stamp: Stamp, sealer: Sealer) -> Self {
        let mut head = Vec::with_capacity(160);
        head.extend_from_slice(b"data: {");
        write_head(&mut head, "chat.completion.chunk", &echo, &stamp);
        Self {
            echo,
            sealer,
            request_id: stamp.request_id,
            head,
            begun: false,
            ended: false,
            calls: 0,
            carrier: Carrier::default(),
            cited: String::new(),
            groundings: Vec::new(),
        }
    }

    /// Writes one chunk of the first choice. `delta` writes the members of its delta.
    fn chunk(&mut self, out: &mut Vec<u8>, finish: Option<&str>, delta: impl FnOnce(&mut Vec<u8>)) {
        let is_first = !std::mem::replace(&mut self.begun, true);
        self.chunk_of(0, out, finish, |out| {
            if is_first {
                out.extend_from_slice(b"\"role\":\"assistant\"");
            }
            delta(out);
        });
    }

    /// Writes one chunk of a choice.
    fn chunk_of(
        &self,
        choice: usize,
        out: &mut Vec<u8>,
        finish: Option<&str>,
        delta: impl FnOnce(&mut Vec<u8>),
    ) {
        out.extend_from_slice(&self.head);
        out.extend_from_slice(b",\"choices\":[{\"index\":");
        write::integer(out, choice as u64);
        out.extend_from_slice(b",\"delta\":{");
        delta(out);
        out.extend_from_slice(b"},\"logprobs\":null,\"finish_reason\":");
        match finish {
            Some(reason) => write::string(out, reason),
            None => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(b"}]");
        if self.echo.include_usage {
            out.extend_from_slice(b",\"usage\":null");
        }
        out.extend_from_slice(b"}\n\n");
    }

    /// Writes a further candidate as a choice of its own: its message, then its end.
    fn choice(&self, choice: usize, answer: &Answer, out: &mut Vec<u8>) {
        let message = Message::of(answer);
        let is_called = !message.calls.is_empty();
        self.chunk_of(choice, out, None, |out| {
            out.extend_from_slice(b"\"role\":\"assistant\",\"content\":");
            match &message.content {
                Some(text) => text.write(out),
                None => out.extend_from_slice(b"null"),
            }
            if let Some(thought) = &message.thought {
                write::key(out, "reasoning_content");
                thought.write(out);
            }
            match message.calls.as_slice() {
                [] => {}
                [first, ..] if self.echo.legacy_functions => {
                    write::key(out, "function_call");
                    write_function_call(out, first, &self.sealer);
                }
                calls => {
                    write::key(out, "tool_calls");
                    out.push(b'[');
                    for (index, call) in (0..).zip(calls) {
                        write::comma(out);
                        write_tool_call(out, call, Some(index), &self.sealer);
                    }
                    out.push(b']');
                }
            }
            let found = message.citations(&self.echo);
            if !found.is_empty() {
                write::key(out, "annotations");
                write_annotations(out, &found);
            }
            if let Some(field) = message.carrier.finish(&self.sealer) {
                write_extra_content(out, &field);
            }
        });
        let reason = finish_reason(&answer.finish.reason, is_called, &self.echo);
        self.chunk_of(choice, out, Some(reason), |_| {});
    }

    fn text(&mut self, out: &mut Vec<u8>, text: &Text<'_>) {
        self.carrier.grown(false);
        if self.echo.citations {
            self.cited.push_str(&text.decode());
        }
        self.chunk(out, None, |out| {
            write::key(out, "content");
            text.write(out);
        });
    }

    fn call(&mut self, out: &mut Vec<u8>, call: &Call<'_>) {
        self.carrier.seen(call.signature.as_ref());
        let index = self.calls;
        self.calls += 1;
        let null_content = !self.begun;
        let (sealer, legacy) = (self.sealer.clone(), self.echo.legacy_functions);
        if legacy && index > 0 {
            // The message has room for one call, and only one was asked for.
            return;
        }
        self.chunk(out, None, |out| {
            if null_content {
                out.extend_from_slice(b",\"content\":null");
            }
            if legacy {
                write::key(out, "function_call");
                write_function_call(out, call, &sealer);
            } else {
                write::key(out, "tool_calls");
                out.push(b'[');
                write_tool_call(out, call, Some(index), &sealer);
                out.push(b']');
            }
        });
    }

    fn finish(&mut self, out: &mut Vec<u8>, finish: &Finish) {
        let field = std::mem::take(&mut self.carrier).finish(&self.sealer);
        let found = citations(&self.groundings, &self.cited);
        if field.is_some() || !found.is_empty() {
            self.chunk(out, None, |out| {
                if !found.is_empty() {
                    write::key(out, "annotations");
                    write_annotations(out, &found);
                }
                if let Some(field) = &field {
                    write_extra_content(out, field);
                }
            });
        }
        let reason = finish_reason(&finish.reason, self.calls > 0, &self.echo);
        let empty = !self.begun;
        self.chunk(out, Some(reason), |out| {
            if empty {
                out.extend_from_slice(b",\"content\":\"\"");
            }
        });
        for (at, other) in finish.candidates.iter().enumerate() {
            self.choice(at + 1, other, out);
        }
        if self.echo.include_usage {
            out.extend_from_slice(&self.head);
            out.extend_from_slice(b",\"choices\":[],\"usage\":");
            write_usage(out, &finish.usage);
            out.extend_from_slice(b"}\n\n");
        }
        out.extend_from_slice(b"data: [DONE]\n\n");
    }
}

impl Encoder for StreamEncoder {
    fn event(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        if self.ended {
            return;
        }
        match event {
            Event::Start(_) => {}
            Event::Text(text) => self.text(out, text),
            Event::Thought(text) => {
                self.carrier.grown(true);
                let null_content = !self.begun;
                self.chunk(out, None, |out| {
                    if null_content {
                        out.extend_from_slice(b",\"content\":null");
                    }
                    write::key(out, "reasoning_content");
                    text.write(out);
                });
            }
            Event::Signature { thought, len, signature } => {
                self.carrier.signature(*thought, *len, signature);
            }
            Event::Call(call) => self.call(out, call),
            Event::Media(media) => self.text(out, &markdown(media)),
            Event::Server(activity) => self.carrier.server(activity),
            Event::Grounding(grounding) => self.groundings.push(grounding.clone()),
            Event::Finish(finish) => {
                self.ended = true;
                self.finish(out, finish);
            }
            Event::Fail(failure) => {
                self.ended = true;
                out.extend_from_slice(b"data: ");
                write_error(out, failure, self.request_id.as_deref());
                out.extend_from_slice(b"\n\n");
            }
        }
    }

    fn ping(&mut self, out: &mut Vec<u8>) {
        if !self.ended {
            out.extend_from_slice(b": ping\n\n");
        }
    }
}
