//! From the model's answer to a turn of the history.

use crate::canon::{Answer, Envelope, Item, Part, Role, Sealed, ServerActivity, Signature, Turn};
use crate::json::Text;

impl Answer {
    /// The turn that goes back to Gemini: the parts as it sent them.
    ///
    /// A signature belongs to the part that carried it, so text is split where the signed part
    /// begins. Thoughts go back only where they are signed; grounding does not go back at all.
    pub fn to_turn(&self) -> Turn<'static> {
        let mut parts = Vec::with_capacity(self.items.len());
        let mut run: Option<Run<'_>> = None;
        for item in &self.items {
            match item {
                Item::Signature { thought, len, signature } => {
                    let text = run.take_if(|run| run.thought == *thought).map(|run| run.text);
                    end(run.take(), &mut parts);
                    sign(text, *thought, *len, signature, &mut parts);
                    continue;
                }
                Item::Text(_)
                | Item::Thought(_)
                | Item::Call(_)
                | Item::Media(_)
                | Item::Server(_)
                | Item::Grounding(_) => end(run.take(), &mut parts),
            }
            match item {
                Item::Text(text) => run = Some(Run { thought: false, text }),
                Item::Thought(text) => run = Some(Run { thought: true, text }),
                Item::Call(call) => parts.push(Part::Call(call.clone())),
                Item::Media(media) => parts.push(Part::Media(media.clone())),
                Item::Server(activity) => parts.push(server_part(activity)),
                Item::Grounding(_) | Item::Signature { .. } => {}
            }
        }
        end(run, &mut parts);
        Turn { role: Role::Model, parts }
    }
}

/// The part as it came, sealed where its issuer is known.
fn server_part(activity: &ServerActivity<'static>) -> Part<'static> {
    let part = activity.part.clone();
    match activity.issuer.clone() {
        Some(issuer) => Part::Sealed(Envelope { on: Sealed::Part(part), issuer }),
        None => Part::Gemini(part),
    }
}

/// Text whose signature may follow.
#[derive(Clone, Copy)]
struct Run<'a> {
    thought: bool,
    text: &'a Text<'static>,
}

/// Ends a run that no signature followed.
fn end(run: Option<Run<'_>>, parts: &mut Vec<Part<'static>>) {
    if let Some(Run { thought: false, text }) = run {
        parts.push(Part::text(text.clone()));
    }
}

/// Ends a run whose last `len` bytes are signed.
fn sign(
    run: Option<&Text<'static>>,
    thought: bool,
    len: usize,
    signature: &Signature<'static>,
    parts: &mut Vec<Part<'static>>,
) {
    let (before, signed) = run.map_or((Text::EMPTY, Text::EMPTY), |text| split(text, len));
    if !thought && !before.is_empty() {
        parts.push(Part::text(before));
    }
    let signature = Some(signature.clone());
    parts.push(if thought {
        Part::Thought { text: signed, signature }
    } else {
        Part::Text { text: signed, signature }
    });
}

/// Cuts the last `len` bytes off.
fn split(text: &Text<'static>, len: usize) -> (Text<'static>, Text<'static>) {
    let plain = text.decode();
    let mut at = plain.len().saturating_sub(len);
    while !plain.is_char_boundary(at) {
        at -= 1;
    }
    match plain.split_at(at) {
        ("", _) => (Text::EMPTY, text.clone()),
        (_, "") => (text.clone(), Text::EMPTY),
        (before, signed) => (Text::new(before), Text::new(signed)),
    }
}
