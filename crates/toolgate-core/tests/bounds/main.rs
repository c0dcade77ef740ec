//! Bounds on the memory and work that a request causes in the core, for every body.
#![expect(clippy::panic, clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod answers;
mod bodies;
mod losses;
mod size;
mod surrogates;
