//! The pool of Gemini keys: who is next, and who has to rest.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::config::Secret;

/// The gateway's own Gemini keys.
#[derive(Debug, Default)]
pub struct KeyPool {
    keys: Vec<Secret>,
    rest: Mutex<Rest>,
}

#[derive(Debug, Default)]
struct Rest {
    next: usize,
    until: Vec<Option<Instant>>,
}

/// Which sort of quota a key has used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quota {
    /// For today, or for good: money.
    Long,
    /// For a moment.
    Short(Option<Duration>),
}

/// How long a key rests when Gemini does not say.
const MOMENT: Duration = Duration::from_secs(20);
/// How long a key rests whose daily quota is used up; then it is tried again.
const LONG: Duration = Duration::from_secs(30 * 60);

impl KeyPool {
    /// A pool of these keys.
    pub fn new(keys: Vec<Secret>) -> Self {
        let rest = Mutex::new(Rest { next: 0, until: vec![None; keys.len()] });
        Self { keys, rest }
    }

    /// Whether there is any key.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether these are the keys of the pool.
    pub fn holds(&self, keys: &[Secret]) -> bool {
        self.keys == keys
    }

    /// The key with this index.
    pub fn key(&self, index: usize) -> Option<&Secret> {
        self.keys.get(index)
    }

    /// The next key that need not rest; where all rest, the one that may work again first. What has a
    /// `home` begins at the same key each time: signatures mean nothing to the key of another project.
    pub fn pick(&self, now: Instant, home: Option<u32>) -> Option<(usize, &Secret)> {
        let mut rest = self.rest.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let count = self.keys.len();
        let start = home.map_or(rest.next, |home| home as usize);
        let awake = (0..count)
            .map(|step| (start + step) % count)
            .find(|index| rest.until[*index].is_none_or(|until| until <= now));
        let index = awake.or_else(|| (0..count).min_by_key(|index| rest.until[*index]))?;
        if home.is_none() {
            rest.next = (index + 1) % count;
        }
        self.keys.get(index).map(|key| (index, key))
    }

    /// Lets a key rest. Says whether another one is awake.
    pub fn exhausted(&self, index: usize, quota: Quota, now: Instant) -> bool {
        let wait = match quota {
            Quota::Long => LONG,
            Quota::Short(wait) => wait.unwrap_or(MOMENT),
        };
        let mut rest = self.rest.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(until) = rest.until.get_mut(index) {
            *until = Some(now + wait);
        }
        rest.until.iter().any(|until| until.is_none_or(|until| until <= now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_take_turns_and_rest() {
        let pool = KeyPool::new(["a", "b", "c"].map(Secret::new).to_vec());
        let now = Instant::now();
        let pick = |now| pool.pick(now, None).map(|(index, _)| index);
        let at_home = |home| pool.pick(now, Some(home)).map(|(index, _)| index);
        assert_eq!(
            [pick(now), pick(now), pick(now), pick(now)],
            [Some(0), Some(1), Some(2), Some(0)]
        );
        assert_eq!([at_home(5), at_home(5), at_home(u32::MAX)], [Some(2), Some(2), Some(0)]);
        assert!(pool.exhausted(1, Quota::Long, now));
        assert_eq!(at_home(4), Some(2), "another one while it rests");
        assert_eq!([pick(now), pick(now)], [Some(2), Some(0)]);
        assert!(pool.exhausted(0, Quota::Short(Some(Duration::from_secs(3))), now));
        assert!(!pool.exhausted(2, Quota::Short(None), now));
        assert_eq!(pick(now), Some(0), "the one that wakes first");
        assert_eq!(pick(now + Duration::from_secs(25)), Some(2));
        assert_eq!(KeyPool::default().pick(now, None), None);
        assert_eq!(KeyPool::default().pick(now, Some(1)), None);
    }
}
