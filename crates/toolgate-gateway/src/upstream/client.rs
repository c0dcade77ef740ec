//! The HTTP client of the upstream: connection pools, credentials, URLs.

use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use toolgate_core::canon::{Backend, Failure, FailureKind, brief};
use toolgate_transport::{
    ConnectErrorKind, Connector, Endpoints, Pool, Settings, TransportError, Verb,
};

use super::embedded::Embedded;
use super::health::Health;
use super::oauth::{TokenSource, Tokens};
use crate::config::{Secret, Upstream, UpstreamKind};
use crate::threads;

/// Client of the upstream.
#[derive(Clone, Debug)]
pub(crate) struct UpstreamClient {
    /// One pool for each serving thread: a connection stays on the thread that opened it.
    pools: Arc<[Pool]>,
    /// Answers instead of the network.
    embedded: Option<Embedded>,
    /// Gemini, for clients' own keys beside the embedded upstream.
    own_keys: Option<Endpoints>,
    endpoints: Endpoints,
    health: Arc<Health>,
    tokens: Option<Tokens>,
    bearer: Option<Secret>,
}

/// Credentials of one request.
#[derive(Clone, Debug)]
pub(crate) enum Credential {
    /// A Gemini key: the client's, or one of the pool.
    ApiKey(Secret),
    /// The gateway's own token (Vertex AI), or nothing (the simulator).
    Gateway,
    /// The client's own OAuth token.
    Bearer(Secret),
}

/// Maximum number of idle HTTP/1 connections. A burst opens as many as it needs.
const MAX_IDLE_CONNECTIONS: usize = 256;
/// Maximum length of a model name.
const MAX_MODEL_BYTES: usize = 128;
/// Base URL of the embedded upstream; never resolved.
const EMBEDDED_URL: &str = "http://localhost";
/// Maximum size of an answer that is not a stream.
const MAX_BODY_BYTES: usize = 256 << 20;
/// Longer error bodies are cut off: they are read on the serving thread.
const MAX_ERROR_BYTES: usize = 1 << 20;

impl UpstreamClient {
    /// Creates the client. Opens no connection. `simulator` is used where the configuration names no
    /// other upstream.
    pub(crate) fn new(
        config: &Upstream,
        simulator: Option<&Embedded>,
        threads: usize,
    ) -> Result<Self, String> {
        let settings = Settings {
            connect_timeout: config.connect,
            ca_file: config.ca_file.clone(),
            proxy: config.proxy.clone(),
        };
        let connector = Connector::new(&settings).map_err(|error| error.to_string())?;
        let threads = threads.max(1);
        let pool = || connector.pool(MAX_IDLE_CONNECTIONS.div_ceil(threads));
        let tokens = match &config.auth.service_account {
            Some(path) if config.kind == UpstreamKind::Vertex => {
                Some(Arc::new(TokenSource::read(path)?))
            }
            _ => None,
        };
        let (base, embedded) = match (config.base_url(), simulator) {
            (Some(url), _) => (url, None),
            (None, Some(simulator)) => (EMBEDDED_URL.to_owned(), Some(simulator.clone())),
            (None, None) => return Err("this program has no built-in simulator".to_owned()),
        };
        let service = config.service();
        let version = Some(config.api_version.as_str());
        let own_keys = config.is_fallback.then(|| Endpoints::new(&service, None, version));
        Ok(Self {
            pools: (0..threads).map(|_| pool()).collect(),
            embedded,
            own_keys,
            endpoints: Endpoints::new(&service, Some(&base), version),
            health: Arc::default(),
            tokens,
            bearer: config.auth.bearer.clone(),
        })
    }

    /// The pool of this thread.
    fn pool(&self) -> &Pool {
        &self.pools[threads::here() % self.pools.len()]
    }

    /// Whether the embedded upstream answers requests with this credential.
    pub(crate) fn is_embedded(&self, has_own_key: bool) -> bool {
        self.embedded.is_some() && !(has_own_key && self.own_keys.is_some())
    }

    /// The upstream's back end.
    pub(crate) fn backend(&self) -> Backend {
        self.endpoints.backend()
    }

    /// Sends a request to a model.
    pub(crate) async fn ask(
        &self,
        model: &str,
        verb: Verb,
        credential: &Credential,
        body: Bytes,
    ) -> Result<Response<Incoming>, Failure> {
        check_model(model)?;
        let path = self.endpoints.method_path(model, verb);
        self.forward(Method::POST, &path, credential, &[], body).await
    }

    /// Sends a request to `path`, which may have a query.
    pub(crate) async fn forward(
        &self,
        method: Method,
        path: &str,
        credential: &Credential,
        headers: &[(HeaderName, HeaderValue)],
        body: Bytes,
    ) -> Result<Response<Incoming>, Failure> {
        let has_own_key = matches!(credential, Credential::ApiKey(_));
        let is_embedded = self.is_embedded(has_own_key);
        let endpoints = match &self.own_keys {
            Some(google) if !is_embedded => google,
            Some(_) | None => &self.endpoints,
        };
        let uri: Uri = endpoints.url(path).parse().map_err(|_| {
            Failure::new(FailureKind::InvalidRequest, "the model's name cannot be part of a URL")
        })?;
        // The body is read without decompression.
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
            Failure::new(
                FailureKind::Authentication,
                "the key has characters that are not allowed in a header",
            )
        })?;
        value.set_sensitive(true);
        let request = request
            .header(name, value)
            .body(Full::new(body))
            .map_err(|error| Failure::new(FailureKind::Internal, error.to_string()))?;
        match &self.embedded {
            Some(embedded) if is_embedded => embedded.request(request).await,
            Some(_) | None => self.send(request).await,
        }
    }

    /// Sends a request over the network, and records whether the upstream was reached.
    async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Failure> {
        let error = match self.pool().request(request).await {
            Ok(response) => {
                self.health.reached();
                return Ok(response);
            }
            Err(error) => TransportError::from(&error),
        };
        if let TransportError::Connect(error) = &error {
            self.health.failed(error.kind, Instant::now());
        }
        Err(error.into())
    }

    /// Name of the reason while the upstream is unreachable; `None` while it is reachable.
    pub(crate) fn outage(&self) -> Option<&'static str> {
        self.health.outage(Instant::now()).map(ConnectErrorKind::name)
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
        let response = self.send(request).await?;
        let status = response.status();
        Ok((status, whole(response.into_body()).await?))
    }

    /// Path of a page of the list of models.
    pub(crate) fn page_path(&self, token: Option<&str>) -> String {
        self.endpoints.page_path(token)
    }

    /// Path of the list of models.
    pub(crate) fn catalogue_path(&self) -> &str {
        self.endpoints.list_path()
    }

    /// Path of the collection of models.
    pub(crate) fn models_path(&self) -> &str {
        self.endpoints.models_path()
    }
}

/// Checks that a name can be a model's. Anything else could address another resource of the upstream.
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
    match Limited::new(body, MAX_BODY_BYTES).collect().await {
        Ok(whole) => Ok(whole.to_bytes()),
        Err(error) => Err(Failure::new(
            FailureKind::Cut,
            format!("the upstream's answer was cut off: {error}"),
        )),
    }
}

/// Reads the body of an error, at most [`MAX_ERROR_BYTES`] bytes of it.
pub(crate) async fn error_body(mut body: Incoming) -> Result<Bytes, Failure> {
    let mut read = BytesMut::new();
    while read.len() < MAX_ERROR_BYTES
        && let Some(frame) = body.frame().await
    {
        let frame = frame.map_err(|error| {
            let message = format!("the upstream's answer was cut off: {error}");
            Failure::new(FailureKind::Cut, message)
        })?;
        read.extend_from_slice(frame.data_ref().map_or(&[], |data| &data[..]));
    }
    read.truncate(MAX_ERROR_BYTES);
    Ok(read.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Sources};

    /// Vertex AI has models in a project, and one list for all projects.
    #[tokio::test]
    async fn models_and_their_list_have_their_own_paths() {
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
            let client = UpstreamClient::new(&config.upstream, None, 1).unwrap();
            assert_eq!(client.models_path(), models);
            assert_eq!(client.page_path(Some("a/b")), list);
        }
    }
}
