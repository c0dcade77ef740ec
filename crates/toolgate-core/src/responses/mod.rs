//! OpenAI's Responses API.
//!
//! ```text
//! input items ─► turns:  reasoning · message · function_call …   one model turn
//!                        function_call_output · user message …   one user turn
//!
//! events ─► items:       added → part added → delta* → done → part done → item done
//!                        … one of response.completed │ incomplete │ failed
//! ```
//!
//! Signatures ride in the `encrypted_content` of `reasoning` items. Tools that OpenAI defines
//! itself and the client runs (`shell`, `apply_patch`, …) are functions to Gemini; their calls come
//! back as OpenAI's own items. A request may refer to stored state (`previous_response_id`, `conversation`,
//! `item_reference`): [`parse_request`] reads its body, and [`Parsed::decode`] decodes it with that state.
//!
//! Reference: <https://platform.openai.com/docs/api-reference/responses>.

mod calls;
mod carriers;
mod choice;
mod compaction;
mod content;
mod echo;
mod echoed;
mod error;
mod fields;
mod frames;
mod hosted;
mod hosted_items;
mod input;
mod items;
mod kept;
mod names;
mod open;
mod options;
mod output;
mod request;
mod response;
mod search;
mod stored;
mod stream;
#[cfg(test)]
mod tests;
mod tools;
mod wire;

pub use compaction::{compaction_item, encode_compacted};
pub use echo::{CallKind, Echo, ItemReference};
pub use error::{encode_bad_request, encode_error, error_body, error_message};
pub use frames::Framing;
pub use input::{input_items, reference_of};
pub use kept::{encode_broken_off, with_status};
pub use names::response_of;
pub use request::{check_metadata, decode_request, parse_request};
pub use response::{Object, encode_object, encode_response};
pub use stored::{Parsed, Stored, StoredItems};
pub use stream::StreamEncoder;
