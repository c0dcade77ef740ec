//! Events of a request.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use toolgate_core::canon::{self, Failure, Media};

use crate::tool::{Output, ToolError};
use crate::{Call, Response};

/// An event of a request, in order of occurrence.
#[derive(Debug)]
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
    Media(Media<'static>),
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

    /// Emits an upstream event. `calls` counts the calls returned so far.
    pub(crate) fn emit_upstream(&self, event: &canon::Event<'_>, calls: &mut usize) {
        if self.observer.is_none() && self.queue.is_none() {
            return;
        }
        self.emit(match event {
            canon::Event::Text(text) => Event::Text(text.decode().into_owned()),
            canon::Event::Thought(text) => Event::Thought(text.decode().into_owned()),
            canon::Event::Media(media) => Event::Media(media.clone().into_owned()),
            canon::Event::Server(activity) => Event::Server {
                kind: activity.kind.clone().into_owned(),
                body: activity.body.to().unwrap_or_default(),
            },
            canon::Event::Grounding(raw) => Event::Grounding(raw.to().unwrap_or_default()),
            canon::Event::Call(call) => {
                *calls += 1;
                Event::Call { index: *calls - 1, call: Call::new(call) }
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
