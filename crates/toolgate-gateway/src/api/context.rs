//! Context of an admitted request.

use std::sync::Arc;

use toolgate_core::canon::Failure;

use toolgate_core::dialect::ErrorReply;
use toolgate_core::translate::{Dialect, encode_error};

use super::reply::{self, Reply};
use crate::admission::Admitted;
use crate::budget::Reservation;
use crate::offload::heavy;
use crate::sessions::{History, SessionError, Sessions, away};
use crate::state::Gateway;
use crate::turn;

/// Context of an admitted request: the gateway, its turn, and its slot.
#[derive(Clone, Debug)]
pub(crate) struct RequestContext {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) turn: turn::Context,
    /// Held as long as the answer takes. A WebSocket has none between turns.
    pub(crate) admitted: Option<Arc<Admitted>>,
}

impl RequestContext {
    /// Sessions of the client.
    pub(crate) fn sessions(&self) -> Sessions {
        let retention = self.turn.current.config.state_retention;
        Sessions::new(Arc::clone(&self.gateway.sessions), self.turn.client.owner, retention)
    }

    /// Reserves memory for the translation of `size` bytes.
    pub(crate) async fn reserve(&self, size: usize) -> Result<Reservation, Failure> {
        self.turn.services.admission.translation(self.turn.client.owner, size).await
    }

    /// Reserves memory for the translation of a history that was read from the store.
    pub(crate) fn reserve_history(
        &self,
        history: &History,
    ) -> Result<Option<Reservation>, Failure> {
        let size = history.size();
        if size == 0 {
            return Ok(None);
        }
        let admission = &self.turn.services.admission;
        admission.try_translation(self.turn.client.owner, size).map(Some)
    }

    /// Counts and logs a failure; returns it in the client's dialect.
    pub(crate) fn fail(&self, dialect: Dialect, failure: &Failure) -> Reply {
        self.turn.audit(dialect).failed(failure);
        reply::error(encode_error(dialect, failure, &self.turn.request_id))
    }

    /// The same for an error of the session.
    pub(crate) fn refuse(&self, dialect: Dialect, error: &SessionError) -> Reply {
        reply::error(self.refusal(dialect, error))
    }

    /// The same before it is an HTTP reply.
    pub(crate) fn refusal(&self, dialect: Dialect, error: &SessionError) -> ErrorReply {
        let away = SessionError::Failed(away());
        // An unreachable store cannot tell that something is missing. A thread is different: its client has
        // all messages, and sends them again.
        let error = match error {
            SessionError::Missing { .. } if self.turn.services.store.is_degraded() => &away,
            SessionError::Failed(_) | SessionError::Missing { .. } | SessionError::Thread(_) => {
                error
            }
        };
        self.turn.audit(dialect).failed(&error.failure());
        error.reply(dialect, &self.turn.request_id)
    }

    /// Runs a computation over `bytes` bytes, on a translation thread where that is a lot.
    pub(crate) fn compute<F, W>(
        &self,
        bytes: usize,
        work: W,
    ) -> impl Future<Output = Result<F::Output, Failure>> + Send + use<'_, F, W>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
        W: FnOnce(Self) -> F,
    {
        let work = work(self.clone());
        let work = async move {
            heavy(bytes).await;
            work.await
        };
        self.turn.services.offload.run(self.turn.client.owner, work)
    }
}
