//! Sends the request of a turn, retrying as `Attempts` allows, until a response head arrives.

use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};
use hyper::body::Incoming;
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::time::timeout;
use toolgate_core::canon::{Failure, FailureKind};
use toolgate_core::upstream::generate_content::decode_error;

use super::attempts::{Attempts, Next};
use crate::upstream::{error_body, whole};

/// Final error of an upstream that does not answer.
#[derive(Debug)]
pub(crate) struct SendError {
    pub(crate) failure: Failure,
    /// Head and body of its error reply, where it sent one.
    pub(crate) reply: Option<(http::response::Parts, Bytes)>,
}

/// Asks until there is an answer, or no more sense in asking. No answer may take longer than `patience`
/// to begin.
pub(crate) async fn open(
    attempts: &mut Attempts,
    patience: Duration,
) -> Result<Response<Incoming>, Box<SendError>> {
    loop {
        let answered = async {
            match attempts.ask().await {
                Ok(response) if response.status().is_success() => Ok(response),
                Ok(response) => {
                    let (head, body) = response.into_parts();
                    Err(match error_body(body).await {
                        Ok(body) => {
                            let failure = decode_error(head.status.as_u16(), &body);
                            SendError { failure, reply: Some((head, body)) }
                        }
                        Err(failure) => SendError { failure, reply: None },
                    })
                }
                Err(failure) => Err(SendError { failure, reply: None }),
            }
        };
        let refusal = match timeout(patience, answered).await {
            Ok(Ok(response)) => return Ok(response),
            Ok(Err(refusal)) => refusal,
            // A client that has waited that long is not made to wait again.
            Err(_) => return Err(Box::new(SendError { failure: silent(patience), reply: None })),
        };
        again(attempts, &refusal.failure)
            .await
            .map_err(|failure| Box::new(SendError { failure, ..refusal }))?;
    }
}

/// Reads an answer that is not a stream, which may take so long.
pub(crate) async fn read(body: Incoming, patience: Duration) -> Result<Bytes, Failure> {
    timeout(patience, whole(body)).await.unwrap_or_else(|_| Err(silent(patience)))
}

/// Reads an answer that is neither a stream nor a turn. An error object is a failure, also where the
/// status says that all is well.
pub(crate) async fn read_checked(body: Incoming, patience: Duration) -> Result<Bytes, Failure> {
    let body = read(body, patience).await?;
    if has_error(&body) {
        return Err(decode_error(StatusCode::OK.as_u16(), &body));
    }
    Ok(body)
}

/// Whether a body is Google's error envelope, alone or in an array.
fn has_error(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Envelope {
        error: Option<IgnoredAny>,
    }
    let alone = || serde_json::from_slice::<Envelope>(body).ok();
    let listed = || serde_json::from_slice::<Vec<Envelope>>(body).ok()?.into_iter().next();
    let is_list = body.trim_ascii_start().starts_with(b"[");
    let envelope = if is_list { listed() } else { alone() };
    envelope.is_some_and(|envelope| envelope.error.is_some())
}

/// Duration of the upstream's silence.
pub(crate) fn silent(patience: Duration) -> Failure {
    let message = format!("the upstream fell silent ({} s)", patience.as_secs());
    Failure::new(FailureKind::Timeout, message)
}

/// Waits until it is time to ask again, where there is sense in that.
pub(crate) async fn again(attempts: &mut Attempts, failure: &Failure) -> Result<(), Failure> {
    match attempts.after(failure) {
        Next::Again { wait } => {
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
            Ok(())
        }
        Next::Give(failure) => Err(failure),
    }
}
