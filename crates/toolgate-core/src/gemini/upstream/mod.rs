//! Speaking to Gemini: its rules, its quirks, its errors.

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
pub use decode::{StreamDecoder, decode_response};
pub use encode::{
    EncodeOptions, Encoded, Learned, SchemaPolicy, encode_count_tokens, encode_request,
};
pub use exchange::{AnswerFunction, Backend, Exchange, Target, ToolEntry, ToolInput};
pub use fail::{decode_error, refuses_credential};
pub use names::alias;
pub use profile::{Generation, Mixing, Profile, ThinkingControl};
pub use signatures::{SignatureCount, content_key};
