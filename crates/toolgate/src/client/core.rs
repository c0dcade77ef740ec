//! Clients.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use toolgate_core::canon::{IdGen, Target};
use toolgate_core::schema::Cache;

use super::ClientBuilder;
use super::link::Link;
use super::retry::random;
use crate::Error;

/// Client of the Developer API, Vertex AI, or a server with the same API. Clones are cheap and share
/// their connections.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use toolgate::Client;
///
/// let client = Client::new("a key")?;
/// # if false {
/// let answer = client.generate("Why is the sky blue?").await?;
/// println!("{}", answer.text());
/// # }
/// # Ok::<(), toolgate::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    link: Link,
    model: String,
    schemas: Cache,
    seed: Option<u128>,
    answers: AtomicU64,
}

/// Capacity of the cache of compiled schemas.
const MAX_CACHED_SCHEMAS: usize = 4096;

impl Client {
    /// Creates a client of the Developer API with default settings.
    pub fn new(api_key: impl Into<String>) -> Result<Self, Error> {
        Self::builder().api_key(api_key).build()
    }

    /// Creates a client from environment variables.
    ///
    /// | variable | meaning |
    /// |---|---|
    /// | `GOOGLE_API_KEY`, `GEMINI_API_KEY` | API key |
    /// | `GOOGLE_GENAI_USE_VERTEXAI` | `true` selects Vertex AI |
    /// | `GOOGLE_CLOUD_PROJECT`, `GOOGLE_CLOUD_LOCATION` | project and location on Vertex AI |
    /// | `GOOGLE_ACCESS_TOKEN` | OAuth token |
    /// | `TOOLGATE_BASE_URL`, `GOOGLE_GEMINI_BASE_URL` | base URL |
    /// | `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY` | HTTP proxy, and hosts reached without it |
    /// | `TOOLGATE_CA_FILE`, `SSL_CERT_FILE` | root certificates in PEM form, in addition or instead of the system's |
    pub fn from_env() -> Result<Self, Error> {
        Self::builder_from_env()?.build()
    }

    /// Returns a builder with default settings.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::new()
    }

    /// Returns a builder with settings from environment variables.
    pub fn builder_from_env() -> Result<ClientBuilder, Error> {
        ClientBuilder::from_env(|name| std::env::var(name).ok())
    }

    /// Model of requests that name none.
    pub fn model(&self) -> &str {
        &self.0.model
    }

    pub(super) fn assemble(link: Link, model: String, seed: Option<u128>) -> Self {
        let schemas = Cache::new(MAX_CACHED_SCHEMAS);
        Self(Arc::new(Inner { link, model, schemas, seed, answers: AtomicU64::new(0) }))
    }

    pub(crate) fn link(&self) -> &Link {
        &self.0.link
    }

    pub(crate) fn schemas(&self) -> &Cache {
        &self.0.schemas
    }

    pub(crate) fn target(&self, model: &str) -> Target {
        let model = model.strip_prefix("models/").unwrap_or(model);
        Target { model: model.to_owned(), backend: self.0.link.endpoints.backend() }
    }

    /// Generator of ids for one answer, unique across answers.
    pub(crate) fn ids(&self) -> IdGen {
        let number = self.0.answers.fetch_add(1, Ordering::Relaxed);
        IdGen::new(match self.0.seed {
            Some(seed) => seed.wrapping_add(u128::from(number)),
            None => u128::from(random()) << 64 | u128::from(random()),
        })
    }
}

/// Shows no keys.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("link", &self.0.link).field("model", &self.0.model).finish()
    }
}
