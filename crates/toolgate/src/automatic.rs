//! Settings of automatic function calling, and approval of calls.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::Value;
use toolgate_core::tool_loop::{AtLimit, OnFault, Options, Steps};

use crate::Call;

/// Settings of automatic function calling.
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
    /// Maximum number of requests: with 10, the model may call nine times and then answer. 0: no call
    /// is run, all calls are returned.
    pub max_rounds: u32,
    /// Behaviour when the last request is answered with calls.
    pub at_limit: AtLimit,
    /// Maximum number of retries of malformed or empty turns, over all rounds.
    pub retries: u32,
    /// Visibility of the rounds before the last one. `None`: hidden in unary answers, shown in streams,
    /// because hiding them would delay the stream.
    pub steps: Option<Steps>,
    /// Handling of calls to unknown tools.
    pub unknown_tools: OnFault,
    /// Handling of calls whose arguments do not fit the schema.
    pub bad_arguments: OnFault,
    /// Whether the response has the turns that were added to the conversation.
    pub keep_history: bool,
}

impl Automatic {
    /// Automatic function calling is off: all calls are returned.
    pub const OFF: Self = Self {
        max_rounds: 0,
        at_limit: AtLimit::ReturnCalls,
        retries: 2,
        steps: None,
        unknown_tools: OnFault::Answer { rounds: u32::MAX },
        bad_arguments: OnFault::Answer { rounds: u32::MAX },
        keep_history: true,
    };

    /// Whether automatic function calling is on.
    pub fn is_on(&self) -> bool {
        self.max_rounds > 0
    }

    pub(crate) fn options(&self, streamed: bool) -> Options {
        let default = if streamed { Steps::Shown } else { Steps::Hidden };
        Options {
            max_rounds: self.max_rounds,
            at_limit: self.at_limit,
            retries: self.retries,
            steps: self.steps.unwrap_or(default),
            unknown_tools: self.unknown_tools,
            bad_arguments: self.bad_arguments,
        }
    }
}

impl Default for Automatic {
    /// Ten requests, then the calls are returned.
    fn default() -> Self {
        Self { max_rounds: 10, ..Self::OFF }
    }
}

/// Decision about a call.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Decision {
    /// Runs the call.
    Allow,
    /// Runs the call with other arguments. The model does not see the change.
    Change(Value),
    /// Does not run the call; the model gets the reason.
    Deny(String),
    /// Ends the run with [`Error::Tool`](crate::Error::Tool); no call of the turn is run.
    Abort(String),
}

/// Approval callback.
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
