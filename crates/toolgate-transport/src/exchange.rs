//! Interface of transports.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use futures_util::{Stream, StreamExt as _, stream};

use crate::TransportError;

/// Transport of requests. The default is HTTP; another may record, replay, or answer in the same
/// process.
pub trait Transport: Send + Sync {
    /// Sends a request. Returns the response as soon as its head arrives.
    fn send(&self, request: HttpRequest) -> Exchange<'_>;
}

/// Future of a response.
pub type Exchange<'a> =
    Pin<Box<dyn Future<Output = Result<HttpResponse, TransportError>> + Send + 'a>>;

/// An HTTP request.
#[derive(Clone)]
pub struct HttpRequest {
    /// The method.
    pub method: Method,
    /// The URL.
    pub url: String,
    /// Headers, with names in lower case. One of them may hold the key.
    pub headers: Vec<(String, String)>,
    /// The JSON body; empty if there is none.
    pub body: Vec<u8>,
}

/// HTTP method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// GET.
    Get,
    /// POST.
    Post,
}

/// An HTTP response.
pub struct HttpResponse {
    /// The status.
    pub status: u16,
    /// The body, as a stream.
    pub body: Body,
}

/// Body as a stream. Dropping it cancels the rest.
pub type Body = Pin<Box<dyn Stream<Item = Result<Vec<u8>, TransportError>> + Send>>;

impl HttpResponse {
    /// Creates a response with a complete body.
    pub fn whole(status: u16, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        Self { status, body: stream::iter([Ok(body)]).boxed() }
    }

    /// Reads the rest of the body.
    pub async fn bytes(mut self) -> Result<Vec<u8>, TransportError> {
        let mut whole = Vec::new();
        while let Some(bytes) = self.body.next().await {
            whole.append(&mut bytes?);
        }
        Ok(whole)
    }
}

/// Shows neither headers nor the body.
impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpRequest")
            .field("method", &self.method)
            .field("url", &self.url)
            .field("body_len", &self.body.len())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for HttpResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpResponse").field("status", &self.status).finish_non_exhaustive()
    }
}
