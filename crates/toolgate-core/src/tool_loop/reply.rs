//! Results, and the answers that the loop gives itself.

use std::fmt::Write as _;

use super::Tools;
use crate::canon::{Answer, Call, Loss, LossCode, ResultPart, ToolResult};
use crate::json::Text;

impl Call<'static> {
    /// The result of this call.
    pub fn succeeded(&self, content: Vec<ResultPart<'static>>) -> ToolResult<'static> {
        ToolResult {
            call_id: Some(self.id.clone()),
            tool: Some(self.tool.clone()),
            is_error: false,
            content,
            modifiers: Vec::new(),
        }
    }

    /// The result of this call, when it is an error.
    pub fn failed(&self, message: &str) -> ToolResult<'static> {
        ToolResult { is_error: true, ..self.succeeded(vec![ResultPart::Text(Text::new(message))]) }
    }
}

/// Tells the model that there is no such tool, and which there are.
pub(super) fn unknown_tool(call: &Call<'static>, tools: &Tools) -> ToolResult<'static> {
    let wanted = clipped(call.tool.to_string(), NAME_BYTES);
    let names = tools.shown().map(|name| format!("`{name}`"));
    let message = match listed(names) {
        names if names.is_empty() => format!("there is no tool `{wanted}`, nor any other"),
        names => format!("there is no tool `{wanted}`; the tools are {names}"),
    };
    call.failed(&message)
}

/// Describes the faults of the arguments to the model.
pub(super) fn bad_arguments(call: &Call<'static>, faults: &[&Loss]) -> ToolResult<'static> {
    let faults = listed(faults.iter().map(|fault| format!("{} ({})", fault.detail, fault.at)));
    call.failed(&format!("the arguments do not fit the tool's schema: {faults}"))
}

/// Text of a result.
pub(super) fn error_text(result: &ToolResult<'_>) -> String {
    let texts = result.content.iter().filter_map(|part| match part {
        ResultPart::Text(text) => Some(text.decode()),
        ResultPart::Json(_) | ResultPart::Media(_) => None,
    });
    texts.collect()
}

/// Faults that the decoder found in the arguments of the call at `index`.
pub(super) fn violations(answer: &Answer, index: usize) -> Vec<&Loss> {
    let is_here = |loss: &Loss| loss.call().is_some_and(|(number, _)| number == index);
    answer
        .finish
        .losses
        .iter()
        .filter(|loss| loss.code == LossCode::ArgumentViolation && is_here(loss))
        .collect()
}

/// The most that the model is told of a list.
const LIST_BYTES: usize = 2_000;
/// The most that the model is told of a name that it made up.
const NAME_BYTES: usize = 200;

/// `a, b, c and 12 more`
fn listed(entries: impl ExactSizeIterator<Item = String>) -> String {
    let count = entries.len();
    let mut list = String::new();
    for (index, entry) in entries.enumerate() {
        let entry = clipped(entry, LIST_BYTES);
        if index > 0 && list.len() + entry.len() > LIST_BYTES {
            // Writing to a string cannot fail.
            let _ = write!(list, " and {} more", count - index);
            break;
        }
        if index > 0 {
            list.push_str(", ");
        }
        list.push_str(&entry);
    }
    list
}

fn clipped(mut text: String, most: usize) -> String {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
        text.push('…');
    }
    text
}
