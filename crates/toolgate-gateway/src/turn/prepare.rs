//! From a client's body to what Gemini is sent.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use toolgate_core::anthropic;
use toolgate_core::canon::{
    BadRequest, DecodeOptions, Decoded, Failure, FailureKind, Loss, LossCode, Losses, OutputFormat,
    Part, Request, Signature, ThinkingMode, Turn,
};
use toolgate_core::gemini::upstream::Profile;
use toolgate_core::gemini::upstream::{
    EncodeOptions, Encoded, Learned, SignatureCount, encode_count_tokens, encode_request,
};
use toolgate_core::gemini::{self, Exchange, Target};
use toolgate_core::responses::Framing;
use toolgate_core::translate::{Dialect, Echo, decode_request};

use super::lessons::{RequiredTools, Scope};
use super::trace::Trace;
use super::{hidden, keep};
use crate::app::{App, Current};
use crate::auth::{Client, Owner, Pass};
use crate::config::Meaning;
use crate::doors::Visit;
use crate::offload::checkpoint;
use crate::session::{Before, own_place, splice};

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
    /// The credential that the upstream is shown.
    pub(crate) pass: Pass,
    /// Index of the pool's key that the turn uses already; `None`: one is to be selected.
    pub(crate) key: Option<usize>,
    /// What was said before and does not stand in the body.
    pub(crate) before: Arc<Before>,
    /// What was said since that the client does not see.
    pub(crate) after: Vec<Turn<'static>>,
    /// Whether the whole answer is wanted in the end.
    pub(crate) collect: bool,
    /// That the answer is streamed, whatever the body says, and how.
    pub(crate) stream: Option<Framing>,
    /// Which signatures are sent.
    pub(crate) trust: Trust,
    /// What Gemini has just refused of it.
    pub(crate) lesson: Learned,
}

/// Which signatures are sent. Gemini does not say which one it refuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Trust {
    /// All that are not known to have been refused.
    #[default]
    All,
    /// Those that say who issued them, if there are others; else none.
    Named,
    /// None: the calls go on with the placeholder.
    None,
}

impl Trust {
    /// What is left after a refusal.
    pub(crate) fn less(self) -> Option<Self> {
        match self {
            Self::All => Some(Self::Named),
            Self::Named => Some(Self::None),
            Self::None => None,
        }
    }
}

impl Ask {
    /// A question that stands alone.
    pub(crate) fn new(door: Dialect, body: Bytes, client: &Client) -> Self {
        Self {
            door,
            path: None,
            body,
            counts: false,
            owner: client.owner,
            pass: client.pass.clone(),
            key: None,
            before: Arc::default(),
            after: Vec::new(),
            collect: false,
            stream: None,
            trust: Trust::default(),
            lesson: Learned::default(),
        }
    }

    /// Number of bytes that have to be read to translate it.
    pub(crate) fn size(&self) -> usize {
        let turns = self.before.turns.iter().map(|(_, body)| body.len()).sum::<usize>();
        let tools = self.before.tools.as_ref().map_or(0, |(_, body)| body.len());
        self.body.len() + turns + tools
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
    /// Index of the pool's key that the request was prepared for.
    pub(crate) key: Option<usize>,
    /// The tools without which the request makes no sense.
    pub(crate) required: RequiredTools,
}

/// Decodes, completes from the store, and encodes. A large request is translated off the serving thread.
pub(crate) async fn prepare(visit: &Visit, ask: &Ask) -> Result<Prepared, Failure> {
    let (size, ask) = (ask.size(), ask.clone());
    let memory = visit.app.admission.translation(ask.owner, size).await?;
    let work = |visit: Visit| async move {
        let _memory = memory;
        translated(&visit, &ask).await
    };
    visit.compute(size, work).await?
}

async fn translated(visit: &Visit, ask: &Ask) -> Result<Prepared, Failure> {
    let (app, current) = (&*visit.app, &*visit.current);
    let understood = understand(app, current, ask, visit.session.as_deref()).await?;
    checkpoint().await;
    let Understood { request, echo, mut losses, target, trace, key, scope } = understood;
    let learned = learned(app, ask, scope, &target, &request);
    let options = options(app, current, &learned);
    let stream = request.stream || ask.stream.is_some();
    let Encoded { mut body, exchange, losses: more, signatures } =
        encode_request(&request, &target, &options).map_err(|bad| placed(bad, ask.door))?;
    // It is held as long as the turn may have to be asked again.
    body.shrink_to_fit();
    losses.extend(more);
    for loss in &mut losses {
        own_place(&mut loss.at, ask.before.earlier);
    }
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
        key,
        required: RequiredTools::of(&request.tool_choice),
    })
}

/// The same for a request that counts tokens. Also returns the index of the pool's key.
pub(crate) async fn count_tokens(
    visit: &Visit,
    ask: Ask,
) -> Result<(Target, Option<usize>, Bytes), Failure> {
    let size = ask.size();
    let memory = visit.app.admission.translation(ask.owner, size).await?;
    let work = |visit: Visit| async move {
        let _memory = memory;
        let (app, current) = (&*visit.app, &*visit.current);
        let understood = understand(app, current, &ask, None).await?;
        checkpoint().await;
        let Understood { request, target, key, scope, .. } = understood;
        let learned = learned(app, &ask, scope, &target, &request);
        let encoded = encode_count_tokens(&request, &target, &options(app, current, &learned))
            .map_err(|bad| placed(bad, ask.door))?;
        Ok((target, key, Bytes::from(encoded.body)))
    };
    visit.compute(size, work).await?
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
    key: Option<usize>,
    scope: Scope,
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
    let own = |mut bad: BadRequest| {
        own_place(&mut bad.at, ask.before.earlier);
        bad
    };
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
            let decoded = anthropic::decode_count_tokens(body, &options).map_err(own)?;
            Decoded {
                request: decoded.request,
                echo: Echo::Anthropic(decoded.echo),
                losses: decoded.losses,
            }
        }
        None => decode_request(ask.door, body, &options).map_err(own)?,
    };
    checkpoint().await;
    losses.extend(splice(&ask.before, &mut request, options)?);
    let meaning = current.config.models.meaning(&request.model);
    apply(&meaning, &mut request);
    losses.extend(request.place_signatures());
    let target = Target { model: meaning.model, backend: current.link.backend() };
    let mut trace = Trace::new(session, &request, &echo);
    let key = select_key(current, ask, &trace);
    let scope = Scope::new(ask.owner, &ask.pass, key.and_then(|key| current.keys.key(key)));
    // What does not say who issued it may still be found in the store, where it does.
    let is_unnamed = |it: &Signature<'_>| it.issuer().is_none();
    let mut trust = ask.trust;
    if trust == Trust::Named {
        let refused = distrust(app, scope, &target, &mut request, is_unnamed);
        if refused.is_empty() {
            trust = Trust::None;
        }
        losses.extend(refused);
    }
    let now = Instant::now();
    let has_refused = app.refusals.has_signatures(scope);
    let is_refused = |it: &Signature<'_>| app.refusals.refuses_signature(scope, &target, it, now);
    if has_refused {
        let is_doubtful = |it: &Signature<'_>| is_unnamed(it) && is_refused(it);
        losses.extend(distrust(app, scope, &target, &mut request, is_doubtful));
    }
    let signs = Profile::of(&target).signatures_required;
    keep::restore(app, ask.owner, &mut request, &mut trace, signs).await;
    if trust == Trust::None {
        losses.extend(distrust(app, scope, &target, &mut request, |_| true));
    } else if has_refused {
        losses.extend(distrust(app, scope, &target, &mut request, is_refused));
    }
    if current.config.corrections > 0 {
        hidden::restore(app, ask.owner, &mut request).await;
    }
    request.turns.extend(ask.after.iter().cloned());
    Ok(Understood { request, echo, losses, target, trace, key, scope })
}

/// Selects the pool's key for a turn. Requests of one conversation use the same key.
fn select_key(current: &Current, ask: &Ask, trace: &Trace) -> Option<usize> {
    match ask.pass {
        Pass::Pool => ask.key.or_else(|| current.keys.pick(Instant::now(), trace.home())),
        Pass::ApiKey(_) | Pass::Bearer(_) => None,
    }
}

/// Leaves out signatures that may be another model's or another project's, and remembers them: the next
/// request will have them too.
fn distrust(
    app: &App,
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
                app.refusals.refuse_signature(scope, target, &refused, Instant::now());
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

/// What the target has refused of it, just now or lately.
fn learned(app: &App, ask: &Ask, scope: Scope, target: &Target, request: &Request<'_>) -> Learned {
    let now = Instant::now();
    if ask.lesson == Learned::default() {
        return app.refusals.known(scope, target, request, now);
    }
    app.refusals.remember(scope, target, request, &ask.lesson, now);
    let mut learned = ask.lesson.clone();
    learned.add(&app.refusals.known(scope, target, request, now));
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
