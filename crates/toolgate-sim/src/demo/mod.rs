//! The demo model: a Gemini that needs no script.
//!
//! It reads the last thing that the user said, picks the functions that the words name, fills their
//! arguments from the words so that the schema is satisfied, and tells what came back. Nothing is
//! learned and nothing is random: the same request gets the same answer.

mod answer;
mod choose;
mod fill;
mod prompt;
mod said;
mod speak;

pub(crate) use speak::say;
