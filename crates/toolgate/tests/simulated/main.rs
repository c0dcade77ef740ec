//! The SDK against the simulator with all of Google's checks, in tokio's paused time.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod budget;
mod chat;
mod client;
mod generate;
mod history;
mod mixed;
mod repair;
mod replay;
mod saved;
mod steering;
mod steps;
mod streaming;
mod structured;
mod surface;
mod tools;

mod support;
