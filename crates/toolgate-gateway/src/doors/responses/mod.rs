//! The Responses API.
//!
//! ```text
//!   POST /v1/responses ─► create ─┐
//!   GET  (WebSocket)   ─► socket ─┴─► session ─► turn
//! ```

mod create;
mod door;
mod prewarm;
mod socket;

pub(crate) use door::responses;
