//! Cancellation tokens.

use std::fmt;
use std::sync::Arc;

use futures_util::future::select_all;
use tokio::sync::watch;

/// Cancellation token of a request and its tools.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let cancel = toolgate::Cancel::new();
/// let child = cancel.child();
/// cancel.cancel();
/// child.cancelled().await;
/// # });
/// ```
#[derive(Clone)]
pub struct Cancel(Arc<Node>);

struct Node {
    cancelled: watch::Sender<bool>,
    parent: Option<Cancel>,
}

impl Cancel {
    /// Creates a token.
    pub fn new() -> Self {
        Self(Arc::new(Node { cancelled: watch::Sender::new(false), parent: None }))
    }

    /// Creates a token that is cancelled with this one, and that can be cancelled alone.
    #[must_use]
    pub fn child(&self) -> Self {
        let parent = Some(self.clone());
        Self(Arc::new(Node { cancelled: watch::Sender::new(false), parent }))
    }

    /// Cancels the token. Cancelling twice has no effect.
    pub fn cancel(&self) {
        self.0.cancelled.send_replace(true);
    }

    /// Whether this token or an ancestor is cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.ancestors().any(|token| *token.0.cancelled.borrow())
    }

    /// Waits until this token or an ancestor is cancelled.
    pub async fn cancelled(&self) {
        let waits = self.ancestors().map(|token| {
            let mut seen = token.0.cancelled.subscribe();
            Box::pin(async move {
                if seen.wait_for(|cancelled| *cancelled).await.is_err() {
                    // All senders are gone: it can no longer be cancelled.
                    std::future::pending::<()>().await;
                }
            })
        });
        select_all(waits).await;
    }

    /// This token and its ancestors.
    fn ancestors(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |token| token.0.parent.as_ref())
    }
}

impl Default for Cancel {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancel").field("cancelled", &self.is_cancelled()).finish()
    }
}
