//! HTTP requests to the API, without retries.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::time::timeout;
use toolgate_core::canon::{Failure, FailureKind};
use toolgate_core::upstream::generate_content::{continued, decode_error};

use super::Retries;
use super::auth::Auth;
use crate::transport::{Body, Endpoints, HttpRequest, HttpResponse, Method, Transport, Verb};

/// Transport to the API with its URLs, credentials and timeouts.
pub(crate) struct Link {
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) endpoints: Endpoints,
    pub(crate) auth: Auth,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) timeout: Duration,
    pub(crate) idle: Duration,
    pub(crate) retries: Retries,
}

/// A request that can be sent repeatedly.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    pub(crate) method: Method,
    pub(crate) url: String,
    pub(crate) body: Vec<u8>,
}

impl Attempt {
    /// Request for the continuation of an answer.
    pub(crate) fn continued(&self, token: &str) -> Self {
        Self { body: continued(&self.body, token), ..self.clone() }
    }
}

impl Link {
    pub(crate) fn attempt(&self, model: &str, verb: Verb, body: Vec<u8>) -> Attempt {
        let url = self.endpoints.url(&self.endpoints.method_path(model, verb));
        Attempt { method: Method::Post, url, body }
    }

    /// URL of a model.
    pub(crate) fn url(&self, model: &str) -> String {
        self.endpoints.url(&self.endpoints.model_path(model))
    }

    /// Sends a request once and reads the complete body.
    pub(crate) async fn whole(&self, attempt: &Attempt) -> Result<Vec<u8>, Failure> {
        let read = async {
            let response = self.send(attempt).await?;
            response.bytes().await.map_err(Failure::from)
        };
        timeout(self.timeout, read).await.unwrap_or_else(|_| Err(timeout_failure(self.timeout)))
    }

    /// Sends a request once. Returns the body after the response head.
    pub(crate) async fn open(&self, attempt: &Attempt) -> Result<Body, Failure> {
        let sent = timeout(self.timeout, self.send(attempt)).await;
        sent.unwrap_or_else(|_| Err(timeout_failure(self.timeout))).map(|response| response.body)
    }

    /// Returns the next bytes of a stream; `None` at its end.
    pub(crate) async fn next(&self, body: &mut Body) -> Result<Option<Vec<u8>>, Failure> {
        match timeout(self.idle, body.next()).await {
            Ok(None) => Ok(None),
            Ok(Some(Ok(bytes))) => Ok(Some(bytes)),
            Ok(Some(Err(error))) => Err(error.into()),
            Err(_) => {
                let message = format!("Gemini sent nothing for {:?}", self.idle);
                Err(Failure::new(FailureKind::Timeout, message))
            }
        }
    }

    async fn send(&self, attempt: &Attempt) -> Result<HttpResponse, Failure> {
        let Attempt { method, url, body } = attempt.clone();
        let mut headers = vec![
            ("content-type".to_owned(), "application/json".to_owned()),
            (
                "x-goog-api-client".to_owned(),
                concat!("toolgate/", env!("CARGO_PKG_VERSION"), " gl-rust/1").to_owned(),
            ),
        ];
        headers.extend(self.auth.header().await?);
        headers.extend(self.headers.iter().cloned());
        let request = HttpRequest { method, url, headers, body };
        let response = self.transport.send(request).await.map_err(Failure::from)?;
        let status = response.status;
        if (200..300).contains(&status) {
            return Ok(response);
        }
        let body = response.bytes().await.map_err(Failure::from)?;
        Err(decode_error(status, &body))
    }
}

fn timeout_failure(limit: Duration) -> Failure {
    Failure::new(FailureKind::Timeout, format!("Gemini did not answer within {limit:?}"))
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("endpoints", &self.endpoints)
            .field("auth", &self.auth)
            .field("retries", &self.retries)
            .finish_non_exhaustive()
    }
}
