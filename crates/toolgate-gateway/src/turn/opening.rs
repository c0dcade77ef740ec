//! Asking until somebody answers.

use bytes::Bytes;
use http::Response;
use hyper::body::Incoming;
use toolgate_core::canon::Failure;
use toolgate_core::gemini::upstream::decode_error;

use super::plan::{Next, Plan};
use crate::upstream::whole;

/// The last word of an upstream that does not answer.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) failure: Failure,
    /// What it said, where it said anything.
    pub(crate) said: Option<(http::response::Parts, Bytes)>,
}

/// Asks until there is an answer, or no more sense in asking.
pub(crate) async fn open(plan: &mut Plan) -> Result<Response<Incoming>, Box<Refusal>> {
    loop {
        let refusal = match plan.ask().await {
            Ok(response) if response.status().is_success() => return Ok(response),
            Ok(response) => {
                let (head, body) = response.into_parts();
                match whole(body).await {
                    Ok(body) => {
                        let failure = decode_error(head.status.as_u16(), &body);
                        Refusal { failure, said: Some((head, body)) }
                    }
                    Err(failure) => Refusal { failure, said: None },
                }
            }
            Err(failure) => Refusal { failure, said: None },
        };
        again(plan, &refusal.failure)
            .await
            .map_err(|failure| Box::new(Refusal { failure, ..refusal }))?;
    }
}

/// Waits until it is time to ask again, where there is sense in that.
pub(super) async fn again(plan: &mut Plan, failure: &Failure) -> Result<(), Failure> {
    match plan.after(failure) {
        Next::Again { wait } => {
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
            Ok(())
        }
        Next::Give(failure) => Err(failure),
    }
}
