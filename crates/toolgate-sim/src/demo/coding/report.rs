//! Texts of the routine's answers and of the README.

use std::fmt::Write as _;

use super::bug::Fix;
use super::history::{Step, command_output};
use super::source::{Source, is_source, is_test};

/// Last line of a summary.
pub(super) const ORIGIN: &str = "(toolgate's built-in simulator wrote this; no model was asked.)";
/// Heading of the section in a README.
pub(super) const HEADING: &str = "## Files";

/// Longest output that is quoted, in lines and in characters.
const MAX_QUOTED_LINES: usize = 20;
const MAX_QUOTED_CHARS: usize = 1500;

/// Last lines of an output.
pub(super) fn short(output: &str) -> String {
    let output = command_output(output);
    let lines: Vec<_> = output.lines().collect();
    let last = lines.get(lines.len().saturating_sub(MAX_QUOTED_LINES)..).unwrap_or_default();
    last.join("\n").chars().take(MAX_QUOTED_CHARS).collect()
}

/// A command with its output.
pub(super) fn of_run(command: &str, step: &Step<'_>) -> String {
    let verdict = if step.failed { "failed" } else { "succeeded" };
    match short(&step.output) {
        output if output.is_empty() => format!("`{command}` {verdict} without output."),
        output => format!("`{command}` {verdict}:\n\n```\n{output}\n```"),
    }
}

/// Files that were read, with their beginnings.
pub(super) fn of_files(read: &[Source], steps: &[Step<'_>]) -> String {
    let mut out = String::new();
    for source in read {
        let lines = source.lines();
        let shown = lines.get(..lines.len().min(MAX_QUOTED_LINES)).unwrap_or_default().join("\n");
        let shown: String = shown.chars().take(MAX_QUOTED_CHARS).collect();
        let count = lines.len();
        let _ = writeln!(out, "`{}` has {count} lines:\n\n```\n{shown}\n```\n", source.path);
    }
    for step in steps.iter().filter(|step| step.failed) {
        let _ = writeln!(out, "{} failed: {}\n", step.name, short(&step.output));
    }
    out.push_str(ORIGIN);
    out
}

fn functions(source: &Source) -> String {
    let names: Vec<_> =
        source.definitions().into_iter().map(|it| format!("`{}`", it.name)).collect();
    if names.is_empty() { "no functions".to_owned() } else { names.join(", ") }
}

/// Section of the README about the files.
pub(super) fn section(read: &[Source], tests: Option<&str>) -> String {
    let mut out = format!("{HEADING}\n\n| file | functions |\n|---|---|\n");
    for source in read.iter().filter(|source| is_source(&source.path)) {
        let _ = writeln!(out, "| `{}` | {} |", source.path, functions(source));
    }
    if let Some(command) = tests {
        let _ = write!(out, "\nRun the tests with `{command}`.\n");
    }
    out
}

/// Findings of a review.
pub(super) fn of_review(read: &[Source], fix: Option<&Fix>) -> String {
    let mut out = String::from("What I read:\n");
    for source in read {
        let kind = if is_test(&source.path) { "tests" } else { "functions" };
        let _ = match is_source(&source.path) {
            true => writeln!(out, "- `{}`: {kind} {}", source.path, functions(source)),
            false => writeln!(out, "- `{}`: {} lines", source.path, source.lines().len()),
        };
    }
    if read.is_empty() {
        out.push_str("- nothing: I found no code here\n");
    }
    if let Some(Fix { path, function, line: (old, new), .. }) = fix {
        let _ = write!(
            out,
            "\n`{function}` in `{path}` looks wrong: `{old}` should be `{new}`. I left it as it is."
        );
    }
    out.trim_end().to_owned()
}
