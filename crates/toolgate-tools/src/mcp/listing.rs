//! Listings of MCP servers.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{Definition, Failure, Flags, Listed};

/// Largest definition of one tool.
const MAX_TOOL_BYTES: usize = 512 * 1024;

/// One page of a listing.
pub(super) struct Page {
    pub(super) tools: Vec<Listed>,
    pub(super) next: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WirePage<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireTool<'a> {
    name: String,
    title: Option<String>,
    description: Option<String>,
    #[serde(borrow)]
    input_schema: Option<&'a RawValue>,
    #[serde(borrow)]
    output_schema: Option<&'a RawValue>,
    #[serde(borrow)]
    annotations: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<BTreeMap<String, &'a RawValue>>,
}

/// Decodes one page. A tool that cannot be read is left out; the others stay.
pub(super) fn decode_page(raw: &RawValue) -> Result<Page, Failure> {
    let page: WirePage<'_> = serde_json::from_str(raw.get()).map_err(|_| Failure::Protocol {
        code: -32603,
        message: "malformed list of tools".to_owned(),
    })?;
    let tools = page.tools.into_iter().filter_map(|tool| {
        let listed = (tool.get().len() <= MAX_TOOL_BYTES).then(|| decode_tool(tool)).flatten();
        if listed.is_none() {
            tracing::warn!("tool with a malformed definition left out");
        }
        listed
    });
    Ok(Page { tools: tools.collect(), next: page.next_cursor })
}

fn decode_tool(raw: &RawValue) -> Option<Listed> {
    let tool: WireTool<'_> = serde_json::from_str(raw.get()).ok()?;
    let is_object = |it: &&RawValue| it.get().starts_with('{');
    let input_schema = match tool.input_schema.filter(is_object) {
        Some(schema) => schema.to_owned(),
        None => RawValue::from_string(r#"{"type":"object"}"#.to_owned()).ok()?,
    };
    let definition = Definition {
        title: tool.title,
        description: tool.description,
        input_schema,
        output_schema: tool.output_schema.filter(is_object).map(ToOwned::to_owned),
        annotations: tool.annotations.filter(is_object).map(ToOwned::to_owned),
    };
    let mut listed = Listed::new(tool.name, definition);
    let meta = tool.meta.unwrap_or_default();
    let hint = |name: &str| meta.get(&format!("dev.toolgate/{name}")).map(|it| it.get());
    let is_set = |name: &str| hint(name) == Some("true");
    listed.flags = Flags {
        sequential: is_set("sequential"),
        deterministic: is_set("deterministic"),
        needs_approval: is_set("needsApproval"),
    };
    let seconds = hint("timeout").and_then(|it| it.parse::<f64>().ok());
    listed.timeout = seconds.and_then(|it| Duration::try_from_secs_f64(it).ok());
    let sessions = hint("sessions").and_then(|it| serde_json::from_str(it).ok());
    listed.sessions = sessions.unwrap_or_default();
    Some(listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> Page {
        let raw: Box<RawValue> = serde_json::from_str(text).unwrap();
        decode_page(&raw).unwrap()
    }

    #[test]
    fn t20_schemas_without_a_type_and_odd_tools_lose_no_other() {
        let page = page(
            r#"{"tools":[{"name":"a"},{"name":7},{"name":"b","inputSchema":null},
                {"name":"c","inputSchema":{"properties":{"n":{"default":1e2}}}}],"nextCursor":"x"}"#,
        );
        let names: Vec<_> = page.tools.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert_eq!(
            page.tools[2].definition.input_schema.get(),
            r#"{"properties":{"n":{"default":1e2}}}"#
        );
        assert_eq!(page.next.as_deref(), Some("x"));
    }

    #[test]
    fn hints_are_read() {
        let page = page(
            r#"{"tools":[{"name":"a","inputSchema":{},"_meta":{"dev.toolgate/deterministic":true,
                "dev.toolgate/timeout":2.5,"dev.toolgate/sessions":["s1"],"other":{}}}]}"#,
        );
        let tool = &page.tools[0];
        assert!(tool.flags.deterministic && !tool.flags.sequential);
        assert_eq!(tool.timeout, Some(Duration::from_millis(2500)));
        assert_eq!(tool.sessions, ["s1"]);
    }
}
