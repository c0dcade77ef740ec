//! Sources of tools: what a registry needs of an MCP server, a worker pool, an HTTP endpoint or Rust
//! code.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{Definition, Failure, Flags, Output};

/// Runs tools.
///
/// A registry calls its sources on a runtime of its own, so that a source may take its time without
/// holding up the threads of the callers. Calls of one source run concurrently.
///
/// ```
/// use std::sync::Arc;
/// use futures_util::future::BoxFuture;
/// use toolgate_tools::{Control, Definition, Failure, Listed, Output, Request, Source};
///
/// struct Clock;
///
/// impl Source for Clock {
///     fn list(self: Arc<Self>) -> BoxFuture<'static, Result<Vec<Listed>, Failure>> {
///         let schema = serde_json::value::to_raw_value(&serde_json::json!({"type": "object"}));
///         Box::pin(async move {
///             let schema = schema.map_err(|error| Failure::Arguments(error.to_string()))?;
///             Ok(vec![Listed::new("now", Definition::new("Returns the time.", schema))])
///         })
///     }
///
///     fn call(self: Arc<Self>, request: Request, _: Control) -> BoxFuture<'static, Result<Output, Failure>> {
///         Box::pin(async move {
///             match request.name.as_str() {
///                 "now" => Ok(Output::text("12:00")),
///                 _ => Err(Failure::UnknownTool),
///             }
///         })
///     }
/// }
/// ```
pub trait Source: Send + Sync + 'static {
    /// Returns all tools of the source.
    fn list(self: Arc<Self>) -> BoxFuture<'static, Result<Vec<Listed>, Failure>>;

    /// Runs one call.
    ///
    /// The future ends soon after [`Control::cancelled`] fires. It is dropped a moment later if it
    /// does not.
    fn call(
        self: Arc<Self>,
        request: Request,
        control: Control,
    ) -> BoxFuture<'static, Result<Output, Failure>>;

    /// A counter that grows when the list of tools has changed.
    fn changes(&self) -> Option<watch::Receiver<u64>> {
        None
    }

    /// Whether hints in the listing (`deterministic`, `sequential`, timeouts, sessions) are believed.
    /// They are for code of the operator, never for foreign servers.
    fn is_trusted(&self) -> bool {
        false
    }

    /// Ends the source: connections are closed, processes end.
    fn close(self: Arc<Self>) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// One tool in the listing of a source.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Name of the tool on its source.
    pub name: String,
    /// Definition of the tool.
    pub definition: Definition,
    /// Hints of the source, used where it is trusted.
    pub flags: Flags,
    /// Idle timeout that the source wants, used where it is trusted.
    pub timeout: Option<Duration>,
    /// Sessions that may see the tool, used where the source is trusted; empty for all.
    pub sessions: Vec<String>,
}

impl Listed {
    /// A tool without hints.
    pub fn new(name: impl Into<String>, definition: Definition) -> Self {
        Self {
            name: name.into(),
            definition,
            flags: Flags::default(),
            timeout: None,
            sessions: Vec::new(),
        }
    }
}

/// One call, as a source gets it.
#[derive(Clone, Debug)]
pub struct Request {
    /// Name of the tool on its source.
    pub name: String,
    /// Arguments: the text of a JSON object, as the model wrote it.
    pub arguments: Box<RawValue>,
    /// Session that makes the call.
    pub session: Option<Arc<str>>,
    /// Id of the call.
    pub call_id: String,
    /// Latest end of the call.
    pub deadline: Instant,
}

/// News of a call in progress.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// Work done so far.
    pub done: f64,
    /// All work, where it is known.
    pub total: Option<f64>,
    /// Message for people.
    pub message: Option<String>,
}

/// Control of one call in progress: cancellation in, progress out.
#[derive(Clone, Debug)]
pub struct Control {
    pub(crate) cancel: CancellationToken,
    pub(crate) pulse: watch::Sender<u64>,
    pub(crate) progress: Option<mpsc::Sender<Progress>>,
}

impl Control {
    /// Control of a call that nothing cancels and whose progress is dropped.
    pub fn detached() -> Self {
        Self { cancel: CancellationToken::new(), pulse: watch::Sender::new(0), progress: None }
    }

    /// Waits until the call is to end early.
    pub async fn cancelled(&self) {
        self.cancel.cancelled().await;
    }

    /// Whether the call is to end early.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Reports progress: the idle timeout starts again. Reports that the caller does not read in time
    /// are dropped.
    pub fn report(&self, progress: Progress) {
        self.pulse.send_modify(|count| *count += 1);
        if let Some(sender) = &self.progress {
            let _ = sender.try_send(progress);
        }
    }
}
