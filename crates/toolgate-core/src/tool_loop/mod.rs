//! The automatic function-calling loop, without the calls.
//!
//! ```text
//!                ┌───────────────── results ◄──────────────────┐
//!                ▼                                             │
//!  new ───► Generate ──► answer ──┬─ calls to run here ──► RunTools
//!                ▲ ▲              ├─ the caller's calls ─► Done ───► resume ─┐
//!                │ └─── fail ◄────┤                                          │
//!                │    (retried)   └─ no calls ───────────► Done              │
//!                └───────────────────────────────────────────────────────────┘
//! ```
//!
//! Nothing here runs a tool or talks to a model: the driver does, and feeds the results back.
//!
//! ```
//! use toolgate_core::canon::{Answer, Failure, ToolChoice};
//! use toolgate_core::tool_loop::{Generate, OutOfTurn, Outcome, Step, ToolLoop};
//! # use toolgate_core::canon::{Call, ToolResult};
//! # fn ask(_: Generate<'_>) -> Result<Answer, Failure> { Ok(Answer::default()) }
//! # fn run(_: &Call<'static>) -> ToolResult<'static> { unreachable!() }
//!
//! fn drive(mut run_loop: ToolLoop) -> Result<Option<Outcome>, OutOfTurn> {
//!     loop {
//!         match run_loop.step() {
//!             Step::Generate(request) => match ask(request) {
//!                 Ok(answer) => run_loop.answer(answer)?,
//!                 Err(failure) => run_loop.fail(failure)?,
//!             },
//!             Step::RunTools(calls) => {
//!                 let results = calls.iter().map(run).collect();
//!                 run_loop.results(results)?;
//!             }
//!             Step::Done(_) => return Ok(run_loop.into_outcome()),
//!         }
//!     }
//! }
//! # let run_loop = ToolLoop::new(vec![], ToolChoice::Auto, [].into_iter().collect(), Default::default());
//! # assert!(drive(run_loop).unwrap().is_some());
//! ```
//!
//! Some tools may belong to the caller: their calls come back to it. A turn that calls tools of
//! both kinds runs ours, keeps their results, and shows the caller only its own calls; when its
//! results come, [`Paused::resume`] restores the model's turn as it was and puts all results
//! behind it, in the order of the calls.
//!
//! The history never holds a call without its result: open calls are in [`Paused`].

mod machine;
mod options;
mod outcome;
mod relay;
mod reply;
#[cfg(test)]
mod tests;
mod turn;

pub use machine::{CallFault, Generate, OutOfTurn, RefusedCall, Step, ToolLoop};
pub use options::{AtLimit, OnFault, Options, Owner, Steps, Tools};
pub use outcome::{End, Outcome, Paused, Resumed, Unfinished};
pub use relay::Relay;
