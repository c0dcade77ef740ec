//! Connections: accepted, served, drained.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1::{self, UpgradeableConnection};
use hyper::service::{HttpService, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};

use crate::app::App;
use crate::reply::Body;
use crate::route;

/// A gateway that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    app: Arc<App>,
}

/// How long a client may take to send a request's head.
const HEAD_PATIENCE: Duration = Duration::from_secs(30);

impl Server {
    /// Takes the address that the configuration names.
    pub async fn bind(app: Arc<App>) -> std::io::Result<Self> {
        let listener = TcpListener::bind(app.config().listen).await?;
        Ok(Self { listener, app })
    }

    /// The address that it listens on.
    pub fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop` turns true, then lets running turns finish within the drain limit.
    pub async fn run(self, mut stop: watch::Receiver<bool>) {
        // Every connection holds a sender: when the last is gone, the receiver knows.
        let (open, mut all_closed) = mpsc::channel::<()>(1);
        loop {
            let stream = tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => stream,
                    Err(error) => {
                        // Out of file handles, most likely: give connections time to end.
                        tracing::warn!(%error, "cannot accept a connection");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        continue;
                    }
                },
                () = told(&mut stop) => break,
            };
            // Small frames must not wait for each other.
            let _ = stream.set_nodelay(true);
            let app = Arc::clone(&self.app);
            let limits = app.config().limits;
            let service = service_fn(move |request| {
                let app = Arc::clone(&app);
                async move { Ok::<_, Infallible>(route::answer(app, request).await) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_PATIENCE)
                .max_buf_size(limits.header.max(8192))
                .serve_connection(TokioIo::new(stream), service)
                .with_upgrades();
            let (open, stop) = (open.clone(), stop.clone());
            tokio::spawn(async move {
                if let Err(error) = until_drained(connection, stop).await {
                    tracing::debug!(%error, "a connection ended early");
                }
                drop(open);
            });
        }
        drop((self.listener, open));
        let drain = self.app.config().limits.drain;
        tracing::info!(active = self.app.metrics.active.get(), "draining");
        let tasks = self.app.tasks.clone();
        let closed = async move { tokio::join!(all_closed.recv(), tasks.drain()) };
        if tokio::time::timeout(drain, closed).await.is_err() {
            tracing::warn!("turns were still running at the drain limit");
        }
    }
}

/// Waits until it is time to stop.
async fn told(stop: &mut watch::Receiver<bool>) {
    // The sender is gone only when the whole service is.
    drop(stop.wait_for(|stop| *stop).await);
}

/// Serves a connection; once `stop` is true, only to the end of the request that is being answered.
async fn until_drained<S>(
    connection: UpgradeableConnection<TokioIo<TcpStream>, S>,
    mut stop: watch::Receiver<bool>,
) -> hyper::Result<()>
where
    S: HttpService<Incoming, ResBody = Body>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    S::Future: Send + 'static,
{
    let mut connection = pin!(connection);
    tokio::select! {
        served = connection.as_mut() => return served,
        () = told(&mut stop) => connection.as_mut().graceful_shutdown(),
    }
    connection.await
}
