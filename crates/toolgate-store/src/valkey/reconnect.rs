//! The connection to the server: shared state, loss, and return of what the server has lost.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisResult};
use tokio::sync::watch;

use super::command::{Names, decode_item, encode_item, member};
use crate::Metrics;
use crate::key::Stamp;
use crate::memory::Memory;
use crate::now_millis;
use crate::queue::{Change, MAX_QUEUED_BYTES, MIN_QUEUED_BYTES, Queue, Write};
use crate::store::{Item, Options};

/// How long the server may take to respond.
pub(super) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long it may take to accept a part of what it has lost.
const RESTORE_TIMEOUT: Duration = Duration::from_secs(10);
/// Number of entries that are returned to the server at once.
const ENTRIES_PER_RESTORE: usize = 256;
/// Where the server has the secret of the store.
const SECRET: &str = "toolgate:secret";

/// State that reads and the writer share.
pub(super) struct Server {
    client: Client,
    place: String,
    connection: RwLock<Option<(u64, MultiplexedConnection)>>,
    connections: AtomicU64,
    names: RwLock<Names>,
    away: watch::Sender<bool>,
    pub(super) queue: Queue,
    /// What this process has written or read.
    pub(super) copy: Memory,
    pub(super) retention: Duration,
    metrics: Metrics,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Server").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Server {
    pub(super) fn new(client: Client, place: String, options: &Options) -> Self {
        let max_bytes = options.max_bytes.clamp(MIN_QUEUED_BYTES, MAX_QUEUED_BYTES);
        let metrics = options.metrics.clone();
        Self {
            client,
            connection: RwLock::new(None),
            connections: AtomicU64::new(0),
            names: RwLock::new(Names::new(&options.new_secret)),
            away: watch::Sender::new(true),
            queue: Queue::new(place.clone(), max_bytes, Duration::ZERO, metrics.clone()),
            place,
            copy: Memory::new(max_bytes),
            retention: options.retention,
            metrics,
        }
    }

    /// Returns the connection and its number; `None` while the server is away.
    pub(super) fn connection(&self) -> Option<(u64, MultiplexedConnection)> {
        self.connection.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn names(&self) -> Names {
        self.names.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn is_away(&self) -> bool {
        *self.away.borrow()
    }

    /// Says when the server is away.
    pub(super) fn away(&self) -> watch::Receiver<bool> {
        self.away.subscribe()
    }

    /// A connection failed.
    pub(super) fn lose(&self, number: u64, error: &str) {
        let mut connection = self.connection.write().unwrap_or_else(PoisonError::into_inner);
        if connection.as_ref().is_none_or(|(current, _)| *current != number) {
            return;
        }
        *connection = None;
        drop(connection);
        self.report_away(error);
    }

    pub(super) fn report_away(&self, error: &str) {
        self.metrics.away.set(1);
        self.queue.set_failing(true);
        self.away.send_replace(true);
        tracing::error!(
            store = self.place,
            error,
            "store away: continuing with what clients carry and what this gateway remembers"
        );
    }

    /// There is a connection. Returns its number.
    pub(super) fn found(&self, connection: MultiplexedConnection) -> u64 {
        let number = self.connections.fetch_add(1, Ordering::Relaxed) + 1;
        let mut current = self.connection.write().unwrap_or_else(PoisonError::into_inner);
        *current = Some((number, connection));
        drop(current);
        self.metrics.away.set(0);
        self.queue.set_failing(false);
        self.away.send_replace(false);
        if number > 1 {
            tracing::info!(store = self.place, "store back");
        }
        number
    }
}

/// What the writer knows of the server across connections.
pub(super) struct Session {
    pub(super) secret: [u8; 32],
    /// Whether the secret of the server may differ from ours.
    may_differ: bool,
    /// Identifies the server process, whose state ends with it.
    run_id: String,
}

impl Session {
    pub(super) fn new(secret: [u8; 32], may_differ: bool) -> Self {
        Self { secret, may_differ, run_id: String::new() }
    }

    /// Connects for the first time, and adopts the secret of the server.
    pub(super) async fn connect(&mut self, server: &Server) -> RedisResult<MultiplexedConnection> {
        let mut connection = connect(&server.client).await?;
        self.adopt_secret(server, &mut connection).await?;
        self.run_id = run_id(&mut connection).await?;
        Ok(connection)
    }

    /// Connects again. A server that was restarted gets what it has lost.
    pub(super) async fn reconnect(
        &mut self,
        server: &Server,
    ) -> RedisResult<MultiplexedConnection> {
        let mut connection = connect(&server.client).await?;
        let before = self.secret;
        self.adopt_secret(server, &mut connection).await?;
        if self.secret != before && !self.may_differ {
            tracing::error!(
                store = server.place,
                "store has another secret than before; give all gateways the same signatures.key"
            );
        }
        let run_id = run_id(&mut connection).await?;
        if run_id.is_empty() || run_id != self.run_id {
            let (names, writes) = (server.names(), server.copy.snapshot());
            for writes in writes.chunks(ENTRIES_PER_RESTORE) {
                restore(&mut connection, &names, writes).await?;
            }
            self.run_id = run_id;
        }
        Ok(connection)
    }

    /// Reads the secret of the server; one that has none gets ours.
    async fn adopt_secret(
        &mut self,
        server: &Server,
        connection: &mut MultiplexedConnection,
    ) -> RedisResult<()> {
        let mut pipe = redis::pipe();
        pipe.cmd("SET").arg(SECRET).arg(&self.secret[..]).arg("NX").ignore();
        pipe.cmd("GET").arg(SECRET);
        let (secret,): (Vec<u8>,) = pipe.query_async(connection).await?;
        if let Ok(secret) = <[u8; 32]>::try_from(secret) {
            self.secret = secret;
            *server.names.write().unwrap_or_else(PoisonError::into_inner) = Names::new(&secret);
        }
        Ok(())
    }
}

async fn connect(client: &Client) -> RedisResult<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(RESPONSE_TIMEOUT))
        .set_response_timeout(Some(RESTORE_TIMEOUT));
    client.get_multiplexed_async_connection_with_config(&config).await
}

/// Returns the id of the server process.
async fn run_id(connection: &mut MultiplexedConnection) -> RedisResult<String> {
    let info: String = redis::cmd("INFO").arg("server").query_async(connection).await?;
    let id = info.lines().find_map(|line| line.trim().strip_prefix("run_id:"));
    Ok(id.unwrap_or_default().to_owned())
}

/// Replaces a list, unless its length has changed.
const REPLACE: &str = "if redis.call('LLEN', KEYS[1]) ~= tonumber(ARGV[1]) then return 0 end
redis.call('DEL', KEYS[1])
for at = 3, #ARGV do redis.call('RPUSH', KEYS[1], ARGV[at]) end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1";

/// Returns entries to a server that does not have them. Other gateways may do the same at the same time.
async fn restore(
    connection: &mut MultiplexedConnection,
    names: &Names,
    writes: &[Write],
) -> RedisResult<()> {
    let mut pipe = redis::pipe();
    let mut lists: Vec<(String, &[Item], i64)> = Vec::new();
    for Write { key, change, expires } in writes {
        let (name, left) = (names.key(key), (expires - now_millis()).max(1));
        let value = match change {
            Change::Put(value) => value,
            Change::PutCall(value, index) => {
                for session in &index.sessions {
                    let set = names.calls(key.owner, session, &index.content);
                    let member = member(&key.id, &index.previous);
                    pipe.cmd("ZADD").arg(&set).arg("NX").arg(index.seq).arg(member).ignore();
                    pipe.cmd("PEXPIRE").arg(set).arg(left).ignore();
                }
                value
            }
            Change::Append(items) => {
                lists.push((name, items, left));
                continue;
            }
            Change::Erase(_) | Change::Delete => continue,
        };
        let set = pipe.cmd("SET").arg(name).arg(&value[..]);
        set.arg("NX").arg("PX").arg(left).ignore();
    }
    if !pipe.is_empty() {
        pipe.exec_async(connection).await?;
    }
    restore_lists(connection, lists).await
}

async fn restore_lists(
    connection: &mut MultiplexedConnection,
    mut lists: Vec<(String, &[Item], i64)>,
) -> RedisResult<()> {
    while !lists.is_empty() {
        let mut pipe = redis::pipe();
        for (name, ..) in &lists {
            pipe.cmd("LRANGE").arg(name).arg(0).arg(-1);
        }
        let there: Vec<Vec<Bytes>> = pipe.query_async(connection).await?;
        let mut pipe = redis::pipe();
        let mut sent = Vec::new();
        for ((name, items, left), there) in lists.into_iter().zip(there) {
            let Some(all) = united(&there, items) else { continue };
            let eval = pipe.cmd("EVAL").arg(REPLACE).arg(1).arg(&name);
            eval.arg(there.len()).arg(left);
            for item in &all {
                eval.arg(encode_item(item));
            }
            sent.push((name, items, left));
        }
        if sent.is_empty() {
            return Ok(());
        }
        let done: Vec<i64> = pipe.query_async(connection).await?;
        let again = sent.into_iter().zip(done).filter(|(_, done)| *done == 0);
        lists = again.map(|(list, _)| list).collect();
    }
    Ok(())
}

/// Two lists as one, in the order of their stamps; `None` if the first has all items.
fn united(there: &[Bytes], here: &[Item]) -> Option<Vec<Item>> {
    let mut all: Vec<Item> = there.iter().filter_map(decode_item).collect();
    let mut seen: HashSet<Stamp> = all.iter().map(|item| item.stamp).collect();
    let count = all.len();
    all.extend(here.iter().filter(|item| seen.insert(item.stamp)).cloned());
    if all.len() == count {
        return None;
    }
    all.sort_by_key(|item| item.stamp);
    Some(all)
}
