//! The connection to the server: shared state, loss, and restoring entries that the server has lost.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Pipeline, RedisResult};
use tokio::sync::watch;

use super::command::{Names, encode_item, member};
use crate::Metrics;
use crate::key::STAMP_LEN;
use crate::memory::Memory;
use crate::now_millis;
use crate::queue::{Change, MAX_QUEUED_BYTES, MIN_QUEUED_BYTES, Queue, Write};
use crate::store::Options;

/// How long the server may take to respond.
pub(super) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(2);
/// Timeout for restoring one batch of lost entries.
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

/// Knowledge of the writer about the server across connections.
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

    /// Connects again, and restores the lost entries of a server that was restarted.
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
                let mut pipe = redis::pipe();
                writes.iter().for_each(|write| restore(&mut pipe, &names, write));
                pipe.exec_async(&mut connection).await?;
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

/// Adds the items of ARGV to a list that it does not have, in the order of their stamps.
const MERGE: &str = "local all = redis.call('LRANGE', KEYS[1], 0, -1)
local count, has = #all, {}
local function stamp(item) return string.sub(item, 1, tonumber(ARGV[2])) end
for _, item in ipairs(all) do has[stamp(item)] = true end
for at = 3, #ARGV do if not has[stamp(ARGV[at])] then table.insert(all, ARGV[at]) end end
if #all == count then return end
-- Byte by byte: how Lua compares strings depends on the locale of the server.
table.sort(all, function(one, two)
  for at = 1, tonumber(ARGV[2]) do
    local a, b = string.byte(one, at), string.byte(two, at)
    if a ~= b then return a < b end
  end
  return false
end)
redis.call('DEL', KEYS[1])
for _, item in ipairs(all) do redis.call('RPUSH', KEYS[1], item) end
redis.call('PEXPIRE', KEYS[1], ARGV[1])";

/// Adds the commands that return an entry to a server which may not have it. Other gateways may do the
/// same at the same time.
fn restore(pipe: &mut Pipeline, names: &Names, Write { key, change, expires }: &Write) {
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
            let merge = pipe.cmd("EVAL").arg(MERGE).arg(1).arg(name).arg(left).arg(STAMP_LEN);
            for item in items {
                merge.arg(encode_item(item));
            }
            merge.ignore();
            return;
        }
        Change::Erase(_) | Change::Delete => return,
    };
    pipe.cmd("SET").arg(name).arg(&value[..]).arg("NX").arg("PX").arg(left).ignore();
}
