//! Sets of tools.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Mutex, Semaphore};
use toolgate_core::canon::{self, ServerTool, ToolName};
use toolgate_core::tool_loop::{Owner, Tools};

use super::cache::Cache;
use crate::Call;
use crate::tool::{FunctionTool, Output, State, Tool, ToolError, ToolProvider};

/// Set of tools for a request or a conversation.
///
/// Calls of one turn run concurrently, each with a timeout of 30 seconds by default; a panic is
/// reported as an error. Clones share the concurrency limit, the state, and the cached results of
/// deterministic tools. Adding a tool or state starts a new cache, because results may differ.
///
/// ```
/// use serde_json::json;
/// use toolgate::{Toolset, tool};
///
/// /// Adds two numbers.
/// #[tool]
/// fn add(a: i64, b: i64) -> i64 {
///     a + b
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let tools = Toolset::new().with::<add>();
/// let sum = tools.call("add", &json!({"a": 2, "b": 40})).await.unwrap();
/// assert_eq!(sum.to_value(), json!(42));
///
/// let error = tools.call("add", &json!({"a": 2})).await.unwrap_err();
/// assert_eq!(error.to_string(), "missing field `b`");
/// # });
/// ```
#[derive(Clone)]
pub struct Toolset {
    pub(super) tools: Vec<Tool>,
    servers: Vec<ServerTool<'static>>,
    pub(super) timeout: Duration,
    pub(super) state: State,
    pub(super) log_arguments: bool,
    /// Permits of concurrent calls.
    pub(super) permits: Arc<Semaphore>,
    /// Held by the running sequential tool.
    pub(super) sequential: Arc<Mutex<()>>,
    pub(super) cache: Arc<Cache>,
}

/// Timeout of a call, by default.
const DEFAULT_CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of concurrent calls, by default.
const DEFAULT_MAX_PARALLEL: usize = 32;

impl Toolset {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self {
            tools: Vec::new(),
            servers: Vec::new(),
            timeout: DEFAULT_CALL_TIMEOUT,
            state: State::default(),
            log_arguments: false,
            permits: Arc::new(Semaphore::new(DEFAULT_MAX_PARALLEL)),
            sequential: Arc::default(),
            cache: Arc::default(),
        }
    }

    /// Adds a function that is marked [`#[tool]`](macro@crate::tool), by its name.
    #[must_use]
    pub fn with<T: FunctionTool>(self) -> Self {
        self.tool(T::tool())
    }

    /// Adds a tool. A request with two tools of the same name is refused.
    #[must_use]
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self.with_new_cache()
    }

    /// Adds the methods of an object whose `impl` is marked [`#[tools]`](macro@crate::tools).
    #[must_use]
    pub fn provider<P: ToolProvider>(mut self, object: &Arc<P>) -> Self {
        self.tools.extend(object.tools());
        self.with_new_cache()
    }

    /// Shares a value with all tools, by its type: [`Context::state`](crate::Context::state).
    #[must_use]
    pub fn state<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.state.insert(value);
        self.with_new_cache()
    }

    /// Sets the timeout of tools that have none of their own.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Sets the maximum number of concurrent calls; at least one.
    #[must_use]
    pub fn max_parallel(self, calls: usize) -> Self {
        let permits = calls.clamp(1, Semaphore::MAX_PERMITS);
        Self { permits: Arc::new(Semaphore::new(permits)), ..self }
    }

    /// Sets whether arguments are logged. They may be private, so the default is off.
    #[must_use]
    pub fn log_arguments(self, log: bool) -> Self {
        Self { log_arguments: log, ..self }
    }

    /// Tools, in the order in which they were added.
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// Returns a tool by name.
    pub fn get(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name() == name)
    }

    /// Whether the set has a tool of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Whether the set is empty, Gemini's own tools included.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty() && self.servers.is_empty()
    }

    /// Runs a tool as if the model had called it. [`execute`](Self::execute) takes the call's id too.
    pub async fn call(&self, name: &str, arguments: &Value) -> Result<Output, ToolError> {
        self.execute(&Call::new("", name, arguments)).await.result
    }

    /// Replaces the cache that is shared with clones.
    fn with_new_cache(self) -> Self {
        Self { cache: Arc::default(), ..self }
    }

    pub(super) fn server(mut self, tool: ServerTool<'static>) -> Self {
        self.servers.push(tool);
        self
    }

    /// Returns a name that two tools have.
    pub(crate) fn duplicate(&self) -> Option<&str> {
        let names: Vec<_> = self.tools.iter().map(Tool::name).collect();
        (1..names.len()).find(|at| names[..*at].contains(&names[*at])).map(|at| names[at])
    }

    /// Canonical declarations.
    pub(crate) fn declared(&self) -> impl Iterator<Item = canon::Tool<'static>> {
        let functions = self.tools.iter().enumerate();
        let functions = functions.map(|(at, tool)| canon::Tool::Function(tool.to_function(at)));
        functions.chain(self.servers.iter().cloned().map(canon::Tool::Server))
    }

    /// Owner of each tool: this program, or the caller.
    pub(crate) fn owners(&self) -> Tools {
        let owner = |tool: &Tool| if tool.is_callable() { Owner::Driver } else { Owner::Caller };
        let named = |tool: &Tool| (ToolName::plain(tool.name().to_owned()), owner(tool));
        self.tools.iter().map(named).collect()
    }
}

impl Default for Toolset {
    fn default() -> Self {
        Self::new()
    }
}

/// Shows names and the timeout only: the tools may hold secrets.
impl fmt::Debug for Toolset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.tools.iter().map(Tool::name).collect();
        f.debug_struct("Toolset")
            .field("tools", &names)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
