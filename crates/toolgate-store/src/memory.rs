//! Store in this process, and local copy of a store on a server.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::key::{Key, Kind, Owner, Stamp};
use crate::now_millis;
use crate::queue::{CallIndex, Change, Write};
use crate::store::{Content, FoundCall, Item, newest};

/// Approximate cost of an entry beside its text.
const ENTRY_OVERHEAD: usize = 256;
/// Approximate cost of an item beside its value.
const ITEM_OVERHEAD: usize = 64;

/// Entries in memory, bounded by age and size.
#[derive(Debug)]
pub(crate) struct Memory {
    state: Mutex<State>,
    max_bytes: u64,
}

#[derive(Debug, Default)]
struct State {
    entries: BTreeMap<Key, Entry>,
    /// Tokens by owner, session, content and position in the order of writing.
    calls: BTreeMap<(Owner, String, String, u64), String>,
    /// Entries in the order of their last write.
    order: BTreeMap<u64, Key>,
    owners: HashMap<Owner, Usage>,
    /// Owners by bytes in use.
    by_bytes: BTreeSet<(u64, Owner)>,
    bytes: u64,
    last_write: u64,
}

#[derive(Debug)]
struct Entry {
    value: Value,
    expires: i64,
    bytes: u64,
    /// Position in [`State::order`].
    written: u64,
}

#[derive(Clone, Debug)]
enum Value {
    Single(Bytes),
    Call(Bytes, CallIndex),
    List(Vec<Item>),
}

/// What an owner uses.
#[derive(Debug, Default)]
struct Usage {
    bytes: u64,
    /// Positions of its entries in [`State::order`].
    written: BTreeSet<u64>,
}

impl Memory {
    pub(crate) fn new(max_bytes: u64) -> Self {
        Self { state: Mutex::default(), max_bytes }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies a write.
    pub(crate) fn apply(&self, write: &Write) {
        let Write { key, change, expires } = write;
        let mut state = self.lock();
        match change {
            Change::Put(value) => state.insert(key.clone(), Value::Single(value.clone()), *expires),
            Change::PutCall(value, index) => {
                let value = Value::Call(value.clone(), index.clone());
                state.insert(key.clone(), value, *expires);
            }
            Change::Append(items) => state.append(key, items, *expires),
            Change::Erase(stamp) => state.erase(key, *stamp),
            Change::Delete => drop(state.remove(key)),
        }
        state.shrink(self.max_bytes);
    }

    pub(crate) fn get(&self, owner: Owner, kind: Kind, ids: &[String]) -> Vec<Option<Bytes>> {
        let (state, now) = (self.lock(), now_millis());
        let get = |id: &String| match &state.fresh(&Key::new(owner, kind, id), now)?.value {
            Value::Single(value) | Value::Call(value, _) => Some(value.clone()),
            Value::List(_) => None,
        };
        ids.iter().map(get).collect()
    }

    pub(crate) fn list(&self, owner: Owner, kind: Kind, id: &str) -> Vec<Item> {
        let state = self.lock();
        match state.fresh(&Key::new(owner, kind, id), now_millis()).map(|entry| &entry.value) {
            Some(Value::List(items)) => items.clone(),
            Some(Value::Single(_) | Value::Call(..)) | None => Vec::new(),
        }
    }

    pub(crate) fn has_calls(&self, owner: Owner, sessions: &[String]) -> bool {
        let state = self.lock();
        sessions.iter().any(|session| {
            let first = (owner, session.clone(), String::new(), 0);
            let next = state.calls.range(first..).next();
            next.is_some_and(|((its, name, ..), _)| (*its, name) == (owner, session))
        })
    }

    pub(crate) fn find_calls(
        &self,
        owner: Owner,
        sessions: &[String],
        contents: &[Content],
    ) -> Vec<FoundCall> {
        let (state, now) = (self.lock(), now_millis());
        let mut found = Vec::new();
        for (session, name) in sessions.iter().enumerate() {
            for (content, wanted) in contents.iter().enumerate() {
                let row = |seq| (owner, name.clone(), wanted.key.clone(), seq);
                let rows = state.calls.range(row(0)..=row(u64::MAX)).rev();
                let fresh = rows.filter_map(|((.., seq), token)| {
                    let key = Key::new(owner, Kind::Signature, token);
                    let Value::Call(_, index) = &state.fresh(&key, now)?.value else { return None };
                    let (token, previous) = (token.clone(), index.previous.clone());
                    Some((*seq, FoundCall { session, content, token, previous }))
                });
                found.extend(fresh.take(wanted.limit));
            }
        }
        newest(found, contents)
    }
}

/// Methods for a store that keeps a local copy of entries read from a server.
impl Memory {
    /// Sets a value unless the entry exists.
    pub(crate) fn put_if_absent(&self, key: Key, value: Bytes, expires: i64) {
        let mut state = self.lock();
        if !state.entries.contains_key(&key) {
            state.insert(key, Value::Single(value), expires);
            state.shrink(self.max_bytes);
        }
    }

    /// Adds the names of a call that a server returned, without its signature.
    pub(crate) fn put_call_if_absent(&self, key: Key, index: CallIndex, expires: i64) {
        let mut state = self.lock();
        let is_known = match state.entries.get(&key).map(|entry| &entry.value) {
            Some(Value::Call(..)) => true,
            Some(Value::Single(_) | Value::List(_)) | None => false,
        };
        if let (false, Some(value)) = (is_known, state.single(&key)) {
            state.insert(key, Value::Call(value, index), expires);
            state.shrink(self.max_bytes);
        }
    }

    /// Replaces a list by that of the server; local items that the server lacks move to its end.
    pub(crate) fn merge(&self, key: Key, mut items: Vec<Item>, expires: i64) {
        let mut state = self.lock();
        let known: HashSet<Stamp> = items.iter().map(|item| item.stamp).collect();
        if let Some(Value::List(own)) = state.remove(&key) {
            items.extend(own.into_iter().filter(|item| !known.contains(&item.stamp)));
        }
        if !items.is_empty() {
            state.insert(key, Value::List(items), expires);
            state.shrink(self.max_bytes);
        }
    }

    pub(crate) fn remove(&self, key: &Key) {
        drop(self.lock().remove(key));
    }

    /// Returns everything as writes, oldest first.
    pub(crate) fn snapshot(&self) -> Vec<Write> {
        let (state, now) = (self.lock(), now_millis());
        let write = |key: &Key| {
            let entry = state.fresh(key, now)?;
            let change = match entry.value.clone() {
                Value::Single(value) => Change::Put(value),
                Value::Call(value, index) => Change::PutCall(value, index),
                Value::List(items) => Change::Append(items),
            };
            Some(Write { key: key.clone(), change, expires: entry.expires })
        };
        state.order.values().filter_map(write).collect()
    }
}

impl State {
    fn fresh(&self, key: &Key, now: i64) -> Option<&Entry> {
        self.entries.get(key).filter(|entry| entry.expires > now)
    }

    fn single(&self, key: &Key) -> Option<Bytes> {
        match &self.entries.get(key)?.value {
            Value::Single(value) => Some(value.clone()),
            Value::Call(..) | Value::List(_) => None,
        }
    }

    fn insert(&mut self, key: Key, value: Value, expires: i64) {
        drop(self.remove(&key));
        let text = match &value {
            Value::Single(value) => value.len(),
            Value::Call(value, index) => {
                for session in &index.sessions {
                    let row = (key.owner, session.clone(), index.content.clone(), index.seq);
                    self.calls.insert(row, key.id.clone());
                }
                value.len() + index.sessions.len() * ENTRY_OVERHEAD
            }
            Value::List(items) => items.iter().map(item_bytes).sum(),
        };
        let bytes = (ENTRY_OVERHEAD + 2 * key.id.len() + text) as u64;
        self.last_write += 1;
        let written = self.last_write;
        self.order.insert(written, key.clone());
        self.account(key.owner, bytes.cast_signed());
        if let Some(usage) = self.owners.get_mut(&key.owner) {
            usage.written.insert(written);
        }
        self.entries.insert(key, Entry { value, expires, bytes, written });
    }

    fn append(&mut self, key: &Key, items: &[Item], expires: i64) {
        let is_fresh = self.fresh(key, now_millis()).is_some();
        let Some(Entry { value: Value::List(list), expires: until, bytes, written }) =
            self.entries.get_mut(key).filter(|_| is_fresh)
        else {
            return self.insert(key.clone(), Value::List(items.to_vec()), expires);
        };
        let added = items.iter().map(item_bytes).sum::<usize>() as u64;
        list.extend_from_slice(items);
        *until = expires;
        *bytes += added;
        self.last_write += 1;
        let before = std::mem::replace(written, self.last_write);
        self.order.remove(&before);
        self.order.insert(self.last_write, key.clone());
        self.account(key.owner, added.cast_signed());
        if let Some(usage) = self.owners.get_mut(&key.owner) {
            usage.written.remove(&before);
            usage.written.insert(self.last_write);
        }
    }

    fn erase(&mut self, key: &Key, stamp: Stamp) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let Value::List(items) = &mut entry.value else { return };
        let mut freed = 0;
        for item in items.iter_mut().filter(|item| item.stamp == stamp) {
            freed += std::mem::take(&mut item.value).len() as u64;
        }
        entry.bytes -= freed;
        self.account(key.owner, -freed.cast_signed());
    }

    fn remove(&mut self, key: &Key) -> Option<Value> {
        let entry = self.entries.remove(key)?;
        if let Value::Call(_, index) = &entry.value {
            for session in &index.sessions {
                let row = (key.owner, session.clone(), index.content.clone(), index.seq);
                self.calls.remove(&row);
            }
        }
        self.order.remove(&entry.written);
        if let Some(usage) = self.owners.get_mut(&key.owner) {
            usage.written.remove(&entry.written);
        }
        self.account(key.owner, -entry.bytes.cast_signed());
        Some(entry.value)
    }

    /// Adds to what an owner uses.
    fn account(&mut self, owner: Owner, bytes: i64) {
        let usage = self.owners.entry(owner).or_default();
        self.by_bytes.remove(&(usage.bytes, owner));
        usage.bytes = usage.bytes.saturating_add_signed(bytes);
        if usage.bytes == 0 {
            self.owners.remove(&owner);
        } else {
            self.by_bytes.insert((usage.bytes, owner));
        }
        self.bytes = self.bytes.saturating_add_signed(bytes);
    }

    /// Removes expired entries from the old end, and evicts while there is too much.
    fn shrink(&mut self, max_bytes: u64) {
        let now = now_millis();
        while let Some(key) = self.order.first_key_value().map(|(_, key)| key)
            && self.entries.get(key).is_none_or(|entry| entry.expires <= now)
        {
            let key = key.clone();
            drop(self.remove(&key));
        }
        while self.bytes > max_bytes {
            let Some(key) = self.victim(max_bytes) else { return };
            drop(self.remove(&key));
        }
    }

    /// The oldest entry of the owner that uses most. Never the newest entry of all, unless it is a list
    /// that has outgrown the store.
    fn victim(&self, max_bytes: u64) -> Option<Key> {
        let (newest, newest_key) = self.order.last_key_value()?;
        let oldest = |(_, owner): &(u64, Owner)| self.owners.get(owner)?.written.first();
        let mut candidates = self.by_bytes.iter().rev().filter_map(oldest);
        if let Some(written) = candidates.find(|written| *written != newest) {
            return self.order.get(written).cloned();
        }
        let entry = self.entries.get(newest_key)?;
        let is_outgrown = matches!(entry.value, Value::List(_)) && entry.bytes > max_bytes / 2;
        is_outgrown.then(|| newest_key.clone())
    }
}

fn item_bytes(item: &Item) -> usize {
    item.value.len() + ITEM_OVERHEAD
}
