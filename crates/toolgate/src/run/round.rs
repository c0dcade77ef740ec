//! One round: a request with its retries, decoded into events.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;
use tokio::time::sleep;
use toolgate_core::canon::{self, Answer, Failure, FailureKind, Losses};
use toolgate_core::tool_loop::Relay;
use toolgate_core::upstream::generate_content::{
    EncodeOptions, Encoded, Exchange, MAX_CONTINUATIONS, StreamDecoder, encode_request,
};
use tracing::{debug, warn};

use super::Run;
use crate::client::Attempt;
use crate::transport::Verb;
use crate::{Error, Event};

/// A request as it would be sent.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Preview {
    /// URL of the request, which is a POST.
    pub url: String,
    /// Body, with schemas and settings adapted to the model.
    pub body: Value,
    /// Parts of the request that the model's API cannot express.
    pub losses: Losses,
}

impl Run {
    /// Encodes the first request without sending it.
    pub(crate) fn preview(mut self) -> Result<Preview, Error> {
        self.declare_tools();
        let target = self.client.target(&self.request.canon.model);
        let options = EncodeOptions::new(self.client.schemas());
        let Encoded { body, losses, .. } = encode_request(&self.request.canon, &target, &options)?;
        let body = serde_json::from_slice(&body).map_err(|error| {
            Error::failed(Failure::new(FailureKind::Internal, error.to_string()))
        })?;
        let url = self.client.link().attempt(&target.model, Verb::Generate, Vec::new()).url;
        Ok(Preview { url, body, losses })
    }

    /// Sends the request of a round. Retries it as long as the caller has seen no part of the answer.
    pub(super) async fn round(
        &mut self,
        relay: &mut Relay,
        streamed: bool,
    ) -> Result<Answer, Failure> {
        let target = self.client.target(&self.request.canon.model);
        let options = EncodeOptions::new(self.client.schemas());
        let Encoded { body, exchange, losses, .. } =
            encode_request(&self.request.canon, &target, &options)?;
        for loss in &losses {
            debug!(at = loss.at, code = ?loss.code, "{}", loss.detail);
        }
        self.losses = losses;
        let exchange = Arc::new(exchange);
        let verb = if streamed { Verb::Stream } else { Verb::Generate };
        let attempt = self.client.link().attempt(&target.model, verb, body);
        let mut number = 1;
        loop {
            self.attempt(&attempt, &exchange, relay, streamed).await;
            let failure = match relay.round() {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            let wait = self.client.link().retries.delay_after(number, &failure);
            let Some(wait) = wait.filter(|_| !relay.is_committed()) else { return Err(failure) };
            warn!(attempt = number, ?wait, "{failure}, retrying");
            self.emitter.send(Event::Retry { failure, wait }).await;
            sleep(wait).await;
            number += 1;
        }
    }

    /// Sends the request once and relays the events of its answer.
    async fn attempt(
        &mut self,
        attempt: &Attempt,
        exchange: &Arc<Exchange>,
        relay: &mut Relay,
        streamed: bool,
    ) {
        let mut decoder = StreamDecoder::new(Arc::clone(exchange), self.client.ids());
        let (client, emitter, calls) = (&self.client, &self.emitter, &mut self.calls);
        let mut relay_event = |event: &canon::Event<'_>| {
            relay.feed(event, &mut |event: &canon::Event<'_>| emitter.emit_upstream(event, calls));
        };
        let link = client.link();
        let received = async {
            let mut attempt = Cow::Borrowed(attempt);
            // An answer that Gemini pauses continues in the answer to the next request.
            for left in (0..=MAX_CONTINUATIONS).rev() {
                if streamed {
                    let mut body = link.open(&attempt).await?;
                    while let Some(bytes) = link.next(&mut body).await? {
                        decoder.feed(&bytes, &mut relay_event);
                        emitter.delivered().await;
                    }
                } else {
                    decoder.feed(&link.whole(&attempt).await?, &mut relay_event);
                }
                let rest = if left > 0 { decoder.pause(&mut relay_event) } else { None };
                let Some(token) = rest else { break };
                attempt = Cow::Owned(attempt.continued(&token));
            }
            Ok(())
        };
        if let Err(failure) = received.await {
            decoder.abort(failure, &mut relay_event);
        }
        decoder.finish(&mut relay_event);
    }
}
