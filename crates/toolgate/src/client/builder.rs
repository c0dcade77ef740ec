//! Builder of clients.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::auth::Auth;
use super::link::Link;
use super::{Client, Retries, TokenSource};
use crate::Error;
use crate::transport::{Endpoints, HttpTransport, Proxy, Service, Settings, SetupError, Transport};

/// Model of clients that set none.
const DEFAULT_MODEL: &str = "gemini-3.6-flash";

/// Builder of a [`Client`].
///
/// ```
/// use std::time::Duration;
/// use toolgate::{Client, Retries};
///
/// let client = Client::builder()
///     .api_key("a key")
///     .model("gemini-3.8-flash")
///     .timeout(Duration::from_secs(60))
///     .retries(Retries { attempts: 3, ..Retries::default() })
///     .build()?;
/// # Ok::<(), toolgate::Error>(())
/// ```
#[derive(Clone)]
pub struct ClientBuilder {
    service: Service,
    auth: Option<Auth>,
    base_url: Option<String>,
    api_version: Option<String>,
    model: String,
    headers: Vec<(String, String)>,
    connection: Settings,
    /// Proxy rules; `None`: those of the environment.
    proxy: Option<Proxy>,
    timeout: Duration,
    idle: Duration,
    retries: Retries,
    transport: Option<Arc<dyn Transport>>,
    seed: Option<u128>,
}

impl ClientBuilder {
    pub(super) fn new() -> Self {
        Self {
            service: Service::Developer,
            auth: None,
            base_url: None,
            api_version: None,
            model: DEFAULT_MODEL.to_owned(),
            headers: Vec::new(),
            connection: Settings::default(),
            proxy: None,
            timeout: Duration::from_secs(600),
            idle: Duration::from_secs(300),
            retries: Retries::default(),
            transport: None,
            seed: None,
        }
    }

    /// Creates a builder from environment variables; see [`Client::from_env`].
    pub(super) fn from_env(env: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let get = |name: &str| env(name).filter(|value| !value.is_empty());
        let mut builder = Self::new();
        let key = get("GOOGLE_API_KEY").or_else(|| get("GEMINI_API_KEY"));
        let vertex = get("GOOGLE_GENAI_USE_VERTEXAI")
            .is_some_and(|it| it == "1" || it.eq_ignore_ascii_case("true"));
        if vertex {
            let project = get("GOOGLE_CLOUD_PROJECT");
            if project.is_none() && key.is_none() {
                let reason = "Vertex AI needs GOOGLE_CLOUD_PROJECT, or GOOGLE_API_KEY";
                return Err(Error::Configuration(reason.to_owned()));
            }
            let location = get("GOOGLE_CLOUD_LOCATION").unwrap_or_else(|| "global".to_owned());
            builder.service = Service::Vertex { project, location };
        }
        builder.proxy = Some(Proxy::from_env(&env).map_err(|error| configuration(&error))?);
        builder.connection.ca_file = get("TOOLGATE_CA_FILE").map(PathBuf::from);
        builder.base_url = get("TOOLGATE_BASE_URL").or_else(|| get("GOOGLE_GEMINI_BASE_URL"));
        builder.auth = match (key, get("GOOGLE_ACCESS_TOKEN")) {
            (Some(key), _) => Some(Auth::Key(key)),
            (None, Some(token)) => Some(Auth::Token(Arc::new(token))),
            (None, None) => None,
        };
        Ok(builder)
    }

    /// Authenticates with an API key.
    #[must_use]
    pub fn api_key(self, key: impl Into<String>) -> Self {
        Self { auth: Some(Auth::Key(key.into())), ..self }
    }

    /// Authenticates with OAuth tokens: a `String`, or a closure that returns a future of one.
    #[must_use]
    pub fn token(self, source: impl TokenSource + 'static) -> Self {
        Self { auth: Some(Auth::Token(Arc::new(source))), ..self }
    }

    /// Uses Vertex AI in this project and location.
    #[must_use]
    pub fn vertex(self, project: impl Into<String>, location: impl Into<String>) -> Self {
        let service = Service::Vertex { project: Some(project.into()), location: location.into() };
        Self { service, ..self }
    }

    /// Uses Vertex AI with an API key only ("express mode").
    #[must_use]
    pub fn vertex_express(self) -> Self {
        let service = Service::Vertex { project: None, location: "global".to_owned() };
        Self { service, ..self }
    }

    /// Sets the base URL, without the API version.
    #[must_use]
    pub fn base_url(self, url: impl Into<String>) -> Self {
        Self { base_url: Some(url.into()), ..self }
    }

    /// Sets the API version; `v1beta` by default, `v1beta1` on Vertex AI.
    #[must_use]
    pub fn api_version(self, version: impl Into<String>) -> Self {
        Self { api_version: Some(version.into()), ..self }
    }

    /// Sets the model of requests that name none.
    #[must_use]
    pub fn model(self, model: impl Into<String>) -> Self {
        Self { model: model.into(), ..self }
    }

    /// Adds a header to every request.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into().to_ascii_lowercase(), value.into()));
        self
    }

    /// Sets the timeout for opening a connection, proxy and TLS included; 10 seconds by default.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connection.connect_timeout = timeout;
        self
    }

    /// Uses this HTTP proxy for every request: `http://user:password@proxy:3128`. By default,
    /// `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` decide, and hosts on loopback are reached directly.
    pub fn proxy(mut self, url: &str) -> Result<Self, Error> {
        self.proxy = Some(Proxy::for_all(url).map_err(|error| configuration(&error))?);
        Ok(self)
    }

    /// Uses no proxy, whatever the environment configures.
    #[must_use]
    pub fn no_proxy(mut self) -> Self {
        self.proxy = Some(Proxy::none());
        self
    }

    /// Trusts the root certificates of this PEM file too, beside Mozilla's and the system's.
    #[must_use]
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.connection.ca_file = Some(path.into());
        self
    }

    /// Sets the timeout for an answer, or for the response head of a stream; 10 minutes by default.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Sets the longest pause within a stream; 5 minutes by default.
    #[must_use]
    pub fn idle_timeout(self, timeout: Duration) -> Self {
        Self { idle: timeout, ..self }
    }

    /// Sets the retry policy for failed requests.
    #[must_use]
    pub fn retries(self, retries: Retries) -> Self {
        Self { retries, ..self }
    }

    /// Replaces the HTTP transport.
    #[must_use]
    pub fn transport(self, transport: impl Transport + 'static) -> Self {
        Self { transport: Some(Arc::new(transport)), ..self }
    }

    /// Sets the seed of call ids, for reproducible tests. Otherwise ids are random.
    #[must_use]
    pub fn seed(self, seed: u128) -> Self {
        Self { seed: Some(seed), ..self }
    }

    /// Builds the client. No connection is opened yet.
    pub fn build(self) -> Result<Client, Error> {
        let auth = match self.auth {
            Some(auth) => auth,
            // A server of one's own may need no credentials.
            None if self.base_url.is_some() || self.transport.is_some() => Auth::None,
            None => {
                let reason = "no API key: set GEMINI_API_KEY, or pass one to the builder";
                return Err(Error::Configuration(reason.to_owned()));
            }
        };
        let transport = match self.transport {
            Some(transport) => transport,
            None => {
                let proxy = match self.proxy {
                    Some(proxy) => proxy,
                    None => Proxy::from_env(&|name| std::env::var(name).ok())
                        .map_err(|error| configuration(&error))?,
                };
                let connection = Settings { proxy, ..self.connection };
                Arc::new(HttpTransport::new(&connection).map_err(|error| configuration(&error))?)
            }
        };
        let endpoints =
            Endpoints::new(&self.service, self.base_url.as_deref(), self.api_version.as_deref());
        let link = Link {
            transport,
            endpoints,
            auth,
            headers: self.headers,
            timeout: self.timeout,
            idle: self.idle,
            retries: self.retries,
        };
        Ok(Client::assemble(link, self.model, self.seed))
    }
}

fn configuration(error: &SetupError) -> Error {
    Error::Configuration(error.to_string())
}

/// Shows neither keys nor headers.
impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("service", &self.service)
            .field("auth", &self.auth)
            .field("base_url", &self.base_url)
            .field("model", &self.model)
            .field("retries", &self.retries)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(env: &[(&str, &str)], want: &str) {
        let get = |name: &str| {
            env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        let built = ClientBuilder::from_env(get).and_then(ClientBuilder::build);
        match built {
            Ok(client) => assert_eq!(client.link().url("m"), want),
            Err(error) => assert_eq!(error.to_string(), want),
        }
    }

    #[test]
    fn clients_are_configured_by_the_environment() {
        let google = "https://generativelanguage.googleapis.com/v1beta/models/m";
        check(&[("GEMINI_API_KEY", "k")], google);
        check(&[("GOOGLE_API_KEY", "k"), ("GEMINI_API_KEY", "")], google);
        check(&[], "no API key: set GEMINI_API_KEY, or pass one to the builder");
        check(&[("TOOLGATE_BASE_URL", "http://h:1")], "http://h:1/v1beta/models/m");
        check(
            &[("GOOGLE_GENAI_USE_VERTEXAI", "true")],
            "Vertex AI needs GOOGLE_CLOUD_PROJECT, or GOOGLE_API_KEY",
        );
        check(
            &[
                ("GOOGLE_GENAI_USE_VERTEXAI", "1"),
                ("GOOGLE_CLOUD_PROJECT", "p"),
                ("GOOGLE_CLOUD_LOCATION", "eu"),
                ("GOOGLE_ACCESS_TOKEN", "t"),
            ],
            "https://aiplatform.eu.rep.googleapis.com/v1beta1/projects/p/locations/eu/publishers/google/models/m",
        );
    }

    #[test]
    fn debug_shows_no_key() {
        let builder = ClientBuilder::new().api_key("hunter2").header("x-secret", "hunter2");
        let shown = format!("{builder:?} {:?}", builder.clone().build());
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
