//! Handle of the SQLite store.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use bytes::Bytes;

use super::database::Database;
use super::read::{Reader, Readers};
use super::writer::{CloseOnDrop, Writer};
use crate::cache::Cache;
use crate::key::{Key, Kind, Owner};
use crate::queue::{CONFIRM_TIMEOUT, Change, MIN_QUEUED_BYTES, Queue, Write};
use crate::store::{Content, FoundCall, Item, OpenError, Options};

/// A SQLite file, its writer thread and its readers.
#[derive(Debug)]
pub(crate) struct Sqlite {
    queue: Arc<Queue>,
    readers: Option<Readers>,
    writer: Option<JoinHandle<()>>,
    /// Signatures that were written or read lately.
    cache: Cache,
    /// Whether the last read failed.
    is_unreadable: AtomicBool,
}

impl Sqlite {
    /// Opens or creates the file. Returns the store's secret, too.
    pub(crate) fn open(path: &Path, options: Options) -> Result<(Self, [u8; 32]), OpenError> {
        let Options { max_bytes, new_secret, metrics, .. } = options;
        let (database, secret) = Database::open(path, max_bytes, new_secret)?;
        let place = path.display().to_string();
        let failed = |error: std::io::Error| OpenError {
            place: path.display().to_string(),
            reason: error.to_string(),
        };
        let max_queued = max_bytes.max(MIN_QUEUED_BYTES);
        let queue = Arc::new(Queue::new(place, max_queued, CONFIRM_TIMEOUT, metrics.clone()));
        let writer = Writer::new(Arc::clone(&queue), database, path.to_owned(), metrics);
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(failed)?;
        let close = CloseOnDrop(Arc::clone(&queue));
        let thread = std::thread::Builder::new()
            .name("toolgate-store".to_owned())
            .spawn(move || {
                let _close = close;
                runtime.block_on(writer.run());
            })
            .map_err(failed)?;
        let readers = Some(Readers::new(path, &secret));
        let (cache, is_unreadable) = (Cache::default(), AtomicBool::new(false));
        Ok((Self { queue, readers, writer: Some(thread), cache, is_unreadable }, secret))
    }

    pub(crate) fn write(&self, write: Write) {
        if let Change::PutCall(value, _) | Change::Put(value) = &write.change
            && write.key.kind.is_immutable()
        {
            self.cache.put(write.key.clone(), value.clone(), write.expires);
        }
        self.queue.push(write);
    }

    pub(crate) async fn flush(&self) -> bool {
        self.queue.flush().await
    }

    /// Whether recent writes cannot be read, or nothing can.
    pub(crate) fn is_degraded(&self) -> bool {
        self.is_unreadable.load(Ordering::Relaxed) || self.queue.is_degraded()
    }

    pub(crate) async fn get(&self, owner: Owner, kind: Kind, ids: &[String]) -> Vec<Option<Bytes>> {
        let keys: Vec<Key> = ids.iter().map(|id| Key::new(owner, kind, id)).collect();
        let cached = |key| kind.is_immutable().then(|| self.cache.get(key)).flatten();
        let mut found: Vec<Option<Bytes>> = keys.iter().map(cached).collect();
        let missing: Vec<usize> =
            found.iter().enumerate().filter(|(_, it)| it.is_none()).map(|(at, _)| at).collect();
        if missing.is_empty() {
            return found;
        }
        self.queue.wait_for(missing.iter().map(|at| self.queue.key_hash(&keys[*at]))).await;
        let wanted: Vec<String> = missing.iter().map(|at| ids[*at].clone()).collect();
        let read = self.read(move |reader| reader.get(owner, kind, &wanted)).await;
        for (at, read) in missing.into_iter().zip(read) {
            let Some((value, expires)) = read else { continue };
            if kind.is_immutable() {
                self.cache.put(keys[at].clone(), value.clone(), expires);
            }
            found[at] = Some(value);
        }
        found
    }

    pub(crate) async fn list(&self, owner: Owner, kind: Kind, id: &str) -> Vec<Item> {
        self.queue.wait_for([self.queue.key_hash(&Key::new(owner, kind, id))]).await;
        let id = id.to_owned();
        self.read(move |reader| reader.list(owner, kind, &id)).await
    }

    pub(crate) async fn has_calls(&self, owner: Owner, sessions: &[String]) -> bool {
        self.wait_for_sessions(owner, sessions).await;
        let sessions = sessions.to_vec();
        self.read(move |reader| reader.has_calls(owner, &sessions)).await
    }

    pub(crate) async fn find_calls(
        &self,
        owner: Owner,
        sessions: &[String],
        contents: &[Content],
    ) -> Vec<FoundCall> {
        self.wait_for_sessions(owner, sessions).await;
        let (sessions, contents) = (sessions.to_vec(), contents.to_vec());
        self.read(move |reader| reader.find_calls(owner, &sessions, &contents)).await
    }

    async fn wait_for_sessions(&self, owner: Owner, sessions: &[String]) {
        let hashes = sessions.iter().map(|session| self.queue.session_hash(owner, session));
        self.queue.wait_for(hashes).await;
    }

    /// Reads; what cannot be read is nothing, and the store is degraded.
    async fn read<T: Default + Send + 'static>(
        &self,
        read: impl FnOnce(&Reader) -> rusqlite::Result<T> + Send + 'static,
    ) -> T {
        let Some(readers) = &self.readers else { return T::default() };
        let found = readers.read(read).await;
        let was_unreadable = self.is_unreadable.swap(found.is_err(), Ordering::Relaxed);
        found.unwrap_or_else(|error| {
            if !was_unreadable {
                tracing::error!(error, "state file not readable");
            }
            T::default()
        })
    }
}

impl Drop for Sqlite {
    /// Commits the queued writes.
    fn drop(&mut self) {
        // The last connection to be closed moves the write-ahead log into the file: the writer's.
        self.readers = None;
        self.queue.close();
        if let Some(Err(_)) = self.writer.take().map(JoinHandle::join) {
            tracing::error!("the writer thread of the store has panicked");
        }
    }
}
