//! Signatures in the store: for clients that cannot keep them for us.
//!
//! ```text
//!   token                  → signature   for clients that drop what they do not know
//!   session/content/number → token       for clients that change ids: a call that says the same,
//!                                        at the same place among all calls of the conversation
//!   session/content        → number      of the last such call: for histories that were shortened
//! ```
//!
//! Everything is found again with a few reads, however long the conversation is.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use toolgate_core::canon::{Call, Issuer, Request, Signature, ToolName, call_token};
use toolgate_core::gemini::Backend;
use toolgate_core::gemini::upstream::content_key;

use super::trace::Trace;
use crate::app::App;
use crate::auth::Owner;
use crate::store::Kind;

/// Keeps the signatures of an answer's calls.
pub(crate) fn signatures(app: &App, owner: Owner, calls: &[Call<'_>], trace: &Trace, signs: bool) {
    // Where signatures must come back, a call that has none must not find another's.
    if !signs && calls.iter().all(|call| call.signature.is_none()) {
        return;
    }
    let keep = app.config().state_retention;
    let put = |kind, id: &str, value| app.store.put(owner, kind, id, value, keep);
    for (at, call) in calls.iter().enumerate() {
        let signature = written(call).map(Bytes::from);
        // A call that Gemini left unsigned is kept too, without a token: an answer that was given
        // again takes the place of the one before.
        let mut token = Bytes::new();
        if let Some(signature) = signature {
            put(Kind::Signature, &call.id, signature);
            token = Bytes::copy_from_slice(call.id.as_bytes());
        }
        let (content, number) = (content_key(call), trace.calls + at);
        for name in &trace.names {
            put(Kind::Content, &numbered(name, &content, number), token.clone());
            put(Kind::Content, &last(name, &content), Bytes::from(number.to_string()));
        }
    }
}

fn last(name: &str, content: &str) -> String {
    [name, "/", content].concat()
}

fn numbered(name: &str, content: &str, number: usize) -> String {
    [name, "/", content, "/", &number.to_string()].concat()
}

/// Signs the calls of a request that have lost their signatures.
pub(crate) async fn restore(app: &App, owner: Owner, request: &mut Request<'_>, trace: &Trace) {
    let unsigned = request.calls().filter(|call| call.signature.is_none());
    let tokens: Vec<String> = unsigned.map(|call| call_token(&call.id).to_owned()).collect();
    if tokens.is_empty() {
        return;
    }
    let found = signed(app, owner, &tokens).await;
    let unsigned = request.calls_mut().filter(|call| call.signature.is_none());
    for (call, found) in unsigned.zip(found) {
        call.signature = found;
    }
    // A call with an id of ours was found, or had no signature to begin with.
    if request.calls().any(is_lost) {
        by_content(app, owner, request, trace).await;
    }
}

/// The signatures under these tokens.
async fn signed(app: &App, owner: Owner, tokens: &[String]) -> Vec<Option<Signature<'static>>> {
    let kept = app.store.get(owner, Kind::Signature, tokens).await;
    kept.into_iter().map(|kept| read(std::str::from_utf8(&kept?).ok()?)).collect()
}

fn is_lost(call: &Call<'_>) -> bool {
    call.signature.is_none() && !call_token(&call.id).starts_with("tg")
}

/// A call that has lost its signature.
struct Lost {
    /// Its place among all calls.
    at: usize,
    content: String,
    /// Whether it is the last one that says this.
    is_last: bool,
}

async fn by_content(app: &App, owner: Owner, request: &mut Request<'_>, trace: &Trace) {
    let mut lost: Vec<Lost> = Vec::new();
    for (at, call) in request.calls().enumerate() {
        if is_lost(call) {
            lost.push(Lost { at, content: content_key(call), is_last: true });
        }
    }
    let mut later = BTreeSet::new();
    for call in lost.iter_mut().rev() {
        call.is_last = later.insert(call.content.clone());
    }
    let mut found: BTreeMap<usize, String> = BTreeMap::new();
    for name in &trace.names {
        // Where a conversation is known by this name, its latest calls are.
        let known: Vec<String> = lost.iter().map(|call| last(name, &call.content)).collect();
        let known = app.store.get(owner, Kind::Content, &known).await;
        let mut wanted = Vec::new();
        for (call, latest) in lost.iter().zip(&known) {
            let Some(latest) = latest.as_deref().and_then(number) else { continue };
            wanted.push((call, call.at));
            if call.is_last && latest != call.at {
                wanted.push((call, latest));
            }
        }
        if wanted.is_empty() {
            continue;
        }
        let ids = wanted.iter().map(|(call, number)| numbered(name, &call.content, *number));
        let ids: Vec<String> = ids.collect();
        let kept = app.store.get(owner, Kind::Content, &ids).await;
        let mut seen = BTreeSet::new();
        for ((call, _), kept) in wanted.into_iter().zip(kept) {
            let Some(kept) = kept else { continue };
            // The first that there is counts, also if it says that the call was unsigned.
            if seen.insert(call.at)
                && let Some(token) = std::str::from_utf8(&kept).ok().filter(|it| !it.is_empty())
            {
                found.insert(call.at, token.to_owned());
            }
        }
        if !found.is_empty() {
            break;
        }
    }
    let (places, tokens): (Vec<_>, Vec<_>) = found.into_iter().unzip();
    let mut found: BTreeMap<_, _> =
        places.into_iter().zip(signed(app, owner, &tokens).await).collect();
    for (at, call) in request.calls_mut().enumerate() {
        if let Some(Some(signature)) = found.remove(&at) {
            call.signature = Some(signature);
        }
    }
}

fn number(text: &[u8]) -> Option<usize> {
    std::str::from_utf8(text).ok()?.parse().ok()
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
