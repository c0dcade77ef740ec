//! Authentication of requests.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use toolgate_core::canon::{Failure, FailureKind};

/// Credentials of requests.
#[derive(Clone)]
pub(crate) enum Auth {
    Key(String),
    Token(Arc<dyn TokenSource>),
    /// No credentials, for servers that need none.
    None,
}

/// Source of OAuth tokens for Vertex AI. A `String` is a fixed token; a closure that returns a future
/// is called for each request.
pub trait TokenSource: Send + Sync {
    /// Returns a currently valid token, without `Bearer`.
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
    /// Returns the authentication header.
    pub(crate) async fn header(&self) -> Result<Option<(String, String)>, Failure> {
        match self {
            Self::Key(key) => Ok(Some(("x-goog-api-key".to_owned(), key.clone()))),
            Self::Token(source) => match source.token().await {
                Ok(token) => Ok(Some(("authorization".to_owned(), format!("Bearer {token}")))),
                Err(why) => {
                    let message = format!("no access token: {why}");
                    Err(Failure::new(FailureKind::Authentication, message))
                }
            },
            Self::None => Ok(None),
        }
    }
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Key(_) => "Key(…)",
            Self::Token(_) => "Token(…)",
            Self::None => "None",
        })
    }
}
