//! Chat Completions: requests in, answers out.
#![cfg(test)]

#[path = "chat/decode.rs"]
mod decode;
#[path = "chat/encode.rs"]
mod encode;
#[path = "grammar/events.rs"]
mod events;
#[path = "grammar/chat.rs"]
mod grammar;
#[path = "grammar/shown.rs"]
mod shown;
