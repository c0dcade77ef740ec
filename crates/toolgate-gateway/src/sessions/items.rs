//! Items of the Responses API as they are kept and listed.

use std::collections::BTreeSet;

use toolgate_core::canon::BadRequest;
use toolgate_core::dialect::DecodeOptions;
use toolgate_core::json::{self, Fields, Kind, Raw, write};
use toolgate_core::responses;
use toolgate_core::seal::Sealer;

/// The items of a body's input, each with an id. The ids follow from the answer's id, so that they
/// are the same whenever they are asked for, and each is one item's. What only that request was asked
/// to do is left out.
pub(crate) fn input_items(body: &str, answer_id: &str) -> Result<Vec<String>, BadRequest> {
    let items = responses::input_items(body)?;
    let mut taken = BTreeSet::new();
    let said = items.iter().enumerate().filter(|(_, item)| !is_trigger(item));
    let named =
        said.map(|(at, item)| named_unless(item, answer_id, at, |id| !taken.insert(id.to_owned())));
    Ok(named.collect())
}

/// An item without its id, where another item has that id: it gets a new one.
pub(super) fn without_taken_id(item: &Raw<'_>, taken: &BTreeSet<String>) -> String {
    let without = || {
        let fields = item.fields()?;
        let id = text_of(&fields, "id")?;
        if !taken.contains(&id) || is_called_by_id(&fields) {
            return None;
        }
        let mut out = b"{".to_vec();
        for (name, value) in fields.0.iter().filter(|(name, _)| name != "id") {
            write::key(&mut out, name);
            value.write(&mut out);
        }
        out.push(b'}');
        String::from_utf8(out).ok()
    };
    without().unwrap_or_else(|| item.get().to_owned())
}

/// Whether an item requests a summary. It applies to one request and is not part of the conversation.
pub(crate) fn is_trigger(item: &Raw<'_>) -> bool {
    const TRIGGER: &str = "compaction_trigger";
    memchr::memmem::find(item.get().as_bytes(), TRIGGER.as_bytes()).is_some()
        && item.fields().is_some_and(|fields| text_of(&fields, "type").as_deref() == Some(TRIGGER))
}

/// Whether items and tools can be read, so that every turn can use the items of a conversation.
/// `more`: other members of a request, by name.
pub(crate) fn check_items(
    items: &[String],
    more: &[(&str, Option<&Raw<'_>>)],
    sealer: &Sealer,
) -> Result<(), BadRequest> {
    let mut body = format!("{{\"model\":\"stored\",\"input\":[{}]", items.join(","));
    for (name, value) in more {
        if let Some(value) = value {
            body.extend([",\"", name, "\":", value.get()]);
        }
    }
    body.push('}');
    let decoded = responses::decode_request(&body, &DecodeOptions { sealer });
    decoded.map(drop).map_err(|bad| {
        let at = bad.at.strip_prefix("input").map(|rest| format!("items{rest}"));
        BadRequest { at: at.unwrap_or(bad.at), reason: bad.reason }
    })
}

/// An item with an id, a type and a status, its words as content parts.
pub(crate) fn named(item: &Raw<'_>, answer_id: &str, at: usize) -> String {
    named_unless(item, answer_id, at, |_| false)
}

/// The same; an item whose id is taken gets another.
fn named_unless(
    item: &Raw<'_>,
    answer_id: &str,
    at: usize,
    is_taken: impl FnOnce(&str) -> bool,
) -> String {
    let Some(fields) = item.fields() else { return item.get().to_owned() };
    let text = |name: &str| text_of(&fields, name);
    let is_reference = text("role").is_none() && text("id").is_some();
    let untyped = if is_reference { "item_reference" } else { "message" };
    let kind = text("type").unwrap_or_else(|| untyped.to_owned());
    let mut out = b"{".to_vec();
    let id = text("id").filter(|id| !id.is_empty());
    let is_named = id.is_some_and(|id| !is_taken(&id) || is_called_by_id(&fields));
    if !is_named {
        let token = answer_id.split_once('_').map_or(answer_id, |(_, token)| token);
        write::key(&mut out, "id");
        write::string(&mut out, &format!("{}_{token}{at:04}", prefix(&kind)));
    }
    if text("type").is_none() {
        write::key(&mut out, "type");
        write::string(&mut out, &kind);
    }
    let is_model = text("role").as_deref() == Some("assistant");
    for (name, value) in &fields.0 {
        let is_null = value.kind() == Kind::Null && matches!(name.as_ref(), "type" | "status");
        if (name == "id" && !is_named) || is_null {
            continue;
        }
        write::key(&mut out, name);
        if kind == "message" && name == "content" && value.kind() == Kind::String {
            out.extend_from_slice(if is_model {
                b"[{\"type\":\"output_text\",\"annotations\":[],\"text\":"
            } else {
                b"[{\"type\":\"input_text\",\"text\":"
            });
            value.write(&mut out);
            out.extend_from_slice(b"}]");
        } else {
            value.write(&mut out);
        }
    }
    if has_status(&kind) && fields.get("status").is_none_or(|it| it.kind() == Kind::Null) {
        write::key(&mut out, "status");
        write::string(&mut out, "completed");
    }
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}

/// Whether items of a type have a status when they are listed, also where clients may omit it.
fn has_status(kind: &str) -> bool {
    kind == "message" || CALLS.contains(&kind)
}

/// Calls that clients answer, and the answers.
const CALLS: [&str; 14] = [
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "local_shell_call",
    "local_shell_call_output",
    "shell_call",
    "shell_call_output",
    "apply_patch_call",
    "apply_patch_call_output",
    "computer_call",
    "computer_call_output",
    "tool_search_call",
    "tool_search_output",
];

/// Whether a call or its answer may be found by the item's id only.
fn is_called_by_id(fields: &Fields<'_>) -> bool {
    let kind = text_of(fields, "type").unwrap_or_default();
    let has_call_id = text_of(fields, "call_id").is_some();
    kind == "local_shell_call" || (CALLS.contains(&kind.as_str()) && !has_call_id)
}

/// A content of Gemini's as an item.
pub(super) fn content_item(content: &str, token: &str, at: usize) -> String {
    format!("{{\"id\":\"gc_{token}{at:04}\",\"type\":\"gemini_content\",\"content\":{content}}}")
}

/// The content in it.
pub(super) fn content_of(item: &str) -> String {
    let fields = fields_of(item.as_bytes());
    fields.get("content").map_or(item, Raw::get).to_owned()
}

fn prefix(kind: &str) -> &'static str {
    match kind {
        "message" => "msg",
        "reasoning" => "rs",
        "function_call" => "fc",
        "function_call_output" => "fco",
        "custom_tool_call" => "ctc",
        "custom_tool_call_output" => "ctco",
        "compaction" => "cmp",
        _ => "item",
    }
}

/// The members of an object that we wrote; none where it is none.
pub(crate) fn fields_of(object: &[u8]) -> Fields<'_> {
    std::str::from_utf8(object).ok().and_then(|text| json::parse(text).ok()).unwrap_or_default()
}

/// A member that is a string.
pub(crate) fn text_of(fields: &Fields<'_>, name: &str) -> Option<String> {
    fields.get(name).and_then(Raw::as_text).map(|text| text.decode().into_owned())
}

/// The items of a response object's `output`.
pub(crate) fn output_items(fields: &Fields<'_>) -> Vec<String> {
    let items = fields.get("output").and_then(Raw::items).unwrap_or_default();
    items.iter().map(|item| item.get().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_get_ids_that_stay() {
        let body = r#"{"input":[{"role":"user","content":"a"},{"id":"x","type":"reasoning"},{"id":null,"type":"function_call_output","call_id":"c","output":"","status":null}]}"#;
        let items = input_items(body, "resp_T").unwrap();
        assert_eq!(
            items,
            [
                r#"{"id":"msg_T0000","type":"message","role":"user","content":[{"type":"input_text","text":"a"}],"status":"completed"}"#,
                r#"{"id":"x","type":"reasoning"}"#,
                r#"{"id":"fco_T0002","type":"function_call_output","call_id":"c","output":"","status":"completed"}"#,
            ]
        );
        assert_eq!(items, input_items(body, "resp_T").unwrap());
    }
}
