//! The pure heart of toolgate.
//!
//! ```text
//!   client bytes ──► anthropic │ responses │ chat │ gemini  decode_request ──► canon::Request
//!                                                                                   │
//!                               schema · names · signatures · history               │
//!                                                                                   ▼
//!                                                     upstream::encode_request ──► Gemini bytes
//!
//!   Gemini bytes ──► upstream::StreamDecoder ──► canon::Event ──► a dialect's Encoder ──► client bytes
//! ```
//!
//! Nothing here performs I/O, reads a clock or the environment, or draws a random number: bytes,
//! identifiers' seeds and times are arguments. The same input gives the same output, byte for byte.
//!
//! Text and JSON values are kept as they were written ([`json::Text`], [`json::Raw`]): a request is
//! scanned, not parsed into a tree, and values that need no change are copied as slices.

pub mod anthropic;
pub mod bounded;
pub mod canon;
pub mod chat;
pub mod dialect;
pub mod gemini;
pub mod json;
pub mod responses;
pub mod schema;
pub mod seal;
pub mod sse;
pub mod tool_loop;
pub mod translate;
pub mod upstream;
