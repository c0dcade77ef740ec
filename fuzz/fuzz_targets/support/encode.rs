//! What must hold for every request that a dialect can read.

use toolgate_core::canon::{
    DecodeOptions, Decoded, Media, Part, Request, ResultPart, ServerTool, Tool,
};
use toolgate_core::gemini::upstream::{EncodeOptions, encode_request};
use toolgate_core::gemini::{Backend, Target};
use toolgate_core::schema::Cache;
use toolgate_core::seal::{Sealed, Sealer};
use toolgate_validate::{AnySignature, Method, check_request};

/// Calls `then` with options that anybody could have made envelopes for.
pub(crate) fn with_options<R>(then: impl FnOnce(&DecodeOptions<'_>) -> R) -> R {
    let sealer = Sealer::default();
    then(&DecodeOptions { sealer: &sealer })
}

/// Encodes for every generation and back end, twice: the same bytes, which Google would take.
///
/// Where the client speaks to Gemini in Gemini's own words ([`passes_on`]), toolgate does not
/// know better than the client: those go on as they are, for Google to judge. Then, if `own`, the
/// client's body in Gemini's dialect, is one that Google would take, so must ours be.
pub(crate) fn check<E>(decoded: &Decoded<'_, E>, own: Option<&str>) {
    let cache = Cache::new(64);
    let options = EncodeOptions::new(&cache);
    let passes_on = passes_on(&decoded.request);
    for model in ["gemini-2.5-flash", "gemini-3-flash-preview", "gemini-3.6-flash"] {
        for backend in [Backend::Developer, Backend::Vertex] {
            let target = Target { model: model.to_owned(), backend };
            let Some(body) = encode(&decoded.request, &target, &options) else { continue };
            let Err(why) = verdict(body.as_bytes(), &target) else { continue };
            let excused =
                passes_on && own.is_none_or(|own| verdict(own.as_bytes(), &target).is_err());
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

/// What Google would say; responses that do not match their calls make newer models fall silent.
fn verdict(body: &[u8], target: &Target) -> Result<(), String> {
    match check_request(body, target, Method::Generate, &AnySignature) {
        Ok(accepted) => accepted.mismatch.map_or(Ok(()), |how| Err(format!("{how:?}"))),
        Err(error) => Err(error.message),
    }
}

/// Whether something goes to Google as the client wrote it: fields, tools and parts that are
/// Gemini's own, and members that stand beside a part's or a result's content.
fn passes_on(request: &Request<'_>) -> bool {
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
