//! The whole path, from a client's request to Gemini and from Gemini's bytes back to the client,
//! over the golden files and over made-up conversations, in all four dialects.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test that panics has failed"
)]

mod cuts;
mod errors;
mod hard;
mod laws;
mod requests;
mod round_trip;
mod scenarios;
mod snapshots;
mod strict;
