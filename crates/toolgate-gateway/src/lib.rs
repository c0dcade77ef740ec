//! The gateway: four client APIs, Gemini upstream.
//!
//! ```text
//!   http ─► api ─► { sessions, turn } ─► { signatures, upstream } ─► toolgate-store
//! ```
//!
//! Each layer uses only those below it; `cargo xtask house` checks that. Open `http/router.rs` first, then
//! `api/messages.rs`, then `turn/stream.rs`. Only `config` reads the user's settings, only `upstream` opens
//! connections to Gemini, only `turn/stream.rs` moves translated stream bytes.

mod admission;
mod api;
mod auth;
mod budget;
mod clock;
pub mod config;
mod http;
pub mod identity;
mod logging;
mod metrics;
mod offload;
mod receive;
mod redact;
mod service;
mod sessions;
mod signatures;
mod state;
mod store;
mod tasks;
mod threads;
mod turn;
mod upstream;

pub use logging::{LogGuard, start_log};
pub use service::{Options, Running, ServiceError, start, start_with};
pub use upstream::Embedded;
