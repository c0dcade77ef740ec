//! Tools and the choice between them.

use std::borrow::Cow;

use super::request::reread;
use super::wire;
use crate::canon::{
    BadRequest, Function, Loss, LossCode, Losses, MAX_TOOLS, Request, SchemaForm, ServerTool, Tool,
    ToolChoice, ToolName, too_many_tools,
};
use crate::json::{Kind, Path, Raw, Text};

/// What becomes of `strict`.
const NOT_STRICT: &str = "Gemini is not held to the schema; arguments are checked when they come";

/// Fills in the tools and which of them may be called.
pub(super) fn decode_tools<'a>(
    wire: &mut wire::Request<'a>,
    request: &mut Request<'a>,
    losses: &mut Losses,
) -> Result<(), BadRequest> {
    let root = Path::Root;
    let (tools, functions) = (root.field("tools"), root.field("functions"));
    for (index, tool) in wire.tools.iter_mut().flatten().enumerate() {
        let at = tools.index(index);
        if request.tools.len() >= MAX_TOOLS {
            return Err(too_many_tools());
        }
        request.tools.extend(decode_tool(tool, &at, losses)?);
    }
    for (index, function) in wire.functions.iter_mut().flatten().enumerate() {
        let at = functions.index(index);
        request.tools.push(decode_function(function, &at, losses)?);
    }
    if let Some(options) = wire.web_search_options.take() {
        if options.compact() != "{}" {
            losses.add(
                &root.field("web_search_options"),
                LossCode::Ignored,
                "Gemini searches as it likes; only that it may search is passed on",
            );
        }
        request.tools.push(search());
    }
    request.tool_choice = match (wire.tool_choice.take(), wire.function_call.take()) {
        (Some(choice), _) => decode_choice(&choice, &root.field("tool_choice"), losses)?,
        (None, Some(choice)) => decode_choice(&choice, &root.field("function_call"), losses)?,
        (None, None) => ToolChoice::Unset,
    };
    // A legacy message has room for one call.
    let legacy = wire.functions.is_some() && wire.tools.is_none();
    request.parallel_calls = if legacy { Some(false) } else { wire.parallel_tool_calls };
    Ok(())
}

/// Whether one of the tools searches the web.
pub(super) fn searches(tools: &[Tool<'_>]) -> bool {
    tools.iter().any(|tool| matches!(tool, Tool::Server(ServerTool::WebSearch { .. })))
}

fn search<'a>() -> Tool<'a> {
    Tool::Server(ServerTool::WebSearch { name: Cow::Borrowed("web_search") })
}

fn decode_tool<'a>(
    tool: &mut wire::Tool<'a>,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<Option<Tool<'a>>, BadRequest> {
    if let Some(function) = &mut tool.function {
        return decode_function(function, &at.field("function"), losses).map(Some);
    }
    if let Some(custom) = tool.custom.take() {
        return decode_custom(custom, &at.field("custom")).map(Some);
    }
    let kind = tool.kind.as_ref().map(Text::decode);
    Ok(match kind.as_deref() {
        Some("function") => {
            let mut flat = wire::Function {
                name: tool.name.take(),
                description: tool.description.take(),
                parameters: tool.parameters.take(),
                strict: tool.strict.take(),
                ..wire::Function::default()
            };
            Some(decode_function(&mut flat, at, losses)?)
        }
        Some("custom") => return Err(at.field("custom").bad("a custom tool is needed")),
        Some("web_search" | "web_search_preview" | "google_search") => Some(search()),
        Some("url_context") => Some(url_context()),
        Some("code_execution" | "code_interpreter") => Some(code_execution()),
        None if tool.google_search.is_some() => Some(search()),
        None if tool.url_context.is_some() => Some(url_context()),
        None if tool.code_execution.is_some() => Some(code_execution()),
        None => return Err(at.field("type").bad("a tool needs a type")),
        Some(other) => {
            let detail = format_args!("a tool of type `{other}` cannot be offered to Gemini");
            losses.add(at, LossCode::ToolDropped, detail);
            None
        }
    })
}

fn url_context<'a>() -> Tool<'a> {
    Tool::Server(ServerTool::UrlContext { name: Cow::Borrowed("url_context") })
}

fn code_execution<'a>() -> Tool<'a> {
    Tool::Server(ServerTool::CodeExecution { name: Cow::Borrowed("code_execution") })
}

fn decode_function<'a>(
    wire: &mut wire::Function<'a>,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<Tool<'a>, BadRequest> {
    let name = tool_name(wire.name.take(), at)?;
    if wire.strict == Some(true) {
        losses.add_with(LossCode::Ignored, || Loss {
            tool: Some(name.to_string()),
            ..at.field("strict").loss(LossCode::Ignored, NOT_STRICT)
        });
    }
    Ok(Tool::Function(Function {
        name,
        description: wire.description.take(),
        parameters: wire.parameters.take(),
        form: SchemaForm::JsonSchema,
        response: None,
        deferred: false,
        at: at.to_string(),
        schema_field: "parameters",
    }))
}

fn decode_custom<'a>(custom: wire::Custom<'a>, at: &Path<'_>) -> Result<Tool<'a>, BadRequest> {
    let grammar = custom.format.and_then(|format| match format.grammar {
        Some(grammar) => said(grammar.syntax.as_ref(), grammar.definition?),
        None => said(format.syntax.as_ref(), format.definition?),
    });
    Ok(Tool::Freeform {
        name: tool_name(custom.name, at)?,
        description: custom.description,
        grammar,
    })
}

/// A definition alone does not say whether it is a grammar or a regular expression.
fn said<'a>(syntax: Option<&Text<'_>>, definition: Text<'a>) -> Option<Text<'a>> {
    let Some(syntax) = syntax else { return Some(definition) };
    let mut said = Text::new(&format!("syntax: {}\n", syntax.decode()));
    said.push(&definition);
    Some(said)
}

/// The name that must stand here.
pub(super) fn tool_name<'a>(
    name: Option<Text<'a>>,
    at: &Path<'_>,
) -> Result<ToolName<'a>, BadRequest> {
    match name {
        Some(name) if !name.is_empty() => Ok(ToolName::plain(name.into_cow())),
        Some(_) | None => Err(at.field("name").bad("the name of a tool is needed")),
    }
}

/// Reads `tool_choice`, or the legacy `function_call`, whose object has nothing but a name.
fn decode_choice<'a>(
    choice: &Raw<'a>,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<ToolChoice<'a>, BadRequest> {
    if choice.kind() != Kind::Object {
        let word = choice.as_text();
        return by_word(word.as_ref(), at);
    }
    let choice: wire::ToolChoice<'a> = reread(choice, at, losses)?;
    let kind = choice.kind.as_ref().map(Text::decode);
    match kind.as_deref() {
        Some("function") | None => {
            let name = choice.function.map_or(choice.name, |function| function.name);
            Ok(ToolChoice::One(tool_name(name, &at.field("function"))?))
        }
        Some("custom") => {
            let name = choice.custom.map_or(choice.name, |custom| custom.name);
            Ok(ToolChoice::One(tool_name(name, &at.field("custom"))?))
        }
        Some("allowed_tools") => {
            let (mode, tools) = match choice.allowed_tools {
                Some(allowed) => (allowed.mode, allowed.tools),
                None => (choice.mode, choice.tools),
            };
            allowed(mode.as_ref(), tools, &at.field("allowed_tools"))
        }
        Some("web_search" | "web_search_preview") => {
            Ok(ToolChoice::One(ToolName::plain("web_search")))
        }
        Some(_) => by_word(choice.kind.as_ref(), at),
    }
}

fn by_word<'a>(word: Option<&Text<'_>>, at: &Path<'_>) -> Result<ToolChoice<'a>, BadRequest> {
    let word = word.map(Text::decode);
    match word.as_deref() {
        Some("auto") => Ok(ToolChoice::Auto),
        Some("required" | "any") => Ok(ToolChoice::Any),
        Some("none") => Ok(ToolChoice::None),
        Some(_) | None => Err(at.bad("expected auto, required, none or a tool")),
    }
}

fn allowed<'a>(
    mode: Option<&Text<'_>>,
    tools: Option<Vec<wire::ToolRef<'a>>>,
    at: &Path<'_>,
) -> Result<ToolChoice<'a>, BadRequest> {
    let mode = mode.map(Text::decode);
    let required = match mode.as_deref() {
        Some("required") => true,
        Some("auto") | None => false,
        Some(_) => return Err(at.field("mode").bad("expected auto or required")),
    };
    let mut names = Vec::new();
    let list = at.field("tools");
    for (index, tool) in tools.into_iter().flatten().enumerate() {
        let kind = tool.kind.as_ref().map(Text::decode);
        if matches!(kind.as_deref(), Some("web_search" | "web_search_preview")) {
            names.push(ToolName::plain("web_search"));
            continue;
        }
        let name = tool.function.or(tool.custom).map_or(tool.name, |named| named.name);
        names.push(tool_name(name, &list.index(index))?);
    }
    Ok(ToolChoice::Allowed { required, names })
}
