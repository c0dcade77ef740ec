//! A coding routine for agents: look, read, edit, run, summarise.
//!
//! An agent is recognised by its tools: one that runs commands and one that changes files. The routine
//! finds the tools by their names and parameters, never by the agent, and derives its next step from the
//! calls and results since the user's text. Every step is taken at most once, so that it always ends.

mod bug;
mod expression;
mod history;
mod intent;
mod report;
mod routine;
mod source;
mod toolset;

pub(super) use routine::{Next, choosable, next};
