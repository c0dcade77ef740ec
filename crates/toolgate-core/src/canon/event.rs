//! Events of an answer, in the order in which the upstream sends them.
//!
//! ```text
//! stream  = Start piece* (Finish | Fail)
//!         | Fail
//! piece   = Text | Thought | Signature | Call | Media | Server | Grounding
//! ```
//!
//! Consecutive `Text`s are one part, and so are consecutive `Thought`s. A `Signature` signs the
//! last `len` bytes of the run of text or thought that it follows and ends that run; with `len` 0
//! it stands for an empty part of its own. A `Call` is whole, checked and carries its signature.
//! No `Text` or `Thought` is empty. Nothing follows `Finish` or `Fail`.
//! [`Grammar`](super::Grammar) checks all of this.

use std::borrow::Cow;

use super::{Call, Failure, Grounding, Media, ServerActivity, Signature};
use crate::json::{Raw, Text};

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Event<'a> {
    /// Start of an answer.
    Start(Start<'a>),
    /// More text. Never empty.
    Text(Text<'a>),
    /// More of a thought's summary. Never empty.
    Thought(Text<'a>),
    /// The signature of the text that came just before.
    Signature {
        /// `true`: of a thought; `false`: of an answer's text.
        thought: bool,
        /// How many bytes, from the end of the run, the signed part has (of decoded text).
        len: usize,
        /// The signature.
        signature: Signature<'a>,
    },
    /// A complete call.
    Call(Call<'a>),
    /// A picture or other medium that the model made.
    Media(Media<'a>),
    /// A step that Gemini took itself.
    Server(ServerActivity<'a>),
    /// Sources of the answer.
    Grounding(Grounding),
    /// The answer completed.
    Finish(Finish),
    /// The answer failed; nothing follows.
    Fail(Failure),
}

/// Start of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Start<'a> {
    /// Gemini's `responseId`.
    pub response_id: Option<Cow<'a, str>>,
    /// Gemini's `modelVersion`.
    pub model_version: Option<Cow<'a, str>>,
    /// Tokens as counted in the first chunk.
    pub usage: Usage,
}

/// How the answer ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Finish {
    /// Why.
    pub reason: FinishReason,
    /// Gemini's message about it.
    pub message: Option<String>,
    /// Gemini refused the prompt, and did not begin to answer.
    pub is_prompt_blocked: bool,
    /// Further members of Gemini's answer, for clients that speak Gemini: members of the
    /// candidate as they came (`citationMetadata`, `logprobsResult`, `urlContextMetadata`).
    pub metadata: Vec<(Cow<'static, str>, Raw<'static>)>,
    /// Further candidates, in the order of their index, where Gemini gave several. Dialects without
    /// several choices leave them out.
    pub candidates: Vec<super::Answer>,
    /// Tokens of the whole answer.
    pub usage: Usage,
    /// Losses on the way back: arguments mended, calls left out because the client wants one at
    /// a time.
    pub losses: super::Losses,
}

/// Why the answer ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FinishReason {
    /// The model has said all, or came to a stop sequence.
    #[default]
    Stop,
    /// The model waits for results of its calls.
    ToolCalls,
    /// The limit was reached.
    MaxTokens,
    /// Gemini will not say it; its own word for why (`SAFETY`, `PROHIBITED_CONTENT`, …).
    Blocked(String),
}

/// Tokens, as Gemini counts them. `None`: it did not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// In the prompt, cached ones included.
    pub prompt: Option<u64>,
    /// In the prompt, from the cache.
    pub cached: Option<u64>,
    /// In the answer, thoughts not included.
    pub candidates: Option<u64>,
    /// In thoughts.
    pub thoughts: Option<u64>,
    /// In results of server-side tools.
    pub tool_use_prompt: Option<u64>,
    /// Of everything.
    pub total: Option<u64>,
}

impl Usage {
    /// Takes over each count that `newer` has.
    pub fn merge(&mut self, newer: &Self) {
        self.each(newer, |mine, theirs| theirs.or(mine));
    }

    /// Adds up the counts of two answers.
    pub fn add(&mut self, more: &Self) {
        self.each(more, |mine, theirs| match (mine, theirs) {
            (Some(mine), Some(theirs)) => Some(mine.saturating_add(theirs)),
            (mine, theirs) => mine.or(theirs),
        });
    }

    /// Makes one count of each two.
    fn each(&mut self, other: &Self, of: fn(Option<u64>, Option<u64>) -> Option<u64>) {
        for (mine, theirs) in [
            (&mut self.prompt, other.prompt),
            (&mut self.cached, other.cached),
            (&mut self.candidates, other.candidates),
            (&mut self.thoughts, other.thoughts),
            (&mut self.tool_use_prompt, other.tool_use_prompt),
            (&mut self.total, other.total),
        ] {
            *mine = of(*mine, theirs);
        }
    }

    /// All that went in, cached or not.
    pub fn input(&self) -> u64 {
        self.prompt.unwrap_or(0) + self.tool_use_prompt.unwrap_or(0)
    }

    /// What went in and was not in the cache.
    pub fn uncached_input(&self) -> u64 {
        self.input().saturating_sub(self.cached.unwrap_or(0))
    }

    /// All that came out, thoughts included.
    pub fn output(&self) -> u64 {
        self.candidates.unwrap_or(0) + self.thoughts.unwrap_or(0)
    }
}

/// Takes events one by one. They borrow from the chunk that they came in.
pub trait Sink {
    /// Takes the next event.
    fn event(&mut self, event: &Event<'_>);
}

impl<F: FnMut(&Event<'_>)> Sink for F {
    fn event(&mut self, event: &Event<'_>) {
        self(event);
    }
}

/// Writes events as a client's stream.
pub trait Encoder {
    /// Writes `event` as the client sees it, whole frames only.
    fn event(&mut self, event: &Event<'_>, out: &mut Vec<u8>);

    /// Writes text that was held back because the next event might have completed it. To be called
    /// when no more events are at hand; the end of the stream does it by itself.
    fn flush(&mut self, _out: &mut Vec<u8>) {}

    /// Whether [`flush`](Self::flush) has something to write.
    fn is_holding(&self) -> bool {
        false
    }

    /// Writes this dialect's sign of life; nothing where the dialect has none.
    fn ping(&mut self, out: &mut Vec<u8>);
}
