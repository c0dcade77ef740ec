//! Signatures that the steps of a conversation need.

use super::contents::loss;
use super::scan::CallSite;
use super::{Content, Piece, Speaker};
use crate::canon::{Loss, LossCode, Losses};
use crate::upstream::generate_content::signatures::{Ledger, Sent};

/// A signature that came right behind the calls, in an empty part, is the first call's. One that
/// the client itself put before them, or behind other words, stays where it is.
pub(super) fn reattach(contents: &mut [Content<'_>]) {
    for content in contents {
        let is_call = |piece: &Piece<'_>| matches!(piece, Piece::Call { .. });
        let is_signed = |piece: &Piece<'_>| matches!(piece, Piece::Call { signature: Some(_), .. });
        let Some(first) = content.pieces.iter().position(is_call) else { continue };
        if content.pieces.iter().any(is_signed) {
            continue;
        }
        let calls = content.pieces.iter().skip(first).take_while(|piece| is_call(piece)).count();
        let carrier = content.pieces.iter().enumerate().find_map(|(at, piece)| match piece {
            Piece::Text { text, signature: Some(sent), is_loose } if text.is_empty() => {
                (*is_loose || at == first + calls).then_some((at, *sent))
            }
            Piece::Text { .. }
            | Piece::Thought { .. }
            | Piece::Words(_)
            | Piece::Media { .. }
            | Piece::Call { .. }
            | Piece::Response { .. }
            | Piece::Raw(_) => None,
        });
        let Some((carrier, sent)) = carrier else { continue };
        if let Some(Piece::Call { signature, .. }) = content.pieces.get_mut(first) {
            *signature = Some(sent);
        }
        content.pieces.remove(carrier);
    }
}

/// The first call of every step since the user last said something must be signed.
pub(super) fn put_placeholders(
    contents: &mut [Content<'_>],
    calls: &[CallSite<'_>],
    ledger: &mut Ledger<'_>,
    losses: &mut Losses,
) {
    let current = contents
        .iter()
        .rposition(|content| content.speaker == Speaker::User && !content.responses)
        .unwrap_or(0);
    for content in &mut contents[current..] {
        let first = content.pieces.iter_mut().find_map(|piece| match piece {
            Piece::Call { site, signature } => Some((*site, signature)),
            Piece::Text { .. }
            | Piece::Thought { .. }
            | Piece::Words(_)
            | Piece::Media { .. }
            | Piece::Response { .. }
            | Piece::Raw(_) => None,
        });
        let Some((site, signature @ None)) = first else { continue };
        *signature = Some(Sent::Placeholder);
        ledger.count.placeholder += 1;
        if let Some(call) = calls.get(site) {
            let detail = "the call's signature is lost; Google's placeholder was sent instead";
            losses.add_with(LossCode::PlaceholderSignature, || Loss {
                tool: Some(call.call.tool.to_string()),
                ..loss(call.at, LossCode::PlaceholderSignature, detail)
            });
        }
    }
}
