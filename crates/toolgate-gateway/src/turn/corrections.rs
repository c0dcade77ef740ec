//! Calls that the client never sees: they name no tool, or their arguments do not fit.
//!
//! ```text
//!   Gemini:  A  B(faulty)        the client sees A, and B is kept with what Gemini is to hear of it
//!   client:  the result of A     Gemini gets A and B back, with the result of A and the fault of B
//! ```
//!
//! A turn of nothing but faulty calls is answered at once, in a round that the client does not see; that
//! round is kept too, for the calls of the next one. How often Gemini is corrected is a setting
//! (`calls.corrections`); after that, faulty calls are passed on, and the client answers them.

use std::collections::BTreeSet;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use toolgate_core::canon::{
    Answer, Backend, Call, CallInput, Failure, FailureKind, Finish, Issuer, Part, Request,
    ResultPart, Role, Signature, ToolChoice, ToolName, ToolResult, Turn, call_token,
};
use toolgate_core::json::{Raw, Text};
use toolgate_core::tool_loop::{
    AtLimit, End, OnFault, Options, Outcome, Owner as Runs, Step, Steps, ToolLoop, Tools,
};
use toolgate_core::upstream::generate_content::Exchange;

use super::attempts::Attempts;
use super::audit::Audit;
use super::context::Context;
use super::prepare::{Input, prepare};
use super::unary;
use crate::store::Kind;

/// Who judges the calls of a turn, where faulty ones are corrected.
pub(crate) fn judge(
    corrections: u32,
    exchange: &Exchange,
    is_structured: bool,
) -> Option<ToolLoop> {
    if corrections == 0 {
        return None;
    }
    let tools = exchange.tools.iter().map(|tool| (tool.name.clone(), Runs::Caller));
    let aliases = exchange.tools.iter().map(|tool| (tool.name.clone(), tool.alias.clone()));
    let tools = tools.collect::<Tools>().known_as(aliases);
    let fault = OnFault::Answer { rounds: corrections };
    let options = Options {
        max_rounds: corrections.saturating_add(1),
        at_limit: AtLimit::ReturnCalls,
        // Turns that Gemini spoilt are decided in `attempts`.
        retries: 0,
        steps: if is_structured { Steps::Hidden } else { Steps::Shown },
        unknown_tools: fault,
        bad_arguments: fault,
    };
    // Each round is asked as the client asked.
    Some(ToolLoop::new(Vec::new(), ToolChoice::Unset, tools, options))
}

/// An answer in one piece whose calls are judged. All rounds together take no longer than one turn may.
pub(crate) async fn judged(
    context: &Context,
    input: &Input,
    attempts: &mut Attempts,
    audit: &mut Audit,
    tool_loop: ToolLoop,
) -> Result<Answer, Failure> {
    let total = attempts.total();
    let rounds = rounds(context, input, attempts, audit, tool_loop);
    tokio::time::timeout(total, rounds).await.unwrap_or_else(|_| Err(unary::too_long(total)))
}

async fn rounds(
    context: &Context,
    input: &Input,
    attempts: &mut Attempts,
    audit: &mut Audit,
    mut tool_loop: ToolLoop,
) -> Result<Answer, Failure> {
    loop {
        let answer = unary::answer(context, attempts, audit).await?;
        let usage = answer.finish.usage;
        let out_of_turn = |error: toolgate_core::tool_loop::OutOfTurn| internal(error.to_string());
        tool_loop.answer(answer).map_err(out_of_turn)?;
        match tool_loop.step() {
            Step::Generate(next) => {
                audit.corrected(&usage);
                let input = Input {
                    corrections: next.turns.to_vec(),
                    key: attempts.key(),
                    ..input.clone()
                };
                let prepared = prepare(context, &input).await?;
                attempts.next_round(&prepared);
            }
            Step::RunTools(_) => return Err(internal("there is nothing to run".to_owned())),
            Step::Done(outcome) => {
                store(context, outcome);
                return match &outcome.end {
                    End::Answered(answer) | End::Calls { answer, .. } => {
                        let finish = as_seen(outcome, &answer.finish);
                        Ok(Answer { finish, ..answer.clone() })
                    }
                    End::Failed(failure) => Err(failure.clone()),
                    End::Cancelled => Err(internal("the turn was cancelled".to_owned())),
                };
            }
        }
    }
}

fn internal(message: String) -> Failure {
    Failure::new(FailureKind::Internal, message)
}

/// Stored state for the visible calls of a turn.
#[derive(Debug, Deserialize, Serialize)]
struct Record {
    /// Rounds that came before the turn, oldest first.
    before: Vec<Vec<Hidden>>,
    /// Calls of the turn itself.
    beside: Vec<Hidden>,
}

/// A call that the client has not seen.
#[derive(Deserialize, Serialize)]
struct Hidden {
    /// Its place among the calls of its turn.
    at: usize,
    id: String,
    upstream_id: Option<String>,
    namespace: Option<String>,
    name: String,
    /// The arguments: JSON, or the text of a tool that takes text.
    input: String,
    is_text: bool,
    signature: Option<String>,
    model: Option<String>,
    is_vertex: bool,
    /// Answer to the model in place of a result.
    said: String,
}

/// Neither arguments nor signatures.
impl std::fmt::Debug for Hidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hidden").field("at", &self.at).field("name", &self.name).finish()
    }
}

/// Keeps the calls of a turn that the client has not seen, where it has seen others.
pub(crate) fn store(context: &Context, outcome: &Outcome) {
    let End::Calls { answer, paused, .. } = &outcome.end else { return };
    let before = outcome.turns.chunks(2).filter_map(|round| match round {
        [asked, answered] => Some(hidden(asked, answered.parts.iter().filter_map(Part::result))),
        _ => None,
    });
    let record = Record { before: before.collect(), beside: hidden(&paused.turn, &paused.results) };
    if record.before.is_empty() && record.beside.is_empty() {
        return;
    }
    let Ok(record) = serde_json::to_vec(&record).map(Bytes::from) else { return };
    let retention = context.current.config.state_retention;
    for call in answer.calls() {
        // Gemini's own clients know a call by Gemini's id.
        let ids = [Some(call_token(&call.id)), call.upstream_id.as_deref()];
        for id in ids.into_iter().flatten() {
            context.services.store.put(
                context.client.owner,
                Kind::Hidden,
                id,
                record.clone(),
                retention,
            );
        }
    }
}

/// Finish of an answer as the client sees it: losses of hidden calls are not losses of visible ones.
pub(crate) fn as_seen(outcome: &Outcome, finish: &Finish) -> Finish {
    let mut finish = finish.clone();
    let End::Calls { paused, .. } = &outcome.end else { return finish };
    let hidden: BTreeSet<usize> =
        hidden(&paused.turn, &paused.results).into_iter().map(|call| call.at).collect();
    for loss in &mut finish.losses {
        let Some((number, rest)) = loss.call() else { continue };
        loss.at = if hidden.contains(&number) {
            format!("hidden_calls[{number}]{rest}")
        } else {
            format!("calls[{}]{rest}", number - hidden.range(..number).count())
        };
    }
    finish
}

/// The calls of a turn that have results, with them.
fn hidden<'r>(
    turn: &Turn<'static>,
    results: impl IntoIterator<Item = &'r ToolResult<'static>>,
) -> Vec<Hidden> {
    let results: Vec<_> = results.into_iter().collect();
    let calls = turn.parts.iter().filter_map(Part::call).enumerate();
    let calls = calls.filter_map(|(at, call)| {
        let result = results.iter().find(|result| result.call_id.as_ref() == Some(&call.id))?;
        let said = result.content.iter().filter_map(|part| match part {
            ResultPart::Text(text) => Some(text.decode()),
            ResultPart::Json(_) | ResultPart::Media(_) => None,
        });
        let (input, is_text) = match &call.input {
            CallInput::Json(raw) => (raw.get().to_owned(), false),
            CallInput::Text(text) => (text.decode().into_owned(), true),
        };
        let signature = call.signature.as_ref();
        let issuer = signature.and_then(Signature::issuer);
        Some(Hidden {
            at,
            id: call.id.clone().into_owned(),
            upstream_id: call.upstream_id.as_deref().map(str::to_owned),
            namespace: call.tool.namespace.as_deref().map(str::to_owned),
            name: call.tool.name.clone().into_owned(),
            input,
            is_text,
            signature: signature.map(|it| it.expose().to_owned()),
            model: issuer.map(|issuer| issuer.model.clone()),
            is_vertex: issuer.is_some_and(|issuer| issuer.backend == Backend::Vertex),
            said: said.collect(),
        })
    });
    calls.collect()
}

/// Puts hidden calls back into their turns, with the answers to them.
pub(crate) async fn restore(context: &Context, request: &mut Request<'_>) {
    let tokens: Vec<String> = request.calls().map(|call| call_token(&call.id).to_owned()).collect();
    if tokens.is_empty() {
        return;
    }
    let kept = context.services.store.get(context.client.owner, Kind::Hidden, &tokens).await;
    let mut kept = kept.into_iter();
    let mut turns = Vec::with_capacity(request.turns.len() + 2);
    let mut owed: Vec<Part<'_>> = Vec::new();
    // A client may tell the calls of one turn one after the other: each hidden one belongs to the first.
    let mut placed = BTreeSet::new();
    for mut turn in std::mem::take(&mut request.turns) {
        let calls = turn.parts.iter().filter(|part| part.call().is_some()).count();
        let found: Vec<Option<Bytes>> = kept.by_ref().take(calls).collect();
        // Their results stand where the results of the turn before do.
        if turn.role == Role::User {
            turn.parts.append(&mut owed);
        } else if !owed.is_empty() {
            turns.push(Turn { role: Role::User, parts: std::mem::take(&mut owed) });
        }
        let record = found.into_iter().flatten().next();
        match record.and_then(|json| serde_json::from_slice::<Record>(&json).ok()) {
            Some(mut record) => {
                record.before.retain_mut(|round| {
                    round.retain(|call| placed.insert(call.id.clone()));
                    !round.is_empty()
                });
                record.beside.retain(|call| placed.insert(call.id.clone()));
                owed = put_back(record, turn, &mut turns);
            }
            None => turns.push(turn),
        }
    }
    if !owed.is_empty() {
        turns.push(Turn { role: Role::User, parts: owed });
    }
    request.turns = turns;
}

/// Gives the turn as it was; returns the results that belong behind it.
fn put_back<'a>(record: Record, turn: Turn<'a>, turns: &mut Vec<Turn<'a>>) -> Vec<Part<'a>> {
    let first = turn.parts.iter().position(|part| part.call().is_some()).unwrap_or(0);
    let mut said = turn.parts;
    let rest = said.split_off(first);
    for round in record.before {
        let (calls, results) = parts(round);
        said.extend(calls.into_iter().map(|(_, call)| call));
        turns.push(Turn { role: Role::Model, parts: std::mem::take(&mut said) });
        turns.push(Turn { role: Role::User, parts: results });
    }
    let (calls, results) = parts(record.beside);
    let (mut calls, mut at) = (calls.into_iter().peekable(), 0);
    for part in rest {
        if part.call().is_some() {
            while let Some((_, hidden)) = calls.next_if(|(place, _)| *place == at) {
                said.push(hidden);
                at += 1;
            }
            at += 1;
        }
        said.push(part);
    }
    said.extend(calls.map(|(_, call)| call));
    turns.push(Turn { role: Role::Model, parts: said });
    results
}

/// Calls with their places, and their results.
fn parts<'a>(hidden: Vec<Hidden>) -> (Vec<(usize, Part<'a>)>, Vec<Part<'a>>) {
    hidden.into_iter().map(Hidden::into_parts).unzip()
}

impl Hidden {
    fn into_parts<'a>(self) -> ((usize, Part<'a>), Part<'a>) {
        let tool = ToolName { namespace: self.namespace.map(Into::into), name: self.name.into() };
        let backend = if self.is_vertex { Backend::Vertex } else { Backend::Developer };
        let issuer = self.model.map(|model| Issuer { model, backend });
        let signature = self.signature.and_then(|value| Signature::new(value, issuer));
        let result = ToolResult {
            call_id: Some(self.id.clone().into()),
            tool: Some(tool.clone()),
            is_error: true,
            content: vec![ResultPart::Text(Text::new(&self.said))],
            modifiers: Vec::new(),
        };
        let call = Call {
            id: self.id.into(),
            upstream_id: self.upstream_id.map(Into::into),
            tool,
            input: if self.is_text {
                CallInput::Text(Text::new(&self.input))
            } else {
                CallInput::Json(Raw::parse(self.input).unwrap_or_else(Raw::empty_object))
            },
            signature,
        };
        ((self.at, Part::Call(call)), Part::Result(result))
    }
}
