//! How a loop ended.

use crate::canon::{
    Answer, Call, Failure, Loss, LossCode, Losses, Part, Role, ToolResult, Turn, Usage, call_token,
};

/// Result of a loop.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Its end.
    pub end: End,
    /// Turns that were added to the conversation since the start or the last resumption. Every call in
    /// them has its result; the last turn is the model's if it has answered.
    pub turns: Vec<Turn<'static>>,
    /// How many requests were answered or failed.
    pub requests: u32,
    /// Tokens of all of them. The answer's own count is of the last request only, and so says
    /// how long the conversation is.
    pub usage: Usage,
    /// Calls that were repaired, answered by the loop, or left out.
    pub losses: Losses,
}

/// How a loop ended.
#[derive(Clone, Debug)]
pub enum End {
    /// The model has answered.
    Answered(Answer),
    /// The model has called tools whose results are the caller's to give.
    Calls {
        /// The model's answer, with the caller's calls only.
        answer: Answer,
        /// Why they were not run here.
        why: Unfinished,
        /// State from which the loop is resumed.
        paused: Paused,
    },
    /// The driver gave up.
    Cancelled,
    /// There is no answer.
    Failed(Failure),
}

/// Why calls were returned to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfinished {
    /// They are the caller's.
    Caller,
    /// The loop has used all its rounds. Then every call is returned.
    Limit,
}

/// A model's turn that waits for results.
#[derive(Clone, Debug)]
pub struct Paused {
    /// The model's turn as it was, with calls that the caller has not seen.
    pub turn: Turn<'static>,
    /// Results that are there already, in the order of their calls.
    pub results: Vec<ToolResult<'static>>,
}

/// A conversation that can go on.
#[derive(Clone, Debug)]
pub struct Resumed<'a> {
    /// The model's turn, and the turn with all its results.
    pub turns: Vec<Turn<'a>>,
    /// Calls without a result, results without a call.
    pub losses: Losses,
}

impl Paused {
    /// The calls that wait for a result.
    pub fn calls(&self) -> impl Iterator<Item = &Call<'static>> {
        calls(&self.turn).filter(|call| !self.results.iter().any(|result| fits(result, call)))
    }

    /// Puts the results together: one for each call, in the order of the calls.
    ///
    /// A call without a result gets an error result, so that the conversation stays whole.
    pub fn resume<'a>(self, given: Vec<ToolResult<'a>>) -> Resumed<'a> {
        let open: Vec<_> = self.calls().cloned().collect();
        let mut losses = Losses::new();
        let mut results = matched(&open, given, &mut losses);
        results.extend(self.results);
        let parts = calls(&self.turn)
            .filter_map(|call| {
                let at = results.iter().position(|result| fits(result, call))?;
                Some(Part::Result(results.swap_remove(at)))
            })
            .collect();
        let turns = vec![self.turn, Turn { role: Role::User, parts }];
        Resumed { turns, losses }
    }
}

/// One result for each call, in order, with the call's id and name.
///
/// Results are found by id; those without one by the tool's name, else by their place.
pub(super) fn matched<'a>(
    calls: &[Call<'static>],
    given: Vec<ToolResult<'a>>,
    losses: &mut Losses,
) -> Vec<ToolResult<'a>> {
    let mut slots: Vec<Option<ToolResult<'a>>> = vec![None; calls.len()];
    let (named, nameless): (Vec<_>, Vec<_>) =
        given.into_iter().partition(|result| result.call_id.is_some());
    for result in named.into_iter().chain(nameless) {
        let free = slots.iter_mut().zip(calls).find(|(slot, call)| {
            slot.is_none()
                && match (&result.call_id, &result.tool) {
                    (Some(_), _) => fits(&result, call),
                    (None, Some(tool)) => *tool == call.tool,
                    (None, None) => true,
                }
        });
        match free {
            Some((slot, _)) => *slot = Some(result),
            None => losses.add_with(LossCode::OrphanResult, || orphan(&result)),
        }
    }
    slots
        .into_iter()
        .zip(calls)
        .enumerate()
        .map(|(index, (slot, call))| match slot {
            Some(result) => ToolResult {
                call_id: Some(call.id.clone()),
                tool: Some(call.tool.clone()),
                ..result
            },
            None => {
                losses.add_with(LossCode::MissingResult, || Loss {
                    at: format!("calls[{index}]"),
                    code: LossCode::MissingResult,
                    detail: "no result was given; the model is told so".to_owned(),
                    tool: Some(call.tool.to_string()),
                });
                call.failed("no result was given for this call")
            }
        })
        .collect()
}

fn orphan(result: &ToolResult<'_>) -> Loss {
    Loss {
        at: "results".to_owned(),
        code: LossCode::OrphanResult,
        detail: match &result.call_id {
            Some(id) => format!("no call waits for the result of `{id}`; it was left out"),
            None => "no call waits for this result; it was left out".to_owned(),
        },
        tool: result.tool.as_ref().map(ToString::to_string),
    }
}

fn calls<'a>(turn: &'a Turn<'static>) -> impl Iterator<Item = &'a Call<'static>> {
    turn.parts.iter().filter_map(Part::call)
}

/// The caller knows the call by its dialect's id, which has a prefix.
fn fits(result: &ToolResult<'_>, call: &Call<'_>) -> bool {
    result.call_id.as_deref().is_some_and(|id| call_token(id) == call_token(&call.id))
}
