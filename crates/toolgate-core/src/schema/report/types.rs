//! The report's own types; `Serialize` is what `--json` prints.

use std::fmt;

use serde::Serialize;

use crate::canon::ToolName;
use crate::json::Raw;
use crate::schema::Emit;

/// How to check.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// The target.
    pub emit: Emit,
    /// Name of the tool upstream, if known.
    pub rename: Option<&'a dyn Fn(&ToolName<'_>) -> String>,
}

impl fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("emit", &self.emit).finish_non_exhaustive()
    }
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self { emit: Emit::JsonSchema, rename: None }
    }
}

/// Findings of one file.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The file's name, as it was given.
    pub file: String,
    /// Its tools, in order.
    pub tools: Vec<ToolReport>,
    /// Fault of the file itself: not JSON, no tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Diagnostic>,
    /// Number of diagnostics that are counted, not listed.
    #[serde(skip_serializing_if = "is_zero")]
    pub unlisted: usize,
    /// Work done, for tests of how it grows.
    #[doc(hidden)]
    #[serde(skip)]
    pub work: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Report {
    /// Whether something in the file would be refused.
    pub fn is_refused(&self) -> bool {
        !self.problems.is_empty() || self.tools.iter().any(|tool| tool.verdict == Verdict::Refused)
    }
}

/// Findings about one tool.
#[derive(Clone, Debug, Serialize)]
pub struct ToolReport {
    /// Where it stands: `tools[3]`.
    pub at: String,
    /// Where it begins in the file.
    pub position: Position,
    /// Whose form it has.
    pub dialect: Dialect,
    /// What sort of tool it is.
    pub kind: Kind,
    /// Its name; empty where it has none.
    pub name: String,
    /// Its name upstream, where [`Options::rename`] was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream_name: Option<String>,
    /// Whether it goes through.
    pub verdict: Verdict,
    /// What Gemini will see: a function declaration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declaration: Option<Raw<'static>>,
    /// Changes, losses and faults.
    pub diagnostics: Vec<Diagnostic>,
    /// How many more changes are only counted.
    #[serde(skip_serializing_if = "is_zero")]
    pub unlisted: usize,
}

/// Whose form a tool has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// Anthropic Messages: `input_schema`.
    Anthropic,
    /// OpenAI Chat Completions: `function` inside, or the old `functions`.
    Chat,
    /// Gemini: `functionDeclarations`.
    Gemini,
    /// Model Context Protocol: `inputSchema`.
    Mcp,
    /// OpenAI Responses: flat, namespaces.
    Responses,
    /// It cannot be told.
    Unknown,
}

/// What sort of tool something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A function with a schema.
    Function,
    /// A tool that takes text.
    Freeform,
    /// A tool that runs at the model's side, or whose schema the vendor defines.
    BuiltIn,
}

/// Whether a tool goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Gemini gets the client's own text.
    Ok,
    /// Gemini sees something else; the diagnostics say what.
    Changed,
    /// It cannot be sent.
    Refused,
}

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know; nothing is lost.
    Note,
    /// Something is lost, or was wrong and had to be guessed.
    Warning,
    /// The tool cannot be sent.
    Error,
}

/// One thing to know about a tool.
#[derive(Clone, Debug, Serialize)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Where in the file, as a path: `tools[3].input_schema.properties.a.not`.
    pub at: String,
    /// Where in the file.
    pub position: Position,
    /// What happened and why.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The line, for showing it.
    #[serde(skip)]
    pub snippet: Snippet,
}

/// A place in a file, counted from 1; columns are characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// A piece of a line with something marked in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snippet {
    /// The text; long lines are cut around the mark.
    pub text: String,
    /// How many characters stand before the mark.
    pub before: usize,
    /// How many characters are marked.
    pub length: usize,
}
