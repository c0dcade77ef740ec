//! A store that many gateways share: Valkey or Redis.
//!
//! ```text
//!   put · append ─► queue ─► one task ─► the server ─► get · list
//!              └──► a copy in memory ─────────────────┘ while the server is away
//! ```
//!
//! While the server is away, what this process has written or read before is read from the copy,
//! writes wait in the queue, and nobody waits for them: turns go on with what clients carry
//! themselves. When the server is back, also with nothing in it, it gets what it misses from the
//! copies of those who have it.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use redis::aio::MultiplexedConnection;
use redis::{Client, Cmd, FromRedisValue, RedisResult};
use tokio::sync::{mpsc, oneshot};

use super::valkey_server::{self, PATIENCE, Shared, Write};
use super::{Kind, Listed, Opening, Part, StoreError, Wanted, id_in, last_of, part_of};
use crate::auth::Owner;
use crate::clock;

/// A connection to a server that keeps state.
#[derive(Debug)]
pub(super) struct Valkey {
    shared: Arc<Shared>,
    queue: mpsc::Sender<Write>,
}

/// How many writes may wait for a server that is away.
const WAITING: usize = 65_536;
/// What stands before the value of a list: when it was written, by whom, and its number. Values sort
/// by it, and one that was sent twice is known by it.
pub(super) const STAMP: usize = 24;

impl Valkey {
    /// Connects, and gets the key that is kept there.
    pub(super) async fn open(url: &str, opening: Opening) -> Result<(Self, [u8; 32]), StoreError> {
        // The URL may hold a password.
        let place = url.rsplit_once('@').map_or(url, |(_, place)| place);
        let place = place.rsplit_once("//").map_or(place, |(_, place)| place).to_owned();
        let failed = |reason: String| StoreError { place: place.clone(), reason };
        // Somebody else may have chosen for the process already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::open(url).map_err(|error| failed(error.to_string()))?;
        let shared = Arc::new(Shared::new(client, place.clone(), &opening));
        let (queue, writes) = mpsc::channel(WAITING);
        let key = valkey_server::start(&shared, writes, &opening)
            .await
            .map_err(|error| failed(error.to_string()))?;
        Ok((Self { shared, queue }, key))
    }

    /// Whether the server cannot be asked.
    pub(super) fn is_away(&self) -> bool {
        self.shared.is_away()
    }

    fn send(&self, write: Write) {
        if !self.shared.has_room(&write) {
            return self.shared.give_up(&write);
        }
        if let Err(error) = self.queue.try_send(write) {
            let write = error.into_inner();
            self.shared.arrived(std::slice::from_ref(&write));
            self.shared.give_up(&write);
        }
    }

    /// What was written must be read: waits for the queue where there is one.
    async fn catch_up(&self) {
        if self.shared.pending.load(Ordering::Acquire) > 0 {
            self.settle().await;
        }
    }

    async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Option<T> {
        self.talk(async |server| command.query_async(server).await).await
    }

    async fn talk<T>(
        &self,
        ask: impl AsyncFnOnce(&mut MultiplexedConnection) -> RedisResult<T>,
    ) -> Option<T> {
        let (number, mut server) = self.shared.server()?;
        match tokio::time::timeout(PATIENCE, ask(&mut server)).await {
            Ok(Ok(answer)) => Some(answer),
            Ok(Err(error)) => {
                self.shared.lose(number, &error.to_string());
                None
            }
            Err(_) => {
                self.shared.lose(number, "it does not answer");
                None
            }
        }
    }

    pub(super) async fn get(&self, owner: Owner, kind: Kind, ids: &[String]) -> Vec<Option<Bytes>> {
        if ids.is_empty() {
            return Vec::new();
        }
        self.catch_up().await;
        let mut command = redis::cmd("MGET");
        for id in ids {
            command.arg(name(owner, kind, id));
        }
        let Some(values) = self.ask::<Vec<Option<Bytes>>>(&command).await else {
            return self.shared.copy.get(owner, kind, ids);
        };
        let is_settled = self.shared.pending.load(Ordering::Acquire) == 0;
        for (id, value) in ids.iter().zip(&values) {
            let (copy, keep) = (&self.shared.copy, self.shared.keep);
            match value {
                Some(value) => copy.put_if_absent(owner, kind, id, value.clone(), keep),
                None if is_settled => drop(copy.delete(owner, kind, id)),
                None => {}
            }
        }
        values
    }

    pub(super) async fn list(&self, owner: Owner, kind: Kind, id: &str) -> Vec<Bytes> {
        self.catch_up().await;
        let mut command = redis::cmd("LRANGE");
        command.arg(name(owner, kind, id)).arg(0).arg(-1);
        let values = match self.ask::<Vec<Bytes>>(&command).await {
            Some(values) => {
                let at = (owner, kind, id);
                self.shared.copy.merge(at, values.clone(), STAMP, self.shared.keep);
                values
            }
            None => self.shared.copy.list(owner, kind, id),
        };
        // A write whose confirmation was lost was sent twice.
        let mut seen = HashSet::new();
        let fresh = |value: &Bytes| value.len() >= STAMP && seen.insert(value.slice(..STAMP));
        values.into_iter().filter(fresh).map(|value| value.slice(STAMP..)).collect()
    }

    pub(super) fn put(&self, owner: Owner, kind: Kind, id: &str, value: Bytes, keep: Duration) {
        self.shared.copy.put(owner, kind, id, value.clone(), keep);
        self.send(Write::Put(name(owner, kind, id), value, keep));
    }

    pub(super) fn put_in(
        &self,
        (owner, kind, id): (Owner, Kind, &str),
        value: Bytes,
        notes: &[(&str, &str)],
        keep: Duration,
    ) {
        self.put(owner, kind, id, value, keep);
        for (map, note) in notes {
            // Numbers tell the order within a millisecond; together they fit a server's numbers.
            let number = self.shared.stamped.fetch_add(1, Ordering::Relaxed) % 1000;
            let note = Note { score: clock::millis() * 1000 + number, note: (*note).to_owned() };
            self.shared.copy.put(owner, Kind::Map, &id_in(map, id), note.kept(), keep);
            let map = name(owner, Kind::Map, map);
            self.send(Write::PutIn(map, note.score, note.member(id), keep));
        }
    }

    pub(super) async fn in_parts(&self, wanted: Wanted<'_>) -> Vec<Listed> {
        let Wanted { owner, maps, parts } = wanted;
        let parts = parts();
        let of = |map: &String, part: &Part| (part_of(map, &part.name), part.most);
        let all = maps.iter().flat_map(|map| parts.iter().map(move |part| of(map, part)));
        let all: Vec<(String, usize)> = all.collect();
        if all.is_empty() {
            return Vec::new();
        }
        self.catch_up().await;
        let mut commands = redis::pipe();
        for (map, most) in &all {
            let range = commands.cmd("ZREVRANGE").arg(name(owner, Kind::Map, map));
            range.arg(0).arg(most.saturating_sub(1)).arg("WITHSCORES");
        }
        let there: Option<Vec<Vec<(Bytes, f64)>>> =
            self.talk(async |server| commands.query_async(server).await).await;
        let mut noted: Vec<(usize, String, Note)> = Vec::new();
        for (which, (name, most)) in all.iter().enumerate() {
            match there.as_ref().and_then(|there| there.get(which)) {
                Some(there) => {
                    let members = there.iter();
                    for (id, note) in
                        members.filter_map(|(member, score)| Note::of_member(member, *score as u64))
                    {
                        let (at, keep) = (id_in(name, &id), self.shared.keep);
                        self.shared.copy.put_if_absent(owner, Kind::Map, &at, note.kept(), keep);
                        noted.push((which, id, note));
                    }
                }
                None => {
                    let here = self.shared.copy.noted_in(owner, name, *most).into_iter();
                    noted.extend(
                        here.filter_map(|it| Some((which, it.id, Note::of_kept(&it.note)?))),
                    );
                }
            }
        }
        // What was noted again is there twice: the last counts.
        noted.sort_by_key(|(.., note)| std::cmp::Reverse(note.score));
        let mut seen = HashSet::new();
        noted.retain(|(which, id, _)| seen.insert((*which, id.clone())));
        noted.reverse();
        let listed = |(which, id, Note { note, .. })| Listed {
            map: which / parts.len(),
            part: which % parts.len(),
            id,
            note,
        };
        last_of(noted.into_iter().map(listed).collect(), wanted)
    }

    pub(super) fn append(
        &self,
        owner: Owner,
        kind: Kind,
        id: &str,
        values: &[Bytes],
        keep: Duration,
    ) {
        let now = clock::millis();
        let stamped: Vec<_> = values.iter().map(|value| self.stamped(now, value)).collect();
        self.shared.copy.append(owner, kind, id, stamped.clone(), keep);
        self.send(Write::Append(name(owner, kind, id), stamped, keep));
    }

    fn stamped(&self, now: u64, value: &[u8]) -> Bytes {
        let number = self.shared.stamped.fetch_add(1, Ordering::Relaxed);
        let mut out = Vec::with_capacity(STAMP + value.len());
        for part in [now, self.shared.process, number] {
            out.extend_from_slice(&part.to_be_bytes());
        }
        out.extend_from_slice(value);
        Bytes::from(out)
    }

    pub(super) async fn delete(&self, owner: Owner, kind: Kind, id: &str) -> bool {
        let here = self.shared.copy.delete(owner, kind, id);
        let (reply, answer) = oneshot::channel();
        self.send(Write::Delete(name(owner, kind, id), reply));
        if self.is_away() {
            return here;
        }
        let there = tokio::time::timeout(PATIENCE, answer).await;
        there.ok().and_then(Result::ok).unwrap_or(here)
    }

    pub(super) async fn settle(&self) {
        if self.is_away() {
            return;
        }
        let (reply, answer) = oneshot::channel();
        self.send(Write::Settle(reply));
        let mut lost = self.shared.lost_signal();
        tokio::select! {
            // Nobody waits for long, and for nothing when the server is gone.
            _ = tokio::time::timeout(PATIENCE, answer) => {}
            _ = lost.wait_for(|away| *away) => {}
        }
    }
}

impl Drop for Valkey {
    /// Says what a server that is away has not got.
    fn drop(&mut self) {
        self.shared.leave();
    }
}

/// What a map notes of an entry: in a server a member of a sorted set, in a copy an entry.
pub(super) struct Note {
    pub(super) score: u64,
    note: String,
}

impl Note {
    /// The member of a set.
    pub(super) fn member(&self, id: &str) -> String {
        [id, "\n", &self.note].concat()
    }

    fn of_member(member: &[u8], score: u64) -> Option<(String, Self)> {
        let (id, note) = std::str::from_utf8(member).ok()?.split_once('\n')?;
        Some((id.to_owned(), Self { score, note: note.to_owned() }))
    }

    fn kept(&self) -> Bytes {
        Bytes::from([&self.score.to_be_bytes()[..], self.note.as_bytes()].concat())
    }

    pub(super) fn of_kept(kept: &[u8]) -> Option<Self> {
        let (score, note) = kept.split_first_chunk()?;
        let note = std::str::from_utf8(note).ok()?.to_owned();
        Some(Self { score: u64::from_be_bytes(*score), note })
    }
}

/// What an entry is called in the server.
pub(super) fn name(owner: Owner, kind: Kind, id: &str) -> String {
    let owner: String = owner.bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("toolgate:{owner}:{}:{id}", kind.name())
}
