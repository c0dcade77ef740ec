//! Load generator with concurrent connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{Request, Response, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// A request that is sent repeatedly.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    pub(crate) uri: Uri,
    pub(crate) body: Bytes,
}

/// Measurements of a load.
#[derive(Debug, Default)]
pub(crate) struct Round {
    pub(crate) times: Vec<Duration>,
    pub(crate) cpu: Duration,
    pub(crate) failed: usize,
}

impl Round {
    pub(crate) fn joined(rounds: Vec<Self>) -> Self {
        let mut all = Self::default();
        for round in rounds {
            all.times.extend(round.times);
            all.cpu += round.cpu;
            all.failed += round.failed;
        }
        all.times.sort_unstable();
        all
    }

    pub(crate) fn quantile(&self, share: f64) -> Duration {
        let index = (self.times.len().saturating_sub(1) as f64 * share) as usize;
        self.times.get(index).copied().unwrap_or_default()
    }
}

/// Sends `requests` requests over `connections` connections, one at a time on each.
pub(crate) async fn run(request: &Prepared, connections: usize, requests: usize) -> Result<Round> {
    let left = Arc::new(AtomicUsize::new(requests));
    let mut tasks = Vec::with_capacity(connections);
    for _ in 0..connections {
        let (request, left) = (request.clone(), Arc::clone(&left));
        tasks.push(tokio::spawn(async move { worker(&request, &left).await }));
    }
    let mut rounds = Vec::with_capacity(connections);
    for task in tasks {
        rounds.push(task.await??);
    }
    Ok(Round::joined(rounds))
}

async fn worker(request: &Prepared, left: &AtomicUsize) -> Result<Round> {
    let mut sender = connect(&request.uri).await?;
    let mut round = Round::default();
    while left
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
        .is_ok()
    {
        let began = Instant::now();
        let response = send(&mut sender, request).await?;
        let good = response.status().is_success();
        let body = response.into_body().collect().await?.to_bytes();
        if good && !body.is_empty() {
            round.times.push(began.elapsed());
        } else {
            round.failed += 1;
        }
    }
    Ok(round)
}

/// Opens streams, which stay open until the returned set is dropped.
pub(crate) async fn open(request: &Prepared, streams: usize) -> Result<JoinSet<()>> {
    let mut open = JoinSet::new();
    for _ in 0..streams {
        let mut sender = connect(&request.uri).await?;
        let asking = sender.send_request(built(request)?);
        // Dropping the task closes the connection.
        open.spawn(async move {
            if let Ok(response) = asking.await {
                let _ = response.into_body().collect().await;
            }
            drop(sender);
        });
    }
    Ok(open)
}

pub(crate) async fn connect(uri: &Uri) -> Result<SendRequest<Full<Bytes>>> {
    let address = uri.authority().context("no address")?.as_str();
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender)
}

fn built(request: &Prepared) -> Result<Request<Full<Bytes>>> {
    let path = request.uri.path_and_query().map_or("/", |it| it.as_str());
    let host = request.uri.authority().context("no address")?.as_str();
    Ok(Request::post(path)
        .header(HOST, host)
        .header(CONTENT_TYPE, "application/json")
        .header("x-api-key", "bench")
        .header("x-goog-api-key", "bench")
        .body(Full::new(request.body.clone()))?)
}

pub(crate) async fn send(
    sender: &mut SendRequest<Full<Bytes>>,
    request: &Prepared,
) -> Result<Response<Incoming>> {
    sender.ready().await?;
    Ok(sender.send_request(built(request)?).await?)
}
