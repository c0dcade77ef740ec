//! Gemini's bytes become the right events, whole and in pieces.

mod cuts;
mod errors;
mod golden;
mod laws;
mod rules;
mod support;
