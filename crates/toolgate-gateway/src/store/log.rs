//! Changes, one behind the other, and where they stand.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher as _;

use bytes::Bytes;

use super::change::{At, Change, What, changes};
use super::map_and_part;
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
    /// In which maps something was put, by the hash of where a map is.
    maps: HashSet<u64>,
    /// Where stands what was put there, by the hash of where a part of a map is.
    parts: Traces,
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
                let owner = change.at.owner;
                for (name, _) in notes {
                    self.maps.insert(self.hasher.hash_one((owner, map_and_part(name).0)));
                    self.parts.add(self.hasher.hash_one((owner, name)), start);
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
        self.parts.clear();
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

    /// Whether something may have been put into a map.
    pub(super) fn has(&self, owner: Owner, map: &str) -> bool {
        !self.maps.is_empty() && self.maps.contains(&self.hasher.hash_one((owner, map)))
    }

    /// What was put into a part of a map, the last first, and where it stands. `map`, `part`: which these
    /// are to whoever asks.
    pub(super) fn in_part(
        &self,
        owner: Owner,
        (map, part): (usize, usize),
        name: &str,
    ) -> impl Iterator<Item = (usize, Noted)> {
        self.parts.back(self.hasher.hash_one((owner, name))).filter_map(move |start| {
            let Change { at, what: What::Put(_, notes), until } = self.change(start)? else {
                return None;
            };
            let is_here = |(its, _): &&(&str, &str)| (at.owner, *its) == (owner, name);
            let (_, note) = notes.iter().find(is_here)?;
            let (id, note) = (at.id.to_owned(), (*note).to_owned());
            Some((start, Noted { map, part, id, note, until }))
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
        add(at(Kind::Signature, "1"), What::Put(b"a", vec![("m:p", "")]));
        add(at(Kind::Signature, "2"), What::Put(b"b", vec![("n:p", "")]));
        add(at(Kind::Log, "l"), What::Append(vec![b"1"]));
        add(at(Kind::Log, "k"), What::Append(vec![b"2"]));
        let hash = log.hasher.hash_one(at(Kind::Signature, "1"));
        let other = log.values[&log.hasher.hash_one(at(Kind::Signature, "2"))];
        log.values.insert(hash, other);
        let (part, place) = (log.hasher.hash_one((owner, "m:p")), log.parts.steps[1].0);
        log.parts.add(part, place);
        let (list, place) = (log.hasher.hash_one(at(Kind::Log, "l")), log.lists.steps[1].0);
        log.lists.add(list, place);
        assert_eq!(log.value(at(Kind::Signature, "1")), Some(Some(Bytes::from_static(b"a"))));
        let part = log.in_part(owner, (0, 0), "m:p");
        assert_eq!(part.map(|(_, noted)| noted.id).collect::<Vec<_>>(), ["1"]);
        assert!(log.has(owner, "m") && !log.has(owner, "o") && !log.has(Owner::of("p"), "m"));
        let mut list = Vec::new();
        log.complete(at(Kind::Log, "l"), &mut list);
        assert_eq!(list, ["1"]);
    }
}
