//! Runtime of the sources: one thread that no caller shares.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// Thread with a runtime. Dropping it ends all tasks on it.
pub(crate) struct Runtime {
    handle: Handle,
    thread: Mutex<Option<(oneshot::Sender<()>, JoinHandle<()>)>>,
}

impl Runtime {
    pub(crate) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread =
            std::thread::Builder::new().name("toolgate-tools".to_owned()).spawn(move || {
                let _ = runtime.block_on(stopped);
            })?;
        Ok(Self { handle, thread: Mutex::new(Some((stop, thread))) })
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((stop, thread)) = thread else { return };
        drop(stop);
        // The last handle may be dropped by a task of this very runtime.
        if thread.thread().id() != std::thread::current().id() {
            let _ = thread.join();
        }
    }
}
