//! A store in this process.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::Kind;
use crate::auth::Owner;

/// Entries in memory, bounded by age and size; the oldest go first.
#[derive(Debug)]
pub struct Memory {
    inner: Mutex<Inner>,
    limit: u64,
}

type Key = (Owner, Kind, String);

#[derive(Debug, Default)]
struct Inner {
    entries: HashMap<Key, Entry>,
    /// Which entry is the oldest: by number of writing.
    order: BTreeMap<u64, Key>,
    written: u64,
    bytes: u64,
}

#[derive(Debug)]
struct Entry {
    value: Bytes,
    until: Instant,
    number: u64,
}

/// What an entry costs beside its value, roughly.
const OVERHEAD: u64 = 200;

impl Memory {
    pub(super) fn new(limit: u64) -> Self {
        Self { inner: Mutex::default(), limit }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, owner: Owner, kind: Kind, ids: &[String]) -> Vec<Option<Bytes>> {
        let now = Instant::now();
        let inner = self.lock();
        ids.iter()
            .map(|id| {
                let entry = inner.entries.get(&(owner, kind, id.clone()))?;
                (entry.until > now).then(|| entry.value.clone())
            })
            .collect()
    }

    pub(super) fn put(&self, owner: Owner, kind: Kind, id: &str, value: Bytes, keep: Duration) {
        let key = (owner, kind, id.to_owned());
        let mut inner = self.lock();
        inner.remove(&key);
        inner.written += 1;
        let number = inner.written;
        inner.bytes += cost(&key, &value);
        inner.order.insert(number, key.clone());
        inner.entries.insert(key, Entry { value, until: Instant::now() + keep, number });
        inner.shrink(self.limit);
    }

    pub(super) fn delete(&self, owner: Owner, kind: Kind, id: &str) -> bool {
        self.lock().remove(&(owner, kind, id.to_owned()))
    }
}

impl Inner {
    fn remove(&mut self, key: &Key) -> bool {
        let Some(entry) = self.entries.remove(key) else { return false };
        self.bytes = self.bytes.saturating_sub(cost(key, &entry.value));
        self.order.remove(&entry.number);
        true
    }

    /// Lets go of what is too old or too much. Entries live about equally long, so the oldest are
    /// also the first to expire.
    fn shrink(&mut self, limit: u64) {
        let now = Instant::now();
        while let Some((_, key)) = self.order.first_key_value() {
            let key = key.clone();
            let expired = self.entries.get(&key).is_none_or(|entry| entry.until <= now);
            if !expired && self.bytes <= limit {
                return;
            }
            self.remove(&key);
        }
    }
}

fn cost(key: &Key, value: &Bytes) -> u64 {
    (key.2.len() + value.len()) as u64 + OVERHEAD
}
