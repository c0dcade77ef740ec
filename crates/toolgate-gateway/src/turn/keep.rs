//! Signatures in the store, for clients that do not send them back.
//!
//! ```text
//!   token              ─► signature         for clients that drop unknown fields
//!   session · content ─► token, previous   for clients that change ids: the calls of a session with a
//!                                          content, and the token of the call before each
//! ```
//!
//! A history is restored with one query, whose cost depends on the calls in the request, not on the
//! calls in the session.

use std::collections::HashSet;

use bytes::Bytes;
use toolgate_core::canon::{Call, Issuer, Request, Signature, ToolName, call_token};
use toolgate_core::gemini::Backend;
use toolgate_core::gemini::upstream::content_key;

use super::lineup::{Before, Known, Said, lined_up};
use super::trace::Trace;
use crate::app::App;
use crate::auth::Owner;
use crate::store::{self, Content, FoundCall, Kind};

/// Stores the signature of a call. A call that Gemini left unsigned is stored as such, so that it does
/// not get the signature of another.
pub(crate) fn call(app: &App, owner: Owner, call: &Call<'_>, before: &Before, trace: &Trace) {
    if app.store.is_off() {
        return;
    }
    let previous = match before {
        Before::Nothing => "",
        Before::Unknown => UNKNOWN,
        Before::Token(token) => token,
    };
    let signature = Bytes::from(written(call).unwrap_or_default());
    let (token, sessions, content) = (&*call.id, &trace.names, content_key(call));
    let call = store::Call { token, signature, sessions, content, previous };
    app.store.put_call(owner, call, app.config().state_retention);
}

/// Stands for a previous call whose token is unknown.
const UNKNOWN: &str = "-";

/// What came before a call, by the id of the one before.
pub(crate) fn behind(id: &str) -> Before {
    let token = call_token(id);
    if is_own(token) { Before::Token(token.to_owned()) } else { Before::Unknown }
}

/// Signs the calls of a request that have lost their signatures, and says in the trace which call is
/// the last. `signs`: whether the model signs its calls.
pub(crate) async fn restore(
    app: &App,
    owner: Owner,
    request: &mut Request<'_>,
    trace: &mut Trace,
    signs: bool,
) {
    let unfound = by_token(app, owner, request).await;
    let is_lost = |at: usize, call: &Call<'_>| {
        let is_own = is_own(call_token(&call.id));
        call.signature.is_none() && (!is_own || signs && unfound.contains(&at))
    };
    let lost: Vec<usize> = request
        .calls()
        .enumerate()
        .filter(|(at, call)| is_lost(*at, call))
        .map(|(at, _)| at)
        .collect();
    let mut last = request.calls().last().map_or(Before::Nothing, |call| behind(&call.id));
    if !lost.is_empty() {
        let found = by_content(app, owner, request, trace, lost).await;
        if let Some(token) = found {
            last = Before::Token(token);
        }
    }
    trace.last = last;
}

/// Signs calls that have ids of ours. Says which of them are not kept.
async fn by_token(app: &App, owner: Owner, request: &mut Request<'_>) -> HashSet<usize> {
    // One that does not say who issued it may be anything: our own word counts more.
    let is_wanted = |call: &Call<'_>| {
        let is_named = call.signature.as_ref().is_some_and(|it| it.issuer().is_some());
        !is_named && is_own(call_token(&call.id))
    };
    let tokens = request.calls().filter(|call| is_wanted(call));
    let tokens: Vec<String> = tokens.map(|call| call_token(&call.id).to_owned()).collect();
    if tokens.is_empty() {
        return HashSet::new();
    }
    let mut kept = app.store.get(owner, Kind::Signature, &tokens).await.into_iter();
    let mut unfound = HashSet::new();
    for (at, call) in request.calls_mut().enumerate().filter(|(_, call)| is_wanted(call)) {
        match kept.next().flatten() {
            Some(kept) => call.signature = std::str::from_utf8(&kept).ok().and_then(read),
            None => drop(unfound.insert(at)),
        }
    }
    unfound
}

/// Whether an id is one of ours.
fn is_own(token: &str) -> bool {
    token.starts_with("tg")
}

/// Number of stored calls with the same content that are compared: at least so many, and so many per
/// call in the request. Conversations that began alike may have made others since.
const MIN_CANDIDATES: usize = 32;
const CANDIDATES_PER_CALL: usize = 2;

/// Signs unsigned calls whose content is that of a stored call of the session. Returns the token of the
/// last call, if it was found.
async fn by_content(
    app: &App,
    owner: Owner,
    request: &mut Request<'_>,
    trace: &Trace,
    mut lost: Vec<usize>,
) -> Option<String> {
    // Most sessions have no calls in the store, and their contents need not be hashed.
    if !app.store.has_calls(owner, &trace.names).await {
        return None;
    }
    let contents = Contents::of(request);
    let mut listings = vec![Vec::new(); trace.names.len()];
    for found in app.store.find_calls(owner, &trace.names, &contents.different).await {
        let (session, content) = (found.session, contents.different[found.content].key.clone());
        listings[session].push(known(found, content));
    }
    // What goes by all names is this conversation's; what goes by one may be another's that began
    // alike, or that of a helper with the same session.
    if let [first, second] = &listings[..] {
        let shared: HashSet<&str> = second.iter().map(|it| it.token.as_str()).collect();
        let both = first.iter().filter(|it| shared.contains(it.token.as_str()));
        listings.insert(0, both.cloned().collect());
    }
    let tokens: HashSet<&str> = listings.iter().flatten().map(|it| it.token.as_str()).collect();
    if tokens.is_empty() {
        return None;
    }
    let said = request.calls().zip(contents.all).map(|(call, content)| {
        let token = Some(call_token(&call.id)).filter(|it| is_own(it) && tokens.contains(it));
        Said { content, token: token.map(str::to_owned) }
    });
    let mut said: Vec<Said> = said.collect();
    for kept in listings.iter().filter(|kept| !kept.is_empty()) {
        let found = lined_up(kept, &said);
        for at in &lost {
            said[*at].token = found[*at].map(|place| kept[place].token.clone());
        }
        let signed = sign(app, owner, request, &lost, &said).await;
        lost.retain(|at| !signed.contains(at) && said[*at].token.is_none());
        if lost.is_empty() {
            break;
        }
    }
    said.pop().and_then(|said| said.token)
}

/// Fingerprints of the calls of a request.
struct Contents {
    /// One per call, in order.
    all: Vec<String>,
    /// Each once.
    different: Vec<Content>,
}

impl Contents {
    fn of(request: &Request<'_>) -> Self {
        let all: Vec<String> = request.calls().map(content_key).collect();
        let mut sorted: Vec<&String> = all.iter().collect();
        sorted.sort_unstable();
        let alike = sorted.chunk_by(|one, other| one == other);
        let content = |alike: &[&String]| Content {
            key: alike[0].clone(),
            limit: MIN_CANDIDATES.max(CANDIDATES_PER_CALL * alike.len()),
        };
        let different = alike.map(content).collect();
        Self { all, different }
    }
}

/// Signs the lost calls whose tokens are known. Says which.
async fn sign(
    app: &App,
    owner: Owner,
    request: &mut Request<'_>,
    lost: &[usize],
    said: &[Said],
) -> HashSet<usize> {
    let known = lost.iter().filter_map(|at| Some((*at, said[*at].token.clone()?)));
    let (places, tokens): (Vec<usize>, Vec<String>) = known.unzip();
    if tokens.is_empty() {
        return HashSet::new();
    }
    let kept = app.store.get(owner, Kind::Signature, &tokens).await;
    let mut there: HashSet<String> = request
        .calls()
        .filter_map(|call| Some(call.signature.as_ref()?.expose().to_owned()))
        .collect();
    let mut signed = HashSet::new();
    let mut calls = request.calls_mut().enumerate();
    for (place, kept) in places.into_iter().zip(kept) {
        let Some((at, call)) = calls.find(|(at, _)| *at == place) else { break };
        let signature = kept.and_then(|kept| read(std::str::from_utf8(&kept).ok()?));
        if let Some(signature) = signature
            && there.insert(signature.expose().to_owned())
        {
            call.signature = Some(signature);
            signed.insert(at);
        }
    }
    signed
}

fn known(FoundCall { token, previous, .. }: FoundCall, content: String) -> Known {
    let before = match previous.as_str() {
        "" => Before::Nothing,
        UNKNOWN => Before::Unknown,
        _ => Before::Token(previous),
    };
    Known { token, content, before }
}

/// Four lines: the back end, the model, the signature, the tool.
fn written(call: &Call<'_>) -> Option<String> {
    let signature = call.signature.as_ref()?;
    let issuer = signature.issuer()?;
    let backend = match issuer.backend {
        Backend::Developer => "d",
        Backend::Vertex => "v",
    };
    let lines = [backend, &issuer.model, signature.expose(), &call.tool.name];
    Some(lines.join("\n"))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// r129: a call that was kept without a signature gets none.
    #[test]
    fn r129_what_was_unsigned_stays_so() {
        assert!(read("").is_none());
        assert!(read("d\ngemini-3-flash\nc2ln\nread").is_some());
    }
}
