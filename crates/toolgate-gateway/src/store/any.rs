//! Any of the stores, by what the configuration says.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;

use super::memory::Memory;
use super::sqlite::Sqlite;
use super::valkey::Valkey;
use crate::auth::Owner;
use crate::config::StoreKind;
use crate::metrics::StoreMetrics;

/// What sort of thing an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// An answer with its question, by its id.
    Answer,
    /// What a conversation is called and when it began, by its id.
    Conversation,
    /// The events of an answer that was made in the background, by its id.
    Events,
    /// Calls that the client has not seen, by the tokens of those that it has.
    Hidden,
    /// That an answer is being made, by its id.
    Live,
    /// What was said in a conversation, by its id. A list.
    Log,
    /// What maps note of entries, by map and id, in stores that cannot keep it with the entries.
    Map,
    /// The gateway's own: the key that authenticates envelopes.
    Own,
    /// A text that answers have in common, by its hash.
    Shared,
    /// The signature of a call, by the call's token.
    Signature,
    /// The tools of a conversation, by its id.
    Tools,
}

/// What is found under an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Value,
    List,
    Map,
}

/// Something that a part of a map has: which of those that were asked for, the id of an entry, and what
/// is noted of it there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub map: usize,
    pub part: usize,
    pub id: String,
    pub note: String,
}

/// The id of what a map has of an entry, where that is an entry of its own. Maps have no slash in
/// their names.
pub(super) fn id_in(map: &str, id: &str) -> String {
    [map, "/", id].concat()
}

/// What somebody looks for in maps.
#[derive(Clone, Copy)]
pub struct Wanted<'w> {
    pub owner: Owner,
    pub maps: &'w [String],
    /// Which parts, once somebody wants to know: a map may have none at all.
    pub parts: &'w (dyn Fn() -> &'w [Part] + Sync),
}

/// A part of a map that is looked for.
#[derive(Clone, Debug)]
pub struct Part {
    pub name: String,
    /// So many of the last that it has.
    pub most: usize,
}

impl fmt::Debug for Wanted<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("Wanted");
        shown.field("owner", &self.owner).field("maps", &self.maps).finish_non_exhaustive()
    }
}

/// The whole name of a part of a map. Names have no colon.
pub(crate) fn part_of(map: &str, part: &str) -> String {
    [map, ":", part].concat()
}

/// The map and the part of it that a name names.
pub(super) fn map_and_part(name: &str) -> (&str, &str) {
    name.split_once(':').unwrap_or((name, ""))
}

/// As many of the last of each part as are wanted.
pub(super) fn last_of(mut all: Vec<Listed>, wanted: Wanted<'_>) -> Vec<Listed> {
    if all.is_empty() {
        return all;
    }
    let parts = (wanted.parts)();
    let mut more: HashMap<(usize, usize), usize> = HashMap::new();
    all.iter().for_each(|it| *more.entry((it.map, it.part)).or_default() += 1);
    all.retain(|it| {
        let more = more.entry((it.map, it.part)).or_default();
        *more -= 1;
        *more < parts[it.part].most
    });
    all
}

impl Kind {
    /// Whether an entry stays what it is as long as it is there.
    pub(super) fn is_constant(self) -> bool {
        matches!(self, Self::Signature)
    }

    /// Whether an entry is read in no time, also from a disk.
    pub(super) fn is_short(self) -> bool {
        match self {
            Self::Conversation | Self::Live | Self::Map | Self::Own | Self::Signature => true,
            Self::Answer | Self::Events | Self::Hidden | Self::Log | Self::Shared | Self::Tools => {
                false
            }
        }
    }

    /// The map that an id leads into, and the id there: what [`id_in`] has joined.
    pub(super) fn split(self, id: &str) -> Option<(&str, &str)> {
        (self.shape() == Shape::Map).then(|| id.split_once('/')).flatten()
    }

    pub(super) fn shape(self) -> Shape {
        match self {
            Self::Log => Shape::List,
            Self::Map => Shape::Map,
            Self::Answer
            | Self::Conversation
            | Self::Events
            | Self::Hidden
            | Self::Live
            | Self::Own
            | Self::Shared
            | Self::Signature
            | Self::Tools => Shape::Value,
        }
    }

    /// Which one has this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        let all = [
            Self::Answer,
            Self::Conversation,
            Self::Events,
            Self::Hidden,
            Self::Live,
            Self::Log,
            Self::Map,
            Self::Own,
            Self::Shared,
            Self::Signature,
            Self::Tools,
        ];
        // What older versions called maps.
        let name = if name == "content" { Self::Map.name() } else { name };
        all.into_iter().find(|kind| kind.name() == name)
    }

    /// Its name in stores that people can look into.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::Conversation => "conversation",
            Self::Events => "events",
            Self::Hidden => "hidden",
            Self::Live => "live",
            Self::Log => "log",
            Self::Map => "map",
            Self::Own => "own",
            Self::Shared => "shared",
            Self::Signature => "signature",
            Self::Tools => "tools",
        }
    }
}

/// The id of the key that authenticates envelopes, among the gateway's own things.
pub(super) const KEY: &str = "signature_key";

/// Nobody's key hashes to this.
pub(super) fn owner_of_the_gateway() -> Owner {
    Owner::of("toolgate itself")
}

/// A store that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot keep state in {place}: {reason}")]
pub(crate) struct StoreError {
    pub(super) place: String,
    pub(super) reason: String,
}

/// Keeps state.
#[derive(Debug)]
pub struct Store {
    place: Place,
    limit: u64,
    written: AtomicU64,
}

/// Where it is kept.
#[derive(Debug)]
enum Place {
    /// In this process.
    Memory(Memory),
    /// In a file.
    Sqlite(Sqlite),
    /// In a server that many gateways share.
    Valkey(Valkey),
}

/// How a store is opened.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    /// The most that it may hold.
    pub(crate) bytes: u64,
    /// How long things are kept.
    pub(crate) keep: Duration,
    /// The key that is kept in it, unless somebody came before.
    pub(crate) new_key: [u8; 32],
    /// Whether that key is not used, so that a server need not be asked for it.
    pub(crate) has_own_key: bool,
    /// What is counted.
    pub(crate) metrics: StoreMetrics,
}

impl Store {
    /// Opens a store, and the key that is kept in it.
    pub(crate) async fn open(
        kind: &StoreKind,
        opening: Opening,
    ) -> Result<(Self, [u8; 32]), StoreError> {
        let (limit, new_key) = (opening.bytes, opening.new_key);
        let (place, key) = match kind {
            StoreKind::Memory => (Place::Memory(Memory::new(limit)), new_key),
            StoreKind::Valkey(url) => {
                let (valkey, key) = Valkey::open(url.expose(), opening).await?;
                (Place::Valkey(valkey), key)
            }
            StoreKind::Sqlite { path, wanted } => match Sqlite::open(path, opening) {
                Ok((sqlite, key)) => (Place::Sqlite(sqlite), key),
                Err(error) if *wanted => return Err(error),
                Err(error) => {
                    tracing::warn!("{error}; it is kept in memory, and lost at the end");
                    (Place::Memory(Memory::new(limit)), new_key)
                }
            },
        };
        Ok((Self { place, limit, written: AtomicU64::new(0) }, key))
    }

    /// The most bytes that it may hold. What was written first goes first.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// How many bytes this process has written.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Whether it ends with this process.
    #[cfg(test)]
    pub(super) fn is_memory(&self) -> bool {
        matches!(self.place, Place::Memory(_))
    }

    /// The values under these ids, where there are any.
    pub async fn get(&self, owner: Owner, kind: Kind, ids: &[String]) -> Vec<Option<Bytes>> {
        match &self.place {
            Place::Memory(memory) => memory.get(owner, kind, ids),
            Place::Sqlite(sqlite) => sqlite.get(owner, kind, ids).await,
            Place::Valkey(valkey) => valkey.get(owner, kind, ids).await,
        }
    }

    /// The value under one id.
    pub async fn get_one(&self, owner: Owner, kind: Kind, id: &str) -> Option<Bytes> {
        self.get(owner, kind, &[id.to_owned()]).await.pop().flatten()
    }

    /// Keeps a value for a while, in place of the one before.
    pub fn put(&self, owner: Owner, kind: Kind, id: &str, value: Bytes, keep: Duration) {
        self.put_in(owner, kind, id, value, &[], keep);
    }

    /// Adds values to the end of a list, together, and keeps the list for a while from now.
    pub fn append(&self, owner: Owner, kind: Kind, id: &str, values: Vec<Bytes>, keep: Duration) {
        let length: usize = values.iter().map(Bytes::len).sum();
        self.written.fetch_add(length as u64, Ordering::Relaxed);
        match &self.place {
            Place::Memory(memory) => memory.append(owner, kind, id, values, keep),
            Place::Sqlite(sqlite) => sqlite.append(owner, kind, id, &values, keep),
            Place::Valkey(valkey) => valkey.append(owner, kind, id, &values, keep),
        }
    }

    /// The values of a list, oldest first.
    pub async fn list(&self, owner: Owner, kind: Kind, id: &str) -> Vec<Bytes> {
        match &self.place {
            Place::Memory(memory) => memory.list(owner, kind, id),
            Place::Sqlite(sqlite) => sqlite.list(owner, kind, id).await,
            Place::Valkey(valkey) => valkey.list(owner, kind, id).await,
        }
    }

    /// Keeps a value for a while, in place of the one before, and notes of it in maps.
    pub fn put_in(
        &self,
        owner: Owner,
        kind: Kind,
        id: &str,
        value: Bytes,
        notes: &[(&str, &str)],
        keep: Duration,
    ) {
        self.written.fetch_add(value.len() as u64, Ordering::Relaxed);
        match &self.place {
            Place::Memory(memory) => memory.put_in((owner, kind, id), value, notes, keep),
            Place::Sqlite(sqlite) => sqlite.put(owner, kind, id, &value, notes, keep),
            Place::Valkey(valkey) => valkey.put_in((owner, kind, id), value, notes, keep),
        }
    }

    /// What was put into parts of maps last, the latest behind the others.
    pub async fn in_parts(&self, wanted: Wanted<'_>) -> Vec<Listed> {
        match &self.place {
            Place::Memory(memory) => memory.in_parts(wanted),
            Place::Sqlite(sqlite) => sqlite.in_parts(wanted).await,
            Place::Valkey(valkey) => valkey.in_parts(wanted).await,
        }
    }

    /// Forgets a value or a list; says whether there was one.
    pub async fn delete(&self, owner: Owner, kind: Kind, id: &str) -> bool {
        match &self.place {
            Place::Memory(memory) => memory.delete(owner, kind, id),
            Place::Sqlite(sqlite) => sqlite.delete(owner, kind, id).await,
            Place::Valkey(valkey) => valkey.delete(owner, kind, id).await,
        }
    }

    /// Whether other processes may see it too.
    pub fn is_shared(&self) -> bool {
        match &self.place {
            Place::Memory(_) => false,
            Place::Sqlite(_) | Place::Valkey(_) => true,
        }
    }

    /// Whether no other process uses it now.
    pub async fn is_alone(&self) -> bool {
        match &self.place {
            Place::Memory(_) => true,
            Place::Sqlite(sqlite) => sqlite.is_alone().await,
            Place::Valkey(_) => false,
        }
    }

    /// Whether only what this process knows can be read: what is not found may be there all the same.
    pub fn is_away(&self) -> bool {
        match &self.place {
            Place::Memory(_) | Place::Sqlite(_) => false,
            Place::Valkey(valkey) => valkey.is_away(),
        }
    }

    /// Waits until all that was written is where others look for it.
    pub async fn flush(&self) {
        match &self.place {
            Place::Memory(_) => {}
            Place::Sqlite(sqlite) => sqlite.flush().await,
            Place::Valkey(valkey) => valkey.settle().await,
        }
    }

    /// Waits, not for long, until what was written before would survive the end of this process.
    /// Who ends at the same time on this thread shares the cost.
    pub async fn settle(&self) {
        if matches!(self.place, Place::Sqlite(_)) {
            tokio::task::yield_now().await;
        }
        self.settle_now().await;
    }

    /// The same at the end of a stream: to let others in would send its last bytes by themselves,
    /// which costs more.
    pub async fn settle_now(&self) {
        match &self.place {
            Place::Memory(_) => {}
            Place::Sqlite(sqlite) => sqlite.settle().await,
            Place::Valkey(valkey) => valkey.settle().await,
        }
    }
}
