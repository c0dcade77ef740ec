//! Google's strictness: what the Gemini API would say to a request.
//!
//! ```text
//! body ──► parse ──► rules ──► capability ──► Accepted
//!            │         │           │
//!            └─────────┴───────────┴────────► GoogleError, in Google's words
//! ```
//!
//! 1. *Parse*: JSON to a request message. Unknown names, wrong kinds, bad enum values, fields given
//!    twice, too much depth. All faults are listed.
//! 2. *Rules*: what the message may mean. Schemas, names, emptiness, ranges, the order of turns.
//! 3. *Capability*: what the model can do. Thinking, tool combinations, signatures.
//!
//! Each stage hides the next, as it does at Google. The table of fields is derived from Google's
//! discovery documents by `scripts/derive_fields.py`; the rules are a reading of its documentation
//! and of what others have measured. Encoders are tested against this, and the simulator is built
//! on it; nothing that runs in front of the real API uses it.

mod accepted;
mod capability;
mod check;
mod error;
mod fields;
mod json_schema;
mod model;
mod parse;
mod path;
mod request;
mod rules;
mod schema;
mod tree;
mod turns;

pub use accepted::{Accepted, AnySignature, Counts, Mismatch, SignatureCheck, SignatureVerdict};
pub use check::{Method, Parsed, parse_request, request};
pub use error::{GoogleError, Violation};
pub use model::{Generation, Model};
pub use request::{Calling, Content, Data, Function, Mode, Part, Request, Settings, Token};
