//! What Gemini will make of a file with tools, for a person to read: `toolgate check-tools`.
//!
//! ```text
//!   file ─► Tree ─► tools (by shape) ─► compile each ─► findings ─► line:column, message, help
//! ```
//!
//! Any dialect's tools are taken: a request, a list, a single tool, or an MCP `tools/list` result.

mod check;
mod escape;
mod help;
mod position;
mod render;
mod tools;
mod types;

pub use check::check;
pub use escape::json_for_terminal;
pub use render::render;
pub use types::{
    Diagnostic, Dialect, Kind, Options, Position, Report, Severity, Snippet, ToolReport, Verdict,
};
