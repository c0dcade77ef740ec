//! The only place that opens a connection to Gemini.

mod keys;
mod link;
mod token;

pub(crate) use keys::{KeyPool, Rest};
pub(crate) use link::{Credential, Link, Verb, check_model, whole};
