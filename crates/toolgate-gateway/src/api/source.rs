//! Request bodies as sources of turns.

use bytes::Bytes;
use toolgate_core::canon::Failure;
use toolgate_core::dialect::{DecodeOptions, Decoded};
use toolgate_core::translate::{Dialect, Echo};
use toolgate_core::{anthropic, chat, gemini, responses};

use crate::sessions::{History, text};
use crate::turn::Source;

/// A request body with its history.
#[derive(Clone, Debug)]
pub(crate) struct BodySource {
    pub(crate) dialect: Dialect,
    pub(crate) body: Bytes,
    pub(crate) form: Form,
    pub(crate) history: History,
}

/// Form of a body.
#[derive(Clone, Debug)]
pub(crate) enum Form {
    /// The request of a turn.
    Turn,
    /// A request to the Responses API for a summary of its conversation.
    Summary,
    /// A request of Gemini's dialect whose path names the model, and the framing of a stream.
    Path { model: String, framing: Option<gemini::Framing> },
}

impl BodySource {
    /// A request without a history.
    pub(crate) fn new(dialect: Dialect, body: Bytes) -> Self {
        Self { dialect, body, form: Form::Turn, history: History::default() }
    }
}

impl Source for BodySource {
    fn dialect(&self) -> Dialect {
        self.dialect
    }

    fn size(&self) -> usize {
        self.body.len() + self.history.size()
    }

    fn decode<'a>(&'a self, options: DecodeOptions<'_>) -> Result<Decoded<'a, Echo>, Failure> {
        let body = text(&self.body)?;
        let mut decoded = match (&self.form, self.dialect) {
            (Form::Path { model, framing }, _) => {
                let mut decoded = gemini::decode_request(body, model, framing.is_some(), &options)?;
                decoded.echo.framing = framing.unwrap_or_default();
                decoded.map_echo(Echo::Gemini)
            }
            (Form::Summary, _) => {
                let parsed = responses::parse_request(body)?.into_summary();
                parsed.decode(&self.history.stored(), &options)?.map_echo(Echo::Responses)
            }
            (Form::Turn, Dialect::Anthropic) => {
                let parsed = anthropic::parse_request(body)?;
                parsed.decode(&self.history.stored_turns(), &options)?.map_echo(Echo::Anthropic)
            }
            (Form::Turn, Dialect::Chat) => {
                chat::decode_request(body, &options)?.map_echo(Echo::Chat)
            }
            (Form::Turn, Dialect::Gemini) => {
                gemini::decode_native(body, &options)?.decoded.map_echo(Echo::Gemini)
            }
            (Form::Turn, Dialect::Responses) => {
                let parsed = responses::parse_request(body)?;
                parsed.decode(&self.history.stored(), &options)?.map_echo(Echo::Responses)
            }
        };
        self.history.complete(&mut decoded, options)?;
        Ok(decoded)
    }
}
