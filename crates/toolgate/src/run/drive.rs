//! The driver of one request.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use toolgate_core::canon::{
    self, Answer, Call as CanonCall, Failure, FailureKind, Losses, Part, Role, Tool as CanonTool,
    ToolChoice, ToolResult, Turn,
};
use toolgate_core::tool_loop::{
    CallFault, End, Options, OutOfTurn, Outcome, Owner, Relay, Step, ToolLoop, Tools,
};

use crate::event::Emitter;
use crate::saved::SavedRun;
use crate::tool::{Abort, ToolError};
use crate::toolset::{Execution, Job};
use crate::{Call, CallResult, Client, Decision, Error, Event, Request, Response};

/// A request in progress.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(super) client: Client,
    pub(super) request: Request,
    pub(crate) emitter: Emitter,
    /// Number of turns before those of the loop.
    given: usize,
    tool_loop: Option<ToolLoop>,
    /// Losses of the last request.
    pub(super) losses: Losses,
    /// Number of calls returned to the caller.
    pub(super) calls: usize,
    /// The call that ended the run.
    aborted: Option<(Call, Abort)>,
}

impl Run {
    pub(crate) fn new(client: Client, mut request: Request) -> Result<Self, Error> {
        if let Some(name) = request.tools.duplicate() {
            return Err(Error::bad_request("tools", format!("two tools are called `{name}`")));
        }
        request.check_fields()?;
        if request.canon.model.is_empty() {
            request.canon.model = client.model().to_owned().into();
        }
        request.canon.stream = false;
        let emitter = Emitter { observer: request.observer.clone(), queue: None };
        let given = request.canon.turns.len();
        Ok(Self {
            client,
            request,
            emitter,
            given,
            tool_loop: None,
            losses: Losses::new(),
            calls: 0,
            aborted: None,
        })
    }

    /// Restores a run that waits for results. `request` has instructions, tools and settings.
    pub(crate) fn restore(
        client: Client,
        mut request: Request,
        saved: &SavedRun,
    ) -> Result<Response, Error> {
        let (turns, why, paused) = saved.read()?;
        request.canon.turns = turns;
        let mut run = Self::new(client, request)?;
        let (choice, tools, options) = run.loop_settings(false);
        let tool_loop = ToolLoop::paused(Vec::new(), choice, tools, options, (why, paused));
        let outcome = tool_loop.clone().into_outcome().ok_or(Error::NothingToResume)?;
        run.tool_loop = Some(tool_loop);
        run.conclude(outcome)
    }

    /// Saves a run that waits for results.
    pub(crate) fn save(&self) -> Result<SavedRun, Error> {
        let step = self.tool_loop.as_ref().map(ToolLoop::step);
        let Some(Step::Done(Outcome { end: End::Calls { paused, why, .. }, .. })) = step else {
            return Err(Error::NothingToResume);
        };
        // The request holds all turns that were sent last, which are those before the open one.
        SavedRun::new(&self.request.canon.turns, paused, *why)
    }

    /// Sets the results that a response waits for.
    pub(crate) fn resume(
        &mut self,
        results: impl IntoIterator<Item = CallResult>,
    ) -> Result<(), Error> {
        let tool_loop = self.tool_loop.as_mut().ok_or(Error::NothingToResume)?;
        let results = results.into_iter().map(|result| result.0).collect();
        tool_loop.resume(results).map_err(|_| Error::NothingToResume)
    }

    /// Calls that wait for results.
    pub(crate) fn open_calls(&self) -> Vec<Call> {
        match self.tool_loop.as_ref().map(ToolLoop::step) {
            Some(Step::Done(Outcome { end: End::Calls { paused, .. }, .. })) => {
                paused.calls().map(Call::from_canon).collect()
            }
            Some(Step::Done(_) | Step::Generate(_) | Step::RunTools(_)) | None => Vec::new(),
        }
    }

    /// Turns that follow if the open calls never get results.
    pub(crate) fn abandon(mut self) -> Vec<Turn<'static>> {
        let outcome = self.tool_loop.take().and_then(ToolLoop::into_outcome);
        match outcome.map(|outcome| outcome.end) {
            Some(End::Calls { paused, .. }) => paused.resume(Vec::new()).turns,
            Some(End::Answered(_) | End::Cancelled | End::Failed(_)) | None => Vec::new(),
        }
    }

    /// Runs the request to its end.
    pub(crate) async fn finish(mut self, streamed: bool) -> Result<Response, Error> {
        let mut tool_loop = match self.tool_loop.take() {
            Some(resumed) => resumed,
            None => self.new_loop(streamed),
        };
        self.drive(&mut tool_loop, streamed).await.map_err(|error| {
            // Unreachable unless this driver and the loop disagree about the step.
            Error::failed(Failure::new(FailureKind::Internal, error.to_string()))
        })?;
        let outcome = match tool_loop.step() {
            Step::Done(outcome) => outcome.clone(),
            Step::Generate(_) | Step::RunTools(_) => {
                let failure = Failure::new(FailureKind::Internal, "the tool loop has not ended");
                return Err(Error::failed(failure));
            }
        };
        self.tool_loop = Some(tool_loop);
        self.conclude(outcome)
    }

    fn new_loop(&mut self, streamed: bool) -> ToolLoop {
        let (choice, tools, options) = self.loop_settings(streamed);
        ToolLoop::new(Vec::new(), choice, tools, options)
    }

    /// Declares the tools in the request, and returns the settings of its loop.
    fn loop_settings(&mut self, streamed: bool) -> (ToolChoice<'static>, Tools, Options) {
        let declared = self.request.canon.tools.iter().filter_map(|tool| match tool {
            CanonTool::Function(function) => Some(function.name.clone()),
            CanonTool::Freeform { name, .. } => Some(name.clone()),
            CanonTool::Server(_) => None,
        });
        let declared = declared.map(|name| (name, Owner::Caller));
        let ours = self.request.tools.owners();
        let ours = ours.names().filter_map(|name| Some((name.clone(), ours.owner(name)?)));
        let tools = declared.chain(ours).collect();
        self.declare_tools();
        let choice = self.request.canon.tool_choice.clone();
        (choice, tools, self.request.automatic.options(streamed))
    }

    /// Adds the toolset's declarations to the request.
    pub(super) fn declare_tools(&mut self) {
        let declared: Vec<_> = self.request.tools.declared().collect();
        self.request.canon.tools.extend(declared);
    }

    async fn drive(&mut self, tool_loop: &mut ToolLoop, streamed: bool) -> Result<(), OutOfTurn> {
        let cancel = self.request.cancel.clone();
        let mut relay = Relay::new(tool_loop);
        loop {
            match tool_loop.step() {
                Step::Generate(next) => {
                    let canon = &mut self.request.canon;
                    canon.turns.truncate(self.given);
                    canon.turns.extend_from_slice(next.turns);
                    canon.tool_choice = next.tool_choice.clone();
                    let round = Event::Round { round: next.round, last: next.last };
                    self.emitter.send(round).await;
                    let answer = tokio::select! {
                        biased;
                        () = cancel.cancelled() => None,
                        answer = Box::pin(self.round(&mut relay, streamed)) => Some(answer),
                    };
                    match answer {
                        None => tool_loop.cancel(),
                        Some(Ok(answer)) => {
                            tool_loop.answer(answer)?;
                            self.report_refused(tool_loop).await;
                        }
                        Some(Err(failure)) if relay.is_committed() => tool_loop.abort(failure)?,
                        Some(Err(failure)) => {
                            tool_loop.fail(failure.clone())?;
                            if matches!(tool_loop.step(), Step::Generate(_)) {
                                let retry = Event::Retry { failure, wait: Duration::ZERO };
                                self.emitter.send(retry).await;
                            }
                        }
                    }
                }
                Step::RunTools(calls) => {
                    let calls = calls.to_vec();
                    match Box::pin(self.run_tools(&calls)).await {
                        Ok(_) if cancel.is_cancelled() => tool_loop.cancel(),
                        Ok(results) => tool_loop.results(results)?,
                        Err(aborted) => {
                            self.aborted = Some(aborted);
                            tool_loop.cancel();
                        }
                    }
                }
                Step::Done(_) => return Ok(()),
            }
            let (emitter, calls) = (&self.emitter, &mut self.calls);
            relay.settle(tool_loop, &mut |event: &canon::Event<'_>| {
                emitter.emit_upstream(event, calls)
            });
            self.emitter.delivered().await;
        }
    }

    /// Emits the calls that the loop answered itself.
    async fn report_refused(&self, tool_loop: &mut ToolLoop) {
        for refused in tool_loop.take_refused() {
            let call = Call::from_canon(&refused.call);
            let error = match refused.fault {
                CallFault::UnknownTool => {
                    let known = self.request.tools.tools().iter().map(|it| it.name().to_owned());
                    ToolError::NotFound { tool: call.name().to_owned(), known: known.collect() }
                }
                CallFault::BadArguments => ToolError::Arguments(refused.reason),
            };
            self.emitter.send(Event::CallRefused { call, error }).await;
        }
    }

    /// Gets approval for the calls, runs the approved ones, and returns all results in order. `Err`: a
    /// call ends the run.
    async fn run_tools(
        &self,
        calls: &[CanonCall<'static>],
    ) -> Result<Vec<ToolResult<'static>>, (Call, Abort)> {
        let shown: Vec<_> = calls.iter().map(Call::from_canon).collect();
        let decisions = join_all(shown.iter().map(|call| self.decide(call))).await;
        for (call, decision) in shown.iter().zip(&decisions) {
            if let Decision::Abort(reason) = decision
                && let ToolError::Abort(abort) = ToolError::abort(reason.clone())
            {
                return Err((call.clone(), abort));
            }
        }
        let jobs = shown.iter().zip(&decisions).filter_map(|(shown, decision)| {
            let call = match decision {
                Decision::Allow => shown.clone(),
                Decision::Change(arguments) => shown.with_arguments(arguments),
                Decision::Abort(_) | Decision::Deny(_) => return None,
            };
            Some(Job { call, shown: shown.clone() })
        });
        let jobs: Vec<_> = jobs.collect();
        let options = Execution { sequential: false, cancel: self.request.cancel.clone() };
        let finished = self.request.tools.run_all(&jobs, &options, &self.emitter).await;
        for (job, finished) in jobs.iter().zip(&finished) {
            if let Err(ToolError::Abort(abort)) = &finished.result {
                return Err((job.shown.clone(), abort.clone()));
            }
        }
        let mut finished = finished.into_iter();
        let mut results = Vec::with_capacity(calls.len());
        for ((call, shown), decision) in calls.iter().zip(shown).zip(decisions) {
            let result = match decision {
                Decision::Allow | Decision::Change(_) => {
                    finished.next().map_or(Err(ToolError::Cancelled), |finished| finished.result)
                }
                Decision::Abort(reason) | Decision::Deny(reason) => {
                    let result = Err(ToolError::Denied(reason));
                    let (cached, elapsed) = (false, Duration::ZERO);
                    let event = Event::ToolFinished {
                        call: shown,
                        result: result.clone(),
                        cached,
                        elapsed,
                    };
                    self.emitter.send(event).await;
                    result
                }
            };
            results.push(match result {
                Ok(output) => call.succeeded(output.into_content()),
                Err(error) => call.failed(&error.to_string()),
            });
        }
        Ok(results)
    }

    async fn decide(&self, call: &Call) -> Decision {
        let Some(approval) = &self.request.approval else { return Decision::Allow };
        tokio::select! {
            biased;
            () = self.request.cancel.cancelled() => Decision::Deny(String::new()),
            decision = approval.decide(call.clone()) => decision,
        }
    }

    fn conclude(mut self, outcome: Outcome) -> Result<Response, Error> {
        let Outcome { end, turns, requests, usage, mut losses } = outcome;
        let mut all = std::mem::take(&mut self.losses);
        all.append(&mut losses);
        let keep_history = self.request.automatic.keep_history;
        let respond = |answer: Answer, last: Vec<Part<'static>>, history| Response {
            calls: answer.calls().map(Call::from_canon).collect(),
            answer,
            last,
            unfinished: None,
            history: if keep_history { history } else { Vec::new() },
            requests,
            usage,
            losses: all,
            run: None,
        };
        match end {
            End::Answered(answer) => {
                let last = turns.last().filter(|turn| turn.role == Role::Model);
                let last = last.map(|turn| turn.parts.clone()).unwrap_or_default();
                Ok(Response { calls: Vec::new(), ..respond(answer, last, turns) })
            }
            End::Calls { answer, why, paused } => {
                let response = respond(answer, paused.turn.parts, turns);
                Ok(Response { unfinished: Some(why), run: Some(Box::new(self)), ..response })
            }
            End::Cancelled => Err(match self.aborted.take() {
                Some((call, abort)) => Error::Tool {
                    call: Box::new(call),
                    source: Arc::clone(abort.source()),
                    history: turns,
                },
                None => Error::Cancelled { history: turns },
            }),
            End::Failed(failure) => {
                Err(Error::Failed { failure: Box::new(failure), history: turns })
            }
        }
    }
}
