//! Thought signatures: never lost, never doubled, never shown to a model that did not issue them.
//!
//! ```text
//! envelopes of clients     ─► Request::place_signatures ─► parts carry their own signatures
//! signatures from a store  ─► content_key ───────────────┘            │
//!                                                                     ▼
//!                             Ledger: whose is it, was it sent already, is it real?
//! ```

mod content_key;
mod ledger;
mod place;

pub use content_key::content_key;
pub use ledger::SignatureCount;
pub(super) use ledger::{Ledger, Sent};
pub(super) use place::plain;
