//! Gemini's own parts, sent back as they came.

use std::borrow::Cow;

use super::Rules;
use crate::canon::{Backend, Issuer};
use crate::json::{Kind, Raw};
use crate::upstream::generate_content::signatures::Ledger;

/// A part of Gemini's own.
#[derive(Debug)]
pub(in crate::upstream::generate_content) struct RawPart<'r> {
    pub(in crate::upstream::generate_content) members: Vec<(Cow<'r, str>, Raw<'r>)>,
    /// It lacks a member with content; an empty text stands in.
    pub(in crate::upstream::generate_content) bare: bool,
    /// It is of a tool that Gemini ran itself.
    pub(super) is_servers: bool,
}

/// Members that describe a part and are not its content.
const MODIFIERS: [&str; 8] = [
    "thought",
    "thoughtSignature",
    "videoMetadata",
    "mediaResolution",
    "mediaProcessing",
    "partMetadata",
    "audioTranscription",
    "speechMetadata",
];

/// Copies the members of a part that the target understands. The error is the reason why the part
/// cannot be sent.
pub(super) fn raw_part<'r>(
    raw: &'r Raw<'r>,
    issuer: Option<&Issuer>,
    models: bool,
    at: (usize, usize),
    rules: &Rules<'_>,
    ledger: &mut Ledger<'r>,
) -> Result<RawPart<'r>, &'static str> {
    let Some(fields) = raw.fields() else {
        return Err("a part that is not an object was left out");
    };
    let mut part = RawPart { members: Vec::new(), bare: true, is_servers: false };
    for (name, value) in fields.0 {
        let name = camel(name);
        let is_servers = matches!(&*name, "toolCall" | "toolResponse");
        let silent = name == "text" && value.get() == "\"\"";
        if value.kind() == Kind::Null || silent {
            continue;
        }
        if matches!(&*name, "functionCall" | "functionResponse") {
            return Err("calls and their results have their own place in a conversation");
        }
        if is_servers && !rules.profile.server_parts {
            return Err("this target does not take parts of tools that Gemini ran itself");
        }
        if is_servers && issuer.is_some_and(|issuer| !ledger.is_target(issuer)) {
            return Err("a part of a tool that another model ran was left out");
        }
        if name == "partMetadata" && rules.target.backend == Backend::Vertex {
            continue;
        }
        if name == "thoughtSignature" {
            let sent = models
                && value
                    .as_text()
                    .is_some_and(|text| ledger.judge_text(&text.decode(), issuer, at));
            if !sent {
                continue;
            }
        }
        part.is_servers |= is_servers;
        part.bare &= MODIFIERS.contains(&&*name);
        part.members.push((name, value));
    }
    if part.members.iter().all(|(name, _)| name != "thoughtSignature") && part.bare {
        return Err("a part that says nothing was left out");
    }
    Ok(part)
}

/// `snake_case` in the spelling that every back end and proxy understands.
pub(in crate::upstream::generate_content) fn camel(name: Cow<'_, str>) -> Cow<'_, str> {
    if !name.contains('_') {
        return name;
    }
    let mut camel = String::with_capacity(name.len());
    let mut upper = false;
    for char in name.chars() {
        if char == '_' && !camel.is_empty() {
            upper = true;
        } else {
            camel.push(if upper { char.to_ascii_uppercase() } else { char });
            upper = false;
        }
    }
    Cow::Owned(camel)
}
