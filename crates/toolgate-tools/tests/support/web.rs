//! HTTP server on the loopback interface.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::BoxBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// A request that the server got.
#[derive(Clone, Debug)]
pub(crate) struct Got {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Got {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    pub(crate) fn rpc_method(&self) -> String {
        self.json()["method"].as_str().unwrap_or_default().to_owned()
    }
}

pub(crate) type Reply = Response<BoxBody<Bytes, Infallible>>;

pub(crate) fn reply(status: u16, content_type: &str, body: impl Into<Bytes>) -> Reply {
    Response::builder()
        .status(status)
        .header("content-type", content_type)
        .body(Full::new(body.into()).boxed())
        .unwrap()
}

pub(crate) fn json(body: impl Into<Bytes>) -> Reply {
    reply(200, "application/json", body)
}

/// Events, after which the stream stays open if `open` is set.
pub(crate) fn events(events: &[String], open: bool) -> Reply {
    let frames: Vec<_> = events
        .iter()
        .map(|data| Ok(Frame::data(Bytes::from(format!("data: {data}\n\n")))))
        .collect();
    let body = stream::iter(frames);
    let response = Response::builder().header("content-type", "text/event-stream");
    if open {
        use futures_util::StreamExt as _;
        let body = StreamBody::new(body.chain(stream::pending()));
        return response.body(BoxBody::new(body)).unwrap();
    }
    response.body(StreamBody::new(body).boxed()).unwrap()
}

/// A running server.
pub(crate) struct Web {
    pub(crate) url: String,
    pub(crate) got: Arc<Mutex<Vec<Got>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Web {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Web {
    pub(crate) async fn start(
        handler: impl Fn(Got) -> Option<Reply> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let got = Arc::new(Mutex::new(Vec::new()));
        let (log, handler) = (Arc::clone(&got), Arc::new(handler));
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (log, handler) = (Arc::clone(&log), Arc::clone(&handler));
                let service = service_fn(move |request: Request<Incoming>| {
                    let (log, handler) = (Arc::clone(&log), Arc::clone(&handler));
                    async move {
                        let (head, body) = request.into_parts();
                        let body = body.collect().await.map(|it| it.to_bytes()).unwrap_or_default();
                        let got = Got {
                            method: head.method,
                            path: head.uri.to_string(),
                            headers: head.headers,
                            body: String::from_utf8_lossy(&body).into_owned(),
                        };
                        log.lock().unwrap().push(got.clone());
                        match handler(got) {
                            Some(reply) => Ok::<_, Infallible>(reply),
                            None => std::future::pending().await,
                        }
                    }
                });
                tokio::spawn(async move {
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(socket), service)
                        .await;
                });
            }
        });
        Self { url, got, task }
    }

    /// Requests of a JSON-RPC method.
    pub(crate) fn of(&self, method: &str) -> Vec<Got> {
        self.got.lock().unwrap().iter().filter(|it| it.rpc_method() == method).cloned().collect()
    }
}
