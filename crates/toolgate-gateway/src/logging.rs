//! The log: for people, or for machines. An entry is a line, whatever a client put into it.
//!
//! ```text
//!   any thread ── an entry ──► queue, at most MAX_QUEUED_BYTES ──► writer thread ──► standard error
//!                                 └─ full: dropped and counted
//! ```
//!
//! No turn waits for the reader of standard error.

use std::io::{self, IsTerminal as _, Write};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use prometheus_client::metrics::counter::Counter;
use tracing_subscriber::EnvFilter;

use crate::config::{Config, LogFormat};

/// Maximum size of entries that wait for the reader of standard error: 1 MiB.
const MAX_QUEUED_BYTES: usize = 1 << 20;
/// Maximum delay of the exit for entries that are not written yet.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Entries that were dropped. The log belongs to the process, and so does its counter.
static DROPPED: LazyLock<Counter> = LazyLock::new(Counter::default);

/// Counter of log entries that were dropped.
pub(crate) fn dropped() -> Counter {
    DROPPED.clone()
}

/// Writes the rest of the log when it is dropped, within a second.
#[derive(Debug)]
#[must_use = "what is queued when the process ends is lost without it"]
pub struct LogGuard(Arc<Shared>);

impl Drop for LogGuard {
    fn drop(&mut self) {
        self.0.flush(FLUSH_TIMEOUT);
    }
}

/// Sends the log to standard error. The second call in a process changes nothing.
pub fn start_log(config: &Config) -> io::Result<LogGuard> {
    let filter = EnvFilter::try_new(&config.log).unwrap_or_else(|_| EnvFilter::new("info"));
    let colours = io::stderr().is_terminal();
    let shared = Arc::new(Shared::default());
    let queue = Arc::clone(&shared);
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(move || Lines { queue: Arc::clone(&queue), colours })
        .with_ansi(colours);
    let started = match config.log_format {
        LogFormat::Json => log.json().flatten_event(true).try_init(),
        LogFormat::Text => log.compact().with_target(false).try_init(),
    };
    if started.is_ok() {
        let writer = Arc::clone(&shared);
        let write = move || writer.write_all(&mut io::stderr());
        std::thread::Builder::new().name("log".to_owned()).spawn(write)?;
        // The usual hook writes to standard error itself, and would wait for its reader.
        std::panic::set_hook(Box::new(|panic| tracing::error!("{panic}")));
    }
    Ok(LogGuard(shared))
}

/// Entries between the threads that make them and the one that writes them.
#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// There is something to write.
    filled: Condvar,
    /// All is written.
    drained: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    entries: Vec<u8>,
    /// Entries dropped since the last that was queued.
    dropped: u64,
    is_writing: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, entry: &[u8]) {
        let mut queue = self.lock();
        if queue.entries.len() + entry.len() > MAX_QUEUED_BYTES {
            queue.dropped += 1;
            DROPPED.inc();
            return;
        }
        queue.entries.extend_from_slice(entry);
        drop(queue);
        self.filled.notify_one();
    }

    /// The writer thread.
    fn write_all(&self, out: &mut impl Write) {
        loop {
            let mut queue = self.lock();
            while queue.entries.is_empty() {
                queue.is_writing = false;
                self.drained.notify_all();
                queue = self.filled.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
            let entries = std::mem::take(&mut queue.entries);
            let dropped = std::mem::take(&mut queue.dropped);
            queue.is_writing = true;
            drop(queue);
            // A log that cannot be written is no reason to stop.
            drop(out.write_all(&entries));
            if dropped > 0 {
                tracing::warn!(dropped, "log entries dropped: standard error was not read in time");
            }
        }
    }

    /// Waits until all is written, for up to `timeout`.
    fn flush(&self, timeout: Duration) {
        let until = Instant::now() + timeout;
        let mut queue = self.lock();
        while !queue.entries.is_empty() || queue.is_writing {
            let Some(left) = until.checked_duration_since(Instant::now()) else { return };
            let waited = self.drained.wait_timeout(queue, left);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// The queue, which gets an entry at a time. A model, a tool or a path may have any name: a line
/// break in it is shown, not made, so that a client cannot forge entries; and so is whatever else
/// would tell a terminal what to do.
struct Lines {
    queue: Arc<Shared>,
    /// The entries' own colours.
    colours: bool,
}

impl Write for Lines {
    fn write(&mut self, entry: &[u8]) -> io::Result<usize> {
        let text = entry.strip_suffix(b"\n").unwrap_or(entry);
        if !text.iter().any(u8::is_ascii_control) {
            self.queue.push(entry);
            return Ok(entry.len());
        }
        let mut line = Vec::with_capacity(entry.len() + 16);
        for (at, byte) in text.iter().enumerate() {
            if !byte.is_ascii_control() || (self.colours && is_colour(&text[at..])) {
                line.push(*byte);
            } else {
                line.extend(byte.escape_ascii());
            }
        }
        line.extend_from_slice(&entry[text.len()..]);
        self.queue.push(&line);
        Ok(entry.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether a text begins with a change of colour: `\x1b[3m`.
fn is_colour(text: &[u8]) -> bool {
    let rest = text.strip_prefix(b"\x1b[").unwrap_or_default();
    rest.iter().find(|byte| !matches!(byte, b'0'..=b'9' | b';')) == Some(&b'm')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_beyond_the_limit_are_dropped_and_counted() {
        let shared = Shared::default();
        let entry = vec![b'x'; MAX_QUEUED_BYTES / 4];
        let before = DROPPED.get();
        for _ in 0..7 {
            shared.push(&entry);
        }
        let queue = shared.lock();
        assert_eq!((queue.entries.len(), queue.dropped), (MAX_QUEUED_BYTES, 3));
        drop(queue);
        assert_eq!(DROPPED.get() - before, 3);
        // No writer runs: the exit does not wait for ever.
        shared.flush(Duration::from_millis(1));
    }
}
