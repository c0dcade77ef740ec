//! PoolState of a pool: which processes are ready, which call goes where.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::MetaObject;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::slot::{self, Worker};
use super::{Affinity, WorkerOptions};
use crate::mcp::{Connection, Era, Target};
use crate::{Control, Failure, Listed, Output, ProcessGuard, Request};

/// Most sessions whose process is remembered.
const MAX_SESSIONS: usize = 10_000;

pub(super) struct Pool {
    pub(super) label: String,
    pub(super) options: WorkerOptions,
    target: Target,
    state: Mutex<PoolState>,
    /// Wakes calls that wait for a process.
    pub(super) available: Notify,
    changes: watch::Sender<u64>,
    /// Number of the code that processes should run; it grows with each reload.
    pub(super) code: watch::Sender<u64>,
    pub(super) stopped: CancellationToken,
    next_worker: AtomicU64,
}

#[derive(Default)]
struct PoolState {
    slots: Vec<Slot>,
    tasks: Vec<JoinHandle<()>>,
    listing: Option<Vec<Listed>>,
    /// Process of each session, and when it was last used.
    sessions: HashMap<Arc<str>, (u64, Instant)>,
}

/// Place of one process.
enum Slot {
    Starting,
    Ready(Arc<Worker>),
    /// The process does not start, or ended too often.
    Failed(Failure),
}

impl Pool {
    pub(super) fn new(label: &str, options: WorkerOptions, guard: &ProcessGuard) -> Self {
        Self {
            label: label.to_owned(),
            target: Target::Stdio { command: options.command.clone(), guard: guard.clone() },
            options,
            state: Mutex::default(),
            available: Notify::new(),
            changes: watch::Sender::new(0),
            code: watch::Sender::new(0),
            stopped: CancellationToken::new(),
            next_worker: AtomicU64::new(1),
        }
    }

    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(super) fn process_ids(&self) -> Vec<u32> {
        let state = self.state();
        state.ready().filter_map(|it| it.connection.process_id()).collect()
    }

    /// Starts the tasks that keep the processes running, once.
    fn start(self: &Arc<Self>) {
        let mut state = self.state();
        if !state.slots.is_empty() || self.stopped.is_cancelled() {
            return;
        }
        for index in 0..self.options.processes.max(1) {
            state.slots.push(Slot::Starting);
            state.tasks.push(tokio::spawn(slot::supervise(Arc::clone(self), index)));
        }
        if !self.options.watch.is_empty() {
            state.tasks.push(tokio::spawn(super::watch::run(Arc::clone(self))));
        }
    }

    pub(super) fn stop(&self) {
        self.stopped.cancel();
        self.available.notify_waiters();
    }

    pub(super) async fn close(&self) {
        self.stop();
        let tasks = std::mem::take(&mut self.state().tasks);
        for task in tasks {
            let _ = task.await;
        }
    }

    /// Starts one process and waits until it has listed its tools.
    pub(super) async fn start_worker(&self) -> Result<(Worker, Vec<Listed>), Failure> {
        let limit = self.options.start_timeout;
        let starting = async {
            // The processes run code of the operator: changes come by reload, not by notification.
            let ignored = watch::Sender::new(0);
            let probe = limit / 2;
            let connection =
                Connection::open(&self.target, Era::Auto, probe, &ignored, &self.label).await?;
            let listing = connection.list().await?;
            let id = self.next_worker.fetch_add(1, Ordering::Relaxed);
            Ok((Worker::new(id, connection), listing))
        };
        tokio::select! {
            started = tokio::time::timeout(limit, starting) => {
                started.unwrap_or(Err(Failure::Timeout { limit }))
            }
            () = self.stopped.cancelled() => Err(closed()),
        }
    }

    /// A process of a slot is ready.
    pub(super) fn ready(&self, index: usize, worker: &Arc<Worker>, listing: Vec<Listed>) {
        let mut state = self.state();
        if let Some(slot) = state.slots.get_mut(index) {
            *slot = Slot::Ready(Arc::clone(worker));
        }
        let digests = |list: &[Listed]| -> Vec<_> {
            list.iter().map(|it| it.definition.digest(&it.name)).collect()
        };
        let changed = state.listing.as_ref().is_some_and(|it| digests(it) != digests(&listing));
        state.listing = Some(listing);
        drop(state);
        if changed {
            self.changes.send_modify(|count| *count += 1);
        }
        self.available.notify_waiters();
    }

    /// A slot has no process; `failure` says that it will not have one soon.
    pub(super) fn not_ready(&self, index: usize, failure: Option<Failure>) {
        let mut state = self.state();
        if let Some(slot) = state.slots.get_mut(index) {
            *slot = failure.map_or(Slot::Starting, Slot::Failed);
        }
        drop(state);
        self.available.notify_waiters();
    }

    pub(super) async fn list(self: &Arc<Self>) -> Result<Vec<Listed>, Failure> {
        self.start();
        loop {
            let available = self.available.notified();
            {
                let state = self.state();
                if let Some(listing) = &state.listing {
                    return Ok(listing.clone());
                }
                state.hopeless()?;
            }
            available.await;
        }
    }

    pub(super) async fn call(
        self: &Arc<Self>,
        request: Request,
        control: Control,
    ) -> Result<Output, Failure> {
        self.start();
        let place = tokio::select! {
            place = self.acquire(request.session.as_ref()) => place?,
            () = control.cancelled() => return Err(Failure::Cancelled),
        };
        let mut meta = MetaObject::default();
        let left = request.deadline.saturating_duration_since(Instant::now());
        let left = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
        meta.0.insert("dev.toolgate/deadlineMs".to_owned(), left.into());
        if let Some(session) = &request.session {
            meta.0.insert("dev.toolgate/session".to_owned(), (&**session).into());
        }
        if !request.call_id.is_empty() {
            meta.0.insert("dev.toolgate/call".to_owned(), request.call_id.into());
        }
        let worker = &place.worker;
        worker.connection.call(&request.name, &request.arguments, &meta, &control).await
    }

    /// Waits for a place in a process.
    async fn acquire(self: &Arc<Self>, session: Option<&Arc<str>>) -> Result<Place, Failure> {
        loop {
            let available = self.available.notified();
            {
                let mut state = self.state();
                if self.stopped.is_cancelled() {
                    return Err(closed());
                }
                if let Some(worker) = self.choose(&mut state, session) {
                    worker.begin();
                    return Ok(Place { pool: Arc::clone(self), worker });
                }
                state.hopeless()?;
            }
            available.await;
        }
    }

    fn choose(&self, state: &mut PoolState, session: Option<&Arc<str>>) -> Option<Arc<Worker>> {
        let now = Instant::now();
        let affinity = self.options.affinity;
        let session = session.filter(|_| affinity != Affinity::None);
        let has_place = |it: &&Arc<Worker>| it.in_flight() < self.options.concurrency;
        let known = session.and_then(|it| state.sessions.get(it)).map(|(id, _)| *id);
        let own = known.and_then(|id| state.ready().find(|it| it.id == id).cloned());
        let chosen = match own {
            Some(own) if has_place(&&own) => own,
            Some(_) if affinity == Affinity::Strict => return None,
            _ => {
                let free = state.ready().filter(has_place);
                Arc::clone(free.min_by_key(|it| it.in_flight())?)
            }
        };
        if let Some(session) = session {
            if state.sessions.len() >= MAX_SESSIONS && !state.sessions.contains_key(session) {
                let ttl = self.options.session_ttl;
                state.sessions.retain(|_, (_, used)| now - *used < ttl);
                let oldest = state.sessions.iter().min_by_key(|(_, (_, used))| *used);
                let oldest = oldest.map(|(id, _)| Arc::clone(id));
                if let Some(id) = oldest.filter(|_| state.sessions.len() >= MAX_SESSIONS) {
                    state.sessions.remove(&id);
                }
            }
            // A busy process does not lose its session because of one call that went elsewhere.
            let id = known.filter(|id| state.ready().any(|it| it.id == *id)).unwrap_or(chosen.id);
            state.sessions.insert(Arc::clone(session), (id, now));
        }
        Some(chosen)
    }
}

fn closed() -> Failure {
    Failure::Unreachable("the source was closed".to_owned())
}

impl PoolState {
    fn ready(&self) -> impl Iterator<Item = &Arc<Worker>> {
        self.slots.iter().filter_map(|it| match it {
            Slot::Ready(worker) => Some(worker),
            Slot::Starting | Slot::Failed(_) => None,
        })
    }

    /// Fails if no process will be ready soon.
    fn hopeless(&self) -> Result<(), Failure> {
        let mut failure = None;
        for slot in &self.slots {
            match slot {
                Slot::Failed(reason) => failure = Some(reason.clone()),
                Slot::Starting | Slot::Ready(_) => return Ok(()),
            }
        }
        failure.map_or(Ok(()), Err)
    }
}

/// A place in a process.
struct Place {
    pool: Arc<Pool>,
    worker: Arc<Worker>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.worker.end(&self.pool.options);
        self.pool.available.notify_waiters();
    }
}
