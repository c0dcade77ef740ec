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

use crate::app::App;
use crate::config::Limits;
use crate::lanes::Lanes;
use crate::line::{Line, Socket};
use crate::reply::Body;
use crate::route;
use crate::tasks::LEAVING;

/// A gateway that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    lanes: Lanes,
    app: Arc<App>,
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
    pub async fn bind(app: Arc<App>, calm: fn()) -> std::io::Result<Self> {
        let listener = TcpListener::bind(app.started.listen).await?;
        let lanes = Lanes::start(app.lanes)?;
        app.offload.calm_with(calm);
        Ok(Self { listener, lanes, app, calm })
    }

    /// The address that it listens on.
    pub fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop` turns true, then lets running turns finish within the drain limit.
    pub async fn run(self, mut stop: watch::Receiver<bool>) {
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
                    if self.app.has_calmed() {
                        self.lanes.each(self.calm);
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
            let (app, open, stop) = (Arc::clone(&self.app), open.clone(), stop.clone());
            self.lanes.give(move || async move {
                match TcpStream::from_std(stream) {
                    Ok(stream) => serve(app, stream, stop).await,
                    Err(error) => tracing::warn!(%error, "cannot take a connection over"),
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
        self.lanes.end().await;
    }
}

/// Serves one connection to its end.
async fn serve(app: Arc<App>, stream: TcpStream, stop: watch::Receiver<bool>) {
    let Limits { header, receive, .. } = app.config().limits;
    let local = stream.local_addr().ok();
    let line = Line::new();
    let socket = Socket::new(stream, Arc::clone(&line), Arc::clone(&app));
    let here = Arc::clone(&line);
    let service = service_fn(move |mut request: http::Request<Incoming>| {
        if let Some(local) = local {
            request.extensions_mut().insert(LocalAddress(local));
        }
        let (app, line) = (Arc::clone(&app), Arc::clone(&here));
        // Before the future runs: the end of the client's input may be read before that.
        let busy = line.asked(request.version());
        if request.body().is_end_stream() {
            busy.begin();
        }
        async move {
            let reply = route::answer(app, &line, request).await;
            if reply.status() == StatusCode::SWITCHING_PROTOCOLS {
                line.upgrade();
            } else if reply.body().size_hint().exact().is_some() {
                // There is no turn behind it any more.
                line.begin();
            }
            drop(busy);
            Ok::<_, Infallible>(reply)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(receive)
        // What is a little too long gets an answer that says so.
        .max_buf_size((header * 2).max(1 << 16))
        .serve_connection(TokioIo::new(socket), service)
        .with_upgrades();
    if let Err(error) = until_drained(connection, &line, stop).await {
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
    connection: UpgradeableConnection<TokioIo<Socket>, S>,
    line: &Line,
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
    tokio::select! {
        served = connection.as_mut() => return served,
        () = tokio::time::sleep(LEAVING) => {}
    }
    // Half a head is no request yet.
    if line.is_half() { Ok(()) } else { connection.await }
}
