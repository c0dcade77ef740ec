//! The thread that owns a SQLite file: it brings home what is pending, and reads what is long.
//!
//! A file that cannot be written for a while, because somebody else has it or the disk is full, loses
//! nothing: what was taken is pending again, can be read, and stays in the tail until it is at home.
//! It is tried again, with waits between. Turns whose changes the tail cannot take wait for that too,
//! but not for long.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Wanted;
use super::change::{At, changes};
use super::log::Log;
use super::pending::{Ask, Later, Pending, Read};
use super::sqlite::MANY;
use super::sqlite_file::{File, Refused, is_its_own_fault};
use super::tail::{self, Tail};
use crate::metrics::StoreMetrics;

/// What the thread shares with everybody else. Who needs several takes the first of them first.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) tail: tokio::sync::Mutex<Option<Tail>>,
    pub(super) pending: Mutex<Pending>,
    /// There is something for the thread.
    pub(super) news: Condvar,
    /// So many bytes do not wait.
    pub(super) many: usize,
    /// Tells others that we are here, where we have no tail.
    pub(super) _guest: Option<std::fs::File>,
}

/// How long changes wait for others to be brought home with them.
const LINGER: Duration = Duration::from_secs(1);
/// How long somebody waits for others who wait for the same.
const GATHER: Duration = Duration::from_micros(200);
/// How long somebody waits for a file that cannot be written.
const PATIENCE: Duration = Duration::from_secs(5);
/// The first wait before it is tried again; it doubles.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(2);
const LONGEST_WAIT_FOR_OTHERS: Duration = Duration::from_millis(200);

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what is pending to the tail; says whether all that was written before is safe now.
    pub(super) fn save(&self, tail: &mut Tail) -> bool {
        let pending = self.lock();
        // What the thread has comes first, in the tail too.
        if pending.is_unsafe() {
            return false;
        }
        let unsaved = pending.unsaved();
        let length = unsaved.len();
        if length == 0 {
            return true;
        }
        if !tail.take(unsaved) {
            return false;
        }
        // Others can go on writing meanwhile; nobody takes anything away without the tail.
        drop(pending);
        if tail.write().is_err() {
            return false;
        }
        self.lock().saved(length);
        true
    }

    /// The same for what cannot be brought home, whoever else uses the file.
    fn save_anyhow(&self) -> bool {
        self.tail.blocking_lock().as_mut().is_some_and(|tail| self.save(tail))
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
    file: File,
    /// What the next changes are written to.
    spare: Log,
    shared: Arc<Shared>,
    metrics: StoreMetrics,
    failing: Option<Failing>,
    /// What waits until all is at home, and until when.
    waiting: Vec<(Instant, Later)>,
    /// Whether the part of the tail that is not written to holds what is not at home.
    is_behind: bool,
    /// Where the file is, what it is, and whether it was told that it is there no more.
    path: PathBuf,
    identity: Option<(u64, u64)>,
    is_told_gone: bool,
}

/// That the file cannot be written.
struct Failing {
    since: Instant,
    /// When it is tried again, and how long that was waited for.
    next: Instant,
    wait: Duration,
    is_told: bool,
    /// Whether it was told that turns do not wait.
    is_told_unsafe: bool,
}

impl Home {
    pub(super) fn new(shared: Arc<Shared>, file: File, path: &Path, metrics: StoreMetrics) -> Self {
        Self {
            file,
            spare: Log::default(),
            shared,
            metrics,
            failing: None,
            waiting: Vec::new(),
            is_behind: false,
            path: path.to_owned(),
            identity: tail::identity(path),
            is_told_gone: false,
        }
    }

    /// Brings home until the store is closed.
    pub(super) fn run(mut self) {
        let _gone = Gone(Arc::clone(&self.shared));
        while self.step() {}
    }

    /// Waits for something to do, and does it; says whether there may be more.
    fn step(&mut self) -> bool {
        let (asks, is_closed) = self.wait();
        let (mut reads, mut later) = (Vec::new(), Vec::new());
        for ask in asks {
            match ask {
                Ask::Read(read) => reads.push(read),
                Ask::Later(what) => later.push(what),
            }
        }
        let is_gathering = reads.is_empty() && !later.is_empty() && self.failing.is_none();
        if is_gathering && later.iter().all(|what| matches!(what, Later::Flush(_))) {
            std::thread::sleep(GATHER);
        }
        let is_time = match &self.failing {
            Some(failing) => failing.next <= Instant::now(),
            None => reads.is_empty() || !later.is_empty(),
        };
        self.answer(reads);
        for what in later {
            self.waiting.push((self.until(&what), what));
        }
        if is_time || is_closed {
            self.bring_all_home();
        }
        self.give_up(Instant::now());
        if is_closed {
            self.close();
        }
        !is_closed
    }

    /// Waits until there is something to do.
    fn wait(&self) -> (Vec<Ask>, bool) {
        let mut pending = self.shared.lock();
        loop {
            let due = match &self.failing {
                Some(failing) => {
                    let ends = self.waiting.iter().map(|(until, _)| *until);
                    Some(ends.fold(failing.next, Instant::min))
                }
                None => pending.since.map(|since| since + LINGER),
            };
            let left = due.map(|due| due.saturating_duration_since(Instant::now()));
            let is_much = self.failing.is_none() && pending.is_much(self.shared.many);
            let asks = pending.asked();
            let is_time = is_much || left.is_some_and(|left| left.is_zero());
            if is_time || asks.is_some() || pending.is_closed() {
                return (asks.unwrap_or_default(), pending.is_closed());
            }
            pending = match left {
                None => self.shared.news.wait(pending).unwrap_or_else(PoisonError::into_inner),
                Some(left) => {
                    let waited = self.shared.news.wait_timeout(pending, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Until when somebody waits. Nobody settles for long where others have done so in vain.
    fn until(&self, what: &Later) -> Instant {
        let now = Instant::now();
        let since = match what {
            Later::Flush(_) => self.failing.as_ref().map_or(now, |failing| failing.since),
            Later::Delete(..) => now,
        };
        since + PATIENCE
    }

    /// Brings everything home, and does what waits for that; or takes down that it failed.
    fn bring_all_home(&mut self) {
        match self.bring_home().and_then(|()| self.finish_waiting()) {
            Ok(()) => {
                if self.failing.take().is_some_and(|failing| failing.is_told) {
                    tracing::info!("the store can be written again");
                }
            }
            Err(error) => self.failed(&error),
        }
    }

    fn failed(&mut self, error: &rusqlite::Error) {
        let now = Instant::now();
        let first = || Failing {
            since: now,
            next: now,
            wait: FIRST_WAIT / 2,
            is_told: false,
            is_told_unsafe: false,
        };
        let is_busy = error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy);
        let longest = if is_busy { LONGEST_WAIT_FOR_OTHERS } else { LONGEST_WAIT };
        let failing = self.failing.get_or_insert_with(first);
        failing.wait = (2 * failing.wait).min(longest);
        failing.next = now + failing.wait;
        // That others have the file for a moment is nothing to speak of.
        let is_news = !is_busy || now.duration_since(failing.since) >= LINGER;
        if is_news && !std::mem::replace(&mut failing.is_told, true) {
            tracing::error!(%error, "the store cannot be written; what it is to keep waits");
        }
    }

    /// Writes all changes to the file, in one transaction.
    fn bring_home(&mut self) -> rusqlite::Result<()> {
        if self.shared.lock().count() == 0 {
            return Ok(());
        }
        let shared = Arc::clone(&self.shared);
        if let Err(error) = self.file.begin_soon() {
            shared.save_anyhow();
            return Err(error);
        }
        let (log, last) = {
            let mut tail = shared.tail.blocking_lock();
            if let Some(tail) = &mut *tail
                && (tail.is_alone() || self.failing.is_some())
            {
                // Whoever settles meanwhile need not wait.
                shared.save(tail);
            }
            let log = shared.lock().take(std::mem::take(&mut self.spare));
            let last = tail.as_mut().map(|tail| {
                if !self.is_behind {
                    tail.turn();
                }
                (tail.number(), tail.last())
            });
            (log, last)
        };
        let mut refused = Refused::default();
        let written = write(&mut self.file, log.bytes(), last, &mut refused);
        self.is_behind = written.is_err();
        if written.is_err() {
            self.spare = shared.lock().put_back(log);
            self.spare.clear(2 * MANY);
            shared.save_anyhow();
            return written;
        }
        let mut log = shared.lock().arrived(log);
        if tail::identity(&self.path) != self.identity {
            self.tell_gone(log.count());
        }
        report(&self.metrics, &refused);
        log.clear(2 * MANY);
        self.spare = log;
        Ok(())
    }

    /// So many changes are in a file that nobody else will find.
    fn tell_gone(&mut self, count: usize) {
        self.metrics.lost.inc_by(count as u64);
        if !std::mem::replace(&mut self.is_told_gone, true) {
            tracing::error!(
                "{} was deleted or replaced; what it keeps is lost when this process ends",
                self.path.display()
            );
        }
    }

    /// Does what has waited until all is at home.
    fn finish_waiting(&mut self) -> rusqlite::Result<()> {
        while let Some((until, what)) = self.waiting.pop() {
            // Whoever asked may be gone: what they do not hear does not matter.
            match what {
                Later::Delete(owner, kind, id, reply) => {
                    let deleted = delete(&mut self.file, At { owner, kind, id: &id });
                    if let Err(error) = deleted {
                        self.waiting.push((until, Later::Delete(owner, kind, id, reply)));
                        return Err(error);
                    }
                    let _ = reply.send(deleted.unwrap_or(false));
                }
                Later::Flush(reply) => {
                    let _ = reply.send(());
                }
            }
        }
        Ok(())
    }

    /// Nobody waits any longer than until now for a file that cannot be written.
    fn give_up(&mut self, now: Instant) {
        if self.waiting.iter().all(|(until, _)| *until > now) {
            return;
        }
        let is_safe = self.shared.save_anyhow();
        for (until, what) in std::mem::take(&mut self.waiting) {
            if until > now {
                self.waiting.push((until, what));
                continue;
            }
            match what {
                Later::Delete(.., reply) => {
                    tracing::error!("the store cannot be written; something was not deleted");
                    let _ = reply.send(false);
                }
                Later::Flush(reply) => {
                    if !is_safe {
                        self.tell_unsafe();
                    }
                    let _ = reply.send(());
                }
            }
        }
    }

    /// Says once that turns go on without being kept.
    fn tell_unsafe(&mut self) {
        if let Some(failing) = &mut self.failing
            && !std::mem::replace(&mut failing.is_told_unsafe, true)
        {
            tracing::error!(
                "turns wait for the store no longer; what they leave is lost if this process ends"
            );
        }
    }

    /// Reads what somebody asks for.
    fn answer(&self, reads: Vec<Read>) {
        let file = &self.file;
        // Whoever asked may be gone: what they do not hear does not matter.
        for read in reads {
            match read {
                Read::Get(owner, kind, ids, reply) => {
                    let values = file.get_all(owner, kind, &ids);
                    let _ = reply.send(noted(values).unwrap_or_default());
                }
                Read::List(owner, kind, id, reply) => {
                    let at = At { owner, kind, id: &id };
                    let mut list = noted(file.list(at)).unwrap_or_default();
                    // Nothing goes from there to here but by this thread.
                    self.shared.lock().complete(at, &mut list);
                    let _ = reply.send(list);
                }
                Read::Parts(owner, maps, parts, reply) => {
                    let wanted = Wanted { owner, maps: &maps, parts: &|| &parts };
                    let there = file.in_parts(wanted);
                    let _ = reply.send(noted(there).unwrap_or_default());
                }
            }
        }
    }

    /// Ends. What is not in the file is left in the tail, for whoever opens the file next.
    fn close(&mut self) {
        let began = Instant::now();
        let mut is_safe = self.failing.is_none() || self.shared.save_anyhow();
        while !is_safe && began.elapsed() < PATIENCE {
            std::thread::sleep(FIRST_WAIT);
            self.bring_all_home();
            is_safe = self.failing.is_none() || self.shared.save_anyhow();
        }
        let tail = self.shared.tail.blocking_lock().take();
        if self.failing.is_some() {
            let pending = self.shared.lock();
            let (all, lost) = (pending.count(), changes(pending.unsaved()).count());
            drop(pending);
            self.metrics.lost.inc_by(lost as u64);
            if lost > 0 {
                tracing::error!(lost, "the store cannot be written; something was not kept");
            }
            if lost < all {
                tracing::warn!(
                    "what the store has not got is in its tail, for the next to open it"
                );
            }
        } else if let Some(mut tail) = tail
            && let Err(error) = tail.clear()
        {
            tracing::warn!(%error, "the store's tail cannot be emptied");
        }
    }
}

/// Writes a log, in one transaction that has begun. `last`: which batch of which tail is the last
/// of it.
fn write(
    file: &mut File,
    log: &[u8],
    last: Option<(usize, u64)>,
    refused: &mut Refused,
) -> rusqlite::Result<()> {
    let mut write = || {
        file.write(log, refused)?;
        if let Some((tail, last)) = last {
            file.set_last_of(tail, last)?;
        }
        file.commit()
    };
    let written = write();
    // Whatever went wrong, the file is not held any longer.
    if written.is_err() {
        file.undo();
    }
    written
}

/// Deletes something; an error is one that may pass.
fn delete(file: &mut File, at: At<'_>) -> rusqlite::Result<bool> {
    file.begin_soon()?;
    let deleted = file.delete(at).inspect_err(|_| file.undo());
    match deleted.and_then(|was| file.commit().map(|()| was)) {
        Err(error) if is_its_own_fault(&error) => {
            tracing::error!(%error, "the store cannot delete something");
            Ok(false)
        }
        deleted => deleted,
    }
}

/// Says what cannot be kept.
pub(super) fn report(metrics: &StoreMetrics, refused: &Refused) {
    if let Some(error) = &refused.first {
        metrics.lost.inc_by(refused.count);
        tracing::error!(%error, lost = refused.count, "the store cannot keep something");
    }
}

/// Says what went wrong where something was read.
pub(super) fn noted<T>(result: rusqlite::Result<T>) -> Option<T> {
    result.inspect_err(|error| tracing::error!(%error, "the store cannot be read")).ok()
}

#[cfg(test)]
mod tests;
