//! Running calls: at the same time, within limits, whatever they do.

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

/// What came of a call.
#[derive(Clone, Debug)]
pub(crate) struct Finished {
    pub(crate) result: Result<Output, ToolError>,
    /// The result was there already.
    pub(crate) cached: bool,
    /// How long it ran.
    pub(crate) elapsed: Duration,
}

impl Toolset {
    /// Runs calls, and gives what came of them in their order. Those of sequential tools run one
    /// after the other, beside the rest. `seen` is told of each when it begins and when it ends.
    pub(crate) async fn run_all<S>(
        &self,
        calls: &[Invocation],
        cancel: &Cancel,
        seen: S,
    ) -> Vec<Finished>
    where
        S: Fn(usize, Option<&Finished>) + Sync,
    {
        let run = async |at: usize, call: &Invocation| {
            seen(at, None);
            let finished = self.run(call, cancel).await;
            seen(at, Some(&finished));
            (at, finished)
        };
        let is_sequential =
            |call: &Invocation| self.get(&call.tool).is_some_and(Tool::is_sequential);
        let (in_line, beside): (Vec<_>, Vec<_>) =
            calls.iter().enumerate().partition(|(_, call)| is_sequential(call));
        let line = async {
            let mut finished = Vec::with_capacity(in_line.len());
            for (at, call) in in_line {
                finished.push(run(at, call).await);
            }
            finished
        };
        let beside = join_all(beside.into_iter().map(|(at, call)| run(at, call)));
        let (mut finished, beside) = tokio::join!(line, beside);
        finished.extend(beside);
        finished.sort_by_key(|(at, _)| *at);
        finished.into_iter().map(|(_, finished)| finished).collect()
    }

    /// Runs one call.
    pub(crate) async fn run(&self, call: &Invocation, cancel: &Cancel) -> Finished {
        let Invocation { id, tool: name, arguments } = call;
        let Some(tool) = self.get(name) else {
            warn!(tool = name, call = id, "function not found");
            let known = self.tools.iter().map(|tool| tool.name().to_owned()).collect();
            return Finished::at_once(ToolError::NotFound { tool: name.clone(), known });
        };
        let Some(handler) = tool.handler() else {
            return Finished::at_once(ToolError::Declared(name.clone()));
        };
        if self.log_arguments {
            debug!(tool = name, call = id, arguments = arguments.get(), "call starts");
        } else {
            debug!(tool = name, call = id, "call starts");
        }
        // What fits with a small repair is repaired; what does not is the function's to refuse,
        // because its words say which argument it is.
        let checked = tool.checker().check(arguments.borrowed());
        for loss in checked.losses.iter().filter(|it| it.code == LossCode::ArgumentRepaired) {
            debug!(tool = name, call = id, at = loss.at, "argument repaired");
        }
        let arguments = checked.args.get();
        let started = Instant::now();
        let running = self.guarded(tool, handler, id, arguments, cancel);
        let (result, cached) = if tool.is_deterministic() {
            // The one that runs it may be of another request, and not be cancelled.
            tokio::select! {
                biased;
                () = cancel.cancelled() => (Err(ToolError::Cancelled), false),
                kept = self.cache.get(key(name, arguments), running) => kept,
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

    /// Runs a handler in its time, when it is its turn, and survives it. The time that it waits
    /// for its turn is not counted.
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
            let _turn = if tool.is_sequential() { Some(self.turn.lock().await) } else { None };
            // The semaphore is never closed.
            let _permit = self.limit.acquire().await;
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
                    // A function that is not `async` still runs: it may look.
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
    fn at_once(error: ToolError) -> Self {
        Self { result: Err(error), cached: false, elapsed: Duration::ZERO }
    }
}
