//! The task that speaks with a Valkey or Redis server: writes, in order; connects again; gives back
//! what the server has lost.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, ErrorKind, Pipeline, RedisError, RedisResult, ServerError,
};
use tokio::sync::{mpsc, oneshot, watch};

use super::memory::{Kept, Memory};
use super::valkey::{Note, STAMP, name};
use super::{KEY, Opening, Shape};
use crate::metrics::StoreMetrics;

/// How long the server may take to answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);
/// How long it may take to get back what it has lost, a batch at a time.
const LONG_PATIENCE: Duration = Duration::from_secs(10);
/// The first wait before a server that is away is tried again; it doubles.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// How often a server is asked whether it is there, where there is nothing else to ask.
const BEAT: Duration = Duration::from_secs(5);
/// How many writes are sent at once.
const BATCH: usize = 256;
/// How much a map has at the most: the oldest go first.
const MOST_IN_MAP: i64 = 16_384;
/// The most of the copy in memory, and of the writes that wait.
const COPY: u64 = 64 << 20;

/// A write on its way.
#[derive(Debug)]
pub(super) enum Write {
    Put(String, Bytes, Duration),
    PutIn(String, u64, String, Duration),
    Append(String, Vec<Bytes>, Duration),
    Delete(String, oneshot::Sender<bool>),
    Settle(oneshot::Sender<()>),
}

impl Write {
    /// Whether something is lost without it.
    fn is_change(&self) -> bool {
        match self {
            Self::Put(..) | Self::PutIn(..) | Self::Append(..) | Self::Delete(..) => true,
            Self::Settle(_) => false,
        }
    }

    fn bytes(&self) -> u64 {
        let bytes = match self {
            Self::Put(name, value, _) => name.len() + value.len(),
            Self::PutIn(name, _, member, _) => name.len() + member.len(),
            Self::Append(name, values, _) => {
                name.len() + values.iter().map(Bytes::len).sum::<usize>()
            }
            Self::Delete(name, _) => name.len(),
            Self::Settle(_) => 0,
        };
        bytes as u64
    }
}

/// What readers and the task share.
pub(super) struct Shared {
    client: Client,
    place: String,
    server: RwLock<Option<(u64, MultiplexedConnection)>>,
    connections: AtomicU64,
    away: watch::Sender<bool>,
    pub(super) copy: Memory,
    pub(super) keep: Duration,
    /// Writes that the server does not have yet, and their bytes.
    pub(super) pending: AtomicUsize,
    waiting: AtomicU64,
    limit: u64,
    /// Tells the list values of this process from others'.
    pub(super) process: u64,
    pub(super) stamped: AtomicU64,
    metrics: StoreMetrics,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn new(client: Client, place: String, opening: &Opening) -> Self {
        // The key is drawn at random, and must not be told from what is derived of it.
        let drawn = ring::digest::digest(&ring::digest::SHA256, &opening.new_key);
        let limit = opening.bytes.min(COPY);
        Self {
            client,
            place,
            server: RwLock::new(None),
            connections: AtomicU64::new(0),
            away: watch::Sender::new(true),
            copy: Memory::new(limit),
            keep: opening.keep,
            pending: AtomicUsize::new(0),
            waiting: AtomicU64::new(0),
            limit,
            process: u64::from_be_bytes(std::array::from_fn(|at| drawn.as_ref()[at])),
            stamped: AtomicU64::new(0),
            metrics: opening.metrics.clone(),
        }
    }

    /// The connection, where there is one, and its number.
    pub(super) fn server(&self) -> Option<(u64, MultiplexedConnection)> {
        self.server.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn is_away(&self) -> bool {
        *self.away.borrow()
    }

    /// Tells when the server is lost.
    pub(super) fn lost_signal(&self) -> watch::Receiver<bool> {
        self.away.subscribe()
    }

    /// A connection is of no use any more.
    pub(super) fn lose(&self, number: u64, why: &str) {
        let mut server = self.server.write().unwrap_or_else(PoisonError::into_inner);
        if server.as_ref().is_none_or(|(current, _)| *current != number) {
            return;
        }
        *server = None;
        drop(server);
        self.metrics.away.set(1);
        self.away.send_replace(true);
        tracing::error!(
            store = self.place,
            "the store is away: {why}; turns go on with what clients carry and what this gateway remembers"
        );
    }

    fn found(&self, connection: MultiplexedConnection) -> u64 {
        let number = self.connections.fetch_add(1, Ordering::Relaxed) + 1;
        *self.server.write().unwrap_or_else(PoisonError::into_inner) = Some((number, connection));
        self.metrics.away.set(0);
        self.away.send_replace(false);
        if number > 1 {
            tracing::info!(store = self.place, "the store is back");
        }
        number
    }

    /// Counts a write that will wait, where there is room.
    pub(super) fn has_room(&self, write: &Write) -> bool {
        let bytes = write.bytes();
        if self.waiting.fetch_add(bytes, Ordering::AcqRel) + bytes > self.limit {
            self.waiting.fetch_sub(bytes, Ordering::AcqRel);
            return false;
        }
        self.pending.fetch_add(1, Ordering::AcqRel);
        true
    }

    /// Writes wait no more.
    pub(super) fn arrived(&self, writes: &[Write]) {
        let bytes = writes.iter().map(Write::bytes).sum();
        self.waiting.fetch_sub(bytes, Ordering::AcqRel);
        self.pending.fetch_sub(writes.len(), Ordering::AcqRel);
    }

    /// Nobody waits any longer for a server that is away.
    pub(super) fn leave(&self) {
        let lost = self.pending.load(Ordering::Acquire);
        if self.is_away() && lost > 0 {
            self.metrics.lost.inc_by(lost as u64);
            tracing::error!(
                store = self.place,
                lost,
                "the store is away at the end; what waited for it was not kept"
            );
        }
    }

    /// A write is not kept.
    pub(super) fn give_up(&self, write: &Write) {
        if write.is_change() {
            self.metrics.lost.inc();
            tracing::error!(
                store = self.place,
                "too much waits for the store; something was not kept"
            );
        }
    }
}

/// Connects for the first time, starts the task, and says which key is kept there. A server that is away
/// is waited for, unless its key is needed.
pub(super) async fn start(
    shared: &Arc<Shared>,
    writes: mpsc::Receiver<Write>,
    opening: &Opening,
) -> RedisResult<[u8; 32]> {
    let Opening { new_key: key, has_own_key, .. } = *opening;
    let mut task = Task { shared: Arc::clone(shared), key, has_own_key, run: String::new() };
    let connected = match task.connect().await {
        Ok(connection) => Some((shared.found(connection.clone()), connection)),
        Err(error) if has_own_key && may_pass(&error) => {
            shared.metrics.away.set(1);
            tracing::error!(
                store = shared.place,
                "the store is away: {error}; turns go on with what clients carry and what this gateway remembers"
            );
            None
        }
        Err(error) => return Err(error),
    };
    let key = task.key;
    tokio::spawn(task.serve(connected, writes));
    Ok(key)
}

async fn connect(client: &Client) -> RedisResult<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(PATIENCE))
        .set_response_timeout(Some(LONG_PATIENCE));
    client.get_multiplexed_async_connection_with_config(&config).await
}

/// Another one means that the server was started anew, and may have forgotten.
async fn run_id(connection: &mut MultiplexedConnection) -> RedisResult<String> {
    let about: String = redis::cmd("INFO").arg("server").query_async(connection).await?;
    let id = about.lines().find_map(|line| line.trim().strip_prefix("run_id:"));
    Ok(id.unwrap_or_default().to_owned())
}

struct Task {
    shared: Arc<Shared>,
    key: [u8; 32],
    /// The key in the server means nothing to us.
    has_own_key: bool,
    run: String,
}

impl Task {
    /// Writes until the store is dropped.
    async fn serve(
        mut self,
        mut connected: Option<(u64, MultiplexedConnection)>,
        mut writes: mpsc::Receiver<Write>,
    ) {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            if let Some((number, mut connection)) = connected.take() {
                let Some(why) = self.write(&mut connection, &mut writes, &mut batch).await else {
                    return;
                };
                self.shared.lose(number, &why);
            }
            let mut wait = FIRST_WAIT;
            let connection = loop {
                match self.reconnect().await {
                    Ok(connection) => break connection,
                    Err(error) => tracing::debug!(%error, "the store is still away"),
                }
                tokio::time::sleep(wait).await;
                wait = (2 * wait).min(LONGEST_WAIT);
                if writes.is_closed() {
                    return;
                }
            };
            connected = Some((self.shared.found(connection.clone()), connection));
        }
    }

    /// Connects for the first time, and takes over what is there.
    async fn connect(&mut self) -> RedisResult<MultiplexedConnection> {
        let mut connection = connect(&self.shared.client).await?;
        self.key = self.kept_key(&mut connection).await?;
        self.run = run_id(&mut connection).await?;
        Ok(connection)
    }

    /// Writes in order, until the connection is lost (and why), or there is nobody left to write.
    async fn write(
        &self,
        connection: &mut MultiplexedConnection,
        writes: &mut mpsc::Receiver<Write>,
        batch: &mut Vec<Write>,
    ) -> Option<String> {
        let mut lost = self.shared.lost_signal();
        loop {
            if batch.is_empty() {
                tokio::select! {
                    biased;
                    _ = lost.wait_for(|away| *away) => return Some(String::new()),
                    count = writes.recv_many(batch, BATCH) => if count == 0 { return None },
                    () = tokio::time::sleep(BEAT) => {}
                }
            }
            let pipe = pipeline(batch);
            let sent =
                tokio::time::timeout(PATIENCE, pipe.query_async::<Vec<i64>>(connection)).await;
            let deleted = match sent {
                Ok(Ok(deleted)) => deleted,
                Ok(Err(error)) if !may_pass(&error) => {
                    let lost = batch.iter().filter(|write| write.is_change()).count();
                    self.shared.metrics.lost.inc_by(lost as u64);
                    tracing::error!(store = self.shared.place, %error, lost, "the store refuses; something was not kept");
                    Vec::new()
                }
                Ok(Err(error)) => return Some(error.to_string()),
                Err(_) => return Some("it does not answer".to_owned()),
            };
            self.shared.arrived(batch);
            let mut deleted = deleted.into_iter();
            for write in batch.drain(..) {
                // Whoever asked may be gone.
                match write {
                    Write::Delete(_, reply) => drop(reply.send(deleted.next().unwrap_or(0) > 0)),
                    Write::Settle(reply) => drop(reply.send(())),
                    Write::Put(..) | Write::PutIn(..) | Write::Append(..) => {}
                }
            }
        }
    }

    /// A connection to a server that knows all that we know.
    async fn reconnect(&mut self) -> RedisResult<MultiplexedConnection> {
        let mut connection = connect(&self.shared.client).await?;
        if self.kept_key(&mut connection).await? != self.key && !self.has_own_key {
            tracing::error!(
                store = self.shared.place,
                "the store has another key than before; give all gateways the same signatures.key"
            );
        }
        let run = run_id(&mut connection).await?;
        if run.is_empty() || run != self.run {
            let kept = self.shared.copy.all();
            for some in kept.chunks(BATCH) {
                give_back(&mut connection, some).await?;
            }
            self.run = run;
        }
        Ok(connection)
    }

    /// The key that is kept in the server: ours, unless somebody came before.
    async fn kept_key(&self, connection: &mut MultiplexedConnection) -> RedisResult<[u8; 32]> {
        let own = format!("toolgate:own:{KEY}");
        let mut pipe = redis::pipe();
        pipe.cmd("SET").arg(&own).arg(&self.key[..]).arg("NX").ignore();
        pipe.cmd("GET").arg(&own);
        let (key,): (Vec<u8>,) = pipe.query_async(connection).await?;
        Ok(<[u8; 32]>::try_from(key).unwrap_or(self.key))
    }
}

/// Whether what failed now may go well later.
fn may_pass(error: &RedisError) -> bool {
    match error.clone().into_server_errors() {
        Some(causes) => {
            let may_pass = |cause: &ServerError| is_passing(cause.code(), cause.details());
            causes.iter().any(|(_, cause)| may_pass(cause))
        }
        None => !matches!(error.kind(), ErrorKind::Extension | ErrorKind::UnexpectedReturnType),
    }
}

/// Whether a server that refuses with this code may take it later: it starts, fails over, waits for
/// replicas, or for somebody to make room.
fn is_passing(code: &str, details: Option<&str>) -> bool {
    match code {
        "BUSY" | "CLUSTERDOWN" | "LOADING" | "MASTERDOWN" | "MISCONF" | "NOREPLICAS" | "OOM"
        | "READONLY" | "TRYAGAIN" => true,
        // A transaction that was refused as a whole says in its own words why.
        "EXECABORT" => {
            let cause = details.and_then(|details| details.rsplit_once("because of: "));
            let code = cause.and_then(|(_, cause)| cause.split_whitespace().next());
            code.is_some_and(|code| is_passing(code, None))
        }
        _ => false,
    }
}

fn pipeline(batch: &[Write]) -> Pipeline {
    let mut pipe = redis::pipe();
    if batch.is_empty() {
        pipe.cmd("PING").ignore();
        return pipe;
    }
    pipe.atomic();
    for write in batch {
        match write {
            // A server knows no entry that is too old already.
            Write::Put(name, _, keep) if keep.is_zero() => {
                pipe.cmd("DEL").arg(name).ignore();
            }
            Write::Put(name, value, keep) => {
                pipe.cmd("SET").arg(name).arg(&value[..]).arg("PX").arg(millis(*keep)).ignore();
            }
            Write::PutIn(name, _, member, keep) if keep.is_zero() => {
                pipe.cmd("ZREM").arg(name).arg(member).ignore();
            }
            Write::PutIn(name, score, member, keep) => {
                pipe.cmd("ZADD").arg(name).arg(score).arg(member).ignore();
                pipe.cmd("ZREMRANGEBYRANK").arg(name).arg(0).arg(-MOST_IN_MAP - 1).ignore();
                pipe.cmd("PEXPIRE").arg(name).arg(millis(*keep)).ignore();
            }
            Write::Append(name, values, keep) => {
                let push = pipe.cmd("RPUSH").arg(name);
                for value in values {
                    push.arg(&value[..]);
                }
                push.ignore();
                pipe.cmd("PEXPIRE").arg(name).arg(millis(*keep)).ignore();
            }
            Write::Delete(name, _) => drop(pipe.cmd("DEL").arg(name)),
            Write::Settle(_) => {}
        }
    }
    pipe
}

/// Milliseconds; a server refuses 0.
fn millis(keep: Duration) -> u64 {
    u64::try_from(keep.as_millis()).unwrap_or(u64::MAX >> 12).max(1)
}

/// Puts a list in place of another, unless that has changed.
const REPLACE: &str = "if redis.call('LLEN', KEYS[1]) ~= tonumber(ARGV[1]) then return 0 end
redis.call('DEL', KEYS[1])
for at = 3, #ARGV do redis.call('RPUSH', KEYS[1], ARGV[at]) end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1";

/// Gives a server what it does not have. Others may do the same at the same time.
async fn give_back(connection: &mut MultiplexedConnection, kept: &[Kept]) -> RedisResult<()> {
    let (mut lists, values): (Vec<&Kept>, Vec<&Kept>) =
        kept.iter().partition(|entry| entry.kind.shape() == Shape::List);
    let mut pipe = redis::pipe();
    for entry in values {
        let Some(value) = entry.values.first() else { continue };
        if let Some((map, id)) = entry.kind.split(&entry.id) {
            let Some(note) = Note::of_kept(value) else { continue };
            let name = name(entry.owner, entry.kind, map);
            pipe.cmd("ZADD").arg(&name).arg("NX").arg(note.score).arg(note.member(id)).ignore();
            pipe.cmd("PEXPIRE").arg(name).arg(millis(entry.left)).ignore();
            continue;
        }
        let name = name(entry.owner, entry.kind, &entry.id);
        let set = pipe.cmd("SET").arg(name).arg(&value[..]);
        set.arg("NX").arg("PX").arg(millis(entry.left)).ignore();
    }
    if !pipe.is_empty() {
        pipe.exec_async(connection).await?;
    }
    while !lists.is_empty() {
        let mut pipe = redis::pipe();
        for entry in &lists {
            let name = name(entry.owner, entry.kind, &entry.id);
            pipe.cmd("LRANGE").arg(name).arg(0).arg(-1);
        }
        let there: Vec<Vec<Bytes>> = pipe.query_async(connection).await?;
        let mut pipe = redis::pipe();
        let mut sent = Vec::new();
        for (entry, there) in lists.into_iter().zip(there) {
            let Some(whole) = united(&there, &entry.values) else { continue };
            let name = name(entry.owner, entry.kind, &entry.id);
            let eval = pipe.cmd("EVAL").arg(REPLACE).arg(1).arg(name);
            eval.arg(there.len()).arg(millis(entry.left));
            for value in &whole {
                eval.arg(&value[..]);
            }
            sent.push(entry);
        }
        if sent.is_empty() {
            return Ok(());
        }
        let done: Vec<i64> = pipe.query_async(connection).await?;
        let again = sent.into_iter().zip(done).filter(|(_, done)| *done == 0);
        lists = again.map(|(entry, _)| entry).collect();
    }
    Ok(())
}

/// Two lists as one, in the order of writing; `None` where the first has all.
fn united(there: &[Bytes], here: &[Bytes]) -> Option<Vec<Bytes>> {
    let stamp = |value: &Bytes| value.slice(..STAMP.min(value.len()));
    let mut seen: HashSet<Bytes> = there.iter().map(stamp).collect();
    let missing: Vec<_> = here.iter().filter(|value| seen.insert(stamp(value))).cloned().collect();
    if missing.is_empty() {
        return None;
    }
    let mut all: Vec<_> = there.iter().cloned().chain(missing).collect();
    all.sort_by_key(stamp);
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_refusals_pass() {
        let because = |cause: &str| format!("Transaction discarded because of: {cause}");
        let (readonly, wrong) = (because("READONLY You can't write."), because("ERR wrong number"));
        let cases = [
            ("READONLY", "You can't write against a read only replica.", true),
            ("NOREPLICAS", "Not enough good replicas to write.", true),
            ("OOM", "command not allowed when used memory > 'maxmemory'.", true),
            ("MISCONF", "Errors writing to the AOF file: No space left on device", true),
            ("LOADING", "the dataset", true),
            ("EXECABORT", readonly.as_str(), true),
            ("EXECABORT", wrong.as_str(), false),
            ("EXECABORT", "Transaction discarded because of previous errors.", false),
            ("WRONGTYPE", "Operation against a key holding the wrong kind of value", false),
            ("NOPERM", "User x has no permissions", false),
        ];
        for (code, details, want) in cases {
            assert_eq!(is_passing(code, Some(details)), want, "{code} {details}");
        }
        let own = RedisError::from((ErrorKind::UnexpectedReturnType, "not a number"));
        let gone = RedisError::from(std::io::Error::other("gone"));
        assert!(!may_pass(&own) && may_pass(&gone));
    }
}
