//! MCP over streamable HTTP: rmcp's transport on the client of this crate.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt as _, TryStreamExt as _};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Uri, header};
use http_body_util::BodyDataStream;
use hyper::body::Incoming;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};

use super::wire::{Wire, unknown_method};
use crate::Failure;
use crate::net::{HttpClient, read_body};
use crate::secret::Secret;

/// Largest response and largest event.
pub(super) const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// Largest body of an error that is read for its JSON-RPC error.
const MAX_ERROR_BYTES: usize = 64 * 1024;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// A failure in rmcp's errors.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", .0.kind())]
pub(super) struct HttpFailure(pub(super) Failure);

type Error = StreamableHttpError<HttpFailure>;

fn failed(failure: Failure) -> Error {
    StreamableHttpError::Client(HttpFailure(failure))
}

/// Credentials of a server: headers whose values are secrets. They are read again when the server
/// refuses them.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    headers: Vec<(HeaderName, Prefix, Secret)>,
}

#[derive(Clone, Copy, Debug)]
enum Prefix {
    None,
    Bearer,
}

impl Credentials {
    /// A bearer token.
    pub fn bearer(secret: Secret) -> Self {
        Self { headers: vec![(header::AUTHORIZATION, Prefix::Bearer, secret)] }
    }

    /// Adds a header.
    pub fn add_header(&mut self, name: HeaderName, secret: Secret) {
        self.headers.push((name, Prefix::None, secret));
    }

    pub(crate) fn read(&self) -> std::io::Result<HeaderMap> {
        let mut headers = HeaderMap::new();
        for (name, prefix, secret) in &self.headers {
            let secret = secret.read()?;
            let text = match prefix {
                Prefix::None => secret,
                Prefix::Bearer => format!("Bearer {secret}"),
            };
            let mut value = HeaderValue::from_str(&text)
                .map_err(|_| std::io::Error::other("a secret is no valid header value"))?;
            value.set_sensitive(true);
            headers.insert(name.clone(), value);
        }
        Ok(headers)
    }
}

/// HTTP backend of one connection.
#[derive(Clone)]
pub(super) struct Backend {
    client: HttpClient,
    wire: Wire,
    credentials: Credentials,
    secrets: Arc<Mutex<Option<HeaderMap>>>,
    probe_timeout: Duration,
}

impl Backend {
    pub(super) fn new(
        client: HttpClient,
        wire: Wire,
        credentials: Credentials,
        probe_timeout: Duration,
    ) -> Self {
        Self { client, wire, credentials, secrets: Arc::default(), probe_timeout }
    }

    /// Headers with the credentials.
    fn secrets(&self) -> Result<HeaderMap, Failure> {
        let mut secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        match &*secrets {
            Some(headers) => Ok(headers.clone()),
            None => {
                let read = self.credentials.read();
                let headers = read.map_err(|error| Failure::Unreachable(error.to_string()))?;
                Ok(secrets.insert(headers).clone())
            }
        }
    }

    /// Reads the credentials again. Returns whether they have changed.
    fn reload(&self) -> bool {
        let Ok(fresh) = self.credentials.read() else { return false };
        let mut secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = secrets.as_ref() != Some(&fresh);
        *secrets = Some(fresh);
        changed
    }

    async fn send(
        &self,
        method: Method,
        uri: &str,
        session: Option<&str>,
        custom: &HashMap<HeaderName, HeaderValue>,
        body: Bytes,
    ) -> Result<Response<Incoming>, Failure> {
        let uri: Uri = uri.parse().map_err(|_| Failure::Unreachable("invalid URL".to_owned()))?;
        let mut repeated = false;
        loop {
            let mut headers = HeaderMap::new();
            headers.extend(custom.iter().map(|(name, value)| (name.clone(), value.clone())));
            let accept = "application/json, text/event-stream";
            headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
            if !body.is_empty() {
                let json = HeaderValue::from_static("application/json");
                headers.insert(header::CONTENT_TYPE, json);
            }
            if let Some(session) = session.and_then(|it| HeaderValue::from_str(it).ok()) {
                headers.insert(SESSION, session);
            }
            headers.extend(self.secrets()?);
            let response = self.client.send(&method, &uri, &headers, &body).await?;
            let status = response.status();
            if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
                return Ok(response);
            }
            if repeated || !self.reload() {
                return Err(Failure::Unauthorized { status: status.as_u16() });
            }
            repeated = true;
        }
    }

    /// Decodes a JSON body.
    fn message(&self, body: &[u8]) -> Result<ServerJsonRpcMessage, Error> {
        let replaced = self.wire.take(body);
        Ok(serde_json::from_slice(replaced.as_deref().unwrap_or(body))?)
    }

    /// Events of a response, each with its payload taken out.
    fn events(
        &self,
        response: Response<Incoming>,
        request: Option<RequestId>,
        limit: usize,
    ) -> BoxStream<'static, Result<Sse, SseError>> {
        let wire = self.wire.clone();
        let failing = wire.clone();
        let mut size = EventSize::default();
        let bytes = BodyDataStream::new(response.into_body())
            .map_err(std::io::Error::other)
            .and_then(move |chunk| {
                let fits = size.add(&chunk) <= limit;
                if !fits && let Some(id) = &request {
                    failing.fail(id, Failure::TooLarge { limit });
                }
                std::future::ready(if fits {
                    Ok(chunk)
                } else {
                    Err(std::io::Error::other("event too large"))
                })
            });
        SseStream::from_bytes_stream(bytes)
            .map_ok(move |mut event| {
                let replaced = event.data.as_ref().and_then(|data| wire.take(data.as_bytes()));
                if let Some(text) = replaced.and_then(|it| String::from_utf8(it).ok()) {
                    event.data = Some(text);
                }
                event
            })
            .boxed()
    }
}

/// Size of the event that is being received.
#[derive(Default)]
struct EventSize {
    bytes: usize,
    at_line_start: bool,
}

impl EventSize {
    /// Counts a chunk and returns the size of the largest event that it adds to.
    fn add(&mut self, chunk: &[u8]) -> usize {
        let mut largest = self.bytes;
        for byte in chunk {
            match byte {
                b'\n' if self.at_line_start => self.bytes = 0,
                b'\n' => self.at_line_start = true,
                b'\r' => {}
                _ => self.at_line_start = false,
            }
            self.bytes += 1;
            largest = largest.max(self.bytes);
        }
        largest
    }
}

/// Id of a request, and whether it probes the era of the server.
fn request_id(message: &ClientJsonRpcMessage) -> Option<(RequestId, bool)> {
    let JsonRpcMessage::Request(request) = message else { return None };
    let is_probe = matches!(request.request, ClientRequest::DiscoverRequest(_));
    Some((request.id.clone(), is_probe))
}

fn is_type(response: &Response<Incoming>, expected: &str) -> bool {
    let value = response.headers().get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let kind = value.unwrap_or_default().split(';').next().unwrap_or_default();
    kind.trim().eq_ignore_ascii_case(expected)
}

impl StreamableHttpClient for Backend {
    type Error = HttpFailure;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let body = Bytes::from(self.wire.encode(&message)?);
        let request = request_id(&message);
        let probe = request.as_ref().filter(|(_, is_probe)| *is_probe).map(|(id, _)| id.clone());
        let request = request.map(|(id, _)| id);
        let sent = self.send(Method::POST, &uri, session.as_deref(), &headers, body);
        let response = match &probe {
            Some(id) => match tokio::time::timeout(self.probe_timeout, sent).await {
                Ok(response) => response.map_err(failed)?,
                // Silence is the answer of an old server.
                Err(_) => {
                    return Ok(StreamableHttpPostResponse::Json(unknown_method(id.clone()), None));
                }
            },
            None => sent.await.map_err(failed)?,
        };
        let status = response.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let new_session = response.headers().get(SESSION).and_then(|it| it.to_str().ok());
        let new_session = new_session.map(ToOwned::to_owned);
        if status.is_success() && is_type(&response, "text/event-stream") {
            let events = self.events(response, request, MAX_BODY_BYTES);
            return Ok(StreamableHttpPostResponse::Sse(events, new_session));
        }
        let is_json = is_type(&response, "application/json");
        if status.is_success() {
            let body = read_body(response.into_body(), MAX_BODY_BYTES).await.map_err(failed)?;
            if request.is_none() && body.trim_ascii().is_empty() {
                return Ok(StreamableHttpPostResponse::Accepted);
            }
            if !is_json {
                return Err(StreamableHttpError::UnexpectedContentType(None));
            }
            return Ok(StreamableHttpPostResponse::Json(self.message(&body)?, new_session));
        }
        if status == StatusCode::NOT_FOUND && session.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        let refused = failed(Failure::Http { status: status.as_u16() });
        if is_json && let Ok(body) = read_body(response.into_body(), MAX_ERROR_BYTES).await {
            // A modern server says in a JSON-RPC error what is wrong.
            if let Ok(JsonRpcMessage::Error(mut error)) = self.message(&body) {
                error.id = request;
                return Ok(StreamableHttpPostResponse::Json(JsonRpcMessage::Error(error), None));
            }
        }
        match probe {
            Some(id) if status.is_client_error() => {
                Ok(StreamableHttpPostResponse::Json(unknown_method(id), None))
            }
            _ => Err(refused),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Error> {
        self.send(Method::DELETE, &uri, Some(&session), &headers, Bytes::new())
            .await
            .map(|_| ())
            .map_err(failed)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _: Option<String>,
        mut headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Error> {
        if let Some(id) = last_event.and_then(|it| HeaderValue::from_str(&it).ok()) {
            headers.insert(LAST_EVENT, id);
        }
        let response = self
            .send(Method::GET, &uri, session.as_deref(), &headers, Bytes::new())
            .await
            .map_err(failed)?;
        if !response.status().is_success() || !is_type(&response, "text/event-stream") {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        Ok(self.events(response, None, MAX_BODY_BYTES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_measured_one_by_one() {
        let mut size = EventSize::default();
        assert_eq!(size.add(b"data: aaaa\n"), 11);
        assert_eq!(size.add(b"\ndata"), 11);
        assert!(size.add(&[b'x'; 100]) > 100);
    }
}
