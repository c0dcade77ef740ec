//! Gemini's answer, from its bytes to events.
//!
//! ```text
//! bytes ─► sse::Reader ─► frame ─► wire::Chunk ─► Turn ─► Event
//!                                                  ├─ call: one functionCall after the other,
//!                                                  │        whole or in pieces (partial)
//!                                                  └─ end:  the last finishReason
//! ```
//!
//! Chunks are deltas. A `finishReason` ends nothing: Gemini sends one in the middle of a turn with
//! built-in tools, some back ends one with every chunk. Only the end of the input ends the turn,
//! and the last reason counts.

mod activity;
mod call;
mod end;
mod grounding;
mod imitation;
mod names;
mod partial;
mod stream;
mod turn;
mod wire;

pub use activity::{CodePart, decode_activity};
pub use grounding::decode_grounding;
pub use stream::{StreamDecoder, decode_response};
