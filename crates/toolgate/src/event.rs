//! What happens while a request is answered.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use toolgate_core::canon::{self, Failure, Media};

use crate::tool::{Output, ToolError};
use crate::{Call, Response};

/// What happens while a request is answered, in order.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// A request is sent.
    Round {
        /// Which, from 1.
        round: u32,
        /// No call will be run any more: the model must answer.
        last: bool,
    },
    /// It is sent again.
    Retry {
        /// Why.
        failure: Failure,
        /// After what time.
        wait: Duration,
    },
    /// More words of the answer.
    Text(String),
    /// More of what the model thinks, in a summary.
    Thought(String),
    /// A picture or other medium that the model made.
    Media(Media<'static>),
    /// Something that Gemini did itself (a search, code that it ran), or said in a way that this
    /// version does not know: `executableCode`, `toolCall`, ….
    Server {
        /// What it is.
        kind: String,
        /// What it says.
        body: Value,
    },
    /// What the answer rests on: Gemini's `groundingMetadata`.
    Grounding(Value),
    /// A call that comes back to the caller.
    Call {
        /// How many came before it.
        index: usize,
        /// The call.
        call: Call,
    },
    /// A tool begins to run.
    ToolStarted(Call),
    /// A tool has run.
    ToolFinished {
        /// The call.
        call: Call,
        /// What the model is told.
        result: Result<Output, ToolError>,
        /// It did not have to run: the result was there from earlier.
        cached: bool,
        /// How long it ran.
        elapsed: Duration,
    },
    /// The end, which is the last event of a stream.
    Finished(Box<Response>),
}

/// Sees events.
pub(crate) type Observer = Arc<dyn Fn(&Event) + Send + Sync>;

/// Where events go.
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

    /// Passes on what Gemini said. `calls` counts the calls that the caller has seen.
    pub(crate) fn said(&self, event: &canon::Event<'_>, calls: &mut usize) {
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
            // The first tells nothing, signatures are nobody's business, and the end is told in a
            // form of its own.
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
