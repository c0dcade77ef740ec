//! An upstream in this process, reached over in-memory connections.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{HOST, HeaderValue};
use http::{Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use tokio::io::DuplexStream;
use toolgate_core::canon::{Failure, FailureKind};

/// An upstream in this process: opens connections that speak HTTP/1.1, without a port.
#[derive(Clone)]
pub struct Embedded(Arc<dyn Fn() -> DuplexStream + Send + Sync>);

impl Embedded {
    /// Wraps a function that opens a connection. It is called within the runtime that will use the
    /// connection.
    pub fn new(connect: impl Fn() -> DuplexStream + Send + Sync + 'static) -> Self {
        Self(Arc::new(connect))
    }

    /// Sends a request on a connection of its own.
    pub(super) async fn request(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, Failure> {
        let failed = |error: hyper::Error| {
            Failure::new(FailureKind::Cut, format!("the upstream cannot be reached: {error}"))
        };
        if let Some(path) = request.uri().path_and_query().cloned() {
            *request.uri_mut() = Uri::from(path);
        }
        request.headers_mut().insert(HOST, HeaderValue::from_static("localhost"));
        let (mut sender, connection) = handshake(TokioIo::new((self.0)())).await.map_err(failed)?;
        tokio::spawn(async move {
            // It ends with its only response; errors surface in that response's body.
            drop(connection.await);
        });
        sender.send_request(request).await.map_err(failed)
    }
}

impl fmt::Debug for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Embedded")
    }
}
