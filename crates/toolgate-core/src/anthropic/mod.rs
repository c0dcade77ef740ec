//! Anthropic's Messages API, as its clients speak it.
//!
//! ```text
//! request   model, system, messages, tools ──► canon::Request      (request, content, message, tools)
//! answer    canon::Event ──► blocks ──► SSE frames │ one message   (compose, activity, stream, response)
//! ```
//!
//! An answer is a row of blocks. [`StreamEncoder`] and [`encode_response`] share the code that says
//! which block a thing becomes, so a streamed answer and a whole one never differ.
//!
//! Signatures travel in `thinking.signature` and `redacted_thinking.data`, the fields that every
//! client of this dialect gives back untouched. Reference: <https://docs.claude.com/en/api/messages>.

mod activity;
mod block;
mod bodies;
mod compose;
mod content;
mod error;
mod history;
mod message;
mod request;
mod response;
mod stream;
mod tools;
mod toolset;
mod vendor;
mod wire;

pub use bodies::{Model, encode_count, encode_model, encode_models};
pub use error::{ThreadRefusal, encode_error, encode_thread_error};
pub use request::{
    Echo, Parsed, StoredTurn, Thread, decode_count_tokens, decode_request, parse_count_tokens,
    parse_request,
};
pub use response::encode_response;
pub use stream::StreamEncoder;
