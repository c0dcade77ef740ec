//! Which tools the model may or must call.

use std::collections::BTreeSet;

use super::tools::{Toolbox, WEB_SEARCH};
use super::wire::Choice;
use crate::canon::{BadRequest, LossCode, Losses, ToolChoice, ToolName};
use crate::json::{self, Path, Raw};

/// Reads `tool_choice`.
pub(super) fn decode_choice<'a>(
    choice: &Raw<'a>,
    toolbox: &Toolbox<'a>,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<ToolChoice<'a>, BadRequest> {
    if let Some(word) = choice.as_text() {
        return simple(&word.decode())
            .ok_or_else(|| at.bad("expected \"auto\", \"required\", \"none\" or an object"));
    }
    let json = choice.as_borrowed().ok_or_else(|| at.bad("cannot be read"))?;
    let choice: Choice<'a> = json::read(json, at, losses)?;
    let kind = choice.kind.as_ref().map(|kind| kind.0.clone());
    if let Some(simple) = kind.as_deref().and_then(simple) {
        return Ok(simple);
    }
    if kind.as_deref() == Some("allowed_tools") {
        return decode_allowed(choice, toolbox, at, losses);
    }
    let chosen = names_of(choice, toolbox, at, losses)?;
    Ok(match <[_; 1]>::try_from(chosen) {
        Ok([one]) => ToolChoice::One(one),
        Err(none) if none.is_empty() => ToolChoice::Auto,
        Err(names) => ToolChoice::Allowed { required: true, names },
    })
}

fn simple<'a>(word: &str) -> Option<ToolChoice<'a>> {
    match word {
        "auto" => Some(ToolChoice::Auto),
        "required" | "any" => Some(ToolChoice::Any),
        "none" => Some(ToolChoice::None),
        _ => None,
    }
}

fn decode_allowed<'a>(
    choice: Choice<'a>,
    toolbox: &Toolbox<'a>,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<ToolChoice<'a>, BadRequest> {
    let inner = at.field("allowed_tools");
    let (choice, at) = match &choice.allowed_tools {
        Some(nested) => {
            let json = nested.as_borrowed().ok_or_else(|| inner.bad("cannot be read"))?;
            (json::read(json, &inner, losses)?, &inner)
        }
        None => (choice, at),
    };
    let required = match choice.mode.as_ref().map(|mode| &*mode.0) {
        Some("auto") | None => false,
        Some("required") => true,
        Some(_) => return Err(at.field("mode").bad("expected \"auto\" or \"required\"")),
    };
    let at = at.field("tools");
    let listed = choice.tools.ok_or_else(|| at.bad("missing"))?;
    let json = listed.as_borrowed().ok_or_else(|| at.bad("cannot be read"))?;
    let listed: Vec<Choice<'a>> = json::read(json, &at, losses)?;
    let mut names = Vec::new();
    let mut seen = BTreeSet::new();
    let mut spaces = BTreeSet::new();
    for (index, entry) in listed.into_iter().enumerate() {
        // A namespace that is listed again adds nothing, and is not walked again.
        let is_space = entry.kind.as_ref().is_some_and(|kind| kind.0 == "namespace");
        if let Some(space) = entry.name.as_ref().filter(|_| is_space)
            && !spaces.insert(space.0.clone())
        {
            continue;
        }
        for name in names_of(entry, toolbox, &at.index(index), losses)? {
            if seen.insert(name.clone()) {
                names.push(name);
            }
        }
    }
    // None of the allowed tools exists here.
    if names.is_empty() {
        return Ok(ToolChoice::None);
    }
    Ok(ToolChoice::Allowed { required, names })
}

/// The tools that `{"type": …, "name": …}` stands for.
fn names_of<'a>(
    choice: Choice<'a>,
    toolbox: &Toolbox<'a>,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<Vec<ToolName<'a>>, BadRequest> {
    let kind = choice.kind.as_ref().map(|kind| kind.0.clone());
    match kind.as_deref() {
        Some("function" | "custom") | None => {
            let (choice, field) = match (choice.function.as_ref(), choice.custom.as_ref()) {
                (Some(inner), _) => (inner_choice(inner, at, "function", losses)?, "function.name"),
                (None, Some(inner)) => (inner_choice(inner, at, "custom", losses)?, "custom.name"),
                (None, None) => (choice, "name"),
            };
            let name = choice.name.ok_or_else(|| at.field(field).bad("missing"))?.0;
            let namespace = choice.namespace.map(|namespace| namespace.0);
            Ok(vec![toolbox.meant(ToolName { namespace, name })])
        }
        Some("namespace") => {
            let name = choice.name.ok_or_else(|| at.field("name").bad("missing"))?.0;
            let inside = |it: &&ToolName<'a>| it.namespace.as_ref() == Some(&name);
            Ok(toolbox.names().filter(inside).cloned().collect())
        }
        Some(kind) => {
            let name = match kind {
                "computer_use" => "computer",
                _ if kind.starts_with(WEB_SEARCH) => WEB_SEARCH,
                _ => kind,
            };
            let plain = ToolName::plain(name.to_owned());
            if toolbox.servers.contains(name) || toolbox.kinds.contains_key(&plain) {
                return Ok(vec![plain]);
            }
            losses.add(
                at,
                LossCode::Changed,
                format_args!("`{kind}` is not among the tools that the model has"),
            );
            Ok(Vec::new())
        }
    }
}

fn inner_choice<'a>(
    inner: &Raw<'a>,
    at: &Path<'_>,
    field: &str,
    losses: &mut Losses,
) -> Result<Choice<'a>, BadRequest> {
    let at = at.field(field);
    Ok(json::read(inner.as_borrowed().ok_or_else(|| at.bad("cannot be read"))?, &at, losses)?)
}
