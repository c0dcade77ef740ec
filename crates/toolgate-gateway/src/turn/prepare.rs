//! From a client's body to what Gemini is sent.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use toolgate_core::anthropic;
use toolgate_core::canon::{
    BadRequest, DecodeOptions, Decoded, Failure, FailureKind, Loss, LossCode, Losses, OutputFormat,
    Part, Request, ThinkingMode, Turn,
};
use toolgate_core::gemini::upstream::Profile;
use toolgate_core::gemini::upstream::{
    EncodeOptions, Encoded, Learned, SignatureCount, encode_count_tokens, encode_request,
};
use toolgate_core::gemini::{self, Exchange, Target};
use toolgate_core::responses::Framing;
use toolgate_core::translate::{Dialect, Echo, decode_request};

use super::trace::Trace;
use super::{hidden, keep};
use crate::app::{App, Current};
use crate::auth::Owner;
use crate::config::Meaning;
use crate::session::{Before, splice};

/// A client's question, before anybody has looked into it.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    /// The dialect.
    pub(crate) door: Dialect,
    /// The model, and how to stream if at all, where the path says it (Gemini).
    pub(crate) path: Option<(String, Option<gemini::Framing>)>,
    /// The body.
    pub(crate) body: Bytes,
    /// Whether only its length is asked for.
    pub(crate) counts: bool,
    /// Whose state it may use.
    pub(crate) owner: Owner,
    /// What was said before and does not stand in the body.
    pub(crate) before: Before,
    /// What was said since that the client does not see.
    pub(crate) after: Vec<Turn<'static>>,
    /// Whether the whole answer is wanted in the end.
    pub(crate) collect: bool,
    /// That the answer is streamed, whatever the body says, and how.
    pub(crate) stream: Option<Framing>,
    /// Whether signatures that do not say who issued them are left out: Gemini refused one.
    pub(crate) distrusts: bool,
    /// What Gemini has just refused of it.
    pub(crate) lesson: Learned,
}

impl Ask {
    /// A question that stands alone.
    pub(crate) fn new(door: Dialect, body: Bytes, owner: Owner) -> Self {
        Self {
            door,
            path: None,
            body,
            counts: false,
            owner,
            before: Before::default(),
            after: Vec::new(),
            collect: false,
            stream: None,
            distrusts: false,
            lesson: Learned::default(),
        }
    }
}

/// What came of looking into it.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) echo: Echo,
    pub(crate) exchange: Arc<Exchange>,
    pub(crate) target: Target,
    pub(crate) body: Bytes,
    pub(crate) stream: bool,
    /// Whether the answer is to have a form: words of several rounds do not add up to one.
    pub(crate) is_structured: bool,
    pub(crate) tools: usize,
    pub(crate) losses: Losses,
    pub(crate) signatures: SignatureCount,
    pub(crate) trace: Trace,
}

/// Decodes, completes from the store, and encodes.
pub(crate) async fn prepare(
    app: &App,
    current: &Current,
    ask: &Ask,
    session: Option<&str>,
) -> Result<Prepared, Failure> {
    let understood = understand(app, current, ask, session).await?;
    let Understood { request, echo, mut losses, target, trace } = understood;
    let learned = learned(app, ask, &target, &request);
    let options = options(app, current, &learned);
    let stream = request.stream || ask.stream.is_some();
    let Encoded { body, exchange, losses: more, signatures } =
        encode_request(&request, &target, &options).map_err(|bad| placed(bad, ask.door))?;
    losses.extend(more);
    Ok(Prepared {
        echo,
        tools: exchange.tools.len(),
        exchange: Arc::new(exchange),
        target,
        body: Bytes::from(body),
        stream,
        is_structured: !matches!(request.output, OutputFormat::Text),
        losses,
        signatures,
        trace,
    })
}

/// The same for a question of how long it is.
pub(crate) async fn count_tokens(
    app: &App,
    current: &Current,
    ask: &Ask,
) -> Result<(Target, Bytes), Failure> {
    let Understood { request, target, .. } = understand(app, current, ask, None).await?;
    let learned = learned(app, ask, &target, &request);
    let encoded = encode_count_tokens(&request, &target, &options(app, current, &learned))
        .map_err(|bad| placed(bad, ask.door))?;
    Ok((target, Bytes::from(encoded.body)))
}

/// What is wrong with the conversation as a whole is wrong with the field that holds it.
fn placed(bad: BadRequest, door: Dialect) -> BadRequest {
    if !bad.at.is_empty() {
        return bad;
    }
    let at = match door {
        Dialect::Anthropic | Dialect::Chat => "messages",
        Dialect::Gemini => "contents",
        Dialect::Responses => "input",
    };
    BadRequest { at: at.to_owned(), reason: bad.reason }
}

struct Understood<'a> {
    request: Request<'a>,
    echo: Echo,
    losses: Losses,
    target: Target,
    trace: Trace,
}

async fn understand<'a>(
    app: &App,
    current: &Current,
    ask: &'a Ask,
    session: Option<&str>,
) -> Result<Understood<'a>, Failure> {
    let body = std::str::from_utf8(&ask.body).map_err(|error| {
        let at = error.valid_up_to();
        let message = format!("the body is not UTF-8 (at byte {at})");
        Failure::new(FailureKind::InvalidRequest, message)
    })?;
    let options = DecodeOptions { sealer: &app.sealer };
    let Decoded { mut request, echo, mut losses } = match &ask.path {
        Some((model, framing)) => {
            let is_stream = framing.is_some();
            let mut decoded = gemini::decode_request(body, model, is_stream, &options)?;
            decoded.echo.framing = framing.unwrap_or_default();
            Decoded {
                request: decoded.request,
                echo: Echo::Gemini(decoded.echo),
                losses: decoded.losses,
            }
        }
        None if ask.counts => {
            let decoded = anthropic::decode_count_tokens(body, &options)?;
            Decoded {
                request: decoded.request,
                echo: Echo::Anthropic(decoded.echo),
                losses: decoded.losses,
            }
        }
        None => decode_request(ask.door, body, &options)?,
    };
    losses.extend(splice(&ask.before, &mut request, options)?);
    let meaning = current.config.models.meaning(&request.model);
    apply(&meaning, &mut request);
    losses.extend(request.place_signatures());
    if ask.distrusts {
        losses.extend(distrust(&mut request));
    }
    let target = Target { model: meaning.model, backend: current.link.backend() };
    let mut trace = Trace::new(session, &request, &echo);
    let signs = Profile::of(&target).signatures_required;
    keep::restore(app, ask.owner, &mut request, &mut trace, signs).await;
    if current.config.corrections > 0 {
        hidden::restore(app, ask.owner, &mut request).await;
    }
    request.turns.extend(ask.after.iter().cloned());
    Ok(Understood { request, echo, losses, target, trace })
}

/// Leaves out signatures that may be another model's.
fn distrust(request: &mut Request<'_>) -> Losses {
    let mut losses = Losses::new();
    for (turn, part) in request.turns.iter_mut().enumerate() {
        for (at, part) in part.parts.iter_mut().enumerate() {
            let signature = match part {
                Part::Text { signature, .. } | Part::Thought { signature, .. } => signature,
                Part::Call(call) => &mut call.signature,
                Part::Media(_) | Part::Result(_) | Part::Sealed(_) | Part::Gemini(_) => continue,
            };
            if signature.take_if(|it| it.issuer().is_none()).is_some() {
                losses.push(Loss {
                    at: format!("contents[{turn}].parts[{at}].thoughtSignature"),
                    code: LossCode::ForeignSignature,
                    detail: "Gemini refused a signature; those of an unknown issuer were left out"
                        .into(),
                    tool: None,
                });
            }
        }
    }
    losses
}

/// What the target has refused of it, just now or lately.
fn learned(app: &App, ask: &Ask, target: &Target, request: &Request<'_>) -> Learned {
    let now = Instant::now();
    if ask.lesson == Learned::default() {
        return app.lessons.of(target, request, now);
    }
    app.lessons.remember(target, request, &ask.lesson, now);
    let mut learned = ask.lesson.clone();
    learned.add(&app.lessons.of(target, request, now));
    learned
}

/// What the configuration says about the model where the client says nothing.
fn apply(meaning: &Meaning, request: &mut Request<'_>) {
    let thinking = &mut request.thinking;
    if thinking.mode == ThinkingMode::Unset
        && thinking.effort.is_none()
        && thinking.budget.is_none()
    {
        thinking.effort = meaning.effort;
        thinking.budget = meaning.budget;
    }
    if let Some(most) = meaning.max_output_tokens {
        let asked = request.settings.max_output_tokens.unwrap_or(most);
        request.settings.max_output_tokens = Some(asked.min(most));
    }
}

fn options<'a>(app: &'a App, current: &'a Current, learned: &'a Learned) -> EncodeOptions<'a> {
    EncodeOptions {
        cache: &app.schemas,
        strict: current.config.strict_tool_validation,
        tools_enabled: current.config.enable_tool_calling,
        schema: current.config.schemas,
        learned,
    }
}
