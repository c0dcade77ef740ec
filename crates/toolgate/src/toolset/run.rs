//! Execution of calls: concurrency, timeouts, panics.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join_all};
use tokio::time::{Instant, timeout};
use toolgate_core::canon::LossCode;
use toolgate_core::json::Raw;
use tracing::{debug, warn};

use super::Toolset;
use super::cache::key;
use crate::Cancel;
use crate::tool::{Context, Handler, Output, Tool, ToolError, panic_message};

/// A call to be run.
#[derive(Clone, Debug)]
pub(crate) struct Invocation {
    pub(crate) id: String,
    pub(crate) tool: String,
    pub(crate) arguments: Raw<'static>,
}

/// Outcome of a call.
#[derive(Clone, Debug)]
pub(crate) struct Finished {
    pub(crate) result: Result<Output, ToolError>,
    /// Whether the result came from the cache.
    pub(crate) cached: bool,
    /// Run time.
    pub(crate) elapsed: Duration,
}

impl Toolset {
    /// Runs calls concurrently and returns their outcomes in order. Calls of sequential tools run one
    /// after the other. `notify` is called at the start and at the end of each call.
    pub(crate) async fn run_all<S>(
        &self,
        calls: &[Invocation],
        cancel: &Cancel,
        notify: S,
    ) -> Vec<Finished>
    where
        S: Fn(usize, Option<&Finished>) + Sync,
    {
        let run = async |at: usize, call: &Invocation| {
            notify(at, None);
            let finished = self.run(call, cancel).await;
            notify(at, Some(&finished));
            (at, finished)
        };
        let is_sequential =
            |call: &Invocation| self.get(&call.tool).is_some_and(Tool::is_sequential);
        let (sequential, concurrent): (Vec<_>, Vec<_>) =
            calls.iter().enumerate().partition(|(_, call)| is_sequential(call));
        let sequential = async {
            let mut finished = Vec::with_capacity(sequential.len());
            for (at, call) in sequential {
                finished.push(run(at, call).await);
            }
            finished
        };
        let concurrent = join_all(concurrent.into_iter().map(|(at, call)| run(at, call)));
        let (mut finished, concurrent) = tokio::join!(sequential, concurrent);
        finished.extend(concurrent);
        finished.sort_by_key(|(at, _)| *at);
        finished.into_iter().map(|(_, finished)| finished).collect()
    }

    /// Runs one call.
    pub(crate) async fn run(&self, call: &Invocation, cancel: &Cancel) -> Finished {
        let Invocation { id, tool: name, arguments } = call;
        let Some(tool) = self.get(name) else {
            warn!(tool = name, call = id, "function not found");
            let known = self.tools.iter().map(|tool| tool.name().to_owned()).collect();
            return Finished::immediately(ToolError::NotFound { tool: name.clone(), known });
        };
        let Some(handler) = tool.handler() else {
            return Finished::immediately(ToolError::Declared(name.clone()));
        };
        if self.log_arguments {
            debug!(tool = name, call = id, arguments = arguments.get(), "call starts");
        } else {
            debug!(tool = name, call = id, "call starts");
        }
        // Small differences are repaired. The function refuses the rest, because its error names the
        // argument.
        let checked = tool.checker().check(arguments.borrowed());
        for loss in checked.losses.iter().filter(|it| it.code == LossCode::ArgumentRepaired) {
            debug!(tool = name, call = id, at = loss.at, "argument repaired");
        }
        let arguments = checked.args.get();
        let started = Instant::now();
        let running = self.guarded(tool, handler, id, arguments, cancel);
        let (result, cached) = if tool.is_deterministic() {
            // Another request may be computing the result; its cancellation is not ours.
            tokio::select! {
                biased;
                () = cancel.cancelled() => (Err(ToolError::Cancelled), false),
                cached = self.cache.get(key(name, arguments), running) => cached,
            }
        } else {
            (running.await, false)
        };
        let elapsed = started.elapsed();
        match &result {
            Ok(_) => debug!(tool = name, call = id, success = true, cached, ?elapsed, "call ended"),
            Err(error @ (ToolError::TimedOut(_) | ToolError::Panicked(_))) => {
                warn!(tool = name, call = id, success = false, ?elapsed, %error, "call ended");
            }
            Err(
                ToolError::Arguments(_)
                | ToolError::Cancelled
                | ToolError::Declared(_)
                | ToolError::Denied(_)
                | ToolError::Failed(_)
                | ToolError::NotFound { .. },
            ) => debug!(tool = name, call = id, success = false, ?elapsed, "call ended"),
        }
        Finished { result, cached, elapsed }
    }

    /// Runs a handler with its timeout, catching panics. Waiting for a permit does not count as run
    /// time.
    async fn guarded(
        &self,
        tool: &Tool,
        handler: &Handler,
        id: &str,
        arguments: &str,
        cancel: &Cancel,
    ) -> Result<Output, ToolError> {
        let cancel = cancel.child();
        let context =
            Context::new(id.to_owned(), tool.name().to_owned(), cancel.clone(), self.state.clone());
        let limit = tool.time_limit().unwrap_or(self.timeout);
        let work = async {
            let _guard =
                if tool.is_sequential() { Some(self.sequential.lock().await) } else { None };
            // The semaphore is never closed.
            let _permit = self.permits.acquire().await;
            let begin = || handler(arguments, context);
            let running: BoxFuture<'static, _> =
                match std::panic::catch_unwind(AssertUnwindSafe(begin)) {
                    Ok(running) => running,
                    Err(panic) => return Err(ToolError::Panicked(panic_message(&*panic))),
                };
            match timeout(limit, AssertUnwindSafe(running).catch_unwind()).await {
                Ok(Ok(result)) => result,
                Ok(Err(panic)) => Err(ToolError::Panicked(panic_message(&*panic))),
                Err(_) => {
                    // A blocking function is still running; the token tells it to stop.
                    cancel.cancel();
                    Err(ToolError::TimedOut(limit))
                }
            }
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(ToolError::Cancelled),
            result = work => result,
        }
    }
}

impl Finished {
    fn immediately(error: ToolError) -> Self {
        Self { result: Err(error), cached: false, elapsed: Duration::ZERO }
    }
}
