//! `tools` and `toolConfig`.

use super::declare::{Declared, Parameters};
use super::toolbox::{Mode, Toolbox, note};
use crate::canon::{LossCode, Losses, Request};
use crate::gemini::upstream::Mixing;
use crate::gemini::upstream::history::Rules;
use crate::json::{Kind, Raw, write};
use crate::schema::Placement;

/// Where the members of `toolConfig` stand among Gemini's own fields.
pub(super) const OF_TOOL_CONFIG: &str = "toolConfig.";

/// A Gemini client's own mode, where it is one that no other client has (`VALIDATED`).
pub(super) const OWN_MODE: &str = "functionCallingConfig.mode";

/// Writes `"tools":[…]`: all functions in one object, each of Gemini's own tools in one of its own.
pub(super) fn write_tools(out: &mut Vec<u8>, toolbox: &Toolbox<'_>) {
    if toolbox.functions.is_empty() && toolbox.servers.is_empty() {
        return;
    }
    write::key(out, "tools");
    out.push(b'[');
    if !toolbox.functions.is_empty() {
        out.extend_from_slice(b"{\"functionDeclarations\":[");
        for function in &toolbox.functions {
            write::comma(out);
            write_declaration(out, function);
        }
        out.extend_from_slice(b"]}");
    }
    for (kind, body) in &toolbox.servers {
        write::comma(out);
        out.push(b'{');
        write::key(out, kind);
        write::compact(out, body);
        out.push(b'}');
    }
    out.push(b']');
}

fn write_declaration(out: &mut Vec<u8>, function: &Declared<'_>) {
    out.push(b'{');
    write::key(out, "name");
    write::string(out, &function.alias);
    write::key(out, "description");
    write_description(out, function);
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
        write::key(out, key);
        write::literal(out, json);
    }
    if let Some((key, schema)) = function.response {
        write::key(out, key);
        schema.write(out);
    }
    out.push(b'}');
}

/// Writes the client's words and ours behind them. Gemini wants a description; it may be empty.
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

/// Writes `"toolConfig":{…}` where there is something to say in it.
pub(super) fn write_tool_config(
    out: &mut Vec<u8>,
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

    let start = out.len();
    write::key(out, "toolConfig");
    out.push(b'{');
    let empty = out.len();
    if toolbox.calling.is_some() || streamed.is_some() {
        write::key(out, "functionCallingConfig");
        out.push(b'{');
        if let Some(calling) = &toolbox.calling {
            write::key(out, "mode");
            out.extend_from_slice(match calling.mode {
                // `AUTO` does not go with the flag; without a word Google takes this one.
                Mode::Auto if flag => b"\"VALIDATED\"" as &[u8],
                Mode::Auto => b"\"AUTO\"",
                Mode::Any => b"\"ANY\"",
                Mode::None => b"\"NONE\"",
                Mode::Validated => b"\"VALIDATED\"",
            });
            if !calling.allowed.is_empty() {
                write::key(out, "allowedFunctionNames");
                out.push(b'[');
                for name in &calling.allowed {
                    write::comma(out);
                    write::string(out, name);
                }
                out.push(b']');
            }
        }
        if let Some(streamed) = streamed {
            write::key(out, "streamFunctionCallArguments");
            streamed.write(out);
        }
        out.push(b'}');
    }
    if let Some(retrieval) = own("retrievalConfig") {
        write::key(out, "retrievalConfig");
        retrieval.write(out);
    }
    if flag {
        write::key(out, "includeServerSideToolInvocations");
        out.extend_from_slice(b"true");
    }
    if out.len() == empty {
        out.truncate(start);
    } else {
        out.push(b'}');
    }
}

/// A Gemini client's own member of `toolConfig`, which is kept under its path.
pub(super) fn own_field<'r>(request: &'r Request<'_>, name: &str) -> Option<&'r Raw<'r>> {
    let is_it = |own: &str| own.strip_prefix(OF_TOOL_CONFIG).is_some_and(|own| own == name);
    let (_, raw) = request.gemini.iter().rev().find(|(own, _)| is_it(own))?;
    (raw.kind() != Kind::Null).then_some(raw)
}
