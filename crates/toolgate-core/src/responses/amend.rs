//! What a store adds to a request before it is decoded.
//!
//! Decoding borrows from one body, so whoever keeps items writes a new body with them in it:
//! the items before the input (`previous_response_id`, `conversation`), the items that the input
//! only names (`item_reference`), the tools that a conversation remembers.

use std::borrow::Cow;

use serde::Deserialize;

use super::echo::ItemReference;
use super::wire::Str;
use crate::canon::BadRequest;
use crate::json::{self, Fields, Kind, Path, Raw, write};

/// What is put into a body.
#[derive(Clone, Debug, Default)]
pub struct Amendment<'s> {
    /// Items that come before the input, oldest first, as JSON.
    pub items: &'s [String],
    /// `tools`, for a body that has none.
    pub tools: Option<&'s str>,
    /// `tool_choice`, for a body that has none.
    pub tool_choice: Option<&'s str>,
}

/// A body with the items and tools that a store kept.
///
/// ```
/// use toolgate_core::responses::{Amendment, amend};
///
/// let items = [r#"{"role":"user","content":"a"}"#.to_owned()];
/// let body = amend(r#"{"model":"m","input":"b"}"#, &Amendment { items: &items, ..Amendment::default() })?;
/// assert_eq!(
///     body,
///     r#"{"model":"m","input":[{"role":"user","content":"a"},{"type":"message","role":"user","content":"b"}]}"#
/// );
/// # Ok::<(), toolgate_core::canon::BadRequest>(())
/// ```
pub fn amend(body: &str, amendment: &Amendment<'_>) -> Result<String, BadRequest> {
    let own = input_items(body)?;
    rewrite(
        body,
        |out| {
            for item in amendment.items {
                write::comma(out);
                out.extend_from_slice(item.as_bytes());
            }
            for item in &own {
                write::comma(out);
                out.extend_from_slice(item.get().as_bytes());
            }
        },
        &[("tools", amendment.tools), ("tool_choice", amendment.tool_choice)],
    )
}

/// The items of a body's input; a string is one message of the user's.
pub fn input_items(body: &str) -> Result<Vec<Raw<'_>>, BadRequest> {
    #[derive(Deserialize)]
    struct Body<'a> {
        #[serde(borrow)]
        input: Option<Raw<'a>>,
    }
    let root = Path::Root;
    let at = root.field("input");
    let body: Body<'_> = json::look(body, &root)?;
    let Some(input) = body.input else { return Ok(Vec::new()) };
    match (input.kind(), input.as_borrowed()) {
        (Kind::String, _) => {
            let mut out = b"{\"type\":\"message\",\"role\":\"user\",\"content\":".to_vec();
            input.write(&mut out);
            out.push(b'}');
            let item = String::from_utf8(out).ok().and_then(Raw::parse);
            Ok(item.into_iter().collect())
        }
        (Kind::Array, Some(array)) => json::look(array, &at),
        _ => Err(at.bad("expected a string or an array of items")),
    }
}

/// Whether a body may have items that it only names. It is quicker to ask than to look for them, and
/// may say yes where there are none.
pub fn may_name_items(body: &str) -> bool {
    const ID: &str = "\"id\"";
    let has_type = memchr::memmem::find(body.as_bytes(), b"item_reference").is_some();
    // The type may be left out: beside the id there is nothing then, or null.
    let is_alone = |at: usize| {
        let before = body[..at].trim_ascii_end();
        let before = before.strip_suffix(',').map_or(before, str::trim_ascii_end);
        let follows = |rest: &str| -> Option<bool> {
            let value = rest.trim_ascii_start().strip_prefix(':')?.trim_ascii_start();
            let (_, rest) = value.strip_prefix('"')?.split_once('"')?;
            let rest = rest.trim_ascii_start();
            let Some(next) = rest.strip_prefix(',') else { return Some(rest.starts_with('}')) };
            let (_, value) = next.split_once(':')?;
            Some(value.trim_ascii_start().starts_with("null"))
        };
        (before.ends_with('{') || before.ends_with("null"))
            && follows(&body[at + ID.len()..]) == Some(true)
    };
    has_type || memchr::memmem::find_iter(body.as_bytes(), ID).any(is_alone)
}

/// The items that a body's input only names.
pub fn item_references(body: &str) -> Result<Vec<ItemReference>, BadRequest> {
    // Most bodies have none, and need not be read twice.
    if !may_name_items(body) {
        return Ok(Vec::new());
    }
    let items = input_items(body)?;
    Ok(items
        .iter()
        .enumerate()
        .filter_map(|(index, item)| reference(item).map(|id| ItemReference { index, id }))
        .collect())
}

/// A body in which every reference that `resolve` knows has become the item itself.
pub fn resolve_references(
    body: &str,
    mut resolve: impl FnMut(&str) -> Option<String>,
) -> Result<Cow<'_, str>, BadRequest> {
    if item_references(body)?.is_empty() {
        return Ok(Cow::Borrowed(body));
    }
    replace_items(body, |item| reference(item).and_then(|id| resolve(&id))).map(Cow::Owned)
}

/// A body with other items in the place of those for which `other` has one.
pub fn replace_items(
    body: &str,
    mut other: impl FnMut(&Raw<'_>) -> Option<String>,
) -> Result<String, BadRequest> {
    let items = input_items(body)?;
    rewrite(
        body,
        |out| {
            for item in &items {
                write::comma(out);
                let other = other(item);
                out.extend_from_slice(other.as_deref().unwrap_or_else(|| item.get()).as_bytes());
            }
        },
        &[],
    )
}

/// The id that an item is a reference to, if it is one.
fn reference(item: &Raw<'_>) -> Option<String> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Item<'a> {
        #[serde(rename = "type", borrow)]
        kind: Option<Str<'a>>,
        role: Option<Raw<'a>>,
        id: Option<Str<'a>>,
    }
    let item: Item<'_> = serde_json::from_str(item.get()).ok()?;
    let is_reference = match &item.kind {
        Some(kind) => kind.0 == "item_reference",
        None => item.role.is_none(),
    };
    item.id.filter(|_| is_reference).map(|id| id.0.into_owned())
}

/// Copies a body with another input, and with members that it does not have; `null` is none.
fn rewrite(
    body: &str,
    items: impl FnOnce(&mut Vec<u8>),
    more: &[(&str, Option<&str>)],
) -> Result<String, BadRequest> {
    let fields: Fields<'_> = json::look(body, &Path::Root)?;
    let is_given = |name: &str| fields.get(name).is_some_and(|it| it.kind() != Kind::Null);
    let is_added = |name: &str| {
        more.iter().any(|(more, value)| *more == name && value.is_some()) && !is_given(name)
    };
    let mut out = Vec::with_capacity(body.len() * 2);
    out.push(b'{');
    let mut write_items = Some(items);
    let mut write_input = |out: &mut Vec<u8>| {
        write::key(out, "input");
        out.push(b'[');
        if let Some(items) = write_items.take() {
            items(out);
        }
        out.push(b']');
    };
    for (name, value) in &fields.0 {
        if name == "input" {
            write_input(&mut out);
        } else if !is_added(name) {
            write::key(&mut out, name);
            out.extend_from_slice(value.get().as_bytes());
        }
    }
    if fields.get("input").is_none() {
        write_input(&mut out);
    }
    for (name, value) in more {
        if let Some(value) = value.filter(|_| !is_given(name)) {
            write::key(&mut out, name);
            out.extend_from_slice(value.as_bytes());
        }
    }
    out.push(b'}');
    String::from_utf8(out).map_err(|_| Path::Root.bad("not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r93_items_of_a_conversation_come_first() {
        let items = ["{\"a\":1}".to_owned()];
        let amend = |body: &str, tools| {
            amend(body, &Amendment { items: &items, tools, tool_choice: tools.map(|_| "\"auto\"") })
        };
        assert_eq!(
            amend(r#"{"input":[{"b":2}],"x": 1.0}"#, Some("[{}]")).unwrap(),
            r#"{"input":[{"a":1},{"b":2}],"x":1.0,"tools":[{}],"tool_choice":"auto"}"#
        );
        assert_eq!(
            amend(r#"{"tools":[]}"#, Some("[{}]")).unwrap(),
            r#"{"tools":[],"input":[{"a":1}],"tool_choice":"auto"}"#
        );
        assert_eq!(
            amend(r#"{"tools":null,"tool_choice":null,"input":null}"#, Some("[{}]")).unwrap(),
            r#"{"input":[{"a":1}],"tools":[{}],"tool_choice":"auto"}"#
        );
        assert_eq!(
            amend(r#"{"tools":null}"#, None).unwrap(),
            r#"{"tools":null,"input":[{"a":1}]}"#
        );
        assert_eq!(amend(r#"{"input":5}"#, None).unwrap_err().at, "input");
        assert!(amend("[]", None).is_err());
    }

    #[test]
    fn references_are_replaced() {
        let body = r#"{"input":[{"type":"item_reference","id":"rs_1"},{"role":"user","content":"item_reference"},{"type":"item_reference","id":"rs_2"}]}"#;
        let named = item_references(body).unwrap();
        assert_eq!(named.iter().map(|it| it.index).collect::<Vec<_>>(), [0, 2]);
        let resolved =
            resolve_references(body, |id| (id == "rs_1").then(|| "{\"found\":1}".to_owned()));
        assert_eq!(
            resolved.unwrap(),
            r#"{"input":[{"found":1},{"role":"user","content":"item_reference"},{"type":"item_reference","id":"rs_2"}]}"#
        );
        assert!(matches!(resolve_references("{}", |_| None).unwrap(), Cow::Borrowed("{}")));
    }

    #[test]
    fn references_need_no_type() {
        for item in [
            r#"{"id":"rs_1"}"#,
            r#"{ "id" : "rs_1" }"#,
            r#"{"id":"rs_1","type":null}"#,
            r#"{"type": null, "id": "rs_1"}"#,
            r#"{"type":null,"id":"rs_1","role":null}"#,
        ] {
            let body = format!(r#"{{"input":[{{"role":"user","content":"a"}},{item}]}}"#);
            let named = item_references(&body).unwrap();
            assert_eq!(named, [ItemReference { index: 1, id: "rs_1".to_owned() }], "{item}");
        }
        for item in [
            r#"{"id":"msg_1","role":"user","content":"a"}"#,
            r#"{"id":"msg_1","type":"message","role":"user","content":"a"}"#,
            r#"{"type":"function_call_output","call_id":"c","output":"{\"id\":\"a\"}"}"#,
        ] {
            let body = format!(r#"{{"input":[{item}]}}"#);
            assert!(!may_name_items(&body), "{item}");
        }
        for broken in
            [r#"{"id""#, r#"{"id":"#, r#"{"id":""#, r#""id""#, "\u{e9}\"id\"", r#"{"id":"a","#]
        {
            may_name_items(broken);
        }
    }
}
