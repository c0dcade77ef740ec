//! An MCP server as a source of tools.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use rmcp::model::MetaObject;
use tokio::sync::{Mutex, watch};

use super::{Connection, Credentials, Era, Target};
use crate::breaker::Breaker;
use crate::net::{Addresses, HttpClient};
use crate::process::ChildCommand;
use crate::{Control, Failure, Listed, Output, ProcessGuard, Request, Source};

/// JSON-RPC code of headers that do not fit the body.
const HEADER_MISMATCH: i64 = -32020;

/// JSON-RPC code of a version that the server does not speak.
const UNSUPPORTED_VERSION: i64 = -32022;

/// Time to connect to a server and agree on a version. Package runners may have to download first.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);

/// Time in which a server has to answer the question for its era. Silence is rare: most old servers
/// refuse the question, and new ones may still be starting.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest pause after a failure that a call waits for.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// An MCP server.
///
/// It is connected to when it is first needed, and again after it has ended: with a pause that
/// doubles, and not at all for a while after five failures in a minute.
pub struct McpServer {
    label: String,
    target: Target,
    era: Era,
    probe_timeout: Duration,
    connect_timeout: Duration,
    state: Mutex<ServerState>,
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct ServerState {
    connection: Option<Arc<Connection>>,
    breaker: Breaker,
    /// Era that the server was found to have.
    known_era: Option<Era>,
    is_closed: bool,
}

impl std::fmt::Debug for McpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpServer").field("label", &self.label).finish_non_exhaustive()
    }
}

impl McpServer {
    /// A server that is started as a child and speaks over its standard streams.
    pub fn stdio(label: &str, command: ChildCommand, guard: &ProcessGuard) -> Self {
        Self::new(label, Target::Stdio { command, guard: guard.clone() })
    }

    /// A server at a URL.
    ///
    /// # Errors
    /// Fails if TLS cannot be set up.
    pub fn http(
        label: &str,
        url: &str,
        credentials: Credentials,
        addresses: Addresses,
    ) -> io::Result<Self> {
        let client = Box::new(HttpClient::new(addresses)?);
        Ok(Self::new(label, Target::Http { url: url.into(), credentials, client }))
    }

    fn new(label: &str, target: Target) -> Self {
        Self {
            label: label.to_owned(),
            target,
            era: Era::Auto,
            probe_timeout: PROBE_TIMEOUT,
            connect_timeout: CONNECT_TIMEOUT,
            state: Mutex::default(),
            changes: watch::Sender::new(0),
        }
    }

    /// Sets the era instead of finding it out.
    #[must_use]
    pub fn with_era(mut self, era: Era) -> Self {
        self.era = era;
        self
    }

    /// Sets the time in which a server has to answer the question for its era. A server that does not
    /// is taken for one of the old era.
    #[must_use]
    pub fn with_probe_timeout(mut self, timeout: Duration) -> Self {
        self.probe_timeout = timeout;
        self
    }

    /// Sets the time to connect.
    #[must_use]
    pub fn with_connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Process id of a server that runs as a child.
    pub async fn process_id(&self) -> Option<u32> {
        self.state.lock().await.connection.as_ref()?.process_id()
    }

    /// Returns the connection, which is opened if there is none.
    ///
    /// It is opened by a task of its own: a listing that ends in a timeout must not end a server that
    /// takes longer to start.
    async fn connection(self: &Arc<Self>) -> Result<Arc<Connection>, Failure> {
        if let Ok(state) = self.state.try_lock()
            && let Some(connection) = state.connection.as_ref().filter(|it| !it.is_closed())
        {
            return Ok(Arc::clone(connection));
        }
        let server = Arc::clone(self);
        let connecting = tokio::spawn(async move { server.connect().await });
        connecting.await.unwrap_or(Err(Failure::Crashed))
    }

    async fn connect(&self) -> Result<Arc<Connection>, Failure> {
        let mut state = self.state.lock().await;
        if state.is_closed {
            return Err(Failure::Unreachable("the source was closed".to_owned()));
        }
        match state.connection.take() {
            Some(connection) if !connection.is_closed() => {
                state.connection = Some(Arc::clone(&connection));
                return Ok(connection);
            }
            Some(_) => state.breaker.failed(),
            None => {}
        }
        if let Some(at) = state.breaker.blocked_until() {
            let pause = at - tokio::time::Instant::now();
            if pause > MAX_WAIT {
                return Err(Failure::Unreachable("failed too often, retried later".to_owned()));
            }
            tokio::time::sleep_until(at).await;
        }
        let era = state.known_era.unwrap_or(self.era);
        let mut opened = self.open(era).await;
        let has_ended = matches!(&opened, Err(Failure::Unreachable(_)));
        if has_ended && era == Era::Auto && matches!(self.target, Target::Stdio { .. }) {
            // Some old servers end when they are asked for something that they do not know.
            opened = self.open(Era::Legacy).await;
        }
        let is_modern = matches!(&opened, Err(Failure::Protocol { code: UNSUPPORTED_VERSION, .. }));
        if is_modern && era == Era::Auto {
            // The probe was answered too late: a server of the new era refuses the handshake.
            opened = self.open(Era::Modern).await;
        }
        match opened {
            Ok(connection) => {
                let connection = Arc::new(connection);
                state.breaker.succeeded();
                state.known_era = Some(connection.era);
                state.connection = Some(Arc::clone(&connection));
                Ok(connection)
            }
            Err(failure) => {
                state.breaker.failed();
                // The server may have been replaced by one of another era.
                state.known_era = None;
                Err(failure)
            }
        }
    }

    async fn open(&self, era: Era) -> Result<Connection, Failure> {
        let opening =
            Connection::open(&self.target, era, self.probe_timeout, &self.changes, &self.label);
        tokio::time::timeout(self.connect_timeout, opening)
            .await
            .unwrap_or(Err(Failure::Timeout { limit: self.connect_timeout }))
    }

    async fn run(self: &Arc<Self>, request: Request, control: Control) -> Result<Output, Failure> {
        let mut repeated = false;
        loop {
            let connection = self.connection().await?;
            let meta = MetaObject::default();
            let result = connection.call(&request.name, &request.arguments, &meta, &control).await;
            match &result {
                // Nothing was sent, or the server refused before it ran the tool.
                Err(Failure::Unreachable(_)) if !repeated && connection.is_closed() => {}
                Err(Failure::Protocol { code: HEADER_MISMATCH, .. }) if !repeated => {
                    connection.list().await?;
                }
                _ => return result,
            }
            repeated = true;
        }
    }
}

impl Source for McpServer {
    fn list(self: Arc<Self>) -> BoxFuture<'static, Result<Vec<Listed>, Failure>> {
        Box::pin(async move { self.connection().await?.list().await })
    }

    fn call(
        self: Arc<Self>,
        request: Request,
        control: Control,
    ) -> BoxFuture<'static, Result<Output, Failure>> {
        Box::pin(async move { self.run(request, control).await })
    }

    fn changes(&self) -> Option<watch::Receiver<u64>> {
        Some(self.changes.subscribe())
    }

    fn close(self: Arc<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let connection = {
                let mut state = self.state.lock().await;
                state.is_closed = true;
                state.connection.take()
            };
            if let Some(connection) = connection {
                connection.close().await;
            }
        })
    }
}
