//! What was answered.

use serde::de::DeserializeOwned;
use serde_json::Value;
use toolgate_core::canon::{
    Answer, FinishReason, Item, Loss, Losses, Media, Part, ServerActivity, Turn, Usage,
};
use toolgate_core::tool_loop::Unfinished;

use crate::run::Run;
use crate::{Call, CallResult, Error, EventStream};

/// What was answered, and what happened on the way.
#[derive(Debug)]
pub struct Response {
    pub(crate) answer: Answer,
    /// The model's last turn.
    pub(crate) last: Vec<Part<'static>>,
    pub(crate) calls: Vec<Call>,
    pub(crate) unfinished: Option<Unfinished>,
    pub(crate) history: Vec<Turn<'static>>,
    pub(crate) requests: u32,
    pub(crate) usage: Usage,
    pub(crate) losses: Losses,
    pub(crate) run: Option<Box<Run>>,
}

impl Response {
    /// The words of the model's last turn, thoughts left out.
    pub fn text(&self) -> String {
        let words = self.last.iter().filter_map(|part| match part {
            Part::Text { text, .. } => Some(text.decode()),
            Part::Thought { .. }
            | Part::Media(_)
            | Part::Call(_)
            | Part::Result(_)
            | Part::Sealed(_)
            | Part::Gemini(_) => None,
        });
        words.collect()
    }

    /// What the model thought, in a summary, where it was asked to show it.
    pub fn thoughts(&self) -> String {
        let thoughts = self.answer.items.iter().filter_map(|item| match item {
            Item::Thought(text) => Some(text.decode()),
            Item::Text(_)
            | Item::Signature { .. }
            | Item::Call(_)
            | Item::Media(_)
            | Item::Server(_)
            | Item::Grounding(_) => None,
        });
        thoughts.collect()
    }

    /// Reads the answer as JSON, into a type. There is none yet while calls wait for results.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let text = self.text();
        if let Some(call) = self.calls.first() {
            let reason = format!("the model called `{}`, whose result it waits for", call.name());
            return Err(Error::Output { reason, text });
        }
        crate::structured::parse(&text).map_err(|reason| Error::Output { reason, text })
    }

    /// The calls that wait for the caller's results. Go on with [`resume`](Self::resume).
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// Whether calls wait for the caller's results.
    pub fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Why calls came back: they are the caller's, or all rounds were used up.
    pub fn unfinished(&self) -> Option<Unfinished> {
        self.unfinished
    }

    /// Pictures and other media that the model made.
    pub fn media(&self) -> impl Iterator<Item = &Media<'static>> {
        self.answer.items.iter().filter_map(|item| match item {
            Item::Media(media) => Some(media),
            Item::Text(_)
            | Item::Thought(_)
            | Item::Signature { .. }
            | Item::Call(_)
            | Item::Server(_)
            | Item::Grounding(_) => None,
        })
    }

    /// What Gemini did itself, and parts that this version does not know.
    pub fn server(&self) -> impl Iterator<Item = &ServerActivity<'static>> {
        self.answer.items.iter().filter_map(|item| match item {
            Item::Server(activity) => Some(activity),
            Item::Text(_)
            | Item::Thought(_)
            | Item::Signature { .. }
            | Item::Call(_)
            | Item::Media(_)
            | Item::Grounding(_) => None,
        })
    }

    /// What the answer rests on: Gemini's `groundingMetadata`.
    pub fn grounding(&self) -> impl Iterator<Item = Value> {
        self.answer.items.iter().filter_map(|item| match item {
            Item::Grounding(raw) => raw.to(),
            Item::Text(_)
            | Item::Thought(_)
            | Item::Signature { .. }
            | Item::Call(_)
            | Item::Media(_)
            | Item::Server(_) => None,
        })
    }

    /// Why the answer ended.
    pub fn finish_reason(&self) -> &FinishReason {
        &self.answer.finish.reason
    }

    /// The answer as it is, signatures and all.
    pub fn answer(&self) -> &Answer {
        &self.answer
    }

    /// What was added to the conversation: calls, results, the answer. Empty where
    /// [`Automatic::keep_history`](crate::Automatic::keep_history) is off.
    pub fn history(&self) -> &[Turn<'static>] {
        &self.history
    }

    /// How many requests were sent.
    pub fn requests(&self) -> u32 {
        self.requests
    }

    /// Tokens of all requests together. Those of the last are in the [`answer`](Self::answer).
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// What could not be said to Gemini as the request has it, and what of its answer was mended.
    pub fn losses(&self) -> &[Loss] {
        &self.losses
    }

    /// Goes on, once the calls that came back have results. A call without one gets an error. All
    /// rounds can be spent again; requests, tokens and history are those from here on.
    pub async fn resume(
        self,
        results: impl IntoIterator<Item = CallResult>,
    ) -> Result<Self, Error> {
        let mut run = self.run.ok_or(Error::NothingToResume)?;
        run.resume(results)?;
        Box::pin(run.finish(false)).await
    }

    /// Like [`resume`](Self::resume), as a stream.
    pub fn resume_stream(
        self,
        results: impl IntoIterator<Item = CallResult>,
    ) -> Result<EventStream, Error> {
        let mut run = self.run.ok_or(Error::NothingToResume)?;
        run.resume(results)?;
        Ok(EventStream::new(*run))
    }
}
