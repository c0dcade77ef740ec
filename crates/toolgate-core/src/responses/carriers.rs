//! Input items that carry something of ours: signatures, whole parts, summaries.

use std::borrow::Cow;

use super::content::{Piece, decode_content};
use super::fields::{string, text, unescaped};
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
        let envelope = match sealed.as_borrowed().and_then(unescaped) {
            Some("") => return Ok(()),
            // The envelope borrows from the body.
            Some(plain) => match self.options.sealer.open(plain) {
                Opened::Ours(envelope) => Some(envelope),
                Opened::Forged | Opened::Foreign => None,
            },
            None => {
                let text = sealed.as_text().ok_or_else(|| at.bad("expected a string"))?;
                match self.options.sealer.open(&text.decode()) {
                    Opened::Ours(envelope) => Some(owned(envelope)),
                    Opened::Forged | Opened::Foreign => None,
                }
            }
        };
        match envelope {
            Some(envelope) => self.push(Role::Model, Part::Sealed(envelope)),
            None => losses.add(
                &at,
                LossCode::ForeignSignature,
                "not sealed by this gateway; it means nothing to Gemini",
            ),
        }
        Ok(())
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
            None => losses.add(
                &at,
                LossCode::ForeignSignature,
                "a summary that somebody else encrypted: what it says is lost",
            ),
        }
        Ok(())
    }

    /// A picture that the model made.
    pub(super) fn read_image(&mut self, item: &Item<'a>, at: &Path<'_>) -> Result<(), BadRequest> {
        let Some(data) = text(item.result.as_ref(), at, "result")? else { return Ok(()) };
        if self.is_carried() {
            return Ok(());
        }
        let format = string(item.output_format.as_ref(), at, "output_format")?;
        let format = format.as_deref().unwrap_or("png");
        let media = Media {
            mime: Some(Cow::Owned(format!("image/{format}"))),
            source: MediaSource::inline(data, &at.field("result"))?,
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
