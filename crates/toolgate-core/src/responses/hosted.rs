//! Tools that OpenAI defines and the client runs: functions to Gemini, items of their own to the
//! client.
//!
//! ```text
//! {"type":"shell"}   ─► function shell(commands, …)
//! shell_call.action  ◄─► its arguments
//! ```

use super::echo::CallKind;
use crate::json::{Fields, Kind, Raw, Text, write};

/// A tool of OpenAI's, as a function.
#[derive(Debug)]
pub(super) struct Hosted {
    pub(super) kind: CallKind,
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    parameters: &'static str,
}

impl Hosted {
    pub(super) fn parameters(&self) -> Option<Raw<'static>> {
        serde_json::from_str(self.parameters).ok()
    }
}

/// The function that stands for a tool of this type.
pub(super) fn hosted(kind: &str) -> Option<&'static Hosted> {
    HOSTED.iter().find(|hosted| hosted.name == kind)
}

/// The name that `tool_search` goes by.
pub(super) const TOOL_SEARCH: &str = "tool_search";

/// Default parameters of `tool_search`.
pub(super) const TOOL_SEARCH_PARAMETERS: &str = r#"{"type":"object","properties":{"query":{"type":"string","description":"What the wanted tool does."},"limit":{"type":"integer","description":"The most tools to return."}},"required":["query"]}"#;

const HOSTED: &[Hosted] = &[
    Hosted {
        kind: CallKind::LocalShell,
        name: "local_shell",
        description: "Runs one program on the user's machine and returns what it prints.",
        parameters: r#"{"type":"object","properties":{"command":{"type":"array","items":{"type":"string"},"description":"The program and its arguments, one element each. For shell syntax: [\"bash\", \"-lc\", \"...\"]."},"working_directory":{"type":"string","description":"Where to run it."},"timeout_ms":{"type":"integer","description":"When to give up, in milliseconds."},"env":{"type":"object","additionalProperties":{"type":"string"},"description":"Environment variables to set."},"user":{"type":"string","description":"The user to run it as."}},"required":["command"]}"#,
    },
    Hosted {
        kind: CallKind::Shell,
        name: "shell",
        description: "Runs shell commands on the user's machine, one after another, and returns \
                      each one's standard output, standard error and exit code.",
        parameters: r#"{"type":"object","properties":{"commands":{"type":"array","items":{"type":"string"},"description":"The commands, in order."},"timeout_ms":{"type":"integer","description":"When to give up, in milliseconds."},"max_output_length":{"type":"integer","description":"The most characters of output to return."}},"required":["commands"]}"#,
    },
    Hosted {
        kind: CallKind::ApplyPatch,
        name: "apply_patch",
        description: "Creates, changes or deletes one file. `diff` is in V4A form: for a new \
                      file every line begins with `+`; for a change each section begins with \
                      `@@` and holds context lines (a space first), removed lines (`-`) and \
                      added lines (`+`).",
        parameters: r#"{"type":"object","properties":{"type":{"type":"string","enum":["create_file","update_file","delete_file"],"description":"What to do."},"path":{"type":"string","description":"The file."},"diff":{"type":"string","description":"The change; not for delete_file."}},"required":["type","path"]}"#,
    },
    Hosted {
        kind: CallKind::Computer,
        name: "computer",
        description: "Uses the user's screen, mouse and keyboard: does the actions in order and \
                      returns a picture of the screen.",
        parameters: r#"{"type":"object","properties":{"actions":{"type":"array","description":"The actions, in order.","items":{"type":"object","properties":{"type":{"type":"string","enum":["click","double_click","drag","keypress","move","screenshot","scroll","type","wait"]},"x":{"type":"integer","description":"Pixels from the left."},"y":{"type":"integer","description":"Pixels from the top."},"button":{"type":"string","enum":["left","right","wheel","back","forward"],"description":"For click."},"keys":{"type":"array","items":{"type":"string"},"description":"For keypress: the keys. For mouse actions: the keys held down."},"text":{"type":"string","description":"For type."},"path":{"type":"array","items":{"type":"object","properties":{"x":{"type":"integer"},"y":{"type":"integer"}},"required":["x","y"]},"description":"For drag: where to go."},"scroll_x":{"type":"integer","description":"For scroll."},"scroll_y":{"type":"integer","description":"For scroll."}},"required":["type"]}}},"required":["actions"]}"#,
    },
];

/// The arguments of the call that an item's `action` stands for: the action without what the
/// answer added to it.
pub(super) fn arguments_of_action(action: &Raw<'_>) -> Option<Raw<'static>> {
    let fields = action.fields()?;
    let mut out = b"{".to_vec();
    for (name, value) in &fields.0 {
        let added = name == "type"
            || value.kind() == Kind::Null
            || (name == "env" && value.compact() == "{}");
        if !added {
            write::key(&mut out, name);
            value.write(&mut out);
        }
    }
    out.push(b'}');
    Raw::parse(String::from_utf8(out).ok()?)
}

/// The arguments of the call that a `computer_call` stands for.
pub(super) fn arguments_of_actions(
    action: Option<&Raw<'_>>,
    actions: Option<&Raw<'_>>,
) -> Option<Raw<'static>> {
    let json = match (actions, action) {
        (Some(actions), _) => format!(r#"{{"actions":{}}}"#, actions.compact()),
        (None, Some(action)) => format!(r#"{{"actions":[{}]}}"#, action.compact()),
        (None, None) => return None,
    };
    Raw::parse(json)
}

/// Whether a hosted call's item can hold the arguments: without them it would say something else
/// than the model did.
pub(super) fn fits(kind: CallKind, arguments: &Raw<'_>) -> bool {
    if kind == CallKind::Custom {
        return true;
    }
    let Some(whole) = arguments.fields() else { return false };
    let is = |fields: &Fields<'_>, name: &str, kinds: &[Kind]| {
        fields.get(name).is_some_and(|value| kinds.contains(&value.kind()))
    };
    let words = [Kind::Array, Kind::String];
    match kind {
        CallKind::ApplyPatch => {
            let nested = whole.get("operation").and_then(Raw::fields);
            let fields = nested.as_ref().unwrap_or(&whole);
            let deletes = fields.get("type").is_some_and(|kind| kind.get() == "\"delete_file\"");
            let says = |name| is(fields, name, &[Kind::String]);
            says("type") && says("path") && (deletes || says("diff"))
        }
        CallKind::LocalShell | CallKind::Shell => {
            is(&whole, "commands", &words) || is(&whole, "command", &words)
        }
        CallKind::Computer => {
            is(&whole, "actions", &[Kind::Array]) || is(&whole, "action", &[Kind::Object])
        }
        CallKind::Custom | CallKind::ToolSearch => true,
    }
}

/// Writes a `local_shell_call`'s `action`.
pub(super) fn write_local_shell(out: &mut Vec<u8>, arguments: &Raw<'_>) {
    let fields = arguments.fields().unwrap_or_default();
    write::key(out, "action");
    out.extend_from_slice(br#"{"type":"exec","command":"#);
    // A whole command line is a script for a shell.
    let prefix: &[&str] = &["bash", "-lc"];
    strings(out, fields.get("command").or_else(|| fields.get("commands")), prefix);
    write::key(out, "env");
    match fields.get("env").filter(|env| env.kind() == Kind::Object) {
        Some(env) => env.write(out),
        None => out.extend_from_slice(b"{}"),
    }
    for name in ["timeout_ms", "user", "working_directory"] {
        if let Some(value) = given(&fields, name) {
            write::key(out, name);
            value.write(out);
        }
    }
    out.push(b'}');
}

/// Writes a `shell_call`'s `action`.
pub(super) fn write_shell(out: &mut Vec<u8>, arguments: &Raw<'_>) {
    let fields = arguments.fields().unwrap_or_default();
    write::key(out, "action");
    out.extend_from_slice(br#"{"commands":"#);
    strings(out, fields.get("commands").or_else(|| fields.get("command")), &[]);
    for name in ["timeout_ms", "max_output_length"] {
        write::key(out, name);
        match given(&fields, name) {
            Some(value) => value.write(out),
            None => out.extend_from_slice(b"null"),
        }
    }
    out.push(b'}');
}

/// Writes an `apply_patch_call`'s `operation`.
pub(super) fn write_apply_patch(out: &mut Vec<u8>, arguments: &Raw<'_>) {
    let whole = arguments.fields().unwrap_or_default();
    let nested = whole.get("operation").and_then(Raw::fields);
    let fields = nested.as_ref().unwrap_or(&whole);
    let deletes = fields.get("type").is_some_and(|kind| kind.get() == "\"delete_file\"");
    write::key(out, "operation");
    out.push(b'{');
    for name in ["type", "path", "diff"] {
        if name == "diff" && deletes {
            continue;
        }
        write::key(out, name);
        match given(fields, name) {
            Some(value) => value.write(out),
            None => Text::EMPTY.write(out),
        }
    }
    out.push(b'}');
}

/// Writes a `computer_call`'s `actions`.
pub(super) fn write_computer(out: &mut Vec<u8>, arguments: &Raw<'_>) {
    let fields = arguments.fields().unwrap_or_default();
    write::key(out, "actions");
    match (fields.get("actions"), given(&fields, "action")) {
        (Some(actions), _) if actions.kind() == Kind::Array => actions.write(out),
        (_, Some(action)) => {
            out.push(b'[');
            action.write(out);
            out.push(b']');
        }
        _ => out.extend_from_slice(b"[]"),
    }
    write::key(out, "pending_safety_checks");
    out.extend_from_slice(b"[]");
}

fn given<'f, 'a>(fields: &'f Fields<'a>, name: &str) -> Option<&'f Raw<'a>> {
    fields.get(name).filter(|value| value.kind() != Kind::Null)
}

/// Writes an array of strings; a lone string becomes one, after `prefix`.
fn strings(out: &mut Vec<u8>, value: Option<&Raw<'_>>, prefix: &[&str]) {
    match value {
        Some(array) if array.kind() == Kind::Array => array.write(out),
        Some(lone) if lone.kind() == Kind::String => {
            out.push(b'[');
            for word in prefix {
                write::comma(out);
                write::string(out, word);
            }
            write::comma(out);
            lone.write(out);
            out.push(b']');
        }
        _ => out.extend_from_slice(b"[]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Raw<'_> {
        serde_json::from_str(json).unwrap()
    }

    #[track_caller]
    fn check(write: fn(&mut Vec<u8>, &Raw<'_>), arguments: &str, want: &str) {
        let mut out = b"{".to_vec();
        write(&mut out, &raw(arguments));
        out.push(b'}');
        assert_eq!(String::from_utf8(out).unwrap(), want);
    }

    #[test]
    fn schemas_are_json() {
        for hosted in HOSTED {
            assert!(hosted.parameters().is_some(), "{}", hosted.name);
        }
        assert!(serde_json::from_str::<Raw<'_>>(TOOL_SEARCH_PARAMETERS).is_ok());
    }

    #[test]
    fn calls_have_openais_shapes() {
        check(
            write_local_shell,
            r#"{"command":["ls","-l"],"timeout_ms":5}"#,
            r#"{"action":{"type":"exec","command":["ls","-l"],"env":{},"timeout_ms":5}}"#,
        );
        check(
            write_local_shell,
            r#"{"command":"ls | wc"}"#,
            r#"{"action":{"type":"exec","command":["bash","-lc","ls | wc"],"env":{}}}"#,
        );
        check(
            write_shell,
            r#"{"commands":["ls"]}"#,
            r#"{"action":{"commands":["ls"],"timeout_ms":null,"max_output_length":null}}"#,
        );
        check(
            write_apply_patch,
            r#"{"path":"a","type":"create_file","diff":"+x"}"#,
            r#"{"operation":{"type":"create_file","path":"a","diff":"+x"}}"#,
        );
        check(
            write_apply_patch,
            r#"{"operation":{"type":"delete_file","path":"a","diff":null}}"#,
            r#"{"operation":{"type":"delete_file","path":"a"}}"#,
        );
        check(
            write_computer,
            r#"{"actions":[{"type":"wait"}]}"#,
            r#"{"actions":[{"type":"wait"}],"pending_safety_checks":[]}"#,
        );
    }

    #[test]
    fn actions_become_arguments_again() {
        let shell = raw(r#"{"type":"exec","command":["ls"],"env":{},"timeout_ms":null}"#);
        assert_eq!(arguments_of_action(&shell).unwrap().get(), r#"{"command":["ls"]}"#);
        let one = raw(r#"{"type":"wait"}"#);
        let actions = arguments_of_actions(Some(&one), None).unwrap();
        assert_eq!(actions.get(), r#"{"actions":[{"type":"wait"}]}"#);
    }
}
