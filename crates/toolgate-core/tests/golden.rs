//! The whole path, from a client's request to Gemini and from Gemini's bytes back to the client,
//! over the golden files and over made-up conversations, in all four dialects.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test that panics has failed"
)]

#[path = "decode/chunks.rs"]
mod chunks;
#[path = "whole/client.rs"]
mod client;
#[path = "whole/cuts.rs"]
mod cuts;
#[path = "whole/errors.rs"]
mod errors;
#[path = "whole/grammar.rs"]
mod grammar;
#[path = "whole/hard.rs"]
mod hard;
#[path = "whole/laws.rs"]
mod laws;
#[path = "whole/requests.rs"]
mod requests;
#[path = "whole/round_trip.rs"]
mod round_trip;
#[path = "whole/scenarios.rs"]
mod scenarios;
#[path = "schema/generate.rs"]
mod schemas;
#[path = "whole/snapshots.rs"]
mod snapshots;
#[path = "whole/strict.rs"]
mod strict;
#[path = "whole/support.rs"]
mod support;
