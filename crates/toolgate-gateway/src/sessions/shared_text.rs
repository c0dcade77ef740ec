//! Texts that many kept things have in common, kept once.
//!
//! The settings of a client's requests, its tools above all, are the same in every request and
//! repeated in every answer. A text that was seen before is kept as an entry of its own, by its
//! hash; what holds it is kept with a hole in its place:
//!
//! ```text
//!   {"id":…,"output":[…],⟨tools and settings⟩}
//!                         └──► Shared, by hash
//!   {"id":…,"output":[…],}   and: a hole at 37, filled by that hash
//! ```
//!
//! Stores evict the oldest entries first. An entry that is in use is therefore written again
//! every now and then, so that it outlives what refers to it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use ring::digest::{SHA256, digest};

use toolgate_store::Owner;

use super::Sessions;
use crate::store::Kind;

/// Place of a text that was cut out, and the id of that text.
pub(super) type Hole = (usize, String);

/// The texts that were seen lately.
#[derive(Debug, Default)]
pub(crate) struct SharedTexts(Mutex<Vec<Known>>);

#[derive(Debug)]
struct Known {
    owner: Owner,
    text: Bytes,
    /// Where it is kept, from the second time on.
    kept: Option<Kept>,
}

#[derive(Clone, Debug)]
struct Kept {
    id: String,
    at: Instant,
    /// How much the store had written then.
    written: u64,
}

/// Shorter texts are not worth a hole.
const SHORTEST: usize = 256;
/// How much of a text tells where it may begin and end.
const EDGE: usize = 16;
/// How many texts are remembered, and how many bytes of them.
const TEXTS: usize = 64;
const BYTES: usize = 4 << 20;
/// An entry is written again after this fraction of its retention, or of the store's capacity.
const RENEWAL_FRACTION: u32 = 16;

impl SharedTexts {
    fn lock(&self) -> MutexGuard<'_, Vec<Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the id of a text that is stored on its own; `None` for a text that is short, or seen for the first
    /// time.
    pub(super) fn id_of(&self, sessions: &Sessions, text: &[u8]) -> Option<String> {
        if text.len() < SHORTEST || text.len() > BYTES / 4 {
            return None;
        }
        let mut known = self.lock();
        let at = known.iter().position(|it| it.owner == sessions.owner && it.text == text);
        let Some(at) = at else {
            let text = Bytes::copy_from_slice(text);
            known.insert(0, Known { owner: sessions.owner, text, kept: None });
            let mut bytes = 0;
            known.retain(|it| {
                bytes += it.text.len();
                bytes <= BYTES
            });
            known.truncate(TEXTS);
            return None;
        };
        known[..=at].rotate_right(1);
        let found = known.first_mut()?;
        let (store, keep) = (sessions.store(), sessions.retention);
        let is_fresh = |kept: &&Kept| {
            kept.at.elapsed() < keep / RENEWAL_FRACTION
                && store.written_bytes() - kept.written
                    < store.max_bytes() / u64::from(RENEWAL_FRACTION)
        };
        if let Some(kept) = found.kept.as_ref().filter(is_fresh) {
            return Some(kept.id.clone());
        }
        let id = URL_SAFE_NO_PAD.encode(&digest(&SHA256, text).as_ref()[..18]);
        store.put(sessions.owner, Kind::Shared, &id, found.text.clone(), longer(keep));
        let kept = Kept { id: id.clone(), at: Instant::now(), written: store.written_bytes() };
        found.kept = Some(kept);
        Some(id)
    }

    /// A text that is remembered.
    fn text_of(&self, owner: Owner, id: &str) -> Option<Bytes> {
        let known = self.lock();
        let is_it =
            |it: &&Known| it.owner == owner && it.kept.as_ref().is_some_and(|kept| kept.id == id);
        known.iter().find(is_it).map(|it| it.text.clone())
    }
}

/// An entry without the texts that are stored on their own.
#[derive(Debug, Default)]
pub(super) struct Cut<'t> {
    /// The rest, in order.
    pub(super) pieces: Vec<&'t [u8]>,
    /// How long that is.
    pub(super) length: usize,
    pub(super) holes: Vec<Hole>,
}

impl<'t> Cut<'t> {
    /// Adds a text.
    pub(super) fn push(&mut self, text: &'t [u8]) {
        self.pieces.push(text);
        self.length += text.len();
    }

    /// Adds a text that has a hole already.
    pub(super) fn push_with_hole(&mut self, text: &'t [u8], hole: usize, id: String) {
        let (before, behind) = text.split_at(hole.min(text.len()));
        self.push(before);
        self.holes.push((self.length, id));
        self.push(behind);
    }

    /// Adds a text without those of its `places` that are kept elsewhere.
    pub(super) fn push_cut(
        &mut self,
        sessions: &Sessions,
        text: &'t [u8],
        places: &[Range<usize>],
    ) {
        let mut done = 0;
        for place in places.iter().filter(|place| place.end <= text.len()) {
            if place.start < done {
                continue;
            }
            if let Some(id) = sessions.state.texts.id_of(sessions, &text[place.clone()]) {
                self.push(&text[done..place.start]);
                self.holes.push((self.length, id));
                done = place.end;
            }
        }
        self.push(&text[done..]);
    }
}

/// Where a text occurs in another; `known`: where it was written. That saves the search, which is
/// dear for a text as long as a client's tools.
pub(super) fn places(text: &[u8], wanted: &[u8], known: &[usize]) -> Vec<Range<usize>> {
    if wanted.len() < SHORTEST || wanted.len() > text.len() {
        return Vec::new();
    }
    let known: Vec<_> = known.iter().map(|start| *start..start + wanted.len()).collect();
    let is_at = |place: &Range<usize>| {
        let (head, tail) = (&wanted[..EDGE], &wanted[wanted.len() - EDGE..]);
        text.get(place.clone()).is_some_and(|it| it.starts_with(head) && it.ends_with(tail))
    };
    if !known.is_empty() && known.iter().all(is_at) {
        return known;
    }
    // A searcher for all of it would take longer to make than the search.
    let opening = memchr::memmem::Finder::new(&wanted[..EDGE]);
    let (mut places, mut at) = (Vec::new(), 0);
    while let Some(next) = opening.find(&text[at..]) {
        at += next;
        if text[at..].starts_with(wanted) {
            places.push(at..at + wanted.len());
            at += wanted.len();
        } else {
            at += 1;
        }
    }
    places
}

/// The texts for holes, by their ids, as far as they are there.
pub(super) async fn texts(
    sessions: &Sessions,
    holes: impl Iterator<Item = &Hole>,
) -> BTreeMap<String, Bytes> {
    let mut found = BTreeMap::new();
    let mut wanted: Vec<String> = holes.map(|(_, id)| id.clone()).collect();
    wanted.sort_unstable();
    wanted.dedup();
    wanted.retain(|id| match sessions.state.texts.text_of(sessions.owner, id) {
        Some(text) => found.insert(id.clone(), text).is_some(),
        None => true,
    });
    if !wanted.is_empty() {
        let texts = sessions.store().get(sessions.owner, Kind::Shared, &wanted).await;
        found.extend(wanted.into_iter().zip(texts).filter_map(|(id, text)| Some((id, text?))));
    }
    found
}

/// Keeps the texts for holes for as long as if they were new.
pub(super) async fn renew(sessions: &Sessions, holes: &[Hole]) {
    for (id, text) in texts(sessions, holes.iter()).await {
        sessions.store().put(sessions.owner, Kind::Shared, &id, text, longer(sessions.retention));
    }
}

/// How long a text is kept: longer than what refers to it until it is written again.
fn longer(keep: Duration) -> Duration {
    keep.saturating_add(keep / (RENEWAL_FRACTION / 2))
}

/// Puts the texts back; `None` where one is not stored any more.
pub(super) fn filled(
    rest: Bytes,
    holes: &[Hole],
    texts: &BTreeMap<String, Bytes>,
) -> Option<Bytes> {
    if holes.is_empty() {
        return Some(rest);
    }
    let mut out = Vec::with_capacity(rest.len() + texts.values().map(Bytes::len).sum::<usize>());
    let mut done = 0;
    for (at, id) in holes {
        out.extend_from_slice(rest.get(done..*at)?);
        out.extend_from_slice(texts.get(id)?);
        done = *at;
    }
    out.extend_from_slice(rest.get(done..)?);
    Some(Bytes::from(out))
}
