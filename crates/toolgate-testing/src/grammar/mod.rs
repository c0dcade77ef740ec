//! Grammar checkers of the client dialects.
//!
//! They are written from the vendors' documentation and share nothing with the encoders they judge.

pub mod anthropic;
pub mod chat;
pub mod gemini;
pub mod responses;

mod check;

pub use check::{check_body, check_error, check_stream};
