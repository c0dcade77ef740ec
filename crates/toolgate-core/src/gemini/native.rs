//! Members of a `POST /v1/gemini` body that are added to a stored conversation.

use std::borrow::Cow;

use super::request::{conversation, is_content};
use crate::canon::BadRequest;
use crate::json::write::ObjectWriter;
use crate::json::{self, Fields, Kind, Path, Raw};

/// The pieces of a body that a conversation remembers, each as JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NativePieces {
    /// The conversation's name.
    pub conversation: Option<String>,
    /// New messages, as contents.
    pub contents: Vec<String>,
    /// `tools`, where the body says anything about them.
    pub tools: Option<String>,
    /// `toolConfig`, where the body has one.
    pub tool_config: Option<String>,
}

/// Takes a body of `POST /v1/gemini` apart.
///
/// ```
/// let body = r#"{"model":"m","input":"Hi","conversation":"c"}"#;
/// let pieces = toolgate_core::gemini::native_pieces(body)?;
/// assert_eq!(pieces.conversation.as_deref(), Some("c"));
/// assert_eq!(pieces.contents, [r#"{"role":"user","parts":[{"text":"Hi"}]}"#]);
/// # Ok::<(), toolgate_core::canon::BadRequest>(())
/// ```
pub fn native_pieces(body: &str) -> Result<NativePieces, BadRequest> {
    let root = Path::Root;
    let fields: Fields<'_> = json::look(body, &root)?;
    let given = |names: &[&str]| {
        let found = names.iter().find_map(|name| fields.get(name));
        found.filter(|raw| raw.kind() != Kind::Null)
    };
    let text = |raw: &Raw<'_>| raw.get().to_owned();
    let mut contents = Vec::new();
    for raw in [given(&["contents"]), given(&["input"])].into_iter().flatten() {
        add_contents(raw, &mut contents);
    }
    let named = given(&["conversation"]).cloned();
    Ok(NativePieces {
        conversation: conversation(named, &root.field("conversation"))?.map(Cow::into_owned),
        contents,
        tools: given(&["tools"]).map(text),
        tool_config: given(&["toolConfig", "tool_config"]).map(text),
    })
}

/// A string, a part, parts, a content or contents: as contents.
fn add_contents(raw: &Raw<'_>, contents: &mut Vec<String>) {
    let items = raw.items().unwrap_or_default();
    if is_content(raw) {
        contents.push(raw.get().to_owned());
    } else if items.first().is_some_and(is_content) {
        contents.extend(items.iter().map(|item| item.get().to_owned()));
    } else if raw.kind() != Kind::Array || !items.is_empty() {
        contents.push(user_content(raw));
    }
}

fn user_content(raw: &Raw<'_>) -> String {
    let mut out = Vec::new();
    let mut content = ObjectWriter::new(&mut out);
    content.string("role", "user");
    match raw.kind() {
        Kind::Array => content.raw("parts", raw),
        Kind::String => content.array("parts").object().raw("text", raw),
        Kind::Bool | Kind::Null | Kind::Number | Kind::Object => {
            raw.write(content.array("parts").element());
        }
    }
    drop(content);
    String::from_utf8(out).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(body: &str, want: &[&str]) {
        assert_eq!(native_pieces(body).unwrap().contents, want, "{body}");
    }

    #[test]
    fn r101_what_is_said_becomes_contents() {
        check(r#"{"input":"a"}"#, &[r#"{"role":"user","parts":[{"text":"a"}]}"#]);
        check(r#"{"input":[{"text":"a"}]}"#, &[r#"{"role":"user","parts":[{"text":"a"}]}"#]);
        check(r#"{"input":{"text":"a"}}"#, &[r#"{"role":"user","parts":[{"text":"a"}]}"#]);
        let content = r#"{"role":"user","parts":[]}"#;
        check(&format!(r#"{{"input":{content}}}"#), &[content]);
        check(&format!(r#"{{"contents":[{content}],"input":[{content}]}}"#), &[content, content]);
        check(r#"{"input":[]}"#, &[]);
        let pieces = native_pieces(r#"{"tools":[],"tool_config":{"a":1}}"#).unwrap();
        assert_eq!(pieces.tools.as_deref(), Some("[]"));
        assert_eq!(pieces.tool_config.as_deref(), Some("{\"a\":1}"));
        assert_eq!(native_pieces(r#"{"tools":null}"#).unwrap().tools, None);
    }
}
