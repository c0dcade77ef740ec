//! A store in one SQLite file.
//!
//! One thread owns the connection and takes commands from a bounded queue, in order: what was
//! written can be read at once. Writes that come together are one transaction. The file is in WAL
//! mode, so that nothing that was committed is lost when the process is killed.

use std::fs::OpenOptions;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::time::Duration;

use bytes::Bytes;
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::group::{Group, Groups};
use super::sqlite_file::File;
use super::{Kind, Opening, StoreError};
use crate::auth::Owner;
use crate::metrics::StoreMetrics;

/// A SQLite file and the thread that owns it.
#[derive(Debug)]
pub(super) struct Sqlite {
    queue: SyncSender<Command>,
    /// Who waits for the next transaction.
    groups: Groups,
    metrics: StoreMetrics,
}

/// How many commands may wait. A turn waits for its own before it ends, so that the queue is long
/// only when the disk hangs. So many are done in one transaction at the most.
const WAITING: usize = 16_384;
/// How long a write waits for others to be written with it: what belongs to one turn is one
/// transaction.
const GATHER: Duration = Duration::from_micros(200);
/// The longest wait: where many turns end together, many are one transaction.
const GATHER_MANY: Duration = Duration::from_millis(2);

/// How long to wait for others, by how many waited for the last transaction.
fn patience(waited: usize) -> Duration {
    match waited {
        0 | 1 => GATHER,
        many => Duration::from_millis(many as u64).min(GATHER_MANY),
    }
}

/// Where something is.
#[derive(Debug)]
pub(super) struct At {
    pub(super) owner: Owner,
    pub(super) kind: Kind,
    pub(super) id: String,
}

enum Command {
    Get(Owner, Kind, Vec<String>, oneshot::Sender<Vec<Option<Bytes>>>),
    List(At, oneshot::Sender<Vec<Bytes>>),
    Put(At, Bytes, Duration),
    Append(At, Vec<Bytes>, Duration),
    Delete(At, oneshot::Sender<bool>),
    Settle(Arc<Group>, oneshot::Sender<()>),
}

impl Command {
    /// Whether it changes the file, or waits until it is changed.
    fn is_written(&self) -> bool {
        match self {
            Self::Append(..) | Self::Put(..) | Self::Settle(..) => true,
            // Somebody waits for these before anything else happens.
            Self::Delete(..) | Self::Get(..) | Self::List(..) => false,
        }
    }
}

impl Sqlite {
    /// Opens or makes the file, and the key that is kept in it.
    pub(super) fn open(path: &Path, opening: Opening) -> Result<(Self, [u8; 32]), StoreError> {
        let Opening { bytes: limit, new_key, metrics, .. } = opening;
        let failed = |reason: String| StoreError { place: path.display().to_string(), reason };
        make_private(path).map_err(|error| failed(error.to_string()))?;
        let connection = Connection::open(path).map_err(|error| failed(error.to_string()))?;
        let mut file = File::new(connection, limit).map_err(|error| failed(error.to_string()))?;
        let key = file.key(new_key).map_err(|error| failed(error.to_string()))?;
        let (queue, commands) = mpsc::sync_channel(WAITING);
        std::thread::Builder::new()
            .name("toolgate-store".to_owned())
            .spawn({
                let metrics = metrics.clone();
                move || run(file, &commands, &metrics)
            })
            .map_err(|error| failed(error.to_string()))?;
        Ok((Self { queue, groups: Groups::default(), metrics }, key))
    }

    fn send(&self, command: Command) {
        match self.queue.try_send(command) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                self.metrics.lost.inc();
                tracing::error!("the store does not keep up; something was not kept");
            }
            Err(TrySendError::Disconnected(_)) => tracing::error!("the store has ended"),
        }
    }

    pub(super) async fn get(&self, owner: Owner, kind: Kind, ids: &[String]) -> Vec<Option<Bytes>> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::Get(owner, kind, ids.to_vec(), reply));
        answer.await.unwrap_or_else(|_| vec![None; ids.len()])
    }

    pub(super) async fn list(&self, owner: Owner, kind: Kind, id: &str) -> Vec<Bytes> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::List(At { owner, kind, id: id.to_owned() }, reply));
        answer.await.unwrap_or_default()
    }

    pub(super) fn put(&self, owner: Owner, kind: Kind, id: &str, value: Bytes, keep: Duration) {
        self.send(Command::Put(At { owner, kind, id: id.to_owned() }, value, keep));
    }

    pub(super) fn append(
        &self,
        owner: Owner,
        kind: Kind,
        id: &str,
        values: Vec<Bytes>,
        keep: Duration,
    ) {
        self.send(Command::Append(At { owner, kind, id: id.to_owned() }, values, keep));
    }

    pub(super) async fn delete(&self, owner: Owner, kind: Kind, id: &str) -> bool {
        let (reply, answer) = oneshot::channel();
        self.send(Command::Delete(At { owner, kind, id: id.to_owned() }, reply));
        answer.await.unwrap_or(false)
    }

    pub(super) async fn settle(&self) {
        let ask = |group, reply| self.send(Command::Settle(group, reply));
        self.groups.join(ask).ended().await;
    }
}

/// What is kept is for the user alone.
fn make_private(path: &Path) -> std::io::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)?;
    }
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

fn run(mut file: File, commands: &Receiver<Command>, metrics: &StoreMetrics) {
    let mut waited = 0;
    while let Ok(first) = commands.recv() {
        if first.is_written() {
            std::thread::sleep(patience(waited));
        }
        let mut settled = Vec::new();
        let rest = std::iter::from_fn(|| commands.try_recv().ok());
        for command in std::iter::once(first).chain(rest).take(WAITING) {
            if let Err(error) = obey(&mut file, command, &mut settled) {
                metrics.lost.inc();
                tracing::error!(%error, "the store failed; something was not kept");
            }
        }
        if let Err(error) = file.commit() {
            metrics.lost.inc();
            tracing::error!(%error, "the store failed; something was not kept");
        }
        waited = settled.iter().map(|(group, _)| group.size()).sum();
        for (_, reply) in settled {
            // Whoever asked may be gone.
            let _ = reply.send(());
        }
    }
}

fn obey(
    file: &mut File,
    command: Command,
    settled: &mut Vec<(Arc<Group>, oneshot::Sender<()>)>,
) -> rusqlite::Result<()> {
    // Whoever asked may be gone: what they do not hear does not matter.
    match command {
        Command::Get(owner, kind, ids, reply) => {
            let mut values = Vec::with_capacity(ids.len());
            for id in ids {
                values.push(file.get(&At { owner, kind, id })?);
            }
            let _ = reply.send(values);
        }
        Command::List(at, reply) => {
            let _ = reply.send(file.list(&at)?);
        }
        Command::Put(at, value, keep) => file.put(&at, &value, keep)?,
        Command::Append(at, values, keep) => file.append(&at, &values, keep)?,
        Command::Delete(at, reply) => {
            let _ = reply.send(file.delete(&at)?);
        }
        Command::Settle(group, reply) => {
            // Who joined before has written before: that is in the queue, which is emptied now.
            group.close();
            settled.push((group, reply));
        }
    }
    Ok(())
}
