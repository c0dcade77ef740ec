//! Reachability of the upstream, for `/readyz`.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use toolgate_transport::ConnectErrorKind;

/// Consecutive connection failures after which the upstream counts as unreachable.
const MIN_FAILURES: u32 = 2;
/// Time after the last failure for which the upstream counts as unreachable. Without it, a gateway that
/// gets no traffic because it is not ready would never be ready again.
const OUTAGE: Duration = Duration::from_secs(30);

/// Connection failures since the last response of the upstream.
#[derive(Debug, Default)]
pub(super) struct Health {
    failures: AtomicU32,
    last: Mutex<Option<(Instant, ConnectErrorKind)>>,
}

impl Health {
    /// Records a response, whatever its status.
    pub(super) fn reached(&self) {
        // Most requests only read.
        if self.failures.load(Ordering::Relaxed) != 0 {
            self.failures.store(0, Ordering::Relaxed);
        }
    }

    /// Records a connection that could not be opened.
    pub(super) fn failed(&self, kind: ConnectErrorKind, now: Instant) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, kind));
        // It cannot overflow in the lifetime of a process.
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the kind of the last failure while the upstream is unreachable.
    pub(super) fn outage(&self, now: Instant) -> Option<ConnectErrorKind> {
        if self.failures.load(Ordering::Relaxed) < MIN_FAILURES {
            return None;
        }
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.filter(|(at, _)| now.saturating_duration_since(*at) < OUTAGE).map(|(_, kind)| kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_begins_with_two_failures_and_ends_by_itself() {
        let (health, start) = (Health::default(), Instant::now());
        assert_eq!(health.outage(start), None);
        health.failed(ConnectErrorKind::Connect, start);
        assert_eq!(health.outage(start), None);
        health.failed(ConnectErrorKind::Dns, start);
        assert_eq!(health.outage(start), Some(ConnectErrorKind::Dns));
        assert_eq!(health.outage(start + OUTAGE), None, "nobody asked since");
        health.failed(ConnectErrorKind::Dns, start + OUTAGE);
        assert_eq!(health.outage(start + OUTAGE), Some(ConnectErrorKind::Dns));
        health.reached();
        assert_eq!(health.outage(start + OUTAGE), None);
    }
}
