//! Errors of requests.

use std::error::Error as StdError;
use std::sync::Arc;

use toolgate_core::canon::{BadRequest, Failure, FailureKind, Turn};

use crate::Call;

/// Error of a request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request was cancelled by the program.
    #[error("the request was cancelled")]
    Cancelled {
        /// Turns of the completed rounds.
        history: Vec<Turn<'static>>,
    },
    /// Invalid configuration of the client. The program's fault.
    #[error("{0}")]
    Configuration(String),
    /// The request failed. The kind of the failure tells whose fault it is.
    #[error("{failure}")]
    Failed {
        /// The failure.
        failure: Box<Failure>,
        /// Turns of the completed rounds.
        history: Vec<Turn<'static>>,
    },
    /// The answer does not parse as the requested type. The model's fault; a retry may succeed.
    #[error("the answer does not have the requested form: {reason}")]
    Output {
        /// The parse error.
        reason: String,
        /// Text of the answer.
        text: String,
    },
    /// Invalid request. The program's fault.
    #[error("invalid request: {0}")]
    Request(#[from] BadRequest),
    /// A saved conversation or run cannot be written or read.
    #[error("invalid saved conversation: {0}")]
    Saved(String),
    /// A tool or an approval ended the run: [`ToolError::abort`](crate::ToolError::abort),
    /// [`Decision::Abort`](crate::Decision::Abort).
    #[error("the call of `{}` ended the run: {source}", call.name())]
    Tool {
        /// The call.
        call: Box<Call>,
        /// The tool's error, with its own type.
        source: Arc<dyn StdError + Send + Sync>,
        /// Turns of the completed rounds.
        history: Vec<Turn<'static>>,
    },
    /// The response has no open calls. The program's fault.
    #[error("no calls of this response wait for results")]
    NothingToResume,
}

impl Error {
    /// Returns the failure of a failed request.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Failed { failure, .. } => Some(failure),
            Self::Cancelled { .. }
            | Self::Configuration(_)
            | Self::Output { .. }
            | Self::Request(_)
            | Self::Saved(_)
            | Self::Tool { .. }
            | Self::NothingToResume => None,
        }
    }

    /// Returns the kind of the failure of a failed request.
    pub fn kind(&self) -> Option<FailureKind> {
        self.failure().map(|failure| failure.kind)
    }

    /// Whether a retry of the same request may succeed.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Failed { failure, .. } => failure.kind.is_retryable(),
            Self::Output { .. } => true,
            Self::Cancelled { .. }
            | Self::Configuration(_)
            | Self::Request(_)
            | Self::Saved(_)
            | Self::Tool { .. }
            | Self::NothingToResume => false,
        }
    }

    pub(crate) fn failed(failure: Failure) -> Self {
        Self::Failed { failure: Box::new(failure), history: Vec::new() }
    }

    pub(crate) fn bad_request(at: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Request(BadRequest { at: at.into(), reason: reason.into() })
    }
}
