//! Google's Gemini API as a dialect of clients.
//!
//! [`upstream`](crate::upstream) speaks to Google; this module knows nothing of it. Reference:
//! <https://ai.google.dev/api/generate-content>.

mod error;
mod native;
mod request;
mod request_config;
mod request_parts;
mod request_tools;
mod response;
mod stream;
mod wire;

pub use error::{encode_error, encode_error_list};
pub use native::{NativePieces, native_pieces};
pub use request::{Echo, Framing, Native, decode_count_tokens, decode_native, decode_request};
pub use response::encode_response;
pub use stream::StreamEncoder;
