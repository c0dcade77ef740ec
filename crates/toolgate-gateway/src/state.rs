//! State of a gateway, shared by its requests. There is no global state.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use toolgate_core::schema::Cache;
use toolgate_core::seal::Sealer;

use crate::admission::Admission;
use crate::clock::Seed;
use crate::config::Config;
use crate::identity::IdentitySecret;
use crate::metrics::Metrics;
use crate::offload::Offload;
use crate::sessions::SessionState;
use crate::store;
use crate::tasks::Tasks;
use crate::turn::{Current, RefusalMemory, Services};
use crate::upstream::{Embedded, KeyPool, UpstreamClient};

/// A gateway.
#[derive(Debug)]
pub(crate) struct Gateway {
    current: RwLock<Arc<Current>>,
    pub(crate) services: Arc<Services>,
    pub(crate) sessions: Arc<SessionState>,
    /// Tasks that outlive a request.
    pub(crate) tasks: Tasks,
    /// Configuration at the start. Some settings, the address above all, hold to the end.
    pub(crate) started: Arc<Config>,
    /// Number of serving threads.
    pub(crate) threads: usize,
    /// Proves to programs of the same user whose gateway this is.
    pub(crate) identity: Option<IdentitySecret>,
    simulator: Option<Embedded>,
    seed: u64,
    requests: AtomicU64,
}

/// Maximum number of compiled schemas: the tools of a few agents.
const MAX_SCHEMAS: usize = 4096;

impl Gateway {
    /// Prepares a gateway.
    pub(crate) async fn new(
        config: Config,
        simulator: Option<Embedded>,
        identity: Option<IdentitySecret>,
    ) -> Result<Arc<Self>, String> {
        let threads = config.threads;
        let link = UpstreamClient::new(&config.upstream, simulator.as_ref(), threads)?;
        let keys = Arc::new(KeyPool::new(config.upstream.auth.api_keys.clone()));
        let metrics = Metrics::default();
        let options = toolgate_store::Options {
            max_bytes: config.store_bytes,
            retention: config.state_retention,
            new_secret: random()?,
            may_start_away: config.signature_key_bytes().is_some(),
            metrics: metrics.store.clone(),
        };
        let (store, stored_key) =
            store::open(&config.store, options).await.map_err(|error| error.to_string())?;
        let key = config.signature_key_bytes().unwrap_or(stored_key);
        let seed = u64::from_be_bytes(random()?);
        let admission = Admission::new(&config, metrics.active.clone());
        let offload = Offload::start(threads)
            .map_err(|error| format!("cannot start the translation threads: {error}"))?;
        let store = Arc::new(store);
        let services = Services {
            metrics,
            schemas: Cache::new(MAX_SCHEMAS),
            sealer: Sealer::with_key(key),
            store: Arc::clone(&store),
            refusals: RefusalMemory::default(),
            offload,
            admission,
        };
        let started = Arc::new(config);
        let current = Arc::new(Current { config: Arc::clone(&started), link, keys });
        Ok(Arc::new(Self {
            current: RwLock::new(current),
            services: Arc::new(services),
            sessions: Arc::new(SessionState::new(store)),
            tasks: Tasks::default(),
            started,
            threads,
            identity,
            simulator,
            seed,
            requests: AtomicU64::new(0),
        }))
    }

    /// Settings and upstream in force. A request takes them once and keeps them to its end.
    pub(crate) fn current(&self) -> Arc<Current> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Configuration in force.
    pub(crate) fn config(&self) -> Arc<Config> {
        Arc::clone(&self.current().config)
    }

    /// Puts a new configuration into force. Running requests keep the old one.
    pub(crate) fn reload(&self, config: Config) -> Result<(), String> {
        let old = self.current();
        // The open port stays open, whatever the new configuration says.
        let open = self.started.listen;
        if !open.ip().is_loopback() && config.clients.keys.is_empty() {
            return Err(format!(
                "the gateway listens on {open}, which needs clients.keys; `listen` changes with the next start only"
            ));
        }
        let link = UpstreamClient::new(&config.upstream, self.simulator.as_ref(), self.threads)?;
        for setting in self.started.fixed_but_changed(&config) {
            tracing::warn!("`{setting}` changes with the next start only");
        }
        let keys = if old.keys.holds(&config.upstream.auth.api_keys) {
            Arc::clone(&old.keys)
        } else {
            Arc::new(KeyPool::new(config.upstream.auth.api_keys.clone()))
        };
        self.services.admission.resize(&config);
        let new = Arc::new(Current { config: Arc::new(config), link, keys });
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }

    /// Returns an id for the next request, and a seed for the ids in its answer.
    pub(crate) fn next_request(&self) -> (String, Seed) {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        // A step of an odd constant visits every value once; with the random start, ids do not
        // repeat across restarts and cannot be mistaken for a counter.
        let drawn = self.seed.wrapping_add(number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mixed = (drawn ^ (drawn >> 31)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let seed = (u128::from(mixed) << 64) | u128::from(drawn);
        (format!("req_{mixed:016x}"), Seed::new(seed))
    }
}

fn random<const N: usize>() -> Result<[u8; N], String> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| format!("no source of randomness: {error}"))?;
    Ok(bytes)
}
