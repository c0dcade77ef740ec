//! Which signatures may be sent, and which have been.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::super::profile::bare;
use crate::canon::{Call, Issuer, Loss, LossCode, Losses, Part, Request, Signature, Target};

/// Google's documented placeholder for calls whose signature is lost. Sent as it stands here.
const PLACEHOLDER: &str = "skip_thought_signature_validator";
/// It, the other documented one, and both as clients that encode them once more send them; all
/// in the spelling of [`bytes`].
const PLACEHOLDERS: [&str; 4] = [
    "skip/thought/signature/validator",
    "context/engineering/is/the/way/to/go",
    "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I",
    "Y29udGV4dF9lbmdpbmVlcmluZ19pc190aGVfd2F5X3RvX2dv",
];

/// How many signatures a request carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignatureCount {
    /// Gemini's own, given back.
    pub real: usize,
    /// Google's placeholder, for want of the real one.
    pub placeholder: usize,
    /// Left out: of another model or vendor, or damaged.
    pub foreign: usize,
}

/// A signature to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::upstream::generate_content) enum Sent<'r> {
    Real(&'r str),
    Placeholder,
}

impl<'r> Sent<'r> {
    pub(in crate::upstream::generate_content) fn text(self) -> &'r str {
        match self {
            Self::Real(text) => text,
            Self::Placeholder => PLACEHOLDER,
        }
    }
}

/// Where a part stands: its turn and its place there.
pub(in crate::upstream::generate_content) type Place = (usize, usize);

/// Decides about each signature of a request.
#[derive(Debug)]
pub(in crate::upstream::generate_content) struct Ledger<'r> {
    target: &'r Target,
    /// Which part may send a signature that several have.
    owners: BTreeMap<Cow<'r, str>, Place>,
    pub(in crate::upstream::generate_content) count: SignatureCount,
    pub(in crate::upstream::generate_content) losses: Losses,
}

impl<'r> Ledger<'r> {
    /// Reads who carries what. Calls come first: they are refused without, other parts are not.
    pub(in crate::upstream::generate_content) fn new(
        request: &'r Request<'r>,
        target: &'r Target,
    ) -> Self {
        let mut owners = BTreeMap::new();
        for calls in [true, false] {
            for (at, turn) in request.turns.iter().enumerate() {
                for (place, part) in turn.parts.iter().enumerate() {
                    let signature = match part {
                        Part::Call(call) if calls => call.signature.as_ref(),
                        Part::Text { signature, .. } | Part::Thought { signature, .. }
                            if !calls =>
                        {
                            signature.as_ref()
                        }
                        Part::Call(_)
                        | Part::Text { .. }
                        | Part::Thought { .. }
                        | Part::Media(_)
                        | Part::Result(_)
                        | Part::Sealed(_)
                        | Part::Gemini(_) => None,
                    };
                    if let Some(bytes) = signature.and_then(|it| bytes(it.expose())) {
                        owners.entry(bytes).or_insert((at, place));
                    }
                }
            }
        }
        let (count, losses) = (SignatureCount::default(), Losses::new());
        Self { target, owners, count, losses }
    }

    /// Signature that may be sent with a call. Gemini refuses one that belongs to another call.
    pub(in crate::upstream::generate_content) fn judge_call(
        &mut self,
        call: &'r Call<'r>,
        place: Place,
    ) -> Option<Sent<'r>> {
        let signature = call.signature.as_ref()?;
        if !signature.fits(&call.tool) {
            self.foreign(
                place,
                "the client renamed a call: the signature of what it was is left out",
            );
            return None;
        }
        self.judge(Some(signature), place)
    }

    /// Signature that may be sent with a part.
    pub(in crate::upstream::generate_content) fn judge(
        &mut self,
        signature: Option<&'r Signature<'r>>,
        place: Place,
    ) -> Option<Sent<'r>> {
        let signature = signature?;
        let text = signature.expose();
        self.judge_text(text, signature.issuer(), place).then_some(Sent::Real(text))
    }

    /// Whether a signature may be sent; for those inside of raw parts.
    pub(in crate::upstream::generate_content) fn judge_text(
        &mut self,
        text: &str,
        issuer: Option<&Issuer>,
        place: Place,
    ) -> bool {
        let Some(bytes) = bytes(text) else {
            self.foreign(place, "a damaged signature was left out");
            return false;
        };
        if PLACEHOLDERS.contains(&&*bytes) {
            // It says that there is none. Where one is needed we say so ourselves.
            return false;
        }
        if issuer.is_some_and(|issuer| !self.is_target(issuer)) {
            let detail = "a signature of another model was left out: it means nothing to this one";
            self.foreign(place, detail);
            return false;
        }
        match self.owners.get(&*bytes) {
            Some(owner) if *owner != place => {
                let detail = "the same signature stands twice in the conversation; it is sent once";
                self.report(place, LossCode::Ignored, detail);
                return false;
            }
            Some(_) => {}
            None => {
                self.owners.insert(Cow::Owned(bytes.into_owned()), place);
            }
        }
        self.count.real += 1;
        true
    }

    /// Whether this target issued it.
    pub(in crate::upstream::generate_content) fn is_target(&self, issuer: &Issuer) -> bool {
        issuer.backend == self.target.backend && bare(&issuer.model) == bare(&self.target.model)
    }

    fn foreign(&mut self, place: Place, detail: &str) {
        self.count.foreign += 1;
        self.report(place, LossCode::ForeignSignature, detail);
    }

    fn report(&mut self, (turn, part): Place, code: LossCode, detail: &str) {
        self.losses.add_with(code, || {
            let at = format!("turns[{turn}].parts[{part}]");
            Loss { at, code, detail: detail.to_owned(), tool: None }
        });
    }
}

/// One spelling for the same bytes: clients encode base64 anew. `None` where it is not base64:
/// Google reads both alphabets, padded or not, but no mixture, and refuses the whole request over
/// anything else.
fn bytes(text: &str) -> Option<Cow<'_, str>> {
    let body = text.trim_end_matches('=');
    let (mut standard, mut url_safe, mut other) = (false, false, false);
    for byte in body.bytes() {
        standard |= matches!(byte, b'+' | b'/');
        url_safe |= matches!(byte, b'-' | b'_');
        other |=
            !matches!(byte, b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'+' | b'/' | b'-' | b'_');
    }
    let whole = body.len() == text.len() || text.len().is_multiple_of(4);
    if body.is_empty() || body.len() % 4 == 1 || !whole || other || (standard && url_safe) {
        return None;
    }
    Some(match url_safe {
        true => Cow::Owned(body.replace('-', "+").replace('_', "/")),
        false => Cow::Borrowed(body),
    })
}
