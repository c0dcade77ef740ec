//! From a Chat Completions request to [`Request`].

use super::{message, settings, tools, wire};
use crate::canon::{BadRequest, Losses, Request, check_name};
use crate::dialect::{DecodeOptions, Decoded};
use crate::json::{self, Path, Raw};

/// Members of a request that its answer depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Echo {
    /// The model by the name that the client used.
    pub model: String,
    /// `stream_options.include_usage`: a last chunk with the token counts.
    pub include_usage: bool,
    /// The client declared `functions` instead of `tools`: it gets `function_call`s.
    pub legacy_functions: bool,
    /// The client asked for a web search: its answer says which words rest on which page.
    pub citations: bool,
}

/// Reads the body of `POST /v1/chat/completions`.
pub fn decode_request<'a>(
    body: &'a str,
    options: &DecodeOptions<'_>,
) -> Result<Decoded<'a, Echo>, BadRequest> {
    let mut losses = Losses::new();
    let mut wire: wire::Request<'a> = json::read(body, &Path::Root, &mut losses)?;
    let Some(model) = wire.model.take() else {
        return Err(Path::Root.field("model").bad("a model is needed"));
    };
    let model = model.into_cow();
    check_name(&model, &Path::Root.field("model"))?;
    let Some(messages) = wire.messages.take() else {
        return Err(Path::Root.field("messages").bad("messages are needed"));
    };
    let mut request = Request { model, stream: wire.stream.unwrap_or(false), ..Request::default() };
    message::decode_messages(messages, options.sealer, &mut request, &mut losses)?;
    tools::decode_tools(&mut wire, &mut request, &mut losses)?;
    let echo = Echo {
        model: request.model.clone().into_owned(),
        include_usage: wire
            .stream_options
            .as_ref()
            .and_then(|options| options.include_usage)
            .unwrap_or(false),
        legacy_functions: wire.functions.is_some() && wire.tools.is_none(),
        citations: tools::searches(&request.tools),
    };
    settings::decode_settings(wire, &mut request, &mut losses)?;
    request.check_bounds(body.len(), "messages")?;
    Ok(Decoded { request, echo, losses })
}

/// Reads a value of the body whose type is known by now.
pub(super) fn reread<'a, T: serde::Deserialize<'a>>(
    raw: &Raw<'a>,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<T, BadRequest> {
    match raw.as_borrowed() {
        Some(json) => Ok(json::read(json, at, losses)?),
        None => Err(at.bad("not a part of the body")),
    }
}
