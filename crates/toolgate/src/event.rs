//! Events of a request.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::Value;
use toolgate_core::canon::{self, Failure};

use crate::tool::{Output, ToolError};
use crate::{Call, Media, Response};

/// An event of a request, in order of occurrence. Each is delivered before the next step begins: a tool
/// starts after [`ToolStarted`](Event::ToolStarted) was read from the stream.
///
/// Serialised, an event is an object whose `type` is the name of the variant in snake_case.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A round starts: a request is sent.
    Round {
        /// Number of the round, from 1.
        round: u32,
        /// Whether this is the last round: no more calls are run.
        last: bool,
    },
    /// The request is retried.
    Retry {
        /// Failure of the attempt.
        failure: Failure,
        /// Delay before the retry.
        wait: Duration,
    },
    /// Text of the answer, in pieces.
    Text(String),
    /// Thought summary, in pieces.
    Thought(String),
    /// Image or other media from the model.
    Media(Media),
    /// Activity of Gemini's own tools (a search, executed code), or a part that this version does not
    /// know: `executableCode`, `toolCall`, ….
    Server {
        /// Name of the part's field.
        kind: String,
        /// Value of the field.
        body: Value,
    },
    /// Sources of the answer: Gemini's `groundingMetadata`.
    Grounding(Value),
    /// A call that is returned to the caller.
    Call {
        /// Index among the returned calls.
        index: usize,
        /// The call.
        call: Call,
    },
    /// The call is not run: the tool is unknown, or the arguments do not fit its schema. The model gets
    /// the error in place of a result.
    CallRefused {
        /// The call.
        call: Call,
        /// The error.
        error: ToolError,
    },
    /// A tool starts.
    ToolStarted(Call),
    /// A tool finished.
    ToolFinished {
        /// The call.
        call: Call,
        /// Result that is sent to the model.
        result: Result<Output, ToolError>,
        /// Whether the result came from the cache.
        cached: bool,
        /// Run time.
        elapsed: Duration,
    },
    /// The request finished. Last event of a stream.
    Finished(Box<Response>),
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let kind = match self {
            Self::Round { .. } => "round",
            Self::Retry { .. } => "retry",
            Self::Text(_) => "text",
            Self::Thought(_) => "thought",
            Self::Media(_) => "media",
            Self::Server { .. } => "server",
            Self::Grounding(_) => "grounding",
            Self::Call { .. } => "call",
            Self::CallRefused { .. } => "call_refused",
            Self::ToolStarted(_) => "tool_started",
            Self::ToolFinished { .. } => "tool_finished",
            Self::Finished(_) => "finished",
        };
        map.serialize_entry("type", kind)?;
        match self {
            Self::Round { round, last } => {
                map.serialize_entry("round", round)?;
                map.serialize_entry("last", last)?;
            }
            Self::Retry { failure, wait } => {
                map.serialize_entry("failure", &failure.message)?;
                map.serialize_entry("waitMs", &wait.as_millis())?;
            }
            Self::Text(text) | Self::Thought(text) => map.serialize_entry("text", text)?,
            Self::Media(media) => map.serialize_entry("media", media)?,
            Self::Server { kind, body } => {
                map.serialize_entry("kind", kind)?;
                map.serialize_entry("body", body)?;
            }
            Self::Grounding(body) => map.serialize_entry("body", body)?,
            Self::Call { index, call } => {
                map.serialize_entry("index", index)?;
                map.serialize_entry("call", call)?;
            }
            Self::CallRefused { call, error } => {
                map.serialize_entry("call", call)?;
                map.serialize_entry("error", &error.to_string())?;
            }
            Self::ToolStarted(call) => map.serialize_entry("call", call)?,
            Self::ToolFinished { call, result, cached, elapsed } => {
                map.serialize_entry("call", call)?;
                match result {
                    Ok(output) => map.serialize_entry("result", &output.to_value())?,
                    Err(error) => map.serialize_entry("error", &error.to_string())?,
                }
                map.serialize_entry("cached", cached)?;
                map.serialize_entry("elapsedMs", &elapsed.as_millis())?;
            }
            Self::Finished(response) => map.serialize_entry("response", response)?,
        }
        map.end()
    }
}

/// Event callback.
pub(crate) type Observer = Arc<dyn Fn(&Event) + Send + Sync>;

/// Destinations of events.
#[derive(Clone, Default)]
pub(crate) struct Emitter {
    pub(crate) observer: Option<Observer>,
    pub(crate) queue: Option<Arc<Mutex<VecDeque<Event>>>>,
}

impl Emitter {
    pub(crate) fn emit(&self, event: Event) {
        if let Some(observer) = &self.observer {
            observer(&event);
        }
        if let Some(queue) = &self.queue {
            queue.lock().unwrap_or_else(PoisonError::into_inner).push_back(event);
        }
    }

    /// Emits an event and waits until the stream has delivered it.
    pub(crate) async fn send(&self, event: Event) {
        self.emit(event);
        self.delivered().await;
    }

    /// Waits until the stream has delivered all events. The stream polls its driver again whenever its
    /// queue is empty, so that no waker is needed.
    pub(crate) async fn delivered(&self) {
        let Some(queue) = &self.queue else { return };
        let is_empty = || queue.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        std::future::poll_fn(|_| if is_empty() { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    /// Emits an upstream event. `calls` counts the calls returned so far.
    pub(crate) fn emit_upstream(&self, event: &canon::Event<'_>, calls: &mut usize) {
        if self.observer.is_none() && self.queue.is_none() {
            return;
        }
        self.emit(match event {
            canon::Event::Text(text) => Event::Text(text.decode().into_owned()),
            canon::Event::Thought(text) => Event::Thought(text.decode().into_owned()),
            canon::Event::Media(media) => Event::Media(Media::from(media.clone().into_owned())),
            canon::Event::Server(activity) => Event::Server {
                kind: activity.kind.clone().into_owned(),
                body: activity.body.to().unwrap_or_default(),
            },
            canon::Event::Grounding(grounding) => {
                Event::Grounding(grounding.raw.to().unwrap_or_default())
            }
            canon::Event::Call(call) => {
                *calls += 1;
                Event::Call { index: *calls - 1, call: Call::from_canon(call) }
            }
            // `Start` has no content, signatures are internal, and `Event::Finished` reports the end.
            canon::Event::Start(_)
            | canon::Event::Signature { .. }
            | canon::Event::Finish(_)
            | canon::Event::Fail(_) => return,
        });
    }
}

impl fmt::Debug for Emitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Emitter")
    }
}
