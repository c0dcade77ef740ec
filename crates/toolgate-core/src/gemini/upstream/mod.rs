//! Speaking to Gemini: its rules, its quirks, its errors.

mod exchange;
mod fail;

pub use exchange::{Backend, Exchange, Target, ToolEntry, ToolInput};
pub use fail::decode_error;
