//! Opens the session of a request to the native endpoint.

use bytes::Bytes;
use toolgate_core::translate::Dialect;

use super::chain::Origin;
use super::conversation::{Conversation, Tools};
use super::history::History;
use super::recorder::{Question, Recorder};
use super::responses::require;
use super::{Opened, SessionError, Sessions};

/// Reads the history of a conversation. `token` makes the ids of the turn's items.
pub(crate) async fn open(
    sessions: &Sessions,
    conversation: &str,
    has_tools: bool,
    has_choice: bool,
    body: &Bytes,
    token: String,
) -> Result<Opened, SessionError> {
    let conversation = Conversation { sessions, id: conversation };
    require(&conversation).await?;
    let (seen, stored) = conversation.read().await;
    let mut history = History::of_conversation(stored, Dialect::Gemini);
    if !has_tools {
        history.set_tools(conversation.tools().await, Dialect::Gemini, has_choice);
    }
    let recorder = Recorder {
        sessions: sessions.clone(),
        question: Question::Native { body: body.clone(), token },
        origin: Origin { conversation: Some(seen), ..Origin::default() },
        tools: Tools::Same,
    };
    Ok(Opened { history, recorder })
}
