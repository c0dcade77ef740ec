//! An answer as Anthropic streams it.
//!
//! ```text
//! message_start
//!   ( content_block_start  content_block_delta*  content_block_stop )*   one after the other, from index 0
//! message_delta            why it ended, all tokens
//! message_stop
//! ```
//!
//! `ping` may stand between any two of them. `error` ends a stream that cannot go on: the block
//! that is open then stays open, and clients keep the blocks so far.

use super::compose::{Composer, Page, member, null};
use super::error;
use super::request::Echo;
use crate::canon::{Encoder, Event, Failure, Finish, Start};
use crate::dialect::Stamp;
use crate::json::{Text, write};
use crate::seal::Sealer;

/// Writes events as Anthropic's stream.
#[derive(Clone, Debug)]
pub struct StreamEncoder {
    composer: Composer,
    id: String,
    request_id: Option<String>,
    index: usize,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Started,
    Ended,
}

impl StreamEncoder {
    /// An encoder for one answer.
    pub fn new(echo: Echo, mut stamp: Stamp, sealer: Sealer) -> Self {
        let id = format!("msg_{}", stamp.ids.token());
        let composer = Composer::new(echo, sealer, stamp.ids);
        Self { composer, id, request_id: stamp.request_id, index: 0, state: State::Waiting }
    }

    fn start(&mut self, start: &Start<'_>, out: &mut Vec<u8>) {
        self.state = State::Started;
        frame(out, "message_start", |out| {
            write::key(out, "message");
            out.push(b'{');
            member(out, "id", &self.id);
            out.extend_from_slice(br#","type":"message","role":"assistant""#);
            member(out, "model", &self.composer.echo().model);
            out.extend_from_slice(br#","content":[],"stop_reason":null,"stop_sequence":null"#);
            out.extend_from_slice(br#","stop_details":null,"container":null,"diagnostics":null"#);
            self.composer.usage(out, &start.usage);
            out.push(b'}');
        });
    }

    fn finish(&mut self, finish: &Finish, out: &mut Vec<u8>) {
        self.state = State::Ended;
        self.composer.finish(&mut Frames { out, index: &mut self.index });
        frame(out, "message_delta", |out| {
            write::key(out, "delta");
            out.push(b'{');
            self.composer.stop(out, finish);
            out.push(b'}');
            self.composer.delta_usage(out, &finish.usage);
        });
        frame(out, "message_stop", |_| {});
    }

    /// Before the first frame there is still an HTTP status to say it with.
    fn fail(&mut self, failure: &Failure, out: &mut Vec<u8>) {
        if self.state == State::Started {
            frame(out, "error", |out| {
                error::write_error(out, failure);
                match &self.request_id {
                    Some(id) => member(out, "request_id", id),
                    None => null(out, "request_id"),
                }
            });
        }
        self.state = State::Ended;
    }
}

impl Encoder for StreamEncoder {
    fn event(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        if self.state == State::Ended {
            return;
        }
        match event {
            Event::Start(start) => {
                if self.state == State::Waiting {
                    self.start(start, out);
                }
                return;
            }
            Event::Fail(failure) => {
                self.fail(failure, out);
                return;
            }
            Event::Text(_)
            | Event::Thought(_)
            | Event::Signature { .. }
            | Event::Call(_)
            | Event::Media(_)
            | Event::Server(_)
            | Event::Grounding(_)
            | Event::Finish(_) => {}
        }
        if self.state == State::Waiting {
            self.start(&Start::default(), out);
        }
        if let Event::Finish(finish) = event {
            self.finish(finish, out);
            return;
        }
        let page = &mut Frames { out, index: &mut self.index };
        match event {
            Event::Text(text) => self.composer.text(text, page),
            Event::Thought(text) => self.composer.thought(text, page),
            Event::Signature { thought, len, signature } => {
                self.composer.signature(*thought, *len, signature, page);
            }
            Event::Call(call) => self.composer.call(call, page),
            Event::Media(media) => self.composer.media(media, page),
            Event::Server(activity) => self.composer.server(activity, page),
            Event::Grounding(grounding) => self.composer.grounding(grounding, page),
            Event::Start(_) | Event::Finish(_) | Event::Fail(_) => {}
        }
    }

    fn ping(&mut self, out: &mut Vec<u8>) {
        if self.state != State::Ended {
            frame(out, "ping", |_| {});
        }
    }
}

/// Writes one frame: `type` first, then whatever `members` writes.
fn frame(out: &mut Vec<u8>, kind: &str, members: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\ndata: {");
    out.extend_from_slice(b"\"type\":\"");
    out.extend_from_slice(kind.as_bytes());
    out.push(b'"');
    members(out);
    out.extend_from_slice(b"}\n\n");
}

/// Blocks as frames.
struct Frames<'o> {
    out: &'o mut Vec<u8>,
    index: &'o mut usize,
}

impl Frames<'_> {
    fn start(&mut self, members: impl FnOnce(&mut Vec<u8>)) {
        let index = *self.index;
        frame(self.out, "content_block_start", |out| {
            write_index(out, index);
            out.extend_from_slice(b",\"content_block\":{");
            members(out);
            out.push(b'}');
        });
    }

    fn delta(&mut self, kind: &str, name: &str, value: impl FnOnce(&mut Vec<u8>)) {
        let index = *self.index;
        frame(self.out, "content_block_delta", |out| {
            write_index(out, index);
            out.extend_from_slice(b",\"delta\":{\"type\":\"");
            out.extend_from_slice(kind.as_bytes());
            out.extend_from_slice(b"\",\"");
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b"\":");
            value(out);
            out.push(b'}');
        });
    }

    fn stop(&mut self) {
        let index = *self.index;
        frame(self.out, "content_block_stop", |out| write_index(out, index));
        *self.index += 1;
    }
}

fn write_index(out: &mut Vec<u8>, index: usize) {
    out.extend_from_slice(b",\"index\":");
    match u8::try_from(index) {
        Ok(digit @ 0..=9) => out.push(b'0' + digit),
        Ok(_) | Err(_) => write::integer(out, index as u64),
    }
}

impl Page for Frames<'_> {
    fn open_text(&mut self) {
        self.start(|out| out.extend_from_slice(br#""type":"text","citations":null,"text":"""#));
    }

    fn text(&mut self, text: &Text<'_>) {
        self.delta("text_delta", "text", |out| text.write(out));
    }

    fn close_text(&mut self) {
        self.stop();
    }

    fn open_thinking(&mut self) {
        self.start(|out| {
            out.extend_from_slice(br#""type":"thinking","thinking":"","signature":"""#);
        });
    }

    fn thinking(&mut self, text: &Text<'_>) {
        self.delta("thinking_delta", "thinking", |out| text.write(out));
    }

    fn close_thinking(&mut self, signature: &str) {
        self.delta("signature_delta", "signature", |out| write::string(out, signature));
        self.stop();
    }

    fn call(&mut self, head: &dyn Fn(&mut Vec<u8>), input: &str) {
        self.start(|out| {
            head(out);
            out.extend_from_slice(b",\"input\":{}");
        });
        self.delta("input_json_delta", "partial_json", |out| write::json_in_string(out, input));
        self.stop();
    }

    fn whole(&mut self, members: &dyn Fn(&mut Vec<u8>)) {
        self.start(members);
        self.stop();
    }
}
