//! Asking again.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use toolgate_core::canon::{Failure, FailureKind};

/// How often a request that failed on the way is sent again, and after what time.
///
/// Each wait is twice as long as the one before, less a random part of up to half. Where Gemini
/// says when to come back, that is when; where that is later than `longest`, the failure is
/// returned at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// How often a request is sent, the first time included.
    pub attempts: u32,
    /// How long to wait before the second.
    pub first: Duration,
    /// How long to wait at the most.
    pub longest: Duration,
}

impl Default for Retries {
    /// Five times, within about fifteen seconds.
    fn default() -> Self {
        Self { attempts: 5, first: Duration::from_secs(1), longest: Duration::from_secs(60) }
    }
}

impl Retries {
    /// Never sends anything twice.
    pub const NONE: Self = Self { attempts: 1, first: Duration::ZERO, longest: Duration::ZERO };

    /// How long to wait before the attempt after `attempt` (from 1); `None`: do not.
    pub(crate) fn wait(&self, attempt: u32, failure: &Failure) -> Option<Duration> {
        if attempt >= self.attempts || !helps(failure) {
            return None;
        }
        if let Some(ms) = failure.retry_after_ms {
            return Some(Duration::from_millis(ms)).filter(|wait| *wait <= self.longest);
        }
        let doubled = self.first.saturating_mul(1 << (attempt - 1).min(20)).min(self.longest);
        // Between a half and the whole, so that many clients do not come back at once.
        let share = u32::try_from(random() % 512).unwrap_or(0) + 512;
        Some(doubled.saturating_mul(share) / 1024)
    }
}

/// Whether the same request may fare better. What the model did wrong is the tool loop's to mend.
fn helps(failure: &Failure) -> bool {
    match failure.kind {
        FailureKind::Cut
        | FailureKind::Internal
        | FailureKind::Overloaded
        | FailureKind::RateLimited => true,
        // If it was our patience that ended, it would end again.
        FailureKind::Timeout => failure.upstream_status.is_some(),
        FailureKind::Authentication
        | FailureKind::Billing
        | FailureKind::ContextTooLong
        | FailureKind::EmptyTurn
        | FailureKind::InvalidRequest
        | FailureKind::MalformedCall
        | FailureKind::NotFound
        | FailureKind::Permission
        | FailureKind::QuotaExhausted
        | FailureKind::TooLarge
        | FailureKind::Unsupported
        | FailureKind::UpstreamProtocol => false,
    }
}

/// A number that nobody can guess, from where the standard library takes its own.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(0_u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(attempt: u32, failure: &Failure, want: Option<(u64, u64)>) {
        let wait = Retries::default().wait(attempt, failure);
        match (wait, want) {
            (None, None) => {}
            (Some(wait), Some((least, most))) => {
                let (least, most) = (Duration::from_millis(least), Duration::from_millis(most));
                assert!((least..=most).contains(&wait), "{wait:?}");
            }
            (wait, want) => panic!("{wait:?} instead of {want:?}"),
        }
    }

    #[test]
    fn waits() {
        let overloaded = Failure::new(FailureKind::Overloaded, "");
        check(1, &overloaded, Some((500, 1000)));
        check(2, &overloaded, Some((1000, 2000)));
        check(4, &overloaded, Some((4000, 8000)));
        check(5, &overloaded, None);
        check(1, &Failure::new(FailureKind::InvalidRequest, ""), None);
        check(1, &Failure::new(FailureKind::MalformedCall, ""), None);
        check(1, &Failure::new(FailureKind::Timeout, ""), None);
        let told = |ms| Failure { retry_after_ms: Some(ms), ..overloaded.clone() };
        check(1, &told(47_000), Some((47_000, 47_000)));
        check(1, &told(61_000), None);
        check(
            1,
            &Failure { upstream_status: Some(504), ..Failure::new(FailureKind::Timeout, "") },
            Some((500, 1000)),
        );
    }
}
