//! What clients ask to be remembered: answers to go on from, and conversations.
//!
//! ```text
//!   body ─► open ─┬─► the body with what was said before ─► a turn ─┐
//!                 └─► Keeper ◄──────────────── the finished answer ─┘
//!                       │
//!        Answer · Events · Shared      conversation: Log · Tools
//! ```
//!
//! A conversation may be carried on in another dialect than it was begun in: what was said is kept
//! as it was said, and read by the dialect that said it.

mod before;
mod chain;
mod conversation;
mod items;
mod keeper;
mod local;
mod log;
mod native;
mod record;
mod refused;
mod responses;
mod shared;
mod threads;

pub(crate) use before::{Before, Said, splice};
pub(crate) use chain::{delete as delete_response, question_items};
pub(crate) use conversation::{Conversation, Head, Tools, id_of};
pub(crate) use items::{check_items, fields_of, is_trigger, named as named_item, text_of};
pub(crate) use keeper::Keeper;
pub(crate) use local::Local;
pub(crate) use native::open as open_native;
pub(crate) use record::{Record, Shown, Whole, events};
pub(crate) use refused::{Refused, away};
pub(crate) use responses::{open as open_responses, text};
pub(crate) use shared::Shared;
pub(crate) use threads::{open as open_thread, own_place};

use bytes::Bytes;

/// A request, completed from the store.
#[derive(Debug)]
pub(crate) struct Opened {
    /// The body to be decoded.
    pub(crate) body: Bytes,
    /// What was said before and does not stand in the body.
    pub(crate) before: Before,
    /// Keeps the answer.
    pub(crate) keeper: Keeper,
}
