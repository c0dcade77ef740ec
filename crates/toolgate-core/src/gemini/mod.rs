//! Google's Gemini API: a dialect that clients speak, and the one that we speak upstream.
//!
//! The client's side has the same files as every dialect. [`upstream`] is the only place that
//! knows Gemini's quirks. Reference: <https://ai.google.dev/api/generate-content>.

mod error;
mod grounding;
mod native;
mod request;
mod request_config;
mod request_parts;
mod request_tools;
mod response;
mod stream;
pub mod upstream;
mod wire;

pub use error::{encode_error, encode_error_list};
pub use grounding::{Citation, citations};
pub use native::{NativePieces, native_pieces};
pub use request::{Echo, Framing, Native, decode_count_tokens, decode_native, decode_request};
pub use response::encode_response;
pub use stream::StreamEncoder;
pub use upstream::{
    Backend, Exchange, StreamDecoder, Target, ToolEntry, ToolInput, decode_error, decode_response,
};
