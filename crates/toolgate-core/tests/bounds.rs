//! What a request may make the core hold and do: bounds that do not depend on what a body says.
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
