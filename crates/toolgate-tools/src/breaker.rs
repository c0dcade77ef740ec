//! Back-off and circuit breaker of a server that fails.

use std::time::Duration;

use tokio::time::Instant;

/// First and longest pause after a failure.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Failures within [`WINDOW`] that open the circuit.
const MAX_FAILURES: usize = 5;
const WINDOW: Duration = Duration::from_secs(60);

/// Failures of one server. The pause doubles with each failure and ends with a success; after five
/// failures in a minute it is the longest one at once.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    failures: Vec<Instant>,
    pause: Duration,
    retry_at: Option<Instant>,
}

impl Breaker {
    /// Time at which the server may be tried again, if that is in the future.
    pub(crate) fn blocked_until(&self) -> Option<Instant> {
        self.retry_at.filter(|at| *at > Instant::now())
    }

    /// Whether failures have opened the circuit.
    pub(crate) fn is_open(&self) -> bool {
        self.failures.len() >= MAX_FAILURES && self.blocked_until().is_some()
    }

    pub(crate) fn failed(&mut self) {
        let now = Instant::now();
        self.failures.retain(|at| now - *at < WINDOW);
        self.failures.push(now);
        self.pause = if self.failures.len() >= MAX_FAILURES {
            LONGEST_PAUSE
        } else {
            (self.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE)
        };
        self.retry_at = Some(now + self.pause);
    }

    pub(crate) fn succeeded(&mut self) {
        self.pause = Duration::ZERO;
        self.retry_at = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_double_and_five_failures_open_the_circuit() {
        let mut breaker = Breaker::default();
        let mut pauses = Vec::new();
        for _ in 0..5 {
            breaker.failed();
            let pause = breaker.blocked_until().map(|at| at - Instant::now()).unwrap();
            pauses.push(pause.as_millis());
            tokio::time::advance(pause).await;
            assert!(breaker.blocked_until().is_none());
        }
        assert_eq!(pauses, [50, 100, 200, 400, 30_000]);
        breaker.succeeded();
        assert!(breaker.blocked_until().is_none() && !breaker.is_open());
        tokio::time::advance(WINDOW).await;
        breaker.failed();
        assert!(!breaker.is_open(), "old failures are forgotten");
    }
}
