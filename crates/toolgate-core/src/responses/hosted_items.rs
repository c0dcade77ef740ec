//! Input items of the tools that OpenAI defines and the client runs.

use super::content::{decode_output, media_at};
use super::fields::{required, string};
use super::hosted::{TOOL_SEARCH, arguments_of_action, arguments_of_actions};
use super::items::{Conversation, decode_arguments};
use super::tools::Toolbox;
use super::wire::Item;
use crate::canon::{BadRequest, CallInput, LossCode, Losses, ResultPart, ToolName};
use crate::json::{self, Kind, Path, Raw, Text};

impl<'a> Conversation<'a, '_> {
    pub(super) fn read_hosted_call(
        &mut self,
        kind: &str,
        item: &Item<'a>,
        at: &Path<'_>,
        losses: &mut Losses,
    ) -> Result<(), BadRequest> {
        let arguments = match kind {
            "apply_patch_call" => item.operation.clone(),
            "computer_call" => arguments_of_actions(item.action.as_ref(), item.actions.as_ref()),
            "tool_search_call" => item.arguments.clone(),
            _ => item.action.as_ref().and_then(arguments_of_action),
        };
        let input = match arguments {
            Some(text) if text.kind() == Kind::String => {
                decode_arguments(Some(&text), &at.field("arguments"), losses)?
            }
            Some(arguments) => CallInput::Json(arguments),
            None => CallInput::Json(Raw::empty_object()),
        };
        if kind == "tool_search_call" && item.call_id.is_none() {
            losses.add(at, LossCode::PartDropped, "a search on somebody else's server");
            return Ok(());
        }
        let id = string(item.id.as_ref(), at, "id")?;
        let call_id = string(item.call_id.as_ref(), at, "call_id")?;
        if kind == "local_shell_call"
            && let (Some(id), Some(call_id)) = (id, call_id)
        {
            self.local_shells.insert(id, call_id);
        }
        let name = match kind {
            "local_shell_call" => "local_shell",
            "shell_call" => "shell",
            "apply_patch_call" => "apply_patch",
            "computer_call" => "computer",
            _ => TOOL_SEARCH,
        };
        self.push_call_of(ToolName::plain(name), item, input, at)
    }

    pub(super) fn read_hosted_output(
        &mut self,
        kind: &str,
        item: &Item<'a>,
        at: &Path<'_>,
        losses: &mut Losses,
    ) -> Result<(), BadRequest> {
        let id = required(item.call_id.as_ref().or(item.id.as_ref()), at, "call_id")?;
        let id = self.local_shells.get(&id).cloned().unwrap_or(id);
        let status = string(item.status.as_ref(), at, "status")?;
        let failed = status.as_deref() == Some("failed");
        let at_output = at.field("output");
        let content = match (kind, item.output.as_ref()) {
            ("computer_call_output", Some(shot)) => screenshot(shot, &at_output, losses)?,
            ("apply_patch_call_output", None) => {
                let said = status.as_deref().unwrap_or("completed");
                vec![ResultPart::Text(Text::new(said))]
            }
            (_, output) => decode_output(output, &at_output, losses)?,
        };
        self.push_result(Some(id), None, failed, content);
        Ok(())
    }

    /// Declares the tools that a search found, and tells the model their names.
    pub(super) fn read_found_tools(
        &mut self,
        item: &Item<'a>,
        at: &Path<'_>,
        losses: &mut Losses,
    ) -> Result<(), BadRequest> {
        let mut found = Toolbox::default();
        if let Some(tools) = &item.tools {
            let at = at.field("tools");
            found.declare(tools, &at, true, &mut Losses::new())?;
            self.toolbox.declare(tools, &at, true, losses)?;
        }
        let Some(call_id) = string(item.call_id.as_ref(), at, "call_id")? else { return Ok(()) };
        let names: Vec<_> = found.names().map(ToString::to_string).collect();
        let said = match names.as_slice() {
            [] => "no tools found".to_owned(),
            names => format!("these tools can be called now: {}", names.join(", ")),
        };
        let content = vec![ResultPart::Text(Text::new(&said))];
        self.push_result(Some(call_id), None, false, content);
        Ok(())
    }
}

/// A `computer_screenshot`.
fn screenshot<'a>(
    shot: &Raw<'a>,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<Vec<ResultPart<'a>>, BadRequest> {
    let Some(json) = shot.as_borrowed().filter(|_| shot.kind() == Kind::Object) else {
        return decode_output(Some(shot), at, losses);
    };
    let fields: json::Fields<'a> = json::read(json, at, losses)?;
    match fields.get("image_url").cloned().and_then(Raw::into_text) {
        Some(address) => {
            let media = media_at(address, None, &at.field("image_url"))?;
            Ok(vec![ResultPart::Media(media)])
        }
        None => {
            losses.add(at, LossCode::PartDropped, "a picture at OpenAI, not to be read here");
            Ok(Vec::new())
        }
    }
}
