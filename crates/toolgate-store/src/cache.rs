//! Cache of immutable values that were written or read lately.
//!
//! A client that drops the signatures of its calls needs all of them again with every turn.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::key::Key;
use crate::now_millis;

/// Maximum bytes of a generation.
const MAX_GENERATION_BYTES: usize = 4 << 20;
/// Approximate cost of a value beside its text.
const VALUE_OVERHEAD: usize = 160;

/// Values in two generations: when the young one is full, it replaces the old one.
#[derive(Debug, Default)]
pub(crate) struct Cache(Mutex<Generations>);

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<Key, Cached>,
    old: HashMap<Key, Cached>,
    young_bytes: usize,
}

#[derive(Debug)]
struct Cached {
    value: Bytes,
    expires: i64,
}

impl Cache {
    fn lock(&self) -> MutexGuard<'_, Generations> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a value that has not expired.
    pub(crate) fn get(&self, key: &Key) -> Option<Bytes> {
        let mut generations = self.lock();
        if let Some((key, cached)) = generations.old.remove_entry(key) {
            generations.insert(key, cached);
        }
        let cached = generations.young.get(key)?;
        (cached.expires > now_millis()).then(|| cached.value.clone())
    }

    pub(crate) fn put(&self, key: Key, value: Bytes, expires: i64) {
        let mut generations = self.lock();
        generations.old.remove(&key);
        generations.insert(key, Cached { value, expires });
    }
}

impl Generations {
    fn insert(&mut self, key: Key, cached: Cached) {
        if self.young_bytes > MAX_GENERATION_BYTES {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        self.young_bytes += key.id.len() + cached.value.len() + VALUE_OVERHEAD;
        self.young.insert(key, cached);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Owner};

    fn key(id: &str) -> Key {
        Key::new(Owner::of("o"), Kind::Signature, id)
    }

    #[test]
    fn fresh_values_are_found_by_their_whole_key() {
        let (cache, later) = (Cache::default(), now_millis() + 60_000);
        cache.put(key("a"), Bytes::from_static(b"1"), later);
        cache.put(key("old"), Bytes::from_static(b"2"), now_millis());
        assert_eq!(cache.get(&key("a")), Some(Bytes::from_static(b"1")));
        assert_eq!(cache.get(&key("old")), None);
        assert_eq!(cache.get(&Key::new(Owner::of("p"), Kind::Signature, "a")), None);
    }

    #[test]
    fn values_in_use_stay_and_the_rest_is_bounded() {
        let (cache, later) = (Cache::default(), now_millis() + 60_000);
        let value = Bytes::from(vec![b'x'; 10_000]);
        cache.put(key("used"), value.clone(), later);
        for number in 0..5_000 {
            cache.put(key(&number.to_string()), value.clone(), later);
            assert_eq!(cache.get(&key("used")), Some(value.clone()), "{number}");
        }
        assert_eq!(cache.get(&key("0")), None);
        assert_eq!(cache.get(&key("4999")), Some(value));
        let generations = cache.lock();
        let held = generations.young.len() + generations.old.len();
        assert!(held * 10_000 < 3 * MAX_GENERATION_BYTES, "{held}");
    }
}
