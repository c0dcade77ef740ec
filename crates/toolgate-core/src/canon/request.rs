//! The canonical request.

use std::borrow::Cow;
use std::fmt;

use super::{
    Call, Envelope, OutputFormat, Settings, Signature, Thinking, Tool, ToolChoice, ToolResult,
};
use crate::json::{Raw, Text};

/// One request, complete.
#[derive(Clone, Debug, Default)]
pub struct Request<'a> {
    /// The model by the name that the client used.
    pub model: Cow<'a, str>,
    /// Instructions given before the conversation, in order. Never empty strings.
    pub system: Vec<Text<'a>>,
    /// The conversation as the client told it. Any order, any gaps: Gemini's encoder mends it.
    pub turns: Vec<Turn<'a>>,
    /// Tools that the model may call, in the client's order.
    pub tools: Vec<Tool<'a>>,
    /// Whether it may, must or must not call.
    pub tool_choice: ToolChoice<'a>,
    /// `Some(false)`: at most one call a turn.
    pub parallel_calls: Option<bool>,
    /// Sampling and limits.
    pub settings: Settings<'a>,
    /// How hard to think, and whether to show it.
    pub thinking: Thinking,
    /// The form of the answer.
    pub output: OutputFormat<'a>,
    /// Whether the answer is streamed.
    pub stream: bool,
    /// Fields that only Gemini knows and that its encoder copies as they are
    /// (`safetySettings`, `cachedContent`, `labels`, …), by their camelCase name.
    pub gemini: Vec<(Cow<'a, str>, Raw<'a>)>,
    /// Members of `generationConfig` that have no place above, copied likewise.
    pub gemini_generation: Vec<(Cow<'a, str>, Raw<'a>)>,
}

/// One message of a conversation.
#[derive(Clone, Debug)]
pub struct Turn<'a> {
    /// Its author.
    pub role: Role,
    /// Its content, in order.
    pub parts: Vec<Part<'a>>,
}

/// Author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The user, and the tools that answer for them.
    User,
    /// The model.
    Model,
    /// The client's program, in the middle of the conversation (`system`, `developer`).
    /// What stands before the first user turn belongs into [`Request::system`].
    Instruction,
}

/// Part of a message.
#[derive(Clone, Debug)]
pub enum Part<'a> {
    /// Words.
    Text {
        /// The words.
        text: Text<'a>,
        /// Gemini's signature, where this very part carried one.
        signature: Option<Signature<'a>>,
    },
    /// A summary of the model's thinking.
    Thought {
        /// The summary.
        text: Text<'a>,
        /// Gemini's signature, where this very part carried one.
        signature: Option<Signature<'a>>,
    },
    /// A picture, a document, sound, video.
    Media(Media<'a>),
    /// The model calls a tool.
    Call(Call<'a>),
    /// A tool answers.
    Result(ToolResult<'a>),
    /// Something of ours that the client kept for us: a signature, or a whole part of Gemini's.
    /// [`Request::place_signatures`] puts it where it belongs.
    Sealed(Envelope<'a>),
    /// A part of Gemini's own that goes back as it came: server-side calls and their results,
    /// code and its output, kinds that this version does not know.
    Gemini(Raw<'a>),
}

/// Bytes that are not text.
#[derive(Clone, PartialEq, Eq)]
pub struct Media<'a> {
    /// The MIME type, where the client said it.
    pub mime: Option<Cow<'a, str>>,
    /// Where the bytes are.
    pub source: MediaSource<'a>,
    /// A file name or title, where the client gave one.
    pub name: Option<Cow<'a, str>>,
    /// Other members of Gemini's part (`videoMetadata`, `mediaResolution`, the signature of a
    /// generated picture), copied as they are.
    pub modifiers: Vec<(Cow<'a, str>, Raw<'a>)>,
}

/// Where a medium's bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MediaSource<'a> {
    /// In the request, as base64 text (a JSON string literal, copied unread).
    Inline(Text<'a>),
    /// At an address that Gemini can fetch or that names a file of Gemini's.
    Uri(Text<'a>),
}

/// Of the modifiers only the names: one of them may be a signature.
impl fmt::Debug for Media<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mime, source, name, modifiers } = self;
        let modifiers: Vec<_> = modifiers.iter().map(|(key, _)| key).collect();
        f.debug_struct("Media")
            .field("mime", mime)
            .field("source", source)
            .field("name", name)
            .field("modifiers", &modifiers)
            .finish()
    }
}

impl<'a> Part<'a> {
    /// Unsigned words.
    pub fn text(text: Text<'a>) -> Self {
        Self::Text { text, signature: None }
    }

    /// The call, if it is one.
    pub fn call(&self) -> Option<&Call<'a>> {
        match self {
            Self::Call(call) => Some(call),
            Self::Text { .. }
            | Self::Thought { .. }
            | Self::Media(_)
            | Self::Result(_)
            | Self::Sealed(_)
            | Self::Gemini(_) => None,
        }
    }

    /// The result, if it is one.
    pub fn result(&self) -> Option<&ToolResult<'a>> {
        match self {
            Self::Result(result) => Some(result),
            Self::Text { .. }
            | Self::Thought { .. }
            | Self::Media(_)
            | Self::Call(_)
            | Self::Sealed(_)
            | Self::Gemini(_) => None,
        }
    }
}

impl<'a> Request<'a> {
    /// Every call of the conversation, in order.
    pub fn calls(&self) -> impl Iterator<Item = &Call<'a>> {
        self.turns.iter().flat_map(|turn| &turn.parts).filter_map(Part::call)
    }

    /// Every call of the conversation, to be completed (with signatures from a store, say).
    pub fn calls_mut(&mut self) -> impl Iterator<Item = &mut Call<'a>> {
        self.turns.iter_mut().flat_map(|turn| &mut turn.parts).filter_map(|part| match part {
            Part::Call(call) => Some(call),
            Part::Text { .. }
            | Part::Thought { .. }
            | Part::Media(_)
            | Part::Result(_)
            | Part::Sealed(_)
            | Part::Gemini(_) => None,
        })
    }
}
