//! Connections: accepted, served, drained.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1::{self, UpgradeableConnection};
use hyper::service::{HttpService, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};

use super::connection::{Connection, Socket};
use super::router;
use crate::api::reply::Body;
use crate::config::Limits;
use crate::state::Gateway;
use crate::tasks::DRAIN_GRACE;
use crate::threads::ServingThreads;

/// A gateway that listens.
#[derive(Debug)]
pub(crate) struct Server {
    listener: TcpListener,
    threads: ServingThreads,
    gateway: Arc<Gateway>,
    calm: fn(),
}

/// Address of the connection that a request came on, as this side sees it; an extension of requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalAddress(pub(crate) SocketAddr);

/// How often to look whether a burst of requests is over.
const LOOK: Duration = Duration::from_secs(1);

impl Server {
    /// Takes the address that the configuration names, and starts the threads that serve. Each of
    /// them calls `calm` when a burst of requests is over.
    pub(crate) async fn bind(gateway: Arc<Gateway>, calm: fn()) -> std::io::Result<Self> {
        let listener = TcpListener::bind(gateway.started.listen).await?;
        let threads = ServingThreads::start(gateway.threads)?;
        gateway.services.offload.calm_with(calm);
        Ok(Self { listener, threads, gateway, calm })
    }

    /// The address that it listens on.
    pub(crate) fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop` turns true, then lets running turns finish within the drain limit.
    pub(crate) async fn run(self, mut stop: watch::Receiver<bool>) {
        // Every connection holds a sender: when the last is gone, the receiver knows.
        let (open, mut all_closed) = mpsc::channel::<()>(1);
        let mut looks = tokio::time::interval(LOOK);
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
                _ = looks.tick() => {
                    if self.gateway.services.admission.has_calmed() {
                        self.threads.each(self.calm);
                    }
                    continue;
                }
                () = told(&mut stop) => break,
            };
            // Small frames must not wait for each other.
            let _ = stream.set_nodelay(true);
            // From here on it belongs to the thread that serves it.
            let stream = match stream.into_std() {
                Ok(stream) => stream,
                Err(error) => {
                    tracing::warn!(%error, "cannot hand a connection over");
                    continue;
                }
            };
            let (gateway, open, stop) = (Arc::clone(&self.gateway), open.clone(), stop.clone());
            self.threads.give(move || async move {
                match TcpStream::from_std(stream) {
                    Ok(stream) => serve(gateway, stream, stop).await,
                    Err(error) => tracing::warn!(%error, "cannot take a connection over"),
                }
                drop(open);
            });
        }
        drop((self.listener, open));
        let drain = self.gateway.config().limits.drain;
        tracing::info!(active = self.gateway.services.metrics.active.get(), "draining");
        let tasks = self.gateway.tasks.clone();
        let closed = async move { tokio::join!(all_closed.recv(), tasks.drain()) };
        if tokio::time::timeout(drain, closed).await.is_err() {
            tracing::warn!("turns were still running at the drain limit");
        }
        self.threads.end().await;
    }
}

/// Serves one connection to its end.
async fn serve(gateway: Arc<Gateway>, stream: TcpStream, stop: watch::Receiver<bool>) {
    let Limits { header, receive, .. } = gateway.config().limits;
    let local = stream.local_addr().ok();
    let connection = Connection::new();
    let socket = Socket::new(stream, Arc::clone(&connection), Arc::clone(&gateway));
    let here = Arc::clone(&connection);
    let service = service_fn(move |mut request: http::Request<Incoming>| {
        if let Some(local) = local {
            request.extensions_mut().insert(LocalAddress(local));
        }
        let (gateway, connection) = (Arc::clone(&gateway), Arc::clone(&here));
        // Before the future runs: the end of the client's input may be read before that.
        let busy = connection.asked(request.version());
        if request.body().is_end_stream() {
            connection.received();
        }
        async move {
            let reply = router::answer(gateway, &connection, request).await;
            if reply.status() == StatusCode::SWITCHING_PROTOCOLS {
                connection.upgrade();
            } else if reply.body().size_hint().exact().is_some() {
                // There is no turn behind it any more.
                connection.begin();
            }
            drop(busy);
            Ok::<_, Infallible>(reply)
        }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(receive)
        // A head that is a little too long gets an error reply.
        .max_buf_size((header * 2).max(1 << 16))
        .serve_connection(TokioIo::new(socket), service)
        .with_upgrades();
    if let Err(error) = until_drained(served, &connection, stop).await {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Waits until it is time to stop.
async fn told(stop: &mut watch::Receiver<bool>) {
    // The sender is gone only when the whole service is.
    drop(stop.wait_for(|stop| *stop).await);
}

/// Serves a connection; once `stop` is true, only to the end of the request that is being answered.
async fn until_drained<S>(
    served: UpgradeableConnection<TokioIo<Socket>, S>,
    connection: &Connection,
    mut stop: watch::Receiver<bool>,
) -> hyper::Result<()>
where
    S: HttpService<Incoming, ResBody = Body>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    S::Future: Send + 'static,
{
    let mut served = pin!(served);
    tokio::select! {
        done = served.as_mut() => return done,
        () = told(&mut stop) => served.as_mut().graceful_shutdown(),
    }
    tokio::select! {
        done = served.as_mut() => return done,
        () = tokio::time::sleep(DRAIN_GRACE) => {}
    }
    // Half a head is no request yet.
    if connection.is_half() { Ok(()) } else { served.await }
}
