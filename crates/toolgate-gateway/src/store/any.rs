//! Any of the stores, by what the configuration says.

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
    /// An answer as its client got it, by its id.
    Answer,
    /// The signatures of calls, by session, content and number, and the number of the last.
    Content,
    /// What a conversation is called and when it began, by its id.
    Conversation,
    /// The events of an answer that was made in the background, by its id.
    Events,
    /// Calls that the client has not seen, by the tokens of those that it has.
    Hidden,
    /// The answer that an item belongs to, by the item's id.
    Item,
    /// That an answer is being made, by its id.
    Live,
    /// What was said in a conversation, by its id. A list.
    Log,
    /// The gateway's own: the key that authenticates envelopes.
    Own,
    /// The signature of a call, by the call's token.
    Signature,
    /// The tools of a conversation, by its id.
    Tools,
    /// The question that an answer belongs to, by the answer's id.
    Turn,
}

impl Kind {
    /// Whether its entries are lists.
    pub(super) fn is_list(self) -> bool {
        match self {
            Self::Log => true,
            Self::Answer
            | Self::Content
            | Self::Conversation
            | Self::Events
            | Self::Hidden
            | Self::Item
            | Self::Live
            | Self::Own
            | Self::Signature
            | Self::Tools
            | Self::Turn => false,
        }
    }

    /// Its name in stores that people can look into.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::Content => "content",
            Self::Conversation => "conversation",
            Self::Events => "events",
            Self::Hidden => "hidden",
            Self::Item => "item",
            Self::Live => "live",
            Self::Log => "log",
            Self::Own => "own",
            Self::Signature => "signature",
            Self::Tools => "tools",
            Self::Turn => "turn",
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
pub enum Store {
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
        let (bytes, new_key) = (opening.bytes, opening.new_key);
        match kind {
            StoreKind::Memory => Ok((Self::Memory(Memory::new(bytes)), new_key)),
            StoreKind::Valkey(url) => {
                let (valkey, key) = Valkey::open(url.expose(), opening).await?;
                Ok((Self::Valkey(valkey), key))
            }
            StoreKind::Sqlite { path, wanted } => match Sqlite::open(path, opening) {
                Ok((sqlite, key)) => Ok((Self::Sqlite(sqlite), key)),
                Err(error) if *wanted => Err(error),
                Err(error) => {
                    tracing::warn!("{error}; it is kept in memory, and lost at the end");
                    Ok((Self::Memory(Memory::new(bytes)), new_key))
                }
            },
        }
    }

    /// The values under these ids, where there are any.
    pub async fn get(&self, owner: Owner, kind: Kind, ids: &[String]) -> Vec<Option<Bytes>> {
        match self {
            Self::Memory(memory) => memory.get(owner, kind, ids),
            Self::Sqlite(sqlite) => sqlite.get(owner, kind, ids).await,
            Self::Valkey(valkey) => valkey.get(owner, kind, ids).await,
        }
    }

    /// The value under one id.
    pub async fn get_one(&self, owner: Owner, kind: Kind, id: &str) -> Option<Bytes> {
        self.get(owner, kind, &[id.to_owned()]).await.pop().flatten()
    }

    /// Keeps a value for a while, in place of the one before.
    pub fn put(&self, owner: Owner, kind: Kind, id: &str, value: Bytes, keep: Duration) {
        match self {
            Self::Memory(memory) => memory.put(owner, kind, id, value, keep),
            Self::Sqlite(sqlite) => sqlite.put(owner, kind, id, value, keep),
            Self::Valkey(valkey) => valkey.put(owner, kind, id, value, keep),
        }
    }

    /// Adds values to the end of a list, together, and keeps the list for a while from now.
    pub fn append(&self, owner: Owner, kind: Kind, id: &str, values: Vec<Bytes>, keep: Duration) {
        match self {
            Self::Memory(memory) => memory.append(owner, kind, id, values, keep),
            Self::Sqlite(sqlite) => sqlite.append(owner, kind, id, values, keep),
            Self::Valkey(valkey) => valkey.append(owner, kind, id, &values, keep),
        }
    }

    /// The values of a list, oldest first.
    pub async fn list(&self, owner: Owner, kind: Kind, id: &str) -> Vec<Bytes> {
        match self {
            Self::Memory(memory) => memory.list(owner, kind, id),
            Self::Sqlite(sqlite) => sqlite.list(owner, kind, id).await,
            Self::Valkey(valkey) => valkey.list(owner, kind, id).await,
        }
    }

    /// Forgets a value or a list; says whether there was one.
    pub async fn delete(&self, owner: Owner, kind: Kind, id: &str) -> bool {
        match self {
            Self::Memory(memory) => memory.delete(owner, kind, id),
            Self::Sqlite(sqlite) => sqlite.delete(owner, kind, id).await,
            Self::Valkey(valkey) => valkey.delete(owner, kind, id).await,
        }
    }

    /// Whether other processes see it too.
    pub fn is_shared(&self) -> bool {
        match self {
            Self::Memory(_) | Self::Sqlite(_) => false,
            Self::Valkey(_) => true,
        }
    }

    /// Whether only what this process knows can be read: what is not found may be there all the same.
    pub fn is_away(&self) -> bool {
        match self {
            Self::Memory(_) | Self::Sqlite(_) => false,
            Self::Valkey(valkey) => valkey.is_away(),
        }
    }

    /// Waits, not for long, until what was written before would survive the end of this process.
    pub async fn settle(&self) {
        match self {
            Self::Memory(_) => {}
            Self::Sqlite(sqlite) => sqlite.settle().await,
            Self::Valkey(valkey) => valkey.settle().await,
        }
    }
}
