//! Proving who asks.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use toolgate_core::canon::{Failure, FailureKind};

/// How a request proves whom it is from.
#[derive(Clone)]
pub(crate) enum Auth {
    Key(String),
    Token(Arc<dyn TokenSource>),
    /// Nothing: the other side asks for nothing.
    Nobody,
}

/// Gives OAuth tokens, as Vertex AI wants them. A string is a token that never changes; a closure
/// that returns a future is asked for each request.
pub trait TokenSource: Send + Sync {
    /// A token that is good now, without `Bearer`.
    fn token(&self) -> Pin<Box<dyn Future<Output = Result<String, String>> + Send + '_>>;
}

impl TokenSource for String {
    fn token(&self) -> Pin<Box<dyn Future<Output = Result<String, String>> + Send + '_>> {
        Box::pin(std::future::ready(Ok(self.clone())))
    }
}

impl<F, R> TokenSource for F
where
    F: Fn() -> R + Send + Sync,
    R: Future<Output = Result<String, String>> + Send + 'static,
{
    fn token(&self) -> Pin<Box<dyn Future<Output = Result<String, String>> + Send + '_>> {
        Box::pin(self())
    }
}

impl Auth {
    /// The header that proves it.
    pub(crate) async fn header(&self) -> Result<Option<(String, String)>, Failure> {
        match self {
            Self::Key(key) => Ok(Some(("x-goog-api-key".to_owned(), key.clone()))),
            Self::Token(source) => match source.token().await {
                Ok(token) => Ok(Some(("authorization".to_owned(), format!("Bearer {token}")))),
                Err(why) => {
                    let message = format!("there is no token: {why}");
                    Err(Failure::new(FailureKind::Authentication, message))
                }
            },
            Self::Nobody => Ok(None),
        }
    }
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Key(_) => "Key(…)",
            Self::Token(_) => "Token(…)",
            Self::Nobody => "Nobody",
        })
    }
}
