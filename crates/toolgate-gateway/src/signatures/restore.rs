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
use toolgate_core::canon::{
    Backend, Call, Envelope, Issuer, Part, Request, Role, Sealed, Signature, TextSignature,
    ToolName, call_token, text_key,
};
use toolgate_core::upstream::generate_content::content_key;

use super::SignatureStore;
use super::fingerprint::Fingerprint;
use super::lineup::{HistoryCall, Predecessor, StoredCall, lined_up};
use crate::store::{self, Content, FoundCall, Kind};

impl SignatureStore {
    /// Stores the signature of a call. A call that Gemini left unsigned is stored as unsigned, so that it
    /// does not get the signature of another.
    pub(super) fn put(&self, call: &Call<'_>, previous: &Predecessor, fingerprint: &Fingerprint) {
        if self.store.is_off() {
            return;
        }
        let previous = match previous {
            Predecessor::Nothing => "",
            Predecessor::Unknown => UNKNOWN,
            Predecessor::Token(token) => token,
        };
        let signature = Bytes::from(written(call).unwrap_or_default());
        let (token, sessions, content) = (&*call.id, &fingerprint.names, content_key(call));
        let call = store::Call { token, signature, sessions, content, previous };
        self.store.put_call(self.owner, call, self.retention);
    }

    /// Stores the signature of an answer's last text, to be found by the text.
    pub(super) fn put_text(&self, signed: &TextSignature) {
        let Some(issuer) = signed.signature.issuer() else { return };
        if self.store.is_off() {
            return;
        }
        let len = signed.len.to_string();
        let backend = backend_letter(issuer.backend);
        let lines = [backend, &issuer.model, signed.signature.expose(), &len];
        let value = Bytes::from(lines.join("\n"));
        self.store.put(self.owner, Kind::Signature, &signed.key, value, self.retention);
    }

    /// Restores the signatures of the model's texts that the client could not keep.
    pub(crate) async fn restore_texts(&self, request: &mut Request<'_>) {
        if self.store.is_off() {
            return;
        }
        let mut texts = Vec::new();
        let turns = request.turns.iter().enumerate().filter(|(_, turn)| turn.role == Role::Model);
        for (at, turn) in turns {
            let parts = turn.parts.iter().enumerate().filter_map(|(part, it)| match it {
                Part::Text { text, signature: None } if !text.is_empty() => Some((at, part, text)),
                Part::Text { .. }
                | Part::Thought { .. }
                | Part::Media(_)
                | Part::Call(_)
                | Part::Result(_)
                | Part::Sealed(_)
                | Part::Gemini(_) => None,
            });
            texts.extend(parts);
        }
        let texts = &texts[texts.len().saturating_sub(MAX_TEXTS)..];
        if texts.is_empty() {
            return;
        }
        let keys: Vec<String> = texts.iter().map(|(_, _, text)| text_key(text)).collect();
        let places: Vec<_> = texts.iter().map(|(turn, part, _)| (*turn, *part)).collect();
        let found = self.store.get(self.owner, Kind::Signature, &keys).await;
        // From the end, so that earlier places stay valid.
        for ((turn, part), value) in places.into_iter().zip(found).rev() {
            let envelope = value.and_then(|value| read_text(std::str::from_utf8(&value).ok()?));
            if let Some(envelope) = envelope {
                request.turns[turn].parts.insert(part + 1, Part::Sealed(envelope));
            }
        }
    }

    /// Restores the signatures that calls of a request have lost, and notes the last call in the
    /// fingerprint. `is_required`: the model requires its signatures back.
    pub(crate) async fn restore(
        &self,
        request: &mut Request<'_>,
        fingerprint: &mut Fingerprint,
        is_required: bool,
    ) {
        let missing = self.restore_by_token(request).await;
        let is_lost = |at: usize, call: &Call<'_>| {
            let is_own = is_own(call_token(&call.id));
            call.signature.is_none() && (!is_own || is_required && missing.contains(&at))
        };
        let calls = request.calls().enumerate();
        let lost: Vec<usize> =
            calls.filter(|(at, call)| is_lost(*at, call)).map(|(at, _)| at).collect();
        let last = request.calls().last();
        let mut last = last.map_or(Predecessor::Nothing, |call| predecessor(&call.id));
        if !lost.is_empty()
            && let Some(token) = self.restore_by_content(request, fingerprint, lost).await
        {
            last = Predecessor::Token(token);
        }
        fingerprint.last = last;
    }

    /// Restores the signatures of calls whose ids the gateway made. Returns the calls that are not stored.
    async fn restore_by_token(&self, request: &mut Request<'_>) -> HashSet<usize> {
        // A signature without an issuer may be anything: the stored one outranks it.
        let is_wanted = |call: &Call<'_>| {
            let has_issuer = call.signature.as_ref().is_some_and(|it| it.issuer().is_some());
            !has_issuer && is_own(call_token(&call.id))
        };
        let tokens = request.calls().filter(|call| is_wanted(call));
        let tokens: Vec<String> = tokens.map(|call| call_token(&call.id).to_owned()).collect();
        if tokens.is_empty() {
            return HashSet::new();
        }
        let stored = self.store.get(self.owner, Kind::Signature, &tokens).await;
        let (mut stored, mut missing) = (stored.into_iter(), HashSet::new());
        for (at, call) in request.calls_mut().enumerate().filter(|(_, call)| is_wanted(call)) {
            match stored.next().flatten() {
                Some(stored) => call.signature = std::str::from_utf8(&stored).ok().and_then(read),
                None => drop(missing.insert(at)),
            }
        }
        missing
    }

    /// Restores the signatures of calls whose content is that of a stored call of the session. Returns the
    /// token of the last call, if it was found.
    async fn restore_by_content(
        &self,
        request: &mut Request<'_>,
        fingerprint: &Fingerprint,
        mut lost: Vec<usize>,
    ) -> Option<String> {
        // Most sessions have no calls in the store, and their contents need not be hashed.
        if !self.store.has_calls(self.owner, &fingerprint.names).await {
            return None;
        }
        let contents = Contents::of(request);
        let mut listings = vec![Vec::new(); fingerprint.names.len()];
        let found = self.store.find_calls(self.owner, &fingerprint.names, &contents.different);
        for found in found.await {
            let (session, content) = (found.session, contents.different[found.content].key.clone());
            listings[session].push(stored_call(found, content));
        }
        // Calls under all names belong to this conversation; calls under one may belong to another that
        // began alike, or to a helper with the same session.
        if let [first, second] = &listings[..] {
            let shared: HashSet<&str> = second.iter().map(|it| it.token.as_str()).collect();
            let both = first.iter().filter(|it| shared.contains(it.token.as_str()));
            listings.insert(0, both.cloned().collect());
        }
        let tokens: HashSet<&str> = listings.iter().flatten().map(|it| it.token.as_str()).collect();
        if tokens.is_empty() {
            return None;
        }
        let history = request.calls().zip(contents.all).map(|(call, content)| {
            let token = Some(call_token(&call.id)).filter(|it| is_own(it) && tokens.contains(it));
            HistoryCall { content, token: token.map(str::to_owned) }
        });
        let mut history: Vec<HistoryCall> = history.collect();
        for stored in listings.iter().filter(|stored| !stored.is_empty()) {
            let found = lined_up(stored, &history);
            for at in &lost {
                history[*at].token = found[*at].map(|place| stored[place].token.clone());
            }
            let signed = self.sign(request, &lost, &history).await;
            lost.retain(|at| !signed.contains(at) && history[*at].token.is_none());
            if lost.is_empty() {
                break;
            }
        }
        history.pop().and_then(|call| call.token)
    }

    /// Signs the lost calls whose tokens are known. Returns those that it has signed. No signature is used
    /// twice.
    async fn sign(
        &self,
        request: &mut Request<'_>,
        lost: &[usize],
        history: &[HistoryCall],
    ) -> HashSet<usize> {
        let known = lost.iter().filter_map(|at| Some((*at, history[*at].token.clone()?)));
        let (places, tokens): (Vec<usize>, Vec<String>) = known.unzip();
        if tokens.is_empty() {
            return HashSet::new();
        }
        let kept = self.store.get(self.owner, Kind::Signature, &tokens).await;
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
}

/// Maximum number of texts, the last ones, whose signatures are restored.
const MAX_TEXTS: usize = 32;

fn read_text(text: &str) -> Option<Envelope<'static>> {
    let signature = read(text.rsplit_once('\n')?.0)?;
    let issuer = signature.issuer()?.clone();
    let len = text.rsplit_once('\n')?.1.parse().ok()?;
    Some(Envelope { on: Sealed::Text { len, signature }, issuer })
}

fn backend_letter(backend: Backend) -> &'static str {
    match backend {
        Backend::Developer => "d",
        Backend::Vertex => "v",
    }
}

/// Stands for a previous call whose token is unknown.
const UNKNOWN: &str = "-";

/// The previous call, by its id.
pub(super) fn predecessor(id: &str) -> Predecessor {
    let token = call_token(id);
    if is_own(token) { Predecessor::Token(token.to_owned()) } else { Predecessor::Unknown }
}

/// Whether the gateway made this id.
fn is_own(token: &str) -> bool {
    token.starts_with("tg")
}

/// Number of stored calls with the same content that are compared: at least so many, and so many per
/// call in the request. Conversations that began alike may have made others since.
const MIN_CANDIDATES: usize = 32;
const CANDIDATES_PER_CALL: usize = 2;

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

fn stored_call(FoundCall { token, previous, .. }: FoundCall, content: String) -> StoredCall {
    let before = match previous.as_str() {
        "" => Predecessor::Nothing,
        UNKNOWN => Predecessor::Unknown,
        _ => Predecessor::Token(previous),
    };
    StoredCall { token, content, before }
}

/// Four lines: the back end, the model, the signature, the tool.
fn written(call: &Call<'_>) -> Option<String> {
    let signature = call.signature.as_ref()?;
    let issuer = signature.issuer()?;
    let lines =
        [backend_letter(issuer.backend), &issuer.model, signature.expose(), &call.tool.name];
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
