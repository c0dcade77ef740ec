//! Input items that carry something of ours: signatures, whole parts, summaries.

use std::borrow::Cow;

use super::content::{Piece, decode_content};
use super::items::Conversation;
use super::wire::Item;
use crate::canon::{BadRequest, LossCode, Losses, Media, MediaSource, Part, Role};
use crate::json::{Path, Raw, Text};
use crate::seal::{Envelope, Opened, Sealed};

impl<'a> Conversation<'a, '_> {
    /// Whether the item that comes next is only shown: the part itself came sealed before it.
    pub(super) fn is_carried(&self) -> bool {
        let last = self.turns.last().filter(|turn| turn.role == Role::Model);
        matches!(
            last.and_then(|turn| turn.parts.last()),
            Some(Part::Sealed(Envelope { on: Sealed::Part(_), .. }))
        )
    }

    pub(super) fn read_reasoning(
        &mut self,
        item: &Item<'a>,
        at: &Path<'_>,
        losses: &mut Losses,
    ) -> Result<(), BadRequest> {
        for (field, pieces) in [("summary", &item.summary), ("content", &item.content)] {
            let Some(pieces) = pieces else { continue };
            for piece in decode_content(pieces, &at.field(field), losses)? {
                match piece {
                    Piece::Text(text) => {
                        self.push(Role::Model, Part::Thought { text, signature: None });
                    }
                    Piece::Media(media) => self.push(Role::Model, Part::Media(media)),
                }
            }
        }
        let Some(sealed) = &item.encrypted_content else { return Ok(()) };
        let at = at.field("encrypted_content");
        let sealed = sealed.clone().into_text().map(|text| (text, sealed.as_borrowed()));
        let (text, borrowed) = sealed.ok_or_else(|| at.bad("expected a string"))?;
        match self.open(&text, borrowed) {
            Some(envelope) => self.push(Role::Model, Part::Sealed(envelope)),
            None if text.is_empty() => {}
            None => losses.push(at.loss(
                LossCode::ForeignSignature,
                "not sealed by this gateway; it means nothing to Gemini",
            )),
        }
        Ok(())
    }

    /// Opens an envelope, which borrows from the body where the literal has no escapes.
    fn open(&self, text: &Text<'a>, literal: Option<&'a str>) -> Option<Envelope<'a>> {
        let plain = literal
            .and_then(|literal| literal.strip_prefix('"')?.strip_suffix('"'))
            .filter(|inner| memchr::memchr(b'\\', inner.as_bytes()).is_none());
        let opened = match plain {
            Some(plain) => self.options.sealer.open(plain),
            None => match self.options.sealer.open(&text.decode()) {
                Opened::Ours(envelope) => Opened::Ours(owned(envelope)),
                Opened::Forged | Opened::Foreign => Opened::Foreign,
            },
        };
        match opened {
            Opened::Ours(envelope) => Some(envelope),
            Opened::Forged | Opened::Foreign => None,
        }
    }

    pub(super) fn read_compaction(
        &mut self,
        item: &Item<'a>,
        at: &Path<'_>,
        losses: &mut Losses,
    ) -> Result<(), BadRequest> {
        let at = at.field("encrypted_content");
        let sealed = item.encrypted_content.clone().and_then(Raw::into_text);
        let sealed = sealed.ok_or_else(|| at.bad("expected a string"))?;
        match self.options.sealer.open_text(&sealed.decode()) {
            Some(summary) => {
                let said = format!("Summary of the conversation so far:\n\n{summary}");
                self.push_user(Text::new(&said));
            }
            None => losses.push(at.loss(
                LossCode::ForeignSignature,
                "a summary that somebody else encrypted: what it says is lost",
            )),
        }
        Ok(())
    }

    /// A picture that the model made.
    pub(super) fn read_image(&mut self, item: Item<'a>, at: &Path<'_>) -> Result<(), BadRequest> {
        let Some(result) = item.result else { return Ok(()) };
        if self.is_carried() {
            return Ok(());
        }
        let data = result.into_text().ok_or_else(|| at.field("result").bad("expected a string"))?;
        let format = item.output_format.map_or(Cow::Borrowed("png"), |format| format.0);
        let media = Media {
            mime: Some(Cow::Owned(format!("image/{format}"))),
            source: MediaSource::Inline(data),
            name: None,
            modifiers: Vec::new(),
        };
        self.push(Role::Model, Part::Media(media));
        Ok(())
    }
}

fn owned(envelope: Envelope<'_>) -> Envelope<'static> {
    let on = match envelope.on {
        Sealed::Call { token, signature } => {
            Sealed::Call { token: token.into_owned().into(), signature: signature.into_owned() }
        }
        Sealed::Text { len, signature } => Sealed::Text { len, signature: signature.into_owned() },
        Sealed::Thought { len, signature } => {
            Sealed::Thought { len, signature: signature.into_owned() }
        }
        Sealed::Part(raw) => Sealed::Part(raw.into_owned()),
    };
    Envelope { on, issuer: envelope.issuer }
}
