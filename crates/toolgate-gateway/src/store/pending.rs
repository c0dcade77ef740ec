//! What was written and is not in its place yet, and what the file's thread is asked for.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher as _;
use std::time::Instant;

use bytes::Bytes;
use tokio::sync::oneshot;

use super::Kind;
use super::change::{At, Change, What, changes};
use super::sqlite_file::{Kept, Noted, now};
use crate::auth::Owner;

/// What waits for the thread.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// The changes, one behind the other. Nothing else is allocated for them: what one thread
    /// allocates and another frees is slow for both.
    log: Vec<u8>,
    count: usize,
    /// How much of the log is in the tail.
    saved: usize,
    /// Where in the log stands what was last put somewhere, by the hash of where.
    values: HashMap<u64, usize>,
    /// Where in the log stands what was put into maps, by the hash of where a map is.
    maps: Traces,
    /// Where in the log stands what was added to lists, by the hash of where a list is.
    lists: Traces,
    hasher: RandomState,
    /// When the first of them came.
    pub(super) since: Option<Instant>,
    /// What the thread has in its hands: it may come back.
    held: Held,
    asks: Vec<Ask>,
    is_closed: bool,
}

/// Places in a log that belong together, by a hash.
#[derive(Debug, Default)]
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
        let step = |at: Option<&usize>| at.and_then(|at| self.steps.get(*at)).copied();
        let steps = std::iter::successors(step(self.last.get(&hash)), move |(_, before)| {
            step(before.as_ref())
        });
        steps.map(|(place, _)| place)
    }

    fn clear(&mut self) {
        self.last.clear();
        self.steps.clear();
    }
}

/// How much was taken, and how much of it is in the tail.
#[derive(Debug, Default)]
struct Held {
    count: usize,
    bytes: usize,
    saved: usize,
}

/// What somebody waits for.
#[derive(Debug)]
pub(super) enum Ask {
    Read(Read),
    Later(Later),
}

/// What is read, where it is.
#[derive(Debug)]
pub(super) enum Read {
    Get(Owner, Kind, Vec<String>, oneshot::Sender<Vec<Option<Kept>>>),
    List(Owner, Kind, String, oneshot::Sender<Vec<Bytes>>),
    Maps(Owner, Vec<String>, usize, oneshot::Sender<Vec<Noted>>),
}

/// What can be done only when all that was written before is in its place.
#[derive(Debug)]
pub(super) enum Later {
    Delete(Owner, Kind, String, oneshot::Sender<bool>),
    Flush(oneshot::Sender<()>),
}

/// More does not wait: that happens only when the disk hangs or fails.
const CHANGES: usize = 65_536;
const BYTES: usize = 64 << 20;

impl Pending {
    /// Adds something; says whether there was room for it.
    pub(super) fn add(&mut self, change: &Change<'_>) -> bool {
        let (count, bytes) = (self.count + self.held.count, self.log.len() + self.held.bytes);
        if count >= CHANGES || bytes >= BYTES {
            return false;
        }
        let start = self.log.len();
        change.write(&mut self.log);
        self.find(change, start);
        true
    }

    /// Makes what stands somewhere in the log be found.
    fn find(&mut self, change: &Change<'_>, start: usize) {
        self.count += 1;
        self.since.get_or_insert_with(Instant::now);
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

    /// Whether so much waits that it should wait no longer.
    pub(super) fn is_much(&self, bytes: usize) -> bool {
        self.log.len() >= bytes || self.count >= CHANGES / 4
    }

    /// What was put somewhere and is not there yet; `Some(None)`: it is too old already.
    pub(super) fn value(&self, at: At<'_>) -> Option<Option<Bytes>> {
        if self.values.is_empty() {
            return None;
        }
        let start = *self.values.get(&self.hasher.hash_one(at))?;
        let is_it = |change: &Change<'_>| change.at == at;
        let change = Change::read(&mut &self.log[start..]).filter(is_it);
        // Where two places have the same hash, only a look at everything tells them apart.
        let change = change.or_else(|| changes(&self.log).filter(is_it).last())?;
        match change.what {
            What::Put(value, _) => {
                Some((change.until > now()).then(|| Bytes::copy_from_slice(value)))
            }
            What::Append(_) => None,
        }
    }

    /// What was put into maps and is not there yet, each id once in a map, so many of the last of each
    /// at the most.
    pub(super) fn in_maps(&self, owner: Owner, maps: &[String], most: usize) -> Vec<Noted> {
        let (mut noted, now) = (Vec::new(), now());
        for (number, map) in maps.iter().enumerate() {
            let (mut seen, mut count) = (HashSet::new(), 0);
            for start in self.maps.back(self.hasher.hash_one((owner, map.as_str()))) {
                if count == most {
                    break;
                }
                let change = Change::read(&mut &self.log[start..]);
                let Some(Change { at, what: What::Put(_, notes), until }) = change else {
                    continue;
                };
                let is_here = |(its, _): &&(&str, &str)| (at.owner, *its) == (owner, map);
                if let Some((_, note)) = notes.iter().find(is_here)
                    && seen.insert(at.id)
                {
                    let (id, note) = (at.id.to_owned(), (*note).to_owned());
                    noted.push((start, Noted { map: number, id, note, until }));
                    // What is too old only hides what was there before.
                    count += usize::from(until > now);
                }
            }
        }
        noted.sort_by_key(|(start, _)| *start);
        noted.into_iter().map(|(_, noted)| noted).collect()
    }

    /// Makes a list what it will be with what was added to it and is not there yet.
    pub(super) fn complete(&self, at: At<'_>, list: &mut Vec<Bytes>) {
        let mut places: Vec<usize> = self.lists.back(self.hasher.hash_one(at)).collect();
        places.reverse();
        let mut is_old = false;
        for start in places {
            let Some(change) = Change::read(&mut &self.log[start..]) else { continue };
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

    /// What is not in the tail.
    pub(super) fn unsaved(&self) -> &[u8] {
        &self.log[self.saved..]
    }

    /// So many more bytes are in the tail.
    pub(super) fn saved(&mut self, more: usize) {
        self.saved += more;
    }

    /// Asks the thread for something. Where it has ended, there is no answer.
    pub(super) fn ask(&mut self, ask: Ask) {
        if !self.is_closed {
            self.asks.push(ask);
        }
    }

    /// What the thread is asked for, if anything.
    pub(super) fn asked(&mut self) -> Option<Vec<Ask>> {
        (!self.asks.is_empty()).then(|| std::mem::take(&mut self.asks))
    }

    /// Nothing is asked for from now on.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// How many changes wait that the thread has not taken.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Whether the thread has something in its hands that is not in the tail either.
    pub(super) fn is_unsafe(&self) -> bool {
        self.held.saved < self.held.bytes
    }

    /// Hands over all changes; new ones come into `next`.
    pub(super) fn take(&mut self, next: Vec<u8>) -> Vec<u8> {
        self.held = Held { count: self.count, bytes: self.log.len(), saved: self.saved };
        self.forget();
        std::mem::replace(&mut self.log, next)
    }

    fn forget(&mut self) {
        (self.count, self.saved, self.since) = (0, 0, None);
        self.values.clear();
        self.maps.clear();
        self.lists.clear();
    }

    /// What was taken is in its place: so many changes.
    pub(super) fn arrived(&mut self) -> usize {
        std::mem::take(&mut self.held).count
    }

    /// What was taken could not be brought home: it is pending again, before what came since. Gives
    /// back what that was written to.
    pub(super) fn put_back(&mut self, log: Vec<u8>) -> Vec<u8> {
        // Nothing of the newer is in the tail where something of the older is not.
        let saved = self.held.saved + self.saved;
        self.forget();
        self.held = Held::default();
        let mut newer = std::mem::replace(&mut self.log, log);
        self.log.extend_from_slice(&newer);
        newer.clear();
        let all = std::mem::take(&mut self.log);
        let mut rest = &all[..];
        loop {
            let start = all.len() - rest.len();
            let Some(change) = Change::read(&mut rest) else { break };
            self.find(&change, start);
        }
        (self.log, self.saved) = (all, saved);
        newer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_that_was_put_is_found_until_it_is_taken() {
        let mut pending = Pending::default();
        let at = |id| At { owner: Owner::of("o"), kind: Kind::Answer, id };
        let until = now() + 60_000;
        let mut put = |id, value: &'static [u8], until| {
            assert!(pending.add(&Change { at: at(id), what: What::Put(value, Vec::new()), until }));
        };
        put("a", b"1", until);
        put("old", b"2", now());
        put("a", b"3", until);
        put("b", b"", until);
        let value = |pending: &Pending, id| pending.value(at(id));
        assert_eq!(value(&pending, "a"), Some(Some(Bytes::from_static(b"3"))));
        assert_eq!(value(&pending, "b"), Some(Some(Bytes::new())));
        assert_eq!(value(&pending, "old"), Some(None));
        assert_eq!(value(&pending, "c"), None);
        let other = At { owner: Owner::of("other"), ..at("a") };
        assert_eq!(pending.value(other), None, "another's");
        assert!(pending.is_much(100) && !pending.is_much(1000));
        // Another place of the same hash was written to last.
        let (hash, b) = (pending.hasher.hash_one(at("a")), pending.hasher.hash_one(at("b")));
        pending.values.insert(hash, pending.values[&b]);
        assert_eq!(value(&pending, "a"), Some(Some(Bytes::from_static(b"3"))));
        pending.saved(pending.unsaved().len());
        let log = pending.take(Vec::new());
        assert!(!pending.is_unsafe());
        let ids: Vec<&str> = changes(&log).map(|change| change.at.id).collect();
        assert_eq!(ids, ["a", "old", "a", "b"]);
        assert_eq!(value(&pending, "a"), None);
        assert!(pending.unsaved().is_empty() && pending.since.is_none());
    }

    #[test]
    fn what_was_put_into_a_map_is_found_together() {
        let mut pending = Pending::default();
        let owner = Owner::of("o");
        let puts: [(&str, &[(&str, &str)]); 6] = [
            ("1", &[("m", "a")]),
            ("2", &[("n", "a")]),
            ("3", &[("n", "b"), ("m", "b/c")]),
            ("4", &[("m", "a")]),
            ("5", &[]),
            ("1", &[("m", "d")]),
        ];
        for (id, notes) in puts {
            let at = At { owner, kind: Kind::Signature, id };
            let what = What::Put(b"value", notes.to_vec());
            assert!(pending.add(&Change { at, what, until: i64::MAX }));
        }
        let all = |pending: &Pending, owner, map, most| {
            let maps: Vec<String> = str::split(map, ' ').map(str::to_owned).collect();
            let all = pending.in_maps(owner, &maps, most).into_iter();
            all.map(|it| format!("{}:{}={}", maps[it.map], it.id, it.note)).collect::<Vec<_>>()
        };
        assert_eq!(all(&pending, owner, "m", 9), ["m:3=b/c", "m:4=a", "m:1=d"]);
        assert_eq!(all(&pending, owner, "n", 9), ["n:2=a", "n:3=b"]);
        assert_eq!(all(&pending, owner, "n none m", 2), ["n:2=a", "n:3=b", "m:4=a", "m:1=d"]);
        assert_eq!(all(&pending, Owner::of("other"), "m", 9), [""; 0]);
        // Another map of the same hash.
        let (hash, start) = (pending.hasher.hash_one((owner, "m")), pending.maps.steps[1].0);
        pending.maps.add(hash, start);
        assert_eq!(all(&pending, owner, "m", 9), ["m:3=b/c", "m:4=a", "m:1=d"]);
        drop(pending.take(Vec::new()));
        assert_eq!(all(&pending, owner, "m", 9), [""; 0]);
    }

    #[test]
    fn a_list_goes_on_with_what_waits() {
        let mut pending = Pending::default();
        let at = |id| At { owner: Owner::of("o"), kind: Kind::Log, id };
        let complete = |pending: &Pending, id| {
            let mut list = vec![Bytes::from_static(b"there")];
            pending.complete(at(id), &mut list);
            list
        };
        let mut append = |id, values: &[&'static [u8]], until| {
            let what = What::Append(values.to_vec());
            assert!(pending.add(&Change { at: at(id), what, until }));
        };
        let until = now() + 60_000;
        append("a", &[b"1", b"2"], until);
        append("b", &[b"x"], until);
        append("a", &[b"3"], until);
        append("old", &[b"1"], until);
        append("old", &[b"2"], now());
        append("anew", &[b"1"], now());
        append("anew", &[b"2"], until);
        assert_eq!(complete(&pending, "a"), ["there", "1", "2", "3"]);
        assert_eq!(complete(&pending, "none"), ["there"]);
        assert_eq!(complete(&pending, "old"), [""; 0]);
        assert_eq!(complete(&pending, "anew"), ["2"]);
        drop(pending.take(Vec::new()));
        assert_eq!(complete(&pending, "a"), ["there"]);
    }

    /// What came back is found as before, under what came since.
    #[test]
    fn what_is_put_back_is_pending_again() {
        let mut pending = Pending::default();
        let at = |kind, id| At { owner: Owner::of("o"), kind, id };
        let until = now() + 60_000;
        let add = |pending: &mut Pending, value: &'static [u8]| {
            let what = What::Put(value, vec![("m", "a")]);
            assert!(pending.add(&Change { at: at(Kind::Signature, "a"), what, until }));
            let what = What::Append(vec![value]);
            assert!(pending.add(&Change { at: at(Kind::Log, "l"), what, until }));
        };
        let check = |pending: &Pending, value: &'static [u8], list: &[&str]| {
            let found = pending.value(at(Kind::Signature, "a"));
            assert_eq!(found, Some(Some(Bytes::from_static(value))));
            assert_eq!(pending.in_maps(Owner::of("o"), &["m".to_owned()], 9).len(), 1);
            let mut all = Vec::new();
            pending.complete(at(Kind::Log, "l"), &mut all);
            assert_eq!(all, list);
        };
        add(&mut pending, b"1");
        let half = pending.unsaved().len();
        pending.saved(half);
        add(&mut pending, b"2");
        let log = pending.take(Vec::new());
        assert!(pending.is_unsafe());
        drop(pending.put_back(log));
        check(&pending, b"2", &["1", "2"]);
        assert_eq!(pending.unsaved().len(), half, "half of it is in the tail");
        pending.saved(half);
        let log = pending.take(Vec::new());
        assert!(!pending.is_unsafe());
        add(&mut pending, b"3");
        pending.saved(half);
        add(&mut pending, b"4");
        let newer = pending.put_back(log);
        assert!(newer.is_empty());
        check(&pending, b"4", &["1", "2", "3", "4"]);
        assert_eq!((pending.count(), pending.unsaved().len()), (8, half));
        assert!(pending.since.is_some());
        assert_eq!(changes(&pending.take(newer)).count(), 8);
    }

    /// r128: what may come back leaves no room for others.
    #[test]
    fn r128_what_is_taken_counts() {
        let mut pending = Pending::default();
        let at = At { owner: Owner::of("o"), kind: Kind::Log, id: "l" };
        let change = Change { at, what: What::Append(Vec::new()), until: 0 };
        assert_eq!((0..CHANGES).filter(|_| pending.add(&change)).count(), CHANGES);
        let log = pending.take(Vec::new());
        assert!(!pending.add(&change));
        drop(pending.put_back(log));
        assert!(!pending.add(&change));
        drop(pending.take(Vec::new()));
        assert_eq!(pending.arrived(), CHANGES);
        assert!(pending.add(&change));
    }

    /// r128: there is an end to what waits.
    #[test]
    fn r128_what_waits_is_bounded() {
        let mut pending = Pending::default();
        let at = At { owner: Owner::of("o"), kind: Kind::Log, id: "l" };
        let value = vec![b'x'; 1 << 20];
        let change = Change { at, what: What::Append(vec![&value]), until: 0 };
        let added = (0..100).filter(|_| pending.add(&change)).count();
        assert!((63..=64).contains(&added), "{added}");
        let mut pending = Pending::default();
        let change = Change { at, what: What::Append(Vec::new()), until: 0 };
        assert_eq!((0..70_000).filter(|_| pending.add(&change)).count(), CHANGES);
    }
}
