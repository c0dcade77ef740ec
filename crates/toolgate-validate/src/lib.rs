//! The rules by which Google accepts or refuses a Gemini request.
//!
//! ```text
//! body ──► parse ──► rules ──► capability ──► Accepted
//!            │         │           │
//!            └─────────┴───────────┴────────► GoogleError, in Google's words
//! ```
//!
//! 1. *Parse*: JSON to a request message. Unknown names, wrong kinds, bad enum values, duplicate
//!    fields, excessive depth. All faults are listed.
//! 2. *Rules*: constraints that hold for every model. Schemas, names, empty values, ranges, the order
//!    of turns.
//! 3. *Capability*: constraints of the model. Thinking, tool combinations, signatures.
//!
//! A fault in one stage hides the next stages, as it does at Google. The table of fields is derived
//! from Google's discovery documents by `scripts/derive_fields.py`; the rules follow its documentation
//! and published measurements. Encoders are tested against this crate, and the simulator is built on
//! it; nothing that runs in front of the real API uses it.

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
pub use check::{Method, Parsed, check_request, parse_request};
pub use error::{GoogleError, Violation};
pub use model::{Generation, Model};
pub use request::{Calling, Content, Data, Function, Mode, Part, RawSignature, Request, Settings};
