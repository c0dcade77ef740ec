//! Support for the tests of toolgate: grammar checkers, clients, golden files, generators.
//!
//! | module | content |
//! |---|---|
//! | [`grammar`] | checkers of each dialect's streams, bodies and errors |
//! | [`client`] | readers that see an answer as a client of each dialect does, and continue from it |
//! | [`golden`] | the golden files of `toolgate-core` |
//! | [`pipeline`] | the way from a client's request to Gemini, and from Gemini's bytes to the client |
//! | [`decoding`] | the decoder of Gemini's answers alone, its events held against the event grammar |
//! | [`endpoint`] | requests to a gateway's endpoints, and the rules for their answers |
//! | [`outline`] | a decoded conversation as lines of text |
//! | [`chunks`], [`events`], [`schemas`] | generators for property tests |
//! | [`source`] | the repository's own source |
#![expect(
    missing_docs,
    clippy::expect_used,
    clippy::missing_panics_doc,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail as tests do"
)]

pub mod chunks;
pub mod client;
pub mod decoding;
pub mod endpoint;
pub mod events;
pub mod golden;
pub mod grammar;
pub mod outline;
pub mod pipeline;
pub mod schemas;
pub mod source;
