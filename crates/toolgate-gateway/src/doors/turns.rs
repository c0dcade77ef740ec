//! Turns: Messages, Chat Completions, and whatever else ends in one question to the model.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures_util::stream;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};
use toolgate_core::canon::{
    Answer, Call, CallInput, Failure, FailureKind, Item, Losses, MediaSource, Stamp, brief,
};
use toolgate_core::responses::{self, Framing};
use toolgate_core::translate::{AnyEncoder, Dialect, Echo};
use toolgate_core::{anthropic, gemini};

use super::Visit;
pub(crate) use super::report::{add_report, wants_report};
use crate::reply::{self, Body, Reply};
use crate::session::{self, Before, Keeper, Opened, Refused, Shown, Whole};
use crate::turn::{self, Ask, First, Ledger, Plan, Prepared, Pump};

/// A turn whose dialect the path says.
pub(crate) async fn turn(visit: Visit, dialect: Dialect, request: Request<Incoming>) -> Reply {
    let report = wants_report(&request);
    let body = match visit.body(request).await {
        Ok(body) => body,
        Err(failure) => return visit.fail(dialect, &failure),
    };
    let opened = match dialect {
        Dialect::Anthropic => open_thread(&visit, &body).await,
        Dialect::Chat | Dialect::Gemini | Dialect::Responses => Ok(None),
    };
    let mut ask = Ask::new(dialect, body, &visit.client);
    let mut keeper = None;
    match opened {
        Ok(None) => {}
        Ok(Some(opened)) => {
            (ask.body, ask.before, ask.collect) = (opened.body, Arc::new(opened.before), true);
            keeper = Some(opened.keeper);
        }
        Err(refused) => return visit.refuse(dialect, &refused),
    }
    match run(&visit, &ask).await {
        Ok(outcome) => {
            let losses = report.then(|| outcome.losses.clone());
            let mut reply = shown(&visit, outcome, keeper).await;
            if let Some(losses) = losses {
                add_report(&mut reply, &losses);
            }
            reply
        }
        Err(failure) => reply::failure(dialect, &failure, &visit.request_id),
    }
}

/// Completes a request that is part of a message thread.
async fn open_thread(visit: &Visit, body: &Bytes) -> Result<Option<Opened>, Refused> {
    let (size, body) = (body.len(), body.clone());
    let open = |visit: Visit| async move { session::open_thread(&visit, &body).await };
    visit.compute(size, open).await?
}

/// Shows an answer. With a keeper, it is kept before the client sees its end.
pub(crate) async fn shown(visit: &Visit, outcome: Outcome, keeper: Option<Keeper>) -> Reply {
    let Outcome { echo, result, stamp, size, .. } = outcome;
    let dialect = echo.dialect();
    match result {
        Answered::Whole(answer) => {
            let work = |visit: Visit| async move {
                let whole = whole(&echo, &answer, &stamp, &visit);
                let signed = answer.calls().any(|call| is_kept(&visit, call));
                if let Some(keeper) = keeper {
                    keeper.keep(&echo, &whole, signed).await;
                } else if signed {
                    visit.app.store.flush().await;
                }
                whole.json
            };
            match visit.compute(size, work).await {
                Ok(json) => reply::json(StatusCode::OK, json),
                Err(failure) => reply::failure(dialect, &failure, &visit.request_id),
            }
        }
        Answered::Stream(pump) => {
            let kind = match &echo {
                Echo::Gemini(echo) if echo.framing == gemini::Framing::Array => "application/json",
                Echo::Anthropic(_) | Echo::Chat(_) | Echo::Gemini(_) | Echo::Responses(_) => {
                    "text/event-stream"
                }
            };
            let keeping =
                keeper.map(|keeper| Keeping::new(keeper, echo, stamp, size).with_events());
            reply::stream(kind, body_of(pump, visit, keeping))
        }
    }
}

/// An answer in one piece.
fn whole(echo: &Echo, answer: &Answer, stamp: &Stamp, visit: &Visit) -> Whole {
    let sealer = &visit.app.sealer;
    match echo {
        Echo::Responses(echo) => responses::encode_object(answer, echo, stamp, sealer).into(),
        Echo::Anthropic(_) | Echo::Chat(_) | Echo::Gemini(_) => {
            echo.encode_response(answer, stamp, sealer).into()
        }
    }
}

/// What keeps a streamed answer.
pub(crate) struct Keeping {
    pub(crate) keeper: Keeper,
    pub(crate) echo: Echo,
    stamp: Stamp,
    /// Number of bytes of the question: the answer may repeat parts of it.
    size: usize,
    /// What was shown, where it may be asked for again.
    events: Option<Shown>,
    /// How many copies of the settings were in it.
    copies: usize,
}

/// Longer streams cannot be streamed again.
const EVENTS: usize = 4 << 20;

impl Keeping {
    pub(crate) fn new(keeper: Keeper, echo: Echo, stamp: Stamp, size: usize) -> Self {
        Self { keeper, echo, stamp, size, events: None, copies: 0 }
    }

    /// Keeps the events too, where it is a stored response.
    fn with_events(mut self) -> Self {
        let is_stored = match &self.echo {
            Echo::Responses(echo) => echo.is_stored(),
            Echo::Anthropic(_) | Echo::Chat(_) | Echo::Gemini(_) => false,
        };
        self.events = is_stored.then(Shown::default);
        self
    }

    /// Takes note of what is shown.
    fn note(&mut self, shown: &[u8], pump: &Pump) {
        if let Some(events) = &mut self.events
            && let AnyEncoder::Responses(encoder) = pump.translator().encoder()
        {
            if events.len() + shown.len() <= EVENTS {
                let places = encoder.settings_places();
                events.push(
                    shown,
                    encoder.settings(),
                    places.get(self.copies..).unwrap_or_default(),
                );
                self.copies = places.len();
            } else {
                self.events = None;
            }
        }
    }

    /// Hands over the events of an answer that has been shown to its end. What is left to keep of
    /// it, if anything, is the answer in one piece.
    fn keep_events(&mut self, pump: &Pump, visit: &Visit) -> Option<Whole> {
        let events = self.events.take();
        if let Some(events) = events
            && let AnyEncoder::Responses(encoder) = pump.translator().encoder()
        {
            let kept = self.keeper.keep_events(encoder.response_id(), &events, encoder.settings());
            if let Some(settings) = kept {
                let object = encoder.object_without_settings();
                return Some(Whole::without_settings(object, settings));
            }
        }
        self.whole(pump, visit)
    }

    /// The answer that a pump has shown, in one piece.
    pub(crate) fn whole(&self, pump: &Pump, visit: &Visit) -> Option<Whole> {
        let translator = pump.translator();
        match translator.encoder() {
            AnyEncoder::Responses(encoder) => Some(encoder.object().into()),
            AnyEncoder::Anthropic(_) | AnyEncoder::Chat(_) | AnyEncoder::Gemini(_) => {
                translator.answer().map(|answer| whole(&self.echo, &answer, &self.stamp, visit))
            }
        }
    }
}

/// What came of a turn.
pub(crate) struct Outcome {
    pub(crate) echo: Echo,
    pub(crate) result: Answered,
    pub(crate) losses: Losses,
    pub(crate) stamp: Stamp,
    /// Number of bytes of the question, and of an answer in one piece.
    pub(crate) size: usize,
}

/// The answer.
pub(crate) enum Answered {
    /// In one piece.
    Whole(Box<Answer>),
    /// As a stream, whose first bytes are there.
    Stream(Box<Pump>),
}

/// How often a request that is refused is sent without what was refused. Gemini names one fault at a
/// time.
const LESSONS: usize = 3;

/// Asks the model; learns from refusals.
pub(crate) async fn run(visit: &Visit, ask: &Ask) -> Result<Outcome, Failure> {
    run_on(visit, ask, visit.ledger(ask.door)).await
}

/// The same on an account that is open already.
pub(crate) async fn run_on(
    visit: &Visit,
    ask: &Ask,
    mut ledger: Ledger,
) -> Result<Outcome, Failure> {
    let mut taught: Option<Ask> = None;
    for left in (0..=LESSONS).rev() {
        let began = Instant::now();
        let ask = taught.as_ref().unwrap_or(ask);
        let prepared = match turn::prepare(visit, ask).await {
            Ok(prepared) => prepared,
            Err(failure) => {
                ledger.failed(&failure);
                return Err(failure);
            }
        };
        ledger.worked(began.elapsed());
        ledger.asked(&prepared);
        let mut plan = Plan::new(visit, &prepared);
        let stamp = visit.stamp();
        let failure;
        if prepared.stream {
            let encoder = prepared.echo.clone().encoder(stamp.clone(), visit.app.sealer.clone());
            let encoder = match encoder {
                AnyEncoder::Responses(encoder) if ask.stream == Some(Framing::Messages) => {
                    AnyEncoder::Responses(Box::new(encoder.framed(Framing::Messages)))
                }
                encoder @ (AnyEncoder::Anthropic(_)
                | AnyEncoder::Chat(_)
                | AnyEncoder::Gemini(_)
                | AnyEncoder::Responses(_)) => encoder,
            };
            let mut pump =
                Pump::new(plan, encoder, ledger).judged(visit, ask, prepared.is_structured);
            if ask.collect {
                pump.collect();
            }
            match pump.first().await {
                First::Stream => {
                    let result = Answered::Stream(Box::new(pump));
                    let Prepared { echo, losses, .. } = prepared;
                    return Ok(Outcome { echo, result, losses, stamp, size: ask.size() });
                }
                First::Failure(why) => {
                    (plan, ledger) = pump.into_parts();
                    failure = why;
                }
            }
        } else {
            let corrections = visit.current.config.corrections;
            let judge = turn::judge(corrections, plan.exchange(), prepared.is_structured);
            let answer = match judge {
                Some(judge) => turn::judged(visit, ask, &mut plan, &mut ledger, judge).await,
                None => turn::answer(visit, &mut plan, &mut ledger).await,
            };
            match answer {
                Ok(answer) => {
                    ledger.delivered(&answer.call_log());
                    ledger.done(&answer.finish);
                    let size = ask.size() + answer_size(&answer);
                    let Prepared { echo, mut losses, .. } = prepared;
                    losses.extend(answer.finish.losses.clone());
                    let result = Answered::Whole(Box::new(answer));
                    return Ok(Outcome { echo, result, losses, stamp, size });
                }
                Err(why) => failure = why,
            }
        }
        let Some(lessened) = lessened(ask, &plan, &failure).filter(|_| left > 0) else {
            ledger.failed(&failure);
            return Err(failure);
        };
        taught = Some(lessened);
        visit.app.metrics.rescued("refusal");
        let refusal = brief(&failure.message, turn::LOGGED);
        tracing::warn!(request = %visit.request_id, "trying without what Gemini refused: {refusal}");
    }
    // The last round has returned.
    Err(Failure::new(FailureKind::Internal, "a request was neither answered nor refused"))
}

/// Number of bytes of an answer's text, calls and media.
fn answer_size(answer: &Answer) -> usize {
    let size = |item: &Item| match item {
        Item::Text(text) | Item::Thought(text) => text.literal().len(),
        Item::Signature { signature, .. } => signature.expose().len(),
        Item::Call(call) => match &call.input {
            CallInput::Json(raw) => raw.get().len(),
            CallInput::Text(text) => text.literal().len(),
        },
        Item::Media(media) => match &media.source {
            MediaSource::Inline(text) | MediaSource::Uri(text) => text.literal().len(),
        },
        Item::Server(activity) => activity.part.get().len(),
        Item::Grounding(raw) => raw.get().len(),
    };
    answer.items.iter().map(size).sum()
}

/// The same question without what was refused of it; `None`: there is nothing to leave out.
fn lessened(ask: &Ask, plan: &Plan, failure: &Failure) -> Option<Ask> {
    if turn::is_about_signatures(failure) {
        return Some(Ask { trust: ask.trust.less()?, key: plan.key(), ..ask.clone() });
    }
    let lesson = plan.lesson(&ask.lesson, failure)?;
    Some(Ask { lesson, key: plan.key(), ..ask.clone() })
}

/// How long a Messages request is, by Gemini's own count.
pub(crate) async fn count_tokens(visit: Visit, request: Request<Incoming>) -> Reply {
    let dialect = Dialect::Anthropic;
    let mut ledger = visit.ledger(dialect);
    match counted(&visit, request).await {
        Ok(tokens) => {
            ledger.answered();
            reply::json(StatusCode::OK, anthropic::encode_count(tokens))
        }
        Err(refused) => {
            ledger.failed(&refused.failure());
            reply::error(refused.reply(dialect, &visit.request_id))
        }
    }
}

async fn counted(visit: &Visit, request: Request<Incoming>) -> Result<u64, Refused> {
    let body = visit.body(request).await?;
    // What a thread holds is sent with it, and counted with it.
    let (body, before) = match open_thread(visit, &body).await? {
        Some(opened) => (opened.body, opened.before),
        None => (body, Before::default()),
    };
    let ask = Ask::new(Dialect::Anthropic, body, &visit.client);
    let ask = Ask { counts: true, before: Arc::new(before), ..ask };
    let (target, key, body) = turn::count_tokens(visit, ask).await?;
    let mut plan = Plan::counting(visit, target, key, body);
    let patience = plan.idle();
    loop {
        let response = turn::open(&mut plan, patience).await.map_err(|refusal| refusal.failure)?;
        let body = turn::read_checked(response.into_body(), patience).await;
        match body.and_then(|body| total_tokens(&body)) {
            Ok(tokens) => return Ok(tokens),
            Err(failure) => turn::again(&mut plan, &failure).await?,
        }
    }
}

/// Reads Gemini's count. One without `totalTokens` is not zero, but no count.
fn total_tokens(body: &[u8]) -> Result<u64, Failure> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Counted {
        total_tokens: u64,
    }
    let counted: Counted = serde_json::from_slice(body).map_err(|error| {
        let message = format!("the upstream's count cannot be read: {error}");
        Failure::new(FailureKind::UpstreamProtocol, message)
    })?;
    Ok(counted.total_tokens)
}

/// The client's body: the pump, read as the client reads.
pub(crate) fn body_of(pump: Box<Pump>, visit: &Visit, keeping: Option<Keeping>) -> Body {
    let state = (pump, visit.clone(), keeping);
    let frames = stream::unfold(state, |(mut pump, visit, mut keeping)| async move {
        let bytes = pump.next().await?;
        if let Some(keeping) = &mut keeping {
            keeping.note(&bytes, &pump);
        }
        if pump.has_ended() {
            let signed = is_signed(&pump, &visit);
            if let Some(mut keeping) = keeping.take()
                && let Some(whole) = keeping.keep_events(&pump, &visit)
            {
                let Keeping { keeper, echo, size, .. } = keeping;
                let size = size + whole.json.len();
                let keep = |_| async move { keeper.keep_streamed(&echo, &whole, signed).await };
                if let Err(failure) = visit.compute(size, keep).await {
                    tracing::error!(request = %visit.request_id, "cannot store the answer: {failure}");
                }
            } else if signed {
                visit.app.store.flush().await;
            }
        }
        Some((Ok(Frame::data(bytes)), (pump, visit, keeping)))
    });
    StreamBody::new(frames).boxed_unsync()
}

/// Whether something of the calls that a pump has shown is in the store.
pub(crate) fn is_signed(pump: &Pump, visit: &Visit) -> bool {
    pump.translator().seen().calls.iter().any(|call| is_kept(visit, call))
}

/// Whether something of a call is in the store, or of others that belong to it.
fn is_kept(visit: &Visit, call: &Call<'_>) -> bool {
    call.signature.is_some() || visit.current.config.corrections > 0
}
