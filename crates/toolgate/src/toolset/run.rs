//! Execution of calls: one task each, timeouts, panics.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use toolgate_core::canon::LossCode;
use tracing::{Instrument as _, Span, debug, info, warn};

use super::Toolset;
use super::cache::key;
use crate::event::Emitter;
use crate::tool::{Context, Handler, Output, Tool, ToolError, panic_message};
use crate::{Call, CallResult, Cancel, Event};

/// Options of [`Toolset::execute_all`].
#[derive(Clone, Debug, Default)]
pub struct Execution {
    /// Whether all calls run one after the other. Otherwise only those of sequential tools do.
    pub sequential: bool,
    /// Cancellation token of the calls.
    pub cancel: Cancel,
}

/// Outcome of a call that was run.
#[derive(Clone, Debug)]
pub struct Executed {
    /// The call.
    pub call: Call,
    /// Result for the model.
    pub result: Result<Output, ToolError>,
    /// Whether the result came from the cache.
    pub cached: bool,
    /// Run time.
    pub elapsed: Duration,
}

impl Executed {
    /// Id of the call.
    pub fn call_id(&self) -> &str {
        self.call.id()
    }

    /// Result in the form that [`Response::resume`](crate::Response::resume) and
    /// [`Chat::answer`](crate::Chat::answer) take.
    pub fn to_result(&self) -> CallResult {
        match &self.result {
            Ok(output) => self.call.succeed(output.clone()),
            Err(error) => self.call.fail(error),
        }
    }
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

/// A call to be run. Events show `shown`, which has the arguments of the model.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) call: Call,
    pub(crate) shown: Call,
}

impl Toolset {
    /// Runs a call as if the model had made it, in a task of its own.
    ///
    /// ```
    /// use serde_json::json;
    /// use toolgate::{Call, Toolset, tool};
    ///
    /// /// Adds two numbers.
    /// #[tool]
    /// fn add(a: i64, b: i64) -> i64 {
    ///     a + b
    /// }
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// let tools = Toolset::new().with::<add>();
    /// let executed = tools.execute(&Call::new("call_1", "add", &json!({"a": 2, "b": 40}))).await;
    /// assert_eq!(executed.call_id(), "call_1");
    /// assert_eq!(executed.result.unwrap().to_value(), json!(42));
    /// # });
    /// ```
    pub async fn execute(&self, call: &Call) -> Executed {
        let cancelled = Executed {
            call: call.clone(),
            result: Err(ToolError::Cancelled),
            cached: false,
            elapsed: Duration::ZERO,
        };
        let mut executed = self.execute_all([call.clone()], Execution::default()).await;
        executed.pop().unwrap_or(cancelled)
    }

    /// Runs calls, concurrently unless the options or the tools forbid it, and returns their outcomes
    /// in order. Dropping the future aborts them.
    pub async fn execute_all(
        &self,
        calls: impl IntoIterator<Item = Call>,
        options: Execution,
    ) -> Vec<Executed> {
        let calls = calls.into_iter();
        let jobs: Vec<_> = calls.map(|call| Job { shown: call.clone(), call }).collect();
        let finished = self.run_all(&jobs, &options, &Emitter::default()).await;
        let executed = jobs.into_iter().zip(finished).map(|(job, finished)| Executed {
            call: job.call,
            result: finished.result,
            cached: finished.cached,
            elapsed: finished.elapsed,
        });
        executed.collect()
    }

    /// Runs each call in a task of its own and returns the outcomes in order. A call that ends the run
    /// aborts the others.
    pub(crate) async fn run_all(
        &self,
        jobs: &[Job],
        options: &Execution,
        emitter: &Emitter,
    ) -> Vec<Finished> {
        let tools = Arc::new(self.clone());
        let is_sequential = |job: &Job| {
            options.sequential || self.get(job.call.name()).is_some_and(Tool::is_sequential)
        };
        let mut tasks: JoinSet<(usize, Finished)> = JoinSet::new();
        let mut outcomes: Vec<Option<Finished>> = vec![None; jobs.len()];
        let mut queued: VecDeque<(usize, &Job)> = VecDeque::new();
        for (at, job) in jobs.iter().enumerate() {
            if is_sequential(job) {
                queued.push_back((at, job));
                continue;
            }
            emitter.send(Event::ToolStarted(job.shown.clone())).await;
            tasks.spawn(Arc::clone(&tools).task(at, job.call.clone(), options.cancel.clone()));
        }
        let mut running = None;
        loop {
            if running.is_none()
                && let Some((at, job)) = queued.pop_front()
            {
                running = Some(at);
                emitter.send(Event::ToolStarted(job.shown.clone())).await;
                tasks.spawn(Arc::clone(&tools).task(at, job.call.clone(), options.cancel.clone()));
            }
            // A task ends without an outcome only if the runtime shuts down.
            let Some(Ok((at, finished))) = tasks.join_next().await else { break };
            if running == Some(at) {
                running = None;
            }
            if let Some(job) = jobs.get(at) {
                emitter.send(finished.event(&job.shown)).await;
            }
            let is_abort = matches!(finished.result, Err(ToolError::Abort(_)));
            if let Some(outcome) = outcomes.get_mut(at) {
                *outcome = Some(finished);
            }
            if is_abort {
                break;
            }
        }
        let cancelled = || Finished::immediately(ToolError::Cancelled);
        outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(cancelled)).collect()
    }

    /// The task of one call.
    fn task(
        self: Arc<Self>,
        at: usize,
        call: Call,
        cancel: Cancel,
    ) -> impl Future<Output = (usize, Finished)> + Send + 'static {
        let span = Span::current();
        async move { (at, self.run(&call, &cancel).await) }.instrument(span)
    }

    /// Runs one call.
    pub(crate) async fn run(&self, call: &Call, cancel: &Cancel) -> Finished {
        let (id, name, arguments) = (call.id(), call.name(), call.raw());
        let Some(tool) = self.get(name) else {
            warn!(tool = name, call = id, "function not found");
            let known = self.tools.iter().map(|tool| tool.name().to_owned()).collect();
            return Finished::immediately(ToolError::NotFound { tool: name.to_owned(), known });
        };
        let Some(handler) = tool.handler() else {
            return Finished::immediately(ToolError::Declared(name.to_owned()));
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
            Ok(_) => info!(tool = name, call = id, success = true, cached, ?elapsed, "call ended"),
            Err(
                error @ (ToolError::Abort(_) | ToolError::Panicked(_) | ToolError::TimedOut(_)),
            ) => {
                warn!(tool = name, call = id, success = false, ?elapsed, %error, "call ended");
            }
            Err(
                ToolError::Arguments(_)
                | ToolError::Cancelled
                | ToolError::Declared(_)
                | ToolError::Denied(_)
                | ToolError::Failed(_)
                | ToolError::NotFound { .. },
            ) => info!(tool = name, call = id, success = false, ?elapsed, "call ended"),
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
    fn event(&self, call: &Call) -> Event {
        let Self { result, cached, elapsed } = self.clone();
        Event::ToolFinished { call: call.clone(), result, cached, elapsed }
    }

    fn immediately(error: ToolError) -> Self {
        Self { result: Err(error), cached: false, elapsed: Duration::ZERO }
    }
}
