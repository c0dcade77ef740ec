//! Tool schemas: what Gemini gets of them, and how arguments are checked against them.

mod cache;
mod check;
mod compile;
mod distinct;
mod emit;
mod finding;
mod given;
mod keywords;
mod node;
mod notes;
mod number;
mod read;
mod refs;
pub mod report;
mod size;
mod tree;
mod types;
mod values;
mod words;

pub use cache::{Cache, CacheStats};
pub use check::{Checked, Checker, Repair};
pub use compile::{ANSWER, Compiled, Emit, Placement, compile, compile_output};
pub use keywords::{KEYWORDS, Keyword, Treatment};
pub use size::{MAX_BYTES, MAX_VALUES};
