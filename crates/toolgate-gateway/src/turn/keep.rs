//! Signatures in the store: for clients that cannot keep them for us.
//!
//! ```text
//!   by the call's token     for clients that drop what they do not know
//!   by session and content  for clients that change ids: the calls of a conversation that say
//!                           the same, in order, each with its number among all calls
//! ```

use std::collections::BTreeMap;

use bytes::Bytes;
use toolgate_core::canon::{Call, Issuer, Request, Signature, call_token};
use toolgate_core::gemini::Backend;
use toolgate_core::gemini::upstream::content_key;

use super::trace::Trace;
use crate::app::App;
use crate::auth::Owner;
use crate::store::Kind;

/// Keeps the signatures of an answer's calls.
pub(crate) fn signatures(app: &App, owner: Owner, calls: &[&Call<'_>], trace: &Trace) {
    if calls.iter().all(|call| call.signature.is_none()) {
        return;
    }
    let keep = app.config().state_retention;
    for (at, call) in calls.iter().enumerate() {
        let value = call.signature.as_ref().and_then(written);
        if let Some(value) = &value {
            app.store.put(owner, Kind::Signature, &call.id, Bytes::from(value.clone()), keep);
        }
        // Calls that Gemini left unsigned count too: the others are found by their order.
        let content = content_key(call, 0);
        let entry = format!("{}\n{}", trace.calls + at, value.unwrap_or_default());
        let entry = Bytes::from(entry);
        for name in &trace.names {
            let id = format!("{name}/{content}");
            app.store.append(owner, Kind::Content, &id, vec![entry.clone()], keep);
        }
    }
}

/// Signs the calls of a request that have lost their signatures.
pub(crate) async fn restore(app: &App, owner: Owner, request: &mut Request<'_>, trace: &Trace) {
    let unsigned = request.calls().filter(|call| call.signature.is_none());
    let tokens: Vec<String> = unsigned.map(|call| call_token(&call.id).to_owned()).collect();
    if tokens.is_empty() {
        return;
    }
    let found = app.store.get(owner, Kind::Signature, &tokens).await;
    let unsigned = request.calls_mut().filter(|call| call.signature.is_none());
    for (call, found) in unsigned.zip(found) {
        call.signature = found.as_deref().and_then(|bytes| read(std::str::from_utf8(bytes).ok()?));
    }
    // A call with an id of ours was found, or had no signature to begin with.
    if request.calls().any(is_lost) {
        by_content(app, owner, request, trace).await;
    }
}

fn is_lost(call: &Call<'_>) -> bool {
    call.signature.is_none() && !call_token(&call.id).starts_with("tg")
}

async fn by_content(app: &App, owner: Owner, request: &mut Request<'_>, trace: &Trace) {
    // The places of the calls that say the same, among all calls.
    let mut alike: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, call) in request.calls().enumerate() {
        alike.entry(content_key(call, 0)).or_default().push(at);
    }
    let lost: Vec<bool> = request.calls().map(is_lost).collect();
    let mut found: BTreeMap<usize, Signature<'static>> = BTreeMap::new();
    for (content, places) in alike {
        if !places.iter().any(|at| lost[*at]) {
            continue;
        }
        for name in &trace.names {
            let id = format!("{name}/{content}");
            let entries = app.store.list(owner, Kind::Content, &id).await;
            let matched = matched(&places, &standing(&entries));
            if !matched.is_empty() {
                found.extend(matched);
                break;
            }
        }
    }
    for (at, call) in request.calls_mut().enumerate() {
        if lost[at] {
            call.signature = found.remove(&at);
        }
    }
}

/// A call as it was kept: its number among all calls, and its signature.
type Kept = (usize, Option<Signature<'static>>);

/// The calls that stand: an answer that was given again takes the place of the one before.
fn standing(entries: &[Bytes]) -> Vec<Kept> {
    let mut standing: Vec<Kept> = Vec::new();
    for entry in entries {
        let Some((number, rest)) =
            std::str::from_utf8(entry).ok().and_then(|it| it.split_once('\n'))
        else {
            continue;
        };
        let Ok(number) = number.parse() else { continue };
        standing.retain(|(earlier, _)| *earlier < number);
        standing.push((number, read(rest)));
    }
    standing
}

/// Which call of the history is which: by its number, or, where the history has been shortened,
/// counted from the end.
fn matched(places: &[usize], kept: &[Kept]) -> Vec<(usize, Signature<'static>)> {
    let number = |at: &usize| kept.iter().find(|(number, _)| number == at);
    let pairs: Vec<(usize, &Kept)> = if places.iter().all(|at| number(at).is_some()) {
        places.iter().filter_map(|at| Some((*at, number(at)?))).collect()
    } else {
        places.iter().rev().copied().zip(kept.iter().rev()).collect()
    };
    pairs.into_iter().filter_map(|(at, (_, signature))| Some((at, signature.clone()?))).collect()
}

/// Three lines: the back end, the model, the signature.
fn written(signature: &Signature<'_>) -> Option<String> {
    let issuer = signature.issuer()?;
    let backend = match issuer.backend {
        Backend::Developer => 'd',
        Backend::Vertex => 'v',
    };
    Some(format!("{backend}\n{}\n{}", issuer.model, signature.expose()))
}

fn read(text: &str) -> Option<Signature<'static>> {
    let mut lines = text.splitn(3, '\n');
    let backend = match lines.next()? {
        "d" => Backend::Developer,
        "v" => Backend::Vertex,
        _ => return None,
    };
    let issuer = Issuer { model: lines.next()?.to_owned(), backend };
    Signature::new(lines.next()?.to_owned(), Some(issuer))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(numbers: &[usize]) -> Vec<Bytes> {
        let entry = |number: &usize| Bytes::from(format!("{number}\nd\nm\nsig{number}"));
        numbers.iter().map(entry).collect()
    }

    #[track_caller]
    fn check(kept: &[usize], places: &[usize], want: &[(usize, &str)]) {
        let mut found = matched(places, &standing(&entries(kept)));
        found.sort_by_key(|(at, _)| *at);
        let found: Vec<_> = found.iter().map(|(at, it)| (*at, it.expose())).collect();
        assert_eq!(found, want, "{kept:?} {places:?}");
    }

    #[test]
    fn c3_calls_are_told_apart_by_their_order() {
        check(&[0], &[0], &[(0, "sig0")]);
        check(&[0, 3], &[0, 3], &[(0, "sig0"), (3, "sig3")]);
        // A turn was asked for again.
        check(&[0, 3, 3], &[0, 3], &[(0, "sig0"), (3, "sig3")]);
        // The conversation was taken back to its beginning.
        check(&[0, 3, 1], &[0, 1], &[(0, "sig0"), (1, "sig1")]);
        // The client has dropped the oldest calls.
        check(&[2, 7], &[1], &[(1, "sig7")]);
        check(&[], &[1], &[]);
        let unsigned = [entries(&[4]), vec![Bytes::from_static(b"5\n")]].concat();
        let found = matched(&[0, 1], &standing(&unsigned));
        assert_eq!(found.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [0]);
    }
}
