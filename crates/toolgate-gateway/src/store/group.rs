//! Turns that wait for the same transaction.
//!
//! Waking a thread costs more than writing a line, so the turns of one thread form a group: when
//! what they wait for is done, their thread is woken once, and they go on from there.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, oneshot};

use crate::lanes;

/// The groups that form now, by thread.
#[derive(Debug)]
pub(super) struct Groups([Mutex<Arc<Group>>; GROUPS]);

/// Turns that wait together.
#[derive(Debug)]
pub(super) struct Group {
    /// What is written from now on may be in the next transaction only.
    is_closed: AtomicBool,
    has_ended: AtomicBool,
    size: AtomicUsize,
    end: Notify,
}

/// More threads than that share them.
const GROUPS: usize = 16;

impl Default for Groups {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::new(Group::new(true))))
    }
}

impl Groups {
    /// The group that waits for what this thread has written before. Of a new one, `ask` tells the
    /// store, which answers when it is done.
    pub(super) fn join(&self, ask: impl FnOnce(Arc<Group>, oneshot::Sender<()>)) -> Arc<Group> {
        let slot = &self.0[lanes::here() % GROUPS];
        let mut open = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if open.is_closed.load(Ordering::SeqCst) {
            *open = Group::new(false);
            let (reply, answer) = oneshot::channel();
            ask(Arc::clone(&open), reply);
            let end = End(Arc::clone(&open));
            // A task of this thread: nobody but it has to be woken from another one.
            tokio::spawn(async move {
                // Where the store has ended, there is nothing to wait for.
                drop(answer.await);
                drop(end);
            });
        }
        open.size.fetch_add(1, Ordering::Relaxed);
        Arc::clone(&open)
    }
}

impl Group {
    fn new(is_closed: bool) -> Arc<Self> {
        Arc::new(Self {
            is_closed: AtomicBool::new(is_closed),
            has_ended: AtomicBool::new(is_closed),
            size: AtomicUsize::new(0),
            end: Notify::new(),
        })
    }

    /// How many wait.
    pub(super) fn size(&self) -> usize {
        self.size.load(Ordering::Relaxed)
    }

    /// Lets nobody join any more.
    pub(super) fn close(&self) {
        self.is_closed.swap(true, Ordering::SeqCst);
    }

    /// Waits for the end.
    pub(super) async fn ended(&self) {
        let end = self.end.notified();
        if !self.has_ended.load(Ordering::Acquire) {
            end.await;
        }
    }
}

/// Lets a group go on, whatever happens to who waits for the store.
struct End(Arc<Group>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.close();
        self.0.has_ended.store(true, Ordering::Release);
        self.0.end.notify_waiters();
    }
}
