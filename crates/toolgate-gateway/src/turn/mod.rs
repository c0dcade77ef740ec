//! One turn: decode, encode, ask, and answer, again where that can save it.
//!
//! ```text
//!   body ─► prepare ─► Plan ─┬─► Pump    (streamed)
//!             ▲              └─► unary   (in one piece)
//!             └─── hidden: a round that tells Gemini what is wrong with its calls
//! ```

mod hidden;
mod keep;
mod ledger;
mod lessons;
mod lineup;
mod opening;
mod plan;
mod prepare;
mod pump;
mod timing;
mod trace;
mod unary;

pub(crate) use hidden::{judge, judged};
pub(crate) use ledger::{LOGGED, Ledger, Unread};
pub(crate) use lessons::{RefusalMemory, Scope, is_about_signatures};
pub(crate) use opening::{Refusal, again, open, read, read_checked, silent};
pub(crate) use plan::Plan;
pub(crate) use prepare::{Ask, Prepared, Trust, count_tokens, prepare};
pub(crate) use pump::{First, Pump};
pub(crate) use timing::{Due, Timing};
pub(crate) use trace::session_of;
pub(crate) use unary::{answer, too_long};
