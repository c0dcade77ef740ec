//! Record of an answer: one entry with its question and its origin.
//!
//! ```text
//!   {"origin":{"predecessors":["resp_1"]},"question":21,"at":1790000000,"holes":[[93,"5f…"]]}⏎
//!   {"input":"what else?"}{"id":"resp_2",…}
//! ```
//!
//! Texts that many answers repeat are stored once ([`shared_text`]). Use renews the retention of a record after
//! half of it.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use toolgate_core::canon::BadRequest;
use toolgate_core::responses::Object;

use super::Sessions;
use super::chain::Origin;
use super::items;
use super::shared_text::{self, Cut, Hole};
use crate::clock;
use crate::store::Kind;

/// An answer as its client gets it, in one piece.
#[derive(Clone, Debug)]
pub(crate) struct EncodedAnswer {
    id: Option<String>,
    pub(crate) json: Vec<u8>,
    /// Where it repeats the settings of its request, at its end.
    settings: Range<usize>,
    /// The id of the settings, where they are kept already and left out here.
    elsewhere: Option<String>,
    /// Status of a response.
    pub(crate) status: &'static str,
    /// Places of the items of a response.
    items: Vec<Range<usize>>,
}

impl From<Object> for EncodedAnswer {
    fn from(object: Object) -> Self {
        let Object { id, json, settings, status, items } = object;
        Self { id: Some(id), json, settings, elsewhere: None, status, items }
    }
}

impl From<Vec<u8>> for EncodedAnswer {
    fn from(json: Vec<u8>) -> Self {
        Self { id: None, json, settings: 0..0, elsewhere: None, status: "", items: Vec::new() }
    }
}

impl EncodedAnswer {
    /// An object without the settings, which are kept under an id.
    pub(crate) fn without_settings(object: Object, id: String) -> Self {
        Self { elsewhere: Some(id), ..object.into() }
    }

    /// Its id.
    pub(super) fn id(&self) -> Option<Cow<'_, str>> {
        match &self.id {
            Some(id) => Some(Cow::Borrowed(id)),
            None => items::text_of(&items::fields_of(&self.json), "id").map(Cow::Owned),
        }
    }

    /// The object without the settings.
    pub(super) fn without_repetitions(&self) -> Vec<u8> {
        match self.json.get(..self.settings.start.saturating_sub(1)) {
            Some([]) | None => self.json.clone(),
            Some(rest) => [rest, b"}"].concat(),
        }
    }

    /// Whether the response is complete or was cut at a limit, and not failed or cancelled.
    pub(super) fn is_finished(&self) -> bool {
        matches!(self.status, "completed" | "incomplete")
    }

    /// `output`, item by item.
    pub(super) fn items(&self) -> Vec<String> {
        let items = self.items.iter().filter_map(|place| self.json.get(place.clone()));
        items.map(|item| String::from_utf8_lossy(item).into_owned()).collect()
    }
}

/// A question and its answer.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(super) origin: Origin,
    pub(super) question: Bytes,
    pub(crate) answer: Bytes,
    /// When it was last written, in seconds since 1970.
    at: u64,
}

/// The line before them.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Head {
    origin: Origin,
    /// How long the question is.
    question: usize,
    /// When it was last written, in seconds since 1970.
    at: u64,
    /// Where texts that are kept elsewhere belong, in what follows the line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    holes: Vec<Hole>,
}

/// A question as it is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub(super) origin: &'a Origin,
    /// Its body, in pieces.
    pub(super) body: [&'a [u8]; 3],
    /// Where in the second piece stands what other questions repeat, in order.
    pub(super) shared: &'a [Range<usize>],
}

impl<'a> Asked<'a> {
    /// A question that is kept as it is.
    pub(super) fn plain(origin: &'a Origin, body: &'a [u8]) -> Self {
        Self { origin, body: [b"", body, b""], shared: &[] }
    }
}

/// Stores a question and its answer, replacing an earlier record.
pub(super) fn put(sessions: &Sessions, id: &str, asked: &Asked<'_>, answer: &EncodedAnswer) {
    let [head, body, tail] = asked.body;
    let mut cut = Cut::default();
    cut.push(head);
    cut.push_cut(sessions, body, asked.shared);
    cut.push(tail);
    match &answer.elsewhere {
        Some(id) => cut.push_with_hole(&answer.json, answer.settings.start, id.clone()),
        None => cut.push_cut(sessions, &answer.json, std::slice::from_ref(&answer.settings)),
    }
    let question = head.len() + body.len() + tail.len();
    put_cut(sessions, Kind::Answer, id, (asked.origin, question), cut);
}

/// The events of an answer, as they are shown. Three of them repeat the settings of the request:
/// those are left out as they come.
#[derive(Debug, Default)]
pub(crate) struct EventLog {
    rest: Vec<u8>,
    /// Where the settings belong.
    holes: Vec<usize>,
    /// How long all of it is.
    length: usize,
}

impl EventLog {
    /// Adds whole events. `known`: places in them where the settings begin.
    pub(crate) fn push(&mut self, events: &[u8], settings: &[u8], known: &[usize]) {
        self.length += events.len();
        let mut done = 0;
        for place in shared_text::places(events, settings, known) {
            self.rest.extend_from_slice(&events[done..place.start]);
            self.holes.push(self.rest.len());
            done = place.end;
        }
        self.rest.extend_from_slice(&events[done..]);
    }

    /// How many bytes were shown.
    pub(crate) fn len(&self) -> usize {
        self.length
    }
}

/// Stores the events of an answer. Returns the id of the stored settings, if they are stored.
pub(super) fn put_events(
    sessions: &Sessions,
    id: &str,
    shown: &EventLog,
    settings: &[u8],
) -> Option<String> {
    let shared = sessions.state.texts.id_of(sessions, settings);
    let mut cut = Cut::default();
    let mut done = 0;
    for hole in &shown.holes {
        cut.push(&shown.rest[done..*hole]);
        match &shared {
            Some(id) => cut.holes.push((cut.length, id.clone())),
            None => cut.push(settings),
        }
        done = *hole;
    }
    cut.push(&shown.rest[done..]);
    put_cut(sessions, Kind::Events, id, (&Origin::default(), 0), cut);
    shared
}

fn put_cut(
    sessions: &Sessions,
    kind: Kind,
    id: &str,
    (origin, question): (&Origin, usize),
    cut: Cut<'_>,
) {
    let at = clock::now().as_secs();
    let head = Head { origin: origin.clone(), question, at, holes: cut.holes };
    let kept = joined(&head, cut.pieces, cut.length);
    sessions.store().put(sessions.owner, kind, id, kept, sessions.retention);
}

/// The line and what follows it.
fn joined<'p>(head: &Head, pieces: impl IntoIterator<Item = &'p [u8]>, length: usize) -> Bytes {
    let mut out = Vec::with_capacity(length + 256);
    // Writing into a vector does not fail, and all keys are strings.
    let _ = serde_json::to_writer(&mut out, head);
    out.push(b'\n');
    for piece in pieces {
        out.extend_from_slice(piece);
    }
    Bytes::from(out)
}

/// Whether half of the retention is over since a write at `at`.
pub(super) fn is_ageing(sessions: &Sessions, at: u64) -> bool {
    clock::now().as_secs().saturating_sub(at) > sessions.retention.as_secs() / 2
}

/// Keeps questions and answers for as long as if they were new.
pub(super) async fn renew(sessions: &Sessions, ids: &[String]) {
    let mut holes = Vec::new();
    // Read again: it may have been deleted since.
    let kept = sessions.store().get(sessions.owner, Kind::Answer, ids).await;
    for (id, kept) in ids.iter().zip(kept) {
        let Some((mut head, rest)) = kept.as_ref().and_then(split) else { continue };
        head.at = clock::now().as_secs();
        let kept = joined(&head, [&rest[..]], rest.len());
        sessions.store().put(sessions.owner, Kind::Answer, id, kept, sessions.retention);
        holes.append(&mut head.holes);
    }
    shared_text::renew(sessions, &holes).await;
}

/// Splits what [`put_cut`] wrote.
fn split(kept: &Bytes) -> Option<(Head, Bytes)> {
    let end = memchr::memchr(b'\n', kept)?;
    Some((serde_json::from_slice(&kept[..end]).ok()?, kept.slice(end + 1..)))
}

impl Record {
    /// Number of bytes of the question and the answer.
    pub(super) fn size(&self) -> usize {
        self.question.len() + self.answer.len()
    }

    /// Reads records, including those of deleted answers.
    pub(super) async fn all(sessions: &Sessions, ids: &[String]) -> Vec<Option<Self>> {
        let kept = sessions.store().get(sessions.owner, Kind::Answer, ids).await;
        let kept: Vec<_> = kept.into_iter().map(|kept| split(&kept?)).collect();
        let holes = kept.iter().flatten().flat_map(|(head, _)| &head.holes);
        let texts = shared_text::texts(sessions, holes).await;
        let record = |(head, rest): (Head, Bytes)| {
            let whole = shared_text::filled(rest, &head.holes, &texts)?;
            let at = head.question.min(whole.len());
            let (question, answer) = (whole.slice(..at), whole.slice(at..));
            Some(Self { origin: head.origin, question, answer, at: head.at })
        };
        kept.into_iter().map(|kept| record(kept?)).collect()
    }

    /// Reads a record, deleted or not.
    pub(super) async fn any(sessions: &Sessions, id: &str) -> Option<Self> {
        Self::all(sessions, &[id.to_owned()]).await.pop().flatten()
    }

    /// Reads a record that was not deleted.
    pub(crate) async fn get(sessions: &Sessions, id: &str) -> Option<Self> {
        Self::any(sessions, id).await.filter(|record| !record.is_deleted())
    }

    /// Whether it is time to [renew] it.
    pub(super) fn is_ageing(&self, sessions: &Sessions) -> bool {
        is_ageing(sessions, self.at)
    }

    pub(super) fn is_deleted(&self) -> bool {
        self.origin.deleted
    }

    /// The items of a question of the Responses API.
    pub(super) fn asked(&self, id: &str) -> Result<Vec<String>, BadRequest> {
        items::input_items(std::str::from_utf8(&self.question).unwrap_or("{}"), id)
    }

    /// The items of a question of the Responses API and of its answer.
    pub(super) fn items(&self, id: &str) -> Result<impl Iterator<Item = String>, BadRequest> {
        let output = items::output_items(&items::fields_of(&self.answer));
        Ok(self.asked(id)?.into_iter().chain(output))
    }

    /// Keeps it with another answer.
    pub(crate) fn put_answer(&self, sessions: &Sessions, id: &str, answer: &EncodedAnswer) {
        put(sessions, id, &Asked::plain(&self.origin, &self.question), answer);
    }
}

/// The events of an answer, where they are kept.
pub(crate) async fn events(sessions: &Sessions, id: &str) -> Option<Bytes> {
    let kept = sessions.store().get_one(sessions.owner, Kind::Events, id).await?;
    let (head, rest) = split(&kept)?;
    let texts = shared_text::texts(sessions, head.holes.iter()).await;
    shared_text::filled(rest, &head.holes, &texts)
}
