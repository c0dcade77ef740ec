//! State that outlives a request: answers to continue from, and conversations.
//!
//! ```text
//!   request ─► open ─┬─► history, decoded with the request ─► a turn ─┐
//!                    └─► Recorder ◄──────────────── the finished answer ─┘
//!                          │
//!        Answer · Events · Shared      conversation: Log · Tools
//! ```
//!
//! A conversation may be continued in another dialect than it was started in: each item is stored in its own
//! dialect, and decoded by it.

mod chain;
mod conversation;
mod handle;
mod history;
mod items;
mod last_answer;
mod log;
mod native;
pub(crate) mod progress;
mod record;
mod recorder;
mod refusal;
mod responses;
mod shared_text;
mod threads;

pub(crate) use chain::{delete as delete_response, question_items};
pub(crate) use conversation::{Conversation, Head, Tools, id_of};
pub(crate) use handle::{Opened, SessionState, Sessions};
pub(crate) use history::{History, StoredItem};
pub(crate) use items::{check_items, fields_of, is_trigger, named as named_item};
pub(crate) use last_answer::LastAnswer;
pub(crate) use native::open as open_native;
pub(crate) use record::{EncodedAnswer, EventLog, Record, events};
pub(crate) use recorder::Recorder;
pub(crate) use refusal::{SessionError, away};
pub(crate) use responses::{open as open_responses, text};
pub(crate) use threads::open as open_thread;
