//! Speaking to Gemini: its rules, its quirks, its errors.

mod exchange;

pub use exchange::{Backend, Exchange, Target, ToolEntry, ToolInput};
