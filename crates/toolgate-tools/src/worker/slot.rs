//! One process of a pool: started, watched, replaced.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior};

use super::WorkerOptions;
use super::pool::Pool;
use crate::Failure;
use crate::breaker::Breaker;
use crate::mcp::Connection;

/// A process that is ready.
pub(super) struct Worker {
    pub(super) id: u64,
    pub(super) connection: Connection,
    in_flight: AtomicUsize,
    calls: AtomicU64,
    started: Instant,
    /// The process has run enough calls.
    worn_out: Notify,
    /// A call has ended.
    idle: Notify,
}

impl Worker {
    pub(super) fn new(id: u64, connection: Connection) -> Self {
        Self {
            id,
            connection,
            in_flight: AtomicUsize::new(0),
            calls: AtomicU64::new(0),
            started: Instant::now(),
            worn_out: Notify::new(),
            idle: Notify::new(),
        }
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::SeqCst)
    }

    pub(super) fn begin(&self) {
        self.in_flight.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn end(&self, options: &WorkerOptions) {
        self.in_flight.fetch_sub(1, Ordering::SeqCst);
        let calls = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        if options.recycle_calls.is_some_and(|limit| calls >= limit) {
            self.worn_out.notify_one();
        }
        self.idle.notify_one();
    }

    /// Whether the process is too old or too large.
    fn is_worn_out(&self, options: &WorkerOptions) -> bool {
        let is_old = options.recycle_age.is_some_and(|limit| self.started.elapsed() >= limit);
        is_old || options.recycle_memory.is_some_and(|limit| self.resident_bytes() >= limit)
    }

    /// Resident memory of the process, where the system tells it.
    fn resident_bytes(&self) -> u64 {
        let Some(pid) = self.connection.process_id() else { return 0 };
        let Ok(statm) = std::fs::read_to_string(format!("/proc/{pid}/statm")) else { return 0 };
        let pages = statm.split(' ').nth(1).and_then(|it| it.parse::<u64>().ok()).unwrap_or(0);
        pages.saturating_mul(u64::try_from(rustix::param::page_size()).unwrap_or(4096))
    }

    /// Waits for the calls in progress, then ends the process.
    async fn drain(self: Arc<Self>, pool: Arc<Pool>) {
        let calls = async {
            while self.in_flight() > 0 {
                self.idle.notified().await;
            }
        };
        let _ = tokio::time::timeout(pool.options.drain_timeout, calls).await;
        self.connection.close().await;
    }
}

/// Why a process is looked after.
enum Event {
    Ended,
    Replace,
    Probe,
    Stop,
}

/// Keeps one process of a pool running.
pub(super) async fn supervise(pool: Arc<Pool>, index: usize) {
    let mut breaker = Breaker::default();
    let mut code = pool.code.subscribe();
    let mut current: Option<Arc<Worker>> = None;
    let mut probes = tokio::time::interval(pool.options.probe_interval);
    probes.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let Some(worker) = &current else {
            if pool.stopped.is_cancelled() {
                return;
            }
            current = start(&pool, index, &mut breaker).await;
            code.mark_unchanged();
            continue;
        };
        let event = tokio::select! {
            biased;
            () = pool.stopped.cancelled() => Event::Stop,
            () = worker.connection.ended.cancelled() => Event::Ended,
            () = worker.worn_out.notified() => Event::Replace,
            Ok(()) = code.changed() => Event::Replace,
            _ = probes.tick() => {
                if worker.is_worn_out(&pool.options) { Event::Replace } else { Event::Probe }
            }
        };
        match event {
            Event::Stop => {
                worker.connection.close().await;
                return;
            }
            Event::Ended => {
                tracing::warn!(source = pool.label, "worker process ended, starting another");
                breaker.failed();
                pool.not_ready(index, None);
                current = None;
            }
            Event::Replace => match pool.start_worker().await {
                Ok((new, listing)) => {
                    let new = Arc::new(new);
                    pool.ready(index, &new, listing);
                    tokio::spawn(Arc::clone(worker).drain(Arc::clone(&pool)));
                    current = Some(new);
                }
                Err(failure) => {
                    let fault = failure.kind();
                    tracing::warn!(
                        source = pool.label,
                        fault,
                        "new worker failed, keeping the old"
                    );
                }
            },
            Event::Probe => {
                let limit = pool.options.stuck_timeout;
                let answered = tokio::time::timeout(limit, worker.connection.probe()).await;
                if answered.is_err() {
                    tracing::warn!(source = pool.label, "worker process is stuck, killing it");
                    worker.connection.kill();
                }
            }
        }
    }
}

/// Starts a process, after the pause that earlier failures ask for.
async fn start(pool: &Arc<Pool>, index: usize, breaker: &mut Breaker) -> Option<Arc<Worker>> {
    if let Some(at) = breaker.blocked_until() {
        if breaker.is_open() {
            let failure = Failure::Unreachable("ended too often, started later".to_owned());
            pool.not_ready(index, Some(failure));
        }
        tokio::select! {
            () = tokio::time::sleep_until(at) => {}
            () = pool.stopped.cancelled() => return None,
        }
    }
    match pool.start_worker().await {
        Ok((worker, listing)) => {
            breaker.succeeded();
            let worker = Arc::new(worker);
            pool.ready(index, &worker, listing);
            Some(worker)
        }
        Err(failure) => {
            tracing::warn!(source = pool.label, fault = failure.kind(), "worker did not start");
            breaker.failed();
            pool.not_ready(index, Some(failure));
            None
        }
    }
}
