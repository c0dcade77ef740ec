//! Conversations and paused runs that outlive the process.

mod form;
mod read;
mod write;

pub(crate) use form::OpenedChat;
pub use form::{SavedChat, SavedRun, SavedTurns};
