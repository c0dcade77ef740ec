//! Admission: concurrency slots and the memory budget.
//!
//! ```text
//!   authenticated ─► slot ─► body: 2 × its size ─► translation: 16 × its size ─► upstream
//!                     │        │ and no more than        │ given back when the request
//!                     │        │ limits.body_mib          │ is encoded
//!                     └────────┴── given back when the turn ends
//! ```
//!
//! A request that fails authentication takes none of these. Bodies up to [`SMALL_BODY`] and larger ones
//! have separate halves of the memory, so that a small body never waits for a large one. Nothing waits
//! for memory while it holds some of the same kind, and translations never wait for bodies.

use std::any::Any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use prometheus_client::metrics::gauge::Gauge;
use toolgate_core::canon::{Failure, FailureKind};
use toolgate_store::Owner;

use crate::budget::{Budget, Capacity, Full, Reservation};
use crate::config::{Config, TRANSLATION_MULTIPLE};

/// Largest body that counts as small: 1 MiB.
pub(crate) const SMALL_BODY: usize = 1 << 20;
/// Copies of a body that a turn holds: the client's and the one for Gemini.
const BODY_COPIES: u64 = 2;
/// Maximum time that a request waits for memory or for a decompression place.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// Bodies that are decompressed at a time.
const DECOMPRESSIONS: u64 = 4;
/// `Retry-After` of a refusal.
const RETRY_AFTER_MS: u64 = 2000;
/// Number of concurrent requests from which on a burst is counted.
const BURST: usize = 8;

/// Slots and memory of a gateway.
#[derive(Debug)]
pub(crate) struct Admission {
    slots: Budget,
    bodies: Classes,
    translations: Classes,
    decompressions: Classes,
    load: Arc<Load>,
}

/// Requests in progress.
#[derive(Debug)]
struct Load {
    running: AtomicUsize,
    /// Maximum number since the last burst was over.
    peak: AtomicUsize,
    gauge: Gauge,
}

/// Separate budgets for small and for large bodies.
#[derive(Clone, Debug)]
struct Classes {
    small: Budget,
    large: Budget,
}

impl Admission {
    /// `active` shows the number of requests in progress.
    pub(crate) fn new(config: &Config, active: Gauge) -> Self {
        let sizes = Sizes::of(config);
        let load = Load { running: AtomicUsize::new(0), peak: AtomicUsize::new(0), gauge: active };
        Self {
            slots: Budget::new(sizes.slots),
            bodies: Classes::new(sizes.memory),
            translations: Classes::new(sizes.memory),
            decompressions: Classes::new(sizes.decompressions),
            load: Arc::new(load),
        }
    }

    /// Admits a request of this key: takes a concurrency slot.
    pub(crate) fn admit(&self, owner: Owner) -> Result<Admitted, Failure> {
        let slot = self.slot(owner)?;
        let load = Arc::clone(&self.load);
        let running = load.running.fetch_add(1, Ordering::Relaxed) + 1;
        load.peak.fetch_max(running, Ordering::Relaxed);
        load.gauge.inc();
        Ok(Admitted { _slot: slot, load, held: Mutex::default() })
    }

    /// Returns true once after a burst of requests, when half of them or more have ended.
    pub(crate) fn has_calmed(&self) -> bool {
        let running = self.load.running.load(Ordering::Relaxed);
        let peak = self.load.peak.load(Ordering::Relaxed);
        let is_calm = peak >= BURST && running <= peak / 2;
        if is_calm {
            self.load.peak.store(running, Ordering::Relaxed);
        }
        is_calm
    }

    /// Applies a new configuration.
    pub(crate) fn resize(&self, config: &Config) {
        let sizes = Sizes::of(config);
        self.slots.resize(sizes.slots);
        self.bodies.resize(sizes.memory);
        self.translations.resize(sizes.memory);
        self.decompressions.resize(sizes.decompressions);
    }

    /// Takes a concurrency slot.
    fn slot(&self, owner: Owner) -> Result<Reservation, Failure> {
        self.slots.try_reserve(owner, 1).map_err(|full| match full {
            Full::Budget => overloaded("all concurrency slots are in use (limits.concurrency)"),
            Full::Key => {
                let message = "this key has its share of the concurrency slots in use \
                               (limits.concurrency_per_key)";
                busy_key(message)
            }
        })
    }

    /// Reserves memory for a body of this length, before it is read.
    pub(crate) async fn body(&self, owner: Owner, length: usize) -> Result<BodyRoom, Failure> {
        let held = self.bodies.of(length).reserve(owner, body_weight(length), MAX_WAIT).await;
        let held = held.map_err(no_memory)?;
        Ok(BodyRoom { bodies: self.bodies.clone(), owner, length, held })
    }

    /// The same for a body that arrives bit by bit: fails instead of waiting.
    pub(crate) fn try_body(&self, owner: Owner, length: usize) -> Result<BodyRoom, Failure> {
        let held = self.bodies.of(length).try_reserve(owner, body_weight(length));
        let held = held.map_err(no_memory)?;
        Ok(BodyRoom { bodies: self.bodies.clone(), owner, length, held })
    }

    /// Reserves memory for the translation of `length` bytes, until the request is encoded.
    pub(crate) async fn translation(
        &self,
        owner: Owner,
        length: usize,
    ) -> Result<Reservation, Failure> {
        let budget = self.translations.of(length);
        let weight = (length as u64).saturating_mul(TRANSLATION_MULTIPLE);
        // A history from the store may be larger than any body: it has the budget for itself.
        let weight = weight.min(budget.size());
        budget.reserve(owner, weight, MAX_WAIT).await.map_err(no_memory)
    }

    /// The same for a history that was read while the request was being translated: fails instead of
    /// waiting.
    pub(crate) fn try_translation(
        &self,
        owner: Owner,
        length: usize,
    ) -> Result<Reservation, Failure> {
        let budget = self.translations.of(length);
        let weight = (length as u64).saturating_mul(TRANSLATION_MULTIPLE);
        budget.try_reserve(owner, weight.min(budget.size())).map_err(no_memory)
    }

    /// Takes a place for decompressing a body of this compressed length.
    pub(crate) async fn decompression(
        &self,
        owner: Owner,
        length: usize,
    ) -> Result<Reservation, Failure> {
        let place = self.decompressions.of(length).reserve(owner, 1, MAX_WAIT).await;
        place.map_err(|full| match full {
            Full::Budget => overloaded("too many compressed bodies at a time"),
            Full::Key => busy_key("this key has too many compressed bodies at a time"),
        })
    }
}

/// Capacities by configuration.
struct Sizes {
    slots: Capacity,
    memory: Capacity,
    decompressions: Capacity,
}

impl Sizes {
    fn of(config: &Config) -> Self {
        let limits = &config.limits;
        let is_shared = config.clients.keys.len() > 1;
        let of = |size: u64| Capacity { size, per_key: None, is_shared };
        let per_key = limits.concurrency_per_key.map(|most| most as u64);
        Self {
            slots: Capacity { per_key, ..of(limits.concurrency as u64) },
            // Bodies and translations, small and large.
            memory: of(limits.memory / 4),
            decompressions: of(DECOMPRESSIONS / 2),
        }
    }
}

impl Classes {
    fn new(capacity: Capacity) -> Self {
        Self { small: Budget::new(capacity), large: Budget::new(capacity) }
    }

    fn resize(&self, capacity: Capacity) {
        self.small.resize(capacity);
        self.large.resize(capacity);
    }

    fn of(&self, length: usize) -> &Budget {
        if length <= SMALL_BODY { &self.small } else { &self.large }
    }
}

fn body_weight(length: usize) -> u64 {
    (length as u64).saturating_mul(BODY_COPIES)
}

/// Memory reserved for a body.
#[derive(Debug)]
pub(crate) struct BodyRoom {
    bodies: Classes,
    owner: Owner,
    length: usize,
    held: Reservation,
}

impl BodyRoom {
    /// Makes room for a body that turns out to have `length` bytes or more, and returns the length that
    /// there is room for: twice as much, but no more than `limit`. Fails instead of waiting, because
    /// bodies that wait for each other while they hold memory would wait for ever.
    pub(crate) fn grow(&mut self, length: usize, limit: usize) -> Result<usize, Failure> {
        if length <= self.length {
            return Ok(self.length);
        }
        // A small body does not take the room of a large one.
        let most = if length <= SMALL_BODY { limit.min(SMALL_BODY) } else { limit };
        let wanted = length.saturating_mul(2).min(most).max(length);
        let weight = body_weight(wanted);
        if self.length <= SMALL_BODY && wanted > SMALL_BODY {
            self.held = self.bodies.large.try_reserve(self.owner, weight).map_err(no_memory)?;
        } else {
            self.held.try_grow(weight.saturating_sub(self.held.amount())).map_err(no_memory)?;
        }
        self.length = wanted;
        Ok(wanted)
    }

    /// Ties the reservation to the body. The body's own share is given back with its last clone; the
    /// other is returned, for the copy that goes upstream.
    pub(crate) fn hold(self, bytes: impl AsRef<[u8]> + Send + 'static) -> (Bytes, Reservation) {
        let Self { mut held, .. } = self;
        let length = bytes.as_ref().len() as u64;
        let own = held.split(length);
        let copies = held.split(length.saturating_mul(BODY_COPIES - 1));
        (Bytes::from_owner(Held { bytes, _own: own }), copies)
    }
}

/// A body with the memory reserved for it.
struct Held<B> {
    bytes: B,
    _own: Reservation,
}

impl<B: AsRef<[u8]>> AsRef<[u8]> for Held<B> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

/// A request in progress: its slot, and resources that are released with it.
#[derive(Debug)]
pub(crate) struct Admitted {
    _slot: Reservation,
    load: Arc<Load>,
    held: Mutex<Vec<Box<dyn Any + Send>>>,
}

impl Admitted {
    /// Holds a resource, such as a reservation of memory, until the request ends.
    pub(crate) fn hold(&self, resource: impl Any + Send) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(resource));
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.load.running.fetch_sub(1, Ordering::Relaxed);
        self.load.gauge.dec();
    }
}

/// Refusal for lack of capacity.
fn overloaded(message: &str) -> Failure {
    let failure = Failure::new(FailureKind::Overloaded, message);
    Failure { retry_after_ms: Some(RETRY_AFTER_MS), ..failure }
}

/// Refusal because the key uses its whole share.
fn busy_key(message: &str) -> Failure {
    let failure = Failure::new(FailureKind::RateLimited, message);
    Failure { retry_after_ms: Some(RETRY_AFTER_MS), ..failure }
}

fn no_memory(full: Full) -> Failure {
    match full {
        Full::Budget => overloaded("no memory for the request at the moment (limits.memory_mib)"),
        Full::Key => {
            let message = "this key's requests use their share of the memory (limits.memory_mib)";
            busy_key(message)
        }
    }
}
