//! Errors of sessions.

use toolgate_core::anthropic::{ThreadRefusal, encode_thread_error};
use toolgate_core::canon::{BadRequest, Failure, FailureKind};
use toolgate_core::dialect::ErrorReply;
use toolgate_core::json::ReadError;
use toolgate_core::responses;
use toolgate_core::translate::{Dialect, encode_error};

/// Error of a request that needs the store.
#[derive(Debug)]
pub(crate) enum SessionError {
    /// As any request may be.
    Failed(Failure),
    /// Stored state that does not exist, or has another owner.
    Missing {
        message: String,
        /// The member that names it.
        param: Option<&'static str>,
        code: Option<&'static str>,
    },
    /// The thread cannot go on: the client sends everything again.
    Thread(ThreadRefusal),
}

/// The store is unreachable, and may hold the requested state.
pub(crate) fn away() -> Failure {
    let message = "the store of responses and conversations cannot be reached; try again soon";
    let mut failure = Failure::new(FailureKind::Overloaded, message);
    failure.retry_after_ms = Some(2000);
    failure
}

impl SessionError {
    /// The failure without members that only one dialect has.
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

impl From<Failure> for SessionError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<ReadError> for SessionError {
    fn from(error: ReadError) -> Self {
        BadRequest::from(error).into()
    }
}

impl From<BadRequest> for SessionError {
    fn from(bad: BadRequest) -> Self {
        Self::Failed(bad.into())
    }
}
