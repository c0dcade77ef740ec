//! A turn that is answered in one piece.

use std::sync::Arc;
use std::time::Instant;

use toolgate_core::canon::{Answer, Assembler, Failure, FailureKind};
use toolgate_core::gemini::upstream::StreamDecoder;

use super::ledger::Ledger;
use super::opening::{again, open};
use super::plan::Plan;
use crate::upstream::whole;

/// Asks until there is an answer or no more sense in asking.
pub(crate) async fn answer(plan: &mut Plan, ledger: &mut Ledger) -> Result<Answer, Failure> {
    let total = plan.total();
    tokio::time::timeout(total, asked(plan, ledger)).await.unwrap_or_else(|_| {
        let message = format!("the turn took longer than {} s", total.as_secs());
        Err(Failure::new(FailureKind::Timeout, message))
    })
}

async fn asked(plan: &mut Plan, ledger: &mut Ledger) -> Result<Answer, Failure> {
    loop {
        let response = open(plan).await.map_err(|refusal| refusal.failure)?;
        let failure = match whole(response.into_body()).await {
            Ok(body) => {
                let began = Instant::now();
                let answer = read(plan, &body);
                ledger.worked(began.elapsed());
                match answer {
                    Ok(answer) => return Ok(answer),
                    Err(failure) => failure,
                }
            }
            Err(failure) => failure,
        };
        again(plan, &failure).await?;
    }
}

fn read(plan: &Plan, body: &[u8]) -> Result<Answer, Failure> {
    let mut decoder = StreamDecoder::new(Arc::clone(plan.exchange()), plan.ids());
    let mut assembler = Assembler::default();
    decoder.feed(body, &mut assembler);
    decoder.finish(&mut assembler);
    assembler.finish()
}
