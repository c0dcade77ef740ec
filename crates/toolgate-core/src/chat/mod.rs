//! OpenAI's Chat Completions: `POST /v1/chat/completions` and `GET /v1/models`.
//!
//! Signatures ride where Google's own compatible endpoint puts them: in
//! `extra_content.google.thought_signature` of the tool call, or of the message for everything
//! that is not a call. Reference: <https://platform.openai.com/docs/api-reference/chat>.

mod carrier;
mod content;
mod error;
mod message;
mod models;
mod request;
mod response;
mod settings;
mod stream;
mod tools;
mod wire;

pub use error::encode_error;
pub use models::{ModelInfo, encode_model, encode_models};
pub use request::{Echo, decode_request};
pub use response::encode_response;
pub use stream::StreamEncoder;
