//! Bounds on the memory and work that a request causes in the core, for every body.
#![expect(clippy::panic, clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[path = "bounds/answers.rs"]
mod answers;
#[path = "bounds/bodies.rs"]
mod bodies;
#[path = "bounds/losses.rs"]
mod losses;
#[path = "bounds/size.rs"]
mod size;
#[path = "bounds/surrogates.rs"]
mod surrogates;
