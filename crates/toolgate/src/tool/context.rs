//! Context of a call.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::Cancel;

/// Context of a call: its id, the program's shared state, and the cancellation token.
///
/// A function takes it as an argument of type `Context` or `&Context`, in any position; it is not
/// part of the schema. `Context::default()` is for calling the function directly.
///
/// ```
/// use toolgate::{Context, Toolset, tool};
///
/// struct Greeting(&'static str);
///
/// /// Greets a person.
/// #[tool]
/// fn greet(context: &Context, name: String) -> Result<String, &'static str> {
///     let Greeting(word) = context.state().ok_or("no greeting is set")?;
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

    /// Id of the call; empty if the function is called directly.
    pub fn call_id(&self) -> &str {
        &self.0.call_id
    }

    /// Name of the called tool.
    pub fn tool(&self) -> &str {
        &self.0.tool
    }

    /// Value of this type from [`Toolset::state`](crate::Toolset::state).
    pub fn state<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.0.state.get()
    }

    /// Token that is cancelled with the request, or when the call times out.
    pub fn cancel(&self) -> &Cancel {
        &self.0.cancel
    }

    /// Whether the result is no longer needed. A function that is not `async` should check it.
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

/// Shared state of the program, by type.
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
