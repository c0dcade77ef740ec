//! Clients of the Gemini API.

mod auth;
mod builder;
mod core;
mod generate;
mod link;
mod models;
mod retry;

pub use auth::TokenSource;
pub use builder::ClientBuilder;
pub use models::{Model, TokenCount};
pub use retry::Retries;

pub use self::core::Client;
pub(crate) use link::Attempt;
pub(crate) use retry::random;
