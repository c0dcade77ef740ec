//! Why there is no answer.

use toolgate_core::canon::{BadRequest, Failure, FailureKind, Turn};

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request was cancelled. The program's will.
    #[error("the request was cancelled")]
    Cancelled {
        /// The rounds that were complete.
        history: Vec<Turn<'static>>,
    },
    /// The client cannot be set up so. The program's fault.
    #[error("{0}")]
    Configuration(String),
    /// Gemini did not answer, or not as it should. Its kind says whose fault it is.
    #[error("{failure}")]
    Failed {
        /// What went wrong.
        failure: Box<Failure>,
        /// The rounds that were complete.
        history: Vec<Turn<'static>>,
    },
    /// The answer is not what it was to be read into. The model's fault; it may do better when it
    /// is asked again.
    #[error("the answer cannot be read: {reason}")]
    Output {
        /// What is wrong with it.
        reason: String,
        /// What it says.
        text: String,
    },
    /// The request cannot be sent. The program's fault.
    #[error("the request cannot be sent: {0}")]
    Request(#[from] BadRequest),
    /// The response waits for nothing. The program's fault.
    #[error("no calls of this response wait for results")]
    NothingToResume,
}

impl Error {
    /// What sort of failure it is, where Gemini has failed.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Failed { failure, .. } => Some(failure),
            Self::Cancelled { .. }
            | Self::Configuration(_)
            | Self::Output { .. }
            | Self::Request(_)
            | Self::NothingToResume => None,
        }
    }

    /// The sort of failure, where Gemini has failed.
    pub fn kind(&self) -> Option<FailureKind> {
        self.failure().map(|failure| failure.kind)
    }

    /// Whether the same request may succeed when it is sent again later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Failed { failure, .. } => failure.kind.is_retryable(),
            Self::Output { .. } => true,
            Self::Cancelled { .. }
            | Self::Configuration(_)
            | Self::Request(_)
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
