//! Changes, one behind the other, and where they stand.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

use bytes::Bytes;

use super::change::{At, Change, What, changes};
use super::sqlite_file::now;
use super::sqlite_read::Noted;
use crate::auth::Owner;

/// Nothing but the bytes is allocated for a change: what one thread allocates and another frees is slow
/// for both.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    bytes: Vec<u8>,
    count: usize,
    /// Where stands what was last put somewhere, by the hash of where.
    values: HashMap<u64, usize>,
    /// Where stands what was put into maps, by the hash of where a map is.
    maps: Traces,
    /// Where stands what was added to lists, by the hash of where a list is.
    lists: Traces,
    hasher: RandomState,
}

impl Log {
    pub(super) fn add(&mut self, change: &Change<'_>) {
        let start = self.bytes.len();
        change.write(&mut self.bytes);
        self.count += 1;
        match &change.what {
            What::Put(_, notes) => {
                self.values.insert(self.hasher.hash_one(change.at), start);
                for (map, _) in notes {
                    let map = self.hasher.hash_one((change.at.owner, map));
                    self.maps.add(map, start);
                }
            }
            What::Append(_) => self.lists.add(self.hasher.hash_one(change.at), start),
        }
    }

    /// Adds what stands in another.
    pub(super) fn add_all(&mut self, other: &Self) {
        changes(&other.bytes).for_each(|change| self.add(&change));
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many changes there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Forgets everything, and holds so much memory at the most.
    pub(super) fn clear(&mut self, most: usize) {
        self.bytes.clear();
        self.bytes.shrink_to(most);
        self.count = 0;
        self.values.clear();
        self.maps.clear();
        self.lists.clear();
    }

    /// What was put somewhere; `Some(None)`: it is too old already.
    pub(super) fn value(&self, at: At<'_>) -> Option<Option<Bytes>> {
        if self.values.is_empty() {
            return None;
        }
        let start = *self.values.get(&self.hasher.hash_one(at))?;
        let is_it = |change: &Change<'_>| change.at == at;
        let change = self.change(start).filter(is_it);
        // Where two places have the same hash, only a look at everything tells them apart.
        let change = change.or_else(|| changes(&self.bytes).filter(is_it).last())?;
        match change.what {
            What::Put(value, _) => {
                Some((change.until > now()).then(|| Bytes::copy_from_slice(value)))
            }
            What::Append(_) => None,
        }
    }

    /// What was put into a map, the last first, and where it stands. `number`: which map that is to
    /// whoever asks.
    pub(super) fn in_map(
        &self,
        owner: Owner,
        number: usize,
        map: &str,
    ) -> impl Iterator<Item = (usize, Noted)> {
        self.maps.back(self.hasher.hash_one((owner, map))).filter_map(move |start| {
            let Change { at, what: What::Put(_, notes), until } = self.change(start)? else {
                return None;
            };
            let is_here = |(its, _): &&(&str, &str)| (at.owner, *its) == (owner, map);
            let (_, note) = notes.iter().find(is_here)?;
            let (id, note) = (at.id.to_owned(), (*note).to_owned());
            Some((start, Noted { map: number, id, note, until }))
        })
    }

    /// Makes a list what it is with what was added to it.
    pub(super) fn complete(&self, at: At<'_>, list: &mut Vec<Bytes>) {
        let mut places: Vec<usize> = self.lists.back(self.hasher.hash_one(at)).collect();
        places.reverse();
        let mut is_old = false;
        for start in places {
            let Some(change) = self.change(start) else { continue };
            if let What::Append(values) = change.what
                && change.at == at
            {
                // One that is too old begins anew.
                if is_old {
                    list.clear();
                }
                list.extend(values.into_iter().map(Bytes::copy_from_slice));
                is_old = change.until <= now();
            }
        }
        if is_old {
            list.clear();
        }
    }

    fn change(&self, start: usize) -> Option<Change<'_>> {
        Change::read(&mut self.bytes.get(start..)?)
    }
}

/// Places that belong together, by a hash.
#[derive(Clone, Debug, Default)]
struct Traces {
    /// The last step of each trace.
    last: HashMap<u64, usize>,
    /// All steps: a place, and the step before.
    steps: Vec<(usize, Option<usize>)>,
}

impl Traces {
    fn add(&mut self, hash: u64, place: usize) {
        let before = self.last.insert(hash, self.steps.len());
        self.steps.push((place, before));
    }

    /// The places of a trace, the last first.
    fn back(&self, hash: u64) -> impl Iterator<Item = usize> {
        let step = |at: usize| self.steps.get(at).copied();
        let last = self.last.get(&hash).copied().and_then(step);
        let steps = std::iter::successors(last, move |(_, before)| before.and_then(step));
        steps.map(|(place, _)| place)
    }

    fn clear(&mut self) {
        self.last.clear();
        self.steps.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Kind;

    /// Places whose hashes are the same are told apart.
    #[test]
    fn a_hash_can_belong_to_several() {
        let (mut log, owner) = (Log::default(), Owner::of("o"));
        let at = |kind, id| At { owner, kind, id };
        let mut add = |at, what| log.add(&Change { at, what, until: i64::MAX });
        add(at(Kind::Signature, "1"), What::Put(b"a", vec![("m", "")]));
        add(at(Kind::Signature, "2"), What::Put(b"b", vec![("n", "")]));
        add(at(Kind::Log, "l"), What::Append(vec![b"1"]));
        add(at(Kind::Log, "k"), What::Append(vec![b"2"]));
        let hash = log.hasher.hash_one(at(Kind::Signature, "1"));
        let other = log.values[&log.hasher.hash_one(at(Kind::Signature, "2"))];
        log.values.insert(hash, other);
        let (map, place) = (log.hasher.hash_one((owner, "m")), log.maps.steps[1].0);
        log.maps.add(map, place);
        let (list, place) = (log.hasher.hash_one(at(Kind::Log, "l")), log.lists.steps[1].0);
        log.lists.add(list, place);
        assert_eq!(log.value(at(Kind::Signature, "1")), Some(Some(Bytes::from_static(b"a"))));
        let ids: Vec<String> = log.in_map(owner, 0, "m").map(|(_, noted)| noted.id).collect();
        assert_eq!(ids, ["1"]);
        let mut list = Vec::new();
        log.complete(at(Kind::Log, "l"), &mut list);
        assert_eq!(list, ["1"]);
    }
}
