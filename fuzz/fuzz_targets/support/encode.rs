//! What must hold for every request that a dialect can read.

use toolgate_core::canon::{DecodeOptions, Decoded, Request};
use toolgate_core::gemini::upstream::{EncodeOptions, encode_request};
use toolgate_core::gemini::{Backend, Target};
use toolgate_core::schema::Cache;
use toolgate_core::seal::Sealer;
use toolgate_core::validate::{AnySignature, Method, request as judge};

/// Calls `then` with options that anybody could have made envelopes for.
pub(crate) fn with_options<R>(then: impl FnOnce(&DecodeOptions<'_>) -> R) -> R {
    let sealer = Sealer::default();
    then(&DecodeOptions { sealer: &sealer })
}

/// Encodes for every generation and back end, twice: the same bytes, and JSON.
pub(crate) fn check<E>(decoded: &Decoded<'_, E>) {
    let cache = Cache::new(64);
    let options = EncodeOptions::new(&cache);
    for model in ["gemini-2.5-flash", "gemini-3-flash-preview", "gemini-3.6-flash"] {
        for backend in [Backend::Developer, Backend::Vertex] {
            let target = Target { model: model.to_owned(), backend };
            check_one(&decoded.request, &target, &options);
        }
    }
}

fn check_one(request: &Request<'_>, target: &Target, options: &EncodeOptions<'_>) {
    let Ok(encoded) = encode_request(request, target, options) else { return };
    let again = encode_request(request, target, options).unwrap();
    assert_eq!(encoded.body, again.body);
    assert!(serde_json::from_slice::<&serde_json::value::RawValue>(&encoded.body).is_ok());
    // Google may refuse what a client made up (a picture that is no base64, a part that nobody
    // knows); judging it must not fail. That well-formed requests are accepted is a property test.
    drop(judge(&encoded.body, target, Method::Generate, &AnySignature));
}
