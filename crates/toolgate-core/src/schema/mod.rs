//! Tool schemas: what Gemini gets of them, and how arguments are checked against them.

mod check;
mod compile;

pub use check::{Checked, Checker};
pub use compile::{Cache, Compiled, Emit, Placement, compile};
