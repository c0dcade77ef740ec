//! A turn that is answered in one piece.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use toolgate_core::canon::{Answer, Assembler, Failure, FailureKind};
use toolgate_core::gemini::upstream::{StreamDecoder, decode_error};

use super::ledger::Ledger;
use super::plan::{Next, Plan};
use crate::upstream::whole;

/// Asks until there is an answer or no more sense in asking.
pub(crate) async fn answer(plan: &mut Plan, ledger: &mut Ledger) -> Result<Answer, Failure> {
    let deadline = Instant::now() + plan.total();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let failure = match tokio::time::timeout(left, ask(plan)).await {
            Ok(Ok(body)) => {
                let began = Instant::now();
                let answer = read(plan, &body);
                ledger.worked(began.elapsed());
                match answer {
                    Ok(answer) => return Ok(answer),
                    Err(failure) => failure,
                }
            }
            Ok(Err(failure)) => failure,
            Err(_) => {
                let message = format!("the turn took longer than {} s", plan.total().as_secs());
                return Err(Failure::new(FailureKind::Timeout, message));
            }
        };
        match plan.after(&failure) {
            Next::Again { wait } if wait > Duration::ZERO => tokio::time::sleep(wait).await,
            Next::Again { .. } => {}
            Next::Give(failure) => return Err(failure),
        }
    }
}

async fn ask(plan: &Plan) -> Result<Bytes, Failure> {
    let (head, body) = plan.ask().await?.into_parts();
    let body = whole(body).await?;
    if head.status.is_success() { Ok(body) } else { Err(decode_error(head.status.as_u16(), &body)) }
}

fn read(plan: &Plan, body: &[u8]) -> Result<Answer, Failure> {
    let mut decoder = StreamDecoder::new(Arc::clone(plan.exchange()), plan.ids());
    let mut assembler = Assembler::default();
    decoder.feed(body, &mut assembler);
    decoder.finish(&mut assembler);
    assembler.finish()
}
