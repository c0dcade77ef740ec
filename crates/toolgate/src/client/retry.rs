//! Retry policy of requests.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use toolgate_core::canon::{Failure, FailureKind};
use toolgate_transport::{Retry, backoff};

/// Retry policy for failed requests: exponential back-off with jitter.
///
/// Each delay is twice the previous one, minus a random share of up to half. A delay that Gemini
/// requests replaces it; if that is longer than `longest`, the failure is returned at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// Maximum number of attempts, the first one included.
    pub attempts: u32,
    /// Delay before the second attempt.
    pub first: Duration,
    /// Maximum delay.
    pub longest: Duration,
}

impl Default for Retries {
    /// Five attempts within about fifteen seconds.
    fn default() -> Self {
        Self { attempts: 5, first: Duration::from_secs(1), longest: Duration::from_secs(60) }
    }
}

impl Retries {
    /// No retries.
    pub const NONE: Self = Self { attempts: 1, first: Duration::ZERO, longest: Duration::ZERO };

    /// Delay after the failed attempt number `attempt` (from 1); `None`: no further attempt.
    pub(crate) fn delay_after(&self, attempt: u32, failure: &Failure) -> Option<Duration> {
        if attempt >= self.attempts || !is_retryable(failure) {
            return None;
        }
        if let Some(ms) = failure.retry_after_ms {
            return Some(Duration::from_millis(ms)).filter(|wait| *wait <= self.longest);
        }
        Some(backoff(self.first, self.longest, attempt.saturating_sub(1), random()))
    }
}

/// Whether a retry of the same request may succeed. The tool loop retries faulty turns of the model.
fn is_retryable(failure: &Failure) -> bool {
    match (Retry::of(failure), failure.kind) {
        // A timeout of our own would recur; one that Gemini reports may not.
        (Retry::Delayed, FailureKind::Timeout) => failure.upstream_status.is_some(),
        (Retry::Immediate, FailureKind::EmptyTurn | FailureKind::MalformedCall) => false,
        (Retry::Delayed | Retry::Immediate, _) => true,
        (Retry::Never, _) => false,
    }
}

/// Random number from the standard library's hash keys.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(0_u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(attempt: u32, failure: &Failure, want: Option<(u64, u64)>) {
        let wait = Retries::default().delay_after(attempt, failure);
        match (wait, want) {
            (None, None) => {}
            (Some(wait), Some((min, max))) => {
                let (min, max) = (Duration::from_millis(min), Duration::from_millis(max));
                assert!((min..=max).contains(&wait), "{wait:?}");
            }
            (wait, want) => panic!("{wait:?} instead of {want:?}"),
        }
    }

    #[test]
    fn delays_double_and_respect_the_server() {
        let overloaded = Failure::new(FailureKind::Overloaded, "");
        check(1, &overloaded, Some((500, 1000)));
        check(2, &overloaded, Some((1000, 2000)));
        check(4, &overloaded, Some((4000, 8000)));
        check(5, &overloaded, None);
        check(1, &Failure::new(FailureKind::InvalidRequest, ""), None);
        check(1, &Failure::new(FailureKind::MalformedCall, ""), None);
        check(1, &Failure::new(FailureKind::Timeout, ""), None);
        check(1, &Failure::new(FailureKind::Unreachable, ""), Some((500, 1000)));
        let with_retry_after = |ms| Failure { retry_after_ms: Some(ms), ..overloaded.clone() };
        check(1, &with_retry_after(47_000), Some((47_000, 47_000)));
        check(1, &with_retry_after(61_000), None);
        check(
            1,
            &Failure { upstream_status: Some(504), ..Failure::new(FailureKind::Timeout, "") },
            Some((500, 1000)),
        );
    }
}
