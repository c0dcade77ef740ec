//! Events as OpenAI streams them.

use std::fmt;
use std::ops::Range;

use super::echo::Echo;
use super::error::{code_of, failed_message};
use super::frames::{Frames, Framing};
use super::names::Names;
use super::open::Status;
use super::output::Output;
use super::response::{Head, Object, State};
use crate::canon::{Encoder, Event, Failure, Finish, FinishReason, Usage};
use crate::dialect::Stamp;
use crate::json::{Text, write};
use crate::seal::Sealer;

/// Writes events as a Responses stream: server-sent events, or WebSocket messages.
///
/// ```text
/// response.created  response.in_progress  item*  (response.completed | .incomplete | .failed)
/// ```
#[derive(Clone)]
pub struct StreamEncoder {
    echo: Echo,
    stamp: Stamp,
    head: Head,
    output: Output,
    started: bool,
    /// Text of the summary for a compaction.
    summary: Text<'static>,
    end: Option<End>,
    /// Where settings were written.
    places: Vec<usize>,
}

/// End of the response.
#[derive(Clone, Debug)]
enum End {
    Finish { incomplete: Option<&'static str>, usage: Usage, completed: u64 },
    Fail { code: &'static str, message: String },
}

impl StreamEncoder {
    /// An encoder for one answer, framed as server-sent events.
    pub fn new(echo: Echo, stamp: Stamp, sealer: Sealer) -> Self {
        let frames = Frames::new(Framing::Sse, echo.stream_id.clone());
        Self::with_frames(echo, stamp, sealer, frames)
    }

    /// The same with another framing.
    #[must_use]
    pub fn framed(mut self, framing: Framing) -> Self {
        self.output.frames.set_framing(framing);
        self
    }

    /// The id of the response.
    pub fn response_id(&self) -> &str {
        &self.head.id
    }

    /// The response object as it stands: what `GET /v1/responses/{id}` answers.
    pub fn response(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write_response(&mut out);
        out
    }

    /// The same, to be kept.
    pub fn object(&self) -> Object {
        let mut json = Vec::new();
        let start = self.head.write(&mut json, &self.state());
        let end = json.len().saturating_sub(1);
        self.stored_object(json, end - self.settings().len()..end, start)
    }

    /// The same without the settings: `settings` is the place where they belong.
    pub fn object_without_settings(&self) -> Object {
        let mut json = Vec::new();
        let start = self.head.write_opening(&mut json, &self.state());
        let end = json.len();
        json.push(b'}');
        self.stored_object(json, end..end, start)
    }

    /// `start` is the place of the first item.
    fn stored_object(&self, json: Vec<u8>, settings: Range<usize>, start: usize) -> Object {
        let State { status, items, .. } = self.state();
        let places = if items.is_empty() { &[][..] } else { self.output.places() };
        let items = places.iter().map(|place| start + place.start..start + place.end).collect();
        Object { id: self.head.id.clone(), json, settings, status, items }
    }

    /// The members of the response object that repeat the settings of the request, as they stand in
    /// every event that holds the object.
    pub fn settings(&self) -> &[u8] {
        self.head.settings()
    }

    /// Offsets in the output at which the settings were written.
    pub fn settings_places(&self) -> &[usize] {
        &self.places
    }

    /// The finished items, as a JSON array.
    pub fn output_items(&self) -> Vec<u8> {
        let mut out = b"[".to_vec();
        out.extend_from_slice(self.output.items());
        out.push(b']');
        out
    }

    pub(super) fn with_frames(
        echo: Echo,
        mut stamp: Stamp,
        sealer: Sealer,
        frames: Frames,
    ) -> Self {
        let names = Names::new(&mut stamp.ids);
        let head = Head::new(names.response(), stamp.created, &echo);
        let output = Output::new(frames, names, sealer, &echo);
        Self {
            echo,
            stamp,
            head,
            output,
            started: false,
            summary: Text::EMPTY,
            end: None,
            places: Vec::new(),
        }
    }

    fn start(&mut self, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.started, true) {
            self.lifecycle("response.created", out);
            self.lifecycle("response.in_progress", out);
        }
    }

    fn finish(&mut self, finish: &Finish, out: &mut Vec<u8>) {
        let incomplete = match &finish.reason {
            FinishReason::Stop | FinishReason::ToolCalls => None,
            FinishReason::MaxTokens => Some("max_output_tokens"),
            FinishReason::Blocked(_) => Some("content_filter"),
        };
        let status = match incomplete {
            None => Status::Completed,
            Some(_) => Status::Incomplete,
        };
        self.output.close(status, out);
        if self.echo.compact {
            self.output.compaction(&self.summary.decode(), out);
        }
        let completed = self.stamp.completed();
        self.end = Some(End::Finish { incomplete, usage: finish.usage, completed });
        let kind = match incomplete {
            None => "response.completed",
            Some(_) => "response.incomplete",
        };
        self.lifecycle(kind, out);
    }

    fn fail(&mut self, failure: &Failure, out: &mut Vec<u8>) {
        self.output.close(Status::Incomplete, out);
        self.end =
            Some(End::Fail { code: code_of(failure.kind), message: failed_message(failure) });
        self.lifecycle("response.failed", out);
    }

    /// An event that holds the whole response.
    fn lifecycle(&mut self, kind: &str, out: &mut Vec<u8>) {
        let mut frames = self.output.frames.clone();
        let mut end = None;
        frames.event(out, kind, |out| {
            write::key(out, "response");
            self.write_response(out);
            end = Some(out.len() - 1);
        });
        self.output.frames = frames;
        self.places.extend(end.map(|end| end - self.settings().len()));
    }

    fn write_response(&self, out: &mut Vec<u8>) {
        self.head.write(out, &self.state());
    }

    fn state(&self) -> State<'_> {
        match &self.end {
            // The items are told as they come, not repeated before the end.
            None => State {
                status: "in_progress",
                completed: None,
                error: None,
                incomplete: None,
                items: &[],
                usage: None,
            },
            Some(End::Finish { incomplete, usage, completed }) => State {
                status: if incomplete.is_some() { "incomplete" } else { "completed" },
                completed: incomplete.is_none().then_some(*completed),
                error: None,
                incomplete: *incomplete,
                items: self.output.items(),
                usage: Some(usage),
            },
            Some(End::Fail { code, message }) => State {
                status: "failed",
                completed: None,
                error: Some((code, message)),
                incomplete: None,
                items: self.output.items(),
                usage: None,
            },
        }
    }
}

impl fmt::Debug for StreamEncoder {
    /// Without the items: they hold signatures.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamEncoder")
            .field("response_id", &self.head.id)
            .field("started", &self.started)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

impl Encoder for StreamEncoder {
    fn event(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        if self.end.is_some() {
            return;
        }
        self.start(out);
        match event {
            Event::Start(_) => {}
            Event::Finish(finish) => self.finish(finish, out),
            Event::Fail(failure) => self.fail(failure, out),
            Event::Text(text) if self.echo.compact => self.summary.push(text),
            _ if self.echo.compact => {}
            Event::Text(text) => self.output.text(text, out),
            Event::Thought(text) => {
                if self.echo.show_thoughts {
                    self.output.thought(text, out);
                }
            }
            Event::Signature { thought: true, len, signature } => {
                self.output.thought_signature(*len, signature, out);
            }
            Event::Signature { thought: false, len, signature } => {
                self.output.text_signature(*len, signature, out);
            }
            Event::Call(call) => self.output.call(call, &self.echo, out),
            Event::Media(media) => self.output.media(media, out),
            Event::Server(activity) => self.output.server(activity, out),
            Event::Grounding(grounding) => self.output.grounding(grounding, out),
        }
    }

    /// `response.in_progress` again: the only sign of life that Codex counts and no SDK trips on.
    fn ping(&mut self, out: &mut Vec<u8>) {
        if self.end.is_some() {
            return;
        }
        if self.started {
            self.lifecycle("response.in_progress", out);
        } else {
            self.start(out);
        }
    }
}
