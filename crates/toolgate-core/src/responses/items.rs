//! Input items: the conversation as the client tells it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::content::{Piece, decode_content, decode_output, media_at};
use super::echo::ItemReference;
use super::hosted::{TOOL_SEARCH, arguments_of_action, arguments_of_actions};
use super::tools::Toolbox;
use super::wire::{Item, Reasoning, Str, TextConfig};
use crate::canon::{
    BadRequest, Call, CallInput, DecodeOptions, LossCode, Losses, Media, MediaSource, Part,
    ResultPart, Role, ToolName, ToolResult, Turn,
};
use crate::json::{self, Kind, Path, Raw, Text};
use crate::seal::{Envelope, Opened, Sealed};

/// What the input items say.
#[derive(Debug)]
pub(super) struct Conversation<'a, 'o> {
    options: &'o DecodeOptions<'o>,
    pub(super) system: Vec<Text<'a>>,
    pub(super) turns: Vec<Turn<'a>>,
    pub(super) toolbox: Toolbox<'a>,
    pub(super) references: Vec<ItemReference>,
    pub(super) compact: bool,
    /// What `configuration_update` items set; the last one counts.
    pub(super) reasoning: Option<Reasoning<'a>>,
    pub(super) text: Option<TextConfig<'a>>,
    /// Nobody but the client's program has spoken yet.
    leading: bool,
    /// Item ids of `local_shell_call`s with their call ids: outputs may name either.
    local_shells: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
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
            local_shells: BTreeMap::new(),
        }
    }

    /// Reads `input`: a string, or items.
    pub(super) fn read_input(
        &mut self,
        input: &Raw<'a>,
        losses: &mut Losses,
    ) -> Result<(), BadRequest> {
        let at = Path::Root.field("input");
        match input.kind() {
            Kind::String => {
                if let Some(text) = input.clone().into_text().filter(|text| !text.is_empty()) {
                    self.push(Role::User, Part::text(text));
                }
                Ok(())
            }
            Kind::Array => self.read_items(input, &at, losses),
            Kind::Bool | Kind::Null | Kind::Number | Kind::Object => {
                Err(at.bad("expected a string or an array of items"))
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
            Kind::Array => self.read_items(instructions, &at, losses),
            Kind::Bool | Kind::Null | Kind::Number | Kind::Object => {
                Err(at.bad("expected a string or an array of items"))
            }
        }
    }

    fn read_items(
        &mut self,
        array: &Raw<'a>,
        at: &Path<'_>,
        losses: &mut Losses,
    ) -> Result<(), BadRequest> {
        let json = array.as_borrowed().ok_or_else(|| at.bad("cannot be read"))?;
        let items: Vec<Item<'a>> = json::read(json, at, losses)?;
        let mut raws: Option<Vec<Raw<'a>>> = None;
        for (index, item) in items.into_iter().enumerate() {
            let at = at.index(index);
            if let Some(kind) = self.read_item(item, index, &at, losses)? {
                let raws =
                    raws.get_or_insert_with(|| serde_json::from_str(json).unwrap_or_default());
                if let Some(raw) = raws.get(index) {
                    let text = Text::new(&format!("{kind}: {}", raw.compact()));
                    self.push(Role::User, Part::text(text));
                }
                losses.push(at.loss(
                    LossCode::Changed,
                    format!("`{kind}` has no equivalent; the model reads its JSON as text"),
                ));
            }
        }
        Ok(())
    }

    /// Reads one item; gives its type where it can only be kept as text.
    fn read_item(
        &mut self,
        item: Item<'a>,
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
            "message" => self.read_message(&item, at, losses)?,
            "function_call" => {
                let input =
                    decode_arguments(item.arguments.as_ref(), &at.field("arguments"), losses)?;
                self.push_call(item, input, at)?;
            }
            "custom_tool_call" => {
                let at_input = at.field("input");
                let input = item.input.clone().map_or(Some(Text::EMPTY), Raw::into_text);
                let input = input.ok_or_else(|| at_input.bad("expected a string"))?;
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
            "reasoning" => self.read_reasoning(&item, at, losses)?,
            "compaction" | "compaction_summary" => self.read_compaction(&item, at, losses)?,
            "compaction_trigger" => self.compact = true,
            "configuration_update" => {
                self.reasoning = item.reasoning.or_else(|| self.reasoning.take());
                self.text = item.text.or_else(|| self.text.take());
            }
            "item_reference" => {
                let id = item.id.ok_or_else(|| at.field("id").bad("missing"))?.0;
                losses.push(at.loss(
                    LossCode::PartDropped,
                    format!("`{id}` is only a reference, and nothing is stored under it"),
                ));
                self.references.push(ItemReference { index, id: id.into_owned() });
            }
            "image_generation_call" => self.read_image(item, at)?,
            "code_interpreter_call" if self.is_carried() => {}
            "web_search_call" => {
                if !self.is_carried() {
                    losses.push(at.loss(
                        LossCode::PartDropped,
                        "a search that was made before; the words after it hold what it found",
                    ));
                }
            }
            "mcp_list_tools" => losses.push(at.loss(
                LossCode::PartDropped,
                "remote MCP servers are not called by toolgate; their tools are left out",
            )),
            _ => return Ok(Some(kind)),
        }
        Ok(None)
    }

    /// Adds to the turn of whoever speaks.
    fn push(&mut self, role: Role, part: Part<'a>) {
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

    /// Whether the item that comes next is only shown: the part itself came sealed before it.
    fn is_carried(&self) -> bool {
        let last = self.turns.last().filter(|turn| turn.role == Role::Model);
        matches!(
            last.and_then(|turn| turn.parts.last()),
            Some(Part::Sealed(Envelope { on: Sealed::Part(_), .. }))
        )
    }

    fn read_message(
        &mut self,
        item: &Item<'a>,
        at: &Path<'_>,
        losses: &mut Losses,
    ) -> Result<(), BadRequest> {
        let role = match item.role.as_ref().map(|role| &*role.0) {
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
                (Role::Instruction, Piece::Media(_)) if self.leading => losses.push(
                    at.loss(LossCode::PartDropped, "Gemini's system instruction holds words only"),
                ),
                (role, piece) => self.push(role, piece.into_part()),
            }
        }
        Ok(())
    }

    fn push_call(
        &mut self,
        item: Item<'a>,
        input: CallInput<'a>,
        at: &Path<'_>,
    ) -> Result<(), BadRequest> {
        let name = item.name.ok_or_else(|| at.field("name").bad("missing"))?.0;
        let tool = ToolName { namespace: item.namespace.map(|it| it.0), name };
        let id = item.call_id.or(item.id).ok_or_else(|| at.field("call_id").bad("missing"))?.0;
        self.push(
            Role::Model,
            Part::Call(Call { id, upstream_id: None, tool, input, signature: None }),
        );
        Ok(())
    }

    fn push_result(
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

    fn read_output(
        &mut self,
        item: Item<'a>,
        at: &Path<'_>,
        losses: &mut Losses,
    ) -> Result<(), BadRequest> {
        let content = decode_output(item.output.as_ref(), &at.field("output"), losses)?;
        let namespace = item.namespace.map(|it| it.0);
        let tool = item.name.map(|name| ToolName { namespace, name: name.0 });
        let call_id = item.call_id.map(|id| id.0);
        if call_id.is_none() && tool.is_none() {
            return Err(at.field("call_id").bad("missing"));
        }
        self.push_result(call_id, tool, false, content);
        Ok(())
    }

    fn read_hosted_call(
        &mut self,
        kind: &str,
        mut item: Item<'a>,
        at: &Path<'_>,
        losses: &mut Losses,
    ) -> Result<(), BadRequest> {
        let arguments = match kind {
            "apply_patch_call" => item.operation.clone(),
            "computer_call" => arguments_of_actions(item.action.as_ref(), item.actions.as_ref()),
            "tool_search_call" => item.arguments.clone(),
            _ => item.action.as_ref().and_then(arguments_of_action),
        };
        let input = match arguments {
            Some(text) if text.kind() == Kind::String => {
                decode_arguments(Some(&text), &at.field("arguments"), losses)?
            }
            Some(arguments) => CallInput::Json(arguments),
            None => CallInput::Json(Raw::empty_object()),
        };
        if kind == TOOL_SEARCH_CALL && item.call_id.is_none() {
            losses.push(at.loss(LossCode::PartDropped, "a search on somebody else's server"));
            return Ok(());
        }
        if kind == "local_shell_call"
            && let (Some(id), Some(call_id)) = (&item.id, &item.call_id)
        {
            self.local_shells.insert(id.0.clone(), call_id.0.clone());
        }
        let name = match kind {
            "local_shell_call" => "local_shell",
            "shell_call" => "shell",
            "apply_patch_call" => "apply_patch",
            "computer_call" => "computer",
            _ => TOOL_SEARCH,
        };
        item.name = Some(Str(Cow::Borrowed(name)));
        self.push_call(item, input, at)
    }

    fn read_hosted_output(
        &mut self,
        kind: &str,
        item: Item<'a>,
        at: &Path<'_>,
        losses: &mut Losses,
    ) -> Result<(), BadRequest> {
        let id = item.call_id.or(item.id).ok_or_else(|| at.field("call_id").bad("missing"))?.0;
        let id = self.local_shells.get(&id).cloned().unwrap_or(id);
        let failed = item.status.as_ref().is_some_and(|status| status.0 == "failed");
        let at_output = at.field("output");
        let content = match (kind, item.output) {
            ("computer_call_output", Some(shot)) => screenshot(&shot, &at_output, losses)?,
            ("apply_patch_call_output", None) => {
                let said = item.status.map_or(Cow::Borrowed("completed"), |status| status.0);
                vec![ResultPart::Text(Text::new(&said))]
            }
            (_, output) => decode_output(output.as_ref(), &at_output, losses)?,
        };
        self.push_result(Some(id), None, failed, content);
        Ok(())
    }

    /// Declares what a search found, and tells the model its names.
    fn read_found_tools(
        &mut self,
        item: Item<'a>,
        at: &Path<'_>,
        losses: &mut Losses,
    ) -> Result<(), BadRequest> {
        let mut found = Toolbox::default();
        if let Some(tools) = &item.tools {
            let at = at.field("tools");
            found.declare(tools, &at, true, &mut Losses::new())?;
            self.toolbox.declare(tools, &at, true, losses)?;
        }
        let Some(call_id) = item.call_id else { return Ok(()) };
        let names: Vec<_> = found.names().map(ToString::to_string).collect();
        let said = match names.as_slice() {
            [] => "no tools found".to_owned(),
            names => format!("these tools can be called now: {}", names.join(", ")),
        };
        let content = vec![ResultPart::Text(Text::new(&said))];
        self.push_result(Some(call_id.0), None, false, content);
        Ok(())
    }

    fn read_reasoning(
        &mut self,
        item: &Item<'a>,
        at: &Path<'_>,
        losses: &mut Losses,
    ) -> Result<(), BadRequest> {
        for (field, pieces) in [("summary", &item.summary), ("content", &item.content)] {
            let Some(pieces) = pieces else { continue };
            for piece in decode_content(pieces, &at.field(field), losses)? {
                match piece {
                    Piece::Text(text) => {
                        self.push(Role::Model, Part::Thought { text, signature: None });
                    }
                    Piece::Media(media) => self.push(Role::Model, Part::Media(media)),
                }
            }
        }
        let Some(sealed) = &item.encrypted_content else { return Ok(()) };
        let at = at.field("encrypted_content");
        let sealed = sealed.clone().into_text().map(|text| (text, sealed.as_borrowed()));
        let (text, borrowed) = sealed.ok_or_else(|| at.bad("expected a string"))?;
        match self.open(&text, borrowed) {
            Some(envelope) => self.push(Role::Model, Part::Sealed(envelope)),
            None if text.is_empty() => {}
            None => losses.push(at.loss(
                LossCode::ForeignSignature,
                "not sealed by this gateway; it means nothing to Gemini",
            )),
        }
        Ok(())
    }

    /// Opens an envelope, which borrows from the body where the literal has no escapes.
    fn open(&self, text: &Text<'a>, literal: Option<&'a str>) -> Option<Envelope<'a>> {
        let plain = literal
            .and_then(|literal| literal.strip_prefix('"')?.strip_suffix('"'))
            .filter(|inner| memchr::memchr(b'\\', inner.as_bytes()).is_none());
        let opened = match plain {
            Some(plain) => self.options.sealer.open(plain),
            None => match self.options.sealer.open(&text.decode()) {
                Opened::Ours(envelope) => Opened::Ours(owned(envelope)),
                Opened::Forged | Opened::Foreign => Opened::Foreign,
            },
        };
        match opened {
            Opened::Ours(envelope) => Some(envelope),
            Opened::Forged | Opened::Foreign => None,
        }
    }

    fn read_compaction(
        &mut self,
        item: &Item<'a>,
        at: &Path<'_>,
        losses: &mut Losses,
    ) -> Result<(), BadRequest> {
        let at = at.field("encrypted_content");
        let sealed = item.encrypted_content.clone().and_then(Raw::into_text);
        let sealed = sealed.ok_or_else(|| at.bad("expected a string"))?;
        match self.options.sealer.open_text(&sealed.decode()) {
            Some(summary) => {
                let said = format!("Summary of the conversation so far:\n\n{summary}");
                self.push_user(Text::new(&said));
            }
            None => losses.push(at.loss(
                LossCode::ForeignSignature,
                "a summary that somebody else encrypted: what it says is lost",
            )),
        }
        Ok(())
    }

    /// A picture that the model made.
    fn read_image(&mut self, item: Item<'a>, at: &Path<'_>) -> Result<(), BadRequest> {
        let Some(result) = item.result else { return Ok(()) };
        if self.is_carried() {
            return Ok(());
        }
        let data = result.into_text().ok_or_else(|| at.field("result").bad("expected a string"))?;
        let format = item.output_format.map_or(Cow::Borrowed("png"), |format| format.0);
        let media = Media {
            mime: Some(Cow::Owned(format!("image/{format}"))),
            source: MediaSource::Inline(data),
            name: None,
            modifiers: Vec::new(),
        };
        self.push(Role::Model, Part::Media(media));
        Ok(())
    }
}

const TOOL_SEARCH_CALL: &str = "tool_search_call";

/// Reads a call's `arguments`: JSON in a string.
///
/// What is not JSON (a model's slip that the client kept, R45) goes into an object, so that the
/// conversation can be told on.
fn decode_arguments<'a>(
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
    losses.push(at.loss(LossCode::Changed, "not JSON; the model sees it under `_raw`"));
    let wrapped = Raw::parse(format!(r#"{{"_raw":{}}}"#, text.literal()));
    Ok(CallInput::Json(wrapped.unwrap_or_else(Raw::empty_object)))
}

/// A `computer_screenshot`.
fn screenshot<'a>(
    shot: &Raw<'a>,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<Vec<ResultPart<'a>>, BadRequest> {
    let Some(json) = shot.as_borrowed().filter(|_| shot.kind() == Kind::Object) else {
        return decode_output(Some(shot), at, losses);
    };
    let fields: json::Fields<'a> = json::read(json, at, losses)?;
    match fields.get("image_url").cloned().and_then(Raw::into_text) {
        Some(address) => Ok(vec![ResultPart::Media(media_at(address, None))]),
        None => {
            losses.push(at.loss(LossCode::PartDropped, "a picture at OpenAI, not to be read here"));
            Ok(Vec::new())
        }
    }
}

fn owned(envelope: Envelope<'_>) -> Envelope<'static> {
    let on = match envelope.on {
        Sealed::Call { token, signature } => {
            Sealed::Call { token: token.into_owned().into(), signature: signature.into_owned() }
        }
        Sealed::Text { len, signature } => Sealed::Text { len, signature: signature.into_owned() },
        Sealed::Thought { len, signature } => {
            Sealed::Thought { len, signature: signature.into_owned() }
        }
        Sealed::Part(raw) => Sealed::Part(raw.into_owned()),
    };
    Envelope { on, issuer: envelope.issuer }
}
