//! Write queue between serving threads and the writer of a store.
//!
//! ```text
//!   put, append, delete ─► queued ─► batch in flight ─► committed
//!   flush ───────────────────────────────────────────► acknowledged
//! ```
//!
//! Serving threads add writes and never block. One writer takes batches in order, commits each as a
//! whole and acknowledges the flushes that waited for it. A batch that fails is retried by the writer
//! until it is committed; meanwhile the queue fills up to its limit.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::fmt::Display;
use std::hash::{BuildHasher as _, Hash};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use crate::Metrics;
use crate::key::{Key, Owner, STAMP_LEN, Stamp};
use crate::store::Item;

/// Maximum delay before queued writes that no flush waits for are committed.
const COMMIT_INTERVAL: Duration = Duration::from_millis(100);
/// Queued bytes that are committed without delay.
const MAX_BATCH_DELAY_BYTES: usize = 1 << 20;
/// Longest wait for a confirmation.
pub(crate) const CONFIRM_TIMEOUT: Duration = Duration::from_secs(5);
/// Bound on the bytes of all unconfirmed writes.
pub(crate) const MAX_QUEUED_BYTES: u64 = 64 << 20;
/// Bound on the bytes of unconfirmed writes in a very small store.
pub(crate) const MIN_QUEUED_BYTES: u64 = 1 << 20;
/// Approximate cost of a queued write beside its text.
const WRITE_OVERHEAD: usize = 128;

/// A queued write.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) key: Key,
    pub(crate) change: Change,
    /// When the entry expires, in milliseconds since 1970.
    pub(crate) expires: i64,
}

/// Change that a write makes to its entry.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// Sets the value.
    Put(Bytes),
    /// Sets the value and indexes the entry as a call.
    PutCall(Bytes, CallIndex),
    /// Appends items to a list, all or none. Items whose stamp is in the list already are skipped.
    Append(Vec<Item>),
    /// Replaces the value of a list item by an empty one.
    Erase(Stamp),
    /// Removes the entry.
    Delete,
}

/// Under which names a call is found.
#[derive(Clone, Debug)]
pub(crate) struct CallIndex {
    pub(crate) sessions: Vec<String>,
    pub(crate) content: String,
    pub(crate) previous: String,
    /// Position in the order of writing, in stores that need one from the client.
    pub(crate) seq: u64,
}

impl Write {
    /// Bytes that the write occupies in the queue.
    fn bytes(&self) -> usize {
        let change = match &self.change {
            Change::Put(value) => value.len(),
            Change::PutCall(value, index) => {
                let sessions: usize = index.sessions.iter().map(String::len).sum();
                value.len() + sessions + index.content.len() + index.previous.len()
            }
            Change::Append(items) => items.iter().map(|item| STAMP_LEN + item.value.len()).sum(),
            Change::Erase(_) | Change::Delete => 0,
        };
        WRITE_OVERHEAD + self.key.id.len() + change
    }
}

/// Writes that are committed together, and the flushes that wait for them.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) writes: Vec<Write>,
    waiters: Vec<oneshot::Sender<()>>,
    taken: Instant,
}

/// The queue. Shared by serving threads and the writer.
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    /// Wakes the writer.
    wake: Notify,
    /// Name of the store in log lines.
    place: String,
    max_bytes: u64,
    /// How long flushes go on waiting after commits began to fail.
    grace: Duration,
    hasher: RandomState,
    metrics: Metrics,
}

#[derive(Debug, Default)]
struct State {
    writes: Vec<Write>,
    waiters: Vec<oneshot::Sender<()>>,
    /// Bytes of queued writes, and of those in flight.
    queued_bytes: usize,
    in_flight_bytes: usize,
    /// Hashes of the keys of queued writes, and of those in flight.
    queued_keys: HashSet<u64>,
    in_flight_keys: HashSet<u64>,
    in_flight: usize,
    /// When the oldest queued write was added.
    since: Option<Instant>,
    failing_since: Option<Instant>,
    /// Whether the log has a line about unconfirmed turns or dropped writes in this outage.
    is_unconfirmed_logged: bool,
    is_drop_logged: bool,
    is_closed: bool,
}

impl State {
    fn is_due(&self) -> bool {
        let is_old = || self.since.is_some_and(|since| since.elapsed() >= COMMIT_INTERVAL);
        !self.waiters.is_empty()
            || self.queued_bytes >= MAX_BATCH_DELAY_BYTES
            || (!self.writes.is_empty() && (self.is_closed || is_old()))
    }
}

impl Queue {
    pub(crate) fn new(place: String, max_bytes: u64, grace: Duration, metrics: Metrics) -> Self {
        let (state, wake, hasher) = (Mutex::default(), Notify::new(), RandomState::new());
        let max_bytes = max_bytes.min(MAX_QUEUED_BYTES);
        Self { state, wake, place, max_bytes, grace, hasher, metrics }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a write. Where there is no room, the write is dropped, counted and logged.
    pub(crate) fn push(&self, write: Write) {
        let bytes = write.bytes();
        let mut state = self.lock();
        let total = state.queued_bytes + state.in_flight_bytes + bytes;
        if total as u64 > self.max_bytes || state.is_closed {
            let is_first = !std::mem::replace(&mut state.is_drop_logged, true);
            drop(state);
            self.metrics.lost.inc();
            if is_first {
                tracing::error!(store = self.place, "write queue full, dropping writes");
            }
            return;
        }
        let was_empty = state.writes.is_empty();
        if let Change::PutCall(_, index) = &write.change {
            for session in &index.sessions {
                let hash = self.session_hash(write.key.owner, session);
                state.queued_keys.insert(hash);
            }
        }
        let hash = self.key_hash(&write.key);
        state.queued_keys.insert(hash);
        state.writes.push(write);
        state.queued_bytes += bytes;
        let is_large = state.queued_bytes >= MAX_BATCH_DELAY_BYTES;
        if was_empty {
            state.since = Some(Instant::now());
        }
        drop(state);
        self.metrics.queued_bytes.set(total as i64);
        if was_empty || is_large {
            self.wake.notify_one();
        }
    }

    pub(crate) fn key_hash(&self, key: &Key) -> u64 {
        self.hasher.hash_one(key)
    }

    /// Hash of the calls of a session.
    pub(crate) fn session_hash(&self, owner: Owner, session: &str) -> u64 {
        #[derive(Hash)]
        struct Session<'s>(Owner, &'s str);
        self.hasher.hash_one(Session(owner, session))
    }

    /// Waits until the writes before it with one of these key hashes are committed. A read after that
    /// sees them.
    pub(crate) async fn wait_for(&self, hashes: impl IntoIterator<Item = u64>) {
        let is_pending = {
            let state = self.lock();
            let is_idle = state.writes.is_empty() && state.in_flight == 0;
            let has =
                |hash| state.queued_keys.contains(&hash) || state.in_flight_keys.contains(&hash);
            !is_idle && hashes.into_iter().any(has)
        };
        if is_pending {
            self.flush().await;
        }
    }

    /// Waits until the writes before it are committed, up to [`CONFIRM_TIMEOUT`]. Returns whether they
    /// are.
    pub(crate) async fn flush(&self) -> bool {
        let (acknowledge, acknowledged) = oneshot::channel();
        let deadline = {
            let mut state = self.lock();
            if state.writes.is_empty() && state.in_flight == 0 {
                return true;
            }
            let (now, failing) = (Instant::now(), state.failing_since);
            let deadline = failing.map_or(now + CONFIRM_TIMEOUT, |since| since + self.grace);
            if deadline > now {
                state.waiters.push(acknowledge);
            }
            deadline
        };
        self.wake.notify_one();
        if matches!(tokio::time::timeout_at(deadline, acknowledged).await, Ok(Ok(()))) {
            return true;
        }
        self.metrics.unconfirmed.inc();
        let is_logged = std::mem::replace(&mut self.lock().is_unconfirmed_logged, true);
        // Where a server is away, the loss of the connection is logged.
        if !self.grace.is_zero() && !is_logged {
            tracing::error!(
                store = self.place,
                "store unwritable for {} s: continuing without durability; recent state is lost if this process exits",
                CONFIRM_TIMEOUT.as_secs()
            );
        }
        false
    }

    /// Whether commits have failed for longer than flushes wait, so that recent writes cannot be read.
    pub(crate) fn is_degraded(&self) -> bool {
        let state = self.lock();
        let is_over = |since: Instant| state.is_unconfirmed_logged || since.elapsed() >= self.grace;
        state.failing_since.is_some_and(is_over)
    }

    /// Number of writes that are not committed.
    pub(crate) fn pending(&self) -> usize {
        let state = self.lock();
        state.writes.len() + state.in_flight
    }

    /// Closes the queue: queued writes are committed, new ones are dropped.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.wake.notify_one();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }
}

/// The writer's side.
impl Queue {
    /// Waits for the next batch; `None` once the queue is closed and empty.
    pub(crate) async fn next_batch(&self) -> Option<Batch> {
        self.is_due().await.then(|| self.take())
    }

    /// Waits until there is something to commit; `false` once the queue is closed and empty.
    pub(crate) async fn is_due(&self) -> bool {
        loop {
            let deadline = {
                let state = self.lock();
                if state.is_due() || state.is_closed {
                    return state.is_due();
                }
                state.since.map(|since| since + COMMIT_INTERVAL)
            };
            match deadline {
                Some(deadline) => {
                    drop(tokio::time::timeout_at(deadline, self.wake.notified()).await);
                }
                None => self.wake.notified().await,
            }
        }
    }

    /// Takes all that is queued.
    pub(crate) fn take(&self) -> Batch {
        let mut state = self.lock();
        let writes = std::mem::take(&mut state.writes);
        state.in_flight = writes.len();
        state.in_flight_bytes = std::mem::take(&mut state.queued_bytes);
        state.in_flight_keys = std::mem::take(&mut state.queued_keys);
        state.since = None;
        Batch { writes, waiters: std::mem::take(&mut state.waiters), taken: Instant::now() }
    }

    /// A batch is committed, but for `rejected` writes that the store can never take.
    pub(crate) fn committed(&self, batch: Batch, rejected: u64) {
        let mut state = self.lock();
        state.in_flight = 0;
        state.in_flight_bytes = 0;
        state.in_flight_keys.clear();
        state.is_drop_logged = false;
        state.is_unconfirmed_logged = false;
        let queued_bytes = state.queued_bytes;
        let recovered = state.failing_since.take();
        drop(state);
        self.metrics.queued_bytes.set(queued_bytes as i64);
        if recovered.is_some() && !self.grace.is_zero() {
            tracing::info!(store = self.place, "store writable again");
        }
        if rejected > 0 {
            self.metrics.lost.inc_by(rejected);
            tracing::error!(store = self.place, rejected, "store rejected writes, dropping them");
        }
        for waiter in batch.waiters {
            // The turn may have ended meanwhile.
            let _ = waiter.send(());
        }
    }

    /// A commit failed; the writer tries again.
    pub(crate) fn failed(&self, batch: &mut Batch, error: &dyn Display) {
        let mut state = self.lock();
        let is_first = state.failing_since.is_none();
        state.failing_since.get_or_insert(batch.taken);
        if self.grace.is_zero() {
            batch.waiters.clear();
            state.waiters.clear();
        }
        drop(state);
        if is_first && !self.grace.is_zero() {
            tracing::warn!(store = self.place, %error, "store not writable, retrying");
        }
    }

    /// Commits stopped working while no batch was in flight.
    pub(crate) fn set_failing(&self, is_failing: bool) {
        let mut state = self.lock();
        if is_failing {
            state.failing_since.get_or_insert_with(Instant::now);
            state.waiters.clear();
        } else {
            state.failing_since = None;
        }
    }

    /// The writer ends with writes that it could not commit.
    pub(crate) fn abandon(&self) {
        let lost = self.pending();
        if lost > 0 {
            self.metrics.lost.inc_by(lost as u64);
            tracing::error!(store = self.place, lost, "store closed with uncommitted writes, lost");
        }
        let mut state = self.lock();
        *state = State { is_closed: true, ..State::default() };
    }
}

/// Delay between attempts of a writer. Doubles with each attempt.
#[derive(Debug)]
pub(crate) struct Backoff {
    delay: Duration,
    max: Duration,
}

impl Backoff {
    const FIRST: Duration = Duration::from_millis(25);

    pub(crate) fn new(max: Duration) -> Self {
        Self { delay: Self::FIRST, max }
    }

    /// Returns the next delay.
    pub(crate) fn next(&mut self) -> Duration {
        let delay = self.delay;
        self.delay = (2 * delay).min(self.max);
        delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    fn queue(max_bytes: u64, grace: Duration) -> (Queue, Metrics) {
        let metrics = Metrics::default();
        (Queue::new("test".to_owned(), max_bytes, grace, metrics.clone()), metrics)
    }

    fn put(id: &str, length: usize) -> Write {
        let key = Key::new(Owner::of("o"), Kind::Answer, id);
        Write { key, change: Change::Put(Bytes::from(vec![b'x'; length])), expires: i64::MAX }
    }

    #[tokio::test(start_paused = true)]
    async fn writes_without_a_flush_are_batched_for_the_commit_interval() {
        let (queue, _) = queue(1 << 20, CONFIRM_TIMEOUT);
        queue.push(put("a", 1));
        queue.push(put("b", 1));
        let began = Instant::now();
        let batch = queue.next_batch().await.unwrap();
        assert_eq!((batch.writes.len(), began.elapsed()), (2, COMMIT_INTERVAL));
        queue.committed(batch, 0);
        assert_eq!(queue.pending(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_flush_is_acknowledged_when_its_batch_is_committed() {
        let (queue, metrics) = queue(1 << 20, CONFIRM_TIMEOUT);
        assert!(queue.flush().await, "nothing to wait for");
        queue.push(put("a", 1));
        let began = Instant::now();
        let commit = async {
            let batch = queue.next_batch().await.unwrap();
            queue.committed(batch, 0);
        };
        let (is_confirmed, ()) = tokio::join!(queue.flush(), commit);
        assert!(is_confirmed && began.elapsed() < COMMIT_INTERVAL);
        assert_eq!(metrics.unconfirmed.get(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_flush_waits_five_seconds_once_and_not_again_in_the_same_outage() {
        let (queue, metrics) = queue(1 << 20, CONFIRM_TIMEOUT);
        queue.push(put("a", 1));
        let fail = async {
            let mut batch = queue.next_batch().await.unwrap();
            queue.failed(&mut batch, &"locked");
            batch
        };
        let began = Instant::now();
        let (is_confirmed, batch) = tokio::join!(queue.flush(), fail);
        assert!(!is_confirmed && began.elapsed() >= CONFIRM_TIMEOUT);
        assert!(queue.is_degraded());
        let began = Instant::now();
        assert!(!queue.flush().await && began.elapsed().is_zero());
        assert_eq!(metrics.unconfirmed.get(), 2);
        queue.committed(batch, 0);
        assert!(!queue.is_degraded() && queue.flush().await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_waits_for_writes_to_its_own_key_only() {
        let (queue, _) = queue(1 << 20, CONFIRM_TIMEOUT);
        queue.push(put("a", 1));
        let hash = |id| queue.key_hash(&Key::new(Owner::of("o"), Kind::Answer, id));
        let began = Instant::now();
        queue.wait_for([hash("b")]).await;
        assert!(began.elapsed().is_zero());
        // No commit happens: the wait for `a` ends with its timeout, also while the batch is in flight.
        queue.wait_for([hash("b"), hash("a")]).await;
        assert_eq!(began.elapsed(), CONFIRM_TIMEOUT);
        let batch = queue.next_batch().await.unwrap();
        queue.wait_for([hash("a")]).await;
        assert_eq!(began.elapsed(), 2 * CONFIRM_TIMEOUT);
        queue.committed(batch, 0);
        queue.wait_for([hash("a")]).await;
        assert_eq!(began.elapsed(), 2 * CONFIRM_TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn writes_beyond_the_limit_are_dropped_and_counted() {
        let (queue, metrics) = queue(10_000, CONFIRM_TIMEOUT);
        for id in ["a", "b", "c"] {
            queue.push(put(id, 4_000));
        }
        assert_eq!((queue.pending(), metrics.lost.get()), (2, 1));
        // Bytes in flight count too.
        let batch = queue.next_batch().await.unwrap();
        queue.push(put("d", 4_000));
        assert_eq!((queue.pending(), metrics.lost.get()), (2, 2));
        queue.committed(batch, 0);
        queue.push(put("d", 4_000));
        assert_eq!((queue.pending(), metrics.lost.get()), (1, 2));
    }
}
