//! The demo model, which needs no script.
//!
//! It reads the user's last text, picks the functions that the text names, fills their arguments from
//! the text so that the schema is satisfied, and reports their results. For a coding agent it carries out
//! one routine with the agent's own tools ([`coding`]). It is deterministic: the same request gets the
//! same answer.

mod answer;
mod choose;
mod coding;
mod fill;
mod model;
mod prompt;
mod user_text;

pub(crate) use model::respond;
