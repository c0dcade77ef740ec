//! Deadlines for what clients send, the same for sized, chunked and compressed bodies and for WebSocket
//! messages.

use std::time::Duration;

use bytes::Buf as _;
use http_body::Body;
use http_body_util::BodyExt as _;
use tokio::time::Instant;
use toolgate_core::canon::{Failure, FailureKind};

/// Slowest rate at which a client may send, in bytes a second.
const MIN_RATE: u64 = 16 << 10;

/// Progress of a body or message that is being received.
///
/// It is late after `idle` without a byte, or when it has taken `idle` and a second for each 16 KiB.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    idle: Duration,
    started: Instant,
    last: Instant,
    received: u64,
}

impl Pace {
    /// Starts now.
    pub(crate) fn new(idle: Duration) -> Self {
        let now = Instant::now();
        Self { idle, started: now, last: now, received: 0 }
    }

    /// Counts bytes that have arrived.
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.received = self.received.saturating_add(bytes as u64);
        self.last = Instant::now();
    }

    /// Leaves out time in which the gateway did not read.
    pub(crate) fn skip(&mut self, time: Duration) {
        self.started += time;
        self.last += time;
    }

    /// Time at which it is late.
    pub(crate) fn deadline(&self) -> Instant {
        let total = self.idle + Duration::from_secs(self.received / MIN_RATE);
        (self.last + self.idle).min(self.started + total)
    }
}

/// Reason why a body was not received.
#[derive(Debug)]
pub(crate) enum Unreceived<E, R> {
    /// The connection failed.
    Broken(E),
    /// The deadline passed.
    Late,
    /// There is no room for more.
    NoRoom(R),
    /// The body is longer than it may be.
    TooLarge,
}

/// Receives a body of at most `limit` bytes. `room` makes room for a length, and returns the length that
/// there is room for.
pub(crate) async fn receive<B, R>(
    body: &mut B,
    limit: usize,
    mut pace: Pace,
    mut room: impl FnMut(usize) -> Result<usize, R>,
) -> Result<Vec<u8>, Unreceived<B::Error, R>>
where
    B: Body + Unpin,
{
    let mut out = Vec::new();
    loop {
        let frame = tokio::time::timeout_at(pace.deadline(), body.frame()).await;
        let frame = match frame {
            Err(_) => return Err(Unreceived::Late),
            Ok(None) => return Ok(out),
            Ok(Some(Err(error))) => return Err(Unreceived::Broken(error)),
            Ok(Some(Ok(frame))) => frame,
        };
        // Trailers are of no use here.
        let Ok(mut data) = frame.into_data() else { continue };
        let length = out.len().saturating_add(data.remaining());
        if length > limit {
            return Err(Unreceived::TooLarge);
        }
        pace.advance(data.remaining());
        if length > out.capacity() {
            let capacity = room(length).map_err(Unreceived::NoRoom)?;
            out.reserve_exact(capacity.clamp(length, limit) - out.len());
        }
        while data.has_remaining() {
            let chunk = data.chunk();
            out.extend_from_slice(chunk);
            let length = chunk.len();
            data.advance(length);
        }
    }
}

/// A body or message that was not complete when its deadline passed.
pub(crate) fn late(idle: Duration) -> Failure {
    let message = format!(
        "the request was not received in time: at most {} s without a byte, and at least 16 KiB a second (limits.receive_seconds)",
        idle.as_secs()
    );
    Failure::new(FailureKind::Timeout, message)
}

/// A body or message that is longer than `limit` bytes.
pub(crate) fn too_large(limit: usize) -> Failure {
    let message = format!("the body is larger than {} MiB (limits.body_mib)", limit >> 20);
    Failure::new(FailureKind::TooLarge, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Duration = Duration::from_secs(30);

    /// Deadline in seconds after the start, when this many bytes came after this many seconds.
    fn deadline(after: u64, bytes: usize) -> u64 {
        let mut pace = Pace::new(IDLE);
        pace.advance(bytes);
        pace.last = pace.started + Duration::from_secs(after);
        (pace.deadline() - pace.started).as_secs()
    }

    #[test]
    fn a_body_is_late_when_it_stalls_or_drips() {
        assert_eq!(deadline(0, 0), 30, "nothing comes");
        assert_eq!(deadline(0, 64 << 20), 30, "a stall after much");
        assert_eq!(deadline(29, 1), 30, "a drip");
        assert_eq!(deadline(100, 2 << 20), 130, "slow, but fast enough");
        assert_eq!(deadline(100, 1 << 20), 94, "too slow in all");
    }

    #[test]
    fn time_in_which_nobody_read_does_not_count() {
        let mut pace = Pace::new(IDLE);
        let before = pace.deadline();
        pace.skip(Duration::from_secs(500));
        assert_eq!(pace.deadline() - before, Duration::from_secs(500));
    }
}
