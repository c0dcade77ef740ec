//! The way of a turn from a request to its answer.

use std::time::Instant;

use toolgate_core::canon::{
    Answer, CallInput, Failure, FailureKind, Item, Losses, MediaSource, brief,
};

use toolgate_core::dialect::Stamp;
use toolgate_core::responses::Framing;
use toolgate_core::translate::{AnyEncoder, Echo};
use toolgate_core::upstream::generate_content::Profile;

use super::attempts::Attempts;
use super::audit::{Audit, MAX_LOGGED_BYTES};
use super::context::Context;
use super::corrections;
use super::prepare::{Input, Prepared, prepare};
use super::refusals::is_about_signatures;
use super::stream::{First, TurnStream};
use super::unary;
use crate::signatures::SignatureRecorder;

/// A turn that is answered.
pub(crate) struct Outcome {
    pub(crate) echo: Echo,
    pub(crate) answer: Answered,
    pub(crate) losses: Losses,
    pub(crate) stamp: Stamp,
    /// Number of bytes of the request, and of an answer in one piece.
    pub(crate) size: usize,
}

/// The answer of a turn.
pub(crate) enum Answered {
    /// In one piece.
    Whole(Box<Answer>),
    /// As a stream, whose first bytes are there.
    Stream(Box<TurnStream>),
}

/// Number of times that a refused request is sent without its refused parts. Gemini names one fault at a
/// time.
const MAX_REFUSALS: usize = 3;

/// Runs a turn: sends the prepared request, retries and corrects as the configuration allows, and leaves out
/// parts that Gemini refuses. `first` is the request as the API prepared it; without it, and for each
/// refusal, the source is decoded again.
pub(crate) async fn run(
    context: &Context,
    input: &Input,
    first: Option<Prepared>,
    mut audit: Audit,
) -> Result<Outcome, Failure> {
    let (mut first, mut reduced) = (first, None);
    for left in (0..=MAX_REFUSALS).rev() {
        let input = reduced.as_ref().unwrap_or(input);
        let prepared = match first.take() {
            Some(prepared) => prepared,
            None => {
                let started = Instant::now();
                match prepare(context, input).await {
                    Ok(prepared) => {
                        audit.worked(started.elapsed());
                        prepared
                    }
                    Err(failure) => {
                        audit.failed(&failure);
                        return Err(failure);
                    }
                }
            }
        };
        audit.prepared(&prepared);
        let attempts = Attempts::new(context, &prepared);
        let (attempts, failure) = if prepared.stream {
            let stream = open_stream(context, input, &prepared, attempts, audit);
            match stream.await {
                Ok(stream) => return Ok(streamed(context, input, prepared, stream)),
                Err((attempts, kept, failure)) => {
                    audit = kept;
                    (attempts, failure)
                }
            }
        } else {
            let mut attempts = attempts;
            match answer(context, input, &prepared, &mut attempts, &mut audit).await {
                Ok(answer) => return Ok(answered(context, input, prepared, answer, audit)),
                Err(failure) => (attempts, failure),
            }
        };
        let Some(without) = without_refused(input, &attempts, &failure).filter(|_| left > 0) else {
            audit.failed(&failure);
            return Err(failure);
        };
        reduced = Some(without);
        context.services.metrics.rescued("refusal");
        let reason = brief(&failure.message, MAX_LOGGED_BYTES);
        tracing::warn!(request = %context.request_id, %reason, "refused by Gemini, retrying without the refused part");
    }
    // The last iteration has returned.
    Err(Failure::new(FailureKind::Internal, "a request was neither answered nor refused"))
}

/// Opens a stream; an error holds the parts for a retry.
async fn open_stream(
    context: &Context,
    input: &Input,
    prepared: &Prepared,
    attempts: Attempts,
    audit: Audit,
) -> Result<TurnStream, (Attempts, Audit, Failure)> {
    let sealer = context.services.sealer.clone();
    let encoder = match prepared.echo.clone().encoder(context.stamp(), sealer) {
        AnyEncoder::Responses(encoder) if input.framing == Some(Framing::Messages) => {
            AnyEncoder::Responses(Box::new(encoder.framed(Framing::Messages)))
        }
        encoder @ (AnyEncoder::Anthropic(_)
        | AnyEncoder::Chat(_)
        | AnyEncoder::Gemini(_)
        | AnyEncoder::Responses(_)) => encoder,
    };
    let recorder = recorder(context, prepared);
    let stream = TurnStream::new(attempts, encoder, audit, recorder);
    let mut stream = stream.judged(context, input, prepared.is_structured);
    if input.collect {
        stream.collect();
    }
    match stream.first().await {
        First::Stream => Ok(stream),
        First::Failure(failure) => {
            let (attempts, audit) = stream.into_parts();
            Err((attempts, audit, failure))
        }
    }
}

/// Asks for an answer in one piece.
async fn answer(
    context: &Context,
    input: &Input,
    prepared: &Prepared,
    attempts: &mut Attempts,
    audit: &mut Audit,
) -> Result<Answer, Failure> {
    let corrections = context.current.config.corrections;
    match corrections::judge(corrections, attempts.exchange(), prepared.is_structured) {
        Some(judge) => corrections::judged(context, input, attempts, audit, judge).await,
        None => unary::answer(context, attempts, audit).await,
    }
}

fn recorder(context: &Context, prepared: &Prepared) -> SignatureRecorder {
    let is_required = Profile::of(&prepared.target).signatures_required;
    let recorder =
        SignatureRecorder::new(context.signatures(), prepared.fingerprint.clone(), is_required);
    match prepared.echo {
        Echo::Anthropic(_) => recorder.with_text(),
        Echo::Chat(_) | Echo::Gemini(_) | Echo::Responses(_) => recorder,
    }
}

fn streamed(context: &Context, input: &Input, prepared: Prepared, stream: TurnStream) -> Outcome {
    let Prepared { echo, losses, .. } = prepared;
    let answer = Answered::Stream(Box::new(stream));
    Outcome { echo, answer, losses, stamp: context.stamp(), size: input.source.size() }
}

fn answered(
    context: &Context,
    input: &Input,
    prepared: Prepared,
    answer: Answer,
    mut audit: Audit,
) -> Outcome {
    let calls = answer.call_log();
    let mut recorder = recorder(context, &prepared);
    recorder.deliver(&calls);
    recorder.deliver_text(answer.text_signature().as_ref());
    audit.deliver(&calls);
    audit.done(&answer.finish);
    let size = input.source.size() + answer_size(&answer);
    let Prepared { echo, mut losses, .. } = prepared;
    losses.extend(answer.finish.losses.clone());
    let answer = Answered::Whole(Box::new(answer));
    Outcome { echo, answer, losses, stamp: context.stamp(), size }
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
        Item::Grounding(grounding) => grounding.raw.get().len(),
    };
    answer.items.iter().map(size).sum()
}

/// The input without the parts that were refused; `None` where there is nothing to leave out.
fn without_refused(input: &Input, attempts: &Attempts, failure: &Failure) -> Option<Input> {
    let key = attempts.key();
    if is_about_signatures(failure) {
        return Some(Input { trust: input.trust.less()?, key, ..input.clone() });
    }
    let lesson = attempts.lesson(&input.lesson, failure)?;
    Some(Input { lesson, key, ..input.clone() })
}
