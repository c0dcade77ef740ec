//! The report as text for a terminal.

use std::fmt::{self, Write as _};

use super::escape::{for_terminal, line_for_terminal};
use super::types::{Diagnostic, Kind, Report, Severity, ToolReport, Verdict};
use crate::schema::tree::{Shape, Tree};

/// The report in the style of a compiler's messages.
pub fn render(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_report(&mut out, report);
    out
}

fn write_report(out: &mut String, report: &Report) -> fmt::Result {
    for problem in &report.problems {
        write_diagnostic(out, &report.file, problem)?;
        out.push('\n');
    }
    for tool in &report.tools {
        write_tool(out, &report.file, tool)?;
        out.push('\n');
    }
    let count = |verdict| report.tools.iter().filter(|tool| tool.verdict == verdict).count();
    let tools = report.tools.len();
    let noun = if tools == 1 { "tool" } else { "tools" };
    writeln!(
        out,
        "{}: {tools} {noun}, {} as written, {} changed, {} refused",
        line_for_terminal(&report.file),
        count(Verdict::Ok),
        count(Verdict::Changed),
        count(Verdict::Refused),
    )
}

fn write_tool(out: &mut String, file: &str, tool: &ToolReport) -> fmt::Result {
    let verdict = match (tool.verdict, tool.kind) {
        (Verdict::Ok, Kind::Function) => "goes through as written",
        (Verdict::Ok, Kind::Freeform) => "goes through as a function with one text argument",
        (Verdict::Ok, Kind::BuiltIn) => "is built in",
        (Verdict::Changed, _) => "is changed",
        (Verdict::Refused, _) => "cannot be sent",
    };
    let name = if tool.name.is_empty() { "(no name)" } else { &tool.name };
    let at = if tool.at.is_empty() { String::new() } else { format!(" ({})", tool.at) };
    writeln!(out, "{} {verdict}", line_for_terminal(&format!("{name}{at}")))?;
    for diagnostic in &tool.diagnostics {
        write_diagnostic(out, file, diagnostic)?;
    }
    if tool.unlisted > 0 {
        writeln!(out, "  = and {} more", tool.unlisted)?;
    }
    let Some(declaration) = &tool.declaration else { return Ok(()) };
    // Who sees no change need not read the same thing twice.
    if tool.verdict == Verdict::Ok {
        return Ok(());
    }
    out.push_str("  = Gemini will see:\n");
    let mut pretty = String::new();
    write_pretty(&mut pretty, &Tree::parse(declaration.get()), 0);
    for line in for_terminal(&pretty).lines() {
        writeln!(out, "      {line}")?;
    }
    Ok(())
}

fn write_diagnostic(out: &mut String, file: &str, diagnostic: &Diagnostic) -> fmt::Result {
    let severity = match diagnostic.severity {
        Severity::Note => "note",
        Severity::Warning => "warning",
        Severity::Error => "error",
    };
    let line = diagnostic.position.line.to_string();
    let margin = " ".repeat(line.len());
    let snippet = &diagnostic.snippet;
    let file = line_for_terminal(file);
    writeln!(out, "{severity}: {}", line_for_terminal(&diagnostic.message))?;
    writeln!(out, "{margin}--> {file}:{line}:{}", diagnostic.position.column)?;
    writeln!(out, "{margin} |")?;
    writeln!(out, "{line} | {}", snippet.text)?;
    let before: String = " ".repeat(snippet.before);
    writeln!(out, "{margin} | {before}{}", "^".repeat(snippet.length))?;
    if !diagnostic.at.is_empty() {
        writeln!(out, "{margin} = at: {}", line_for_terminal(&diagnostic.at))?;
    }
    if let Some(help) = &diagnostic.help {
        writeln!(out, "{margin} = help: {}", line_for_terminal(help))?;
    }
    Ok(())
}

/// JSON over several lines; what fits on one line stays there.
fn write_pretty(out: &mut String, tree: &Tree<'_>, indent: usize) {
    const WIDTH: usize = 90;
    let is_open = matches!(&tree.shape, Shape::Array(_) | Shape::Object(_));
    // A declaration has no space in it.
    if !is_open || indent * 2 + tree.text.len() <= WIDTH {
        out.push_str(tree.text);
        return;
    }
    let inner = "  ".repeat(indent + 1);
    let outer = "  ".repeat(indent);
    let (open, close) = if tree.is_object() { ('{', '}') } else { ('[', ']') };
    out.push(open);
    let mut first = true;
    let mut next = |out: &mut String| {
        out.push_str(if first { "\n" } else { ",\n" });
        first = false;
        out.push_str(&inner);
    };
    for member in tree.members() {
        next(out);
        out.push_str(member.key_text);
        out.push_str(": ");
        write_pretty(out, &member.value, indent + 1);
    }
    for element in tree.elements() {
        next(out);
        write_pretty(out, element, indent + 1);
    }
    out.push('\n');
    out.push_str(&outer);
    out.push(close);
}
