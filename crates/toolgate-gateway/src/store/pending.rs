//! What was written and is not in its place yet, and what the file's thread is asked for.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use tokio::sync::oneshot;

use super::change::{At, Change};
use super::log::Log;
use super::sqlite_file::now;
use super::sqlite_read::{Kept, Noted};
use super::{Kind, Part, Wanted, part_of};
use crate::auth::Owner;

/// What waits for the thread.
#[derive(Debug, Default)]
pub(super) struct Pending {
    log: Log,
    /// How much of the log is in the tail.
    saved: usize,
    /// When the first of it came.
    pub(super) since: Option<Instant>,
    /// What the thread has in its hands: it is read here until it can be read in its place, and may come
    /// back.
    held: Option<Arc<Log>>,
    /// How much of that is in the tail.
    held_saved: usize,
    asks: Vec<Ask>,
    is_closed: bool,
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
    Parts(Owner, Vec<String>, Vec<Part>, oneshot::Sender<Vec<Noted>>),
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
        let (count, bytes) = match &self.held {
            Some(held) => (held.count(), held.bytes().len()),
            None => (0, 0),
        };
        if self.log.count() + count >= CHANGES || self.log.bytes().len() + bytes >= BYTES {
            return false;
        }
        self.log.add(change);
        self.since.get_or_insert_with(Instant::now);
        true
    }

    /// Whether so much waits that it should wait no longer.
    pub(super) fn is_much(&self, bytes: usize) -> bool {
        self.log.bytes().len() >= bytes || self.log.count() >= CHANGES / 4
    }

    /// What was put somewhere and is not there yet; `Some(None)`: it is too old already.
    pub(super) fn value(&self, at: At<'_>) -> Option<Option<Bytes>> {
        self.log.value(at).or_else(|| self.held.as_ref()?.value(at))
    }

    /// Whether something was put into a map and may not be there yet.
    pub(super) fn has(&self, owner: Owner, map: &str) -> bool {
        self.log.has(owner, map) || self.held.as_ref().is_some_and(|held| held.has(owner, map))
    }

    /// What was put into parts of maps last and is not there yet, each id once in a part, in that order.
    pub(super) fn in_parts(&self, wanted: Wanted<'_>) -> Vec<Noted> {
        let Wanted { owner, maps, parts } = wanted;
        let (mut all, now) = (Vec::new(), now());
        let maps = maps.iter().enumerate().filter(|(_, map)| self.has(owner, map));
        let parts = maps.flat_map(|(number, map)| {
            let parts = parts().iter().enumerate();
            parts.map(move |(part, its)| ((number, part), part_of(map, &its.name), its.most))
        });
        for (which, name, most) in parts {
            let (mut seen, mut count) = (HashSet::new(), 0);
            let held = self.held.iter().flat_map(|held| held.in_part(owner, which, &name));
            let held = held.map(|(start, noted)| (false, start, noted));
            let log = self.log.in_part(owner, which, &name);
            for (is_newer, start, noted) in
                log.map(|(start, noted)| (true, start, noted)).chain(held)
            {
                if count == most {
                    break;
                }
                if seen.insert(noted.id.clone()) {
                    // What is too old only hides what was there before.
                    count += usize::from(noted.until > now);
                    all.push((is_newer, start, noted));
                }
            }
        }
        all.sort_by_key(|(is_newer, start, _)| (*is_newer, *start));
        all.into_iter().map(|(.., noted)| noted).collect()
    }

    /// Makes a list what it will be with what was added to it and is not there yet. Nobody may have
    /// that in his hands.
    pub(super) fn complete(&self, at: At<'_>, list: &mut Vec<Bytes>) {
        debug_assert!(self.held.is_none(), "what is held may be in the list or not");
        self.log.complete(at, list);
    }

    /// What is not in the tail.
    pub(super) fn unsaved(&self) -> &[u8] {
        &self.log.bytes()[self.saved..]
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
        self.log.count()
    }

    /// Whether the thread has something in its hands that is not in the tail either.
    pub(super) fn is_unsafe(&self) -> bool {
        self.held.as_ref().is_some_and(|held| self.held_saved < held.bytes().len())
    }

    /// Hands over all changes; new ones come into `next`.
    pub(super) fn take(&mut self, next: Log) -> Arc<Log> {
        let log = Arc::new(std::mem::replace(&mut self.log, next));
        self.held_saved = std::mem::take(&mut self.saved);
        self.since = None;
        self.held = Some(Arc::clone(&log));
        log
    }

    /// What was taken is in its place. Gives back what it was written to.
    pub(super) fn arrived(&mut self, log: Arc<Log>) -> Log {
        self.held = None;
        Arc::unwrap_or_clone(log)
    }

    /// What was taken could not be brought home: it is pending again, before what came since. Gives
    /// back what that was written to.
    pub(super) fn put_back(&mut self, log: Arc<Log>) -> Log {
        let older = self.arrived(log);
        let newer = std::mem::replace(&mut self.log, older);
        self.log.add_all(&newer);
        // Nothing of the newer is in the tail where something of the older is not.
        self.saved += std::mem::take(&mut self.held_saved);
        self.since.get_or_insert_with(Instant::now);
        newer
    }
}

#[cfg(test)]
mod tests {
    use super::super::change::{What, changes};
    use super::*;

    #[test]
    fn the_last_that_was_put_is_found_until_it_is_in_its_place() {
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
        pending.saved(pending.unsaved().len());
        let log = pending.take(Log::default());
        assert!(!pending.is_unsafe());
        let ids: Vec<&str> = changes(log.bytes()).map(|change| change.at.id).collect();
        assert_eq!(ids, ["a", "old", "a", "b"]);
        assert!(pending.unsaved().is_empty() && pending.since.is_none());
        // It can be read until it is in its place, under what came since.
        let change = Change { at: at("b"), what: What::Put(b"4", Vec::new()), until };
        assert!(pending.add(&change));
        assert_eq!(value(&pending, "a"), Some(Some(Bytes::from_static(b"3"))));
        assert_eq!(value(&pending, "b"), Some(Some(Bytes::from_static(b"4"))));
        assert_eq!(pending.arrived(log).count(), 4);
        assert_eq!(value(&pending, "a"), None);
        assert_eq!(value(&pending, "b"), Some(Some(Bytes::from_static(b"4"))));
    }

    #[test]
    fn what_was_put_into_a_map_is_found_together() {
        let mut pending = Pending::default();
        let owner = Owner::of("o");
        let puts: [(&str, &[(&str, &str)]); 6] = [
            ("1", &[("m:p", "a")]),
            ("2", &[("n:p", "a")]),
            ("3", &[("n:p", "b"), ("m:p", "b/c")]),
            ("4", &[("m:p", "a")]),
            ("5", &[("m:q", "a")]),
            ("1", &[("m:p", "d")]),
        ];
        for (id, notes) in puts {
            let at = At { owner, kind: Kind::Signature, id };
            let what = What::Put(b"value", notes.to_vec());
            assert!(pending.add(&Change { at, what, until: i64::MAX }));
        }
        let all = |pending: &Pending, owner, map, most| {
            let maps: Vec<String> = str::split(map, ' ').map(str::to_owned).collect();
            let parts = [Part { name: "p".to_owned(), most }];
            let wanted = Wanted { owner, maps: &maps, parts: &|| &parts };
            let all = pending.in_parts(wanted).into_iter();
            all.map(|it| format!("{}:{}={}", maps[it.map], it.id, it.note)).collect::<Vec<_>>()
        };
        assert_eq!(all(&pending, owner, "m", 9), ["m:3=b/c", "m:4=a", "m:1=d"]);
        assert_eq!(all(&pending, owner, "n", 9), ["n:2=a", "n:3=b"]);
        assert_eq!(all(&pending, owner, "n none m", 2), ["n:2=a", "n:3=b", "m:4=a", "m:1=d"]);
        assert_eq!(all(&pending, Owner::of("other"), "m", 9), [""; 0]);
        let log = pending.take(Log::default());
        let at = At { owner, kind: Kind::Signature, id: "4" };
        let what = What::Put(b"value", vec![("m:p", "e")]);
        assert!(pending.add(&Change { at, what, until: i64::MAX }));
        assert_eq!(all(&pending, owner, "m", 9), ["m:3=b/c", "m:1=d", "m:4=e"]);
        assert_eq!(all(&pending, owner, "m", 2), ["m:1=d", "m:4=e"]);
        drop(pending.arrived(log));
        assert_eq!(all(&pending, owner, "m", 9), ["m:4=e"]);
        let log = pending.take(Log::default());
        drop(pending.arrived(log));
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
        let log = pending.take(Log::default());
        drop(pending.arrived(log));
        assert_eq!(complete(&pending, "a"), ["there"]);
    }

    /// What came back is found as before, under what came since.
    #[test]
    fn what_is_put_back_is_pending_again() {
        let mut pending = Pending::default();
        let at = |kind, id| At { owner: Owner::of("o"), kind, id };
        let until = now() + 60_000;
        let add = |pending: &mut Pending, value: &'static [u8]| {
            let what = What::Put(value, vec![("m:p", "a")]);
            assert!(pending.add(&Change { at: at(Kind::Signature, "a"), what, until }));
            let what = What::Append(vec![value]);
            assert!(pending.add(&Change { at: at(Kind::Log, "l"), what, until }));
        };
        let check = |pending: &Pending, value: &'static [u8], list: &[&str]| {
            let found = pending.value(at(Kind::Signature, "a"));
            assert_eq!(found, Some(Some(Bytes::from_static(value))));
            let (owner, maps) = (Owner::of("o"), ["m".to_owned()]);
            let parts = [Part { name: "p".to_owned(), most: 9 }];
            let wanted = Wanted { owner, maps: &maps, parts: &|| &parts };
            assert_eq!(pending.in_parts(wanted).len(), 1);
            let mut all = Vec::new();
            pending.complete(at(Kind::Log, "l"), &mut all);
            assert_eq!(all, list);
        };
        add(&mut pending, b"1");
        let half = pending.unsaved().len();
        pending.saved(half);
        add(&mut pending, b"2");
        let log = pending.take(Log::default());
        assert!(pending.is_unsafe());
        drop(pending.put_back(log));
        check(&pending, b"2", &["1", "2"]);
        assert_eq!(pending.unsaved().len(), half, "half of it is in the tail");
        pending.saved(half);
        let log = pending.take(Log::default());
        assert!(!pending.is_unsafe());
        add(&mut pending, b"3");
        pending.saved(half);
        add(&mut pending, b"4");
        drop(pending.put_back(log));
        check(&pending, b"4", &["1", "2", "3", "4"]);
        assert_eq!((pending.count(), pending.unsaved().len()), (8, half));
        assert!(pending.since.is_some());
        assert_eq!(pending.take(Log::default()).count(), 8);
    }

    /// r128: what may come back leaves no room for others.
    #[test]
    fn r128_what_is_taken_counts() {
        let mut pending = Pending::default();
        let at = At { owner: Owner::of("o"), kind: Kind::Log, id: "l" };
        let change = Change { at, what: What::Append(Vec::new()), until: 0 };
        assert_eq!((0..CHANGES).filter(|_| pending.add(&change)).count(), CHANGES);
        let log = pending.take(Log::default());
        assert!(!pending.add(&change));
        drop(pending.put_back(log));
        assert!(!pending.add(&change));
        let log = pending.take(Log::default());
        assert_eq!(pending.arrived(log).count(), CHANGES);
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
