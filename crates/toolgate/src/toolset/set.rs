//! A set of tools.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Mutex, Semaphore};
use toolgate_core::canon::{self, ServerTool, ToolName};
use toolgate_core::json::Raw;
use toolgate_core::tool_loop::{Owner, Tools};

use super::Invocation;
use super::cache::Cache;
use crate::Cancel;
use crate::tool::{FunctionTool, Output, State, Tool, ToolError, ToolProvider};

/// Tools together: what the model may call in one conversation.
///
/// Calls of one turn run at the same time, each for 30 seconds at most; a panic is an error like
/// any other. Copies share the limit, the state, and the results of deterministic tools; a copy that
/// is given another tool or another state keeps results of its own, because they may differ.
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
    /// How many calls run at the same time.
    pub(super) limit: Arc<Semaphore>,
    /// Held by whichever sequential tool runs.
    pub(super) turn: Arc<Mutex<()>>,
    pub(super) cache: Arc<Cache>,
}

/// How long a call may take, unless something else is said.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How many calls run at the same time, unless something else is said.
const PARALLEL: usize = 32;

impl Toolset {
    /// No tools yet.
    pub fn new() -> Self {
        Self {
            tools: Vec::new(),
            servers: Vec::new(),
            timeout: TIMEOUT,
            state: State::default(),
            log_arguments: false,
            limit: Arc::new(Semaphore::new(PARALLEL)),
            turn: Arc::default(),
            cache: Arc::default(),
        }
    }

    /// Adds a function that is marked [`#[tool]`](macro@crate::tool), by its name.
    #[must_use]
    pub fn with<T: FunctionTool>(self) -> Self {
        self.tool(T::tool())
    }

    /// Adds a tool. Two of one name make the request an error.
    #[must_use]
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self.forget()
    }

    /// Adds the methods of an object whose `impl` is marked [`#[tools]`](macro@crate::tools).
    #[must_use]
    pub fn provider<P: ToolProvider>(mut self, object: &Arc<P>) -> Self {
        self.tools.extend(object.tools());
        self.forget()
    }

    /// Shares something with all tools, by its type: [`Context::state`](crate::Context::state).
    #[must_use]
    pub fn state<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.state.insert(value);
        self.forget()
    }

    /// Gives every tool so much time that has no time of its own.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Runs so many calls at the same time, at the most; one at the least.
    #[must_use]
    pub fn max_parallel(self, calls: usize) -> Self {
        let permits = calls.clamp(1, Semaphore::MAX_PERMITS);
        Self { limit: Arc::new(Semaphore::new(permits)), ..self }
    }

    /// Writes arguments to the log too. They may be private, so it is not done unless asked for.
    #[must_use]
    pub fn log_arguments(self, log: bool) -> Self {
        Self { log_arguments: log, ..self }
    }

    /// The tools, in the order in which they were added.
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// A tool by its name.
    pub fn get(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name() == name)
    }

    /// Whether there is such a tool.
    pub fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Whether there is nothing to call, neither here nor on Google's side.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty() && self.servers.is_empty()
    }

    /// Runs a tool as if the model had called it.
    pub async fn call(&self, name: &str, arguments: &Value) -> Result<Output, ToolError> {
        let arguments = Raw::of(arguments).unwrap_or_else(Raw::empty_object);
        let call = Invocation { id: String::new(), tool: name.to_owned(), arguments };
        self.run(&call, &Cancel::new()).await.result
    }

    /// Parts with the results of the sets that this one was copied from.
    fn forget(self) -> Self {
        Self { cache: Arc::default(), ..self }
    }

    pub(super) fn server(mut self, tool: ServerTool<'static>) -> Self {
        self.servers.push(tool);
        self
    }

    /// A name that two tools have.
    pub(crate) fn duplicate(&self) -> Option<&str> {
        let names: Vec<_> = self.tools.iter().map(Tool::name).collect();
        (1..names.len()).find(|at| names[..*at].contains(&names[*at])).map(|at| names[at])
    }

    /// As the conversation declares them.
    pub(crate) fn declared(&self) -> impl Iterator<Item = canon::Tool<'static>> {
        let functions = self.tools.iter().enumerate();
        let functions = functions.map(|(at, tool)| canon::Tool::Function(tool.to_function(at)));
        functions.chain(self.servers.iter().cloned().map(canon::Tool::Server))
    }

    /// Who runs what.
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

/// Names and the time limit; what the tools hold may be secret.
impl fmt::Debug for Toolset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.tools.iter().map(Tool::name).collect();
        f.debug_struct("Toolset")
            .field("tools", &names)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
