//! Tools: declarations and handlers.

mod bind;
mod context;
mod declaration;
mod definition;
mod error;
mod output;
mod returns;
mod schema;

pub use context::Context;
pub use declaration::BadDeclaration;
pub use definition::{FunctionTool, Tool, ToolProvider};
pub use error::{Abort, ToolError};
pub use output::{IntoOutput, Output};
pub use schema::ToolArgument;

pub(crate) use bind::bind;
pub(crate) use context::State;
pub(crate) use definition::Handler;
pub(crate) use output::inline_media;
pub(crate) use returns::panic_message;
#[doc(hidden)]
pub use returns::{
    Fallible, Infallible, OfResult, OfToolResult, OfValue, Returned, blocking, tool,
};
pub(crate) use schema::schema_of;
