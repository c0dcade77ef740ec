//! A turn that is answered in one piece.

use std::sync::Arc;
use std::time::{Duration, Instant};

use toolgate_core::canon::{Answer, Assembler, Failure, FailureKind};
use toolgate_core::upstream::generate_content::StreamDecoder;

use super::attempts::Attempts;
use super::audit::Audit;
use super::context::Context;
use super::send::{again, open};
use crate::upstream::whole;

/// Asks until there is an answer or no more sense in asking.
pub(crate) async fn answer(
    context: &Context,
    attempts: &mut Attempts,
    audit: &mut Audit,
) -> Result<Answer, Failure> {
    let total = attempts.total();
    let asked = tokio::time::timeout(total, asked(context, attempts, audit));
    asked.await.unwrap_or_else(|_| Err(too_long(total)))
}

/// The turn has had all the time that there is for it.
pub(crate) fn too_long(total: Duration) -> Failure {
    let message = format!("the turn took longer than {} s", total.as_secs());
    Failure::new(FailureKind::Timeout, message)
}

async fn asked(
    context: &Context,
    attempts: &mut Attempts,
    audit: &mut Audit,
) -> Result<Answer, Failure> {
    loop {
        match heard(context, attempts, audit).await? {
            Ok(answer) => return Ok(answer),
            Err(failure) => again(attempts, &failure).await?,
        }
        attempts.start_over();
    }
}

/// One attempt. The inner error may be retried; the outer one is final.
async fn heard(
    context: &Context,
    attempts: &mut Attempts,
    audit: &mut Audit,
) -> Result<Result<Answer, Failure>, Failure> {
    let decoder = StreamDecoder::new(Arc::clone(attempts.exchange()), attempts.ids());
    let mut reading = (decoder, Assembler::default());
    loop {
        // A unary answer arrives as a whole: only the turn has a time limit.
        let patience = attempts.total();
        let response = open(attempts, patience).await.map_err(|refusal| refusal.failure)?;
        let body = match whole(response.into_body()).await {
            Ok(body) => body,
            Err(failure) => return Ok(Err(failure)),
        };
        let began = Instant::now();
        let (may_go_on, (mut decoder, mut answer)) = (attempts.may_go_on(), reading);
        let read = context.compute(body.len(), |_| async move {
            decoder.feed(&body, &mut answer);
            let rest = if may_go_on { decoder.pause(&mut answer) } else { None };
            if rest.is_none() {
                decoder.finish(&mut answer);
            }
            (rest, (decoder, answer))
        });
        let rest;
        (rest, reading) = read.await?;
        audit.worked(began.elapsed());
        match rest {
            Some(token) => attempts.go_on(&token),
            None => return Ok(reading.1.finish()),
        }
    }
}
