//! The only place that opens a connection to Gemini.

mod embedded;
mod keys;
mod link;
mod token;

pub use embedded::Embedded;
pub(crate) use keys::{KeyPool, Rest};
pub(crate) use link::{Credential, Link, Verb, check_model, error_body, whole};
