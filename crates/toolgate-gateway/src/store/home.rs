//! The thread that owns a SQLite file: it brings home what is pending, and reads what is long.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::change::At;
use super::pending::{Ask, Pending};
use super::sqlite::MANY;
use super::sqlite_file::File;
use super::tail::Tail;
use crate::metrics::StoreMetrics;

/// What the thread shares with everybody else. Who needs several takes the first of them first.
#[derive(Debug)]
pub(super) struct Shared {
    /// Whoever finds it free reads a little by himself: that costs less than to wake the thread.
    pub(super) file: Mutex<File>,
    pub(super) tail: tokio::sync::Mutex<Option<Tail>>,
    pub(super) pending: Mutex<Pending>,
    /// There is something for the thread.
    pub(super) news: Condvar,
    /// So many bytes do not wait.
    pub(super) many: usize,
}

/// How long changes wait for others to be brought home with them.
const LINGER: Duration = Duration::from_secs(1);
/// How long somebody waits for others who wait for the same.
const GATHER: Duration = Duration::from_micros(200);

impl Shared {
    pub(super) fn file(&self) -> MutexGuard<'_, File> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what is pending to the tail; says whether all that was written before is safe now.
    pub(super) fn save(&self, tail: &mut Tail) -> bool {
        let pending = self.lock();
        let (unsaved, is_unsafe) = (pending.unsaved(), pending.is_unsafe);
        let length = unsaved.len();
        if length == 0 {
            return !is_unsafe;
        }
        if !tail.take(unsaved) {
            return false;
        }
        // Others can go on writing meanwhile; nobody takes anything away without the tail.
        drop(pending);
        if let Err(error) = tail.write() {
            tracing::warn!(%error, "the store's tail cannot be written; turns wait");
            return false;
        }
        self.lock().saved(length);
        !is_unsafe
    }
}

/// Nobody waits for a thread that has ended, whatever ended it.
struct Gone(Arc<Shared>);

impl Drop for Gone {
    fn drop(&mut self) {
        let mut pending = self.0.lock();
        pending.close();
        drop(pending.asked());
    }
}

/// The thread's side.
pub(super) struct Home {
    /// What the next changes are written to.
    spare: Vec<u8>,
    shared: Arc<Shared>,
    metrics: StoreMetrics,
}

impl Home {
    pub(super) fn new(shared: Arc<Shared>, metrics: StoreMetrics) -> Self {
        Self { spare: Vec::new(), shared, metrics }
    }

    /// Brings home until the store is closed.
    pub(super) fn run(mut self) {
        let _gone = Gone(Arc::clone(&self.shared));
        loop {
            let (asks, is_closed) = self.wait();
            if asks.iter().all(|ask| matches!(ask, Ask::Flush(_))) && !asks.is_empty() {
                std::thread::sleep(GATHER);
            }
            if asks.is_empty() || asks.iter().any(Ask::needs_all) {
                self.bring_home();
            }
            self.answer(asks);
            if is_closed {
                self.close();
                return;
            }
        }
    }

    /// Waits until there is something to do.
    fn wait(&self) -> (Vec<Ask>, bool) {
        let mut pending = self.shared.lock();
        loop {
            let left = match pending.since {
                Some(since) => LINGER.saturating_sub(since.elapsed()),
                None => Duration::MAX,
            };
            let is_time = left.is_zero() || pending.is_much(self.shared.many);
            let asks = pending.asked();
            if is_time || asks.is_some() || pending.is_closed() {
                return (asks.unwrap_or_default(), pending.is_closed());
            }
            pending = if left == Duration::MAX {
                self.shared.news.wait(pending).unwrap_or_else(PoisonError::into_inner)
            } else {
                let waited = self.shared.news.wait_timeout(pending, left);
                waited.unwrap_or_else(PoisonError::into_inner).0
            };
        }
    }

    /// Writes all changes to the file.
    fn bring_home(&mut self) {
        let shared = Arc::clone(&self.shared);
        // What is pending no longer can be read as soon as the file can.
        let mut file = shared.file();
        let (mut log, last) = {
            let mut tail = self.shared.tail.blocking_lock();
            if let Some(tail) = &mut *tail
                && tail.is_alone()
            {
                // Whoever settles meanwhile need not wait.
                self.shared.save(tail);
            }
            let log = self.shared.lock().take(std::mem::take(&mut self.spare));
            (log, tail.as_mut().map(|tail| (tail.number(), tail.turn())))
        };
        if log.is_empty() {
            self.spare = log;
            return;
        }
        let written = self.write(&mut file, &log, last);
        self.noted(written);
        self.shared.lock().is_unsafe = false;
        log.clear();
        log.shrink_to(2 * MANY);
        self.spare = log;
    }

    /// Writes a log, in one transaction. `last`: which batch of which tail is the last of it.
    fn write(
        &self,
        file: &mut File,
        log: &[u8],
        last: Option<(usize, u64)>,
    ) -> rusqlite::Result<()> {
        // Somebody else may have the file for a long time.
        file.begin().or_else(|_| file.begin())?;
        let written = file.write(log, |change| {
            // The others are kept all the same.
            self.noted(change);
            Ok(())
        });
        let set = last.map_or(Ok(()), |(tail, last)| file.set_last_of(tail, last));
        // Whatever went wrong, the file is not held any longer.
        let committed = file.commit();
        written.and(set).and(committed)
    }

    fn answer(&self, asks: Vec<Ask>) {
        let mut file = self.shared.file();
        // Whoever asked may be gone: what they do not hear does not matter.
        for ask in asks {
            match ask {
                Ask::Get(owner, kind, ids, reply) => {
                    let values = file.get_all(owner, kind, &ids);
                    let _ = reply.send(self.noted(values).unwrap_or_default());
                }
                Ask::List(owner, kind, id, reply) => {
                    let at = At { owner, kind, id: &id };
                    let mut list = self.noted(file.list(at)).unwrap_or_default();
                    // Nothing goes from there to here as long as the file is in our hands.
                    self.shared.lock().complete(at, &mut list);
                    let _ = reply.send(list);
                }
                Ask::Map(owner, map, most, reply) => {
                    let there = file.in_map(owner, &map, most);
                    let _ = reply.send(self.noted(there).unwrap_or_default());
                }
                Ask::Delete(owner, kind, id, reply) => {
                    let deleted = file.delete(At { owner, kind, id: &id });
                    let deleted = deleted.and_then(|was| file.commit().map(|()| was));
                    let _ = reply.send(self.noted(deleted).unwrap_or(false));
                }
                Ask::Flush(reply) => {
                    let _ = reply.send(());
                }
            }
        }
    }

    /// Everything is in the file: the tail is not needed any more.
    fn close(&mut self) {
        self.bring_home();
        if let Some(mut tail) = self.shared.tail.blocking_lock().take()
            && let Err(error) = tail.clear()
        {
            tracing::warn!(%error, "the store's tail cannot be emptied");
        }
    }

    fn noted<T>(&self, result: rusqlite::Result<T>) -> Option<T> {
        noted(&self.metrics, result)
    }
}

/// Says what went wrong.
pub(super) fn noted<T>(metrics: &StoreMetrics, result: rusqlite::Result<T>) -> Option<T> {
    result
        .inspect_err(|error| {
            metrics.lost.inc();
            tracing::error!(%error, "the store failed; something was not kept");
        })
        .ok()
}
