//! Gemini as clients speak it: requests in, answers out.
#![cfg(test)]

#[path = "gemini_front/decode.rs"]
mod decode;
#[path = "gemini_front/encode.rs"]
mod encode;
#[path = "grammar/events.rs"]
mod events;
#[path = "grammar/gemini.rs"]
mod grammar;
#[path = "grammar/shown.rs"]
mod shown;
