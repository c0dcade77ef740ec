//! A gateway from its configuration to its end.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::app::App;
use crate::config::{Config, UpstreamKind};
use crate::server::Server;

/// A gateway that runs.
#[derive(Debug)]
pub struct Running {
    /// Where it listens.
    pub addr: SocketAddr,
    app: Arc<App>,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
    sim: Option<toolgate_sim::RunningSim>,
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
        /// What the system says.
        source: std::io::Error,
    },
    /// Something else could not be set up.
    #[error("{0}")]
    Setup(String),
}

/// Starts a gateway; with [`UpstreamKind::Sim`] also the simulator behind it.
pub async fn start(config: Config) -> Result<Running, ServiceError> {
    start_with(config, || ()).await
}

/// The same. Each thread that serves calls `calm` when a burst of requests is over: the time to give
/// memory back.
pub async fn start_with(config: Config, calm: fn()) -> Result<Running, ServiceError> {
    let sim = match (config.upstream.kind, &config.upstream.url) {
        (UpstreamKind::Sim, None) => {
            Some(toolgate_sim::Sim::start(toolgate_sim::SimConfig::default()).await.map_err(
                |error| ServiceError::Setup(format!("the simulator cannot start: {error}")),
            )?)
        }
        _ => None,
    };
    let addr = config.listen;
    let app =
        App::new(config, sim.as_ref().map(|sim| sim.url())).await.map_err(ServiceError::Setup)?;
    let server = Server::bind(Arc::clone(&app), calm)
        .await
        .map_err(|source| ServiceError::Listen { addr, source })?;
    let addr = server.local_addr().map_err(|source| ServiceError::Listen { addr, source })?;
    let (stop, stopped) = watch::channel(false);
    let serving = tokio::spawn(server.run(stopped));
    Ok(Running { addr, app, stop, serving, sim })
}

impl Running {
    /// Takes a new configuration into force.
    pub fn reload(&self, config: Config) -> Result<(), ServiceError> {
        self.app.reload(config).map_err(ServiceError::Setup)
    }

    /// Whether the built-in simulator is behind it.
    pub fn is_simulated(&self) -> bool {
        self.sim.is_some()
    }

    /// The simulator behind it, where there is one.
    pub fn sim(&self) -> Option<&toolgate_sim::RunningSim> {
        self.sim.as_ref()
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
        self.app.store.flush().await;
    }
}
