//! Signatures in the store: for clients that cannot keep them for us.
//!
//! ```text
//!   token                      → signature   for clients that drop what they do not know
//!   session · content/number   → token       for clients that change ids: a call that says the
//!                                            same, at the same place among all calls of the
//!                                            conversation; the last such call, where the history
//!                                            was shortened
//! ```
//!
//! Everything is found again with a few reads, however long the conversation is.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;
use toolgate_core::canon::{Call, Issuer, Request, Signature, ToolName, call_token};
use toolgate_core::gemini::Backend;
use toolgate_core::gemini::upstream::content_key;

use super::trace::Trace;
use crate::app::App;
use crate::auth::Owner;
use crate::store::{Kind, Look};

/// Keeps the signatures of an answer's calls.
pub(crate) fn signatures(app: &App, owner: Owner, calls: &[Call<'_>], trace: &Trace, signs: bool) {
    // Where signatures must come back, a call that has none must not find another's.
    if !signs && calls.iter().all(|call| call.signature.is_none()) {
        return;
    }
    let keep = app.config().state_retention;
    for (at, call) in calls.iter().enumerate() {
        // A call that Gemini left unsigned is kept too, without a signature: an answer that was
        // given again takes the place of the one before.
        let signature = written(call).unwrap_or_default();
        let place = place(&content_key(call), trace.calls + at);
        let places: Vec<_> = trace.names.iter().map(|name| (name.as_str(), &*place)).collect();
        let value = Bytes::from(signature);
        app.store.put_in(owner, Kind::Signature, &call.id, value, &places, keep);
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

/// Where a session has more calls than these, and many more than are looked for, only their places
/// are looked at: many conversations may begin alike.
const MOST: usize = 1024;

async fn by_content(app: &App, owner: Owner, request: &mut Request<'_>, trace: &Trace) {
    let most = MOST.max(4 * request.calls().filter(|call| is_lost(call)).count());
    for name in &trace.names {
        let kept = match app.store.in_map(owner, name, &Look::All(most)).await {
            Some(kept) => kept,
            None => {
                let places = lost(request).map(|(at, content)| place(&content, at)).collect();
                let named = app.store.in_map(owner, name, &Look::Named(places)).await;
                named.unwrap_or_default()
            }
        };
        let found = found_in(&kept, request);
        let (places, tokens): (Vec<_>, Vec<_>) = found.into_iter().unzip();
        let signatures = signed(app, owner, &tokens).await;
        if signatures.iter().all(Option::is_none) {
            continue;
        }
        let mut found: BTreeMap<_, _> = places.into_iter().zip(signatures).collect();
        for (at, call) in request.calls_mut().enumerate() {
            if let Some(Some(signature)) = found.remove(&at) {
                call.signature = Some(signature);
            }
        }
        return;
    }
}

/// The calls of a request that have lost their signatures: their places among all calls, and what
/// they say.
fn lost(request: &Request<'_>) -> impl Iterator<Item = (usize, String)> {
    let lost = request.calls().enumerate().filter(|(_, call)| is_lost(call));
    lost.map(|(at, call)| (at, content_key(call)))
}

fn place(content: &str, number: usize) -> String {
    format!("{content}/{number}")
}

/// The tokens of a request's lost calls, by their places among all calls, as far as they are among
/// those of a session: their places there, and their tokens, the latest last.
fn found_in(kept: &[(String, String)], request: &Request<'_>) -> BTreeMap<usize, String> {
    if kept.is_empty() {
        return BTreeMap::new();
    }
    let places: HashMap<&str, &str> =
        kept.iter().map(|(place, token)| (place.as_str(), token.as_str())).collect();
    let latest: HashMap<&str, &str> = kept
        .iter()
        .filter_map(|(place, token)| Some((place.split_once('/')?.0, token.as_str())))
        .collect();
    let lost: Vec<_> = lost(request).collect();
    let mut found = BTreeMap::new();
    for (at, content) in &lost {
        if let Some(token) = places.get(&*place(content, *at)) {
            found.insert(*at, *token);
        }
    }
    // The last that says something is the latest, wherever it stands now, unless that has its place.
    let placed: BTreeSet<&str> = found.values().copied().collect();
    let mut later = BTreeSet::new();
    for (at, content) in lost.iter().rev() {
        if later.insert(content)
            && let Some(token) = latest.get(&**content)
            && !placed.contains(token)
        {
            found.entry(*at).or_insert(*token);
        }
    }
    found.into_iter().map(|(at, token)| (at, token.to_owned())).collect()
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
    use serde_json::json;
    use toolgate_core::canon::DecodeOptions;
    use toolgate_core::chat;
    use toolgate_core::seal::Sealer;

    use super::*;

    /// r129: a call that was kept without a signature has its place and gets none, also where another
    /// said the same (the row about that is below).
    #[test]
    fn r129_what_was_unsigned_stays_so() {
        assert!(read("").is_none());
        assert!(read("d\ngemini-3-flash\nc2ln\nread").is_some());
    }

    /// What a call says, its number, its token.
    type Kept = (&'static str, usize, &'static str);

    /// r129, c10: what is found in a session, call by call. A call is one letter.
    #[test]
    fn r129_calls_are_found_by_what_they_say_each_once() {
        let rows: [(&str, &[Kept], &[&str]); 7] = [
            ("ab", &[("a", 0, "ta"), ("b", 1, "tb")], &["ta", "tb"]),
            ("ab", &[], &["", ""]),
            ("aa", &[("a", 0, "t0"), ("a", 1, "t1")], &["t0", "t1"]),
            // Shortened: the last is the latest, wherever it was.
            ("ba", &[("b", 0, "tb"), ("a", 7, "t7"), ("a", 3, "t3")], &["tb", "t3"]),
            // The latest is where it was: it does not come twice.
            ("aca", &[("a", 0, "t0")], &["t0", "", ""]),
            // What has its place keeps it, although another said the same.
            ("ab", &[("a", 5, "t5"), ("a", 0, "t0"), ("b", 1, "tb")], &["t0", "tb"]),
            // Of two in one answer, the second is the latest.
            ("xa", &[("a", 3, "t3"), ("a", 4, "t4")], &["", "t4"]),
        ];
        let sealer = Sealer::with_key([0; 32]);
        let options = DecodeOptions { sealer: &sealer };
        for (said, kept, want) in rows {
            let calls = said.chars().enumerate().flat_map(|(at, letter)| {
                let function = json!({"name": letter.to_string(), "arguments": "{}"});
                let call =
                    json!({"id": format!("x{at}"), "type": "function", "function": function});
                [
                    json!({"role": "assistant", "tool_calls": [call]}),
                    json!({"role": "tool", "tool_call_id": format!("x{at}"), "content": "1"}),
                ]
            });
            let first = json!({"role": "user", "content": "Go."});
            let messages: Vec<_> = std::iter::once(first).chain(calls).collect();
            let body = json!({"model": "m", "messages": messages}).to_string();
            let request = chat::decode_request(&body, &options).unwrap().request;
            let content = |letter: &str| {
                let mut calls = request.calls();
                calls.find(|call| call.tool.name == letter).map_or_else(String::new, content_key)
            };
            let kept = kept.iter().map(|(letter, number, token)| {
                (place(&content(letter), *number), (*token).to_owned())
            });
            let found = found_in(&kept.collect::<Vec<_>>(), &request);
            let found: Vec<&str> =
                (0..want.len()).map(|at| found.get(&at).map_or("", String::as_str)).collect();
            assert_eq!(found, want, "{said}");
        }
    }
}
