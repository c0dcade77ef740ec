//! Responses.

use serde::de::DeserializeOwned;
use serde::ser::{Error as _, SerializeStruct as _};
use serde::{Serialize, Serializer};
use serde_json::Value;
use toolgate_core::canon::{
    Answer, FinishReason, Item, Loss, Losses, Part, ServerActivity, Turn, Usage,
};
use toolgate_core::tool_loop::Unfinished;

use crate::run::Run;
use crate::{Call, CallResult, Error, EventStream, Media, SavedRun, SavedTurns};

/// Response to a request, with the history of its rounds.
///
/// Serialised, it is an object for logs and user interfaces; [`save`](Self::save) is for going on later.
#[derive(Clone, Debug)]
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
    pub fn media(&self) -> impl Iterator<Item = Media> {
        self.answer.items.iter().filter_map(|item| match item {
            Item::Media(media) => Some(Media::from(media.clone())),
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
            Item::Grounding(grounding) => grounding.raw.to(),
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

    /// The same response with the requests, tokens and turns of an earlier attempt before its own.
    pub(crate) fn after(mut self, earlier: Self) -> Self {
        self.requests += earlier.requests;
        self.usage.add(&earlier.usage);
        let mut history = earlier.history;
        history.append(&mut self.history);
        self.history = history;
        self
    }

    /// Saves the run while its calls wait for results: they may come from another process, with
    /// [`Client::resume_run`](crate::Client::resume_run).
    pub fn save(&self) -> Result<SavedRun, Error> {
        self.run.as_ref().ok_or(Error::NothingToResume)?.save()
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

impl Serialize for Response {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let history = SavedTurns::new(&self.history).map_err(S::Error::custom)?;
        let media: Vec<_> = self.media().collect();
        let mut fields = serializer.serialize_struct("Response", 9)?;
        fields.serialize_field("text", &self.text())?;
        fields.serialize_field("thoughts", &self.thoughts())?;
        fields.serialize_field("calls", &self.calls)?;
        fields.serialize_field("media", &media)?;
        fields.serialize_field("finishReason", &finish_name(self.finish_reason()))?;
        fields.serialize_field("requests", &self.requests)?;
        fields.serialize_field("usage", &SerialUsage::from(&self.usage))?;
        fields.serialize_field("losses", &self.losses)?;
        fields.serialize_field("history", &history)?;
        fields.end()
    }
}

/// Gemini's name of a finish reason.
fn finish_name(reason: &FinishReason) -> &str {
    match reason {
        FinishReason::Stop => "STOP",
        FinishReason::ToolCalls => "TOOL_CALLS",
        FinishReason::MaxTokens => "MAX_TOKENS",
        FinishReason::Blocked(reason) => reason,
    }
}

/// Token counts under Gemini's names.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SerialUsage {
    prompt_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
    tool_use_prompt_token_count: Option<u64>,
    total_token_count: Option<u64>,
}

impl From<&Usage> for SerialUsage {
    fn from(usage: &Usage) -> Self {
        let Usage { prompt, cached, candidates, thoughts, tool_use_prompt, total } = *usage;
        Self {
            prompt_token_count: prompt,
            cached_content_token_count: cached,
            candidates_token_count: candidates,
            thoughts_token_count: thoughts,
            tool_use_prompt_token_count: tool_use_prompt,
            total_token_count: total,
        }
    }
}
