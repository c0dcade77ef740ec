//! Calls as items: which of OpenAI's forms a call has, and how it is written.

use super::echo::{CallKind, Echo};
use super::frames::{Frames, member};
use super::hosted::{fits, write_apply_patch, write_computer, write_local_shell, write_shell};
use super::open::place;
use crate::canon::{Call, CallInput, Media, ToolName};
use crate::json::{Kind, Raw, Text, write};

/// A call and the item that shows it.
#[derive(Debug)]
pub(super) struct CallItem<'c> {
    id: String,
    call_id: String,
    tool: &'c ToolName<'c>,
    form: Form<'c>,
}

/// Input of the call, by the type of its item.
#[derive(Debug)]
enum Form<'c> {
    /// A string literal: `arguments` of a `function_call`.
    Function(Vec<u8>),
    /// A string literal: `input` of a `custom_tool_call`.
    Custom(Vec<u8>),
    /// An object, under whatever name the item has for it.
    Hosted(Hosted, &'c Raw<'c>),
}

#[derive(Clone, Copy, Debug)]
enum Hosted {
    ApplyPatch,
    Computer,
    LocalShell,
    Shell,
    ToolSearch,
}

impl<'c> CallItem<'c> {
    pub(super) fn new(call: &'c Call<'c>, echo: &Echo) -> Self {
        let kind = echo.calls.get(&call.tool).filter(|kind| match &call.input {
            CallInput::Json(raw) => fits(**kind, raw),
            CallInput::Text(_) => true,
        });
        let (prefix, form) = match (&call.input, kind) {
            (CallInput::Text(text), _) => ("ctc", Form::Custom(literal(text))),
            (CallInput::Json(raw), Some(CallKind::Custom)) => {
                ("ctc", Form::Custom(literal(&unwrapped(raw))))
            }
            (CallInput::Json(raw), None) => {
                let mut arguments = Vec::with_capacity(raw.get().len() + 16);
                write::json_in_string(&mut arguments, raw.get());
                ("fc", Form::Function(arguments))
            }
            (CallInput::Json(raw), Some(CallKind::ApplyPatch)) => {
                ("apc", Form::Hosted(Hosted::ApplyPatch, raw))
            }
            (CallInput::Json(raw), Some(CallKind::Computer)) => {
                ("cu", Form::Hosted(Hosted::Computer, raw))
            }
            (CallInput::Json(raw), Some(CallKind::LocalShell)) => {
                ("lsh", Form::Hosted(Hosted::LocalShell, raw))
            }
            (CallInput::Json(raw), Some(CallKind::Shell)) => {
                ("sh", Form::Hosted(Hosted::Shell, raw))
            }
            (CallInput::Json(raw), Some(CallKind::ToolSearch)) => {
                ("tsc", Form::Hosted(Hosted::ToolSearch, raw))
            }
        };
        Self {
            id: format!("{prefix}_{}", call.id),
            call_id: format!("call_{}", call.id),
            tool: &call.tool,
            form,
        }
    }

    /// The item before anything of its input has been said.
    pub(super) fn write_added(&self, out: &mut Vec<u8>) {
        self.write(out, "in_progress", false);
    }

    /// The whole item.
    pub(super) fn write_done(&self, out: &mut Vec<u8>) {
        self.write(out, "completed", true);
    }

    /// The events between the two.
    pub(super) fn write_events(&self, frames: &mut Frames, index: u64, out: &mut Vec<u8>) {
        let mut event = |kind: &str, name: Option<&str>, field: &str, value: &[u8]| {
            frames.event(out, kind, |out| {
                place(out, &self.id, index);
                if let Some(name) = name {
                    member(out, "name", name);
                }
                write::key(out, field);
                out.extend_from_slice(value);
            });
        };
        match &self.form {
            Form::Function(value) => {
                let name = Some(&*self.tool.name);
                event("response.function_call_arguments.delta", None, "delta", value);
                event("response.function_call_arguments.done", name, "arguments", value);
            }
            Form::Custom(value) => {
                event("response.custom_tool_call_input.delta", None, "delta", value);
                event("response.custom_tool_call_input.done", None, "input", value);
            }
            Form::Hosted(..) => {}
        }
    }

    fn write(&self, out: &mut Vec<u8>, status: &str, whole: bool) {
        let kind = match &self.form {
            Form::Function(_) => "function_call",
            Form::Custom(_) => "custom_tool_call",
            Form::Hosted(Hosted::ApplyPatch, _) => "apply_patch_call",
            Form::Hosted(Hosted::Computer, _) => "computer_call",
            Form::Hosted(Hosted::LocalShell, _) => "local_shell_call",
            Form::Hosted(Hosted::Shell, _) => "shell_call",
            Form::Hosted(Hosted::ToolSearch, _) => "tool_search_call",
        };
        out.push(b'{');
        member(out, "id", &self.id);
        member(out, "type", kind);
        member(out, "status", status);
        member(out, "call_id", &self.call_id);
        match &self.form {
            Form::Function(value) => self.write_named(out, "arguments", value, whole),
            Form::Custom(value) => self.write_named(out, "input", value, whole),
            Form::Hosted(Hosted::ApplyPatch, raw) => write_apply_patch(out, raw),
            Form::Hosted(Hosted::Computer, raw) => write_computer(out, raw),
            Form::Hosted(Hosted::LocalShell, raw) => write_local_shell(out, raw),
            Form::Hosted(Hosted::Shell, raw) => write_shell(out, raw),
            Form::Hosted(Hosted::ToolSearch, raw) => {
                member(out, "execution", "client");
                write::key(out, "arguments");
                match raw.kind() {
                    Kind::Object => raw.write(out),
                    Kind::Array | Kind::Bool | Kind::Null | Kind::Number | Kind::String => {
                        out.extend_from_slice(b"{}");
                    }
                }
            }
        }
        out.push(b'}');
    }

    fn write_named(&self, out: &mut Vec<u8>, field: &str, value: &[u8], whole: bool) {
        member(out, "name", &self.tool.name);
        if let Some(namespace) = &self.tool.namespace {
            member(out, "namespace", namespace);
        }
        write::key(out, field);
        out.extend_from_slice(if whole { value } else { b"\"\"" });
    }
}

fn literal(text: &Text<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.literal().len());
    text.write(&mut out);
    out
}

/// The text that a custom tool was meant to get, where the model wrapped it in JSON: the member
/// `input`, or the only one there is.
fn unwrapped<'r>(raw: &'r Raw<'_>) -> Text<'r> {
    let inner = raw.fields().and_then(|fields| {
        let only = if fields.0.len() == 1 { fields.0.first().map(|(_, it)| it) } else { None };
        fields.get("input").or(only).cloned().and_then(Raw::into_text).map(Text::into_owned)
    });
    inner.or_else(|| raw.as_text()).unwrap_or_else(|| Text::new(&raw.compact()))
}

/// Gemini's part that a medium came in.
pub(super) fn part_of(media: &Media<'_>, data: &Text<'_>) -> Option<Raw<'static>> {
    let mut out = b"{\"inlineData\":{".to_vec();
    if let Some(mime) = &media.mime {
        member(&mut out, "mimeType", mime);
    }
    write::key(&mut out, "data");
    data.write(&mut out);
    out.push(b'}');
    for (name, value) in &media.modifiers {
        write::key(&mut out, name);
        value.write(&mut out);
    }
    out.push(b'}');
    Raw::parse(String::from_utf8(out).ok()?)
}
