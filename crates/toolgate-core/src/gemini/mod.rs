//! Google's Gemini API: a dialect that clients speak, and the one that we speak upstream.
//!
//! The client's side has the same files as every dialect. [`upstream`] is the only place that
//! knows Gemini's quirks. Reference: <https://ai.google.dev/api/generate-content>.

pub mod upstream;

pub use upstream::{
    Backend, Exchange, StreamDecoder, Target, ToolEntry, ToolInput, decode_error, decode_response,
};
