//! A decoded conversation as lines of text, so that a test reads like one.

use toolgate_core::canon::{
    CallInput, Losses, Media, MediaSource, Part, Request, ResultPart, Role, Signature, Tool,
};
use toolgate_core::seal::Sealed;

/// One line for each part of each turn.
pub fn turns(request: &Request<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for turn in &request.turns {
        let role = match turn.role {
            Role::User => "user",
            Role::Model => "model",
            Role::Instruction => "instruction",
        };
        if turn.parts.is_empty() {
            lines.push(format!("{role}: nothing"));
        }
        lines.extend(turn.parts.iter().map(|it| format!("{role}: {}", part(it))));
    }
    lines
}

fn part(part: &Part<'_>) -> String {
    match part {
        Part::Text { text, signature } => {
            format!("{}{}", text.literal(), signed(signature.as_ref()))
        }
        Part::Thought { text, signature } => {
            format!("thought {}{}", text.literal(), signed(signature.as_ref()))
        }
        Part::Media(it) => media(it),
        Part::Call(call) => {
            let input = match &call.input {
                CallInput::Json(raw) => raw.get().to_owned(),
                CallInput::Text(text) => format!("text {}", text.literal()),
            };
            format!("call {} {} {input}{}", call.id, call.tool, signed(call.signature.as_ref()))
        }
        Part::Result(result) => {
            let mut line = String::from("result");
            if let Some(id) = &result.call_id {
                line += &format!(" {id}");
            }
            if let Some(tool) = &result.tool {
                line += &format!(" of {tool}");
            }
            for piece in &result.content {
                line += &match piece {
                    ResultPart::Text(text) => format!(" {}", text.literal()),
                    ResultPart::Json(raw) => format!(" json {}", raw.get()),
                    ResultPart::Media(it) => format!(" {}", media(it)),
                };
            }
            for (name, raw) in &result.modifiers {
                line += &format!(" {name}={}", raw.get());
            }
            line
        }
        Part::Sealed(envelope) => match &envelope.on {
            Sealed::Call { token, .. } => format!("sealed call {token}"),
            Sealed::Text { len, .. } => format!("sealed text {len}"),
            Sealed::Thought { len, .. } => format!("sealed thought {len}"),
            Sealed::Part(raw) => format!("sealed part {}", raw.get()),
        },
        Part::Gemini(raw) => format!("gemini {}", raw.get()),
    }
}

fn signed(signature: Option<&Signature<'_>>) -> String {
    match signature {
        Some(signature) if signature.issuer().is_some() => {
            format!(" signed {} by us", signature.expose())
        }
        Some(signature) => format!(" signed {}", signature.expose()),
        None => String::new(),
    }
}

fn media(media: &Media<'_>) -> String {
    let source = match &media.source {
        MediaSource::Inline(data) => format!("inline {}", data.literal()),
        MediaSource::Uri(uri) => format!("uri {}", uri.literal()),
    };
    let mut line = format!("media {} {source}", media.mime.as_deref().unwrap_or("?"));
    if let Some(name) = &media.name {
        line += &format!(" named {name}");
    }
    for (name, raw) in &media.modifiers {
        line += &format!(" {name}={}", raw.get());
    }
    line
}

/// One line for each tool.
pub fn tools(request: &Request<'_>) -> Vec<String> {
    let show = |tool: &Tool<'_>| match tool {
        Tool::Function(function) => {
            let raw = function.parameters.as_ref().map_or("none", |raw| raw.get());
            format!("function {} {:?} {raw} at {}", function.name, function.form, function.at)
        }
        Tool::Freeform { name, grammar, .. } => {
            format!("freeform {name} {}", grammar.as_ref().map_or("free", |text| text.literal()))
        }
        Tool::Server(tool) => format!("{tool:?}"),
    };
    request.tools.iter().map(show).collect()
}

/// `code at` for each loss.
pub fn losses(losses: &Losses) -> Vec<String> {
    losses.iter().map(|loss| format!("{:?} {}", loss.code, loss.at)).collect()
}
