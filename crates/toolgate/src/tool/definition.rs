//! Tools.

use std::any::Any;
use std::fmt;
use std::fmt::Display;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde_json::Value;
use toolgate_core::canon::{Function, Loss, SchemaForm, ToolName};
use toolgate_core::json::{Raw, Text};
use toolgate_core::schema::Checker;

use super::bind::bind;
use super::declaration::Declaration;
use super::schema::{is_empty_object, schema_of};
use super::{BadDeclaration, Context, IntoOutput, Output, ToolArgument, ToolError};

/// A function that the model may call.
///
/// | source | constructor |
/// |---|---|
/// | a function | [`#[tool]`](macro@crate::tool) and [`Toolset::with`](crate::Toolset::with) |
/// | a method | `#[tool]`, then `object.method_tool()` or [`#[tools]`](macro@crate::tools) |
/// | a type and a closure | [`Tool::new`] |
/// | a JSON declaration and a closure | [`Tool::from_json`] |
/// | a type, with calls returned to the caller | [`Tool::declared`] |
/// | a JSON declaration, with calls returned to the caller | [`Tool::declared_json`] |
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use toolgate::Tool;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Sum {
///     /// The numbers.
///     numbers: Vec<f64>,
/// }
///
/// let sum = Tool::new("sum", "Adds numbers.", |sum: Sum, _| async move {
///     Ok::<_, String>(sum.numbers.iter().sum::<f64>())
/// });
/// assert_eq!(sum.name(), "sum");
/// ```
#[derive(Clone)]
pub struct Tool {
    declaration: Arc<Declaration>,
    response: Option<Raw<'static>>,
    checker: Arc<Checker>,
    handler: Option<Handler>,
    timeout: Option<Duration>,
    sequential: bool,
    deterministic: bool,
}

/// Handler of calls.
pub(crate) type Handler = Arc<dyn Fn(&str, Context) -> Running + Send + Sync>;
type Running = BoxFuture<'static, Result<Output, ToolError>>;

impl Tool {
    /// Creates a tool from the type of its arguments and a closure.
    ///
    /// The closure gets the arguments and the [`Context`]; its error is sent to the model.
    pub fn new<A, F, R, T, E>(
        name: impl Into<String>,
        description: impl Into<String>,
        run: F,
    ) -> Self
    where
        A: ToolArgument + Send + 'static,
        F: Fn(A, Context) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, E>> + Send + 'static,
        T: IntoOutput + 'static,
        E: Display + 'static,
    {
        Self::bound(&name.into(), &description.into(), move |arguments, context| {
            run(arguments, context).map(converted)
        })
    }

    /// Creates a tool from a Gemini declaration and a closure.
    ///
    /// The declaration has `name`, `description`, and either `parametersJsonSchema` (any JSON Schema),
    /// `parameters` (Gemini's own form), or `inputSchema` (MCP's form of a tool). Members that are not
    /// known here, such as `behavior` and MCP's `annotations`, are kept in
    /// [`declaration`](Self::declaration). Arguments of the model that do not fit are reported
    /// back to it. Arguments from [`Toolset::call`](crate::Toolset::call) or
    /// [`Decision::Change`](crate::Decision::Change) are not checked; the closure must.
    pub fn from_json<F, R, T, E>(declaration: &Value, run: F) -> Result<Self, BadDeclaration>
    where
        F: Fn(Value, Context) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, E>> + Send + 'static,
        T: IntoOutput + 'static,
        E: Display + 'static,
    {
        let handler: Handler = Arc::new(move |json, context| match bind::<Value>(json) {
            Ok(arguments) => run(arguments, context).map(converted).boxed(),
            Err(error) => std::future::ready(Err(error)).boxed(),
        });
        Ok(Self { handler: Some(handler), ..Self::declared_json(declaration)? })
    }

    /// Creates a tool without a handler: its calls are returned in
    /// [`Response::calls`](crate::Response::calls).
    pub fn declared<A: JsonSchema>(
        name: impl Into<String>,
        description: impl Into<String>,
    ) -> Self {
        Self::declare(Declaration::new(name.into(), description.into(), parameters::<A>()))
    }

    /// Creates a tool without a handler from a Gemini declaration.
    pub fn declared_json(declaration: &Value) -> Result<Self, BadDeclaration> {
        Declaration::parse(declaration).map(Self::declare)
    }

    /// Sets the timeout of a call, instead of the toolset's.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// Makes the tool sequential: it never runs concurrently with itself or another sequential tool, and
    /// several calls run in the model's order.
    #[must_use]
    pub fn sequential(self) -> Self {
        Self { sequential: true, ..self }
    }

    /// Makes the tool deterministic: results may be cached by arguments.
    #[must_use]
    pub fn deterministic(self) -> Self {
        Self { deterministic: true, ..self }
    }

    /// Adds the schema of the result to the declaration.
    #[must_use]
    pub fn returns<T: JsonSchema>(self) -> Self {
        Self { response: Raw::of(&schema_of::<T>()), ..self }
    }

    /// Name of the tool.
    pub fn name(&self) -> &str {
        &self.declaration.name
    }

    /// Description of the tool.
    pub fn description(&self) -> &str {
        &self.declaration.description
    }

    /// Declaration in Gemini's form, before the schema is adapted to a model:
    /// [`Client::preview`](crate::Client::preview) shows what is sent.
    ///
    /// ```
    /// use toolgate::{FunctionTool as _, tool};
    ///
    /// /// Adds two numbers.
    /// #[tool]
    /// fn add(a: i64, b: i64) -> i64 {
    ///     a + b
    /// }
    ///
    /// let declaration = add::tool().declaration();
    /// assert_eq!(declaration["name"], "add");
    /// assert_eq!(declaration["parametersJsonSchema"]["required"], serde_json::json!(["a", "b"]));
    /// ```
    pub fn declaration(&self) -> Value {
        let mut json = self.declaration.to_json();
        if let Some(response) = self.response.as_ref().and_then(Raw::to) {
            json[self.declaration.response_key()] = response;
        }
        json
    }

    /// Schema of the arguments; `None` if there are none.
    pub fn parameters(&self) -> Option<Value> {
        self.declaration.parameters.as_ref().and_then(Raw::to)
    }

    /// Violations of the schema by these arguments.
    pub fn violations(&self, arguments: &Value) -> Vec<Loss> {
        Raw::of(arguments).map_or_else(Vec::new, |raw| self.checker.violations(&raw))
    }

    /// Whether the tool has a handler. Otherwise its calls are returned to the caller.
    pub fn is_callable(&self) -> bool {
        self.handler.is_some()
    }

    pub(crate) fn bound<A, F, R>(name: &str, description: &str, run: F) -> Self
    where
        A: ToolArgument + Send + 'static,
        F: Fn(A, Context) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Output, ToolError>> + Send + 'static,
    {
        let handler: Handler = Arc::new(move |json, context| match bind::<A>(json) {
            Ok(arguments) => run(arguments, context).boxed(),
            Err(error) => std::future::ready(Err(error)).boxed(),
        });
        let declaration =
            Declaration::new(name.to_owned(), description.to_owned(), parameters::<A>());
        Self { handler: Some(handler), ..Self::declare(declaration) }
    }

    fn declare(declaration: Declaration) -> Self {
        Self {
            checker: Arc::new(Checker::new(declaration.parameters.as_ref())),
            response: declaration.response.clone(),
            declaration: Arc::new(declaration),
            handler: None,
            timeout: None,
            sequential: false,
            deterministic: false,
        }
    }

    pub(crate) fn handler(&self) -> Option<&Handler> {
        self.handler.as_ref()
    }

    pub(crate) fn checker(&self) -> &Checker {
        &self.checker
    }

    pub(crate) fn time_limit(&self) -> Option<Duration> {
        self.timeout
    }

    pub(crate) fn is_sequential(&self) -> bool {
        self.sequential
    }

    pub(crate) fn is_deterministic(&self) -> bool {
        self.deterministic
    }

    /// Canonical declaration of the tool number `at`.
    pub(crate) fn to_function(&self, at: usize) -> Function<'static> {
        let Declaration { name, description, parameters, form, .. } = &*self.declaration;
        Function {
            name: ToolName::plain(name.clone()),
            description: (!description.is_empty()).then(|| Text::new(description)),
            parameters: parameters.clone(),
            form: *form,
            response: self.response.clone(),
            deferred: false,
            at: format!("tools[{at}]"),
            schema_field: "parameters",
        }
    }
}

/// Shows the name only: a closure may hold secrets.
impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool")
            .field("name", &self.declaration.name)
            .field("callable", &self.is_callable())
            .finish_non_exhaustive()
    }
}

/// Implemented by [`#[tool]`](macro@crate::tool) for a type with the function's name.
pub trait FunctionTool {
    /// Returns the tool.
    fn tool() -> Tool;
}

/// Implemented by [`#[tools]`](macro@crate::tools) for a type whose methods are tools.
pub trait ToolProvider {
    /// Returns the tools, in the order of the methods.
    fn tools(self: &Arc<Self>) -> Vec<Tool>;
}

fn parameters<A: JsonSchema>() -> Option<(Raw<'static>, SchemaForm)> {
    let schema = schema_of::<A>();
    if is_empty_object(&schema) {
        return None;
    }
    Raw::of(&schema).map(|raw| (raw, SchemaForm::JsonSchema))
}

/// Converts the result of a closure. A [`ToolError`] stays what it is.
fn converted<T, E>(result: Result<T, E>) -> Result<Output, ToolError>
where
    T: IntoOutput,
    E: Display + 'static,
{
    let result = result.map_err(|error| {
        let own = (&error as &dyn Any).downcast_ref::<ToolError>().cloned();
        own.unwrap_or_else(|| ToolError::Failed(format!("{error:#}")))
    });
    result.and_then(IntoOutput::into_output)
}
