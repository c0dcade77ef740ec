//! What a tool is told beside its arguments.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::Cancel;

/// What a tool is told beside its arguments: which call it is, what the program shares with its
/// tools, and whether anybody still waits for the result.
///
/// A function takes it as an argument of type `Context` or `&Context`, in any place; the model does
/// not see it. `Context::default()` is for calling the function directly.
///
/// ```
/// use toolgate::{Context, Toolset, tool};
///
/// struct Greeting(&'static str);
///
/// /// Greets somebody.
/// #[tool]
/// fn greet(context: &Context, name: String) -> Result<String, &'static str> {
///     let Greeting(word) = context.state().ok_or("nobody has said how to greet")?;
///     Ok(format!("{word}, {name}!"))
/// }
///
/// let tools = Toolset::new().with::<greet>().state(Greeting("Good day"));
/// assert!(greet(&Context::default(), "Ada".into()).is_err());
/// # let _ = tools;
/// ```
#[derive(Clone, Default)]
pub struct Context(Arc<Inner>);

#[derive(Default)]
struct Inner {
    call_id: String,
    tool: String,
    cancel: Cancel,
    state: State,
}

impl Context {
    pub(crate) fn new(call_id: String, tool: String, cancel: Cancel, state: State) -> Self {
        Self(Arc::new(Inner { call_id, tool, cancel, state }))
    }

    /// The id of the call; empty where the function is called directly.
    pub fn call_id(&self) -> &str {
        &self.0.call_id
    }

    /// The name by which the model called the tool.
    pub fn tool(&self) -> &str {
        &self.0.tool
    }

    /// What was given to [`Toolset::state`](crate::Toolset::state), by its type.
    pub fn state<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.0.state.get()
    }

    /// Is cancelled when the request is, or when the tool's time is up.
    pub fn cancel(&self) -> &Cancel {
        &self.0.cancel
    }

    /// Whether nobody waits for the result any more. A function that is not `async` goes on until
    /// it looks.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancel.is_cancelled()
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("call_id", &self.0.call_id)
            .field("tool", &self.0.tool)
            .finish_non_exhaustive()
    }
}

/// What a program shares with its tools, by type.
#[derive(Clone, Default)]
pub(crate) struct State(BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl State {
    pub(crate) fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        self.0.insert(TypeId::of::<T>(), Arc::new(value));
    }

    fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.0.get(&TypeId::of::<T>())?.downcast_ref()
    }
}
