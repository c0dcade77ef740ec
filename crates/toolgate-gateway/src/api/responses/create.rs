//! `POST /v1/responses`

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::{Request, StatusCode};
use toolgate_core::canon::Failure;
use toolgate_core::dialect::DecodeOptions;
use toolgate_core::responses::{Framing, parse_request};
use toolgate_core::translate::Echo;

use super::endpoints::DIALECT;
use super::prewarm::Prewarmed;
use super::{background, prewarm};
use crate::api::RequestContext;
use crate::api::answer::deliver;
use crate::api::loss_report::{wants_report, with_report};
use crate::api::reply::{self, Reply};
use crate::api::source::BodySource;
use crate::offload::checkpoint;
use crate::sessions::{LastAnswer, Recorder, SessionError, open_responses, text};
use crate::turn::{self, Input, Prepared};

pub(super) async fn create(context: RequestContext, request: Request<Bytes>) -> Reply {
    let (started, report) = (Instant::now(), wants_report(&request));
    let opened = match open(&context, request.into_body(), None, None).await {
        Ok(opened) => opened,
        Err(error) => return context.refuse(DIALECT, &error),
    };
    let (opened, prepared) = match opened {
        Opened::Prewarmed(prewarmed) => {
            let reply = reply::json(StatusCode::OK, prewarmed.answer.json);
            return with_report(reply, report.then_some(prewarmed.losses));
        }
        Opened::Background(opened, prepared) => {
            let losses = prepared.as_ref().ok().filter(|_| report);
            let losses = losses.map(|prepared| prepared.losses.clone());
            return match background::begin(context.clone(), opened, prepared).await {
                Ok(reply) => with_report(reply, losses),
                Err(error) => context.refuse(DIALECT, &error),
            };
        }
        Opened::Turn(opened, prepared) => (opened, prepared),
    };
    let audit = context.turn.audit(DIALECT).since(started);
    match turn::run(&context.turn, &opened.input, Some(*prepared), audit).await {
        Ok(outcome) => {
            let losses = report.then(|| outcome.losses.clone());
            with_report(deliver(&context, outcome, Some(opened.recorder)).await, losses)
        }
        Err(failure) => reply::failure(DIALECT, &failure, &context.turn.request_id),
    }
}

/// A request that has been read, with its session.
pub(super) enum Opened {
    Turn(OpenedTurn, Box<Prepared>),
    /// A turn in the background. A turn that cannot be prepared is a response that fails.
    Background(OpenedTurn, Result<Box<Prepared>, Failure>),
    Prewarmed(Prewarmed),
}

/// Input of a turn, and what its session needs.
pub(super) struct OpenedTurn {
    pub(super) input: Input,
    pub(super) echo: Echo,
    pub(super) recorder: Recorder,
    /// The body that the client sent.
    pub(super) body: Bytes,
    pub(super) source: Arc<BodySource>,
}

/// Reads a body, fetches its history, and prepares its turn. `last` is the last answer of a WebSocket, on which
/// answers are streamed with `framing`.
pub(super) async fn open(
    context: &RequestContext,
    body: Bytes,
    last: Option<Arc<LastAnswer>>,
    framing: Option<Framing>,
) -> Result<Opened, SessionError> {
    let size = body.len() + last.as_ref().map_or(0, |last| last.size());
    let memory = context.reserve(size).await?;
    let work = |context: RequestContext| async move {
        let _memory = memory;
        let options = DecodeOptions { sealer: &context.turn.services.sealer };
        let parsed = parse_request(text(&body)?)?;
        let session = open_responses(&context.sessions(), &parsed, &body, last.as_deref()).await?;
        let (history, recorder) = (session.history, session.recorder);
        let _memory = context.reserve_history(&history)?;
        checkpoint().await;
        let source = Arc::new(BodySource { history, ..BodySource::new(DIALECT, body.clone()) });
        let (is_prewarm, is_background) = (parsed.is_prewarm(), parsed.is_background());
        let decoded = parsed.decode(&source.history.stored(), &options)?;
        if is_prewarm {
            let prewarmed =
                prewarm::answer(&context, decoded, &source.history, &recorder, &body).await;
            return Ok(Opened::Prewarmed(prewarmed));
        }
        let mut decoded = decoded.map_echo(Echo::Responses);
        source.history.complete(&mut decoded, options)?;
        let runs_in_background = is_background && framing.is_none();
        let framing = if runs_in_background { Some(Framing::Sse) } else { framing };
        let input = Input { framing, ..Input::new(Arc::clone(&source) as _) };
        let echo = decoded.echo.clone();
        let prepared = turn::prepare_decoded(&context.turn, &input, decoded).await.map(Box::new);
        let source = Arc::clone(&source);
        let opened = OpenedTurn { input, echo, recorder, body: body.clone(), source };
        Ok(if runs_in_background {
            Opened::Background(opened, prepared)
        } else {
            Opened::Turn(opened, prepared?)
        })
    };
    context.compute(size, work).await?
}
