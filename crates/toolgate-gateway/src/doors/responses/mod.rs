//! The Responses API.
//!
//! ```text
//!   POST /v1/responses ─► create ─┐
//!   GET  (WebSocket)   ─► socket ─┴─► session ─► turn
//!   …/{id}             ─► stored        background: a turn that nobody waits for
//!   /v1/conversations  ─► conversations
//! ```

mod background;
mod compact;
mod conversations;
mod create;
mod door;
mod inbound;
mod live;
mod page;
mod prewarm;
mod socket;
mod stored;

pub(crate) use door::{methods, responses};
pub(crate) use live::{LiveAnswers, is_unfinished, progress};
pub(super) use page::parameter;
