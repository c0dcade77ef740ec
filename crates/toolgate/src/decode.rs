//! Answers that the program received itself.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;

use futures_util::{Stream, StreamExt as _};
use toolgate_core::canon::{
    self, Assembler, Backend, Failure, FailureKind, IdGen, Sink as _, Target,
};
use toolgate_core::tool_loop::Unfinished;
use toolgate_core::upstream::generate_content::{Exchange, StreamDecoder, decode_error};

use crate::client::random;
use crate::event::Emitter;
use crate::transport::HttpResponse;
use crate::{Call, Error, Response};

/// Decodes a response.
pub(crate) async fn response(
    model: String,
    response: HttpResponse,
    emitter: Emitter,
) -> Result<Response, Error> {
    let status = response.status;
    if (200..300).contains(&status) {
        return bytes(model, response.body, emitter).await;
    }
    let body = response.bytes().await.map_err(|error| Error::failed(error.into()))?;
    Err(Error::failed(decode_error(status, &body)))
}

/// Decodes a body.
pub(crate) async fn bytes<S, B, E>(
    model: String,
    body: S,
    emitter: Emitter,
) -> Result<Response, Error>
where
    S: Stream<Item = Result<B, E>> + Send,
    B: AsRef<[u8]> + Send,
    E: fmt::Display + Send,
{
    let exchange = Exchange {
        target: Target { model, backend: Backend::Developer },
        tools: Vec::new(),
        one_call: false,
        answer_function: None,
    };
    let ids = IdGen::new(u128::from(random()) << 64 | u128::from(random()));
    let mut decoder = StreamDecoder::new(Arc::new(exchange), ids);
    let (mut answer, mut calls) = (Assembler::default(), 0);
    let mut take = |event: &canon::Event<'_>| {
        answer.event(event);
        emitter.emit_upstream(event, &mut calls);
    };
    let mut body = pin!(body);
    while let Some(bytes) = body.next().await {
        match bytes {
            Ok(bytes) => decoder.feed(bytes.as_ref(), &mut take),
            Err(error) => {
                let failure = Failure::new(FailureKind::Cut, format!("connection lost: {error}"));
                decoder.abort(failure, &mut take);
                break;
            }
        }
        emitter.delivered().await;
    }
    decoder.finish(&mut take);
    emitter.delivered().await;
    let answer = answer.finish().map_err(Error::failed)?;
    let turn = answer.to_turn();
    let calls: Vec<_> = answer.calls().map(Call::from_canon).collect();
    Ok(Response {
        unfinished: (!calls.is_empty()).then_some(Unfinished::Caller),
        calls,
        last: turn.parts.clone(),
        history: vec![turn],
        requests: 1,
        usage: answer.finish.usage,
        losses: answer.finish.losses.clone(),
        answer,
        run: None,
    })
}
