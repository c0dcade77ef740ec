//! Gemini's `generateContent` API: encoding of requests, decoding of answers and errors.
//!
//! Reference: <https://ai.google.dev/api/generate-content>.

mod continuation;
mod decode;
mod encode;
mod exchange;
mod fail;
mod history;
mod names;
mod profile;
mod signatures;

pub use continuation::{MAX_CONTINUATIONS, continued};
pub use decode::{CodePart, StreamDecoder, decode_activity, decode_grounding, decode_response};
pub use encode::{
    EncodeOptions, Encoded, Learned, SchemaPolicy, encode_count_tokens, encode_request,
};
pub use exchange::{AnswerFunction, Exchange, ToolEntry, ToolInput};
pub use fail::{decode_error, refuses_credential};
pub use names::alias;
pub use profile::{Generation, Mixing, Profile, ThinkingControl};
pub use signatures::{SignatureCount, content_key};
