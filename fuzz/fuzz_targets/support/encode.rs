//! Checks of every request that a dialect decodes.

use toolgate_core::canon::{Backend, Media, Part, Request, ResultPart, ServerTool, Target, Tool};
use toolgate_core::dialect::{DecodeOptions, Decoded};
use toolgate_core::schema::Cache;
use toolgate_core::seal::{Sealed, Sealer};
use toolgate_core::upstream::generate_content::{EncodeOptions, encode_request};
use toolgate_validate::{AnySignature, Method, check_request};

/// Calls `then` with a sealer without a key, whose envelopes can be forged.
pub(crate) fn with_options<R>(then: impl FnOnce(&DecodeOptions<'_>) -> R) -> R {
    let sealer = Sealer::default();
    then(&DecodeOptions { sealer: &sealer })
}

/// Encodes a request for every generation and back end, twice: the bytes are the same, and Google
/// accepts them.
///
/// Fields in Gemini's own dialect are forwarded unchanged ([`has_forwarded_fields`]), so Google may
/// refuse them. If it accepts `own`, the client's body in Gemini's dialect, it must accept ours too.
pub(crate) fn check<E>(decoded: &Decoded<'_, E>, own: Option<&str>) {
    let cache = Cache::new(64);
    let options = EncodeOptions::new(&cache);
    let has_forwarded_fields = has_forwarded_fields(&decoded.request);
    for model in ["gemini-2.5-flash", "gemini-3-flash-preview", "gemini-3.6-flash"] {
        for backend in [Backend::Developer, Backend::Vertex] {
            let target = Target { model: model.to_owned(), backend };
            let Some(body) = encode(&decoded.request, &target, &options) else { continue };
            let Err(why) = verdict(body.as_bytes(), &target) else { continue };
            let excused = has_forwarded_fields
                && own.is_none_or(|own| verdict(own.as_bytes(), &target).is_err());
            assert!(excused, "{target:?} refuses: {why}\n{body}");
        }
    }
}

fn encode(request: &Request<'_>, target: &Target, options: &EncodeOptions<'_>) -> Option<String> {
    let encoded = encode_request(request, target, options).ok()?;
    let again = encode_request(request, target, options).unwrap();
    assert_eq!(encoded.body, again.body);
    let body = String::from_utf8(encoded.body).unwrap();
    assert!(serde_json::from_str::<&serde_json::value::RawValue>(&body).is_ok());
    Some(body)
}

/// Google's verdict. A mismatch of calls and responses is an error too: newer models answer nothing.
fn verdict(body: &[u8], target: &Target) -> Result<(), String> {
    match check_request(body, target, Method::Generate, &AnySignature) {
        Ok(accepted) => accepted.mismatch.map_or(Ok(()), |how| Err(format!("{how:?}"))),
        Err(error) => Err(error.message),
    }
}

/// Whether parts of the request are forwarded unchanged: fields, tools and parts of Gemini's own
/// dialect, and modifiers of parts and results.
fn has_forwarded_fields(request: &Request<'_>) -> bool {
    let parts = || request.turns.iter().flat_map(|turn| &turn.parts);
    let beside = |media: &Media<'_>| !media.modifiers.is_empty();
    !request.gemini.is_empty()
        || !request.gemini_generation.is_empty()
        || request.tools.iter().any(|tool| match tool {
            Tool::Function(function) => function.response.is_some(),
            Tool::Server(server) => matches!(server, ServerTool::Gemini { .. }),
            Tool::Freeform { .. } => false,
        })
        || parts().any(|part| match part {
            Part::Gemini(_) => true,
            Part::Sealed(envelope) => matches!(envelope.on, Sealed::Part(_)),
            Part::Media(media) => beside(media),
            Part::Result(result) => {
                let within =
                    |part: &ResultPart<'_>| matches!(part, ResultPart::Media(it) if beside(it));
                !result.modifiers.is_empty() || result.content.iter().any(within)
            }
            Part::Text { .. } | Part::Thought { .. } | Part::Call(_) => false,
        })
}
