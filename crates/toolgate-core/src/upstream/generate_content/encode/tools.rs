//! `tools` and `toolConfig`.

use super::declare::{Declared, Parameters};
use super::toolbox::{Mode, Toolbox, note};
use crate::canon::{LossCode, Losses, Request};
use crate::json::write::{self, ObjectWriter};
use crate::json::{Kind, Raw};
use crate::schema::Placement;
use crate::upstream::generate_content::Mixing;
use crate::upstream::generate_content::history::Rules;

/// Where the members of `toolConfig` stand among Gemini's own fields.
pub(super) const OF_TOOL_CONFIG: &str = "toolConfig.";

/// A Gemini client's own mode, where it is one that no other client has (`VALIDATED`).
pub(super) const OWN_MODE: &str = "functionCallingConfig.mode";

/// Writes `"tools":[…]`: all functions in one object, each of Gemini's own tools in one of its own.
pub(super) fn write_tools(body: &mut ObjectWriter<'_>, toolbox: &Toolbox<'_>) {
    if toolbox.functions.is_empty() && toolbox.servers.is_empty() {
        return;
    }
    let mut tools = body.array("tools");
    if !toolbox.functions.is_empty() {
        let mut tool = tools.object();
        let mut declarations = tool.array("functionDeclarations");
        for function in &toolbox.functions {
            write_declaration(&mut declarations.object(), function);
        }
    }
    for (kind, body) in &toolbox.servers {
        write::compact(tools.object().key(kind), body);
    }
}

fn write_declaration(out: &mut ObjectWriter<'_>, function: &Declared<'_>) {
    out.string("name", &function.alias);
    write_description(out.key("description"), function);
    let (key, json) = match &function.schema {
        Parameters::Written(key, json) => (Some(*key), &**json),
        Parameters::Compiled(compiled) => {
            let key = match compiled.placement {
                Placement::Absent => None,
                Placement::JsonSchema => Some("parametersJsonSchema"),
                Placement::Parameters => Some("parameters"),
            };
            (key, compiled.json.as_str())
        }
    };
    if let Some(key) = key {
        write::literal(out.key(key), json);
    }
    if let Some((key, schema)) = function.response {
        out.raw(key, schema);
    }
}

/// Writes the client's description and our notes after it. Gemini wants one; it may be empty.
fn write_description(out: &mut Vec<u8>, function: &Declared<'_>) {
    if function.notes.is_empty() {
        match function.description {
            Some(text) => text.write(out),
            None => out.extend_from_slice(b"\"\""),
        }
        return;
    }
    let words = function.description.map(|text| text.decode());
    let words: Vec<&str> = words
        .iter()
        .map(|words| &**words)
        .chain(function.notes.iter().map(|note| &**note))
        .filter(|words| !words.is_empty())
        .collect();
    write::string(out, &words.join("\n\n"));
}

/// Writes `"toolConfig":{…}` where it has members.
pub(super) fn write_tool_config(
    body: &mut ObjectWriter<'_>,
    request: &Request<'_>,
    rules: &Rules<'_>,
    toolbox: &Toolbox<'_>,
    server_parts: bool,
    losses: &mut Losses,
) {
    let own = |name: &str| own_field(request, name);
    let mixed = !toolbox.functions.is_empty() && !toolbox.servers.is_empty();
    let asked = own("includeServerSideToolInvocations").is_some_and(|raw| raw.get() == "true");
    let flag = rules.profile.mixing == Mixing::Flag && (mixed || server_parts || asked);
    if asked && !flag {
        let detail = "this target does not know `includeServerSideToolInvocations`";
        losses.add_with(LossCode::Ignored, || note("toolConfig", LossCode::Ignored, detail));
    }
    let streamed = own("streamFunctionCallArguments")
        .filter(|_| rules.profile.argument_streaming && !toolbox.functions.is_empty());

    let calls = toolbox.calling.is_some() || streamed.is_some();
    let retrieval = own("retrievalConfig");
    if !calls && retrieval.is_none() && !flag {
        return;
    }
    let mut config = body.object("toolConfig");
    if calls {
        let mut out = config.object("functionCallingConfig");
        if let Some(calling) = &toolbox.calling {
            let mode = match calling.mode {
                // `AUTO` is refused beside the flag; `VALIDATED` is Google's default there.
                Mode::Auto if flag => "VALIDATED",
                Mode::Auto => "AUTO",
                Mode::Any => "ANY",
                Mode::None => "NONE",
                Mode::Validated => "VALIDATED",
            };
            out.string("mode", mode);
            if !calling.allowed.is_empty() {
                let mut names = out.array("allowedFunctionNames");
                calling.allowed.iter().for_each(|name| names.string(name));
            }
        }
        if let Some(streamed) = streamed {
            out.raw("streamFunctionCallArguments", streamed);
        }
    }
    if let Some(retrieval) = retrieval {
        config.raw("retrievalConfig", retrieval);
    }
    if flag {
        config.bool("includeServerSideToolInvocations", true);
    }
}

/// A Gemini client's own member of `toolConfig`, which is kept under its path.
pub(super) fn own_field<'r>(request: &'r Request<'_>, name: &str) -> Option<&'r Raw<'r>> {
    let is_it = |own: &str| own.strip_prefix(OF_TOOL_CONFIG).is_some_and(|own| own == name);
    let (_, raw) = request.gemini.iter().rev().find(|(own, _)| is_it(own))?;
    (raw.kind() != Kind::Null).then_some(raw)
}
