//! The Responses API.
//!
//! ```text
//!   POST /v1/responses ─► create ────┐
//!   GET  (WebSocket)   ─► websocket ─┴─► sessions ─► turn
//!   …/{id}             ─► stored          background: turns without a waiting client
//!   /v1/conversations  ─► conversations
//! ```

mod background;
mod compact;
mod conversations;
mod create;
mod endpoints;
mod inbound;
mod page;
mod prewarm;
mod stored;
mod websocket;

pub(crate) use endpoints::{Endpoint, responses};
pub(super) use page::parameter;
