//! One request, admitted.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use hyper::body::{Body as _, Incoming};
use toolgate_core::canon::{ErrorReply, Failure, FailureKind, Stamp};
use toolgate_core::translate::{Dialect, encode_error};

use super::encoding::{self, Encoding, too_large};
use crate::admission::Admitted;
use crate::app::{App, Current};
use crate::auth::Client;
use crate::clock::Seed;
use crate::line::{BodyState, Busy};
use crate::receive::{Pace, Unreceived, receive};
use crate::reply::{self, Reply};
use crate::session::{Refused, away};
use crate::tasks::LEAVING;
use crate::turn::Ledger;

/// What every door gets.
#[derive(Clone, Debug)]
pub(crate) struct Visit {
    pub(crate) app: Arc<App>,
    pub(crate) current: Arc<Current>,
    pub(crate) client: Client,
    pub(crate) request_id: String,
    pub(crate) seed: Seed,
    /// The session that the client's headers name: for correlation only, never as authority.
    pub(crate) session: Option<String>,
    /// Held as long as the answer takes; a WebSocket has none between answers.
    pub(crate) room: Option<Arc<Admitted>>,
}

impl Visit {
    /// Opens the request's account.
    pub(crate) fn ledger(&self, dialect: Dialect) -> Ledger {
        Ledger::new(Arc::clone(&self.app), dialect, self.client.owner, &self.request_id)
    }

    /// What the answer gets from the outside world.
    pub(crate) fn stamp(&self) -> Stamp {
        self.seed.stamp()
    }

    /// A failure in the client's dialect, written down.
    pub(crate) fn fail(&self, dialect: Dialect, failure: &Failure) -> Reply {
        self.ledger(dialect).failed(failure);
        let reply = encode_error(dialect, failure, &self.request_id);
        reply::error(self.with_status(reply))
    }

    /// The error with the status of a request that was not received in time, where it is one.
    fn with_status(&self, reply: ErrorReply) -> ErrorReply {
        let connection = self.room.as_ref().and_then(|room| room.connection());
        match connection.map(Busy::body) {
            Some(BodyState::Late) => reply::with_status(reply, StatusCode::REQUEST_TIMEOUT),
            Some(BodyState::Received | BodyState::Unread) | None => reply,
        }
    }

    /// A refusal of the session's in the client's dialect, written down.
    pub(crate) fn refuse(&self, dialect: Dialect, refused: &Refused) -> Reply {
        reply::error(self.refusal(dialect, refused))
    }

    /// The same before it is an HTTP reply.
    pub(crate) fn refusal(&self, dialect: Dialect, refused: &Refused) -> ErrorReply {
        let away = Refused::Failed(away());
        // Whoever cannot look does not say that there is nothing. A thread is different: its client
        // has everything, and sends it again.
        let refused = match refused {
            Refused::Missing { .. } if self.app.store.is_degraded() => &away,
            Refused::Failed(_) | Refused::Missing { .. } | Refused::Thread(_) => refused,
        };
        self.ledger(dialect).failed(&refused.failure());
        self.with_status(refused.reply(dialect, &self.request_id))
    }

    /// Resolves when the gateway is about to end and has no more time for what is not whole.
    async fn leaving(&self) {
        self.app.tasks.leave().await;
        tokio::time::sleep(LEAVING).await;
    }

    /// Receives the body, decompressed, up to the limit.
    pub(crate) async fn body(&self, request: Request<Incoming>) -> Result<Bytes, Failure> {
        let limits = self.current.config.limits;
        let announced = request.body().size_hint().exact();
        let announced = announced.map(|length| usize::try_from(length).unwrap_or(usize::MAX));
        if announced.is_some_and(|length| length > limits.body) {
            return Err(too_large(limits.body));
        }
        // What is not known was refused before.
        let encoding = Encoding::of(request.headers()).ok().flatten();
        let wire = announced.unwrap_or(UNSIZED_START);
        let expected = match encoding {
            Some(_) => wire.saturating_add(encoding::expected(wire, limits.body)),
            None => wire,
        };
        let (owner, admission) = (self.client.owner, &self.app.admission);
        let mut room = admission.body(owner, expected).await?;
        let mut body = request.into_body();
        let more = |length: usize| {
            let room = room.grow(length, limits.body)?;
            Ok(announced.unwrap_or(room))
        };
        let received = receive(&mut body, limits.body, Pace::new(limits.receive), more);
        let received = tokio::select! {
            biased;
            received = received => received,
            () = self.leaving() => {
                let message = "the gateway is about to end, and the body is not whole";
                return Err(Failure::new(FailureKind::Overloaded, message));
            }
        };
        let received = match received {
            Ok(received) => received,
            Err(Unreceived::TooLarge) => return Err(too_large(limits.body)),
            Err(Unreceived::NoRoom(failure)) => return Err(failure),
            Err(Unreceived::Broken(error)) => return Err(unreadable(&error)),
            Err(Unreceived::Late) => {
                self.set_body(BodyState::Late);
                return Err(late(limits.receive));
            }
        };
        self.set_body(BodyState::Received);
        let (body, copies) = match encoding {
            None => room.hold(received),
            Some(encoding) => {
                let place = admission.decompression(owner, expected).await?;
                let decoded = encoding::decode(encoding, received, room, limits.body).await?;
                drop(place);
                decoded
            }
        };
        if let Some(admitted) = &self.room {
            admitted.hold(copies);
            admitted.begin();
        }
        Ok(body)
    }

    fn set_body(&self, state: BodyState) {
        if let Some(connection) = self.room.as_ref().and_then(|room| room.connection()) {
            connection.set_body(state);
        }
    }
}

/// Room that a body of unknown length gets at first.
const UNSIZED_START: usize = 64 << 10;

/// A body or message that was not complete when its deadline passed.
pub(crate) fn late(idle: Duration) -> Failure {
    let message = format!(
        "the request was not received in time: at most {} s without a byte, and at least 16 KiB a second (limits.receive_seconds)",
        idle.as_secs()
    );
    Failure::new(FailureKind::Timeout, message)
}

fn unreadable(error: &dyn std::error::Error) -> Failure {
    Failure::new(FailureKind::InvalidRequest, format!("the body cannot be read: {error}"))
}
