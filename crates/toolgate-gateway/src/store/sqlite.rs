//! A store in one SQLite file.
//!
//! ```text
//!   put, append ─► pending ──┬─► tail            before a turn ends
//!   get ◄──────────┘         └─► the file        a little later, many turns at once
//! ```
//!
//! One thread writes to the file, and reads what is long; whoever needs little reads by himself, which
//! costs less than to wake the thread. What the thread is about to write can be read all the while, so
//! that everything is pending or in the file, or both. The file is in WAL mode, and what is not in
//! it yet is in its [tail](super::tail), so that nothing is lost when the process is killed. Where
//! several processes share a file, a turn waits until the others can see what it has written.

use std::collections::HashSet;
use std::error::Error;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use ring::digest::{SHA256, digest};
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::change::{At, Change, What};
use super::home::{Home, Shared, report};
use super::pending::{Ask, Later, Read};
use super::recent::Recent;
use super::sqlite_file::{File, Refused, now, until};
use super::sqlite_read::{Kept, Noted, Reader, Readers};
use super::tail::{self, LOOK, Place, TAILS, Tail};
use super::{Kind, Listed, Opening, StoreError, Wanted, last_of};
use crate::auth::Owner;
use crate::metrics::StoreMetrics;

/// A SQLite file and the thread that owns it.
#[derive(Debug)]
pub(super) struct Sqlite {
    shared: Arc<Shared>,
    readers: Readers,
    thread: Option<JoinHandle<()>>,
    recent: Mutex<Recent>,
    metrics: StoreMetrics,
}

/// So many bytes do not wait, and so large a part of what the file may hold does not.
pub(super) const MANY: usize = 1 << 20;
const PART: u64 = 64;
/// So many short entries are read without the thread.
const FEW: usize = 8;
/// How long a file that others use is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

impl Sqlite {
    /// Opens or makes the file, and the key that is kept in it.
    pub(super) fn open(path: &Path, opening: Opening) -> Result<(Self, [u8; 32]), StoreError> {
        let (mut sqlite, home, key) = Self::prepare(path, opening)?;
        let thread = std::thread::Builder::new()
            .name("toolgate-store".to_owned())
            .spawn(move || home.run())
            .map_err(|error| failed(path, &error))?;
        sqlite.thread = Some(thread);
        Ok((sqlite, key))
    }

    /// The same before there is a thread.
    pub(super) fn prepare(
        path: &Path,
        opening: Opening,
    ) -> Result<(Self, Home, [u8; 32]), StoreError> {
        let Opening { bytes: limit, new_key, metrics, .. } = opening;
        make_private(path).map_err(|error| failed(path, &error))?;
        let connection = Connection::open(path).map_err(|error| failed(path, &error))?;
        let mut file = File::new(connection, limit).map_err(|error| failed(path, &error))?;
        let key = file.key(new_key).map_err(|error| failed(path, &error))?;
        let mut refused = Refused::default();
        let (place, mut guest) = (place_of(path, &key), None);
        let tail = open_tail(&mut file, &place, &mut guest, &mut refused).unwrap_or_else(|error| {
            tracing::warn!("{}-tail0 cannot be used: {error}; turns wait", path.display());
            guest = guest.take().or_else(|| place.guest().ok());
            None
        });
        report(&metrics, &refused);
        let shared = Arc::new(Shared {
            tail: tokio::sync::Mutex::new(tail),
            pending: Mutex::default(),
            news: Condvar::new(),
            many: usize::try_from(limit / PART).unwrap_or(MANY).min(MANY),
            _guest: guest,
        });
        let readers = Readers::open(path).map_err(|error| failed(path, &error))?;
        let home = Home::new(Arc::clone(&shared), file, path, metrics.clone());
        let recent = Mutex::default();
        Ok((Self { shared, readers, thread: None, recent, metrics }, home, key))
    }

    pub(super) async fn get(&self, owner: Owner, kind: Kind, ids: &[String]) -> Vec<Option<Bytes>> {
        let mut found: Vec<Option<Option<Bytes>>> = vec![None; ids.len()];
        let mut look = |find: &mut dyn FnMut(At<'_>) -> Option<Option<Bytes>>| {
            let unknown = ids.iter().zip(&mut found).filter(|(_, found)| found.is_none());
            unknown.for_each(|(id, found)| *found = find(At { owner, kind, id }));
        };
        if kind.is_constant() {
            let mut recent = self.recent();
            look(&mut |at| recent.get(at).map(Some));
        }
        {
            let pending = self.shared.lock();
            look(&mut |at| pending.value(at));
        }
        let mut missing = Vec::new();
        look(&mut |at| {
            missing.push(at.id.to_owned());
            None
        });
        if !missing.is_empty() {
            let mut others = self.kept(owner, kind, missing).await.into_iter();
            look(&mut |_| Some(others.next().flatten()));
        }
        found.into_iter().map(Option::flatten).collect()
    }

    /// Reads what is not pending.
    async fn kept(&self, owner: Owner, kind: Kind, ids: Vec<String>) -> Vec<Option<Bytes>> {
        let is_little = kind.is_short() && ids.len() <= FEW;
        let read = || self.read(|file| file.get_all(owner, kind, &ids));
        let kept = match is_little.then(read).flatten() {
            Some(kept) => kept,
            None => {
                let ask = |reply| Ask::Read(Read::Get(owner, kind, ids.clone(), reply));
                self.asked(ask).await.unwrap_or_default()
            }
        };
        if kind.is_constant() {
            let mut recent = self.recent();
            for (id, kept) in ids.iter().zip(&kept) {
                if let Some(Kept { value, until }) = kept {
                    recent.put(At { owner, kind, id }, value.clone(), *until);
                }
            }
        }
        kept.into_iter().map(|kept| Some(kept?.value)).collect()
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn list(&self, owner: Owner, kind: Kind, id: &str) -> Vec<Bytes> {
        let ask = |reply| Ask::Read(Read::List(owner, kind, id.to_owned(), reply));
        self.asked(ask).await.unwrap_or_default()
    }

    pub(super) async fn in_parts(&self, wanted: Wanted<'_>) -> Vec<Listed> {
        let Wanted { owner, maps, parts } = wanted;
        let is_pending = {
            let pending = self.shared.lock();
            maps.iter().any(|map| pending.has(owner, map))
        };
        let put = if is_pending {
            // Nobody waits while it is found out what they are called.
            parts();
            self.shared.lock().in_parts(wanted)
        } else {
            Vec::new()
        };
        let mut all = match self.read(|file| file.in_parts(wanted)) {
            Some(there) => there,
            None => {
                let (maps, parts) = (maps.to_vec(), parts().to_vec());
                let ask = |reply| Ask::Read(Read::Parts(owner, maps, parts, reply));
                self.asked(ask).await.unwrap_or_default()
            }
        };
        if !put.is_empty() {
            // What was put again or is too old hides what was there before.
            let at = |it: &Noted| (it.map, it.part, it.id.clone());
            let newer: HashSet<(usize, usize, String)> = put.iter().map(at).collect();
            all.retain(|it| !newer.contains(&at(it)));
            all.extend(put);
            let now = now();
            all.retain(|it| it.until > now);
        }
        let listed = |Noted { map, part, id, note, .. }| Listed { map, part, id, note };
        last_of(all.into_iter().map(listed).collect(), wanted)
    }

    pub(super) fn put(
        &self,
        owner: Owner,
        kind: Kind,
        id: &str,
        value: &[u8],
        notes: &[(&str, &str)],
        keep: Duration,
    ) {
        self.change(At { owner, kind, id }, What::Put(value, notes.to_vec()), keep);
    }

    pub(super) fn append(
        &self,
        owner: Owner,
        kind: Kind,
        id: &str,
        values: &[Bytes],
        keep: Duration,
    ) {
        let values = values.iter().map(|value| &value[..]).collect();
        self.change(At { owner, kind, id }, What::Append(values), keep);
    }

    pub(super) async fn delete(&self, owner: Owner, kind: Kind, id: &str) -> bool {
        let ask = |reply| Ask::Later(Later::Delete(owner, kind, id.to_owned(), reply));
        self.asked(ask).await.unwrap_or(false)
    }

    /// Whether no other process uses the file.
    pub(super) async fn is_alone(&self) -> bool {
        self.shared.tail.lock().await.as_mut().is_some_and(Tail::is_alone)
    }

    /// Waits until what was written before would survive.
    pub(super) async fn settle(&self) {
        let save = |tail: &mut Tail| tail.is_alone() && self.shared.save(tail);
        let is_safe = self.shared.tail.lock().await.as_mut().is_some_and(save);
        if !is_safe {
            self.flush().await;
        }
    }

    /// Waits until what was written before is in the file.
    pub(super) async fn flush(&self) {
        let _ = self.asked(|reply| Ask::Later(Later::Flush(reply))).await;
    }

    fn change(&self, at: At<'_>, what: What<'_>, keep: Duration) {
        let mut pending = self.shared.lock();
        let before = (pending.since.is_some(), pending.is_much(self.shared.many));
        let is_kept = pending.add(&Change { at, what, until: until(keep) });
        let after = (true, pending.is_much(self.shared.many));
        drop(pending);
        if !is_kept {
            self.metrics.lost.inc();
            tracing::error!("the store does not keep up; something was not kept");
        } else if before != after {
            self.shared.news.notify_one();
        }
    }

    /// Reads from the file at once, where that is possible.
    fn read<T>(&self, read: impl FnOnce(&Reader) -> rusqlite::Result<T>) -> Option<T> {
        let reader = self.readers.free()?;
        let found = read(&reader);
        found.inspect_err(|error| tracing::debug!(%error, "not read at once")).ok()
    }

    /// Asks the thread; `None`: it has ended.
    async fn asked<T>(&self, ask: impl FnOnce(oneshot::Sender<T>) -> Ask) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.shared.lock().ask(ask(reply));
        self.shared.news.notify_one();
        answer.await.ok()
    }
}

impl Drop for Sqlite {
    /// Brings everything home.
    fn drop(&mut self) {
        // Who is the last to have the file makes it whole.
        self.readers = Readers::default();
        self.shared.lock().close();
        self.shared.news.notify_one();
        if let Some(Err(_)) = self.thread.take().map(JoinHandle::join) {
            tracing::error!("the store has panicked");
        }
    }
}

fn failed(path: &Path, reason: &dyn std::fmt::Display) -> StoreError {
    StoreError { place: path.display().to_string(), reason: reason.to_string() }
}

/// Where the tails of a file are.
fn place_of(path: &Path, key: &[u8; 32]) -> Place {
    let mut mark = [0; 16];
    mark.copy_from_slice(&digest(&SHA256, key).as_ref()[..16]);
    Place { path: path.to_owned(), mark }
}

/// Takes a tail, brings home what processes that were killed have left, and waits until those that
/// live have seen this one and brought home theirs. `None`: too many live, and this one is a guest.
fn open_tail(
    file: &mut File,
    place: &Place,
    guest: &mut Option<std::fs::File>,
    refused: &mut Refused,
) -> Result<Option<Tail>, Box<dyn Error>> {
    let began = Instant::now();
    let mut own: Option<Tail> = None;
    loop {
        for mut tail in place.tails(own.as_ref().map(Tail::number))? {
            let left = tail.left()?;
            let last = file.bring_home(tail.number(), &left, refused)?;
            tracing::debug!(tail = tail.number(), batches = left.len(), "a tail was brought home");
            if own.is_none() {
                tail.begin(last)?;
                own = Some(tail);
            } else {
                tail.clear()?;
            }
        }
        if own.is_some() {
            *guest = None;
        } else if guest.is_none() {
            *guest = Some(place.guest()?);
        }
        let others = place.of_others(own.as_ref().map(Tail::number));
        let mut is_done = others.is_empty() || began.elapsed() > 2 * LOOK;
        for (other, last) in others {
            is_done &= file.last_of(other)? >= last;
        }
        if is_done || began.elapsed() > PATIENCE {
            if own.is_none() {
                let path = place.path.display();
                tracing::warn!("more than {TAILS} gateways use {path}; this one has no tail");
            }
            return Ok(own);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What is kept is for the user alone.
fn make_private(path: &Path) -> std::io::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)?;
    }
    tail::private(path).map(drop)
}
