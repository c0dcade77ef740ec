//! The Gemini API: requests and answers are passed through unchanged, and observed.
//!
//! Where Gemini refuses a client's history (a resumed gemini-cli sends results twice), or answers it
//! with nothing, as its newer models do, it is mended as for every other dialect and sent once more.
//! Tools that Gemini refuses are mended at once when they come again.

mod array;
mod forward;
mod generate;
mod passthrough;

pub(crate) use generate::{generate, methods, native};
