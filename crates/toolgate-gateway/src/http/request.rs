//! Receives the body of a request: deadlines, limits, decompression.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use hyper::body::{Body as _, Incoming};
use toolgate_core::canon::{Failure, FailureKind};

use super::connection::{BodyState, Connection};
use super::decompress::{self, Encoding};
use crate::admission::Admitted;
use crate::receive::{Pace, Unreceived, late, receive, too_large};
use crate::state::Gateway;
use crate::tasks::DRAIN_GRACE;
use crate::turn::Context;

/// Memory that a body of unknown length gets at first.
const UNSIZED_START: usize = 64 << 10;
/// Largest body that is read though it is not needed.
const MAX_DISCARDED_BYTES: usize = 64 << 10;
/// Deadline for such a body.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(5);

/// Receives a body, decompressed, up to the limit. Its memory is held until the request ends.
pub(super) async fn receive_body(
    gateway: &Gateway,
    context: &Context,
    admitted: &Admitted,
    connection: &Arc<Connection>,
    request: Request<Incoming>,
) -> Result<Request<Bytes>, Failure> {
    let limits = context.current.config.limits;
    let announced = request.body().size_hint().exact();
    let announced = announced.map(|length| usize::try_from(length).unwrap_or(usize::MAX));
    if announced.is_some_and(|length| length > limits.body) {
        return Err(too_large(limits.body));
    }
    // Unknown encodings were refused before.
    let encoding = Encoding::of(request.headers()).ok().flatten();
    let wire = announced.unwrap_or(UNSIZED_START);
    let expected = match encoding {
        Some(_) => wire.saturating_add(decompress::expected(wire, limits.body)),
        None => wire,
    };
    let (owner, admission) = (context.client.owner, &context.services.admission);
    let mut room = admission.body(owner, expected).await?;
    let (head, mut body) = request.into_parts();
    let more = |length: usize| {
        let room = room.grow(length, limits.body)?;
        Ok(announced.unwrap_or(room))
    };
    let received = receive(&mut body, limits.body, Pace::new(limits.receive), more);
    let received = tokio::select! {
        biased;
        received = received => received,
        () = stopping(gateway) => {
            let message = "the gateway is stopping, and the body is incomplete";
            return Err(Failure::new(FailureKind::Overloaded, message));
        }
    };
    let received = match received {
        Ok(received) => received,
        Err(Unreceived::TooLarge) => return Err(too_large(limits.body)),
        Err(Unreceived::NoRoom(failure)) => return Err(failure),
        Err(Unreceived::Broken(error)) => {
            let message = format!("cannot read the body: {error}");
            return Err(Failure::new(FailureKind::InvalidRequest, message));
        }
        Err(Unreceived::Late) => {
            connection.set_body(BodyState::Late);
            return Err(late(limits.receive));
        }
    };
    connection.set_body(BodyState::Received);
    let (body, copies) = match encoding {
        None => room.hold(received),
        Some(encoding) => {
            let place = admission.decompression(owner, expected).await?;
            let decoded = decompress::decode(encoding, received, room, limits.body).await?;
            drop(place);
            decoded
        }
    };
    admitted.hold(copies);
    connection.received();
    Ok(Request::from_parts(head, body))
}

/// Waits until the gateway is stopping and has no more time for incomplete requests.
async fn stopping(gateway: &Gateway) {
    gateway.tasks.leave().await;
    tokio::time::sleep(DRAIN_GRACE).await;
}

/// Reads a short body that is not needed, so that the connection can be used again.
pub(super) async fn discard_body(connection: &Connection, body: &mut Incoming) {
    if connection.body() == BodyState::Unread
        && body.size_hint().lower() <= MAX_DISCARDED_BYTES as u64
        && receive(body, MAX_DISCARDED_BYTES, Pace::new(DISCARD_TIMEOUT), Ok::<_, Infallible>)
            .await
            .is_ok()
    {
        connection.set_body(BodyState::Received);
    }
}
