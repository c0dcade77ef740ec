//! Opens the session of a message thread: Anthropic requests that hold only new messages.
//!
//! Anthropic's SDKs create a thread by default when they run tools, and continue it with nothing but the
//! results. System prompt and tools are those that the thread was last given.

use std::ops::Range;

use bytes::Bytes;
use toolgate_core::anthropic::{Thread, ThreadRefusal};

use super::chain::{self, Origin};
use super::conversation::Tools;
use super::history::History;
use super::recorder::{Question, Recorder};
use super::{Opened, SessionError, Sessions};

/// Reads the history of a request; `None` where it is in no thread. `repeated`: places in the body
/// that the requests of a thread repeat.
pub(crate) async fn open(
    sessions: &Sessions,
    thread: &Thread,
    body: &Bytes,
    repeated: Vec<Range<usize>>,
) -> Result<Option<Opened>, SessionError> {
    let mut history = History::default();
    let mut origin = Origin::default();
    match thread {
        Thread::None => return Ok(None),
        Thread::Create => {}
        Thread::Continue { previous_message_id } => {
            let unknown = || SessionError::Thread(ThreadRefusal::NotFound);
            // Responses are stored beside messages.
            if !previous_message_id.starts_with("msg_") {
                return Err(unknown());
            }
            let chain = chain::chain(sessions, previous_message_id).await;
            // The client has all messages, and sends them again rather than continue without some.
            let chain = chain.filter(|chain| chain.missing.is_empty()).ok_or_else(unknown)?;
            let turn = |(_, record): chain::Pair| (record.question, record.answer);
            history.thread = chain.pairs.into_iter().map(turn).collect();
            origin = Origin::after(chain.path);
        }
    }
    let recorder = Recorder {
        sessions: sessions.clone(),
        question: Question::Messages { body: body.clone(), repeated },
        origin,
        tools: Tools::Same,
    };
    Ok(Some(Opened { history, recorder }))
}
