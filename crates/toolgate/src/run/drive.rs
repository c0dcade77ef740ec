//! The driver of one request.

use std::time::Duration;

use toolgate_core::canon::{
    self, Answer, Call as CanonCall, Failure, FailureKind, Losses, Part, Role, Tool as CanonTool,
    ToolResult, Turn,
};
use toolgate_core::tool_loop::{End, OutOfTurn, Outcome, Owner, Relay, Step, ToolLoop};

use crate::event::Emitter;
use crate::tool::ToolError;
use crate::toolset::{Finished, Invocation};
use crate::{Call, CallResult, Client, Decision, Error, Event, Request, Response};

/// A request in progress.
#[derive(Debug)]
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
        })
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
        let declared = self.request.canon.tools.iter().filter_map(|tool| match tool {
            CanonTool::Function(function) => Some(function.name.clone()),
            CanonTool::Freeform { name, .. } => Some(name.clone()),
            CanonTool::Server(_) => None,
        });
        let declared = declared.map(|name| (name, Owner::Caller));
        let ours = self.request.tools.owners();
        let ours = ours.names().filter_map(|name| Some((name.clone(), ours.owner(name)?)));
        let tools = declared.chain(ours).collect();
        let declared: Vec<_> = self.request.tools.declared().collect();
        self.request.canon.tools.extend(declared);
        let choice = self.request.canon.tool_choice.clone();
        ToolLoop::new(Vec::new(), choice, tools, self.request.automatic.options(streamed))
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
                    self.emitter.emit(Event::Round { round: next.round, last: next.last });
                    let answer = tokio::select! {
                        biased;
                        () = cancel.cancelled() => None,
                        answer = Box::pin(self.round(&mut relay, streamed)) => Some(answer),
                    };
                    match answer {
                        None => tool_loop.cancel(),
                        Some(Ok(answer)) => tool_loop.answer(answer)?,
                        Some(Err(failure)) if relay.is_committed() => tool_loop.abort(failure)?,
                        Some(Err(failure)) => {
                            tool_loop.fail(failure.clone())?;
                            if matches!(tool_loop.step(), Step::Generate(_)) {
                                self.emitter.emit(Event::Retry { failure, wait: Duration::ZERO });
                            }
                        }
                    }
                }
                Step::RunTools(calls) => {
                    let calls = calls.to_vec();
                    let results = Box::pin(self.run_tools(&calls)).await;
                    if cancel.is_cancelled() {
                        tool_loop.cancel();
                    } else {
                        tool_loop.results(results)?;
                    }
                }
                Step::Done(_) => return Ok(()),
            }
            let (emitter, calls) = (&self.emitter, &mut self.calls);
            relay.settle(tool_loop, &mut |event: &canon::Event<'_>| {
                emitter.emit_upstream(event, calls)
            });
        }
    }

    /// Gets approval for the calls, runs the approved ones, and returns all results in order.
    async fn run_tools(&self, calls: &[CanonCall<'static>]) -> Vec<ToolResult<'static>> {
        let seen: Vec<_> = calls.iter().map(Call::new).collect();
        let mut decisions = Vec::with_capacity(calls.len());
        for call in &seen {
            decisions.push(match &self.request.approval {
                Some(approval) => {
                    tokio::select! {
                        biased;
                        () = self.request.cancel.cancelled() => Decision::Deny(String::new()),
                        decision = approval.decide(call.clone()) => decision,
                    }
                }
                None => Decision::Allow,
            });
        }
        let mut allowed = Vec::new();
        for (call, decision) in seen.iter().zip(&decisions) {
            let arguments = match decision {
                Decision::Allow => Some(call.raw().clone()),
                Decision::Change(value) => toolgate_core::json::Raw::of(value),
                Decision::Deny(_) => None,
            };
            allowed.extend(arguments.map(|arguments| {
                let id = call.id().to_owned();
                (call, Invocation { id, tool: call.name().to_owned(), arguments })
            }));
        }
        let (shown, invocations): (Vec<_>, Vec<_>) = allowed.into_iter().unzip();
        let emitter = &self.emitter;
        let notify = |at: usize, finished: Option<&Finished>| {
            let Some(call) = shown.get(at) else { return };
            let call = Call::clone(call);
            emitter.emit(match finished {
                None => Event::ToolStarted(call),
                Some(Finished { result, cached, elapsed }) => Event::ToolFinished {
                    call,
                    result: result.clone(),
                    cached: *cached,
                    elapsed: *elapsed,
                },
            });
        };
        let ran = self.request.tools.run_all(&invocations, &self.request.cancel, notify).await;
        let mut ran = ran.into_iter();
        let results = calls.iter().zip(&seen).zip(decisions).map(|((call, seen), decision)| {
            let result = match decision {
                Decision::Allow | Decision::Change(_) => {
                    ran.next().map_or(Err(ToolError::Cancelled), |finished| finished.result)
                }
                Decision::Deny(reason) => {
                    let result = Err(ToolError::Denied(reason));
                    emitter.emit(Event::ToolFinished {
                        call: seen.clone(),
                        result: result.clone(),
                        cached: false,
                        elapsed: Duration::ZERO,
                    });
                    result
                }
            };
            match result {
                Ok(output) => call.succeeded(output.into_content()),
                Err(error) => call.failed(&error.to_string()),
            }
        });
        results.collect()
    }

    fn conclude(mut self, outcome: Outcome) -> Result<Response, Error> {
        let Outcome { end, turns, requests, usage, mut losses } = outcome;
        let mut all = std::mem::take(&mut self.losses);
        all.append(&mut losses);
        let keep_history = self.request.automatic.keep_history;
        let respond = |answer: Answer, last: Vec<Part<'static>>, history| Response {
            calls: answer.calls().map(Call::new).collect(),
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
            End::Cancelled => Err(Error::Cancelled { history: turns }),
            End::Failed(failure) => {
                Err(Error::Failed { failure: Box::new(failure), history: turns })
            }
        }
    }
}
