//! The pooled HTTP client, and where its requests go.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use toolgate_core::canon::{Failure, FailureKind, brief};
use toolgate_core::gemini::Backend;

use super::embedded::Embedded;
use super::token::{TokenSource, Tokens};
use crate::config::{Secret, Upstream, UpstreamKind};
use crate::lanes;

/// The way to Gemini.
#[derive(Clone, Debug)]
pub struct Link {
    /// One pool for each lane: a connection stays on the thread that opened it.
    pools: Arc<[Http]>,
    /// Answers instead of the network.
    embedded: Option<Embedded>,
    base: String,
    models: String,
    /// Where models are listed: Vertex AI has one list for all projects.
    catalogue: String,
    backend: Backend,
    tokens: Option<Tokens>,
    bearer: Option<Secret>,
}

type Http = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// What is asked of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// A count.
    CountTokens,
    /// An answer in one piece.
    Generate,
    /// An answer as a stream.
    Stream,
}

/// How one request proves who it is from.
#[derive(Clone, Debug)]
pub enum Credential {
    /// A Gemini key: the client's, or one of the pool.
    ApiKey(Secret),
    /// The gateway's own token (Vertex AI), or nothing (the simulator).
    Gateway,
    /// The client's own OAuth token.
    Bearer(Secret),
}

/// How many connections wait for the next request, where each takes one at a time (HTTP/1). A burst
/// opens as many as it needs; only so many stay.
const IDLE_CONNECTIONS: usize = 256;
/// Longest model name.
const MAX_MODEL_BYTES: usize = 128;
/// Stands for the embedded upstream in request URIs; never resolved.
const EMBEDDED_URL: &str = "http://localhost";
/// No answer that is not a stream may be larger.
const BODY_LIMIT: usize = 256 << 20;
/// Longer errors are cut off: they are read on the serving thread.
const ERROR_LIMIT: usize = 1 << 20;

impl Link {
    /// Prepares the way; opens no connection yet. `simulator` is used where the configuration names
    /// no other upstream.
    pub(crate) fn new(
        config: &Upstream,
        simulator: Option<&Embedded>,
        lanes: usize,
    ) -> Result<Self, String> {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(config.connect));
        tcp.set_keepalive(Some(Duration::from_secs(60)));
        let https = hyper_rustls::HttpsConnectorBuilder::new()
            .with_provider_and_webpki_roots(rustls::crypto::ring::default_provider())
            .map_err(|error| format!("TLS cannot be set up: {error}"))?
            .https_or_http()
            .enable_all_versions()
            .wrap_connector(tcp);
        let lanes = lanes.max(1);
        let pool = || {
            Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(Duration::from_secs(90))
                .pool_max_idle_per_host(IDLE_CONNECTIONS.div_ceil(lanes))
                .build(https.clone())
        };
        let tokens = match &config.auth.service_account {
            Some(path) if config.kind == UpstreamKind::Vertex => {
                Some(Arc::new(TokenSource::read(path)?))
            }
            _ => None,
        };
        let backend = match config.kind {
            UpstreamKind::Developer | UpstreamKind::Sim => Backend::Developer,
            UpstreamKind::Vertex => Backend::Vertex,
        };
        let (base, embedded) = match (config.base_url(), simulator) {
            (Some(url), _) => (url, None),
            (None, Some(simulator)) => (EMBEDDED_URL.to_owned(), Some(simulator.clone())),
            (None, None) => return Err("this program has no built-in simulator".to_owned()),
        };
        Ok(Self {
            pools: (0..lanes).map(|_| pool()).collect(),
            embedded,
            base,
            models: models_path(config),
            catalogue: catalogue_path(config),
            backend,
            tokens,
            bearer: config.auth.bearer.clone(),
        })
    }

    /// The pool of the thread that asks.
    fn http(&self) -> &Http {
        &self.pools[lanes::here() % self.pools.len()]
    }

    /// Which of Google's services it leads to.
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// Asks a model.
    pub async fn ask(
        &self,
        model: &str,
        verb: Verb,
        credential: &Credential,
        body: Bytes,
    ) -> Result<Response<Incoming>, Failure> {
        check_model(model)?;
        let suffix = match verb {
            Verb::CountTokens => ":countTokens",
            Verb::Generate => ":generateContent",
            Verb::Stream => ":streamGenerateContent?alt=sse",
        };
        let mut path = String::with_capacity(self.models.len() + model.len() + suffix.len() + 1);
        path.push_str(&self.models);
        path.push('/');
        push_segment(&mut path, model);
        path.push_str(suffix);
        self.forward(Method::POST, &path, credential, &[], body).await
    }

    /// Sends a request of Gemini's own form to `path` (with its query).
    pub async fn forward(
        &self,
        method: Method,
        path: &str,
        credential: &Credential,
        headers: &[(HeaderName, HeaderValue)],
        body: Bytes,
    ) -> Result<Response<Incoming>, Failure> {
        let uri: Uri = format!("{}{path}", self.base).parse().map_err(|_| {
            Failure::new(FailureKind::InvalidRequest, "the model's name cannot stand in an address")
        })?;
        // Bytes are read as they come.
        let identity = HeaderValue::from_static("identity");
        let mut request =
            Request::builder().method(method).uri(uri).header(ACCEPT_ENCODING, identity);
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let (name, value) = match credential {
            Credential::ApiKey(key) => {
                (HeaderName::from_static("x-goog-api-key"), key.expose().to_owned())
            }
            Credential::Bearer(token) => (AUTHORIZATION, format!("Bearer {}", token.expose())),
            Credential::Gateway => match (&self.tokens, &self.bearer) {
                (Some(tokens), _) => {
                    (AUTHORIZATION, format!("Bearer {}", tokens.token(self).await?.expose()))
                }
                (None, Some(token)) => (AUTHORIZATION, format!("Bearer {}", token.expose())),
                (None, None) => (HeaderName::from_static("x-goog-api-key"), "toolgate".to_owned()),
            },
        };
        let mut value = HeaderValue::try_from(value).map_err(|_| {
            Failure::new(FailureKind::Authentication, "the key has characters that no key has")
        })?;
        value.set_sensitive(true);
        let request = request
            .header(name, value)
            .body(Full::new(body))
            .map_err(|error| Failure::new(FailureKind::Internal, error.to_string()))?;
        match &self.embedded {
            Some(embedded) => embedded.request(request).await,
            None => self.http().request(request).await.map_err(|error| unreachable(&error)),
        }
    }

    pub(super) async fn post_form(
        &self,
        uri: &str,
        form: String,
    ) -> Result<(StatusCode, Bytes), Failure> {
        let request = Request::post(uri)
            .header(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"))
            .body(Full::new(Bytes::from(form)))
            .map_err(|error| Failure::new(FailureKind::Internal, error.to_string()))?;
        let response = self.http().request(request).await.map_err(|error| unreachable(&error))?;
        let status = response.status();
        Ok((status, whole(response.into_body()).await?))
    }

    /// The path of a page of the models that there are.
    pub fn page_path(&self, token: Option<&str>) -> String {
        let mut path = format!("{}?pageSize=1000", self.catalogue);
        if let Some(token) = token {
            path.push_str("&pageToken=");
            push_segment(&mut path, token);
        }
        path
    }

    /// The path of the list of models.
    pub fn catalogue_path(&self) -> &str {
        &self.catalogue
    }

    /// The path below which models are asked.
    pub fn models_path(&self) -> &str {
        &self.models
    }
}

/// Checks that a name can be that of a model. Anything else could mean another resource in the
/// upstream's path.
pub(crate) fn check_model(name: &str) -> Result<(), Failure> {
    let refused = |why: String| Err(Failure::new(FailureKind::InvalidRequest, why));
    if name.is_empty() {
        return refused("model: a model's name is required".to_owned());
    }
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_.@".contains(it);
    let has_letter = name.contains(|it: char| it.is_ascii_alphanumeric());
    if name.len() > MAX_MODEL_BYTES || !has_letter || !name.chars().all(is_plain) {
        let shown: String =
            name.chars().take(MAX_MODEL_BYTES).flat_map(char::escape_debug).collect();
        let shown = brief(&shown, MAX_MODEL_BYTES);
        return refused(format!(
            "model: `{shown}` is not a model's name: letters, digits, `-`, `_`, `.` and `@` are allowed, at most {MAX_MODEL_BYTES}"
        ));
    }
    Ok(())
}

/// Reads a body that is not a stream.
pub(crate) async fn whole(body: Incoming) -> Result<Bytes, Failure> {
    match Limited::new(body, BODY_LIMIT).collect().await {
        Ok(whole) => Ok(whole.to_bytes()),
        Err(error) => Err(Failure::new(
            FailureKind::Cut,
            format!("the upstream's answer was cut off: {error}"),
        )),
    }
}

/// Reads the body of an error, at most [`ERROR_LIMIT`] bytes of it.
pub(crate) async fn error_body(mut body: Incoming) -> Result<Bytes, Failure> {
    let mut read = BytesMut::new();
    while read.len() < ERROR_LIMIT
        && let Some(frame) = body.frame().await
    {
        let frame = frame.map_err(|error| {
            let message = format!("the upstream's answer was cut off: {error}");
            Failure::new(FailureKind::Cut, message)
        })?;
        read.extend_from_slice(frame.data_ref().map_or(&[], |data| &data[..]));
    }
    read.truncate(ERROR_LIMIT);
    Ok(read.freeze())
}

fn models_path(config: &Upstream) -> String {
    let version = &config.api_version;
    match (config.kind, &config.project) {
        (UpstreamKind::Developer | UpstreamKind::Sim, _) => format!("/{version}/models"),
        (UpstreamKind::Vertex, Some(project)) => {
            let location = &config.location;
            format!("/{version}/projects/{project}/locations/{location}/publishers/google/models")
        }
        (UpstreamKind::Vertex, None) => format!("/{version}/publishers/google/models"),
    }
}

fn catalogue_path(config: &Upstream) -> String {
    match config.kind {
        UpstreamKind::Developer | UpstreamKind::Sim => models_path(config),
        UpstreamKind::Vertex => format!("/{}/publishers/google/models", config.api_version),
    }
}

fn push_segment(path: &mut String, segment: &str) {
    for byte in segment.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~@".contains(&byte) {
            path.push(char::from(byte));
        } else {
            path.push('%');
            for nibble in [byte >> 4, byte & 15] {
                path.push(
                    char::from_digit(u32::from(nibble), 16).unwrap_or('0').to_ascii_uppercase(),
                );
            }
        }
    }
}

fn unreachable(error: &hyper_util::client::legacy::Error) -> Failure {
    let mut why = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        why = cause.to_string();
        source = cause.source();
    }
    let kind = if error.is_connect() { FailureKind::Overloaded } else { FailureKind::Cut };
    Failure::new(kind, format!("the upstream cannot be reached: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Sources};

    /// Vertex AI asks models below a project and lists them beside all projects.
    #[tokio::test]
    async fn models_are_asked_and_listed_where_they_are() {
        let vertex = "kind = \"vertex\"\nbearer_token = \"t\"\nproject = \"p\"";
        for (upstream, models, list) in [
            (
                "api_keys = [\"k\"]",
                "/v1beta/models",
                "/v1beta/models?pageSize=1000&pageToken=a%2Fb",
            ),
            (
                vertex,
                "/v1beta1/projects/p/locations/global/publishers/google/models",
                "/v1beta1/publishers/google/models?pageSize=1000&pageToken=a%2Fb",
            ),
        ] {
            let file = format!("[upstream]\n{upstream}");
            let sources = Sources { file: Some(("test", &file)), env: &|_| None, flags: &[] };
            let config = Config::resolve(&sources).unwrap();
            let link = Link::new(&config.upstream, None, 1).unwrap();
            assert_eq!(link.models_path(), models);
            assert_eq!(link.page_path(Some("a/b")), list);
        }
    }
}
