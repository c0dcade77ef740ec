//! One turn: prepare the request, send it, answer; again where that can save the turn.
//!
//! ```text
//!   request ─► prepare ─► run ─► attempts ─┬─► stream   (streamed)
//!                ▲                          └─► unary    (in one piece)
//!                └───── corrections: a round that answers faulty calls to the model
//! ```

mod attempts;
mod audit;
mod context;
mod corrections;
mod deadlines;
mod prepare;
mod refusals;
mod run;
mod send;
mod stream;
mod unary;

pub(crate) use attempts::Attempts;
pub(crate) use audit::Audit;
pub(crate) use context::{Context, Current, Services};
pub(crate) use deadlines::{Deadlines, Due};
pub(crate) use prepare::{Input, Prepared, Source, Trust, prepare_count, prepare_decoded};
pub(crate) use refusals::{RefusalMemory, Scope, is_about_signatures};
pub(crate) use run::{Answered, Outcome, run};
pub(crate) use send::{SendError, again, open, read, read_checked, silent};
pub(crate) use stream::TurnStream;
pub(crate) use unary::too_long;
