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
use redis::{Client, Cmd, FromRedisValue};
use tokio::sync::{mpsc, oneshot};

use super::valkey_server::{self, PATIENCE, Shared, Write};
use super::{Kind, Listing, Look, Opening, StoreError, id_in};
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
/// What stands before the value of a list and an id in a map: when it was written, by whom, and its
/// number. They sort by it, and one that was sent twice is known by it.
pub(super) const STAMP: usize = 24;

/// What a server has in a map: names, and stamped ids.
type Fields = Vec<(String, Bytes)>;

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
        let (number, mut server) = self.shared.server()?;
        match tokio::time::timeout(PATIENCE, command.query_async(&mut server)).await {
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
        places: &[(&str, &str)],
        keep: Duration,
    ) {
        self.put(owner, kind, id, value, keep);
        for (map, field) in places {
            let stamped = self.stamped(clock::millis(), id.as_bytes());
            self.shared.copy.put(owner, Kind::Map, &id_in(map, field), stamped.clone(), keep);
            let map = name(owner, Kind::Map, map);
            self.send(Write::PutIn(map, (*field).to_owned(), stamped, keep));
        }
    }

    pub(super) async fn in_map(&self, owner: Owner, map: &str, look: &Look) -> Option<Listing> {
        self.catch_up().await;
        let there = match look {
            Look::All(most) => self.all_in(owner, map, *most).await,
            Look::Named(names) => self.named_in(owner, map, names).await.map(Some),
        };
        let mut named = match there {
            Some(named) => {
                let named = named?;
                for (field, value) in &named {
                    let (id, keep) = (id_in(map, field), self.shared.keep);
                    self.shared.copy.put_if_absent(owner, Kind::Map, &id, value.clone(), keep);
                }
                named
            }
            None => self.shared.copy.values_in(owner, map, look)?,
        };
        named.sort_by(|(_, one), (_, other)| one.cmp(other));
        let text = |id: &[u8]| String::from_utf8_lossy(id).into_owned();
        let id = |value: Bytes| value.get(STAMP..).map(text);
        Some(named.into_iter().filter_map(|(field, value)| Some((field, id(value)?))).collect())
    }

    /// `None`: the server does not say. `Some(None)`: it is too much.
    async fn all_in(&self, owner: Owner, map: &str, most: usize) -> Option<Option<Fields>> {
        let map = name(owner, Kind::Map, map);
        let mut length = redis::cmd("HLEN");
        match self.ask::<usize>(length.arg(&map)).await? {
            0 => return Some(Some(Vec::new())),
            length if length > most => return Some(None),
            _ => {}
        }
        let mut command = redis::cmd("HGETALL");
        self.ask(command.arg(map)).await.map(Some)
    }

    async fn named_in(&self, owner: Owner, map: &str, names: &[String]) -> Option<Fields> {
        if names.is_empty() {
            return Some(Vec::new());
        }
        let mut command = redis::cmd("HMGET");
        command.arg(name(owner, Kind::Map, map)).arg(names);
        let values: Vec<Option<Bytes>> = self.ask(&command).await?;
        let named = names.iter().cloned().zip(values);
        Some(named.filter_map(|(name, value)| Some((name, value?))).collect())
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

/// What an entry is called in the server.
pub(super) fn name(owner: Owner, kind: Kind, id: &str) -> String {
    let owner: String = owner.bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("toolgate:{owner}:{}:{id}", kind.name())
}
