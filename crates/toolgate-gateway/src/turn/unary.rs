//! A turn that is answered in one piece.

use std::sync::Arc;
use std::time::{Duration, Instant};

use toolgate_core::canon::{Answer, Assembler, Failure, FailureKind};
use toolgate_core::gemini::upstream::StreamDecoder;

use super::ledger::Ledger;
use super::opening::{again, open};
use super::plan::Plan;
use crate::upstream::whole;

/// Asks until there is an answer or no more sense in asking.
pub(crate) async fn answer(plan: &mut Plan, ledger: &mut Ledger) -> Result<Answer, Failure> {
    let total = plan.total();
    tokio::time::timeout(total, asked(plan, ledger)).await.unwrap_or_else(|_| Err(too_long(total)))
}

/// The turn has had all the time that there is for it.
pub(crate) fn too_long(total: Duration) -> Failure {
    let message = format!("the turn took longer than {} s", total.as_secs());
    Failure::new(FailureKind::Timeout, message)
}

async fn asked(plan: &mut Plan, ledger: &mut Ledger) -> Result<Answer, Failure> {
    loop {
        match heard(plan, ledger).await? {
            Ok(answer) => return Ok(answer),
            Err(failure) => again(plan, &failure).await?,
        }
        plan.start_over();
    }
}

/// One try. The inner error may be another's to mend; the outer one is the end.
async fn heard(plan: &mut Plan, ledger: &mut Ledger) -> Result<Result<Answer, Failure>, Failure> {
    let mut decoder = StreamDecoder::new(Arc::clone(plan.exchange()), plan.ids());
    let mut answer = Assembler::default();
    loop {
        // Gemini says nothing until it has said all: only the whole turn has a limit.
        let patience = plan.total();
        let response = open(plan, patience).await.map_err(|refusal| refusal.failure)?;
        let body = match whole(response.into_body()).await {
            Ok(body) => body,
            Err(failure) => return Ok(Err(failure)),
        };
        let began = Instant::now();
        decoder.feed(&body, &mut answer);
        let rest = if plan.may_go_on() { decoder.pause(&mut answer) } else { None };
        if rest.is_none() {
            decoder.finish(&mut answer);
        }
        ledger.worked(began.elapsed());
        match rest {
            Some(token) => plan.go_on(&token),
            None => return Ok(answer.finish()),
        }
    }
}
