//! Which failures may be retried, and when.

use std::time::Duration;

use toolgate_core::canon::{Failure, FailureKind};

/// Whether a failed request may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// After a delay: Google's `RetryInfo` where it sent one, otherwise [`backoff`].
    Delayed,
    /// At once: the model's turn was faulty or was cut off, and the server is well.
    Immediate,
    /// Never: the same request would fail again.
    Never,
}

impl Retry {
    /// Classifies a failure.
    ///
    /// ```
    /// use toolgate_core::canon::{Failure, FailureKind};
    /// use toolgate_transport::Retry;
    ///
    /// let failure = Failure::new(FailureKind::Overloaded, "the model is overloaded");
    /// assert_eq!(Retry::of(&failure), Retry::Delayed);
    /// ```
    pub fn of(failure: &Failure) -> Self {
        match failure.kind {
            FailureKind::Internal
            | FailureKind::Overloaded
            | FailureKind::RateLimited
            | FailureKind::Timeout
            | FailureKind::Unreachable => Self::Delayed,
            FailureKind::Cut
            | FailureKind::EmptyTurn
            | FailureKind::MalformedCall
            | FailureKind::UpstreamProtocol => Self::Immediate,
            FailureKind::Authentication
            | FailureKind::Billing
            | FailureKind::ContextTooLong
            | FailureKind::InvalidRequest
            | FailureKind::NotFound
            | FailureKind::Permission
            | FailureKind::QuotaExhausted
            | FailureKind::TooLarge
            | FailureKind::Unsupported => Self::Never,
        }
    }
}

/// Delay before retry number `retry` (from 0): `first` doubled each time, at most `longest`, minus a
/// random share of up to half, so that clients do not retry in step. `random` is any random number.
pub fn backoff(first: Duration, longest: Duration, retry: u32, random: u64) -> Duration {
    let doubled = first.saturating_mul(1 << retry.min(20)).min(longest);
    let share = u32::try_from(random % 512).unwrap_or(0) + 512;
    doubled.saturating_mul(share) / 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_longest() {
        let (first, longest) = (Duration::from_secs(1), Duration::from_secs(8));
        for (retry, most) in [(0, 1), (1, 2), (2, 4), (3, 8), (4, 8), (u32::MAX, 8)] {
            let most = Duration::from_secs(most);
            for random in [0, 511, u64::MAX] {
                let delay = backoff(first, longest, retry, random);
                assert!((most / 2..most).contains(&delay), "{retry} {delay:?}");
            }
        }
    }
}
