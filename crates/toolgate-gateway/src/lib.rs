//! The gateway: four front doors, Gemini behind them.
//!
//! ```text
//!   server ─► lanes ─► route ─► doors ─► turn ─► upstream ─► Gemini
//!                        │                │
//!                      auth             store
//! ```
//!
//! Open [`route`](crate) first, then `doors/turns.rs`, then `turn/pump.rs`. Only `config` reads what the
//! user wrote, only `upstream` dials out, only `turn/pump.rs` moves translated stream bytes.

mod admission;
mod app;
mod auth;
mod budget;
mod clock;
pub mod config;
mod doors;
pub mod identity;
mod lanes;
mod line;
mod log;
mod metrics;
mod offload;
mod origin;
mod receive;
mod redact;
mod reply;
mod route;
mod server;
mod service;
mod session;
mod store;
mod tasks;
mod turn;
mod upstream;

pub use app::App;
pub use log::{LogGuard, start_log};
pub use server::Server;
pub use service::{Options, Running, ServiceError, start, start_with};
pub use upstream::Embedded;
