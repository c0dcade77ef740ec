//! Signatures in the store: for clients that cannot keep them for us.

use bytes::Bytes;
use toolgate_core::canon::{Call, Issuer, Request, Signature, call_token};
use toolgate_core::gemini::Backend;

use crate::app::App;
use crate::auth::Owner;
use crate::store::Kind;

/// Keeps the signatures of an answer's calls.
pub(crate) fn signatures(app: &App, owner: Owner, calls: &[&Call<'_>]) {
    let keep = app.config().state_retention;
    for call in calls {
        let Some(value) = call.signature.as_ref().and_then(written) else { continue };
        app.store.put(owner, Kind::Signature, &call.id, value, keep);
    }
}

/// Signs the calls of a request that have lost their signatures.
pub(crate) async fn restore(app: &App, owner: Owner, request: &mut Request<'_>) {
    let ids: Vec<String> = request
        .calls()
        .filter(|call| call.signature.is_none())
        .map(|call| call_token(&call.id).to_owned())
        .collect();
    if ids.is_empty() {
        return;
    }
    let found = app.store.get(owner, Kind::Signature, &ids).await;
    let unsigned = request.calls_mut().filter(|call| call.signature.is_none());
    for (call, found) in unsigned.zip(found) {
        call.signature = found.as_deref().and_then(read);
    }
}

/// Three lines: the back end, the model, the signature.
fn written(signature: &Signature<'_>) -> Option<Bytes> {
    let issuer = signature.issuer()?;
    let backend = match issuer.backend {
        Backend::Developer => 'd',
        Backend::Vertex => 'v',
    };
    Some(Bytes::from(format!("{backend}\n{}\n{}", issuer.model, signature.expose())))
}

fn read(bytes: &[u8]) -> Option<Signature<'static>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut lines = text.splitn(3, '\n');
    let backend = match lines.next()? {
        "d" => Backend::Developer,
        "v" => Backend::Vertex,
        _ => return None,
    };
    let issuer = Issuer { model: lines.next()?.to_owned(), backend };
    Signature::new(lines.next()?.to_owned(), Some(issuer))
}
