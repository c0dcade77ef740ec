//! From the canonical request to Gemini's.
//!
//! ```text
//! Request ─┬─ Aliases ── Toolbox (schema::Cache) ──► tools, toolConfig, Exchange
//!          ├─ Ledger ─ Conversation (history) ───► contents
//!          └─ Profile, Learned ─ settings ───────► generationConfig
//! ```
//!
//! The body is written in one go, members always in this order: `systemInstruction`, `tools`,
//! `toolConfig`, `contents`, `generationConfig`, then Gemini's own fields in the client's order.
//! What changes least comes first, since Gemini caches by prefix. Names are camelCase. The same
//! request gives the same bytes.

mod contents;
mod declare;
mod learn;
pub(super) mod media;
mod options;
mod output;
mod request;
mod response;
mod settings;
mod thinking;
mod toolbox;
mod tools;

pub use options::{EncodeOptions, Encoded, Learned, SchemaPolicy};
pub use request::{encode_count_tokens, encode_request};
