//! Content of the envelopes that clients keep for us. [`seal`](crate::seal) writes and reads them.

use std::borrow::Cow;

use super::{Issuer, Signature};
use crate::json::Raw;

/// Content of an envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// Content, and the part that it belongs to.
    pub on: Sealed<'a>,
    /// Issuer of the content.
    pub issuer: Issuer,
}

impl Envelope<'_> {
    /// A copy that owns everything.
    pub fn into_owned(self) -> Envelope<'static> {
        let on = match self.on {
            Sealed::Call { token, signature } => Sealed::Call {
                token: Cow::Owned(token.into_owned()),
                signature: signature.into_owned(),
            },
            Sealed::Text { len, signature } => {
                Sealed::Text { len, signature: signature.into_owned() }
            }
            Sealed::Thought { len, signature } => {
                Sealed::Thought { len, signature: signature.into_owned() }
            }
            Sealed::Part(raw) => Sealed::Part(raw.into_owned()),
        };
        Envelope { on, issuer: self.issuer }
    }
}

/// Content of an envelope, and the part that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sealed<'a> {
    /// The call with this token ([`call_token`](crate::canon::call_token)).
    Call {
        /// The call's token.
        token: Cow<'a, str>,
        /// The signature.
        signature: Signature<'a>,
    },
    /// The last `len` bytes of the text before it; 0: an empty part of its own.
    Text {
        /// How many bytes of decoded text.
        len: usize,
        /// The signature.
        signature: Signature<'a>,
    },
    /// The last `len` bytes of the thought before it.
    Thought {
        /// How many bytes of decoded text.
        len: usize,
        /// The signature.
        signature: Signature<'a>,
    },
    /// Nothing: it is a whole part of Gemini's.
    Part(Raw<'a>),
}

impl Sealed<'_> {
    /// Approximate length of the payload, in bytes.
    pub(crate) fn payload_len(&self) -> usize {
        match self {
            Sealed::Call { signature, .. }
            | Sealed::Text { signature, .. }
            | Sealed::Thought { signature, .. } => signature.expose().len(),
            Sealed::Part(raw) => raw.get().len() * 4 / 3,
        }
    }
}
