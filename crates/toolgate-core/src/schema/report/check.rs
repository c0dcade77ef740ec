//! Checking a file.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::help::help;
use super::position::Lines;
use super::tools::{Found, Remark, tools};
use super::types::{Diagnostic, Kind, Options, Report, Severity, ToolReport, Verdict};
use crate::json::{Raw, write};
use crate::schema::compile::{Outcome, Placement, arguments};
use crate::schema::finding::{Effect, Finding};
use crate::schema::size;
use crate::schema::tree::Tree;

/// Maximum number of values that are read of one file.
const MAX_FILE_VALUES: usize = 500_000;
/// Maximum number of diagnostics that are listed for one file, beside one for each tool; the others
/// are counted.
const MAX_DIAGNOSTICS: usize = 2_000;

/// Says what Gemini will make of the tools in `text`, the content of `file`. Never fails: what is
/// wrong with the file is in the report.
///
/// ```
/// use toolgate_core::schema::report::{Options, Verdict, check};
///
/// let text = r#"[{"name": "f", "description": "d", "input_schema": {"properties": {"a": {"const": 1}}}}]"#;
/// let report = check("tools.json", text, &Options::default());
/// assert_eq!(report.tools[0].verdict, Verdict::Changed);
/// assert_eq!(report.tools[0].diagnostics[0].at, "[0].input_schema.properties.a.const");
/// ```
pub fn check(file: &str, text: &str, options: &Options<'_>) -> Report {
    let mut report = Report {
        file: file.to_owned(),
        tools: Vec::new(),
        problems: Vec::new(),
        unlisted: 0,
        work: text.len() / 16,
    };
    // Editors on Windows put a mark in front.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = Lines::new(text);
    if let Err(error) = serde_json::from_str::<&RawValue>(text) {
        let offset = lines.at(error.line(), error.column());
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or_default();
        report.problems.push(Diagnostic {
            severity: Severity::Error,
            at: String::new(),
            position: lines.position(offset),
            message: format!("not JSON: {message}"),
            help: None,
            snippet: lines.snippet(offset, 1),
        });
        return report;
    }
    let (tree, is_whole) = Tree::parse_prefix(text, MAX_FILE_VALUES);
    let checker = Checking { lines: &lines, options };
    let found = tools(&tree);
    if found.is_empty() {
        report.problems.push(Diagnostic {
            severity: Severity::Error,
            at: String::new(),
            position: lines.position(0),
            message: "no tools in this file".to_owned(),
            help: Some(
                "give a request, a list of tools, one tool, or an MCP `tools/list` result"
                    .to_owned(),
            ),
            snippet: lines.snippet(0, 1),
        });
    }
    if !is_whole {
        report.problems.push(Diagnostic {
            severity: Severity::Error,
            at: String::new(),
            position: lines.position(0),
            message: format!(
                "the file has more than {MAX_FILE_VALUES} values; the rest was not read"
            ),
            help: Some("split the file".to_owned()),
            snippet: lines.snippet(0, 1),
        });
    }
    // Of two with one name the last counts.
    let mut last = BTreeMap::new();
    for (at, tool) in found.iter().enumerate().filter(|(_, tool)| tool.kind != Kind::BuiltIn) {
        last.insert(tool.name.clone(), at);
    }
    let mut listed = 0;
    for (at, tool) in found.into_iter().enumerate() {
        let (mut checked, work) = checker.tool(&tool);
        if tool.name.is_some()
            && tool.kind != Kind::BuiltIn
            && last.get(&tool.name).is_some_and(|last| *last != at)
        {
            let at = tool.name_text.unwrap_or(tool.tree.text);
            let message = "another tool of this name follows, and counts; this one is left out";
            let diagnostic = checker.diagnostic(
                Severity::Warning,
                format!("{}.name", tool.at),
                at,
                message,
                Some("rename one of them".to_owned()),
            );
            checked.verdict = checked.verdict.max(Verdict::Changed);
            checked.declaration = None;
            checked.diagnostics.push(diagnostic);
        }
        // Every tool says at least one thing.
        let found = checked.diagnostics.len();
        checked.diagnostics.truncate(MAX_DIAGNOSTICS.saturating_sub(listed).max(1));
        listed += checked.diagnostics.len();
        checked.unlisted += found - checked.diagnostics.len();
        report.unlisted += checked.unlisted;
        report.work += work + found;
        report.tools.push(checked);
    }
    report
}

struct Checking<'a, 'o> {
    lines: &'a Lines<'a>,
    options: &'a Options<'o>,
}

impl Checking<'_, '_> {
    /// The report about one tool, and the work that it took.
    fn tool(&self, tool: &Found<'_>) -> (ToolReport, usize) {
        let upstream_name = match (&tool.name, self.options.rename) {
            (Some(name), Some(rename)) if tool.kind != Kind::BuiltIn => Some(rename(name)),
            (Some(_) | None, _) => None,
        };
        let mut report = ToolReport {
            at: tool.at.clone(),
            position: self.lines.position(self.lines.offset(tool.tree.text)),
            dialect: tool.dialect,
            kind: tool.kind,
            name: tool.name.as_ref().map(ToString::to_string).unwrap_or_default(),
            upstream_name,
            verdict: Verdict::Ok,
            declaration: None,
            diagnostics: Vec::new(),
            unlisted: 0,
        };
        let mut work = 0;
        match &tool.remark {
            Some(Remark::Refused(why)) => self.refuse(&mut report, tool, why, None),
            Some(Remark::BuiltIn(what)) => {
                let at = tool.at.clone();
                let note = self.diagnostic(Severity::Note, at, tool.tree.text, what, None);
                report.diagnostics.push(note);
            }
            None if tool.name.is_none() => {
                let why = "a tool needs a name, a string that is not empty";
                self.refuse(&mut report, tool, why, Some("add `name`"));
            }
            None => match tool.schema.as_ref().and_then(|it| size::exceeded(it.tree.text)) {
                Some(limit) => {
                    let why =
                        format!("the schema is too large: {limit}; the tool would be left out");
                    self.refuse(&mut report, tool, &why, Some("make the schema smaller"));
                }
                None => work = self.function(&mut report, tool),
            },
        }
        let declaration = report.declaration.as_ref().map_or(0, |it| it.get().len());
        (report, work + (tool.tree.text.len() + declaration) / 16)
    }

    fn refuse(&self, report: &mut ToolReport, tool: &Found<'_>, why: &str, help: Option<&str>) {
        report.verdict = Verdict::Refused;
        let place = tool.name_text.unwrap_or(tool.tree.text);
        let help = help.map(str::to_owned);
        let refusal = self.diagnostic(Severity::Error, tool.at.clone(), place, why, help);
        report.diagnostics.push(refusal);
    }

    /// Compiles a function's schema; says how much work it was.
    fn function(&self, report: &mut ToolReport, tool: &Found<'_>) -> usize {
        let name = report.upstream_name.clone().unwrap_or_else(|| report.name.clone());
        let place = tool.name_text.unwrap_or(tool.tree.text);
        let renamed =
            report.upstream_name.as_ref().is_some_and(|upstream| *upstream != report.name);
        if renamed {
            let message =
                format!("called `{name}` upstream; answers come back under the tool's own name");
            let at = format!("{}.name", tool.at);
            report.diagnostics.push(self.diagnostic(Severity::Note, at, place, &message, None));
        }
        if tool.description.is_none_or(|description| description.trim().is_empty()) {
            let message = "no description: a model chooses tools by what they say about themselves";
            let help = Some("say in a sentence what the tool does and when to use it".to_owned());
            let at = format!("{}.description", tool.at);
            report.diagnostics.push(self.diagnostic(Severity::Note, at, place, message, help));
        }
        let null = Tree::parse("null");
        let outcome = match &tool.schema {
            _ if tool.kind == Kind::Freeform => freeform(),
            Some(schema) => arguments(schema.tree, schema.form, self.options.emit),
            None => arguments(&null, crate::canon::SchemaForm::JsonSchema, self.options.emit),
        };
        if let Some(schema) = &tool.schema {
            let at = format!("{}.{}", tool.at, schema.at);
            let mut changes: Vec<Diagnostic> = outcome
                .findings
                .list()
                .iter()
                .map(|finding| self.finding(&at, schema.tree, finding))
                .collect();
            changes.sort_by_key(|change| change.position);
            if !changes.is_empty() {
                report.verdict = Verdict::Changed;
            }
            report.diagnostics.extend(changes);
            report.unlisted = outcome.findings.left_out();
        }
        report.declaration = declaration(&name, tool.description, &outcome);
        outcome.findings.work
    }

    fn finding(&self, at: &str, schema: &Tree<'_>, finding: &Finding<'_>) -> Diagnostic {
        let severity = match finding.effect {
            Effect::Rewritten | Effect::Described => Severity::Note,
            Effect::Dropped | Effect::Adjusted | Effect::Repaired | Effect::Cut => {
                Severity::Warning
            }
        };
        let inner = finding.at(schema);
        let at = if inner.is_empty() { at.to_owned() } else { format!("{at}.{inner}") };
        let place = place(schema, finding);
        let help = help(finding).map(|help| help.into_owned());
        self.diagnostic(severity, at, place, &finding.detail, help)
    }

    fn diagnostic(
        &self,
        severity: Severity,
        at: String,
        place: &str,
        message: &str,
        help: Option<String>,
    ) -> Diagnostic {
        let offset = self.lines.offset(place);
        // Of a schema or tool only the bracket is marked.
        let length = if place.starts_with(['{', '[']) { 1 } else { place.len() };
        Diagnostic {
            severity,
            at,
            position: self.lines.position(offset),
            message: message.to_owned(),
            help,
            snippet: self.lines.snippet(offset, length),
        }
    }
}

/// The text to point at: the keyword where it is written, else the schema that it is missing from.
fn place<'t>(schema: &'t Tree<'t>, finding: &Finding<'t>) -> &'t str {
    let mut here = schema;
    while here.text.len() != finding.node.len() {
        match here.child_around(finding.node) {
            Some((_, child)) => here = child,
            None => return finding.node,
        }
    }
    here.member(&finding.keyword).map_or(finding.node, |member| member.key_text)
}

/// Declaration of a tool that takes text.
fn freeform<'t>() -> Outcome<'t> {
    Outcome {
        placement: Placement::JsonSchema,
        json: r#"{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}"#
            .to_owned(),
        note: None,
        findings: crate::schema::finding::Findings::default(),
        invalid: None,
        is_object: true,
    }
}

fn declaration(
    name: &str,
    description: Option<&str>,
    outcome: &Outcome<'_>,
) -> Option<Raw<'static>> {
    let mut out = vec![b'{'];
    write::key(&mut out, "name");
    write::string(&mut out, name);
    let parts = [description, outcome.note.as_deref()].into_iter().flatten();
    let description = parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n");
    if !description.is_empty() {
        write::key(&mut out, "description");
        write::string(&mut out, &description);
    }
    let member = match outcome.placement {
        Placement::Absent => None,
        Placement::JsonSchema => Some("parametersJsonSchema"),
        Placement::Parameters => Some("parameters"),
    };
    if let Some(member) = member {
        write::key(&mut out, member);
        out.extend_from_slice(outcome.json.as_bytes());
    }
    out.push(b'}');
    String::from_utf8(out).ok().and_then(Raw::parse)
}
