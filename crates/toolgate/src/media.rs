//! Media from the model.

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};
use toolgate_core::canon::{self, MediaSource};

/// An image, audio or other file from the model: bytes, or a URI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Media(canon::Media<'static>);

/// Decoder that accepts missing padding, which Google's JSON allows.
const DECODER: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

impl Media {
    /// MIME type.
    pub fn mime(&self) -> Option<&str> {
        self.0.mime.as_deref()
    }

    /// The bytes; `None` if the media is a URI, or if its base64 is malformed.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        match &self.0.source {
            MediaSource::Inline(text) => {
                let standard = text.decode().replace('-', "+").replace('_', "/");
                DECODER.decode(standard).ok()
            }
            MediaSource::Uri(_) => None,
        }
    }

    /// The URI; `None` if the bytes are in the answer.
    pub fn uri(&self) -> Option<String> {
        match &self.0.source {
            MediaSource::Inline(_) => None,
            MediaSource::Uri(uri) => Some(uri.decode().into_owned()),
        }
    }

    /// The part as plain data, with base64 text and other members.
    pub fn canon(&self) -> &canon::Media<'static> {
        &self.0
    }
}

impl From<canon::Media<'static>> for Media {
    fn from(media: canon::Media<'static>) -> Self {
        Self(media)
    }
}

/// `{"mimeType": …, "data": base64}` or `{"mimeType": …, "fileUri": …}`.
impl Serialize for Media {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Media", 2)?;
        fields.serialize_field("mimeType", &self.mime())?;
        match &self.0.source {
            MediaSource::Inline(text) => fields.serialize_field("data", text)?,
            MediaSource::Uri(uri) => fields.serialize_field("fileUri", uri)?,
        }
        fields.end()
    }
}

#[cfg(test)]
mod tests {
    use toolgate_core::json::Text;

    use super::*;

    #[test]
    fn bytes_are_decoded_with_either_alphabet() {
        for text in ["+/8=", "-_8=", "+/8", "-_8"] {
            let source = MediaSource::Inline(Text::new(text));
            let media = canon::Media { mime: None, source, name: None, modifiers: Vec::new() };
            assert_eq!(Media(media).bytes().unwrap(), [0xfb, 0xff], "{text}");
        }
    }
}
