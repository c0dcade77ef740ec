//! Reading content that may hold something broken or new.
//!
//! A body is read in one go where that works. Where it does not, each block is looked at alone: a
//! broken one is an error with its place, and one of a type that this version does not know is kept
//! as it is.

use super::message::{Reader, is_server_result, required};
use super::wire;
use crate::canon::{BadRequest, Losses};
use crate::json::{self, Kind, Path, Raw, Text};

/// The JSON text for as long as the body lives. Mirrors always borrow from it.
pub(super) fn slice<'a>(raw: &Raw<'a>) -> &'a str {
    raw.as_borrowed().unwrap_or("null")
}

impl<'a> Reader<'a, '_> {
    /// Reads the content of messages that could not be read in one go.
    pub(super) fn contents(
        &mut self,
        messages: Vec<wire::Message<'a, Raw<'a>>>,
    ) -> Result<Vec<wire::Message<'a, wire::Content<'a>>>, BadRequest> {
        let at = Path::Root.field("messages");
        let mut read = Vec::with_capacity(messages.len());
        for (index, message) in messages.into_iter().enumerate() {
            let wire::Message { role, content, clear_at, output_config } = message;
            let at = at.index(index);
            let content =
                content.map(|raw| self.content(&raw, &at.field("content"))).transpose()?;
            read.push(wire::Message { role, content, clear_at, output_config });
        }
        Ok(read)
    }

    /// Reads content: a string, or blocks.
    pub(super) fn content(
        &mut self,
        raw: &Raw<'a>,
        at: &Path<'_>,
    ) -> Result<wire::Content<'a>, BadRequest> {
        match raw.kind() {
            Kind::String => Ok(wire::Content::Text(raw.clone().into_text().unwrap_or(Text::EMPTY))),
            Kind::Array => self.blocks(raw, at).map(wire::Content::Blocks),
            Kind::Bool | Kind::Null | Kind::Number | Kind::Object => {
                Err(at.bad("must be a string or an array of blocks"))
            }
        }
    }

    /// Reads an array of blocks. Only where one of them is broken or unknown is each read alone.
    pub(super) fn blocks(
        &mut self,
        raw: &Raw<'a>,
        at: &Path<'_>,
    ) -> Result<Vec<wire::Block<'a>>, BadRequest> {
        let json = slice(raw);
        let mark = self.losses.len();
        if let Ok(blocks) = json::read::<Vec<wire::Block<'a>>>(json, at, &mut self.losses)
            && blocks.iter().all(wire::Block::is_known)
        {
            return Ok(blocks);
        }
        self.losses.truncate(mark);
        let items: Vec<Raw<'a>> = json::read(json, at, &mut self.losses)?;
        items.iter().enumerate().map(|(index, raw)| self.block(raw, &at.index(index))).collect()
    }

    fn block(&mut self, raw: &Raw<'a>, at: &Path<'_>) -> Result<wire::Block<'a>, BadRequest> {
        let tag: wire::Tag<'a> = json::read(slice(raw), at, &mut Losses::new())?;
        let kind = required(tag.kind, &at.field("type"))?;
        if is_known_kind(&kind) {
            return json::read(slice(raw), at, &mut self.losses);
        }
        let kind = Some(Text::new(&kind));
        Ok(wire::Block { kind, unknown: Some(raw.clone()), ..wire::Block::default() })
    }
}

impl wire::Block<'_> {
    fn is_known(&self) -> bool {
        self.kind.as_ref().is_some_and(|kind| is_known_kind(&kind.decode()))
    }
}

/// Whether a body holds no blocks but such as its mirror knows.
pub(super) fn are_known<T>(body: &wire::Body<'_, wire::Content<'_>, T>) -> bool {
    let messages = body.messages.iter().flatten().filter_map(|message| message.content.as_ref());
    messages.chain(&body.system).all(|content| match content {
        wire::Content::Text(_) => true,
        wire::Content::Blocks(blocks) => blocks.iter().all(wire::Block::is_known),
    })
}

/// Blocks whose fields the mirror of a block knows.
fn is_known_kind(kind: &str) -> bool {
    is_server_result(kind)
        || matches!(
            kind,
            "text"
                | "tool_use"
                | "tool_result"
                | "thinking"
                | "redacted_thinking"
                | "image"
                | "document"
                | "search_result"
                | "tool_reference"
                | "server_tool_use"
                | "mcp_tool_use"
                | "container_upload"
                | "compaction"
                | "tool_addition"
                | "tool_removal"
        )
}
