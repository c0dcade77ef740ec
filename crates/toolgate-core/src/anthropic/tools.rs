//! Tools and the choice among them.

use std::borrow::Cow;

use super::message::{Reader, required};
use super::{toolset, vendor, wire};
use crate::canon::{
    BadRequest, Function, Loss, LossCode, Losses, MAX_TOOLS, SchemaForm, ServerTool, Tool,
    ToolChoice, ToolName, too_many_tools,
};
use crate::json::{self, Element, Path, Raw, Slice, Text};

/// Reads `tool_choice`.
pub(super) fn choice(given: wire::ToolChoice<'_>) -> Result<ToolChoice<'_>, BadRequest> {
    let at = Path::Root.field("tool_choice");
    let kind = required(given.kind, &at.field("type"))?;
    match &*kind {
        "auto" => Ok(ToolChoice::Auto),
        "any" => Ok(ToolChoice::Any),
        "none" => Ok(ToolChoice::None),
        "tool" => Ok(ToolChoice::One(ToolName::plain(required(given.name, &at.field("name"))?))),
        _ => Err(at.field("type").bad("expected auto, any, tool or none")),
    }
}

/// Whether all tools are such as the mirror of a tool knows.
pub(super) fn are_known(tools: &[Element<wire::Tool<'_>>]) -> bool {
    tools.iter().all(|tool| tool.kind.as_ref().is_none_or(|kind| is_known(&kind.decode())))
}

/// Reads tools one by one.
pub(super) fn read<'a>(
    tools: &[Raw<'a>],
    losses: &mut Losses,
) -> Result<Vec<Element<wire::Tool<'a>>>, BadRequest> {
    let at = Path::Root.field("tools");
    let tools = tools.iter().enumerate();
    tools.map(|(index, raw)| read_one(raw, &at.index(index), losses).map(Box::new)).collect()
}

fn read_one<'a>(
    raw: &Raw<'a>,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<wire::Tool<'a>, BadRequest> {
    let tag: wire::ToolTag<'a> = json::look(Slice::new(raw).get(), at)?;
    if tag.kind.as_ref().is_none_or(|kind| is_known(&kind.decode())) {
        return Ok(json::read(Slice::new(raw).get(), at, losses)?);
    }
    let name = tag.name.and_then(Raw::into_text);
    Ok(wire::Tool { kind: tag.kind, name, ..wire::Tool::default() })
}

/// Makes tools of `tools`, and of those that the conversation itself declares.
///
/// A deferred tool is shown once the conversation has loaded or used it, or the client demands it.
pub(super) fn decode<'a>(
    given: Vec<Element<wire::Tool<'a>>>,
    reader: &mut Reader<'a, '_>,
    choice: &ToolChoice<'a>,
) -> Result<Vec<Tool<'a>>, BadRequest> {
    let mut shelf = Shelf::default();
    let tools_at = Path::Root.field("tools");
    shelf.tools.reserve(given.len());
    for (index, tool) in given.into_iter().enumerate() {
        shelf.take(*tool, &tools_at.index(index), &mut reader.losses)?;
    }
    for (at, raw) in std::mem::take(&mut reader.added) {
        let at = Path::Root.field(&at);
        let tool = read_one(&raw, &at, &mut reader.losses)?;
        shelf.take(tool, &at, &mut reader.losses)?;
    }
    let demanded = match choice {
        ToolChoice::One(name) => Some(&name.name),
        ToolChoice::Unset
        | ToolChoice::Auto
        | ToolChoice::Any
        | ToolChoice::None
        | ToolChoice::Allowed { .. } => None,
    };
    for tool in &mut shelf.tools {
        let Tool::Function(function) = tool else { continue };
        // A toolset is loaded as a whole, by its own name.
        let name = function.name.namespace.as_ref().unwrap_or(&function.name.name);
        function.deferred = match reader.mentioned.get(name).copied() {
            _ if *name == PLACEHOLDER => true,
            _ if demanded == Some(name) => false,
            // A call in the history mentions every tool: only a removal says something of those
            // that were never deferred.
            Some(is_shown) => !is_shown,
            None => function.deferred && !shelf.search_dropped,
        };
    }
    Ok(shelf.tools)
}

/// Claude Code declares it so that the list of tools never changes; it is not to be called.
const PLACEHOLDER: &str = "DeferredToolPlaceholder";

#[derive(Default)]
struct Shelf<'a> {
    tools: Vec<Tool<'a>>,
    /// Whether the client relies on a search that is not run: then nothing can stay deferred.
    search_dropped: bool,
}

impl<'a> Shelf<'a> {
    fn take(
        &mut self,
        mut tool: wire::Tool<'a>,
        at: &Path<'_>,
        losses: &mut Losses,
    ) -> Result<(), BadRequest> {
        let kind = tool.kind.take().map(Text::into_cow).unwrap_or(Cow::Borrowed("custom"));
        let (family, version) = family(&kind);
        if self.tools.len() >= MAX_TOOLS {
            return Err(too_many_tools());
        }
        match family {
            "custom" => self.tools.push(Tool::Function(custom(tool, at, losses)?)),
            "bash" | "text_editor" | "computer" | "memory" => {
                self.tools.push(Tool::Function(vendor::function(family, version, tool, at)));
            }
            "computer_toolset" | "browser_toolset" => {
                self.tools.extend(toolset::functions(family, &tool, at).map(Tool::Function));
            }
            "web_search" | "web_fetch" | "code_execution" => {
                self.tools.push(Tool::Server(server(family, tool, at, losses)));
            }
            family => {
                self.search_dropped |= family.starts_with("tool_search_tool");
                losses.add_with(LossCode::ToolDropped, || Loss {
                    at: at.to_string(),
                    code: LossCode::ToolDropped,
                    detail: dropped(family, &kind),
                    tool: Some(tool.name.map(Text::into_cow).unwrap_or_default().into_owned())
                        .filter(|name| !name.is_empty())
                        .or_else(|| Some(kind.clone().into_owned())),
                });
            }
        }
        Ok(())
    }
}

/// Types whose fields the mirror of a tool knows.
fn is_known(kind: &str) -> bool {
    matches!(
        family(kind).0,
        "custom"
            | "bash"
            | "text_editor"
            | "computer"
            | "memory"
            | "computer_toolset"
            | "browser_toolset"
            | "web_search"
            | "web_fetch"
            | "code_execution"
    )
}

/// `text_editor_20250728` → `text_editor`, `20250728`.
fn family(kind: &str) -> (&str, &str) {
    kind.rsplit_once('_')
        .filter(|(_, version)| !version.is_empty() && version.bytes().all(|it| it.is_ascii_digit()))
        .unwrap_or((kind, ""))
}

fn dropped(family: &str, kind: &str) -> String {
    if family.starts_with("tool_search_tool") {
        return "Gemini does not search tools; those that wait for it are all shown".to_owned();
    }
    if family == "mcp_toolset" {
        return "Gemini does not call MCP servers; the tools of this one are not offered"
            .to_owned();
    }
    format!("`{kind}` is not a tool that Gemini or this version knows")
}

fn custom<'a>(
    tool: wire::Tool<'a>,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<Function<'a>, BadRequest> {
    let name = required(tool.name, &at.field("name"))?;
    if let Some(callers) = &tool.allowed_callers
        && !callers.is_empty()
        && !callers.iter().any(|caller| caller.decode() == "direct")
    {
        losses.add_with(LossCode::Ignored, || Loss {
            tool: Some(name.clone().into_owned()),
            ..at.field("allowed_callers")
                .loss(LossCode::Ignored, "Gemini calls every tool itself, not from code")
        });
    }
    if tool.strict == Some(true) {
        let detail = "Gemini is not held to the schema; arguments are checked when they come";
        losses.add_with(LossCode::Ignored, || Loss {
            tool: Some(name.clone().into_owned()),
            ..at.field("strict").loss(LossCode::Ignored, detail)
        });
    }
    Ok(Function {
        name: ToolName::plain(name),
        description: described(tool.description, tool.input_examples.as_deref()),
        parameters: tool.input_schema,
        form: SchemaForm::JsonSchema,
        response: None,
        deferred: tool.defer_loading.unwrap_or(false),
        at: at.to_string(),
        schema_field: "input_schema",
    })
}

/// The description, with the examples that Gemini's declarations have no place for.
pub(super) fn described<'a>(
    description: Option<Text<'a>>,
    examples: Option<&[Raw<'a>]>,
) -> Option<Text<'a>> {
    let Some(examples) = examples.filter(|examples| !examples.is_empty()) else {
        return description;
    };
    let mut text = description.unwrap_or(Text::EMPTY);
    let heading = if text.is_empty() { "Examples of input:" } else { "\n\nExamples of input:" };
    text.push(&Text::new(heading));
    for example in examples {
        text.push(&Text::new(&format!("\n{}", example.compact())));
    }
    Some(text)
}

fn server<'a>(
    family: &str,
    tool: wire::Tool<'a>,
    at: &Path<'_>,
    losses: &mut Losses,
) -> ServerTool<'a> {
    let limits = [
        ("allowed_domains", tool.allowed_domains.is_some()),
        ("blocked_domains", tool.blocked_domains.is_some()),
        ("max_content_tokens", tool.max_content_tokens.is_some()),
        ("max_uses", tool.max_uses.is_some()),
        ("url_sources", tool.url_sources.is_some()),
        ("user_location", tool.user_location.is_some()),
    ];
    for (name, given) in limits {
        if given {
            losses.add_with(LossCode::Ignored, || Loss {
                tool: Some(family.to_owned()),
                ..at.field(name).loss(LossCode::Ignored, "Gemini's own tool has no such setting")
            });
        }
    }
    let name = tool.name.map(Text::into_cow).unwrap_or_else(|| Cow::Owned(family.to_owned()));
    match family {
        "web_search" => ServerTool::WebSearch { name },
        "web_fetch" => ServerTool::UrlContext { name },
        _ => ServerTool::CodeExecution { name },
    }
}
