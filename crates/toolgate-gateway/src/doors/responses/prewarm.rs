//! `generate: false`: nothing is generated, only an id is given out to go on from.

use toolgate_core::canon::{DecodeOptions, Encoder as _, Event, Failure, Finish, Losses, Start};
use toolgate_core::json::Raw;
use toolgate_core::responses::{self, Framing, StreamEncoder, decode_request};
use toolgate_core::translate::Echo;

use super::door::DIALECT;
use crate::doors::Visit;
use crate::session::{self, Opened, Whole};

/// An answer without anything in it.
pub(super) struct Warm {
    /// The response object.
    pub(super) whole: Whole,
    /// The same as events, one JSON object a line.
    pub(super) messages: Vec<u8>,
    /// What of the request is not understood.
    pub(super) losses: Losses,
}

/// Whether a body asks for no generation.
pub(super) fn is_asked_for(body: &[u8]) -> bool {
    if memchr::memmem::find(body, b"\"generate\"").is_none() {
        return false;
    }
    session::fields_of(body).get("generate").map(Raw::get) == Some("false")
}

/// Answers without asking the model.
pub(super) async fn answer(visit: &Visit, opened: Opened) -> Result<Warm, Failure> {
    let size = opened.body.len();
    visit.compute(size, |visit| async move { answered(&visit, &opened).await }).await?
}

async fn answered(visit: &Visit, opened: &Opened) -> Result<Warm, Failure> {
    let body = session::text(&opened.body)?;
    let decoded = decode_request(body, &DecodeOptions { sealer: &visit.app.sealer })?;
    // Where nothing is said, nothing is summed up.
    let echo = responses::Echo { compact: false, ..decoded.echo };
    let stamp = visit.stamp();
    let encoder = StreamEncoder::new(echo.clone(), stamp, visit.app.sealer.clone());
    let mut encoder = encoder.framed(Framing::Messages);
    let mut messages = Vec::new();
    encoder.event(&Event::Start(Start::default()), &mut messages);
    encoder.event(&Event::Finish(Finish::default()), &mut messages);
    let whole = encoder.object().into();
    opened.keeper.keep(&Echo::Responses(echo), &whole, false).await;
    visit.ledger(DIALECT).answered();
    let mut losses = opened.before.losses.clone();
    losses.extend(decoded.losses);
    Ok(Warm { whole, messages, losses })
}
