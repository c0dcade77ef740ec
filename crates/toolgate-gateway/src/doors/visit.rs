//! One request, admitted.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http::header::{CONTENT_LENGTH, EXPECT};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;
use toolgate_core::canon::{ErrorReply, Failure, FailureKind, Stamp};
use toolgate_core::translate::Dialect;

use super::encoding::{Encoding, too_large};
use crate::app::{Admitted, App, Current};
use crate::auth::Client;
use crate::clock::Seed;
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
        reply::failure(dialect, failure, &self.request_id)
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
            Refused::Missing { .. } if self.app.store.is_away() => &away,
            Refused::Failed(_) | Refused::Missing { .. } | Refused::Thread(_) => refused,
        };
        self.ledger(dialect).failed(&refused.failure());
        refused.reply(dialect, &self.request_id)
    }

    /// Resolves when the gateway is about to end and has no more time for what is not whole.
    async fn leaving(&self) {
        self.app.tasks.leave().await;
        tokio::time::sleep(LEAVING).await;
    }

    /// Reads the body, up to the limit.
    pub(crate) async fn body(&self, request: Request<Incoming>) -> Result<Bytes, Failure> {
        let limit = self.current.config.limits.body;
        let announced = request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
        let announced = announced.and_then(|text| text.parse::<usize>().ok());
        if announced.is_some_and(|length| length > limit) {
            unread(request).await;
            return Err(too_large(limit));
        }
        // What is not known was refused before.
        let encoding = Encoding::of(request.headers()).ok().flatten();
        let patience = UPLOAD + Duration::from_secs((announced.unwrap_or(limit) >> 14) as u64);
        let mut body = request.into_body();
        let read = tokio::time::timeout(patience, Limited::new(&mut body, limit).collect());
        let read = tokio::select! {
            biased;
            read = read => read,
            () = self.leaving() => {
                let message = "the gateway is about to end, and the body is not whole";
                return Err(Failure::new(FailureKind::Overloaded, message));
            }
        };
        let Ok(read) = read else {
            let message = format!("the body did not come within {} s", patience.as_secs());
            return Err(Failure::new(FailureKind::InvalidRequest, message));
        };
        let body = match read {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                discard(&mut body).await;
                return Err(too_large(limit));
            }
            Err(error) => return Err(unreadable(&*error)),
        };
        let body = match encoding {
            None => body,
            Some(encoding) => self.app.decoders.decode(encoding, body, limit).await?,
        };
        if let Some(room) = &self.room {
            room.begin();
        }
        Ok(body)
    }
}

/// How long a body may take to come, beside a second for each 16 KiB.
const UPLOAD: Duration = Duration::from_secs(30);

/// How long a client may go on sending what nobody will read.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Reads the body of a request that is turned away, unless the client asks first and sends nothing.
pub(crate) async fn unread(request: Request<Incoming>) {
    if !request.headers().contains_key(EXPECT) {
        discard(&mut request.into_body()).await;
    }
}

/// Reads the rest of a body. A connection that is closed before is reset, and the client never sees
/// the answer.
async fn discard(body: &mut Incoming) {
    let rest = async { while let Some(Ok(_)) = body.frame().await {} };
    // Whoever takes longer is cut off.
    drop(tokio::time::timeout(PATIENCE, rest).await);
}

fn unreadable(error: &dyn std::error::Error) -> Failure {
    Failure::new(FailureKind::InvalidRequest, format!("the body cannot be read: {error}"))
}
