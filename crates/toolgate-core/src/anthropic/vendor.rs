//! Tools that Anthropic defines and the client runs: their schemas are in Anthropic's models and
//! never in a request, so they are written out here.
//!
//! What matters is the shape of the input, which the client's code expects to the letter. It
//! changes with the version's date; an unknown date gets the nearest known version before it.
//! Reference: <https://docs.claude.com/en/docs/agents-and-tools/tool-use/overview>.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::tools::described;
use super::wire;
use crate::canon::{Function, SchemaForm, ToolName};
use crate::json::{Path, Raw, Text};

/// The function that stands for a tool of Anthropic's.
pub(super) fn function<'a>(
    family: &str,
    version: &str,
    tool: wire::Tool<'a>,
    at: &Path<'_>,
) -> Function<'a> {
    let shape = match family {
        "bash" => bash(),
        "text_editor" => text_editor(version, tool.max_characters),
        "computer" => computer(version, &tool),
        _ => memory(),
    };
    let name = tool.name.filter(|name| !name.is_empty()).map(Text::into_cow);
    Function {
        name: ToolName::plain(name.unwrap_or(Cow::Borrowed(shape.name))),
        description: described(Some(Text::new(&shape.description)), tool.input_examples.as_deref()),
        parameters: Raw::parse(shape.parameters),
        form: SchemaForm::JsonSchema,
        response: None,
        deferred: tool.defer_loading.unwrap_or(false),
        at: at.to_string(),
        schema_field: "input_schema",
    }
}

struct Shape {
    /// Its name, where the client gave none.
    name: &'static str,
    description: String,
    parameters: String,
}

fn bash() -> Shape {
    let mut input = Input::default();
    input.string("command", "The command to run. Required unless the shell is restarted.");
    input.push("restart", r#"{"type":"boolean""#, "Set to true to start a new shell instead.");
    Shape {
        name: "bash",
        description: "Runs a command in a shell that keeps its state (directory, variables) \
                      between calls, and returns what it prints."
            .to_owned(),
        parameters: input.finish(&[]),
    }
}

fn text_editor(version: &str, max_characters: Option<i64>) -> Shape {
    // The first versions could undo, and called the text of an insertion `new_str`.
    let is_old = is_before(version, "20250429");
    let mut commands = vec!["view", "create", "str_replace", "insert"];
    if is_old {
        commands.push("undo_edit");
    }
    let mut input = Input::default();
    input.choice("command", &commands, "What to do.");
    input.string("path", "The path of the file or, to view, of a directory.");
    input.string("file_text", "For `create`: the whole content of the new file.");
    input.string("old_str", "For `str_replace`: the text to replace, which must occur once.");
    let (inserted, about) = if is_old {
        ("new_str", "For `str_replace`: the new text. For `insert`: the text to put in.")
    } else {
        ("new_str", "For `str_replace`: the new text.")
    };
    input.string(inserted, about);
    input.integer("insert_line", "For `insert`: the line after which to put it; 0: at the start.");
    if !is_old {
        input.string("insert_text", "For `insert`: the text to put in.");
    }
    input.integers(
        "view_range",
        2,
        "For `view` of a file: the first and the last line, from 1; -1: to the end.",
    );
    let mut description = "Views, creates and edits text files.".to_owned();
    if is_old {
        description.push_str(" `undo_edit` takes back the last edit of a file.");
    }
    if let Some(limit) = max_characters {
        let _ = write!(description, " A file is shown up to {limit} characters.");
    }
    let name = if is_old { "str_replace_editor" } else { "str_replace_based_edit_tool" };
    Shape { name, description, parameters: input.finish(&["command", "path"]) }
}

fn memory() -> Shape {
    let commands = ["view", "create", "str_replace", "insert", "delete", "rename"];
    let mut input = Input::default();
    input.choice("command", &commands, "What to do.");
    input.string("path", "The path under `/memories`. Required by every command but `rename`.");
    input.string("file_text", "For `create`: the whole content of the file.");
    input.string("old_str", "For `str_replace`: the text to replace.");
    input.string("new_str", "For `str_replace`: the new text.");
    input.integer("insert_line", "For `insert`: the line at which to put it.");
    input.string("insert_text", "For `insert`: the text to put in.");
    input.integers("view_range", 2, "For `view` of a file: the first and the last line.");
    input.string("old_path", "For `rename`: the path now.");
    input.string("new_path", "For `rename`: the path afterwards.");
    Shape {
        name: "memory",
        description: "Files under `/memories` that outlive this conversation: look there before \
                      you begin, and note what will be needed later."
            .to_owned(),
        parameters: input.finish(&["command"]),
    }
}

fn computer(version: &str, tool: &wire::Tool<'_>) -> Shape {
    let mut actions = vec![
        "key",
        "type",
        "mouse_move",
        "left_click",
        "left_click_drag",
        "right_click",
        "middle_click",
        "double_click",
        "screenshot",
        "cursor_position",
    ];
    let is_first = is_before(version, "20250124");
    let can_zoom = !is_before(version, "20251124") && tool.enable_zoom == Some(true);
    if !is_first {
        actions.extend([
            "left_mouse_down",
            "left_mouse_up",
            "scroll",
            "hold_key",
            "wait",
            "triple_click",
        ]);
    }
    if can_zoom {
        actions.push("zoom");
    }
    let mut input = Input::default();
    input.choice("action", &actions, "What to do.");
    input.integers(
        "coordinate",
        2,
        "x and y in pixels from the left and the top: where to click, move, scroll or drag to.",
    );
    let text = "For `type`: the text. For `key` and `hold_key`: the keys, as `ctrl+s`. For a click \
                or `scroll`: keys to hold meanwhile.";
    input
        .string("text", if is_first { "For `type`: the text. For `key`: the keys." } else { text });
    if !is_first {
        input.integers("start_coordinate", 2, "For `left_click_drag`: where the drag begins.");
        let directions = ["up", "down", "left", "right"];
        input.choice("scroll_direction", &directions, "For `scroll`: which way.");
        input.integer("scroll_amount", "For `scroll`: how many notches of the wheel.");
        input.push("duration", r#"{"type":"number""#, "For `hold_key` and `wait`: seconds.");
    }
    if can_zoom {
        input.integers("region", 4, "For `zoom`: the left, top, right and bottom of what to see.");
    }
    let mut description = "Uses the screen, mouse and keyboard of a computer.".to_owned();
    if let (Some(width), Some(height)) = (tool.display_width_px, tool.display_height_px) {
        let _ = write!(description, " The screen has {width} x {height} pixels.");
    }
    Shape { name: "computer", description, parameters: input.finish(&["action"]) }
}

/// Versions are dates, so that they sort as text. One without a date is the newest.
fn is_before(version: &str, date: &str) -> bool {
    !version.is_empty() && version < date
}

/// A schema of an object, member by member.
#[derive(Default)]
pub(super) struct Input {
    properties: Vec<u8>,
}

impl Input {
    pub(super) fn string(&mut self, name: &str, about: &str) {
        self.push(name, r#"{"type":"string""#, about);
    }

    pub(super) fn integer(&mut self, name: &str, about: &str) {
        self.push(name, r#"{"type":"integer""#, about);
    }

    pub(super) fn integers(&mut self, name: &str, count: usize, about: &str) {
        let schema = format!(
            r#"{{"type":"array","items":{{"type":"integer"}},"minItems":{count},"maxItems":{count}"#
        );
        self.push(name, &schema, about);
    }

    pub(super) fn choice(&mut self, name: &str, values: &[&str], about: &str) {
        let schema = format!(r#"{{"type":"string","enum":["{}"]"#, values.join("\",\""));
        self.push(name, &schema, about);
    }

    /// Adds a member whose schema is written without its closing brace.
    pub(super) fn push(&mut self, name: &str, open_schema: &str, about: &str) {
        let out = &mut self.properties;
        if !out.is_empty() {
            out.push(b',');
        }
        crate::json::write::string(out, name);
        out.push(b':');
        out.extend_from_slice(open_schema.as_bytes());
        if !about.is_empty() {
            out.extend_from_slice(b",\"description\":");
            crate::json::write::string(out, about);
        }
        out.push(b'}');
    }

    pub(super) fn finish(self, required: &[&str]) -> String {
        let properties = String::from_utf8_lossy(&self.properties);
        let mut schema = format!(r#"{{"type":"object","properties":{{{properties}}}"#);
        if !required.is_empty() {
            let _ = write!(schema, r#","required":["{}"]"#, required.join("\",\""));
        }
        schema.push('}');
        schema
    }
}
