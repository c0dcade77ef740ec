//! Surroundings of a turn: shared services, the settings in force, the client.

use std::sync::Arc;

use toolgate_core::canon::Failure;

use toolgate_core::dialect::Stamp;
use toolgate_core::schema::Cache;
use toolgate_core::seal::Sealer;
use toolgate_core::translate::Dialect;

use super::audit::Audit;
use super::refusals::RefusalMemory;
use crate::admission::Admission;
use crate::auth::{Client, Pass};
use crate::clock::Seed;
use crate::config::{Config, Secret};
use crate::metrics::Metrics;
use crate::offload::{Offload, heavy};
use crate::redact::{without_keys, without_values};
use crate::signatures::SignatureStore;
use crate::store::Store;
use crate::upstream::{KeyPool, UpstreamClient};

/// Services that all turns share.
#[derive(Debug)]
pub(crate) struct Services {
    pub(crate) metrics: Metrics,
    /// Compiled tool schemas.
    pub(crate) schemas: Cache,
    /// Seals the envelopes that clients keep.
    pub(crate) sealer: Sealer,
    pub(crate) store: Arc<Store>,
    pub(crate) refusals: RefusalMemory,
    /// Threads for long computations.
    pub(crate) offload: Offload,
    /// Concurrency slots and the memory budget.
    pub(crate) admission: Admission,
}

/// Configuration and upstream in force. A reload replaces them as a whole; a request keeps those that it
/// started with.
#[derive(Debug)]
pub(crate) struct Current {
    pub(crate) config: Arc<Config>,
    pub(crate) link: UpstreamClient,
    /// The gateway's own API keys.
    pub(crate) keys: Arc<KeyPool>,
}

/// Context of one turn.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(crate) services: Arc<Services>,
    pub(crate) current: Arc<Current>,
    pub(crate) client: Client,
    pub(crate) request_id: String,
    pub(crate) seed: Seed,
    /// Session that the client's headers name: for correlation only, never as authority.
    pub(crate) session: Option<String>,
}

impl Context {
    /// Starts the audit of the request.
    pub(crate) fn audit(&self, dialect: Dialect) -> Audit {
        Audit::new(Arc::clone(&self.services), dialect, &self.request_id)
    }

    /// Ids and time of the answer.
    pub(crate) fn stamp(&self) -> Stamp {
        Stamp { request_id: Some(self.request_id.clone()), ..self.seed.stamp() }
    }

    /// Signatures of the client's calls.
    pub(crate) fn signatures(&self) -> SignatureStore {
        let retention = self.current.config.state_retention;
        SignatureStore::new(Arc::clone(&self.services.store), self.client.owner, retention)
    }

    /// Runs a computation over `bytes` bytes, on a translation thread where that is a lot.
    pub(crate) fn compute<F, W>(
        &self,
        bytes: usize,
        work: W,
    ) -> impl Future<Output = Result<F::Output, Failure>> + Send + use<'_, F, W>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
        W: FnOnce(Self) -> F,
    {
        let work = work(self.clone());
        let work = async move {
            heavy(bytes).await;
            work.await
        };
        self.services.offload.run(self.client.owner, work)
    }
}

impl Current {
    /// A failure as clients and logs may see it: without keys, and its message without values that
    /// Google quotes from the request. Google's body stays as it is for Gemini's own clients.
    pub(crate) fn redacted(&self, failure: &Failure, pass: &Pass) -> Failure {
        let mut redacted = failure.clone();
        if failure.upstream_status.is_some() || failure.upstream_code.is_some() {
            redacted.message = without_values(&failure.message).into_owned();
        }
        let texts = [Some(&mut redacted.message), redacted.upstream_body.as_mut()];
        for text in texts.into_iter().flatten() {
            if let Some(clean) = self.without_keys(text, pass) {
                *text = clean;
            }
        }
        redacted
    }

    /// Removes the upstream's keys from a text; `None` where it has none.
    pub(crate) fn without_keys(&self, text: &str, pass: &Pass) -> Option<String> {
        let own = match pass {
            Pass::ApiKey(key) | Pass::Bearer(key) => Some(key.expose()),
            Pass::Pool => None,
        };
        let bearer = self.config.upstream.auth.bearer.as_ref().map(Secret::expose);
        let pool = self.config.upstream.auth.api_keys.iter().map(Secret::expose);
        without_keys(text, pool.chain(own).chain(bearer))
    }
}
