//! `generate: false`: nothing is generated; the client gets an id to continue from.

use bytes::Bytes;
use toolgate_core::canon::{Encoder as _, Event, Finish, Losses, Start};
use toolgate_core::dialect::Decoded;
use toolgate_core::responses::{self, Framing, StreamEncoder};
use toolgate_core::translate::Echo;

use super::endpoints::DIALECT;
use crate::api::RequestContext;
use crate::sessions::{EncodedAnswer, History, LastAnswer, Recorder};

/// An empty answer.
pub(super) struct Prewarmed {
    /// The response object.
    pub(super) answer: EncodedAnswer,
    /// The same as events, one JSON object a line.
    pub(super) messages: Vec<u8>,
    pub(super) losses: Losses,
    /// For the connection that continues from it.
    pub(super) last: Option<LastAnswer>,
}

/// Answers without a model, and records the answer.
pub(super) async fn answer(
    context: &RequestContext,
    decoded: Decoded<'_, responses::Echo>,
    history: &History,
    recorder: &Recorder,
    body: &Bytes,
) -> Prewarmed {
    // An empty answer has nothing to summarize.
    let echo = responses::Echo { compact: false, ..decoded.echo };
    let sealer = context.turn.services.sealer.clone();
    let encoder = StreamEncoder::new(echo.clone(), context.turn.stamp(), sealer);
    let mut encoder = encoder.framed(Framing::Messages);
    let mut messages = Vec::new();
    encoder.event(&Event::Start(Start::default()), &mut messages);
    encoder.event(&Event::Finish(Finish::default()), &mut messages);
    let answer: EncodedAnswer = encoder.object().into();
    recorder.record(&Echo::Responses(echo), &answer, false).await;
    context.turn.audit(DIALECT).answered();
    let mut losses = history.losses().clone();
    losses.extend(decoded.losses);
    let last = LastAnswer::new(body.clone(), history, &answer);
    Prewarmed { answer, messages, losses, last }
}
