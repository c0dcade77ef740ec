//! Accepted requests, and the checks of signatures.

use toolgate_core::canon::Target;

use crate::request::{Part, Request};

/// A request that Google accepts.
#[derive(Clone, Debug)]
pub struct Accepted {
    /// The request.
    pub request: Request,
    /// Irregularities in it.
    pub counts: Counts,
    /// Mismatch of calls and responses, to which the model answers with an empty turn.
    pub mismatch: Option<Mismatch>,
}

/// Irregularities in a request that are no reason to refuse it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Genuine signatures, each counted once.
    pub signatures: usize,
    /// Google's placeholders in place of signatures.
    pub placeholders: usize,
    /// Repeated signatures.
    pub doubled: usize,
    /// Responses that lack the id of their call.
    pub missing_ids: usize,
    /// Responses out of the order of their calls.
    pub reordered: usize,
    /// Parts with a signature and no data.
    pub bare_signatures: usize,
    /// Entries of `tools` with functions beyond the first one; some back ends ignore them.
    pub split_functions: usize,
}

/// Kind of mismatch between calls and their responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// Too many or too few responses.
    Count,
    /// A response with an id that no call has.
    Id,
    /// A response with a name other than its call's.
    Name,
    /// Text or media beside the responses.
    Mixed,
}

/// Check of whether a signature was issued for a part.
pub trait SignatureCheck {
    /// Checks one signature against the part that carries it.
    fn check(&self, target: &Target, part: &Part, signature: &str) -> SignatureVerdict;
}

/// Result of a [`SignatureCheck`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureVerdict {
    /// Issued for this part by this model.
    Real,
    /// Unreadable.
    Corrupted,
    /// Issued for another part, model or service.
    Invalid,
}

/// A check that accepts every signature, for callers without a signing key.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnySignature;

impl SignatureCheck for AnySignature {
    fn check(&self, _: &Target, _: &Part, _: &str) -> SignatureVerdict {
        SignatureVerdict::Real
    }
}
