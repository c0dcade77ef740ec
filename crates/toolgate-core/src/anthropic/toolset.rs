//! Toolsets: one entry in `tools` that stands for a family of small tools.
//!
//! A call names the family in `toolset_name` and the member in `name`, which is what a namespace
//! is in the canon. Members and their inputs as of `computer_toolset_20260801` and
//! `browser_toolset_20260801`.

use std::borrow::Cow;

use super::vendor::Input;
use super::wire;
use crate::canon::{Function, SchemaForm, ToolName};
use crate::json::{Fields, Path, Raw, Slice, Text};

use MemberKind::{
    Amount, Anchor, Direction, Element, Filter, Number, Pair, Point, Region, Text as Word, Texts,
    Value,
};
use Need::{May, Must};

/// The functions that stand for a toolset's members.
pub(super) fn functions<'a>(
    family: &str,
    tool: &wire::Tool<'a>,
    at: &Path<'_>,
) -> impl Iterator<Item = Function<'a>> {
    let (namespace, members) = match family {
        "computer_toolset" => ("computer", COMPUTER),
        _ => ("browser", BROWSER),
    };
    let configs = tool.configs.as_ref().map(|raw| Slice::new(raw).get());
    let configs = configs.and_then(|json| serde_json::from_str::<Fields<'_>>(json).ok());
    let at = at.to_string();
    members.iter().filter_map(move |member| {
        let config = configs.as_ref().and_then(|configs| configs.get(member.name));
        let (enabled, deferred) = match config.map(|raw| (raw, raw.to::<wire::MemberConfig>())) {
            None => (member.is_default, false),
            Some((_, Some(config))) => {
                (config.enabled.unwrap_or(member.is_default), config.defer_loading.unwrap_or(false))
            }
            Some((raw, None)) => (raw.get() == "null" && member.is_default, false),
        };
        enabled.then(|| Function {
            name: ToolName {
                namespace: Some(Cow::Borrowed(namespace)),
                name: Cow::Borrowed(member.name),
            },
            description: Some(Text::new(member.about)),
            parameters: Raw::parse(schema(member.inputs)),
            form: SchemaForm::JsonSchema,
            response: None,
            deferred,
            at: format!("{at}.{}", member.name),
            schema_field: "input_schema",
        })
    })
}

struct Member {
    name: &'static str,
    about: &'static str,
    inputs: &'static [(&'static str, MemberKind, Need)],
    /// Whether it is offered when the client does not say.
    is_default: bool,
}

#[derive(Clone, Copy)]
enum MemberKind {
    Amount,
    /// A point of the page, or an element of it.
    Anchor,
    Direction,
    Element,
    Filter,
    Number,
    Pair,
    Point,
    Region,
    Text,
    Texts,
    Value,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    Must,
    May,
}

const fn member(
    name: &'static str,
    about: &'static str,
    inputs: &'static [(&'static str, MemberKind, Need)],
) -> Member {
    Member { name, about, inputs, is_default: true }
}

const fn hidden(
    name: &'static str,
    about: &'static str,
    inputs: &'static [(&'static str, MemberKind, Need)],
) -> Member {
    Member { name, about, inputs, is_default: false }
}

const CLICK: &[(&str, MemberKind, Need)] = &[("coordinate", Pair, May), ("text", Word, May)];

const COMPUTER: &[Member] = &[
    member(
        "key",
        "Presses a key or a combination.",
        &[("text", Word, Must), ("repeat", Amount, May)],
    ),
    member(
        "hold_key",
        "Holds a key for some seconds.",
        &[("text", Word, Must), ("duration", Amount, Must)],
    ),
    member("type", "Types text.", &[("text", Word, Must)]),
    member("cursor_position", "Says where the mouse is.", &[]),
    member("mouse_move", "Moves the mouse without a click.", &[("coordinate", Pair, Must)]),
    member("left_mouse_down", "Presses the left button and holds it.", &[]),
    member("left_mouse_up", "Lets the left button go.", &[]),
    member("left_click", "Clicks at a place, or where the mouse is.", CLICK),
    member(
        "left_click_drag",
        "Drags from one place to another.",
        &[("start_coordinate", Pair, Must), ("coordinate", Pair, Must), ("text", Word, May)],
    ),
    member("right_click", "Clicks with the right button.", CLICK),
    member("middle_click", "Clicks with the middle button.", CLICK),
    member("double_click", "Clicks twice.", CLICK),
    member("triple_click", "Clicks three times.", CLICK),
    member(
        "scroll",
        "Turns the wheel at a place, or where the mouse is.",
        &[
            ("scroll_direction", Direction, Must),
            ("scroll_amount", Amount, Must),
            ("coordinate", Pair, May),
            ("text", Word, May),
        ],
    ),
    member("wait", "Waits for some seconds.", &[("duration", Amount, Must)]),
    member("screenshot", "Takes a picture of the screen.", &[]),
    member(
        "zoom",
        "Takes an enlarged picture of a part of the screen.",
        &[("region", Region, Must)],
    ),
];

const PRESS: &[(&str, MemberKind, Need)] =
    &[("target", Anchor, Must), ("modifiers", Word, May), ("tab_id", Word, May)];
const AT_POINT: &[(&str, MemberKind, Need)] = &[("target", Point, Must), ("tab_id", Word, May)];
const IN_TAB: &[(&str, MemberKind, Need)] = &[("tab_id", Word, May)];
const SECONDS: &[(&str, MemberKind, Need)] = &[("duration", Number, Must), ("tab_id", Word, May)];
const WRITTEN: &[(&str, MemberKind, Need)] = &[("text", Word, Must), ("tab_id", Word, May)];

const BROWSER: &[Member] = &[
    member(
        "navigate",
        "Opens an address, or goes `back`, `forward` or does a `reload`.",
        &[("url", Word, Must), ("tab_id", Word, May)],
    ),
    member("list_tabs", "Lists the open tabs.", &[]),
    member("new_tab", "Opens an empty tab.", &[]),
    member("switch_tab", "Makes a tab the active one.", &[("tab_id", Word, Must)]),
    member("close_tab", "Closes a tab.", &[("tab_id", Word, Must)]),
    member(
        "read_page",
        "Reads the page as a tree of elements with references.",
        &[
            ("filter", Filter, May),
            ("depth", Amount, May),
            ("ref", Word, May),
            ("tab_id", Word, May),
        ],
    ),
    member("get_page_text", "Reads the page's text.", IN_TAB),
    hidden("read_console", "Reads what the page wrote to the console.", IN_TAB),
    hidden("read_network", "Reads which requests the page made.", IN_TAB),
    member(
        "find",
        "Finds elements by a description.",
        &[("query", Word, Must), ("tab_id", Word, May)],
    ),
    member(
        "form_input",
        "Sets the value of a form's element.",
        &[("target", Element, Must), ("value", Value, Must), ("tab_id", Word, May)],
    ),
    hidden(
        "file_upload",
        "Gives files to a file input: paths, documents, or both.",
        &[
            ("target", Element, Must),
            ("paths", Texts, May),
            ("document_ids", Texts, May),
            ("tab_id", Word, May),
        ],
    ),
    member(
        "scroll_to",
        "Scrolls until an element is seen.",
        &[("target", Element, Must), ("tab_id", Word, May)],
    ),
    member("screenshot", "Takes a picture of the page as it is seen.", IN_TAB),
    member(
        "zoom",
        "Takes an enlarged picture of a part of the page.",
        &[("region", Region, Must), ("tab_id", Word, May)],
    ),
    member("left_click", "Clicks.", PRESS),
    member("right_click", "Clicks with the right button.", PRESS),
    member("middle_click", "Clicks with the middle button.", PRESS),
    member("double_click", "Clicks twice.", PRESS),
    member("triple_click", "Clicks three times.", PRESS),
    member(
        "hover",
        "Moves the mouse over something.",
        &[("target", Anchor, Must), ("tab_id", Word, May)],
    ),
    member(
        "left_click_drag",
        "Drags from one point to another.",
        &[("from", Point, Must), ("target", Point, Must), ("tab_id", Word, May)],
    ),
    member("left_mouse_down", "Presses the left button and holds it.", AT_POINT),
    member("left_mouse_up", "Lets the left button go.", AT_POINT),
    member("mouse_move", "Moves the mouse without a click.", AT_POINT),
    member(
        "scroll",
        "Turns the wheel at a point.",
        &[
            ("scroll_direction", Direction, Must),
            ("target", Point, Must),
            ("scroll_amount", Amount, May),
            ("tab_id", Word, May),
        ],
    ),
    member("type", "Types text where the focus is.", WRITTEN),
    member(
        "key",
        "Presses keys: `ctrl+a`, or several with spaces between.",
        &[("text", Word, Must), ("repeat", Amount, May), ("tab_id", Word, May)],
    ),
    member(
        "hold_key",
        "Holds keys for some seconds.",
        &[("text", Word, Must), ("duration", Number, Must), ("tab_id", Word, May)],
    ),
    member("wait", "Waits for some seconds.", SECONDS),
    hidden(
        "javascript_exec",
        "Runs JavaScript in the page; the last expression is the result.",
        WRITTEN,
    ),
];

fn schema(inputs: &[(&str, MemberKind, Need)]) -> String {
    let mut input = Input::default();
    for &(name, kind, _) in inputs {
        match kind {
            Word => input.string(name, about(name)),
            Amount => input.integer(name, about(name)),
            Number => input.push(name, r#"{"type":"number""#, about(name)),
            Pair => input.integers(name, 2, "x and y in pixels from the left and the top."),
            Region => input.integers(name, 4, "The left, top, right and bottom in pixels."),
            Direction => input.choice(name, &["up", "down", "left", "right"], ""),
            Filter => input.choice(name, &["all", "interactive"], ""),
            Texts => input.push(name, r#"{"type":"array","items":{"type":"string"}"#, ""),
            Value => input.push(
                name,
                r#"{"anyOf":[{"type":"string"},{"type":"number"},{"type":"boolean"}]"#,
                "",
            ),
            Point => input.push(name, POINT, "A point of the page, in pixels."),
            Element => {
                input.push(name, ELEMENT, "An element, by a reference from `read_page` or `find`.")
            }
            Anchor => input.push(
                name,
                &format!(r#"{{"anyOf":[{POINT}}},{ELEMENT}}}]"#),
                "A point of the page, or an element by its reference.",
            ),
        }
    }
    let required: Vec<_> =
        inputs.iter().filter(|(_, _, need)| *need == Must).map(|(name, _, _)| *name).collect();
    input.finish(&required)
}

const POINT: &str = r#"{"type":"object","properties":{"type":{"type":"string","enum":["coordinate"]},"x":{"type":"integer"},"y":{"type":"integer"}},"required":["type","x","y"]"#;
const ELEMENT: &str = r#"{"type":"object","properties":{"type":{"type":"string","enum":["ref"]},"ref":{"type":"string"}},"required":["type","ref"]"#;

fn about(name: &str) -> &'static str {
    match name {
        "duration" => "Seconds.",
        "modifiers" => "Keys to hold meanwhile, as `ctrl+shift`.",
        "repeat" => "How many times.",
        "tab_id" => "Which tab; the active one where it is left out.",
        _ => "",
    }
}
