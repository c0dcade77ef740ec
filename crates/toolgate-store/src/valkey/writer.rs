//! Writer task of the Valkey store: sends queued writes, in order.

use std::sync::Arc;
use std::time::Duration;

use redis::RedisResult;
use redis::aio::MultiplexedConnection;

use super::command::{is_temporary, push};
use super::reconnect::{RESPONSE_TIMEOUT, Server, Session};
use crate::queue::{Backoff, Batch};
use crate::store::Options;

/// Interval at which an idle server is asked whether it is there.
const PING_INTERVAL: Duration = Duration::from_secs(5);
/// Longest delay between attempts to connect.
const MAX_BACKOFF: Duration = Duration::from_secs(2);
/// Number of writes that are sent in one transaction.
const WRITES_PER_TRANSACTION: usize = 256;

/// State of the writer task.
pub(super) struct Writer {
    server: Arc<Server>,
    session: Session,
    /// The batch that the server does not have yet, and how many of its writes it has.
    batch: Option<Batch>,
    sent: usize,
    rejected: u64,
}

impl Writer {
    /// Connects for the first time and starts the task. Returns the secret on the server. If the caller
    /// can do without it, a server that is away is waited for.
    pub(super) async fn start(server: &Arc<Server>, options: &Options) -> RedisResult<[u8; 32]> {
        let mut session = Session::new(options.new_secret, options.may_start_away);
        let connected = match session.connect(server).await {
            Ok(connection) => Some((server.found(connection.clone()), connection)),
            Err(error) if options.may_start_away && is_temporary(&error) => {
                server.report_away(&error.to_string());
                None
            }
            Err(error) => return Err(error),
        };
        let secret = session.secret;
        let server = Arc::clone(server);
        let writer = Self { server, session, batch: None, sent: 0, rejected: 0 };
        tokio::spawn(writer.run(connected));
        Ok(secret)
    }

    /// Writes until the store is dropped.
    async fn run(mut self, mut connected: Option<(u64, MultiplexedConnection)>) {
        loop {
            if let Some((number, connection)) = connected.take() {
                match self.serve(connection).await {
                    Ok(()) => return,
                    Err(error) => self.server.lose(number, &error),
                }
            }
            if let Some(batch) = &mut self.batch {
                self.server.queue.failed(batch, &"server away");
            }
            let mut backoff = Backoff::new(MAX_BACKOFF);
            let connection = loop {
                match self.session.reconnect(&self.server).await {
                    Ok(connection) => break connection,
                    Err(error) => tracing::debug!(%error, "store still away"),
                }
                if self.server.queue.is_closed() {
                    return;
                }
                tokio::time::sleep(backoff.next()).await;
            };
            connected = Some((self.server.found(connection.clone()), connection));
        }
    }

    /// Sends batches until the connection is lost, which is an error, or the store is dropped.
    async fn serve(&mut self, mut connection: MultiplexedConnection) -> Result<(), String> {
        let server = Arc::clone(&self.server);
        let mut away = server.away();
        loop {
            if self.batch.is_none() {
                let lost = async { drop(away.wait_for(|away| *away).await) };
                let next = tokio::select! {
                    biased;
                    () = lost => return Err(String::new()),
                    next = tokio::time::timeout(PING_INTERVAL, server.queue.next_batch()) => next,
                };
                let Ok(next) = next else {
                    ping(&mut connection).await?;
                    continue;
                };
                let Some(next) = next else { return Ok(()) };
                (self.batch, self.sent, self.rejected) = (Some(next), 0, 0);
            }
            self.send(&mut connection).await?;
            if let Some(batch) = self.batch.take() {
                server.queue.committed(batch, self.rejected);
            }
        }
    }

    /// Sends the rest of the batch.
    async fn send(&mut self, connection: &mut MultiplexedConnection) -> Result<(), String> {
        let names = self.server.names();
        let Some(batch) = &self.batch else { return Ok(()) };
        while let Some(writes) = batch.writes.get(self.sent..).filter(|rest| !rest.is_empty()) {
            let writes = &writes[..writes.len().min(WRITES_PER_TRANSACTION)];
            let mut pipe = redis::pipe();
            pipe.atomic();
            writes.iter().for_each(|write| push(&mut pipe, &names, write));
            match tokio::time::timeout(RESPONSE_TIMEOUT, pipe.exec_async(connection)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) if !is_temporary(&error) => {
                    tracing::debug!(%error, "writes rejected");
                    self.rejected += writes.len() as u64;
                }
                Ok(Err(error)) => return Err(error.to_string()),
                Err(_) => return Err("no response".to_owned()),
            }
            self.sent += writes.len();
        }
        Ok(())
    }
}

async fn ping(connection: &mut MultiplexedConnection) -> Result<(), String> {
    let ping = redis::cmd("PING");
    let answer = ping.exec_async(connection);
    match tokio::time::timeout(RESPONSE_TIMEOUT, answer).await {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(_) => Err("no response".to_owned()),
    }
}
