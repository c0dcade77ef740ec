//! A turn that is answered in one piece.

use std::sync::Arc;
use std::time::{Duration, Instant};

use toolgate_core::canon::{Answer, Assembler, Failure, FailureKind};
use toolgate_core::gemini::upstream::StreamDecoder;

use super::ledger::Ledger;
use super::opening::{again, open};
use super::plan::Plan;
use crate::doors::Visit;
use crate::upstream::whole;

/// Asks until there is an answer or no more sense in asking.
pub(crate) async fn answer(
    visit: &Visit,
    plan: &mut Plan,
    ledger: &mut Ledger,
) -> Result<Answer, Failure> {
    let total = plan.total();
    let asked = tokio::time::timeout(total, asked(visit, plan, ledger));
    asked.await.unwrap_or_else(|_| Err(too_long(total)))
}

/// The turn has had all the time that there is for it.
pub(crate) fn too_long(total: Duration) -> Failure {
    let message = format!("the turn took longer than {} s", total.as_secs());
    Failure::new(FailureKind::Timeout, message)
}

async fn asked(visit: &Visit, plan: &mut Plan, ledger: &mut Ledger) -> Result<Answer, Failure> {
    loop {
        match heard(visit, plan, ledger).await? {
            Ok(answer) => return Ok(answer),
            Err(failure) => again(plan, &failure).await?,
        }
        plan.start_over();
    }
}

/// One attempt. The inner error may be retried; the outer one is final.
async fn heard(
    visit: &Visit,
    plan: &mut Plan,
    ledger: &mut Ledger,
) -> Result<Result<Answer, Failure>, Failure> {
    let decoder = StreamDecoder::new(Arc::clone(plan.exchange()), plan.ids());
    let mut reading = (decoder, Assembler::default());
    loop {
        // Gemini says nothing until it has said all: only the whole turn has a limit.
        let patience = plan.total();
        let response = open(plan, patience).await.map_err(|refusal| refusal.failure)?;
        let body = match whole(response.into_body()).await {
            Ok(body) => body,
            Err(failure) => return Ok(Err(failure)),
        };
        let began = Instant::now();
        let (may_go_on, (mut decoder, mut answer)) = (plan.may_go_on(), reading);
        let read = visit.compute(body.len(), |_| async move {
            decoder.feed(&body, &mut answer);
            let rest = if may_go_on { decoder.pause(&mut answer) } else { None };
            if rest.is_none() {
                decoder.finish(&mut answer);
            }
            (rest, (decoder, answer))
        });
        let rest;
        (rest, reading) = read.await?;
        ledger.worked(began.elapsed());
        match rest {
            Some(token) => plan.go_on(&token),
            None => return Ok(reading.1.finish()),
        }
    }
}
