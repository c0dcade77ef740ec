//! Carrier of signatures: `extra_content.google.thought_signature`, which clients echo.
//!
//! On a tool call the field holds the envelope of that call's signature. On the message it holds
//! the envelopes of everything else, with spaces between them. A value that is not an envelope is
//! a signature that Gemini's own compatible endpoint gave out.

use std::borrow::Cow;
use std::fmt;

use crate::canon::{Call, Issuer, LossCode, Losses, Part, ServerActivity, Signature, call_token};
use crate::json::{Path, Raw};
use crate::seal::{Envelope, Opened, Sealed, Sealer};

/// Content of a message's carrier, by destination.
#[derive(Default)]
pub(super) struct Kept<'a> {
    /// Whole parts of Gemini's.
    pub(super) parts: Vec<Part<'a>>,
    /// What signs thoughts.
    pub(super) thoughts: Vec<Part<'a>>,
    /// What signs words.
    pub(super) texts: Vec<Part<'a>>,
    /// A bare signature of the words.
    pub(super) signature: Option<Signature<'a>>,
}

/// Opens the carrier of a message.
pub(super) fn open_message<'a>(
    text: Cow<'a, str>,
    sealer: &Sealer,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Kept<'a> {
    let tokens: Vec<Cow<'a, str>> = match text {
        Cow::Borrowed(text) => text.split_ascii_whitespace().map(Cow::Borrowed).collect(),
        Cow::Owned(text) => {
            text.split_ascii_whitespace().map(|token| Cow::Owned(token.to_owned())).collect()
        }
    };
    let mut kept = Kept::default();
    for token in tokens {
        match open(sealer, &token) {
            Opened::Ours(envelope) => {
                let place = match envelope.on {
                    Sealed::Part(_) => &mut kept.parts,
                    Sealed::Thought { .. } => &mut kept.thoughts,
                    Sealed::Call { .. } | Sealed::Text { .. } => &mut kept.texts,
                };
                place.push(Part::Sealed(envelope));
            }
            Opened::Foreign => kept.signature = Signature::new(token, None),
            Opened::Forged => losses.add_with(LossCode::ForeignSignature, || forged(at)),
        }
    }
    kept
}

/// Opens the carrier of a call and signs the call with it. Returns an envelope that belongs elsewhere.
pub(super) fn open_call<'a>(
    text: Cow<'a, str>,
    call: &mut Call<'a>,
    sealer: &Sealer,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Option<Envelope<'a>> {
    match open(sealer, &text) {
        Opened::Ours(Envelope { on: Sealed::Call { token, signature }, issuer }) => {
            // A client that makes its own ids still keeps the field beside the call.
            let own = call_token(&call.id);
            if own == token || !own.starts_with("tg") {
                call.signature = Some(signature);
                return None;
            }
            Some(Envelope { on: Sealed::Call { token, signature }, issuer })
        }
        Opened::Ours(envelope) => Some(envelope),
        Opened::Foreign => {
            call.signature = Signature::new(text, None);
            None
        }
        Opened::Forged => {
            losses.add_with(LossCode::ForeignSignature, || forged(at));
            None
        }
    }
}

fn forged(at: &Path<'_>) -> crate::canon::Loss {
    at.loss(LossCode::ForeignSignature, "not a signature that this gateway sealed; left out")
}

fn open<'a>(sealer: &Sealer, text: &Cow<'a, str>) -> Opened<'a> {
    match text {
        Cow::Borrowed(text) => sealer.open(text),
        Cow::Owned(text) => match sealer.open(text) {
            Opened::Ours(envelope) => Opened::Ours(envelope.into_owned()),
            Opened::Foreign => Opened::Foreign,
            Opened::Forged => Opened::Forged,
        },
    }
}

/// The field of a call, if it is signed.
pub(super) fn seal_call(call: &Call<'_>, sealer: &Sealer) -> Option<String> {
    let signature = call.signature.as_ref()?;
    let token = Cow::Borrowed(&*call.id);
    let bound = signature.clone().of_tool(&call.tool);
    Some(seal(signature, Sealed::Call { token, signature: bound }, sealer))
}

/// A signature without a known issuer is sent unsealed, as Google sends it.
fn seal(signature: &Signature<'_>, on: Sealed<'_>, sealer: &Sealer) -> String {
    match signature.issuer() {
        Some(issuer) => sealer.seal(&Envelope { on, issuer: issuer.clone() }),
        None => signature.expose().to_owned(),
    }
}

/// Collects, over an answer, what its message shall carry.
#[derive(Clone, Default)]
pub(super) struct Carrier {
    held: Vec<Held>,
    issuer: Option<Issuer>,
}

#[derive(Clone)]
enum Held {
    Part { raw: Raw<'static>, issuer: Option<Issuer> },
    Signature { thought: bool, len: usize, signature: Signature<'static> },
}

impl Carrier {
    /// More text or thought came. A signature counts from the end of the signed text, and in a
    /// message all text is one: what signed text further up cannot be said any more.
    pub(super) fn grown(&mut self, is_thought: bool) {
        self.held.retain(|held| match held {
            Held::Part { .. } => true,
            Held::Signature { thought, len, .. } => *thought != is_thought || *len == 0,
        });
    }

    /// Takes the signature of text or thought.
    pub(super) fn signature(&mut self, thought: bool, len: usize, signature: &Signature<'_>) {
        self.seen(Some(signature));
        let signature = signature.clone().into_owned();
        self.held.push(Held::Signature { thought, len, signature });
    }

    /// Takes a part that must go back whole.
    pub(super) fn server(&mut self, activity: &ServerActivity<'_>) {
        let raw = activity.part.clone().into_owned();
        self.held.push(Held::Part { raw, issuer: activity.issuer.clone() });
    }

    /// Learns who answers, for parts that do not say it themselves.
    pub(super) fn seen(&mut self, signature: Option<&Signature<'_>>) {
        if let Some(issuer) = signature.and_then(Signature::issuer) {
            self.issuer = Some(issuer.clone());
        }
    }

    /// The message's field, if it has anything to carry.
    pub(super) fn finish(self, sealer: &Sealer) -> Option<String> {
        let issuer = self.issuer;
        let tokens: Vec<String> = self
            .held
            .into_iter()
            .filter_map(|held| match held {
                Held::Part { raw, issuer: own } => {
                    let issuer = own.or_else(|| issuer.clone())?;
                    Some(sealer.seal(&Envelope { on: Sealed::Part(raw), issuer }))
                }
                Held::Signature { thought, len, signature } => {
                    let copy = signature.clone();
                    let on = if thought {
                        Sealed::Thought { len, signature: copy }
                    } else {
                        Sealed::Text { len, signature: copy }
                    };
                    Some(seal(&signature, on, sealer))
                }
            })
            .collect();
        (!tokens.is_empty()).then(|| tokens.join(" "))
    }
}

impl fmt::Debug for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Carrier({} held)", self.held.len())
    }
}
