//! Members of the request that the response object repeats, in the form of OpenAI's schema.
//!
//! A client may leave out members or nest them as Chat does; the response object has one form.

use super::frames::member;
use crate::json::{Kind, Raw, write};

/// Members that every function tool has in a response object.
const FUNCTION_MEMBERS: [&str; 3] = ["description", "parameters", "strict"];

/// Writes `tools`. Function tools are flat, with null for each member that was left out.
pub(super) fn write_tools(out: &mut Vec<u8>, tools: &Raw<'_>) {
    let Some(tools) = tools.items() else {
        out.extend_from_slice(b"[]");
        return;
    };
    out.push(b'[');
    for tool in &tools {
        write::comma(out);
        write_tool(out, tool);
    }
    out.push(b']');
}

fn write_tool(out: &mut Vec<u8>, tool: &Raw<'_>) {
    let Some(members) = flat(tool, "function") else {
        write::one_line(out, tool.get());
        return;
    };
    let kind = members.iter().find(|(name, _)| *name == "type");
    let is_function = match kind {
        Some((_, kind)) => kind.as_text().is_some_and(|kind| kind.decode() == "function"),
        None => true,
    };
    if !is_function {
        write::one_line(out, tool.get());
        return;
    }
    out.push(b'{');
    if kind.is_none() {
        member(out, "type", "function");
    }
    write_members(out, &members);
    for name in FUNCTION_MEMBERS {
        if !members.iter().any(|(given, _)| given == name) {
            write::key(out, name);
            out.extend_from_slice(b"null");
        }
    }
    out.push(b'}');
}

/// Writes an object whose members may be nested one level down, under `nested`, as in Chat.
pub(super) fn write_flat(out: &mut Vec<u8>, object: &Raw<'_>, nested: &str) {
    match flat(object, nested) {
        Some(members) => {
            out.push(b'{');
            write_members(out, &members);
            out.push(b'}');
        }
        None => write::one_line(out, object.get()),
    }
}

/// The members of an object and of the object under `nested`; `None` if it is no object.
fn flat<'r>(object: &'r Raw<'_>, nested: &str) -> Option<Vec<(String, Raw<'r>)>> {
    if object.kind() != Kind::Object {
        return None;
    }
    let mut members = Vec::new();
    for (name, value) in object.fields()?.0 {
        if name == nested && value.kind() == Kind::Object {
            let inner = value.into_owned();
            let inner = inner.fields().unwrap_or_default().0;
            members.extend(
                inner.into_iter().map(|(name, value)| (name.into_owned(), value.into_owned())),
            );
        } else {
            members.push((name.into_owned(), value));
        }
    }
    Some(members)
}

fn write_members(out: &mut Vec<u8>, members: &[(String, Raw<'_>)]) {
    for (name, value) in members {
        write::key(out, name);
        write::one_line(out, value.get());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(write: impl FnOnce(&mut Vec<u8>, &Raw<'_>), given: &str, want: &str) {
        let mut out = Vec::new();
        write(&mut out, &Raw::parse(given.to_owned()).unwrap());
        assert_eq!(String::from_utf8(out).unwrap(), want, "{given}");
    }

    #[test]
    fn echoed_function_tools_have_every_required_member() {
        check(
            write_tools,
            r#"[{"type":"function","name":"a","strict":true}]"#,
            r#"[{"type":"function","name":"a","strict":true,"description":null,"parameters":null}]"#,
        );
        check(
            write_tools,
            r#"[{"type":"function","function":{"name":"a","parameters":{}}},{"type":"web_search"}]"#,
            r#"[{"type":"function","name":"a","parameters":{},"description":null,"strict":null},{"type":"web_search"}]"#,
        );
        check(
            write_tools,
            r#"[{"name":"a","description":"d","parameters":{},"strict":false}]"#,
            r#"[{"type":"function","name":"a","description":"d","parameters":{},"strict":false}]"#,
        );
        check(write_tools, "7", "[]");
    }

    #[test]
    fn nested_members_are_echoed_flat() {
        let choice = |out: &mut Vec<u8>, raw: &Raw<'_>| write_flat(out, raw, "function");
        check(
            choice,
            r#"{"type":"function","function":{"name":"a"}}"#,
            r#"{"type":"function","name":"a"}"#,
        );
        check(choice, r#""auto""#, r#""auto""#);
    }
}
