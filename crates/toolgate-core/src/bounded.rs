//! A cache that is bounded in entries and bytes.

use std::borrow::Borrow;
use std::collections::BTreeMap;

/// Map that is bounded in entries and bytes, and evicts entries that are not used.
///
/// Entries live in two generations. When the young generation is full it becomes the old one, whose
/// entries are evicted unless they are used in the meantime. Nothing is reordered on a hit in the
/// young generation, and nothing is searched for on an eviction.
///
/// ```
/// use toolgate_core::bounded::BoundedCache;
/// let mut cache = BoundedCache::new(4, 1024);
/// for number in 0..100 {
///     cache.insert(number, "value", 8);
///     assert!(cache.len() <= 4);
///     assert!(cache.get(&0).is_some(), "used after every insertion");
/// }
/// assert!(cache.get(&50).is_none());
/// ```
#[derive(Clone, Debug)]
pub struct BoundedCache<K, V> {
    max_entries: usize,
    max_bytes: usize,
    young: Generation<K, V>,
    old: Generation<K, V>,
}

#[derive(Clone, Debug)]
struct Generation<K, V> {
    /// Values with their bytes.
    entries: BTreeMap<K, (V, usize)>,
    bytes: usize,
}

impl<K: Ord, V> BoundedCache<K, V> {
    /// Creates a cache of at most `max_entries` entries with at most `max_bytes` bytes in all.
    pub fn new(max_entries: usize, max_bytes: usize) -> Self {
        Self { max_entries, max_bytes, young: Generation::default(), old: Generation::default() }
    }

    /// Returns the value of a key, and keeps it for another generation.
    pub fn get<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        if !self.young.entries.contains_key(key) {
            let (key, value, bytes) = self.old.remove(key)?;
            self.make_room(bytes);
            self.young.insert(key, value, bytes);
        }
        self.young.entries.get(key).map(|(value, _)| value)
    }

    /// Adds an entry, or replaces the value of its key. `bytes` is its size, as the caller counts it;
    /// an entry of more than half of the cache's bytes is not kept.
    pub fn insert(&mut self, key: K, value: V, bytes: usize) {
        self.young.remove(&key);
        self.old.remove(&key);
        if self.max_entries == 0 || bytes > self.max_bytes / 2 {
            return;
        }
        self.make_room(bytes);
        self.young.insert(key, value, bytes);
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.young.entries.len() + self.old.entries.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of all entries.
    pub fn bytes(&self) -> usize {
        self.young.bytes + self.old.bytes
    }

    fn make_room(&mut self, bytes: usize) {
        let is_full = self.young.entries.len() >= self.max_entries.div_ceil(2);
        if is_full || self.young.bytes + bytes > self.max_bytes / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        // With an odd limit, the two halves would hold one entry too many.
        if self.len() >= self.max_entries {
            self.old = Generation::default();
        }
    }
}

impl<K, V> Default for Generation<K, V> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), bytes: 0 }
    }
}

impl<K: Ord, V> Generation<K, V> {
    fn insert(&mut self, key: K, value: V, bytes: usize) {
        self.entries.insert(key, (value, bytes));
        self.bytes += bytes;
    }

    fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<(K, V, usize)>
    where
        K: Borrow<Q>,
    {
        let (key, (value, bytes)) = self.entries.remove_entry(key)?;
        self.bytes -= bytes;
        Some((key, value, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_and_bytes_are_bounded() {
        for max_entries in [0, 1, 2, 3, 8, 9] {
            let mut cache = BoundedCache::new(max_entries, 100);
            for number in 0_usize..200 {
                cache.insert(number, number, number % 60);
                assert!(cache.len() <= max_entries && cache.bytes() <= 100, "{max_entries}");
                let kept = cache.get(&number).copied();
                let fits = max_entries > 0 && number % 60 <= 50;
                assert_eq!(kept, fits.then_some(number), "{max_entries}");
            }
        }
    }

    #[test]
    fn a_new_value_replaces_the_old_one() {
        let mut cache = BoundedCache::new(4, 100);
        cache.insert("a".to_owned(), 1, 10);
        cache.insert("a".to_owned(), 2, 20);
        assert_eq!(cache.get("a"), Some(&2));
        assert_eq!((cache.len(), cache.bytes()), (1, 20));
        cache.insert("a".to_owned(), 3, 51);
        assert!(cache.get("a").is_none() && cache.is_empty());
    }

    #[test]
    fn used_entries_stay() {
        let mut cache = BoundedCache::new(8, 1000);
        cache.insert(1000, (), 1);
        for number in 0..100 {
            assert!(cache.get(&1000).is_some());
            cache.insert(number, (), 1);
        }
        assert!(cache.get(&50).is_none());
    }
}
