//! How calls are dealt with.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::Value;
use toolgate_core::tool_loop::{AtLimit, OnFault, Options, Steps};

use crate::Call;

/// How calls are run, and for how long.
///
/// ```
/// use toolgate::{AtLimit, Automatic};
///
/// let patient = Automatic { max_rounds: 20, at_limit: AtLimit::LastAnswer, ..Automatic::default() };
/// assert!(patient.is_on());
/// assert!(!Automatic::OFF.is_on());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Automatic {
    /// How many requests may be sent: with 10, the model may call nine times and answer. 0: nothing
    /// is run, and every call comes back.
    pub max_rounds: u32,
    /// What happens when the last of them is answered with calls.
    pub at_limit: AtLimit,
    /// How often, in all, a turn that the model spoilt (a call that cannot be read, no word at all)
    /// is asked for again.
    pub retries: u32,
    /// What is shown of the rounds before the last. `None`: nothing in an answer that comes in one
    /// piece; in a stream everything, because hiding it would mean to wait.
    pub steps: Option<Steps>,
    /// What becomes of a call to a tool that there is not.
    pub unknown_tools: OnFault,
    /// What becomes of a call whose arguments do not fit the tool's schema.
    pub bad_arguments: OnFault,
    /// Whether the response keeps the turns that were added to the conversation.
    pub keep_history: bool,
}

impl Automatic {
    /// Nothing is run: every call comes back.
    pub const OFF: Self = Self {
        max_rounds: 0,
        at_limit: AtLimit::ReturnCalls,
        retries: 2,
        steps: None,
        unknown_tools: OnFault::Answer { rounds: u32::MAX },
        bad_arguments: OnFault::Answer { rounds: u32::MAX },
        keep_history: true,
    };

    /// Whether anything is run.
    pub fn is_on(&self) -> bool {
        self.max_rounds > 0
    }

    pub(crate) fn options(&self, streamed: bool) -> Options {
        let usual = if streamed { Steps::Shown } else { Steps::Hidden };
        Options {
            max_rounds: self.max_rounds,
            at_limit: self.at_limit,
            retries: self.retries,
            steps: self.steps.unwrap_or(usual),
            unknown_tools: self.unknown_tools,
            bad_arguments: self.bad_arguments,
        }
    }
}

impl Default for Automatic {
    /// Ten rounds, then the calls come back.
    fn default() -> Self {
        Self { max_rounds: 10, ..Self::OFF }
    }
}

/// Whether a call may be run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Decision {
    /// It may.
    Allow,
    /// It may, with other arguments. The model is not told.
    Change(Value),
    /// It may not; the model is told why.
    Deny(String),
}

/// Decides about calls.
#[derive(Clone)]
pub(crate) struct Approval(Arc<dyn Fn(Call) -> BoxFuture<'static, Decision> + Send + Sync>);

impl Approval {
    pub(crate) fn new<F, R>(decide: F) -> Self
    where
        F: Fn(Call) -> R + Send + Sync + 'static,
        R: Future<Output = Decision> + Send + 'static,
    {
        Self(Arc::new(move |call| decide(call).boxed()))
    }

    pub(crate) async fn decide(&self, call: Call) -> Decision {
        (self.0)(call).await
    }
}

impl fmt::Debug for Approval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Approval")
    }
}
