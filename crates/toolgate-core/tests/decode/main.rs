//! Gemini's bytes become the right events, whole and in pieces.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

mod calls;
mod cuts;
mod errors;
mod golden;
mod laws;
mod rules;
