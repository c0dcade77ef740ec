//! One round: a request with its retries, decoded into events.

use std::borrow::Cow;
use std::sync::Arc;

use tokio::time::sleep;
use toolgate_core::canon::{self, Answer, Failure};
use toolgate_core::gemini::upstream::{EncodeOptions, Encoded, MAX_CONTINUATIONS, encode_request};
use toolgate_core::gemini::{Exchange, StreamDecoder};
use toolgate_core::tool_loop::Relay;
use tracing::{debug, warn};

use super::Run;
use crate::Event;
use crate::client::{Attempt, Verb};

impl Run {
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
            self.emitter.emit(Event::Retry { failure, wait });
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
