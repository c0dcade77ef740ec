//! Speaking to Gemini: its rules, its quirks, its errors.

mod decode;
mod exchange;
mod fail;

pub use decode::{StreamDecoder, decode_response};
pub use exchange::{Backend, Exchange, Target, ToolEntry, ToolInput};
pub use fail::decode_error;
