//! Tools.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::echo::CallKind;
use super::fields::{flag, required, string, text};
use super::hosted::{self, TOOL_SEARCH, TOOL_SEARCH_PARAMETERS};
use super::wire::{self, Grammar};
use crate::canon::{
    BadRequest, Function, Loss, LossCode, Losses, MAX_TOOLS, SchemaForm, ServerTool, Tool,
    ToolName, check_name, too_many_tools,
};
use crate::json::{self, Element, Fields, Kind, Path, Raw, Text};

/// The tools of a request, wherever in it they are declared.
#[derive(Debug, Default)]
pub(super) struct Toolbox<'a> {
    pub(super) tools: Vec<Tool<'a>>,
    pub(super) kinds: BTreeMap<ToolName<'static>, CallKind>,
    /// Tools that Gemini runs itself, by the names that clients use for them.
    pub(super) servers: BTreeSet<&'static str>,
    /// The client can load deferred tools.
    can_search: bool,
    /// Where in `tools` a name stands (the last one, where it stands twice).
    index: BTreeMap<ToolName<'a>, usize>,
    /// The namespaces that each bare name stands in.
    bare: BTreeMap<Cow<'a, str>, BTreeSet<Option<Cow<'a, str>>>>,
}

/// Where a declaration stands.
#[derive(Clone, Copy, Debug)]
struct Place<'p, 'a> {
    at: &'p Path<'p>,
    namespace: Option<&'p Cow<'a, str>>,
    /// A search has loaded it: it is deferred no more.
    loaded: bool,
}

impl<'a> Toolbox<'a> {
    /// Declares the tools of an array.
    pub(super) fn declare(
        &mut self,
        tools: &Raw<'a>,
        at: &Path<'_>,
        loaded: bool,
        losses: &mut Losses,
    ) -> Result<(), BadRequest> {
        self.declare_in(None, tools, at, loaded, losses)
    }

    /// Names of the declared tools, sorted.
    pub(super) fn names(&self) -> impl Iterator<Item = &ToolName<'a>> {
        self.index.keys()
    }

    fn push(&mut self, name: ToolName<'a>, tool: Tool<'a>) {
        self.bare.entry(name.name.clone()).or_default().insert(name.namespace.clone());
        self.index.insert(name, self.tools.len());
        self.tools.push(tool);
    }

    /// The declared name that a choice means: a namespace may be left out where it is clear.
    pub(super) fn meant(&self, name: ToolName<'a>) -> ToolName<'a> {
        if name.namespace.is_some() || self.index.contains_key(&name) {
            return name;
        }
        let mut spaces = self.bare.get(&name.name).into_iter().flatten();
        match (spaces.next(), spaces.next()) {
            (Some(only), None) => ToolName { namespace: only.clone(), ..name },
            (Some(_) | None, _) => name,
        }
    }

    /// Shows deferred tools at once if the client has no search to load them.
    pub(super) fn show_unreachable(&mut self, losses: &mut Losses) {
        if self.can_search {
            return;
        }
        for tool in &mut self.tools {
            let Tool::Function(function) = tool else { continue };
            if std::mem::take(&mut function.deferred) {
                losses.add_with(LossCode::Changed, || Loss {
                    at: format!("{}.defer_loading", function.at),
                    code: LossCode::Changed,
                    detail: "nothing in this request can load the tool later: it is shown at once"
                        .to_owned(),
                    tool: Some(function.name.to_string()),
                });
            }
        }
    }

    fn declare_in(
        &mut self,
        namespace: Option<&Cow<'a, str>>,
        tools: &Raw<'a>,
        at: &Path<'_>,
        loaded: bool,
        losses: &mut Losses,
    ) -> Result<(), BadRequest> {
        let json = tools.as_borrowed().ok_or_else(|| at.bad("cannot be read"))?;
        let tools: Vec<Element<wire::Tool<'a>>> = json::read(json, at, losses)?;
        for (index, tool) in tools.into_iter().enumerate() {
            let at = at.index(index);
            self.declare_one(*tool, Place { at: &at, namespace, loaded }, losses)?;
            if self.tools.len() > MAX_TOOLS {
                return Err(too_many_tools());
            }
        }
        Ok(())
    }

    fn declare_one(
        &mut self,
        tool: wire::Tool<'a>,
        place: Place<'_, 'a>,
        losses: &mut Losses,
    ) -> Result<(), BadRequest> {
        let Place { at, namespace, loaded } = place;
        let kind = tool.kind.as_ref().map(|kind| kind.0.clone());
        match kind.as_deref() {
            Some("function") | None => self.declare_function(tool, place, losses),
            Some("custom") => self.declare_custom(tool, place, losses),
            Some("namespace") if namespace.is_none() => {
                let name = required(tool.name.as_ref(), at, "name")?;
                check_name(&name, &at.field("name"))?;
                if let Some(tools) = &tool.tools {
                    self.declare_in(Some(&name), tools, &at.field("tools"), loaded, losses)?;
                }
                if text(tool.description.as_ref(), at, "description")?
                    .is_some_and(|it| !it.is_empty())
                {
                    losses.add(
                        &at.field("description"),
                        LossCode::Ignored,
                        "Gemini's functions have no namespaces; each keeps its own description",
                    );
                }
                Ok(())
            }
            Some(TOOL_SEARCH) => self.declare_search(&tool, at, losses),
            Some("web_search" | "web_search_2025_08_26") => {
                self.declare_web_search(&tool, at, losses)
            }
            Some(kind) if kind.starts_with("web_search_preview") => {
                self.declare_web_search(&tool, at, losses)
            }
            Some("code_interpreter") => {
                if tool.container.as_ref().is_some_and(names_files) {
                    losses.add(
                        &at.field("container"),
                        LossCode::Ignored,
                        "Gemini runs code in a container of its own, without these files",
                    );
                }
                self.servers.insert("code_interpreter");
                let name = Cow::Borrowed("code_interpreter");
                self.tools.push(Tool::Server(ServerTool::CodeExecution { name }));
                Ok(())
            }
            Some(kind) => {
                match hosted::hosted(kind) {
                    Some(hosted) if !is_remote(tool.environment.as_ref()) => {
                        self.declare_hosted(hosted, at);
                    }
                    Some(_) | None => {
                        losses.add_with(LossCode::ToolDropped, || dropped(kind, &tool, at))
                    }
                }
                Ok(())
            }
        }
    }

    fn declare_function(
        &mut self,
        tool: wire::Tool<'a>,
        place: Place<'_, 'a>,
        losses: &mut Losses,
    ) -> Result<(), BadRequest> {
        let at = place.at;
        let deferred = flag(tool.defer_loading.as_ref(), at, "defer_loading")?;
        // Chat's form has everything one level down.
        let tool = match &tool.function {
            Some(inner) => nested(inner, &at.field("function"), losses)?,
            None => tool,
        };
        let name = required(tool.name.as_ref(), at, "name")?;
        let name = ToolName { namespace: place.namespace.cloned(), name };
        let inner = flag(tool.defer_loading.as_ref(), at, "defer_loading")?;
        let deferred = deferred.or(inner).unwrap_or(false) && !place.loaded;
        if place.loaded && self.load(&name) {
            return Ok(());
        }
        if !self.kinds.is_empty() {
            self.kinds.remove(&name.clone().into_owned());
        }
        let function = Function {
            name: name.clone(),
            description: text(tool.description.as_ref(), at, "description")?,
            parameters: tool.parameters,
            form: SchemaForm::JsonSchema,
            response: None,
            deferred,
            at: at.to_string(),
            schema_field: "parameters",
        };
        self.push(name, Tool::Function(function));
        Ok(())
    }

    /// Shows a deferred tool; `false` where it was not declared before.
    fn load(&mut self, name: &ToolName<'a>) -> bool {
        match self.index.get(name).and_then(|at| self.tools.get_mut(*at)) {
            Some(Tool::Function(function)) => {
                function.deferred = false;
                true
            }
            Some(Tool::Freeform { .. }) => true,
            Some(Tool::Server(_)) | None => false,
        }
    }

    fn declare_custom(
        &mut self,
        tool: wire::Tool<'a>,
        place: Place<'_, 'a>,
        losses: &mut Losses,
    ) -> Result<(), BadRequest> {
        let at = place.at;
        let tool = match &tool.custom {
            Some(inner) => nested(inner, &at.field("custom"), losses)?,
            None => tool,
        };
        let name = required(tool.name.as_ref(), at, "name")?;
        let name = ToolName { namespace: place.namespace.cloned(), name };
        if place.loaded && self.load(&name) {
            return Ok(());
        }
        self.kinds.insert(name.clone().into_owned(), CallKind::Custom);
        let tool = Tool::Freeform {
            name: name.clone(),
            description: text(tool.description.as_ref(), at, "description")?,
            grammar: grammar(tool.format.as_ref(), &at.field("format"), losses)?,
        };
        self.push(name, tool);
        Ok(())
    }

    fn declare_hosted(&mut self, hosted: &'static hosted::Hosted, at: &Path<'_>) {
        let name = ToolName::plain(hosted.name);
        self.kinds.insert(name.clone(), hosted.kind);
        let function = Function {
            name: name.clone(),
            description: Some(Text::new(hosted.description)),
            parameters: hosted.parameters(),
            form: SchemaForm::JsonSchema,
            response: None,
            deferred: false,
            at: at.to_string(),
            schema_field: "parameters",
        };
        self.push(name, Tool::Function(function));
    }

    fn declare_search(
        &mut self,
        tool: &wire::Tool<'a>,
        at: &Path<'_>,
        losses: &mut Losses,
    ) -> Result<(), BadRequest> {
        if string(tool.execution.as_ref(), at, "execution")?.as_deref() != Some("client") {
            losses.add_with(LossCode::ToolDropped, || dropped(TOOL_SEARCH, tool, at));
            return Ok(());
        }
        self.can_search = true;
        let name = ToolName::plain(TOOL_SEARCH);
        self.kinds.insert(name.clone(), CallKind::ToolSearch);
        let said = "Finds tools that are not shown yet; what it finds can be called.";
        let function = Function {
            name: name.clone(),
            description: text(tool.description.as_ref(), at, "description")?
                .or_else(|| Some(Text::new(said))),
            parameters: tool
                .parameters
                .clone()
                .or_else(|| serde_json::from_str(TOOL_SEARCH_PARAMETERS).ok()),
            form: SchemaForm::JsonSchema,
            response: None,
            deferred: false,
            at: at.to_string(),
            schema_field: "parameters",
        };
        self.push(name, Tool::Function(function));
        Ok(())
    }

    fn declare_web_search(
        &mut self,
        tool: &wire::Tool<'a>,
        at: &Path<'_>,
        losses: &mut Losses,
    ) -> Result<(), BadRequest> {
        let size = string(tool.search_context_size.as_ref(), at, "search_context_size")?;
        let access = flag(tool.external_web_access.as_ref(), at, "external_web_access")?;
        let ignored = [
            ("filters", tool.filters.is_some()),
            ("user_location", tool.user_location.is_some()),
            ("search_context_size", size.is_some_and(|size| size != "medium")),
            ("external_web_access", access == Some(false)),
        ];
        for (name, _) in ignored.into_iter().filter(|(_, given)| *given) {
            losses.add(&at.field(name), LossCode::Ignored, "Gemini's search has no such setting");
        }
        self.servers.insert(WEB_SEARCH);
        self.tools.push(Tool::Server(ServerTool::WebSearch { name: Cow::Borrowed(WEB_SEARCH) }));
        Ok(())
    }
}

pub(super) const WEB_SEARCH: &str = "web_search";

fn nested<'a>(
    inner: &Raw<'a>,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<wire::Tool<'a>, BadRequest> {
    Ok(json::read(inner.as_borrowed().ok_or_else(|| at.bad("cannot be read"))?, at, losses)?)
}

/// The grammar in the form that the model reads: the syntax's name and the rules.
fn grammar<'a>(
    format: Option<&Raw<'a>>,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<Option<Text<'a>>, BadRequest> {
    let Some(json) = format.and_then(Raw::as_borrowed) else { return Ok(None) };
    let mut format: Grammar<'a> = json::read(json, at, losses)?;
    if let Some(inner) = format.grammar.as_ref().and_then(Raw::as_borrowed) {
        format = json::read(inner, &at.field("grammar"), losses)?;
    }
    let Some(definition) = format.definition.filter(|it| !it.is_empty()) else { return Ok(None) };
    let Some(syntax) = format.syntax else { return Ok(Some(definition)) };
    let mut text = Text::new(&format!("syntax: {}\n", syntax.0));
    text.push(&definition);
    Ok(Some(text))
}

fn names_files(container: &Raw<'_>) -> bool {
    container.kind() == Kind::String
        || container.fields().is_some_and(|fields| {
            fields.get("file_ids").and_then(Raw::items).is_some_and(|ids| !ids.is_empty())
        })
}

/// Whether a shell is in a container of OpenAI's, where the client runs nothing.
fn is_remote(environment: Option<&Raw<'_>>) -> bool {
    environment
        .and_then(Raw::fields)
        .and_then(|fields: Fields<'_>| fields.get("type").map(|kind| kind.get() != "\"local\""))
        .unwrap_or(false)
}

fn dropped(kind: &str, tool: &wire::Tool<'_>, at: &Path<'_>) -> Loss {
    let detail = match kind {
        "mcp" => {
            "remote MCP servers are not called by toolgate; give the server's tools as functions"
        }
        "shell" => "a shell in OpenAI's container does not exist here; use a local one",
        TOOL_SEARCH => "tools cannot be searched for on the server; all are shown at once",
        "file_search"
        | "computer_use_preview"
        | "image_generation"
        | "programmatic_tool_calling" => "Gemini has no such tool",
        _ => "toolgate does not know this type of tool",
    };
    let name = tool.name.as_ref().or(tool.server_label.as_ref()).and_then(Raw::as_text);
    let name = name.map(|name| name.decode().into_owned());
    Loss {
        tool: Some(name.unwrap_or_else(|| kind.to_owned())),
        ..at.loss(LossCode::ToolDropped, detail)
    }
}
