//! Why a session cannot go on.

use toolgate_core::anthropic::{ThreadRefusal, encode_thread_error};
use toolgate_core::canon::{BadRequest, ErrorReply, Failure, FailureKind};
use toolgate_core::responses;
use toolgate_core::translate::{Dialect, encode_error};

/// Why a request that needs the store is refused.
#[derive(Debug)]
pub(crate) enum Refused {
    /// As any request may be.
    Failed(Failure),
    /// What it names is not there, or belongs to somebody else.
    Missing {
        message: String,
        /// The member that names it.
        param: Option<&'static str>,
        code: Option<&'static str>,
    },
    /// The thread cannot go on: the client sends everything again.
    Thread(ThreadRefusal),
}

/// The store cannot be asked, and what is needed may be in it.
pub(crate) fn away() -> Failure {
    let message = "the store of responses and conversations cannot be reached; try again soon";
    let mut failure = Failure::new(FailureKind::Overloaded, message);
    failure.retry_after_ms = Some(2000);
    failure
}

impl Refused {
    /// The same without what only one dialect can say.
    pub(crate) fn failure(&self) -> Failure {
        match self {
            Self::Failed(failure) => failure.clone(),
            Self::Missing { message, .. } => Failure::new(FailureKind::NotFound, message.clone()),
            Self::Thread(_) => Failure::new(FailureKind::NotFound, "the thread is not known here"),
        }
    }

    /// The error that the client is shown.
    pub(crate) fn reply(&self, dialect: Dialect, request_id: &str) -> ErrorReply {
        if let Self::Thread(refusal) = self {
            return encode_thread_error(*refusal, request_id);
        }
        let mut reply = encode_error(dialect, &self.failure(), request_id);
        if let (Self::Missing { message, param, code }, Dialect::Responses) = (self, dialect) {
            let message = format!("{message} (request id: {request_id})");
            reply.body = responses::error_body(&message, "invalid_request_error", *param, *code);
        }
        reply
    }
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<BadRequest> for Refused {
    fn from(bad: BadRequest) -> Self {
        Self::Failed(bad.into())
    }
}
