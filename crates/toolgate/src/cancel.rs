//! Cancellation tokens.

use std::fmt;

use tokio_util::sync::{CancellationToken, DropGuard};

/// Cancellation token of a request and its tools: tokio-util's [`CancellationToken`] with shorter
/// names. Either converts into the other.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let cancel = toolgate::Cancel::new();
/// let child = cancel.child();
/// cancel.cancel();
/// child.cancelled().await;
/// # });
/// ```
#[derive(Clone, Default)]
pub struct Cancel(CancellationToken);

impl Cancel {
    /// Creates a token.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a token that is cancelled with this one, and that can be cancelled alone.
    #[must_use]
    pub fn child(&self) -> Self {
        Self(self.0.child_token())
    }

    /// Cancels the token. Cancelling twice has no effect.
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// Whether this token or an ancestor is cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits until this token or an ancestor is cancelled.
    pub async fn cancelled(&self) {
        self.0.cancelled().await;
    }

    /// Cancels the token when the guard is dropped.
    pub fn drop_guard(self) -> DropGuard {
        self.0.drop_guard()
    }

    /// The token of tokio-util.
    pub fn token(&self) -> &CancellationToken {
        &self.0
    }
}

impl From<CancellationToken> for Cancel {
    fn from(token: CancellationToken) -> Self {
        Self(token)
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancel").field("cancelled", &self.is_cancelled()).finish()
    }
}
