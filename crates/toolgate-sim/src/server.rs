//! The simulator on a connection: a socket, or a pipe within the process.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};

use crate::access::{self, Refusal, Via};
use crate::config::SimConfig;
use crate::plan::{JSON, Plan, Reset, SimBody};
use crate::sim::Sim;

/// A simulator that listens on a port of its own, until it is dropped.
#[derive(Debug)]
pub struct RunningSim {
    sim: Sim,
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

/// Bytes that an in-memory connection buffers in each direction.
const PIPE_BYTES: usize = 64 << 10;

impl Sim {
    /// Opens an in-memory connection that speaks HTTP/1.1, served by a task on the current runtime.
    /// No port is opened. Control endpoints are not available over it.
    pub fn connect(&self) -> DuplexStream {
        let (near, far) = tokio::io::duplex(PIPE_BYTES);
        let sim = self.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                answer(sim.clone(), request, Via::Process, Arc::default())
            });
            // Faults may end a connection early.
            drop(http1::Builder::new().serve_connection(TokioIo::new(far), service).await);
        });
        near
    }

    /// Starts a simulator on a port of the loopback address that the system chooses.
    pub async fn start(config: SimConfig) -> io::Result<RunningSim> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let sim = Self::new(config);
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = sim.clone();
        let task = tokio::spawn(async move {
            // Whether it was told or dropped does not matter.
            let until = async { drop(stopped.await) };
            serve(serving, listener, until).await;
        });
        Ok(RunningSim { sim, address, stop: Some(stop), task })
    }
}

impl RunningSim {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it listens, as a URL without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Stops listening, and breaks what connections there are.
    pub async fn shutdown(mut self) {
        self.stop.take();
        // It ends by itself; how is of no interest.
        drop((&mut self.task).await);
    }
}

impl std::ops::Deref for RunningSim {
    type Target = Sim;
    fn deref(&self) -> &Sim {
        &self.sim
    }
}

impl Drop for RunningSim {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves a simulator on a socket until `until` is over.
pub async fn serve(sim: Sim, listener: TcpListener, until: impl Future<Output = ()>) {
    let mut connections = JoinSet::new();
    tokio::pin!(until);
    loop {
        tokio::select! {
            () = &mut until => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(sim.clone(), stream));
                }
                // Out of file descriptors, say: others may close theirs.
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(sim: Sim, stream: TcpStream) {
    let broken = Arc::new(AtomicBool::new(false));
    let Ok(local) = stream.local_addr() else { return };
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let via = Via::Socket(local.ip());
    let socket = Socket { stream, broken: Arc::clone(&broken) };
    let service = service_fn(move |request| answer(sim.clone(), request, via, Arc::clone(&broken)));
    // A connection that ends badly ended: that is what some of them are for.
    drop(http1::Builder::new().serve_connection(TokioIo::new(socket), service).await);
}

async fn answer(
    sim: Sim,
    request: Request<Incoming>,
    via: Via,
    broken: Arc<AtomicBool>,
) -> Result<Response<SimBody>, Reset> {
    let (head, body) = request.into_parts();
    if let Err(refusal) = access::check(&head, via, sim.control_key()) {
        return Ok(refused(&refusal));
    }
    let Ok(body) = Limited::new(body, sim.max_body()).collect().await else {
        let page = "<html><title>Error 413 (Request Entity Too Large)!!1</title></html>\n";
        let plan = Plan::whole(413, "text/html; charset=UTF-8", page);
        let mut response = Response::new(SimBody::new(plan.steps, Arc::default()));
        *response.status_mut() = http::StatusCode::PAYLOAD_TOO_LARGE;
        let value = http::HeaderValue::from_static(JSON);
        response.headers_mut().insert(http::header::CONTENT_TYPE, value);
        return Ok(response);
    };
    let request: Request<Bytes> = Request::from_parts(head, body.to_bytes());
    match sim.respond(request).await {
        Ok(mut response) => {
            response.body_mut().on_reset(broken);
            Ok(response)
        }
        Err(reset) => {
            broken.store(true, Ordering::Relaxed);
            Err(reset)
        }
    }
}

fn refused((status, reason): &Refusal) -> Response<SimBody> {
    let body = json!({ "error": { "code": status, "message": reason } }).to_string();
    let plan = Plan::whole(*status, JSON, body);
    let mut response = Response::new(SimBody::new(plan.steps, Arc::default()));
    *response.status_mut() = http::StatusCode::from_u16(*status).unwrap_or_default();
    response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(JSON));
    response
}

/// A connection that can be broken, not only closed.
struct Socket {
    stream: TcpStream,
    broken: Arc<AtomicBool>,
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.broken.load(Ordering::Relaxed) {
            // If the system will not, the client sees an end instead of a reset.
            drop(self.stream.set_zero_linger());
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.broken.load(Ordering::Relaxed) {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
