//! Tools of the upstream request, and the mode in which they are called.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::EncodeOptions;
use super::declare::{Declared, declare_freeform, declare_function};
use super::output::{Output, may_need_function, plan_output};
use super::tools::{OWN_MODE, own_field};
use crate::canon::{
    Backend, BadRequest, Loss, LossCode, Losses, Request, ServerTool, Tool, ToolChoice, ToolName,
};
use crate::upstream::generate_content::history::{Rules, camel};
use crate::upstream::generate_content::{AnswerFunction, Mixing, ToolEntry, ToolInput};

/// More declarations are refused.
const MAX_FUNCTIONS: usize = 512;
/// The tools that only one back end knows.
const DEVELOPER_ONLY: [&str; 2] = ["fileSearch", "mcpServers"];
const VERTEX_ONLY: [&str; 4] =
    ["enterpriseWebSearch", "exaAiSearch", "parallelAiSearch", "retrieval"];

/// What Gemini is told to do with the functions.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Calling {
    pub(super) mode: Mode,
    pub(super) allowed: Vec<String>,
}

/// Gemini's modes of calling functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Auto,
    Any,
    None,
    Validated,
}

/// The tools of one request.
#[derive(Debug, Default)]
pub(super) struct Toolbox<'r> {
    pub(super) functions: Vec<Declared<'r>>,
    /// The functions for the answer's decoder, in the order of their declarations.
    pub(super) entries: Vec<ToolEntry>,
    /// Gemini's own tools: a member of `Tool`, and its value.
    pub(super) servers: Vec<(Cow<'r, str>, Cow<'r, str>)>,
    pub(super) calling: Option<Calling>,
    pub(super) output: Output,
    /// To be added to the system's instructions.
    pub(super) instruction: Option<String>,
}

impl<'r> Toolbox<'r> {
    pub(super) fn of(
        request: &'r Request<'r>,
        rules: &Rules<'_>,
        options: &EncodeOptions<'_>,
        losses: &mut Losses,
    ) -> Result<Self, BadRequest> {
        let mut toolbox = Self::default();
        if options.tools_enabled {
            toolbox.add_functions(request, rules, options, losses)?;
            toolbox.add_servers(request, rules, losses);
            toolbox.calling = toolbox.choose(request, losses);
        } else if !request.tools.is_empty() {
            losses.add_with(LossCode::Ignored, || {
                note("tools", LossCode::Ignored, "tool calling is switched off")
            });
        }
        plan_output(&mut toolbox, request, rules, options, losses)?;
        Ok(toolbox)
    }

    /// The function that stands for a structured answer.
    pub(super) fn answer_function(&self) -> Option<&AnswerFunction> {
        match &self.output {
            Output::Function(function) => Some(function),
            Output::Words | Output::Json { .. } => None,
        }
    }

    fn add_functions(
        &mut self,
        request: &'r Request<'r>,
        rules: &Rules<'_>,
        options: &EncodeOptions<'_>,
        losses: &mut Losses,
    ) -> Result<(), BadRequest> {
        // Of two with one name the last counts, so they are looked at from the end.
        let mut seen = BTreeSet::new();
        let mut kept = vec![false; request.tools.len()];
        for (at, tool) in request.tools.iter().enumerate().rev() {
            let Some(name) = function_name(tool) else { continue };
            if !seen.insert(name) {
                let detail = "another tool of the same name follows, and counts";
                losses.add_with(LossCode::ToolDropped, || dropped(place(tool, at), name, detail));
            } else if options.learned.tools.contains(name) {
                let detail = "Gemini refused this tool before; it was left out";
                losses.add_with(LossCode::ToolDropped, || dropped(place(tool, at), name, detail));
            } else {
                kept[at] = !is_deferred(tool);
            }
        }
        let room =
            if may_need_function(request, rules) { MAX_FUNCTIONS - 1 } else { MAX_FUNCTIONS };
        // Where there are too many, those that the client's choice names come first.
        let chosen: BTreeSet<&ToolName<'_>> = chosen(request).iter().collect();
        let is_chosen = |name: &ToolName<'_>| chosen.contains(name);
        let named = request
            .tools
            .iter()
            .zip(&kept)
            .filter(|(tool, kept)| **kept && function_name(tool).is_some_and(is_chosen));
        let named = named.count().min(room);
        let (mut for_chosen, mut for_others) = (named, room - named);
        for (at, tool) in request.tools.iter().enumerate().filter(|(at, _)| kept[*at]) {
            let Some(name) = function_name(tool) else { continue };
            let left = if is_chosen(name) { &mut for_chosen } else { &mut for_others };
            if *left == 0 {
                losses.add_with(LossCode::ToolDropped, || {
                    let detail = format!("Gemini takes {MAX_FUNCTIONS} functions at most");
                    dropped(place(tool, at), name, &detail)
                });
                continue;
            }
            *left -= 1;
            let alias = rules.names.alias(name).to_owned();
            let (declared, input) = match tool {
                Tool::Function(function) => {
                    let place = place(tool, at);
                    match declare_function(function, alias, &place, rules, options, losses)? {
                        Some(declared) => declared,
                        None => {
                            *left += 1;
                            continue;
                        }
                    }
                }
                Tool::Freeform { description, grammar, .. } => (
                    declare_freeform(alias, description.as_ref(), grammar.as_ref(), rules, options),
                    ToolInput::Freeform,
                ),
                Tool::Server(_) => continue,
            };
            if declared.alias != name.name || name.namespace.is_some() {
                let detail = format!("Gemini knows it as `{}`", declared.alias);
                let loss = note(&place(tool, at), LossCode::NameAliased, &detail);
                losses.push(Loss { tool: Some(name.to_string()), ..loss });
            }
            let (alias, name) = (declared.alias.clone(), name.clone().into_owned());
            self.entries.push(ToolEntry { alias, name, input });
            self.functions.push(declared);
        }
        Ok(())
    }

    fn add_servers(&mut self, request: &'r Request<'r>, rules: &Rules<'_>, losses: &mut Losses) {
        let tools = request.tools.iter().filter_map(|tool| match tool {
            Tool::Server(server) => Some(server),
            Tool::Function(_) | Tool::Freeform { .. } => None,
        });
        for server in tools.filter(|server| is_allowed(request, server)) {
            let (kind, body): (Cow<'r, str>, Cow<'r, str>) = match server {
                ServerTool::WebSearch { .. } => ("googleSearch".into(), "{}".into()),
                ServerTool::UrlContext { .. } => ("urlContext".into(), "{}".into()),
                ServerTool::CodeExecution { .. } => ("codeExecution".into(), "{}".into()),
                ServerTool::Gemini { kind, body } => (camel(Cow::Borrowed(kind)), body.compact()),
            };
            let unknown = match rules.target.backend {
                Backend::Developer => VERTEX_ONLY.contains(&&*kind),
                Backend::Vertex => DEVELOPER_ONLY.contains(&&*kind),
            };
            if unknown || kind == "functionDeclarations" || body == "null" {
                let detail = "this back end does not know the tool; it was left out";
                losses.add_with(LossCode::ToolDropped, || {
                    dropped("tools".to_owned(), &ToolName::plain(&*kind), detail)
                });
            } else if self.servers.iter().all(|(earlier, _)| *earlier != kind) {
                self.servers.push((kind, body));
            }
        }
        let apart = rules.profile.mixing == Mixing::Refused || rules.learned.no_mixed_tools;
        if self.functions.is_empty() || self.servers.is_empty() || !apart {
            return;
        }
        let detail = "this model takes functions or Gemini's own tools, not both in one request";
        if is_server_choice(request) {
            for entry in self.entries.drain(..) {
                losses.add_with(LossCode::ToolDropped, || {
                    dropped("tools".to_owned(), &entry.name, detail)
                });
            }
            self.functions.clear();
        } else {
            for (kind, _) in self.servers.drain(..) {
                losses.add_with(LossCode::ToolDropped, || {
                    dropped("tools".to_owned(), &ToolName::plain(kind), detail)
                });
            }
        }
    }

    /// The client's choice among the declared functions.
    fn choose(&self, request: &Request<'_>, losses: &mut Losses) -> Option<Calling> {
        let at = "tool_choice";
        if self.functions.is_empty() {
            let forced = match &request.tool_choice {
                ToolChoice::Any | ToolChoice::One(_) => true,
                ToolChoice::Allowed { required, .. } => *required,
                ToolChoice::Unset | ToolChoice::Auto | ToolChoice::None => false,
            };
            if forced {
                let detail = "there is no function that Gemini could be made to call";
                losses.add_with(LossCode::Ignored, || note(at, LossCode::Ignored, detail));
            }
            return None;
        }
        let with = |mode, allowed| Some(Calling { mode, allowed });
        let alias = |name: &ToolName<'_>| {
            let entry = self.entries.iter().find(|entry| entry.name == *name)?;
            Some(entry.alias.clone())
        };
        match &request.tool_choice {
            ToolChoice::Unset => None,
            ToolChoice::Auto if own_field(request, OWN_MODE).is_some() => {
                with(Mode::Validated, Vec::new())
            }
            ToolChoice::Auto => with(Mode::Auto, Vec::new()),
            ToolChoice::Any => with(Mode::Any, Vec::new()),
            ToolChoice::None => with(Mode::None, Vec::new()),
            ToolChoice::One(name) => match alias(name) {
                Some(alias) => with(Mode::Any, vec![alias]),
                // Nothing makes Gemini use a tool of its own; but nothing else may be called.
                None if is_server(request, name) => with(Mode::None, Vec::new()),
                None => {
                    let detail = format!("`{name}` is not a function that Gemini was given");
                    losses.add_with(LossCode::Changed, || note(at, LossCode::Changed, &detail));
                    None
                }
            },
            ToolChoice::Allowed { required, names } => {
                let mut allowed: Vec<String> = Vec::with_capacity(names.len());
                let mut seen = BTreeSet::new();
                for name in names.iter().filter(|name| seen.insert(*name)) {
                    match alias(name) {
                        Some(alias) => allowed.push(alias),
                        None if is_server(request, name) => {}
                        None => {
                            let detail = format!("`{name}` is not among the tools");
                            losses.add_with(LossCode::Changed, || {
                                note(at, LossCode::Changed, &detail)
                            });
                        }
                    }
                }
                if allowed.is_empty() && *required {
                    let detail = "there is no function that Gemini could be made to call";
                    losses.add_with(LossCode::Ignored, || note(at, LossCode::Ignored, detail));
                }
                let mode = match (allowed.is_empty(), required) {
                    (true, _) => Mode::None,
                    (false, true) => Mode::Any,
                    // `AUTO` does not go with a list of names.
                    (false, false) => Mode::Validated,
                };
                with(mode, allowed)
            }
        }
    }
}

fn function_name<'r>(tool: &'r Tool<'r>) -> Option<&'r ToolName<'r>> {
    match tool {
        Tool::Function(function) => Some(&function.name),
        Tool::Freeform { name, .. } => Some(name),
        Tool::Server(_) => None,
    }
}

fn is_deferred(tool: &Tool<'_>) -> bool {
    match tool {
        Tool::Function(function) => function.deferred,
        Tool::Freeform { .. } | Tool::Server(_) => false,
    }
}

/// Where the tool stands, as far as it is known.
fn place(tool: &Tool<'_>, at: usize) -> String {
    match tool {
        Tool::Function(function) if !function.at.is_empty() => function.at.clone(),
        Tool::Function(_) | Tool::Freeform { .. } | Tool::Server(_) => format!("tools[{at}]"),
    }
}

fn is_server_choice(request: &Request<'_>) -> bool {
    match &request.tool_choice {
        ToolChoice::One(name) => is_server(request, name),
        ToolChoice::Allowed { names, .. } => {
            let functions: BTreeSet<_> = request.tools.iter().filter_map(function_name).collect();
            !names.iter().any(|name| functions.contains(name))
        }
        ToolChoice::Unset | ToolChoice::Auto | ToolChoice::Any | ToolChoice::None => false,
    }
}

/// The tools that the client's choice names.
fn chosen<'r>(request: &'r Request<'_>) -> &'r [ToolName<'r>] {
    match &request.tool_choice {
        ToolChoice::One(name) => std::slice::from_ref(name),
        ToolChoice::Allowed { names, .. } => names,
        ToolChoice::Unset | ToolChoice::Auto | ToolChoice::Any | ToolChoice::None => &[],
    }
}

/// Whether the client's choice leaves Gemini one of its own tools. Nothing else keeps Gemini from
/// using it.
fn is_allowed(request: &Request<'_>, server: &ServerTool<'_>) -> bool {
    match &request.tool_choice {
        ToolChoice::None => false,
        ToolChoice::Allowed { names, .. } => names.iter().any(|name| is_called(server, name)),
        ToolChoice::Unset | ToolChoice::Auto | ToolChoice::Any | ToolChoice::One(_) => true,
    }
}

fn is_called(server: &ServerTool<'_>, name: &ToolName<'_>) -> bool {
    let own = match server {
        ServerTool::WebSearch { name: own }
        | ServerTool::UrlContext { name: own }
        | ServerTool::CodeExecution { name: own }
        | ServerTool::Gemini { kind: own, .. } => own,
    };
    name.namespace.is_none() && *own == name.name
}

fn is_server(request: &Request<'_>, name: &ToolName<'_>) -> bool {
    request.tools.iter().any(|tool| match tool {
        Tool::Server(server) => is_called(server, name),
        Tool::Function(_) | Tool::Freeform { .. } => false,
    })
}

/// The path of something inside of a schema, from the root of the body.
pub(super) fn inside(place: &str, at: &str) -> String {
    match at {
        "" => place.to_owned(),
        _ if at.starts_with('[') => format!("{place}{at}"),
        _ => format!("{place}.{at}"),
    }
}

pub(super) fn dropped(at: String, name: &ToolName<'_>, detail: &str) -> Loss {
    let (code, detail) = (LossCode::ToolDropped, detail.to_owned());
    Loss { at, code, detail, tool: Some(name.to_string()) }
}

pub(super) fn note(at: &str, code: LossCode, detail: &str) -> Loss {
    Loss { at: at.to_owned(), code, detail: detail.to_owned(), tool: None }
}
