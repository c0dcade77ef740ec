//! A store in this process.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{Kind, Listed, Wanted, id_in, last_of, part_of};
use crate::auth::Owner;

/// So many times what is wanted of a map is looked at, and so much of it in any case.
const TIMES: usize = 2;
const LEAST: usize = 64;

/// Entries in memory, bounded by age and size; the oldest go first.
#[derive(Debug)]
pub(super) struct Memory {
    inner: Mutex<Inner>,
    limit: u64,
}

type Key = (Owner, Kind, String);

#[derive(Debug, Default)]
struct Inner {
    entries: BTreeMap<Key, Entry>,
    /// Which entry is the oldest, by number of writing, and until when it is kept.
    order: BTreeMap<u64, (Key, Instant)>,
    written: u64,
    bytes: u64,
}

#[derive(Debug)]
struct Entry {
    values: Vec<Bytes>,
    until: Instant,
    number: u64,
}

/// What a map has of an entry, and the number of its writing.
#[derive(Debug)]
pub(super) struct Noted {
    number: u64,
    pub(super) id: String,
    pub(super) note: Bytes,
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
                entry.values.first().filter(|_| entry.until > now).cloned()
            })
            .collect()
    }

    pub(super) fn list(&self, owner: Owner, kind: Kind, id: &str) -> Vec<Bytes> {
        let inner = self.lock();
        let entry = inner.entries.get(&(owner, kind, id.to_owned()));
        entry
            .filter(|entry| entry.until > Instant::now())
            .map_or_else(Vec::new, |entry| entry.values.clone())
    }

    pub(super) fn in_parts(&self, wanted: Wanted<'_>) -> Vec<Listed> {
        let Wanted { owner, maps, parts } = wanted;
        let text = |note: &Bytes| String::from_utf8_lossy(note).into_owned();
        let mut all: Vec<(u64, Listed)> = Vec::new();
        for (map, name) in maps.iter().enumerate().filter(|(_, name)| self.has(owner, name)) {
            for (part, its) in parts().iter().enumerate() {
                let noted = self.noted_in(owner, &part_of(name, &its.name), its.most).into_iter();
                all.extend(noted.map(|Noted { number, id, note }| {
                    (number, Listed { map, part, id, note: text(&note) })
                }));
            }
        }
        all.sort_unstable_by_key(|(number, _)| *number);
        last_of(all.into_iter().map(|(_, listed)| listed).collect(), wanted)
    }

    /// Whether there is anything in a map.
    fn has(&self, owner: Owner, map: &str) -> bool {
        let first = (owner, Kind::Map, part_of(map, ""));
        let inner = self.lock();
        let next = inner.entries.range(&first..).next();
        next.is_some_and(|((its, kind, id), _)| {
            (*its, *kind) == (owner, Kind::Map) && id.starts_with(&first.2)
        })
    }

    /// What is noted in a map. Of a map that has much more than `most`, what has the last ids: they
    /// begin with the time.
    pub(super) fn noted_in(&self, owner: Owner, map: &str, most: usize) -> Vec<Noted> {
        let (now, first) = (Instant::now(), id_in(map, ""));
        let inner = self.lock();
        // A zero is the next character behind a slash.
        let behind = (owner, Kind::Map, [map, "0"].concat());
        let entries = inner.entries.range((owner, Kind::Map, first.clone())..behind);
        let latest = entries.rev().take(most.saturating_mul(TIMES).max(LEAST));
        let noted = latest.filter(|(_, entry)| entry.until > now).filter_map(|(key, entry)| {
            let note = entry.values.first().cloned().unwrap_or_default();
            Some(Noted { number: entry.number, id: key.2.strip_prefix(&first)?.to_owned(), note })
        });
        noted.collect()
    }

    pub(super) fn put(&self, owner: Owner, kind: Kind, id: &str, value: Bytes, keep: Duration) {
        self.put_in((owner, kind, id), value, &[], keep);
    }

    pub(super) fn put_in(
        &self,
        (owner, kind, id): (Owner, Kind, &str),
        value: Bytes,
        notes: &[(&str, &str)],
        keep: Duration,
    ) {
        let mut inner = self.lock();
        inner.insert((owner, kind, id.to_owned()), vec![value], keep);
        for (map, note) in notes {
            let key = (owner, Kind::Map, id_in(map, id));
            inner.insert(key, vec![Bytes::copy_from_slice(note.as_bytes())], keep);
        }
        inner.shrink(self.limit);
    }

    pub(super) fn append(
        &self,
        owner: Owner,
        kind: Kind,
        id: &str,
        values: Vec<Bytes>,
        keep: Duration,
    ) {
        let key = (owner, kind, id.to_owned());
        let mut inner = self.lock();
        let before = inner.remove(&key).filter(|entry| entry.until > Instant::now());
        let mut all = before.map_or_else(Vec::new, |entry| entry.values);
        all.extend(values);
        inner.insert(key, all, keep);
        inner.shrink(self.limit);
    }

    pub(super) fn delete(&self, owner: Owner, kind: Kind, id: &str) -> bool {
        let removed = self.lock().remove(&(owner, kind, id.to_owned()));
        removed.is_some_and(|entry| entry.until > Instant::now())
    }
}

/// For a store that keeps a copy here of what is kept elsewhere.
impl Memory {
    /// Keeps a value unless there is one.
    pub(super) fn put_if_absent(
        &self,
        owner: Owner,
        kind: Kind,
        id: &str,
        value: Bytes,
        keep: Duration,
    ) {
        let key = (owner, kind, id.to_owned());
        let mut inner = self.lock();
        if !inner.entries.contains_key(&key) {
            inner.insert(key, vec![value], keep);
            inner.shrink(self.limit);
        }
    }

    /// Makes a list what it is elsewhere; values that are here only go to its end. Values are told
    /// apart by their first `stamp` bytes.
    pub(super) fn merge(
        &self,
        (owner, kind, id): (Owner, Kind, &str),
        mut values: Vec<Bytes>,
        stamp: usize,
        keep: Duration,
    ) {
        let key = (owner, kind, id.to_owned());
        let mut inner = self.lock();
        let before = inner.remove(&key).filter(|entry| entry.until > Instant::now());
        let mut own = before.map_or_else(Vec::new, |entry| entry.values);
        let stamp = |value: &Bytes| value.slice(..stamp.min(value.len()));
        let known: HashSet<Bytes> = values.iter().map(stamp).collect();
        own.retain(|value| !known.contains(&stamp(value)));
        values.extend(own);
        if !values.is_empty() {
            inner.insert(key, values, keep);
            inner.shrink(self.limit);
        }
    }

    /// Everything, oldest first, and how long it is to be kept from now.
    pub(super) fn all(&self) -> Vec<Kept> {
        let now = Instant::now();
        let inner = self.lock();
        let kept = |(key, _): &(Key, Instant)| {
            let entry = inner.entries.get(key)?;
            let (owner, kind, id) = key.clone();
            let left = entry.until.checked_duration_since(now)?;
            Some(Kept { owner, kind, id, values: entry.values.clone(), left })
        };
        inner.order.values().filter_map(kept).collect()
    }
}

/// An entry and how long it is to be kept from now.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) owner: Owner,
    pub(super) kind: Kind,
    pub(super) id: String,
    pub(super) values: Vec<Bytes>,
    pub(super) left: Duration,
}

impl Inner {
    fn remove(&mut self, key: &Key) -> Option<Entry> {
        let entry = self.entries.remove(key)?;
        self.forget(key, &entry);
        Some(entry)
    }

    /// Keeps values in place of those before.
    fn insert(&mut self, key: Key, values: Vec<Bytes>, keep: Duration) {
        self.written += 1;
        let (number, until) = (self.written, Instant::now() + keep);
        self.bytes += cost(&key, &values);
        let before = self.entries.insert(key.clone(), Entry { values, until, number });
        if let Some(before) = before {
            self.forget(&key, &before);
        }
        self.order.insert(number, (key, until));
    }

    /// An entry is no longer there.
    fn forget(&mut self, key: &Key, entry: &Entry) {
        self.bytes = self.bytes.saturating_sub(cost(key, &entry.values));
        self.order.remove(&entry.number);
    }

    /// Lets go of what is too old or too much. Entries live about equally long, so the oldest are
    /// also the first to expire.
    fn shrink(&mut self, limit: u64) {
        let now = Instant::now();
        while let Some((_, (key, until))) = self.order.first_key_value() {
            if *until > now && self.bytes <= limit {
                return;
            }
            let key = key.clone();
            self.remove(&key);
        }
    }
}

fn cost(key: &Key, values: &[Bytes]) -> u64 {
    let held: usize = values.iter().map(|value| value.len() + size_of::<Bytes>()).sum();
    (2 * key.2.len() + held) as u64 + OVERHEAD
}
