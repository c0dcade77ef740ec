//! From a decoded request to the request that Gemini is sent.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use toolgate_core::canon::Target;
use toolgate_core::canon::{
    BadRequest, Failure, Loss, LossCode, Losses, OutputFormat, Part, Request, Signature,
    ThinkingMode, Turn,
};
use toolgate_core::dialect::{DecodeOptions, Decoded};
use toolgate_core::responses::Framing;
use toolgate_core::translate::{Dialect, Echo};
use toolgate_core::upstream::generate_content::Exchange;
use toolgate_core::upstream::generate_content::{
    EncodeOptions, Encoded, Learned, Profile, SignatureCount, encode_count_tokens, encode_request,
};

use super::context::{Context, Current, Services};
use super::corrections;
use super::refusals::{RequiredTools, Scope};
use crate::auth::Pass;
use crate::config::Meaning;
use crate::offload::checkpoint;
use crate::signatures::Fingerprint;

/// A client's request, which can be decoded for each round of a turn.
pub(crate) trait Source: Debug + Send + Sync {
    /// Dialect of the request and its answer.
    fn dialect(&self) -> Dialect;

    /// Number of bytes that have to be read to decode it.
    fn size(&self) -> usize;

    /// Decodes the request, with its history.
    fn decode<'a>(&'a self, options: DecodeOptions<'_>) -> Result<Decoded<'a, Echo>, Failure>;
}

/// Input of a turn.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(crate) source: Arc<dyn Source>,
    /// Index of the pool's key that the turn uses already; `None`: one is to be selected.
    pub(crate) key: Option<usize>,
    /// Turns of correction rounds, which the client does not see.
    pub(crate) corrections: Vec<Turn<'static>>,
    /// Whether the stream assembles the whole answer, too.
    pub(crate) collect: bool,
    /// Framing of an answer that is streamed whatever the request says.
    pub(crate) framing: Option<Framing>,
    /// Signatures that are sent.
    pub(crate) trust: Trust,
    /// What Gemini has just refused of the request.
    pub(crate) lesson: Learned,
}

/// Which signatures are sent. Gemini does not say which one it refuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Trust {
    /// All that are not known to have been refused.
    #[default]
    All,
    /// Those with a known issuer, if there are others; otherwise none.
    Named,
    /// None: the calls go on with the placeholder.
    None,
}

impl Trust {
    /// The next level after a refusal.
    pub(crate) fn less(self) -> Option<Self> {
        match self {
            Self::All => Some(Self::Named),
            Self::Named => Some(Self::None),
            Self::None => None,
        }
    }
}

impl Input {
    pub(crate) fn new(source: Arc<dyn Source>) -> Self {
        Self {
            source,
            key: None,
            corrections: Vec::new(),
            collect: false,
            framing: None,
            trust: Trust::default(),
            lesson: Learned::default(),
        }
    }
}

/// A request that is ready to be sent.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) echo: Echo,
    pub(crate) exchange: Arc<Exchange>,
    pub(crate) target: Target,
    pub(crate) body: Bytes,
    pub(crate) stream: bool,
    /// The answer must have a given form: texts of several rounds do not add up to one.
    pub(crate) is_structured: bool,
    pub(crate) tools: usize,
    pub(crate) losses: Losses,
    pub(crate) signatures: SignatureCount,
    pub(crate) fingerprint: Fingerprint,
    /// Index of the pool's key that the request was prepared for.
    pub(crate) key: Option<usize>,
    /// Tools without which the request makes no sense.
    pub(crate) required: RequiredTools,
}

/// Decodes the request again and prepares it.
pub(crate) async fn prepare(context: &Context, input: &Input) -> Result<Prepared, Failure> {
    let (size, input) = (input.source.size(), input.clone());
    let admission = &context.services.admission;
    let memory = admission.translation(context.client.owner, size).await?;
    let work = |context: Context| async move {
        let _memory = memory;
        let options = DecodeOptions { sealer: &context.services.sealer };
        let decoded = input.source.decode(options)?;
        checkpoint().await;
        prepare_decoded(&context, &input, decoded).await
    };
    context.compute(size, work).await?
}

/// Restores signatures and hidden calls, applies the configuration, and encodes. Runs within
/// [`Context::compute`].
pub(crate) async fn prepare_decoded(
    context: &Context,
    input: &Input,
    decoded: Decoded<'_, Echo>,
) -> Result<Prepared, Failure> {
    let (services, current) = (&*context.services, &*context.current);
    let session = context.session.as_deref();
    let completed = complete(context, input, decoded, session).await?;
    checkpoint().await;
    let Completed { request, echo, mut losses, target, fingerprint, key, scope } = completed;
    let learned = learned(services, input, scope, &target, &request);
    let options = options(services, current, &learned);
    let stream = request.stream || input.framing.is_some();
    let Encoded { mut body, exchange, losses: more, signatures } =
        encode_request(&request, &target, &options)
            .map_err(|bad| placed(bad, input.source.dialect()))?;
    // The body is held as long as the turn may be retried.
    body.shrink_to_fit();
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
        fingerprint,
        key,
        required: RequiredTools::of(&request.tool_choice),
    })
}

/// Prepares a request that counts tokens. Also returns the index of the pool's key. Runs within
/// [`Context::compute`].
pub(crate) async fn prepare_count(
    context: &Context,
    input: &Input,
    decoded: Decoded<'_, Echo>,
) -> Result<(Target, Option<usize>, Bytes), Failure> {
    let (services, current) = (&*context.services, &*context.current);
    let completed = complete(context, input, decoded, None).await?;
    checkpoint().await;
    let Completed { request, target, key, scope, .. } = completed;
    let learned = learned(services, input, scope, &target, &request);
    let encoded = encode_count_tokens(&request, &target, &options(services, current, &learned))
        .map_err(|bad| placed(bad, input.source.dialect()))?;
    Ok((target, key, Bytes::from(encoded.body)))
}

/// Gives an error about the conversation as a whole the name of the field that holds it.
fn placed(bad: BadRequest, dialect: Dialect) -> BadRequest {
    if !bad.at.is_empty() {
        return bad;
    }
    let at = match dialect {
        Dialect::Anthropic | Dialect::Chat => "messages",
        Dialect::Gemini => "contents",
        Dialect::Responses => "input",
    };
    BadRequest { at: at.to_owned(), reason: bad.reason }
}

/// A request whose history is complete.
struct Completed<'a> {
    request: Request<'a>,
    echo: Echo,
    losses: Losses,
    target: Target,
    fingerprint: Fingerprint,
    key: Option<usize>,
    scope: Scope,
}

async fn complete<'a>(
    context: &Context,
    input: &Input,
    decoded: Decoded<'a, Echo>,
    session: Option<&str>,
) -> Result<Completed<'a>, Failure> {
    let (services, current) = (&*context.services, &*context.current);
    let Decoded { mut request, mut echo, mut losses } = decoded;
    let meaning = current.config.models.meaning(&request.model);
    apply(&meaning, &mut request);
    losses.extend(request.place_signatures());
    let target = Target { model: meaning.model, backend: current.link.backend() };
    let mut fingerprint = Fingerprint::new(session, &request, &echo);
    let key = select_key(context, input, &fingerprint);
    let scope = Scope::new(
        context.client.owner,
        &context.client.pass,
        key.and_then(|key| current.keys.key(key)),
    );
    // A signature without an issuer may be in the store, with its issuer.
    let is_unnamed = |it: &Signature<'_>| it.issuer().is_none();
    let mut trust = input.trust;
    if trust == Trust::Named {
        let refused = distrust(services, scope, &target, &mut request, is_unnamed);
        if refused.is_empty() {
            trust = Trust::None;
        }
        losses.extend(refused);
    }
    let now = Instant::now();
    let has_refused = services.refusals.has_signatures(scope);
    let is_refused =
        |it: &Signature<'_>| services.refusals.refuses_signature(scope, &target, it, now);
    if has_refused {
        let is_doubtful = |it: &Signature<'_>| is_unnamed(it) && is_refused(it);
        losses.extend(distrust(services, scope, &target, &mut request, is_doubtful));
    }
    let signs = Profile::of(&target).signatures_required;
    let signatures = context.signatures();
    signatures.restore(&mut request, &mut fingerprint, signs).await;
    if let (Echo::Anthropic(echo), true) = (&mut echo, signs) {
        echo.signatures_stored = !services.store.is_off();
        signatures.restore_texts(&mut request).await;
        losses.extend(request.place_signatures());
    }
    if trust == Trust::None {
        losses.extend(distrust(services, scope, &target, &mut request, |_| true));
    } else if has_refused {
        losses.extend(distrust(services, scope, &target, &mut request, is_refused));
    }
    if current.config.corrections > 0 {
        corrections::restore(context, &mut request).await;
    }
    request.turns.extend(input.corrections.iter().cloned());
    Ok(Completed { request, echo, losses, target, fingerprint, key, scope })
}

/// Selects the pool's key for a turn. Requests of one conversation use the same key.
fn select_key(context: &Context, input: &Input, fingerprint: &Fingerprint) -> Option<usize> {
    let keys = &context.current.keys;
    match context.client.pass {
        Pass::Pool => input.key.or_else(|| keys.pick(Instant::now(), fingerprint.home())),
        Pass::ApiKey(_) | Pass::Bearer(_) => None,
    }
}

/// Leaves out signatures that may be another model's or another project's, and remembers them: the next
/// request will have them too.
fn distrust(
    services: &Services,
    scope: Scope,
    target: &Target,
    request: &mut Request<'_>,
    is_doubtful: impl Fn(&Signature<'_>) -> bool,
) -> Losses {
    let mut losses = Losses::new();
    for (turn, part) in request.turns.iter_mut().enumerate() {
        for (at, part) in part.parts.iter_mut().enumerate() {
            let signature = match part {
                Part::Text { signature, .. } | Part::Thought { signature, .. } => signature,
                Part::Call(call) => &mut call.signature,
                Part::Media(_) | Part::Result(_) | Part::Sealed(_) | Part::Gemini(_) => continue,
            };
            if let Some(refused) = signature.take_if(|it| is_doubtful(it)) {
                services.refusals.refuse_signature(scope, target, &refused, Instant::now());
                losses.push(Loss {
                    at: format!("contents[{turn}].parts[{at}].thoughtSignature"),
                    code: LossCode::ForeignSignature,
                    detail: "Gemini refused a signature; this one was left out".into(),
                    tool: None,
                });
            }
        }
    }
    losses
}

/// Parts of the request that the target has refused, just now or lately.
fn learned(
    services: &Services,
    input: &Input,
    scope: Scope,
    target: &Target,
    request: &Request<'_>,
) -> Learned {
    let now = Instant::now();
    if input.lesson == Learned::default() {
        return services.refusals.known(scope, target, request, now);
    }
    services.refusals.remember(scope, target, request, &input.lesson, now);
    let mut learned = input.lesson.clone();
    learned.add(&services.refusals.known(scope, target, request, now));
    learned
}

/// Applies the model's settings where the client gives none.
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

fn options<'a>(
    services: &'a Services,
    current: &'a Current,
    learned: &'a Learned,
) -> EncodeOptions<'a> {
    EncodeOptions {
        cache: &services.schemas,
        strict: current.config.strict_tool_validation,
        tools_enabled: current.config.enable_tool_calling,
        schema: current.config.schemas,
        learned,
    }
}
