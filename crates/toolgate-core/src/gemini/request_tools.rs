//! Tools and how they may be used.

use std::borrow::Cow;

use super::request::{Fill, camel, reread};
use super::wire;
use crate::canon::{
    BadRequest, Function, Loss, LossCode, Losses, MAX_TOOLS, Request, SchemaForm, ServerTool, Tool,
    ToolChoice, ToolName, too_many_tools,
};
use crate::json::{Fields, Kind, Path, Raw, Text};

impl<'a> Fill<'a> for Vec<wire::Tool<'a>> {
    fn fill(
        self,
        at: &Path<'_>,
        request: &mut Request<'a>,
        losses: &mut Losses,
    ) -> Result<(), BadRequest> {
        for (index, tool) in self.into_iter().enumerate() {
            let declarations = tool.function_declarations.unwrap_or_default();
            let at = at.index(index);
            push_declarations(declarations, &at.field(FUNCTIONS), request, losses)?;
        }
        Ok(())
    }
}

/// Each member of a tool object is a tool of its own.
impl<'a> Fill<'a> for wire::List<Fields<'a>> {
    fn fill(
        self,
        at: &Path<'_>,
        request: &mut Request<'a>,
        losses: &mut Losses,
    ) -> Result<(), BadRequest> {
        for (index, Fields(members)) in self.0.into_iter().enumerate() {
            let at = at.index(index);
            for (key, body) in members {
                let key = camel(key);
                if body.kind() == Kind::Null {
                    continue;
                }
                if request.tools.len() >= MAX_TOOLS {
                    return Err(too_many_tools());
                }
                if key == FUNCTIONS {
                    decode_declarations(&body, &at.field(FUNCTIONS), request, losses)?;
                } else {
                    request.tools.push(Tool::Server(server_tool(key, body)));
                }
            }
        }
        Ok(())
    }
}

const FUNCTIONS: &str = "functionDeclarations";

fn server_tool<'a>(kind: Cow<'a, str>, body: Raw<'a>) -> ServerTool<'a> {
    let plain = body.compact() == "{}";
    match &*kind {
        "googleSearch" if plain => ServerTool::WebSearch { name: Cow::Borrowed("google_search") },
        "urlContext" if plain => ServerTool::UrlContext { name: Cow::Borrowed("url_context") },
        "codeExecution" if plain => {
            ServerTool::CodeExecution { name: Cow::Borrowed("code_execution") }
        }
        _ => ServerTool::Gemini { kind, body },
    }
}

fn decode_declarations<'a>(
    body: &Raw<'a>,
    at: &Path<'_>,
    request: &mut Request<'a>,
    losses: &mut Losses,
) -> Result<(), BadRequest> {
    if body.kind() != Kind::Array {
        let declaration = reread(body, at, losses)?;
        request.tools.push(decode_declaration(declaration, at, losses)?);
        return Ok(());
    }
    push_declarations(reread(body, at, losses)?, at, request, losses)
}

fn push_declarations<'a>(
    declarations: Vec<wire::FunctionDeclaration<'a>>,
    at: &Path<'_>,
    request: &mut Request<'a>,
    losses: &mut Losses,
) -> Result<(), BadRequest> {
    if request.tools.len() + declarations.len() > MAX_TOOLS {
        return Err(too_many_tools());
    }
    request.tools.reserve(declarations.len());
    for (index, declaration) in declarations.into_iter().enumerate() {
        request.tools.push(decode_declaration(declaration, &at.index(index), losses)?);
    }
    Ok(())
}

/// The pairs `parameters`/`parametersJsonSchema` and `response`/`responseJsonSchema` say the same
/// thing in two forms; the JSON Schema one says more.
fn decode_declaration<'a>(
    declaration: wire::FunctionDeclaration<'a>,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<Tool<'a>, BadRequest> {
    let Some(name) = declaration.name.filter(|name| !name.is_empty()) else {
        return Err(at.field("name").bad("a function needs a name"));
    };
    let name = name.into_cow();
    let mut lose = |field: &str, code: LossCode, detail: &str| {
        losses.add_with(code, || Loss {
            tool: Some(name.clone().into_owned()),
            ..at.field(field).loss(code, detail)
        });
    };
    let (parameters, form) = match (declaration.parameters_json_schema, declaration.parameters) {
        (Some(schema), other) => {
            if other.is_some() {
                lose("parameters", LossCode::Ignored, "`parametersJsonSchema` says it already");
            }
            (Some(schema), SchemaForm::JsonSchema)
        }
        (None, Some(schema)) => (Some(schema), SchemaForm::Gemini),
        (None, None) if declaration.response.is_some() => (None, SchemaForm::Gemini),
        (None, None) => (None, SchemaForm::JsonSchema),
    };
    let (response, other) = match form {
        SchemaForm::JsonSchema => (declaration.response_json_schema, declaration.response),
        SchemaForm::Gemini => (declaration.response, declaration.response_json_schema),
    };
    if other.is_some() {
        lose("response", LossCode::Ignored, "it is not written like the parameters; left out");
    }
    if declaration.behavior.is_some() {
        lose("behavior", LossCode::Ignored, "only the Live API knows it");
    }
    Ok(Tool::Function(Function {
        name: ToolName::plain(name),
        description: declaration.description,
        parameters,
        form,
        response,
        deferred: false,
        at: at.to_string(),
        schema_field: match form {
            SchemaForm::JsonSchema => "parametersJsonSchema",
            SchemaForm::Gemini => "parameters",
        },
    }))
}

/// Sets the tools that may be called. Members without a canonical form are kept under their path,
/// `toolConfig.retrievalConfig`, among the fields that Gemini's encoder copies.
impl<'a> Fill<'a> for wire::ToolConfig<'a> {
    fn fill(
        self,
        at: &Path<'_>,
        request: &mut Request<'a>,
        losses: &mut Losses,
    ) -> Result<(), BadRequest> {
        if let Some(calling) = self.function_calling_config {
            let at = at.field("functionCallingConfig");
            if calling.stream_function_call_arguments == Some(true) {
                let at = at.field("streamFunctionCallArguments");
                losses.add(&at, LossCode::Ignored, "calls are sent whole");
            }
            let mode = decode_mode(calling.mode.as_ref(), &at.field("mode"))?;
            let own_mode = calling.mode.clone().filter(|_| matches!(mode, Mode::Validated));
            let choice = decode_choice(calling, mode, &request.tools, &at, losses)?;
            // No other dialect has a word for it.
            if let (Some(mode), ToolChoice::Auto) = (own_mode, &choice) {
                request.gemini.push((Cow::Borrowed("toolConfig.functionCallingConfig.mode"), mode));
            }
            request.tool_choice = choice;
        }
        let copied = [
            ("toolConfig.retrievalConfig", self.retrieval_config),
            (
                "toolConfig.includeServerSideToolInvocations",
                self.include_server_side_tool_invocations,
            ),
        ];
        request
            .gemini
            .extend(copied.into_iter().filter_map(|(key, raw)| Some((Cow::Borrowed(key), raw?))));
        Ok(())
    }
}

fn decode_choice<'a>(
    config: wire::FunctionCallingConfig<'a>,
    mode: Mode,
    tools: &[Tool<'a>],
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<ToolChoice<'a>, BadRequest> {
    let at_names = at.field("allowedFunctionNames");
    let names: Vec<Text<'a>> = match config.allowed_function_names {
        None => Vec::new(),
        Some(raw) if raw.kind() == Kind::Array => reread(&raw, &at_names, losses)?,
        Some(raw) => match raw.into_text() {
            Some(one) => vec![one],
            None => return Err(at_names.bad("expected an array of names")),
        },
    };
    let mut names: Vec<ToolName<'a>> =
        names.into_iter().map(|name| ToolName::plain(name.into_cow())).collect();
    let count = names.len();
    if count > 0 {
        // The list is about functions only: Gemini's own tools are always allowed.
        names.extend(servers(tools));
    }
    Ok(match (mode, count) {
        // It is about functions, too.
        (Mode::None, _) => match servers(tools).collect::<Vec<_>>() {
            names if names.is_empty() => ToolChoice::None,
            names => ToolChoice::Allowed { required: false, names },
        },
        (Mode::Any, 0) => ToolChoice::Any,
        (Mode::Any, 1) => names.into_iter().next().map_or(ToolChoice::Any, ToolChoice::One),
        (Mode::Any, _) => ToolChoice::Allowed { required: true, names },
        (Mode::Auto | Mode::Validated, 0) => ToolChoice::Auto,
        (Mode::Unset, 0) => ToolChoice::Unset,
        (Mode::Validated | Mode::Auto | Mode::Unset, _) => {
            ToolChoice::Allowed { required: false, names }
        }
    })
}

fn servers<'t, 'a: 't>(tools: &'t [Tool<'a>]) -> impl Iterator<Item = ToolName<'a>> + 't {
    tools.iter().filter_map(|tool| match tool {
        Tool::Server(
            ServerTool::WebSearch { name }
            | ServerTool::UrlContext { name }
            | ServerTool::CodeExecution { name }
            | ServerTool::Gemini { kind: name, .. },
        ) => Some(ToolName::plain(name.clone())),
        Tool::Function(_) | Tool::Freeform { .. } => None,
    })
}

#[derive(Clone, Copy)]
enum Mode {
    Unset,
    Auto,
    Any,
    None,
    Validated,
}

/// Enums come by name, in any case, or by number.
fn decode_mode(mode: Option<&Raw<'_>>, at: &Path<'_>) -> Result<Mode, BadRequest> {
    let Some(mode) = mode else { return Ok(Mode::Unset) };
    let word = mode.as_text().map(|text| text.decode().to_ascii_uppercase());
    match word.as_deref().unwrap_or_else(|| mode.get()) {
        "" | "MODE_UNSPECIFIED" | "0" => Ok(Mode::Unset),
        "AUTO" | "1" => Ok(Mode::Auto),
        "ANY" | "2" => Ok(Mode::Any),
        "NONE" | "3" => Ok(Mode::None),
        "VALIDATED" | "4" => Ok(Mode::Validated),
        _ => Err(at.bad("expected AUTO, ANY, NONE or VALIDATED")),
    }
}
