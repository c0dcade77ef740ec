//! What is known of a request that Google would take.

use toolgate_core::gemini::Target;

use crate::request::{Part, Request};

/// A request that Google would take.
#[derive(Clone, Debug)]
pub struct Accepted {
    /// The request.
    pub request: Request,
    /// What was seen in it.
    pub counts: Counts,
    /// Calls and responses do not match, and the model will say nothing.
    pub mismatch: Option<Mismatch>,
}

/// What was seen in a request and is no reason to refuse it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Signatures that were checked and are real.
    pub signatures: usize,
    /// Google's placeholder instead of a signature.
    pub placeholders: usize,
    /// A signature that stands there a second time.
    pub doubled: usize,
    /// Responses without the id that their call has.
    pub missing_ids: usize,
    /// Responses that are not in the order of their calls.
    pub reordered: usize,
    /// Parts that hold nothing but a signature.
    pub bare_signatures: usize,
    /// Entries of `tools` with functions, beyond the first: some back ends overlook them.
    pub split_functions: usize,
}

/// How responses fail to match their calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// Too many or too few.
    Count,
    /// An id that no call has.
    Id,
    /// A name that is not the call's.
    Name,
    /// Words or media stand beside the responses.
    Mixed,
}

/// Tells whether a signature was issued for a part.
pub trait SignatureCheck {
    /// Looks at one signature and the part that carries it.
    fn check(&self, target: &Target, part: &Part, signature: &str) -> SignatureVerdict;
}

/// What a [`SignatureCheck`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureVerdict {
    /// It belongs to this part of this model.
    Real,
    /// It cannot be read.
    Corrupted,
    /// It was issued for something else.
    Invalid,
}

/// Takes every signature; for those who cannot know.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnySignature;

impl SignatureCheck for AnySignature {
    fn check(&self, _: &Target, _: &Part, _: &str) -> SignatureVerdict {
        SignatureVerdict::Real
    }
}
