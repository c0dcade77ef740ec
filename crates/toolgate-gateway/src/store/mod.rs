//! What must outlive a request: signatures, responses, conversations.
//!
//! Every entry belongs to the key that made it ([`Owner`]) and cannot be reached by another. Entries
//! have an age limit, the store has a size limit. Writing never blocks a stream.

mod memory;

use std::time::Duration;

use bytes::Bytes;

pub(crate) use memory::Memory;

use crate::auth::Owner;

/// What sort of thing an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A conversation's items.
    Conversation,
    /// A response of the Responses API.
    Response,
    /// The signature of a call, by the call's token.
    Signature,
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

    /// Keeps a value for a while.
    pub fn put(&self, owner: Owner, kind: Kind, id: &str, value: Bytes, keep: Duration) {
        match self {
            Self::Memory(memory) => memory.put(owner, kind, id, value, keep),
        }
    }

    /// Forgets a value; says whether there was one.
    pub async fn delete(&self, owner: Owner, kind: Kind, id: &str) -> bool {
        match self {
            Self::Memory(memory) => memory.delete(owner, kind, id),
        }
    }
}
