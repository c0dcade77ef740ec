//! Responses.

use serde::de::DeserializeOwned;
use serde_json::Value;
use toolgate_core::canon::{
    Answer, FinishReason, Item, Loss, Losses, Media, Part, ServerActivity, Turn, Usage,
};
use toolgate_core::tool_loop::Unfinished;

use crate::run::Run;
use crate::{Call, CallResult, Error, EventStream};

/// Response to a request, with the history of its rounds.
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
    /// Text of the model's last turn, without thoughts.
    pub fn text(&self) -> String {
        let texts = self.last.iter().filter_map(|part| match part {
            Part::Text { text, .. } => Some(text.decode()),
            Part::Thought { .. }
            | Part::Media(_)
            | Part::Call(_)
            | Part::Result(_)
            | Part::Sealed(_)
            | Part::Gemini(_) => None,
        });
        texts.collect()
    }

    /// Thought summaries, if the request included them.
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

    /// Parses the answer as JSON. An error while calls wait for results.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let text = self.text();
        if let Some(call) = self.calls.first() {
            let reason = format!("the call of `{}` has no result yet", call.name());
            return Err(Error::Output { reason, text });
        }
        crate::structured::parse(&text).map_err(|reason| Error::Output { reason, text })
    }

    /// Calls that wait for results of the caller. Continue with [`resume`](Self::resume).
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// Whether calls wait for results of the caller.
    pub fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Reason for returned calls: they are the caller's, or the round limit was reached.
    pub fn unfinished(&self) -> Option<Unfinished> {
        self.unfinished
    }

    /// Images and other media from the model.
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

    /// Activity of Gemini's own tools, and parts that this version does not know.
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

    /// Sources of the answer: Gemini's `groundingMetadata`.
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

    /// Finish reason of the answer.
    pub fn finish_reason(&self) -> &FinishReason {
        &self.answer.finish.reason
    }

    /// The complete answer, with signatures.
    pub fn answer(&self) -> &Answer {
        &self.answer
    }

    /// Turns added to the conversation: calls, results, the answer. Empty if
    /// [`Automatic::keep_history`](crate::Automatic::keep_history) is off.
    pub fn history(&self) -> &[Turn<'static>] {
        &self.history
    }

    /// Number of requests sent.
    pub fn requests(&self) -> u32 {
        self.requests
    }

    /// Token usage of all requests. That of the last one is in the [`answer`](Self::answer).
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// Losses of the request, and repairs of the answer.
    pub fn losses(&self) -> &[Loss] {
        &self.losses
    }

    /// Continues with the results of the returned calls. A call without a result gets an error. The
    /// round limit starts again; requests, tokens and history count from here.
    pub async fn resume(
        self,
        results: impl IntoIterator<Item = CallResult>,
    ) -> Result<Self, Error> {
        let mut run = self.run.ok_or(Error::NothingToResume)?;
        run.resume(results)?;
        Box::pin(run.finish(false)).await
    }

    /// Streaming variant of [`resume`](Self::resume).
    pub fn resume_stream(
        self,
        results: impl IntoIterator<Item = CallResult>,
    ) -> Result<EventStream, Error> {
        let mut run = self.run.ok_or(Error::NothingToResume)?;
        run.resume(results)?;
        Ok(EventStream::new(*run))
    }
}
