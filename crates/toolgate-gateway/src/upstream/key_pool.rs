//! Pool of upstream API keys: selection, rests after refusals, recovery.
//!
//! ```text
//!            refused            rest over            success
//!   awake ───────────► resting ───────────► probed ───────────► awake
//!                         ▲                    │ refused: twice as long
//!                         └────────────────────┘
//! ```
//!
//! A key that Google refuses for good rests for ten minutes. Then one request probes it; the others
//! stay with the other keys until the probe succeeds.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ring::digest::{SHA256, digest};

use crate::config::Secret;

/// The gateway's own upstream API keys.
#[derive(Debug, Default)]
pub(crate) struct KeyPool {
    keys: Vec<PooledKey>,
    states: Mutex<States>,
}

#[derive(Debug)]
struct PooledKey {
    secret: Secret,
    fingerprint: String,
}

#[derive(Debug, Default)]
struct States {
    /// Index of the key for the next request that is pinned to none.
    next: usize,
    keys: Vec<KeyState>,
}

#[derive(Clone, Copy, Debug, Default)]
struct KeyState {
    /// End of the rest; `None` while the key is in use.
    until: Option<Instant>,
    /// Consecutive refusals, each after the rest that followed the one before.
    refusals: u32,
    /// One request is trying the key again; `until` is the probe's deadline.
    is_probed: bool,
}

/// Why a key rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// A daily quota is used up.
    DailyQuota,
    /// Too many requests; the delay is Google's `RetryInfo`.
    RateLimit(Option<Duration>),
    /// Google refuses the key, or its project, whatever is requested.
    Refused,
}

impl Rest {
    /// The reason's name in logs and metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::DailyQuota => "daily_quota",
            Self::RateLimit(_) => "rate_limit",
            Self::Refused => "refused",
        }
    }
}

/// Rest after a rate limit for which Google names no delay.
const DEFAULT_RATE_LIMIT_REST: Duration = Duration::from_secs(20);
/// Rest of a key whose daily quota is used up.
const DAILY_QUOTA_REST: Duration = Duration::from_secs(30 * 60);
/// First rest of a key that is refused; it doubles with each refusal after a rest.
const FIRST_REFUSED_REST: Duration = Duration::from_secs(10 * 60);
/// Maximum rest of a key.
const MAX_REST: Duration = Duration::from_secs(6 * 3600);
/// Time that a probe has before another request may probe the same key.
const PROBE_TIMEOUT: Duration = Duration::from_secs(60);

impl KeyPool {
    /// Creates a pool of these keys, all awake.
    pub(crate) fn new(keys: Vec<Secret>) -> Self {
        let states = States { next: 0, keys: vec![KeyState::default(); keys.len()] };
        let keys = keys
            .into_iter()
            .map(|secret| PooledKey { fingerprint: fingerprint(secret.expose()), secret });
        Self { keys: keys.collect(), states: Mutex::new(states) }
    }

    /// The number of keys.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether the pool consists of these keys.
    pub(crate) fn holds(&self, keys: &[Secret]) -> bool {
        self.keys.iter().map(|key| &key.secret).eq(keys)
    }

    /// Returns the key with this index.
    pub(crate) fn key(&self, index: usize) -> Option<&Secret> {
        self.keys.get(index).map(|key| &key.secret)
    }

    /// Returns the short name of a key for logs and metrics. It does not reveal the key.
    pub(crate) fn fingerprint(&self, index: usize) -> &str {
        self.keys.get(index).map_or("", |key| &key.fingerprint)
    }

    /// Selects a key that is awake; where all rest, the one whose rest ends first. Requests with the
    /// same `home` start from the same key: signatures are worth nothing to another project's key.
    pub(crate) fn pick(&self, now: Instant, home: Option<u32>) -> Option<usize> {
        let mut states = self.states();
        let count = states.keys.len();
        let start = home.map_or(states.next, |home| home as usize);
        let mut order = (0..count).map(|step| (start % count + step) % count);
        let awake = order.find(|index| states.keys[*index].until.is_none_or(|until| until <= now));
        let index = match awake {
            Some(index) => index,
            None => (0..count).min_by_key(|index| states.keys[*index].until)?,
        };
        if home.is_none() {
            states.next = (index + 1) % count;
        }
        let state = &mut states.keys[index];
        if awake.is_some() && state.refusals > 0 {
            (state.until, state.is_probed) = (Some(now + PROBE_TIMEOUT), true);
        }
        Some(index)
    }

    /// Puts a key to rest. Returns whether another key is awake.
    pub(crate) fn rest(&self, index: usize, rest: Rest, now: Instant) -> bool {
        let mut states = self.states();
        if let Some(state) = states.keys.get_mut(index) {
            state.rest(rest, now);
        }
        states.keys.iter().any(|state| state.until.is_none_or(|until| until <= now))
    }

    /// Takes note that Google accepted a key that was refused before.
    pub(crate) fn accepted(&self, index: usize) {
        let mut states = self.states();
        if let Some(state) = states.keys.get_mut(index)
            && state.refusals > 0
        {
            *state = KeyState::default();
        }
    }

    fn states(&self) -> MutexGuard<'_, States> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeyState {
    fn rest(&mut self, rest: Rest, now: Instant) {
        let is_resting = self.until.is_some_and(|until| until > now) && !self.is_probed;
        let wait = match rest {
            Rest::DailyQuota => DAILY_QUOTA_REST,
            Rest::RateLimit(wait) => wait.unwrap_or(DEFAULT_RATE_LIMIT_REST),
            // Requests that were sent before the rest began do not prolong it.
            Rest::Refused if is_resting && self.refusals > 0 => return,
            Rest::Refused => {
                let doublings = self.refusals.min(16);
                self.refusals = self.refusals.saturating_add(1);
                FIRST_REFUSED_REST * (1 << doublings)
            }
        };
        let until = Some(now + wait.min(MAX_REST));
        if !is_resting || self.until < until {
            self.until = until;
        }
        self.is_probed = false;
    }
}

/// The first 32 bits of a key's SHA-256, in hexadecimal.
fn fingerprint(key: &str) -> String {
    let digest = digest(&SHA256, key.as_bytes());
    digest.as_ref().iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool() -> KeyPool {
        KeyPool::new(["a", "b", "c"].map(Secret::new).to_vec())
    }

    #[test]
    fn keys_take_turns_and_rest() {
        let pool = pool();
        let now = Instant::now();
        let pick = |now| pool.pick(now, None);
        let at_home = |home| pool.pick(now, Some(home));
        assert_eq!(
            [pick(now), pick(now), pick(now), pick(now)],
            [Some(0), Some(1), Some(2), Some(0)]
        );
        assert_eq!([at_home(5), at_home(5), at_home(u32::MAX)], [Some(2), Some(2), Some(0)]);
        assert!(pool.rest(1, Rest::DailyQuota, now));
        assert_eq!(at_home(4), Some(2), "another one while it rests");
        assert_eq!([pick(now), pick(now)], [Some(2), Some(0)]);
        assert!(pool.rest(0, Rest::RateLimit(Some(Duration::from_secs(3))), now));
        assert!(!pool.rest(2, Rest::RateLimit(None), now));
        assert_eq!(pick(now), Some(0), "the one that wakes first");
        assert_eq!(pick(now + Duration::from_secs(25)), Some(2));
        assert_eq!(KeyPool::default().pick(now, None), None);
        assert_eq!(KeyPool::default().pick(now, Some(1)), None);
    }

    #[test]
    fn a_refused_key_is_probed_by_one_request_and_rests_longer_each_time() {
        let pool = pool();
        let mut now = Instant::now();
        for minutes in [10, 20, 40, 80, 160, 320, 360, 360] {
            assert_eq!(pool.pick(now, Some(0)), Some(0), "a probe before {minutes} min of rest");
            assert_eq!(pool.pick(now, Some(0)), Some(if minutes == 10 { 0 } else { 1 }));
            // Of requests that were under way together, one counts.
            assert!(pool.rest(0, Rest::Refused, now) && pool.rest(0, Rest::Refused, now));
            now += Duration::from_secs(minutes * 60 - 1);
            assert_eq!(pool.pick(now, Some(0)), Some(1), "{minutes} min are not over");
            now += Duration::from_secs(1);
        }
        assert_eq!(pool.pick(now, Some(0)), Some(0));
        pool.accepted(0);
        assert_eq!([pool.pick(now, Some(0)), pool.pick(now, Some(0))], [Some(0), Some(0)]);
        pool.rest(0, Rest::Refused, now);
        assert_eq!(pool.pick(now + FIRST_REFUSED_REST, Some(0)), Some(0), "as short as the first");
    }

    #[test]
    fn a_probe_without_an_answer_is_repeated() {
        let pool = pool();
        let now = Instant::now();
        pool.rest(0, Rest::Refused, now);
        let later = now + FIRST_REFUSED_REST;
        assert_eq!([pool.pick(later, Some(0)), pool.pick(later, Some(0))], [Some(0), Some(1)]);
        assert_eq!(pool.pick(later + PROBE_TIMEOUT, Some(0)), Some(0));
    }

    #[test]
    fn a_rate_limit_does_not_shorten_the_rest_of_a_refused_key() {
        let pool = pool();
        let now = Instant::now();
        pool.rest(0, Rest::Refused, now);
        pool.rest(0, Rest::RateLimit(Some(Duration::from_secs(1))), now);
        assert_eq!(pool.pick(now + Duration::from_secs(60), Some(0)), Some(1));
        let long = Duration::from_secs(1 << 40);
        pool.rest(1, Rest::RateLimit(Some(long)), now);
        assert_eq!(pool.pick(now + MAX_REST, Some(1)), Some(1), "no rest lasts for years");
    }

    #[test]
    fn fingerprints_do_not_show_keys() {
        let pool = pool();
        assert_eq!(pool.fingerprint(0), "ca978112");
        assert_eq!(pool.fingerprint(9), "");
    }
}
