//! `/v1/messages`: the Anthropic Messages API.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::{Request, StatusCode};
use toolgate_core::anthropic;
use toolgate_core::canon::Target;
use toolgate_core::canon::{Failure, FailureKind};
use toolgate_core::dialect::DecodeOptions;
use toolgate_core::translate::{Dialect, Echo};

use super::RequestContext;
use super::answer::deliver;
use super::loss_report::{wants_report, with_report};
use super::reply::{self, Reply};
use super::source::BodySource;
use crate::offload::checkpoint;
use crate::sessions::{self, History, Recorder, SessionError, text};
use crate::turn::{self, Attempts, Input, Prepared};

const DIALECT: Dialect = Dialect::Anthropic;

/// `POST /v1/messages`
pub(crate) async fn messages(context: RequestContext, request: Request<Bytes>) -> Reply {
    let (started, report) = (Instant::now(), wants_report(&request));
    let (input, prepared, recorder) = match prepare(&context, request.into_body()).await {
        Ok(prepared) => prepared,
        Err(error) => return context.refuse(DIALECT, &error),
    };
    let audit = context.turn.audit(DIALECT).since(started);
    match turn::run(&context.turn, &input, Some(prepared), audit).await {
        Ok(outcome) => {
            let losses = report.then(|| outcome.losses.clone());
            with_report(deliver(&context, outcome, recorder).await, losses)
        }
        Err(failure) => reply::failure(DIALECT, &failure, &context.turn.request_id),
    }
}

/// Reads the body, fetches the history of its thread, and prepares the turn.
async fn prepare(
    context: &RequestContext,
    body: Bytes,
) -> Result<(Input, Prepared, Option<Recorder>), SessionError> {
    let size = body.len();
    let memory = context.reserve(size).await?;
    let work = |context: RequestContext| async move {
        let _memory = memory;
        let options = DecodeOptions { sealer: &context.turn.services.sealer };
        let source = text(&body)?;
        let parsed = anthropic::parse_request(source)?;
        let (thread, repeated) = (parsed.thread()?, parsed.repeated_places(source));
        let opened = sessions::open_thread(&context.sessions(), &thread, &body, repeated).await?;
        let (history, recorder) = match opened {
            Some(opened) => (opened.history, Some(opened.recorder)),
            None => (History::default(), None),
        };
        let _memory = context.reserve_history(&history)?;
        let source = BodySource { history, ..BodySource::new(DIALECT, body.clone()) };
        let source = Arc::new(source);
        checkpoint().await;
        let decoded = parsed.decode(&source.history.stored_turns(), &options)?;
        let input = Input { collect: recorder.is_some(), ..Input::new(Arc::clone(&source) as _) };
        let decoded = decoded.map_echo(Echo::Anthropic);
        let prepared = turn::prepare_decoded(&context.turn, &input, decoded).await?;
        Ok((input, prepared, recorder))
    };
    context.compute(size, work).await?
}

/// `POST /v1/messages/count_tokens`, by Gemini's own count.
pub(crate) async fn count_tokens(context: RequestContext, request: Request<Bytes>) -> Reply {
    let mut audit = context.turn.audit(DIALECT);
    match count(&context, request.into_body()).await {
        Ok(tokens) => {
            audit.answered();
            reply::json(StatusCode::OK, anthropic::encode_count(tokens))
        }
        Err(error) => {
            audit.failed(&error.failure());
            reply::error(error.reply(DIALECT, &context.turn.request_id))
        }
    }
}

async fn count(context: &RequestContext, body: Bytes) -> Result<u64, SessionError> {
    let (target, key, body) = prepare_count(context, body).await?;
    let mut attempts = Attempts::counting(&context.turn, target, key, body);
    let timeout = attempts.idle();
    loop {
        let response = turn::open(&mut attempts, timeout).await.map_err(|error| error.failure)?;
        let body = turn::read_checked(response.into_body(), timeout).await;
        match body.and_then(|body| total_tokens(&body)) {
            Ok(tokens) => return Ok(tokens),
            Err(failure) => turn::again(&mut attempts, &failure).await?,
        }
    }
}

/// The messages of a thread are counted with the request.
async fn prepare_count(
    context: &RequestContext,
    body: Bytes,
) -> Result<(Target, Option<usize>, Bytes), SessionError> {
    let size = body.len();
    let memory = context.reserve(size).await?;
    let work = |context: RequestContext| async move {
        let _memory = memory;
        let options = DecodeOptions { sealer: &context.turn.services.sealer };
        let parsed = anthropic::parse_count_tokens(text(&body)?)?;
        let thread = parsed.thread()?;
        let opened = sessions::open_thread(&context.sessions(), &thread, &body, Vec::new()).await?;
        let history = opened.map(|opened| opened.history).unwrap_or_default();
        let _memory = context.reserve_history(&history)?;
        let source = BodySource { history, ..BodySource::new(DIALECT, body.clone()) };
        let source = Arc::new(source);
        let decoded = parsed.decode(&source.history.stored_turns(), &options)?;
        let input = Input::new(Arc::clone(&source) as _);
        let decoded = decoded.map_echo(Echo::Anthropic);
        Ok(turn::prepare_count(&context.turn, &input, decoded).await?)
    };
    context.compute(size, work).await?
}

/// Decodes Gemini's count. A body without `totalTokens` is an error, not a count of zero.
fn total_tokens(body: &[u8]) -> Result<u64, Failure> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Counted {
        total_tokens: u64,
    }
    let counted: Counted = serde_json::from_slice(body).map_err(|error| {
        let message = format!("cannot read the upstream's token count: {error}");
        Failure::new(FailureKind::UpstreamProtocol, message)
    })?;
    Ok(counted.total_tokens)
}
