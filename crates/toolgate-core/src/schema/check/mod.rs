//! Checking a call's arguments against the client's own schema, and repairing small differences.
//!
//! ```text
//! schema ──build──► nodes ─┐
//!                          ├─ fits? ── yes ──► the arguments as they came
//! args ────tape───► tokens ┘     └──── no ───► repair: edits of the text, and losses
//! ```
//!
//! Arguments are never parsed into a tree and written again: what fits keeps its bytes, and a
//! repaired value replaces its own bytes only.

mod build;
mod checker;
mod closure;
mod fit;
mod listed;
mod repair;
mod tape;
#[cfg(test)]
mod tests;

pub use checker::{Checked, Checker};
pub use repair::Repair;

/// Losses of one check, of which there are few.
type Losses = Vec<crate::canon::Loss>;
