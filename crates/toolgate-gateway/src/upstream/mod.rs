//! The only place that opens a connection to Gemini.

mod client;
mod embedded;
mod health;
mod key_pool;
mod oauth;

pub(crate) use client::{Credential, UpstreamClient, check_model, error_body, whole};
pub use embedded::Embedded;
pub(crate) use key_pool::{KeyPool, Rest};
pub(crate) use toolgate_transport::Verb;
