//! Gemini with tools.

mod cancel;
mod tool;
mod toolset;

pub use cancel::Cancel;
pub use tool::{
    BadDeclaration, Context, FunctionTool, IntoOutput, Output, Tool, ToolError, ToolProvider,
};
pub use toolgate_macros::{tool, tools};
pub use toolset::Toolset;

#[doc(hidden)]
pub mod __private {
    pub use schemars;
    pub use serde;

    pub use crate::tool::{Fallible, Infallible, OfResult, OfValue, blocking, tool};
}
