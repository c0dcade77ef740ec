//! Starts, reloads and drains a gateway.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::config::Config;
use crate::http::Server;
use crate::identity::IdentitySecret;
use crate::state::Gateway;
use crate::upstream::Embedded;

/// A gateway that runs.
#[derive(Debug)]
pub struct Running {
    /// Where it listens.
    pub addr: SocketAddr,
    gateway: Arc<Gateway>,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

/// Why a gateway cannot run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// The address is taken, or not ours.
    #[error("cannot listen on {addr}")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// Error of the system.
        source: std::io::Error,
    },
    /// Something else could not be set up.
    #[error("{0}")]
    Setup(String),
}

/// Parts of a gateway that the program that starts it supplies.
#[derive(Debug)]
pub struct Options {
    /// Simulator in this process, for configurations without another upstream.
    pub simulator: Option<Embedded>,
    /// Secret that proves to other programs of the user whose gateway this is.
    pub identity: Option<IdentitySecret>,
    /// Called on each thread that serves when a burst of requests is over: the time to give memory
    /// back.
    pub calm: fn(),
}

impl Default for Options {
    fn default() -> Self {
        Self { simulator: None, identity: None, calm: || () }
    }
}

/// Starts a gateway without a simulator.
pub async fn start(config: Config) -> Result<Running, ServiceError> {
    start_with(config, Options::default()).await
}

/// Starts a gateway.
pub async fn start_with(config: Config, options: Options) -> Result<Running, ServiceError> {
    let addr = config.listen;
    let Options { simulator, identity, calm } = options;
    let gateway = Gateway::new(config, simulator, identity).await.map_err(ServiceError::Setup)?;
    let server = Server::bind(Arc::clone(&gateway), calm)
        .await
        .map_err(|source| ServiceError::Listen { addr, source })?;
    let addr = server.local_addr().map_err(|source| ServiceError::Listen { addr, source })?;
    let (stop, stopped) = watch::channel(false);
    let serving = tokio::spawn(server.run(stopped));
    Ok(Running { addr, gateway, stop, serving })
}

impl Running {
    /// Takes a new configuration into force.
    pub fn reload(&self, config: Config) -> Result<(), ServiceError> {
        self.gateway.reload(config).map_err(ServiceError::Setup)
    }

    /// Takes no more requests, lets running turns finish, and ends.
    pub async fn drain(self) {
        self.drain_until(std::future::pending()).await;
    }

    /// The same, but turns that still run when `enough` resolves are cut off.
    pub async fn drain_until(mut self, enough: impl Future<Output = ()>) {
        let _ = self.stop.send(true);
        tokio::select! {
            _ = &mut self.serving => {}
            () = enough => self.serving.abort(),
        }
        self.gateway.services.store.flush().await;
    }
}
