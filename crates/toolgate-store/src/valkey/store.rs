//! Handle of the Valkey store.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use redis::aio::MultiplexedConnection;
use redis::{Client, Cmd, FromRedisValue, RedisResult};

use super::command::{decode_item, found_call};
use super::reconnect::{RESPONSE_TIMEOUT, Server};
use super::writer::Writer;
use crate::key::{Key, Kind, Owner};
use crate::now_millis;
use crate::queue::{CallIndex, Write};
use crate::store::{Content, FoundCall, Item, OpenError, Options, newest};

/// A connection to a server that keeps state.
#[derive(Debug)]
pub(crate) struct Valkey {
    server: Arc<Server>,
}

impl Valkey {
    /// Connects. Returns the secret that is kept on the server, too.
    pub(crate) async fn open(url: &str, options: Options) -> Result<(Self, [u8; 32]), OpenError> {
        // The URL may hold a password.
        let place = url.rsplit_once('@').map_or(url, |(_, place)| place);
        let place = place.rsplit_once("//").map_or(place, |(_, place)| place).to_owned();
        let failed = |reason: String| OpenError { place: place.clone(), reason };
        // The process may have chosen a provider already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::open(url).map_err(|error| failed(error.to_string()))?;
        let server = Arc::new(Server::new(client, place.clone(), &options));
        let secret =
            Writer::start(&server, &options).await.map_err(|error| failed(error.to_string()))?;
        Ok((Self { server }, secret))
    }

    /// Whether the server cannot be reached.
    pub(crate) fn is_degraded(&self) -> bool {
        self.server.is_away()
    }

    pub(crate) fn write(&self, write: Write) {
        self.server.copy.apply(&write);
        self.server.queue.push(write);
    }

    pub(crate) async fn flush(&self) -> bool {
        self.server.queue.flush().await
    }

    async fn query<T: FromRedisValue>(&self, command: &Cmd) -> Option<T> {
        self.run(async |connection| command.query_async(connection).await).await
    }

    /// Asks the server; `None` while it is away.
    async fn run<T>(
        &self,
        ask: impl AsyncFnOnce(&mut MultiplexedConnection) -> RedisResult<T>,
    ) -> Option<T> {
        let (number, mut connection) = self.server.connection()?;
        let answer = match tokio::time::timeout(RESPONSE_TIMEOUT, ask(&mut connection)).await {
            Ok(answer) => answer.map_err(|error| error.to_string()),
            Err(_) => Err("no response".to_owned()),
        };
        answer.inspect_err(|error| self.server.lose(number, error)).ok()
    }

    fn expires(&self) -> i64 {
        let retention = i64::try_from(self.server.retention.as_millis()).unwrap_or(i64::MAX);
        now_millis().saturating_add(retention)
    }

    pub(crate) async fn get(&self, owner: Owner, kind: Kind, ids: &[String]) -> Vec<Option<Bytes>> {
        if ids.is_empty() {
            return Vec::new();
        }
        let Server { queue, copy, .. } = &*self.server;
        let keys: Vec<Key> = ids.iter().map(|id| Key::new(owner, kind, id)).collect();
        queue.wait_for(keys.iter().map(|key| queue.key_hash(key))).await;
        let names = self.server.names();
        let mut command = redis::cmd("MGET");
        for key in &keys {
            command.arg(names.key(key));
        }
        let Some(values) = self.query::<Vec<Option<Bytes>>>(&command).await else {
            return copy.get(owner, kind, ids);
        };
        let is_settled = queue.pending() == 0;
        for (key, value) in keys.into_iter().zip(&values) {
            match value {
                Some(value) => copy.put_if_absent(key, value.clone(), self.expires()),
                None if is_settled => copy.remove(&key),
                None => {}
            }
        }
        values
    }

    pub(crate) async fn list(&self, owner: Owner, kind: Kind, id: &str) -> Vec<Item> {
        let (queue, copy) = (&self.server.queue, &self.server.copy);
        let key = Key::new(owner, kind, id);
        queue.wait_for([queue.key_hash(&key)]).await;
        let mut command = redis::cmd("LRANGE");
        command.arg(self.server.names().key(&key)).arg(0).arg(-1);
        let Some(items) = self.query::<Vec<Bytes>>(&command).await else {
            return copy.list(owner, kind, id);
        };
        // A write whose acknowledgement was lost was sent twice.
        let mut seen = HashSet::new();
        let items = items.iter().filter_map(decode_item);
        let items: Vec<Item> = items.filter(|item| seen.insert(item.stamp)).collect();
        copy.merge(key, items.clone(), self.expires());
        items
    }

    pub(crate) async fn find_calls(
        &self,
        owner: Owner,
        sessions: &[String],
        contents: &[Content],
    ) -> Vec<FoundCall> {
        if sessions.is_empty() || contents.is_empty() {
            return Vec::new();
        }
        let (queue, copy) = (&self.server.queue, &self.server.copy);
        queue.wait_for(sessions.iter().map(|it| queue.session_hash(owner, it))).await;
        let names = self.server.names();
        let mut commands = redis::pipe();
        for session in sessions {
            for content in contents {
                let range =
                    commands.cmd("ZREVRANGE").arg(names.calls(owner, session, &content.key));
                range.arg(0).arg(content.limit.saturating_sub(1)).arg("WITHSCORES");
            }
        }
        let answer: Option<Vec<Vec<(Bytes, f64)>>> =
            self.run(async |connection| commands.query_async(connection).await).await;
        let Some(answer) = answer else { return copy.find_calls(owner, sessions, contents) };
        let mut found: Vec<(u64, FoundCall)> = Vec::new();
        for (number, members) in answer.iter().enumerate() {
            let (session, content) = (number / contents.len(), number % contents.len());
            let calls = members.iter().filter_map(|(member, score)| {
                Some((*score as u64, found_call(member, session, content)?))
            });
            found.extend(calls);
        }
        self.remember(owner, sessions, contents, &found);
        newest(found, contents)
    }

    /// Adds calls to the copy.
    fn remember(
        &self,
        owner: Owner,
        sessions: &[String],
        contents: &[Content],
        found: &[(u64, FoundCall)],
    ) {
        let mut calls: HashMap<&str, CallIndex> = HashMap::new();
        for (seq, call) in found {
            let index = calls.entry(&call.token).or_insert_with(|| CallIndex {
                sessions: Vec::new(),
                content: contents[call.content].key.clone(),
                previous: call.previous.clone(),
                seq: *seq,
            });
            index.sessions.push(sessions[call.session].clone());
        }
        for (token, index) in calls {
            let key = Key::new(owner, Kind::Signature, token);
            self.server.copy.put_call_if_absent(key, index, self.expires());
        }
    }
}

impl Drop for Valkey {
    fn drop(&mut self) {
        self.server.queue.close();
        if self.server.is_away() {
            self.server.queue.abandon();
        }
    }
}
