//! Everything that requests share, handed down from here. There is no global state.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use toolgate_core::canon::Failure;
use toolgate_core::schema::Cache;
use toolgate_core::seal::Sealer;

use crate::admission::Admission;
pub(crate) use crate::admission::Admitted;
use crate::auth::{Owner, Pass};
use crate::clock::Seed;
use crate::config::{Config, Secret};
use crate::doors::LiveAnswers;
use crate::identity::IdentitySecret;
use crate::metrics::Metrics;
use crate::offload::Offload;
use crate::redact::{without_keys, without_values};
use crate::service::Options;
use crate::session::Shared;
use crate::store::{self, Store};
use crate::tasks::Tasks;
use crate::turn::RefusalMemory;
use crate::upstream::{Embedded, KeyPool, Link};

/// The gateway.
#[derive(Debug)]
pub struct App {
    current: RwLock<Arc<Current>>,
    /// What is counted.
    pub metrics: Metrics,
    /// Compiled tool schemas.
    pub schemas: Cache,
    /// Seals what clients keep for us.
    pub sealer: Sealer,
    /// What must outlive a request.
    pub store: Store,
    /// What many kept answers have in common.
    pub(crate) shared: Shared,
    /// What the upstream refused lately.
    pub refusals: RefusalMemory,
    /// What runs beside the requests.
    pub tasks: Tasks,
    /// Answers that are being made in the background.
    pub live: LiveAnswers,
    /// Concurrency slots and the memory budget.
    pub(crate) admission: Admission,
    /// Threads for long computations.
    pub(crate) offload: Offload,
    /// What it started with. Some of it holds to the end: where it listens above all.
    pub(crate) started: Arc<Config>,
    /// How many threads serve connections.
    pub lanes: usize,
    /// Proves to programs of the same user whose gateway this is.
    pub(crate) identity: Option<IdentitySecret>,
    simulator: Option<Embedded>,
    seed: u64,
    requests: AtomicU64,
    running: AtomicUsize,
    /// The most that ran at a time since it was last calm.
    most: AtomicUsize,
}

/// What changes when the configuration is read again.
#[derive(Debug)]
pub struct Current {
    /// The configuration.
    pub config: Arc<Config>,
    /// The way to Gemini.
    pub link: Link,
    /// The gateway's own keys.
    pub keys: Arc<KeyPool>,
}

/// So many requests at a time are a burst.
const BURST: usize = 8;
/// How many compiled schemas are kept: a few agents' tool sets.
const SCHEMAS: usize = 4096;

impl App {
    /// Prepares a gateway.
    pub async fn new(config: Config, options: Options) -> Result<Arc<Self>, String> {
        let Options { simulator, identity, .. } = options;
        let lanes = config.threads;
        let link = Link::new(&config.upstream, simulator.as_ref(), lanes)?;
        let keys = Arc::new(KeyPool::new(config.upstream.auth.api_keys.clone()));
        let metrics = Metrics::default();
        let options = toolgate_store::Options {
            max_bytes: config.store_bytes,
            retention: config.state_retention,
            new_secret: random()?,
            may_start_away: config.signature_key_bytes().is_some(),
            metrics: metrics.store.clone(),
        };
        let (store, kept_key) =
            store::open(&config.store, options).await.map_err(|error| error.to_string())?;
        let key = config.signature_key_bytes().unwrap_or(kept_key);
        let seed = u64::from_be_bytes(random()?);
        let admission = Admission::new(&config);
        let offload = Offload::start(lanes)
            .map_err(|error| format!("the translation threads cannot start: {error}"))?;
        let started = Arc::new(config);
        let current = Arc::new(Current { config: Arc::clone(&started), link, keys });
        Ok(Arc::new(Self {
            current: RwLock::new(current),
            started,
            metrics,
            schemas: Cache::new(SCHEMAS),
            sealer: Sealer::with_key(key),
            store,
            shared: Shared::default(),
            refusals: RefusalMemory::default(),
            tasks: Tasks::default(),
            live: LiveAnswers::default(),
            admission,
            offload,
            lanes,
            identity,
            simulator,
            seed,
            requests: AtomicU64::new(0),
            running: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
        }))
    }

    /// What is in force now. A request takes it once and keeps it to its end.
    pub fn current(&self) -> Arc<Current> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The configuration in force now.
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.current().config)
    }

    /// Takes a new configuration into force. Running requests go on with the old one.
    pub fn reload(&self, config: Config) -> Result<(), String> {
        let old = self.current();
        // Whatever the new one says of it, the port that is open stays open.
        let open = self.started.listen;
        if !open.ip().is_loopback() && config.clients.keys.is_empty() {
            return Err(format!(
                "the gateway listens on {open}, which needs clients.keys; `listen` changes with the next start only"
            ));
        }
        let link = Link::new(&config.upstream, self.simulator.as_ref(), self.lanes)?;
        for setting in self.started.fixed_but_changed(&config) {
            tracing::warn!("`{setting}` changes with the next start only");
        }
        let keys = if old.keys.holds(&config.upstream.auth.api_keys) {
            Arc::clone(&old.keys)
        } else {
            Arc::new(KeyPool::new(config.upstream.auth.api_keys.clone()))
        };
        self.admission.resize(&config);
        let new = Arc::new(Current { config: Arc::new(config), link, keys });
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }

    /// An id for the next request, and a seed for the ids in its answer.
    pub(crate) fn next_request(&self) -> (String, Seed) {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        // A step of an odd constant visits every value once; with the random start, ids do not
        // repeat across restarts and cannot be mistaken for a counter.
        let drawn = self.seed.wrapping_add(number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mixed = (drawn ^ (drawn >> 31)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let seed = (u128::from(mixed) << 64) | u128::from(drawn);
        (format!("req_{mixed:016x}"), Seed::new(seed))
    }

    /// Admits a request of an authenticated client.
    pub(crate) fn admit(self: &Arc<Self>, owner: Owner) -> Result<Admitted, Failure> {
        Admitted::new(self, owner)
    }

    /// Counts a request that has been admitted.
    pub(crate) fn started_one(&self) {
        let others = self.running.fetch_add(1, Ordering::Relaxed);
        self.most.fetch_max(others + 1, Ordering::Relaxed);
        self.metrics.active.inc();
    }

    /// Counts a request that has ended.
    pub(crate) fn ended_one(&self) {
        self.running.fetch_sub(1, Ordering::Relaxed);
        self.metrics.active.dec();
    }

    /// Whether a burst of requests is over: half of them or more have ended. Says so once.
    pub(crate) fn has_calmed(&self) -> bool {
        let running = self.running.load(Ordering::Relaxed);
        let most = self.most.load(Ordering::Relaxed);
        let is_calm = most >= BURST && running <= most / 2;
        if is_calm {
            self.most.store(running, Ordering::Relaxed);
        }
        is_calm
    }
}

impl Current {
    /// A failure as clients and logs may see it: without keys, and its message without values that
    /// Google quotes from the request. Google's body stays as it is for Gemini's own clients.
    pub(crate) fn told(&self, failure: &Failure, pass: &Pass) -> Failure {
        let mut told = failure.clone();
        if failure.upstream_status.is_some() || failure.upstream_code.is_some() {
            told.message = without_values(&failure.message).into_owned();
        }
        let texts = [Some(&mut told.message), told.upstream_body.as_mut()];
        for text in texts.into_iter().flatten() {
            if let Some(clean) = self.without_keys(text, pass) {
                *text = clean;
            }
        }
        told
    }

    /// A text of the upstream's without the keys that it was shown; `None` where it has none.
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

fn random<const N: usize>() -> Result<[u8; N], String> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| format!("no randomness: {error}"))?;
    Ok(bytes)
}
