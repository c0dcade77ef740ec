//! What a transport is given and gives.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use futures_util::{Stream, StreamExt as _, stream};

/// Carries requests to Gemini. The usual one speaks HTTP; another may record, replay, or answer in
/// the same process.
pub trait Transport: Send + Sync {
    /// Sends a request; gives the answer as soon as its status is known.
    fn send(&self, request: HttpRequest) -> Exchange<'_>;
}

/// An answer that will come.
pub type Exchange<'a> =
    Pin<Box<dyn Future<Output = Result<HttpResponse, TransportError>> + Send + 'a>>;

/// A request.
#[derive(Clone)]
pub struct HttpRequest {
    /// What to do.
    pub method: Method,
    /// Where.
    pub url: String,
    /// Names in lower case, and values. One of them holds the key.
    pub headers: Vec<(String, String)>,
    /// JSON; empty where there is none.
    pub body: Vec<u8>,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Reads.
    Get,
    /// Asks.
    Post,
}

/// An answer.
pub struct HttpResponse {
    /// The status.
    pub status: u16,
    /// The body, as it arrives.
    pub body: Body,
}

/// A body, as it arrives. Dropping it gives the rest up.
pub type Body = Pin<Box<dyn Stream<Item = Result<Vec<u8>, TransportError>> + Send>>;

/// Why there is no answer, or not all of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TransportError {
    /// For a person.
    pub message: String,
    /// Nothing was sent yet: the other side could not be reached.
    pub unreachable: bool,
}

impl HttpResponse {
    /// An answer that is all there.
    pub fn whole(status: u16, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        Self { status, body: stream::iter([Ok(body)]).boxed() }
    }

    /// Reads what is left of the body.
    pub(crate) async fn bytes(mut self) -> Result<Vec<u8>, TransportError> {
        let mut whole = Vec::new();
        while let Some(bytes) = self.body.next().await {
            whole.append(&mut bytes?);
        }
        Ok(whole)
    }
}

/// Neither keys nor what is said.
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
