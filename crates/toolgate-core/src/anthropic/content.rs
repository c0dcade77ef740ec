//! Reading content blocks.
//!
//! Blocks are most of a body, so they are not read by serde: a [`Cursor`] goes through them once and
//! lends what it passes. A broken field is an error with its place. In a block of a type that this
//! version does not know nothing can be broken; it is kept as it is.

use std::borrow::Cow;

use super::message::{is_server_result, required};
use crate::canon::{BadRequest, LossCode, Losses};
use crate::json::{Cursor, Kind, Path, Slice, Text};

/// Content of a message or a result: a string, or blocks.
pub(super) enum Content<'a> {
    Text(Text<'a>),
    Blocks(Blocks<'a>),
}

impl<'a> Content<'a> {
    pub(super) fn read(slice: Slice<'a>, at: &Path<'_>) -> Result<Self, BadRequest> {
        match slice.kind() {
            Kind::String => Ok(Self::Text(slice.text().unwrap_or(Text::EMPTY))),
            Kind::Array => Ok(Self::Blocks(Blocks::new(slice))),
            Kind::Bool | Kind::Null | Kind::Number | Kind::Object => {
                Err(at.bad("must be a string or an array of blocks"))
            }
        }
    }
}

/// An array of blocks.
pub(super) struct Blocks<'a> {
    cursor: Cursor<'a>,
}

impl<'a> Blocks<'a> {
    fn new(slice: Slice<'a>) -> Self {
        let mut cursor = slice.cursor();
        cursor.enter();
        Self { cursor }
    }

    /// Reads the next block, which stands at `at`.
    pub(super) fn next(
        &mut self,
        at: &Path<'_>,
        losses: &mut Losses,
    ) -> Result<Option<Block<'a>>, BadRequest> {
        if !self.cursor.next_element() {
            return Ok(None);
        }
        if self.cursor.kind() != Kind::Object {
            return Err(at.bad("must be an object"));
        }
        Block::read(&mut self.cursor, at, losses).map(Some)
    }
}

/// A content block of any type; the type says which fields count.
#[derive(Default)]
pub(super) struct Block<'a> {
    pub(super) kind: Cow<'a, str>,
    pub(super) text: Option<Text<'a>>,
    pub(super) thinking: Option<Text<'a>>,
    pub(super) signature: Option<Text<'a>>,
    pub(super) data: Option<Text<'a>>,
    pub(super) id: Option<Text<'a>>,
    pub(super) tool_use_id: Option<Text<'a>>,
    pub(super) name: Option<Text<'a>>,
    pub(super) tool_name: Option<Text<'a>>,
    pub(super) toolset_name: Option<Text<'a>>,
    pub(super) server_name: Option<Text<'a>>,
    pub(super) title: Option<Text<'a>>,
    pub(super) context: Option<Text<'a>>,
    pub(super) file_id: Option<Text<'a>>,
    pub(super) source: Option<Slice<'a>>,
    pub(super) input: Option<Slice<'a>>,
    pub(super) content: Option<Slice<'a>>,
    pub(super) tool: Option<Slice<'a>>,
    pub(super) is_error: bool,
    /// All of it.
    pub(super) json: &'a str,
}

impl<'a> Block<'a> {
    /// Reads the object that the cursor stands before.
    pub(super) fn read(
        cursor: &mut Cursor<'a>,
        at: &Path<'_>,
        losses: &mut Losses,
    ) -> Result<Self, BadRequest> {
        let mut block = Self::default();
        let (mut kind, mut broken) = (None, None);
        let mut citations = None;
        let start = cursor.position();
        let mut unknown_fields = Losses::new();
        cursor.enter();
        while let Some(key) = cursor.next_key() {
            let value = cursor.value();
            let field = match &*key {
                "type" => &mut kind,
                "text" => &mut block.text,
                "thinking" => &mut block.thinking,
                "signature" => &mut block.signature,
                "data" => &mut block.data,
                "id" => &mut block.id,
                "tool_use_id" => &mut block.tool_use_id,
                "name" => &mut block.name,
                "tool_name" => &mut block.tool_name,
                "toolset_name" => &mut block.toolset_name,
                "server_name" => &mut block.server_name,
                "title" => &mut block.title,
                "context" => &mut block.context,
                "file_id" => &mut block.file_id,
                "is_error" => {
                    block.is_error = value.get() == "true";
                    if !matches!(value.kind(), Kind::Bool | Kind::Null) {
                        broken.get_or_insert_with(|| at.field(&key).bad("expected true or false"));
                    }
                    continue;
                }
                other => {
                    match other {
                        "source" => block.source = given(value),
                        "input" => block.input = given(value),
                        "content" => block.content = given(value),
                        "tool" => block.tool = given(value),
                        // Known, and without a meaning for Gemini.
                        "citations" => citations = Some(value),
                        "cache_control" | "caller" | "encrypted_content" | "tool_changes"
                        | "transformations" => {}
                        unknown => {
                            let detail = "toolgate does not know this field; it was left out";
                            let at = at.field(unknown);
                            unknown_fields.add(&at, LossCode::UnknownField, detail);
                        }
                    }
                    continue;
                }
            };
            *field = value.text();
            if field.is_none() && value.kind() != Kind::Null {
                broken.get_or_insert_with(|| at.field(&key).bad("expected a string"));
            }
        }
        block.json = cursor.since(start).get();
        match kind {
            Some(kind) if !is_known(&kind.decode()) => {
                Ok(Self { kind: kind.into_cow(), json: block.json, ..Self::default() })
            }
            kind => {
                losses.extend(unknown_fields);
                broken.map_or(Ok(()), Err)?;
                block.kind = required(kind, &at.field("type"))?;
                if let Some(detail) = citations.and_then(|value| uncited(&block.kind, value)) {
                    losses.add(&at.field("citations"), LossCode::Ignored, detail);
                }
                Ok(block)
            }
        }
    }
}

fn given(value: Slice<'_>) -> Option<Slice<'_>> {
    (value.kind() != Kind::Null).then_some(value)
}

/// What becomes of a block's citations, where there are any or some are asked for.
fn uncited(kind: &str, citations: Slice<'_>) -> Option<&'static str> {
    match kind {
        "text" if lists_something(citations) => Some("Gemini is not told what its words rest on"),
        "document" | "search_result" if enables(citations) => {
            Some("Gemini does not cite what it is sent; the answer has no citations of it")
        }
        _ => None,
    }
}

/// `{"enabled":true}`
fn enables(value: Slice<'_>) -> bool {
    let mut cursor = value.cursor();
    value.kind() == Kind::Object && {
        cursor.enter();
        let mut enabled = false;
        while let Some(key) = cursor.next_key() {
            let value = cursor.value();
            if key == "enabled" {
                enabled = value.get() == "true";
            }
        }
        enabled
    }
}

fn lists_something(value: Slice<'_>) -> bool {
    let mut cursor = value.cursor();
    value.kind() == Kind::Array && {
        cursor.enter();
        cursor.next_element()
    }
}

/// Types whose fields a block knows.
fn is_known(kind: &str) -> bool {
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
