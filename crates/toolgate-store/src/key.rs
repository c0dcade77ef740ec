//! Names of entries: owner, kind and id.

use ring::digest::{SHA256, digest};
use ring::hmac;

/// Identity of the client key that an entry belongs to.
///
/// A digest of the key, for use within the process. Stores write a keyed hash of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner([u8; 16]);

impl Owner {
    /// Returns the owner of a client key. Clients without a key share the owner of the empty key.
    pub fn of(client_key: &str) -> Self {
        Self(first_16(digest(&SHA256, client_key.as_bytes()).as_ref()))
    }

    /// Returns the digest, for use in other digests within the process.
    pub fn bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// Computes the owner names that are written to a store.
///
/// The hash is keyed with a secret of the store, so that the names in two stores cannot be compared and
/// client keys cannot be looked up in a precomputed table.
#[derive(Clone, Debug)]
pub(crate) struct OwnerHasher(hmac::Key);

impl OwnerHasher {
    /// Derives the hasher from the store's secret.
    pub(crate) fn new(secret: &[u8; 32]) -> Self {
        let root = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let derived = hmac::sign(&root, b"toolgate owner names");
        Self(hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref()))
    }

    pub(crate) fn name(&self, owner: Owner) -> [u8; 16] {
        first_16(hmac::sign(&self.0, &owner.0).as_ref())
    }
}

fn first_16(hash: &[u8]) -> [u8; 16] {
    std::array::from_fn(|at| hash[at])
}

/// Kind of an entry. Ids are unique per owner and kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A stored answer with its request, by answer id.
    Answer,
    /// Metadata of a conversation, by conversation id.
    Conversation,
    /// The events of a streamed answer, by answer id.
    Events,
    /// Calls of correction rounds, by the ids of the calls that the client sees.
    Hidden,
    /// Marker of an answer in progress, by answer id. Removed when the store is opened and no other
    /// process has it open: the process that wrote the marker is gone.
    Live,
    /// The items of a conversation, by conversation id. A list.
    Log,
    /// A text that several answers share, by its hash.
    Shared,
    /// The signature of a call, by the call's token. Immutable.
    Signature,
    /// The tools of a conversation, by conversation id.
    Tools,
}

impl Kind {
    /// Returns the name that stores use.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::Conversation => "conversation",
            Self::Events => "events",
            Self::Hidden => "hidden",
            Self::Live => "live",
            Self::Log => "log",
            Self::Shared => "shared",
            Self::Signature => "signature",
            Self::Tools => "tools",
        }
    }

    /// Whether entries of this kind never change, so that a copy in memory stays valid.
    pub(crate) fn is_immutable(self) -> bool {
        self == Self::Signature
    }

    /// Whether entries of this kind hold text of a client, which must not be left behind by a delete.
    pub(crate) fn holds_text(self) -> bool {
        self != Self::Live
    }
}

/// Full name of an entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) owner: Owner,
    pub(crate) kind: Kind,
    pub(crate) id: String,
}

impl Key {
    pub(crate) fn new(owner: Owner, kind: Kind, id: &str) -> Self {
        Self { owner, kind, id: id.to_owned() }
    }
}

/// Length of a stamp in bytes.
pub(crate) const STAMP_LEN: usize = 24;

/// Unique name of a list item: when it was appended, by which process, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp(pub(crate) [u8; STAMP_LEN]);

impl Stamp {
    pub(crate) fn new(millis: i64, process: u64, number: u64) -> Self {
        let mut bytes = [0; STAMP_LEN];
        let parts = [millis.unsigned_abs(), process, number];
        for (target, part) in bytes.chunks_exact_mut(8).zip(parts) {
            target.copy_from_slice(&part.to_be_bytes());
        }
        Self(bytes)
    }

    /// Restores a stamp from its [bytes](Self::as_bytes); `None` if the length is wrong.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// Returns the bytes of the stamp.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owner_names_depend_on_the_secret_of_the_store() {
        let (one, two) = (OwnerHasher::new(&[1; 32]), OwnerHasher::new(&[2; 32]));
        let owner = Owner::of("key");
        assert_eq!(one.name(owner), OwnerHasher::new(&[1; 32]).name(owner));
        assert_ne!(one.name(owner), two.name(owner));
        assert_ne!(one.name(owner), one.name(Owner::of("other")));
        assert_ne!(one.name(owner), owner.0, "never the plain digest");
    }
}
