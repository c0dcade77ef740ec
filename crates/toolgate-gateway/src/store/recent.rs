//! What was read lately, of what never changes.
//!
//! A client that loses the signatures of its calls asks for all of them with every turn.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

use bytes::Bytes;

use super::change::At;
use super::sqlite_file::now;
use crate::auth::Owner;

/// Values by where they are, in two generations: when the young have become many, the old go.
#[derive(Debug, Default)]
pub(super) struct Recent {
    young: HashMap<u64, Value>,
    old: HashMap<u64, Value>,
    /// What the young take.
    bytes: usize,
    hasher: RandomState,
}

#[derive(Debug)]
struct Value {
    owner: Owner,
    id: Box<str>,
    value: Bytes,
    until: i64,
}

/// The most that a generation takes.
const BYTES: usize = 4 << 20;
/// What a value costs beside its bytes, roughly.
const OVERHEAD: usize = 160;

impl Recent {
    /// A value, if it was read lately and is not too old.
    pub(super) fn get(&mut self, at: At<'_>) -> Option<Bytes> {
        let hash = self.hasher.hash_one(at);
        let is_it = |it: &Value| it.owner == at.owner && *it.id == *at.id;
        if let Some(found) = self.young.get(&hash) {
            return is_it(found).then(|| found.fresh()).flatten();
        }
        let found = self.old.remove(&hash).filter(is_it)?;
        let value = found.fresh();
        self.add(hash, found);
        value
    }

    /// Remembers a value.
    pub(super) fn put(&mut self, at: At<'_>, value: Bytes, until: i64) {
        let value = Value { owner: at.owner, id: at.id.into(), value, until };
        self.add(self.hasher.hash_one(at), value);
    }

    fn add(&mut self, hash: u64, value: Value) {
        if self.bytes > BYTES {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        self.bytes += value.id.len() + value.value.len() + OVERHEAD;
        self.young.insert(hash, value);
    }
}

impl Value {
    fn fresh(&self) -> Option<Bytes> {
        (self.until > now()).then(|| self.value.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::*;

    fn at(id: &str) -> At<'_> {
        At { owner: Owner::of("o"), kind: Kind::Signature, id }
    }

    #[test]
    fn what_was_put_is_found() {
        let mut recent = Recent::default();
        let until = now() + 60_000;
        recent.put(at("a"), Bytes::from_static(b"1"), until);
        recent.put(at("old"), Bytes::from_static(b"2"), now());
        assert_eq!(recent.get(at("a")), Some(Bytes::from_static(b"1")));
        assert_eq!(recent.get(at("old")), None);
        assert_eq!(recent.get(At { owner: Owner::of("other"), ..at("a") }), None);
        // Another of the same hash.
        let (a, b) = (recent.hasher.hash_one(at("a")), recent.hasher.hash_one(at("b")));
        let other = recent.young.remove(&a).unwrap();
        recent.young.insert(b, other);
        assert_eq!(recent.get(at("b")), None);
    }

    /// r128: what is asked for stays, the rest goes.
    #[test]
    fn r128_there_is_an_end_to_it() {
        let mut recent = Recent::default();
        let value = Bytes::from(vec![b'x'; 10_000]);
        let until = now() + 60_000;
        recent.put(at("asked for"), value.clone(), until);
        for number in 0..5_000 {
            recent.put(at(&number.to_string()), value.clone(), until);
            assert_eq!(recent.get(at("asked for")), Some(value.clone()), "{number}");
        }
        assert_eq!(recent.get(at("0")), None);
        assert_eq!(recent.get(at("4999")), Some(value));
        let held = recent.young.len() + recent.old.len();
        assert!(held * 10_000 < 3 * BYTES, "{held}");
    }
}
