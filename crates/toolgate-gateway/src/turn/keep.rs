//! Signatures in the store: for clients that cannot keep them for us.
//!
//! ```text
//!   token                      → signature   for clients that drop what they do not know
//!   session ─► content/number  → token       for clients that change ids: a call that says the
//!                                            same, at the same place among all calls of the
//!                                            conversation; the last such call, where the history
//!                                            was shortened
//! ```
//!
//! Everything is found again with one or two reads, however long the conversation is.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;
use toolgate_core::canon::{Call, Issuer, Request, Signature, ToolName, call_token};
use toolgate_core::gemini::Backend;
use toolgate_core::gemini::upstream::content_key;

use super::trace::Trace;
use crate::app::App;
use crate::auth::Owner;
use crate::clock;
use crate::store::{Kind, Map};

/// Keeps the signatures of an answer's calls.
pub(crate) fn signatures(app: &App, owner: Owner, calls: &[Call<'_>], trace: &Trace, signs: bool) {
    // Where signatures must come back, a call that has none must not find another's.
    if !signs && calls.iter().all(|call| call.signature.is_none()) {
        return;
    }
    let (keep, now) = (app.config().state_retention, clock::millis());
    for (at, call) in calls.iter().enumerate() {
        // A call that Gemini left unsigned is kept too, without a token: an answer that was given
        // again takes the place of the one before.
        let mut token = "";
        if let Some(signature) = written(call) {
            app.store.put(owner, Kind::Signature, &call.id, Bytes::from(signature), keep);
            token = &call.id;
        }
        let (content, number) = (content_key(call), trace.calls + at);
        let place = format!("{content}/{number}");
        let value = Bytes::from(format!("{now} {token}"));
        for name in &trace.names {
            app.store.put_in(owner, Kind::Content, (name, &place), value.clone(), keep);
        }
    }
}

/// Signs the calls of a request that have lost their signatures.
pub(crate) async fn restore(app: &App, owner: Owner, request: &mut Request<'_>, trace: &Trace) {
    let own = request.calls().filter(|call| call.signature.is_none() && is_own(call));
    let tokens: Vec<String> = own.map(|call| call_token(&call.id).to_owned()).collect();
    if !tokens.is_empty() {
        let found = signed(app, owner, &tokens).await;
        let own = request.calls_mut().filter(|call| call.signature.is_none() && is_own(call));
        for (call, found) in own.zip(found) {
            call.signature = found;
        }
    }
    if request.calls().any(is_lost) {
        by_content(app, owner, request, trace).await;
    }
}

/// The signatures under these tokens.
async fn signed(app: &App, owner: Owner, tokens: &[String]) -> Vec<Option<Signature<'static>>> {
    let kept = app.store.get(owner, Kind::Signature, tokens).await;
    kept.into_iter().map(|kept| read(std::str::from_utf8(&kept?).ok()?)).collect()
}

/// Whether a call has an id of ours.
fn is_own(call: &Call<'_>) -> bool {
    call_token(&call.id).starts_with("tg")
}

/// Whether a call can be found by what it says alone. One with an id of ours was found by that, or
/// had no signature to begin with.
fn is_lost(call: &Call<'_>) -> bool {
    call.signature.is_none() && !is_own(call)
}

async fn by_content(app: &App, owner: Owner, request: &mut Request<'_>, trace: &Trace) {
    let kept = app.store.all_in(owner, Kind::Content, &trace.names).await;
    let Some(tokens) = kept.iter().map(|kept| found_in(kept, request)).find(|it| !it.is_empty())
    else {
        return;
    };
    let (places, tokens): (Vec<_>, Vec<_>) = tokens.into_iter().unzip();
    let signatures = signed(app, owner, &tokens).await;
    let mut found: BTreeMap<_, _> = places.into_iter().zip(signatures).collect();
    for (at, call) in request.calls_mut().enumerate() {
        if let Some(Some(signature)) = found.remove(&at) {
            call.signature = Some(signature);
        }
    }
}

/// A call that was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Known<'k> {
    time: u64,
    number: usize,
    /// Empty: it was unsigned.
    token: &'k str,
}

/// The tokens of a request's lost calls, by their places among all calls, as far as they are among
/// those of a session.
fn found_in(kept: &Map, request: &Request<'_>) -> BTreeMap<usize, String> {
    let mut known: HashMap<&str, Vec<Known<'_>>> = HashMap::new();
    for (place, value) in kept {
        let Some((content, call)) = Known::read(place, value) else { continue };
        known.entry(content).or_default().push(call);
    }
    if known.is_empty() {
        return BTreeMap::new();
    }
    let lost = request.calls().enumerate().filter(|(_, call)| is_lost(call));
    let lost: Vec<_> = lost.map(|(at, call)| (at, content_key(call))).collect();
    let mut later = BTreeSet::new();
    let mut found = BTreeMap::new();
    for (at, content) in lost.iter().rev() {
        let is_last = later.insert(content);
        let Some(calls) = known.get(&**content) else { continue };
        // Also one that says that the call was unsigned.
        let call = calls.iter().find(|call| call.number == *at);
        let call = call.or_else(|| calls.iter().max().filter(|_| is_last));
        if let Some(call) = call.filter(|call| !call.token.is_empty()) {
            found.insert(*at, call.token.to_owned());
        }
    }
    found
}

impl<'k> Known<'k> {
    fn read(place: &'k str, value: &'k [u8]) -> Option<(&'k str, Self)> {
        let (content, number) = place.split_once('/')?;
        let (time, token) = std::str::from_utf8(value).ok()?.split_once(' ')?;
        let (time, number) = (time.parse().ok()?, number.parse().ok()?);
        Some((content, Self { time, number, token }))
    }
}

/// Four lines: the back end, the model, the signature, the tool.
fn written(call: &Call<'_>) -> Option<String> {
    let signature = call.signature.as_ref()?;
    let issuer = signature.issuer()?;
    let backend = match issuer.backend {
        Backend::Developer => 'd',
        Backend::Vertex => 'v',
    };
    Some(format!("{backend}\n{}\n{}\n{}", issuer.model, signature.expose(), call.tool.name))
}

fn read(text: &str) -> Option<Signature<'static>> {
    let mut lines = text.splitn(4, '\n');
    let backend = match lines.next()? {
        "d" => Backend::Developer,
        "v" => Backend::Vertex,
        _ => return None,
    };
    let issuer = Issuer { model: lines.next()?.to_owned(), backend };
    let signature = Signature::new(lines.next()?.to_owned(), Some(issuer))?;
    Some(match lines.next() {
        Some(tool) => signature.of_tool(&ToolName::plain(tool)),
        None => signature,
    })
}
