//! Outputs of tools.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::Value;
use toolgate_core::canon::{Media, MediaSource, ResultPart};
use toolgate_core::json::{Kind, Raw, Text};

use super::ToolError;

/// Output of a tool, if a serialised value is not enough: text, JSON, media, or several of them.
///
/// ```
/// use toolgate::Output;
///
/// let chart = Output::text("Sales rose.").and_media("image/png", b"\x89PNG");
/// assert_eq!(chart.parts().len(), 2);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output(Vec<ResultPart<'static>>);

impl Output {
    /// Creates an output with a text.
    pub fn text(text: impl AsRef<str>) -> Self {
        Self::default().and_text(text)
    }

    /// Creates an output with a JSON value.
    pub fn json(value: &Value) -> Self {
        Self(Raw::of(value).map(ResultPart::Json).into_iter().collect())
    }

    /// Creates an output with an image or document.
    pub fn media(mime: impl Into<String>, bytes: impl AsRef<[u8]>) -> Self {
        Self::default().and_media(mime, bytes)
    }

    /// Adds a text.
    #[must_use]
    pub fn and_text(mut self, text: impl AsRef<str>) -> Self {
        self.0.push(ResultPart::Text(Text::new(text.as_ref())));
        self
    }

    /// Adds an image or document.
    #[must_use]
    pub fn and_media(mut self, mime: impl Into<String>, bytes: impl AsRef<[u8]>) -> Self {
        self.0.push(ResultPart::Media(inline_media(mime, bytes)));
        self
    }

    /// Parts of the output.
    pub fn parts(&self) -> &[ResultPart<'static>] {
        &self.0
    }

    /// Text or JSON value; several parts become an array. Media are omitted.
    pub fn to_value(&self) -> Value {
        let mut values: Vec<Value> = self
            .0
            .iter()
            .filter_map(|part| match part {
                ResultPart::Text(text) => Some(Value::String(text.decode().into_owned())),
                ResultPart::Json(raw) => raw.to(),
                ResultPart::Media(_) => None,
            })
            .collect();
        if values.len() == 1 { values.remove(0) } else { Value::Array(values) }
    }

    pub(crate) fn serialised<T: Serialize + ?Sized>(value: &T) -> Result<Self, ToolError> {
        let json = serde_json::to_string(value).map_err(|error| {
            ToolError::Failed(format!("the result cannot be serialised: {error}"))
        })?;
        let raw =
            Raw::parse(json).ok_or_else(|| ToolError::from("the result cannot be serialised"))?;
        let part = match raw.kind() {
            Kind::String => raw.into_text().map(ResultPart::Text),
            Kind::Array | Kind::Bool | Kind::Null | Kind::Number | Kind::Object => {
                Some(ResultPart::Json(raw))
            }
        };
        Ok(Self(part.into_iter().collect()))
    }

    /// Canonical content. An object is wrapped like every other value: as Gemini's `response` itself, a
    /// member called `error` would mean failure.
    pub(crate) fn into_content(self) -> Vec<ResultPart<'static>> {
        match <[_; 1]>::try_from(self.0) {
            Ok([ResultPart::Json(raw)]) if raw.kind() == Kind::Object => {
                let wrapped = Raw::parse(format!("{{\"result\":{}}}", raw.get()));
                vec![ResultPart::Json(wrapped.unwrap_or(raw))]
            }
            Ok([part]) => vec![part],
            Err(parts) => parts,
        }
    }
}

pub(crate) fn inline_media(mime: impl Into<String>, bytes: impl AsRef<[u8]>) -> Media<'static> {
    Media {
        mime: Some(mime.into().into()),
        source: MediaSource::Inline(Text::new(&STANDARD.encode(bytes))),
        name: None,
        modifiers: Vec::new(),
    }
}

/// Return value of a tool: any serialisable value (a string is sent as text), or an [`Output`].
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    note = "a tool returns something that implements `serde::Serialize`, a `toolgate::Output`, or a `Result` with one of them"
)]
pub trait IntoOutput {
    /// Converts the value.
    fn into_output(self) -> Result<Output, ToolError>;
}

impl<T: Serialize> IntoOutput for T {
    fn into_output(self) -> Result<Output, ToolError> {
        Output::serialised(&self)
    }
}

impl IntoOutput for Output {
    fn into_output(self) -> Result<Output, ToolError> {
        Ok(self)
    }
}
