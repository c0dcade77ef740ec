//! The store that the configuration names.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;

use crate::key::{Key, Kind, Owner, Stamp};
use crate::memory::Memory;
use crate::queue::{CallIndex, Change, Write};
use crate::sqlite::Sqlite;
use crate::valkey::Valkey;
use crate::{Metrics, now_millis};

/// Where state is kept.
#[derive(Clone, PartialEq, Eq)]
pub enum Location {
    /// Nowhere: writes are discarded and reads find nothing.
    Off,
    /// In this process.
    Memory,
    /// In a SQLite file.
    Sqlite(PathBuf),
    /// In the Valkey or Redis server at this URL, which may hold a password.
    Valkey(String),
}

/// Settings of a store.
#[derive(Clone, Debug)]
pub struct Options {
    /// Maximum number of bytes that it holds.
    pub max_bytes: u64,
    /// How long entries live that a server returns and this process keeps a copy of.
    pub retention: Duration,
    /// The secret of a store that has none yet.
    pub new_secret: [u8; 32],
    /// Whether the caller can do without the store's secret, so that a server may be away at start.
    pub may_start_away: bool,
    /// Where the store counts.
    pub metrics: Metrics,
}

/// A store that cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot keep state in {place}: {reason}")]
pub struct OpenError {
    pub(crate) place: String,
    pub(crate) reason: String,
}

/// An item of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its unique name.
    pub stamp: Stamp,
    /// Its value; empty once it is erased.
    pub value: Bytes,
}

/// A call to be stored: its signature, and the names under which it is found.
#[derive(Clone, Debug)]
pub struct Call<'c> {
    /// The id of the [`Kind::Signature`] entry.
    pub token: &'c str,
    /// The value of that entry.
    pub signature: Bytes,
    /// Names of the session that the call belongs to.
    pub sessions: &'c [String],
    /// Fingerprint of tool and arguments.
    pub content: String,
    /// The token of the call before it, or a mark of the caller.
    pub previous: &'c str,
}

/// A fingerprint to look for, and the maximum number of calls to return for it, newest first.
#[derive(Clone, Debug)]
pub struct Content {
    /// The fingerprint.
    pub key: String,
    /// Maximum number of calls returned.
    pub limit: usize,
}

/// A call that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundCall {
    /// Index of the session in the query.
    pub session: usize,
    /// Index of the content in the query.
    pub content: usize,
    /// Token of the call.
    pub token: String,
    /// The stored value of [`Call::previous`].
    pub previous: String,
}

/// A store of state.
#[derive(Debug)]
pub struct Store {
    backend: Backend,
    max_bytes: u64,
    written: AtomicU64,
    /// Distinguishes the stamps of this process, and numbers them.
    process: u64,
    stamps: AtomicU64,
    last_seq: AtomicU64,
}

#[derive(Debug)]
enum Backend {
    Off,
    Memory(Memory),
    Sqlite(Box<Sqlite>),
    Valkey(Valkey),
}

impl Store {
    /// Opens a store. Returns the secret that is kept in it, too.
    pub async fn open(
        location: &Location,
        options: Options,
    ) -> Result<(Self, [u8; 32]), OpenError> {
        let (max_bytes, new_secret) = (options.max_bytes, options.new_secret);
        let (backend, secret) = match location {
            Location::Off => (Backend::Off, new_secret),
            Location::Memory => (Backend::Memory(Memory::new(max_bytes)), new_secret),
            Location::Sqlite(path) => {
                let (sqlite, secret) = Sqlite::open(path, options)?;
                (Backend::Sqlite(Box::new(sqlite)), secret)
            }
            Location::Valkey(url) => {
                let (valkey, secret) = Valkey::open(url, options).await?;
                (Backend::Valkey(valkey), secret)
            }
        };
        let process = getrandom::u64().map_err(|error| OpenError {
            place: "memory".to_owned(),
            reason: format!("no randomness: {error}"),
        })?;
        let [written, stamps, last_seq] = [0, 0, 0].map(AtomicU64::new);
        Ok((Self { backend, max_bytes, written, process, stamps, last_seq }, secret))
    }

    /// Maximum number of bytes that it holds.
    pub fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    /// Number of bytes that this process has written.
    pub fn written_bytes(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Whether nothing is kept at all.
    pub fn is_off(&self) -> bool {
        matches!(self.backend, Backend::Off)
    }

    /// Whether other processes may use it, too.
    pub fn is_shared(&self) -> bool {
        match &self.backend {
            Backend::Off | Backend::Memory(_) => false,
            Backend::Sqlite(_) | Backend::Valkey(_) => true,
        }
    }

    /// Whether entries may exist that cannot be read now, so that a miss is inconclusive.
    pub fn is_degraded(&self) -> bool {
        match &self.backend {
            Backend::Off | Backend::Memory(_) => false,
            Backend::Sqlite(sqlite) => sqlite.is_degraded(),
            Backend::Valkey(valkey) => valkey.is_degraded(),
        }
    }

    /// Sets a value, to be kept for a time from now.
    pub fn put(&self, owner: Owner, kind: Kind, id: &str, value: Bytes, ttl: Duration) {
        self.count(value.len());
        self.write(Key::new(owner, kind, id), Change::Put(value), ttl);
    }

    /// Stores the signature of a call and indexes the call by session and content.
    pub fn put_call(&self, owner: Owner, call: Call<'_>, ttl: Duration) {
        self.count(call.signature.len());
        let index = CallIndex {
            sessions: call.sessions.to_vec(),
            content: call.content,
            previous: call.previous.to_owned(),
            seq: self.next_seq(),
        };
        let key = Key::new(owner, Kind::Signature, call.token);
        self.write(key, Change::PutCall(call.signature, index), ttl);
    }

    /// Appends values to a list, together, to be kept for a time from now.
    pub fn append(&self, owner: Owner, kind: Kind, id: &str, values: Vec<Bytes>, ttl: Duration) {
        self.count(values.iter().map(Bytes::len).sum());
        let now = now_millis();
        let item = |value| {
            let number = self.stamps.fetch_add(1, Ordering::Relaxed);
            Item { stamp: Stamp::new(now, self.process, number), value }
        };
        let items = values.into_iter().map(item).collect();
        self.write(Key::new(owner, kind, id), Change::Append(items), ttl);
    }

    /// Erases the value of a list item. The item itself stays, with an empty value.
    pub fn erase(&self, owner: Owner, kind: Kind, id: &str, stamp: Stamp) {
        self.write(Key::new(owner, kind, id), Change::Erase(stamp), Duration::ZERO);
    }

    /// Deletes a value or a list.
    pub fn delete(&self, owner: Owner, kind: Kind, id: &str) {
        self.write(Key::new(owner, kind, id), Change::Delete, Duration::ZERO);
    }

    fn write(&self, key: Key, change: Change, ttl: Duration) {
        let expires =
            now_millis().saturating_add(i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX));
        let write = Write { key, change, expires };
        match &self.backend {
            Backend::Off => {}
            Backend::Memory(memory) => memory.apply(&write),
            Backend::Sqlite(sqlite) => sqlite.write(write),
            Backend::Valkey(valkey) => valkey.write(write),
        }
    }

    fn count(&self, bytes: usize) {
        self.written.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// A number that grows with every call of this process, and with time across processes.
    fn next_seq(&self) -> u64 {
        // Microseconds fit a double, which servers use.
        let now = now_millis().unsigned_abs() * 1000;
        let next = |last: u64| Some(now.max(last + 1));
        let last = self.last_seq.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        now.max(last.unwrap_or_default() + 1)
    }

    /// Returns the values under these ids.
    pub async fn get(&self, owner: Owner, kind: Kind, ids: &[String]) -> Vec<Option<Bytes>> {
        match &self.backend {
            Backend::Off => vec![None; ids.len()],
            Backend::Memory(memory) => memory.get(owner, kind, ids),
            Backend::Sqlite(sqlite) => sqlite.get(owner, kind, ids).await,
            Backend::Valkey(valkey) => valkey.get(owner, kind, ids).await,
        }
    }

    /// Returns the value under one id.
    pub async fn get_one(&self, owner: Owner, kind: Kind, id: &str) -> Option<Bytes> {
        self.get(owner, kind, &[id.to_owned()]).await.pop().flatten()
    }

    /// Returns the items of a list, oldest first.
    pub async fn list(&self, owner: Owner, kind: Kind, id: &str) -> Vec<Item> {
        match &self.backend {
            Backend::Off => Vec::new(),
            Backend::Memory(memory) => memory.list(owner, kind, id),
            Backend::Sqlite(sqlite) => sqlite.list(owner, kind, id).await,
            Backend::Valkey(valkey) => valkey.list(owner, kind, id).await,
        }
    }

    /// Whether sessions may have calls. Cheaper than to compute the contents that
    /// [`find_calls`](Self::find_calls) needs.
    pub async fn has_calls(&self, owner: Owner, sessions: &[String]) -> bool {
        match &self.backend {
            Backend::Off => false,
            Backend::Memory(memory) => memory.has_calls(owner, sessions),
            Backend::Sqlite(sqlite) => sqlite.has_calls(owner, sessions).await,
            Backend::Valkey(_) => !sessions.is_empty(),
        }
    }

    /// Returns the newest calls of sessions with these contents, in the order of writing.
    pub async fn find_calls(
        &self,
        owner: Owner,
        sessions: &[String],
        contents: &[Content],
    ) -> Vec<FoundCall> {
        match &self.backend {
            Backend::Off => Vec::new(),
            Backend::Memory(memory) => memory.find_calls(owner, sessions, contents),
            Backend::Sqlite(sqlite) => sqlite.find_calls(owner, sessions, contents).await,
            Backend::Valkey(valkey) => valkey.find_calls(owner, sessions, contents).await,
        }
    }

    /// Waits until the writes before it are committed, up to 5 seconds. Returns whether they are.
    pub async fn flush(&self) -> bool {
        match &self.backend {
            Backend::Off | Backend::Memory(_) => true,
            Backend::Sqlite(sqlite) => sqlite.flush().await,
            Backend::Valkey(valkey) => valkey.flush().await,
        }
    }
}

/// Sorts calls that were found by their order of writing, and keeps the newest of each token per session
/// and content, as many as wanted.
pub(crate) fn newest<S: Ord + Copy>(
    mut found: Vec<(S, FoundCall)>,
    contents: &[Content],
) -> Vec<FoundCall> {
    found.sort_by_key(|(seq, _)| *seq);
    found.reverse();
    let mut seen = std::collections::HashSet::new();
    let mut counts = std::collections::HashMap::<(usize, usize), usize>::new();
    let mut kept: Vec<FoundCall> = Vec::with_capacity(found.len());
    for (_, call) in found {
        let place = (call.session, call.content);
        let count = counts.entry(place).or_default();
        let limit = contents.get(call.content).map_or(0, |content| content.limit);
        if *count < limit && seen.insert((place, call.token.clone())) {
            *count += 1;
            kept.push(call);
        }
    }
    kept.reverse();
    kept
}

impl std::fmt::Debug for Location {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Off => formatter.write_str("Off"),
            Self::Memory => formatter.write_str("Memory"),
            Self::Sqlite(path) => formatter.debug_tuple("Sqlite").field(path).finish(),
            Self::Valkey(_) => formatter.debug_tuple("Valkey").field(&"…").finish(),
        }
    }
}
