//! One round: a request, and its answer as events.

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
    /// Asks once, or again where the request was lost on the way and nobody has seen anything.
    pub(super) async fn ask(
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
            self.hear(&attempt, &exchange, relay, streamed).await;
            let failure = match relay.round() {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            let wait = self.client.link().retries.wait(number, &failure);
            let Some(wait) = wait.filter(|_| !relay.is_committed()) else { return Err(failure) };
            warn!(attempt = number, ?wait, "{failure}; the request is sent again");
            self.emitter.emit(Event::Retry { failure, wait });
            sleep(wait).await;
            number += 1;
        }
    }

    /// Sends the request, and passes on all that is said to it.
    async fn hear(
        &mut self,
        attempt: &Attempt,
        exchange: &Arc<Exchange>,
        relay: &mut Relay,
        streamed: bool,
    ) {
        let mut decoder = StreamDecoder::new(Arc::clone(exchange), self.client.ids());
        let (client, emitter, calls) = (&self.client, &self.emitter, &mut self.calls);
        let mut said = |event: &canon::Event<'_>| {
            relay.feed(event, &mut |event: &canon::Event<'_>| emitter.said(event, calls));
        };
        let link = client.link();
        let heard = async {
            let mut attempt = Cow::Borrowed(attempt);
            // An answer that Gemini stops in the middle goes on in the answer to the next request.
            for left in (0..=MAX_CONTINUATIONS).rev() {
                if streamed {
                    let mut body = link.open(&attempt).await?;
                    while let Some(bytes) = link.next(&mut body).await? {
                        decoder.feed(&bytes, &mut said);
                    }
                } else {
                    decoder.feed(&link.whole(&attempt).await?, &mut said);
                }
                let rest = if left > 0 { decoder.pause(&mut said) } else { None };
                let Some(token) = rest else { break };
                attempt = Cow::Owned(attempt.continued(&token));
            }
            Ok(())
        };
        if let Err(failure) = heard.await {
            decoder.abort(failure, &mut said);
        }
        decoder.finish(&mut said);
    }
}
