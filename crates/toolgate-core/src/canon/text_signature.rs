//! The signature of an answer's last text.
//!
//! Messages has no block for it: clients take the last block of a message for the answer, so that
//! nothing may follow the text. A gateway stores the signature and finds it again by the text.

use sha2::{Digest as _, Sha256};

use super::{Answer, Event, Item, Signature, Sink};
use crate::json::Text;

/// Signature of the last text of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextSignature {
    /// Fingerprint of the whole text, as [`text_key`] computes it.
    pub key: String,
    /// Length of the signed part in bytes, from the end of the text.
    pub len: usize,
    /// The signature.
    pub signature: Signature<'static>,
}

/// Fingerprint of a text.
pub fn text_key(text: &Text<'_>) -> String {
    key(Sha256::new().chain_update(text.decode().as_bytes()))
}

fn key(hash: Sha256) -> String {
    let digits: String =
        hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("text-{digits}")
}

/// Follows an answer to the signature of its last text.
#[derive(Clone, Debug, Default)]
pub struct LastText {
    hash: Sha256,
    signed: Option<(usize, Signature<'static>)>,
}

impl LastText {
    /// The signature, if the answer's last text has one.
    pub fn signature(&self) -> Option<TextSignature> {
        let (len, signature) = self.signed.clone()?;
        Some(TextSignature { key: key(self.hash.clone()), len, signature })
    }
}

impl Sink for LastText {
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Text(text) => {
                self.hash.update(text.decode().as_bytes());
                self.signed = None;
            }
            Event::Signature { thought: false, len, signature } => {
                self.signed = Some((*len, signature.clone().into_owned()));
            }
            Event::Thought(_)
            | Event::Signature { .. }
            | Event::Call(_)
            | Event::Media(_)
            | Event::Server(_)
            | Event::Fail(_) => *self = Self::default(),
            Event::Start(_) | Event::Grounding(_) | Event::Finish(_) => {}
        }
    }
}

impl Answer {
    /// The signature of the last text, if it has one.
    pub fn text_signature(&self) -> Option<TextSignature> {
        let mut last = LastText::default();
        for item in &self.items {
            match item {
                Item::Text(text) => last.event(&Event::Text(text.borrowed())),
                Item::Signature { thought, len, signature } => last.event(&Event::Signature {
                    thought: *thought,
                    len: *len,
                    signature: signature.clone(),
                }),
                Item::Grounding(_) => {}
                Item::Thought(_) | Item::Call(_) | Item::Media(_) | Item::Server(_) => {
                    last = LastText::default();
                }
            }
        }
        last.signature()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed(token: &str) -> Event<'static> {
        let signature = Signature::new(token.to_owned(), None).unwrap();
        Event::Signature { thought: false, len: 0, signature }
    }

    #[track_caller]
    fn check(events: &[Event<'_>], want: Option<(&str, &str)>) {
        let mut last = LastText::default();
        events.iter().for_each(|event| last.event(event));
        let got = last.signature().map(|it| (it.key, it.signature.expose().to_owned()));
        let want = want.map(|(text, token)| (text_key(&Text::new(text)), token.to_owned()));
        assert_eq!(got, want);
    }

    #[test]
    fn c7_the_signature_of_the_last_text_is_found_by_the_whole_text() {
        let text = |words: &str| Event::Text(Text::new(words));
        check(
            &[text("The build "), text("passes."), signed("late")],
            Some(("The build passes.", "late")),
        );
        check(&[text("a"), signed("early"), text("b")], None);
        check(&[text("a"), signed("early"), text("b"), signed("late")], Some(("ab", "late")));
        check(&[Event::Thought(Text::new("t")), text("a"), signed("s")], Some(("a", "s")));
        check(&[text("a"), Event::Thought(Text::new("t"))], None);
    }
}
