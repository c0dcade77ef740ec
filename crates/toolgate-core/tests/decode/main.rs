//! Gemini's bytes become the right events, whole and in pieces.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

mod calls;
mod chunks;
mod cuts;
mod errors;
mod golden;
mod laws;
mod rules;
mod support;
