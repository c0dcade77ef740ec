//! The loop itself.

use super::outcome::matched;
use super::reply::{bad_arguments, error_text, unknown_tool, violations};
use super::{AtLimit, End, OnFault, Options, Outcome, Owner, Paused, Steps, Tools, Unfinished};
use crate::canon::{
    Answer, Call, Failure, FailureKind, Finish, FinishReason, Item, Loss, LossCode, Losses, Part,
    Role, ToolChoice, ToolResult, Turn, Usage,
};

/// The automatic function-calling loop. See the [module](super).
#[derive(Clone, Debug)]
pub struct ToolLoop {
    options: Options,
    tools: Tools,
    /// The conversation; what stands from `added` on is ours.
    turns: Vec<Turn<'static>>,
    added: usize,
    choice: ToolChoice<'static>,
    round: u32,
    /// This is the request after the limit, which forbids tools.
    last: bool,
    spent: Spent,
    /// Items of earlier rounds, where steps are shown.
    shown: Vec<Item>,
    usage: Usage,
    losses: Losses,
    refused: Vec<RefusedCall>,
    state: LoopState,
}

/// A call that the loop answered itself: the model gets the reason in place of a result.
#[derive(Clone, Debug)]
pub struct RefusedCall {
    /// The call.
    pub call: Call<'static>,
    /// The fault.
    pub fault: CallFault,
    /// Text that the model gets.
    pub reason: String,
}

/// Fault of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallFault {
    /// The tool was not declared.
    UnknownTool,
    /// The arguments do not fit the tool's schema.
    BadArguments,
}

/// Next action of the driver. Exhaustive on purpose: a driver must handle every step.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// Ask the model; feed its answer to [`ToolLoop::answer`], or the failure to [`ToolLoop::fail`].
    Generate(Generate<'a>),
    /// Run these calls, in any order or all at once; feed their results to [`ToolLoop::results`].
    RunTools(&'a [Call<'static>]),
    /// Nothing.
    Done(&'a Outcome),
}

/// A request to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Generate<'a> {
    /// The conversation: the turns that the loop was given, and those that it added.
    pub turns: &'a [Turn<'static>],
    /// Whether the model may, must or must not call this time.
    pub tool_choice: &'a ToolChoice<'static>,
    /// Which round it is, from 1. A retry is the same round again.
    pub round: u32,
    /// Whether this is the request after the limit: no call will be run any more.
    pub last: bool,
}

/// The loop waits for something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the loop waits for {waits_for}, not for {given}")]
pub struct OutOfTurn {
    waits_for: &'static str,
    given: &'static str,
}

#[derive(Clone, Debug)]
enum LoopState {
    Asking,
    Running { open: Box<OpenTurn>, calls: Vec<Call<'static>> },
    Done(Box<Outcome>),
}

/// A model's turn whose calls are being dealt with.
#[derive(Clone, Debug)]
struct OpenTurn {
    answer: Answer,
    turn: Turn<'static>,
    fates: Vec<Fate>,
}

/// What becomes of a call.
#[derive(Clone, Debug)]
enum Fate {
    Answered(ToolResult<'static>),
    Caller,
    Run,
}

/// Counters since the start or the last resumption.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    requests: u32,
    retries: u32,
    unknown_tools: u32,
    bad_arguments: u32,
}

impl ToolLoop {
    /// A loop that is about to ask.
    ///
    /// It never looks into `turns`: a driver that keeps the conversation itself may give none,
    /// and add those of [`Generate::turns`] to its own.
    pub fn new(
        turns: Vec<Turn<'static>>,
        tool_choice: ToolChoice<'static>,
        tools: Tools,
        options: Options,
    ) -> Self {
        Self {
            options,
            tools,
            added: turns.len(),
            turns,
            choice: tool_choice,
            round: 1,
            last: false,
            spent: Spent::default(),
            shown: Vec::new(),
            usage: Usage::default(),
            losses: Losses::new(),
            refused: Vec::new(),
            state: LoopState::Asking,
        }
    }

    /// Creates a loop that waits for the caller's results, as it does after [`End::Calls`]: `turns` are
    /// those before the model's turn in `paused`.
    pub fn paused(
        turns: Vec<Turn<'static>>,
        tool_choice: ToolChoice<'static>,
        tools: Tools,
        options: Options,
        (why, paused): (Unfinished, Paused),
    ) -> Self {
        let answer = Answer {
            items: paused.calls().cloned().map(Item::Call).collect(),
            finish: Finish { reason: FinishReason::ToolCalls, ..Finish::default() },
            ..Answer::default()
        };
        let mut paused_loop = Self::new(turns, tool_choice, tools, options);
        paused_loop.end(End::Calls { answer, why, paused });
        paused_loop
    }

    /// Takes the calls that the loop answered itself since this was called last.
    pub fn take_refused(&mut self) -> Vec<RefusedCall> {
        std::mem::take(&mut self.refused)
    }

    /// What to do now. Asking twice changes nothing.
    pub fn step(&self) -> Step<'_> {
        match &self.state {
            LoopState::Asking => Step::Generate(Generate {
                turns: &self.turns,
                tool_choice: if self.last { &ToolChoice::None } else { &self.choice },
                round: self.round,
                last: self.last,
            }),
            LoopState::Running { calls, .. } => Step::RunTools(calls),
            LoopState::Done(outcome) => Step::Done(outcome),
        }
    }

    /// Takes the model's answer.
    pub fn answer(&mut self, answer: Answer) -> Result<(), OutOfTurn> {
        self.expect_asking("an answer")?;
        self.spent.requests += 1;
        self.usage.add(&answer.finish.usage);
        self.losses.extend(answer.finish.losses.clone());
        if !answer.has_calls() || matches!(answer.finish.reason, FinishReason::Blocked(_)) {
            self.close(answer);
            return Ok(());
        }
        let open = OpenTurn { turn: answer.to_turn(), fates: self.fates(&answer), answer };
        self.run(open);
        Ok(())
    }

    /// Takes the results of the tools, in any order: one for each call of [`Step::RunTools`].
    pub fn results(&mut self, results: Vec<ToolResult<'static>>) -> Result<(), OutOfTurn> {
        let (mut open, calls) = match std::mem::replace(&mut self.state, LoopState::Asking) {
            LoopState::Running { open, calls } => (*open, calls),
            other @ (LoopState::Asking | LoopState::Done(_)) => {
                self.state = other;
                return Err(self.out_of_turn("results"));
            }
        };
        let mut results = matched(&calls, results, &mut self.losses).into_iter();
        for fate in &mut open.fates {
            if matches!(fate, Fate::Run) {
                *fate = results.next().map_or(Fate::Caller, Fate::Answered);
            }
        }
        self.settle(open);
        Ok(())
    }

    /// Takes the news that there is no answer. A turn that the model spoilt is asked for again,
    /// within bounds; everything else is the end.
    pub fn fail(&mut self, failure: Failure) -> Result<(), OutOfTurn> {
        self.expect_asking("a failure")?;
        let spoilt = matches!(failure.kind, FailureKind::EmptyTurn | FailureKind::MalformedCall);
        if !spoilt || self.spent.retries >= self.options.retries {
            return self.abort(failure);
        }
        self.spent.requests += 1;
        self.spent.retries += 1;
        Ok(())
    }

    /// Takes the news that there is no answer and that asking again is out of the question: the
    /// client has already seen a part of it.
    pub fn abort(&mut self, failure: Failure) -> Result<(), OutOfTurn> {
        self.expect_asking("a failure")?;
        self.spent.requests += 1;
        self.end(End::Failed(failure));
        Ok(())
    }

    /// Ends the loop at once. The history keeps the rounds that were complete.
    pub fn cancel(&mut self) {
        if !matches!(self.state, LoopState::Done(_)) {
            self.end(End::Cancelled);
        }
    }

    /// Goes on with the caller's results, after [`End::Calls`], with all rounds to spend again.
    pub fn resume(&mut self, results: Vec<ToolResult<'static>>) -> Result<(), OutOfTurn> {
        let paused = match &self.state {
            LoopState::Done(outcome) => match &outcome.end {
                End::Calls { paused, .. } => paused.clone(),
                End::Answered(_) | End::Cancelled | End::Failed(_) => {
                    return Err(self.out_of_turn("the caller's results"));
                }
            },
            LoopState::Asking | LoopState::Running { .. } => {
                return Err(self.out_of_turn("the caller's results"));
            }
        };
        let resumed = paused.resume(results);
        self.added = self.turns.len();
        self.turns.extend(resumed.turns);
        self.choice = relaxed(std::mem::take(&mut self.choice));
        self.round = 1;
        self.last = false;
        self.spent = Spent::default();
        self.shown.clear();
        self.usage = Usage::default();
        self.losses = resumed.losses;
        self.state = LoopState::Asking;
        Ok(())
    }

    /// How it ended, once it has.
    pub fn into_outcome(self) -> Option<Outcome> {
        match self.state {
            LoopState::Done(outcome) => Some(*outcome),
            LoopState::Asking | LoopState::Running { .. } => None,
        }
    }

    /// Whether a round that is being answered now may turn out to be one that the caller does
    /// not see.
    pub(super) fn may_hide(&self) -> bool {
        let faults = [self.options.unknown_tools, self.options.bad_arguments];
        self.options.steps == Steps::Hidden
            && !self.last
            && self.options.max_rounds > 0
            && (self.tools.any_driven() || faults.iter().any(|fault| *fault != OnFault::Pass))
    }

    fn expect_asking(&self, given: &'static str) -> Result<(), OutOfTurn> {
        match self.state {
            LoopState::Asking => Ok(()),
            LoopState::Running { .. } | LoopState::Done(_) => Err(self.out_of_turn(given)),
        }
    }

    fn out_of_turn(&self, given: &'static str) -> OutOfTurn {
        let waits_for = match &self.state {
            LoopState::Asking => "an answer",
            LoopState::Running { .. } => "results",
            LoopState::Done(_) => "nothing",
        };
        OutOfTurn { waits_for, given }
    }

    /// Whether no further round may follow this one.
    fn at_limit(&self) -> bool {
        let spent = self.round >= self.options.max_rounds;
        self.last
            || self.options.max_rounds == 0
            || (spent && self.options.at_limit == AtLimit::ReturnCalls)
    }

    fn fates(&mut self, answer: &Answer) -> Vec<Fate> {
        if self.at_limit() {
            return answer.calls().map(|_| Fate::Caller).collect();
        }
        let may_answer = |fault: OnFault, used: u32| match fault {
            OnFault::Answer { rounds } => used < rounds,
            OnFault::Pass => false,
        };
        let unknown = may_answer(self.options.unknown_tools, self.spent.unknown_tools);
        let bad = may_answer(self.options.bad_arguments, self.spent.bad_arguments);
        let (mut unknown_tools, mut met_bad) = (Vec::new(), false);
        let mut refused = Vec::new();
        let mut refuse = |call: &Call<'static>, fault, result: ToolResult<'static>| {
            let reason = error_text(&result);
            refused.push(RefusedCall { call: call.clone(), fault, reason });
            Fate::Answered(result)
        };
        let fates = answer
            .calls()
            .enumerate()
            .map(|(index, call)| {
                let Some(owner) = self.tools.owner(&call.tool) else {
                    unknown_tools.push(call);
                    return if unknown {
                        refuse(call, CallFault::UnknownTool, unknown_tool(call, &self.tools))
                    } else {
                        Fate::Caller
                    };
                };
                if bad {
                    let faults = violations(answer, index);
                    if !faults.is_empty() {
                        met_bad = true;
                        let result = bad_arguments(call, &faults);
                        return refuse(call, CallFault::BadArguments, result);
                    }
                }
                match owner {
                    Owner::Caller => Fate::Caller,
                    Owner::Driver => Fate::Run,
                }
            })
            .collect();
        self.spent.unknown_tools += u32::from(!unknown_tools.is_empty());
        self.spent.bad_arguments += u32::from(met_bad);
        for call in unknown_tools {
            self.report_unknown(call);
        }
        self.refused.append(&mut refused);
        fates
    }

    /// Names an unknown tool as a loss, unless the answer's decoder has done so.
    fn report_unknown(&mut self, call: &Call<'static>) {
        let tool = Some(call.tool.to_string());
        let is_it = |loss: &Loss| loss.code == LossCode::UnknownTool && loss.tool == tool;
        if !self.losses.iter().any(is_it) {
            self.losses.add_with(LossCode::UnknownTool, || Loss {
                at: "calls".to_owned(),
                code: LossCode::UnknownTool,
                detail: "the model called a tool that was not declared".to_owned(),
                tool,
            });
        }
    }

    fn run(&mut self, open: OpenTurn) {
        let calls: Vec<_> = open
            .answer
            .calls()
            .zip(&open.fates)
            .filter(|(_, fate)| matches!(fate, Fate::Run))
            .map(|(call, _)| call.clone())
            .collect();
        if calls.is_empty() {
            self.settle(open);
        } else {
            self.state = LoopState::Running { open: Box::new(open), calls };
        }
    }

    /// All that can be run here has been run.
    fn settle(&mut self, open: OpenTurn) {
        let OpenTurn { mut answer, turn, fates } = open;
        let waits = fates.iter().any(|fate| matches!(fate, Fate::Caller));
        let mut theirs = fates.iter().map(|fate| matches!(fate, Fate::Caller));
        keep_calls(&mut answer, |_| theirs.next().unwrap_or(false));
        let results = fates.into_iter().filter_map(|fate| match fate {
            Fate::Answered(result) => Some(result),
            Fate::Caller | Fate::Run => None,
        });
        if waits {
            let why = if self.at_limit() { Unfinished::Limit } else { Unfinished::Caller };
            let paused = Paused { turn, results: results.collect() };
            let answer = self.seen(answer);
            self.end(End::Calls { answer, why, paused });
            return;
        }
        let parts = results.map(Part::Result).collect();
        self.turns.extend([turn, Turn { role: Role::User, parts }]);
        if self.options.steps == Steps::Shown {
            self.shown.append(&mut answer.items);
        }
        self.choice = relaxed(std::mem::take(&mut self.choice));
        self.last = self.round >= self.options.max_rounds;
        self.round += 1;
        self.state = LoopState::Asking;
    }

    /// The model's last word.
    fn close(&mut self, mut answer: Answer) {
        // Calls in an answer that was blocked are not run; ours mean nothing to the caller.
        keep_calls(&mut answer, |call| self.tools.owner(&call.tool) == Some(Owner::Caller));
        let turn = answer.to_turn();
        if !turn.parts.is_empty() && !answer.has_calls() {
            self.turns.push(turn);
        }
        let answer = self.seen(answer);
        self.end(End::Answered(answer));
    }

    /// The answer with what earlier rounds said before it, where steps are shown.
    fn seen(&mut self, mut answer: Answer) -> Answer {
        if !self.shown.is_empty() {
            let mut items = std::mem::take(&mut self.shown);
            items.append(&mut answer.items);
            answer.items = items;
        }
        answer
    }

    fn end(&mut self, end: End) {
        self.state = LoopState::Done(Box::new(Outcome {
            end,
            turns: self.turns.get(self.added..).unwrap_or_default().to_vec(),
            requests: self.spent.requests,
            usage: self.usage,
            losses: std::mem::take(&mut self.losses),
        }));
    }
}

/// A model that must call in every round never comes to an end: only the first may be forced.
fn relaxed(choice: ToolChoice<'static>) -> ToolChoice<'static> {
    match choice {
        ToolChoice::Any | ToolChoice::One(_) => ToolChoice::Auto,
        ToolChoice::Allowed { required: _, names } => {
            ToolChoice::Allowed { required: false, names }
        }
        ToolChoice::Unset | ToolChoice::Auto | ToolChoice::None => choice,
    }
}

fn keep_calls(answer: &mut Answer, mut keep: impl FnMut(&Call<'static>) -> bool) {
    answer.items.retain(|item| match item {
        Item::Call(call) => keep(call),
        Item::Text(_)
        | Item::Thought(_)
        | Item::Signature { .. }
        | Item::Media(_)
        | Item::Server(_)
        | Item::Grounding(_) => true,
    });
}
