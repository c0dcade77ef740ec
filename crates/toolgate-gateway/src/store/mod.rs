//! What must outlive a request: signatures, answers, conversations.
//!
//! ```text
//!   owner · kind · id ──► a value            put · get · delete
//!                    └──► a list of values   append · list · delete
//! ```
//!
//! Every entry belongs to the key that made it ([`Owner`]) and cannot be reached by another. Entries
//! have an age limit, the store has a size limit. Writing never blocks: what is written can be read
//! at once, and [`Store::settle`] waits until it would survive.

mod memory;

use std::time::Duration;

use bytes::Bytes;

pub(crate) use memory::Memory;

use crate::auth::Owner;

/// What sort of thing an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// An answer as its client got it, by its id.
    Answer,
    /// The signatures of calls, by session and content. A list.
    Content,
    /// What a conversation is called and when it began, by its id.
    Conversation,
    /// The events of an answer that was made in the background, by its id.
    Events,
    /// The answer that an item belongs to, by the item's id.
    Item,
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

/// Keeps state.
#[derive(Debug)]
pub enum Store {
    /// In this process.
    Memory(Memory),
}

impl Store {
    /// A store in this process that holds at most `bytes`.
    pub fn memory(bytes: u64) -> Self {
        Self::Memory(Memory::new(bytes))
    }

    /// The values under these ids, where there are any.
    pub async fn get(&self, owner: Owner, kind: Kind, ids: &[String]) -> Vec<Option<Bytes>> {
        match self {
            Self::Memory(memory) => memory.get(owner, kind, ids),
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
        }
    }

    /// Adds values to the end of a list, together, and keeps the list for a while from now.
    pub fn append(&self, owner: Owner, kind: Kind, id: &str, values: Vec<Bytes>, keep: Duration) {
        match self {
            Self::Memory(memory) => memory.append(owner, kind, id, values, keep),
        }
    }

    /// The values of a list, oldest first.
    pub async fn list(&self, owner: Owner, kind: Kind, id: &str) -> Vec<Bytes> {
        match self {
            Self::Memory(memory) => memory.list(owner, kind, id),
        }
    }

    /// Forgets a value or a list; says whether there was one.
    pub async fn delete(&self, owner: Owner, kind: Kind, id: &str) -> bool {
        match self {
            Self::Memory(memory) => memory.delete(owner, kind, id),
        }
    }

    /// Whether other processes see it too.
    pub fn is_shared(&self) -> bool {
        match self {
            Self::Memory(_) => false,
        }
    }

    /// Waits, not for long, until what was written before would survive the end of this process.
    pub async fn settle(&self) {
        match self {
            Self::Memory(_) => {}
        }
    }
}
