//! Input items: the client's conversation.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::content::{Piece, decode_content, decode_output};
use super::echo::ItemReference;
use super::fields::{required, string, text};
use super::input::input_items;
use super::tools::Toolbox;
use super::wire::{Input, Item, Reasoning, TextConfig};
use crate::canon::{
    BadRequest, Call, CallInput, LossCode, Losses, Part, ResultPart, Role, ToolName, ToolResult,
    Turn,
};
use crate::dialect::DecodeOptions;
use crate::json::{self, Element, Kind, Path, Raw, Text};

/// The conversation that the input items form.
#[derive(Debug)]
pub(super) struct Conversation<'a, 'o> {
    pub(super) options: &'o DecodeOptions<'o>,
    pub(super) system: Vec<Text<'a>>,
    pub(super) turns: Vec<Turn<'a>>,
    pub(super) toolbox: Toolbox<'a>,
    pub(super) references: Vec<ItemReference>,
    pub(super) compact: bool,
    /// What `configuration_update` items set; the last one counts.
    pub(super) reasoning: Option<Reasoning<'a>>,
    pub(super) text: Option<TextConfig<'a>>,
    /// No user or model turn has been read yet.
    leading: bool,
    /// Names of the tools that were called.
    called: BTreeSet<Cow<'a, str>>,
    /// Item ids of `local_shell_call`s with their call ids: outputs may name either.
    pub(super) local_shells: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
    /// Stored items that the input may name.
    pub(super) stored: BTreeMap<&'a str, &'a str>,
}

impl<'a, 'o> Conversation<'a, 'o> {
    pub(super) fn new(options: &'o DecodeOptions<'o>) -> Self {
        Self {
            options,
            system: Vec::new(),
            turns: Vec::new(),
            toolbox: Toolbox::default(),
            references: Vec::new(),
            compact: false,
            reasoning: None,
            text: None,
            leading: true,
            called: BTreeSet::new(),
            local_shells: BTreeMap::new(),
            stored: BTreeMap::new(),
        }
    }

    /// Reads `input`: a string, or items.
    pub(super) fn read_input(
        &mut self,
        input: Input<'a>,
        body: &'a str,
        losses: &mut Losses,
    ) -> Result<(), BadRequest> {
        match input {
            Input::Text(text) => {
                if !text.is_empty() {
                    self.push_user(Text::new(&text));
                }
                Ok(())
            }
            Input::Items(items) => {
                let raws = || input_items(body).unwrap_or_default();
                self.compact = items.last().is_some_and(|item| is_trigger(item));
                self.read_items(items, raws, &Path::Root.field("input"), losses)
            }
        }
    }

    /// Reads `instructions`: a string, or items that are all instructions.
    pub(super) fn read_instructions(
        &mut self,
        instructions: &Raw<'a>,
        losses: &mut Losses,
    ) -> Result<(), BadRequest> {
        let at = Path::Root.field("instructions");
        match instructions.kind() {
            Kind::String => {
                self.system.extend(instructions.clone().into_text().filter(|it| !it.is_empty()));
                Ok(())
            }
            Kind::Array => {
                let json = instructions.as_borrowed().ok_or_else(|| at.bad("cannot be read"))?;
                let items: Vec<Element<Item<'a>>> = json::read(json, &at, losses)?;
                let raws = || serde_json::from_str(json).unwrap_or_default();
                self.read_items(items, raws, &at, losses)
            }
            Kind::Bool | Kind::Null | Kind::Number | Kind::Object => {
                Err(at.bad("expected a string or an array of items"))
            }
        }
    }

    /// Reads items; `raws` gives their JSON, which is asked for only where one is not understood.
    pub(super) fn read_items(
        &mut self,
        items: Vec<Element<Item<'a>>>,
        raws: impl Fn() -> Vec<Raw<'a>>,
        at: &Path<'_>,
        losses: &mut Losses,
    ) -> Result<(), BadRequest> {
        let mut known: Option<Vec<Raw<'a>>> = None;
        let last = items.len().saturating_sub(1);
        for (index, item) in items.into_iter().enumerate() {
            let at = at.index(index);
            if is_trigger(&item) && index < last {
                let detail = "a summary is asked for by the last item only";
                losses.add(&at, LossCode::Ignored, detail);
            }
            if let Some(kind) = self.read_item(&item, index, &at, losses)? {
                if let Some(raw) = known.get_or_insert_with(&raws).get(index) {
                    let text = Text::new(&format!("{kind}: {}", raw.compact()));
                    self.push(Role::User, Part::text(text));
                }
                losses.add(
                    &at,
                    LossCode::Changed,
                    format_args!("`{kind}` has no equivalent; the model reads its JSON as text"),
                );
            }
        }
        Ok(())
    }

    /// Reads one item; gives its type where it can only be kept as text.
    fn read_item(
        &mut self,
        item: &Item<'a>,
        index: usize,
        at: &Path<'_>,
        losses: &mut Losses,
    ) -> Result<Option<Cow<'a, str>>, BadRequest> {
        let kind = match &item.kind {
            Some(kind) => kind.0.clone(),
            None if item.role.is_some() => Cow::Borrowed("message"),
            None if item.id.is_some() => Cow::Borrowed("item_reference"),
            None => return Err(at.field("type").bad("missing")),
        };
        match &*kind {
            "message" => self.read_message(item, at, losses)?,
            "function_call" => {
                let input =
                    decode_arguments(item.arguments.as_ref(), &at.field("arguments"), losses)?;
                self.push_call(item, input, at)?;
            }
            "custom_tool_call" => {
                let input = text(item.input.as_ref(), at, "input")?.unwrap_or(Text::EMPTY);
                self.push_call(item, CallInput::Text(input), at)?;
            }
            "function_call_output" | "custom_tool_call_output" => {
                self.read_output(item, at, losses)?;
            }
            "local_shell_call" | "shell_call" | "apply_patch_call" | "computer_call"
            | "tool_search_call" => self.read_hosted_call(&kind, item, at, losses)?,
            "local_shell_call_output"
            | "shell_call_output"
            | "apply_patch_call_output"
            | "computer_call_output" => self.read_hosted_output(&kind, item, at, losses)?,
            "tool_search_output" => self.read_found_tools(item, at, losses)?,
            "additional_tools" => {
                if let Some(tools) = &item.tools {
                    self.toolbox.declare(tools, &at.field("tools"), false, losses)?;
                }
            }
            "reasoning" => self.read_reasoning(item, at, losses)?,
            "compaction" | "compaction_summary" => self.read_compaction(item, at, losses)?,
            // `read_input` decides whether it is the end of the input.
            TRIGGER => {}
            "configuration_update" => self.read_update(item, at, losses)?,
            "item_reference" => {
                let id = required(item.id.as_ref(), at, "id")?;
                // Taken out meanwhile: a stored item may be a reference itself.
                if let Some((id, json)) = self.stored.remove_entry(&*id) {
                    self.read_stored_item(json, at, losses)?;
                    self.stored.insert(id, json);
                    return Ok(None);
                }
                losses.add(
                    at,
                    LossCode::PartDropped,
                    format_args!("`{id}` is only a reference, and nothing is stored under it"),
                );
                self.references.push(ItemReference { index, id: id.into_owned() });
            }
            "image_generation_call" => self.read_image(item, at)?,
            "code_interpreter_call" if self.is_carried() => {}
            "web_search_call" => {
                if !self.is_carried() {
                    losses.add(
                        at,
                        LossCode::PartDropped,
                        "a search that was made before; the words after it hold what it found",
                    );
                }
            }
            "mcp_list_tools" => losses.add(
                at,
                LossCode::PartDropped,
                "remote MCP servers are not called by toolgate; their tools are left out",
            ),
            _ => return Ok(Some(kind)),
        }
        Ok(None)
    }

    /// Adds a part to the turn of a role.
    pub(super) fn push(&mut self, role: Role, part: Part<'a>) {
        self.leading &= role == Role::Instruction;
        match self.turns.last_mut() {
            Some(turn) if turn.role == role => turn.parts.push(part),
            Some(_) | None => self.turns.push(Turn { role, parts: vec![part] }),
        }
    }

    /// Adds a user's words after everything else.
    pub(super) fn push_user(&mut self, text: Text<'a>) {
        self.push(Role::User, Part::text(text));
    }

    fn read_message(
        &mut self,
        item: &Item<'a>,
        at: &Path<'_>,
        losses: &mut Losses,
    ) -> Result<(), BadRequest> {
        let role = match string(item.role.as_ref(), at, "role")?.as_deref() {
            Some("user") => Role::User,
            Some("assistant") => Role::Model,
            Some("system" | "developer") => Role::Instruction,
            Some(_) => {
                let known = "expected \"user\", \"assistant\", \"system\" or \"developer\"";
                return Err(at.field("role").bad(known));
            }
            None => return Err(at.field("role").bad("missing")),
        };
        let Some(content) = &item.content else { return Ok(()) };
        let at = at.field("content");
        for piece in decode_content(content, &at, losses)? {
            match (role, piece) {
                (Role::Instruction, Piece::Text(text)) if self.leading => self.system.push(text),
                (Role::Instruction, Piece::Media(_)) if self.leading => losses.add(
                    &at,
                    LossCode::PartDropped,
                    "Gemini's system instruction holds words only",
                ),
                (role, piece) => self.push(role, piece.into_part()),
            }
        }
        Ok(())
    }

    fn push_call(
        &mut self,
        item: &Item<'a>,
        input: CallInput<'a>,
        at: &Path<'_>,
    ) -> Result<(), BadRequest> {
        let name = required(item.name.as_ref(), at, "name")?;
        let namespace = string(item.namespace.as_ref(), at, "namespace")?;
        self.push_call_of(ToolName { namespace, name }, item, input, at)
    }

    pub(super) fn push_call_of(
        &mut self,
        tool: ToolName<'a>,
        item: &Item<'a>,
        input: CallInput<'a>,
        at: &Path<'_>,
    ) -> Result<(), BadRequest> {
        let id = required(item.call_id.as_ref().or(item.id.as_ref()), at, "call_id")?;
        self.called.insert(tool.name.clone());
        self.push(
            Role::Model,
            Part::Call(Call { id, upstream_id: None, tool, input, signature: None }),
        );
        Ok(())
    }

    pub(super) fn push_result(
        &mut self,
        call_id: Option<Cow<'a, str>>,
        tool: Option<ToolName<'a>>,
        is_error: bool,
        content: Vec<ResultPart<'a>>,
    ) {
        let modifiers = Vec::new();
        self.push(
            Role::User,
            Part::Result(ToolResult { call_id, tool, is_error, content, modifiers }),
        );
    }

    /// From here on the model thinks as hard, and answers in the form, that the item says.
    fn read_update(
        &mut self,
        item: &Item<'a>,
        at: &Path<'_>,
        losses: &mut Losses,
    ) -> Result<(), BadRequest> {
        if let Some(json) = item.reasoning.as_ref().and_then(Raw::as_borrowed) {
            self.reasoning = Some(json::read(json, &at.field("reasoning"), losses)?);
        }
        if let Some(json) = item.text.as_ref().and_then(Raw::as_borrowed) {
            self.text = Some(json::read(json, &at.field("text"), losses)?);
        }
        Ok(())
    }

    fn read_output(
        &mut self,
        item: &Item<'a>,
        at: &Path<'_>,
        losses: &mut Losses,
    ) -> Result<(), BadRequest> {
        let content = decode_output(item.output.as_ref(), &at.field("output"), losses)?;
        let namespace = string(item.namespace.as_ref(), at, "namespace")?;
        let name = string(item.name.as_ref(), at, "name")?;
        let tool = name.map(|name| ToolName { namespace, name });
        let call_id = string(item.call_id.as_ref(), at, "call_id")?;
        match (call_id, tool) {
            (None, None) => return Err(at.field("call_id").bad("missing")),
            (None, Some(tool)) if !self.called.contains(&tool.name) => {
                let detail = format_args!(
                    "the output of `{tool}` has no `call_id`, and no call of it is in the input; its content is context"
                );
                losses.add(at, LossCode::Changed, detail);
                self.push_context(content);
            }
            (call_id, tool) => self.push_result(call_id, tool, false, content),
        }
        Ok(())
    }

    /// Adds content that the client's program tells the model without being asked, as Codex does with
    /// the goal of an agent.
    fn push_context(&mut self, content: Vec<ResultPart<'a>>) {
        for part in content {
            let part = match part {
                ResultPart::Text(text) if text.is_empty() => continue,
                ResultPart::Text(text) => Part::text(text),
                ResultPart::Json(raw) => Part::text(Text::new(&raw.compact())),
                ResultPart::Media(media) => Part::Media(media),
            };
            self.push(Role::User, part);
        }
    }
}

/// The type of the item that asks for a summary of all before it.
const TRIGGER: &str = "compaction_trigger";

pub(super) fn is_trigger(item: &Item<'_>) -> bool {
    item.kind.as_ref().is_some_and(|kind| kind.0 == TRIGGER)
}

/// Reads a call's `arguments`: JSON in a string.
///
/// Text that is not JSON (a model's slip that the client kept, R45) goes into an object, so that the
/// conversation can be told on.
pub(super) fn decode_arguments<'a>(
    arguments: Option<&Raw<'a>>,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<CallInput<'a>, BadRequest> {
    let Some(arguments) = arguments else { return Ok(CallInput::Json(Raw::empty_object())) };
    match arguments.kind() {
        Kind::Object => return Ok(CallInput::Json(arguments.clone())),
        Kind::String => {}
        Kind::Array | Kind::Bool | Kind::Null | Kind::Number => {
            return Err(at.bad("expected a string that holds JSON"));
        }
    }
    let text = arguments.clone().into_text().unwrap_or(Text::EMPTY);
    let plain = text.decode();
    if matches!(plain.trim(), "" | "null") {
        return Ok(CallInput::Json(Raw::empty_object()));
    }
    if let Some(json) = Raw::parse(plain.into_owned()) {
        return Ok(CallInput::Json(json));
    }
    losses.add(at, LossCode::Changed, "not JSON; the model sees it under `_raw`");
    let wrapped = Raw::parse(format!(r#"{{"_raw":{}}}"#, text.literal()));
    Ok(CallInput::Json(wrapped.unwrap_or_else(Raw::empty_object)))
}
