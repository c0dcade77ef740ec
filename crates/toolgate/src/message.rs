//! Messages of a conversation.

use std::borrow::Cow;

use toolgate_core::canon::{Call, CallInput, Media, MediaSource, Part, Role, ToolName, Turn};
use toolgate_core::json::{Raw, Text};

use crate::CallResult;
use crate::tool::inline_media;

/// A message: text, images, documents.
///
/// ```
/// use toolgate::Message;
///
/// let message = Message::new("What is this?").media("image/png", b"\x89PNG");
/// assert_eq!(message.parts().len(), 2);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Message(Vec<Part<'static>>);

impl Message {
    /// Creates a message with a text.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self::default().text(text)
    }

    /// Adds a text.
    #[must_use]
    pub fn text(self, text: impl AsRef<str>) -> Self {
        self.part(Part::text(Text::new(text.as_ref())))
    }

    /// Adds an image, document, audio or video by its bytes.
    #[must_use]
    pub fn media(self, mime: impl Into<String>, bytes: impl AsRef<[u8]>) -> Self {
        self.part(Part::Media(inline_media(mime, bytes)))
    }

    /// Adds an image, document, audio or video by its URI.
    #[must_use]
    pub fn file(self, mime: impl Into<String>, uri: impl AsRef<str>) -> Self {
        self.part(Part::Media(Media {
            mime: Some(mime.into().into()),
            source: MediaSource::Uri(Text::new(uri.as_ref())),
            name: None,
            modifiers: Vec::new(),
        }))
    }

    /// Adds a stored call of the model: its id, the tool's name, and the arguments as JSON text. For a
    /// message of the model. Arguments that are not JSON are sent as text.
    #[must_use]
    pub fn call(
        self,
        id: impl Into<String>,
        tool: impl Into<String>,
        arguments: impl Into<String>,
    ) -> Self {
        let arguments = arguments.into();
        let text = Text::new(&arguments);
        let input = Raw::parse(arguments).map_or(CallInput::Text(text), CallInput::Json);
        self.part(Part::Call(Call {
            id: Cow::Owned(id.into()),
            upstream_id: None,
            tool: ToolName::plain(tool.into()),
            input,
            signature: None,
        }))
    }

    /// Adds the result of a call. For a message of the user.
    #[must_use]
    pub fn result(self, result: CallResult) -> Self {
        self.part(Part::Result(result.0))
    }

    /// Adds any part.
    #[must_use]
    pub fn part(mut self, part: Part<'static>) -> Self {
        self.0.push(part);
        self
    }

    /// Parts of the message.
    pub fn parts(&self) -> &[Part<'static>] {
        &self.0
    }

    pub(crate) fn into_turn(self, role: Role) -> Turn<'static> {
        Turn { role, parts: self.0 }
    }
}

impl From<&str> for Message {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<&String> for Message {
    fn from(text: &String) -> Self {
        Self::new(text)
    }
}

impl From<String> for Message {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}
