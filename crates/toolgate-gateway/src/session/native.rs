//! A request to the native endpoint and what the store adds to it.

use std::sync::Arc;

use bytes::Bytes;
use toolgate_core::gemini::{NativePieces, native_pieces};
use toolgate_core::translate::Dialect;

use super::before::Before;
use super::chain::Origin;
use super::conversation::{Conversation, Tools};
use super::keeper::{Keeper, Question};
use super::responses::{require, text};
use super::{Opened, Refused};
use crate::doors::Visit;

/// Completes a request from the store; `None` where it names no conversation.
pub(crate) async fn open(visit: &Visit, body: &Bytes) -> Result<Option<Opened>, Refused> {
    if memchr::memmem::find(body, b"\"conversation\"").is_none() {
        return Ok(None);
    }
    let NativePieces { conversation, contents, tools, tool_config } = native_pieces(text(body)?)?;
    let Some(name) = conversation else { return Ok(None) };
    let (app, owner) = (&visit.app, visit.client.owner);
    let conversation = Conversation { app, owner, id: &name };
    require(&conversation).await?;
    let (seen, said) = conversation.read().await;
    let mut before = Before::new(&said);
    if tools.is_none()
        && let Some(sticky) = conversation.tools().await
    {
        before.old_choice = tool_config.is_none();
        before.tools = Some((sticky.dialect, sticky.body()));
    }
    let keeper = Keeper {
        app: Arc::clone(app),
        owner,
        question: Question::Contents { contents, token: visit.stamp().ids.token() },
        origin: Origin { conversation: Some(seen), ..Origin::default() },
        tools: Tools::new(Dialect::Gemini, tools.as_deref(), tool_config.as_deref()),
    };
    Ok(Some(Opened { body: body.clone(), before, keeper }))
}
