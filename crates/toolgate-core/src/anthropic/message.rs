//! The conversation: messages to turns, blocks to parts.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::block::Piece;
use super::content::{Block, Content};
use super::wire;
use crate::canon::{
    BadRequest, Call, CallInput, LossCode, Losses, Part, Request, ResultPart, Role, ToolName,
    ToolResult, Turn, max_parts, too_many_parts,
};
use crate::json::{self, Path, Raw, Slice, Text};
use crate::seal::{Opened, Sealed, Sealer};
use crate::upstream::generate_content::CodePart;

/// Reads messages, and collects the tools that the conversation mentions.
pub(super) struct Reader<'a, 's> {
    sealer: &'s Sealer,
    pub(super) losses: Losses,
    /// Tools that the conversation has brought in (`true`) or taken away, by their last mention.
    pub(super) mentioned: BTreeMap<Cow<'a, str>, bool>,
    /// Tools that are declared inside the conversation, with their place.
    pub(super) added: Vec<(String, Raw<'a>)>,
    pub(super) twins: Twins,
    body_len: usize,
    /// How many blocks may still come.
    blocks_left: usize,
}

/// Readable blocks whose original, a whole part of Gemini's, stands sealed in the same message.
/// The client gets both; Gemini gets the original only.
#[derive(Default)]
pub(super) struct Twins {
    pub(super) code: usize,
    pub(super) code_result: usize,
}

/// The string, which must be there and say something.
pub(super) fn required<'a>(
    given: Option<Text<'a>>,
    at: &Path<'_>,
) -> Result<Cow<'a, str>, BadRequest> {
    match given {
        None => Err(at.bad("is missing")),
        Some(text) if text.is_empty() => Err(at.bad("must not be empty")),
        Some(text) => Ok(text.into_cow()),
    }
}

impl<'a, 's> Reader<'a, 's> {
    pub(super) fn new(sealer: &'s Sealer, body_len: usize) -> Self {
        Self {
            sealer,
            losses: Losses::new(),
            mentioned: BTreeMap::new(),
            added: Vec::new(),
            twins: Twins::default(),
            body_len,
            blocks_left: max_parts(body_len),
        }
    }

    /// Length of the body.
    pub(super) fn body_len(&self) -> usize {
        self.body_len
    }

    /// Counts a block, of which a body may have so many.
    pub(super) fn count_block(&mut self, at: &Path<'_>) -> Result<(), BadRequest> {
        match self.blocks_left.checked_sub(1) {
            Some(left) => {
                self.blocks_left = left;
                Ok(())
            }
            None => Err(too_many_parts(self.body_len, &at.to_string())),
        }
    }

    /// Reads the system prompt, without the line that Claude Code puts before it for accounting:
    /// it differs between conversations and would keep Gemini from caching what follows.
    pub(super) fn system(&mut self, system: Slice<'a>) -> Result<Vec<Text<'a>>, BadRequest> {
        let at = Path::Root.field("system");
        let parts = self.parts(system, &at)?;
        let mut texts = texts(parts, &at, &mut self.losses);
        if let Some(first) = texts.first()
            && first.escaped().starts_with(ATTRIBUTION)
        {
            let rest =
                first.decode().split_once('\n').map(|(_, rest)| Text::new(rest.trim_start()));
            let detail = "the accounting line at its start was left out";
            self.losses.add(&at.index(0), LossCode::Ignored, detail);
            match rest {
                Some(rest) if !rest.is_empty() => texts[0] = rest,
                Some(_) | None => drop(texts.remove(0)),
            }
        }
        Ok(texts)
    }

    /// Reads the messages into the request's turns. The first `earlier` of them are those of its thread.
    pub(super) fn messages(
        &mut self,
        messages: Vec<wire::Message<'a>>,
        earlier: usize,
        request: &mut Request<'a>,
    ) -> Result<(), BadRequest> {
        let root = Path::Root;
        let (messages_at, thread_at) = (root.field("messages"), root.field("thread"));
        let earlier_at = thread_at.field("messages");
        if messages.is_empty() {
            return Err(messages_at.bad("must hold at least one message"));
        }
        let says = |field: &Option<Text<'_>>, word: &str| {
            field.as_ref().is_some_and(|text| text.decode() == word)
        };
        let last_user = messages.iter().rposition(|message| says(&message.role, "user"));
        request.turns.reserve(messages.len());
        for (index, message) in messages.into_iter().enumerate() {
            let at = match index.checked_sub(earlier) {
                Some(own) => messages_at.index(own),
                None => earlier_at.index(index),
            };
            let config = message.output_config.as_ref().and_then(Raw::fields);
            if config.is_some_and(|config| config.get("effort").is_some()) {
                let detail = "the effort of the whole request counts";
                let at = at.field("output_config");
                self.losses.add(&at.field("effort"), LossCode::Ignored, detail);
            }
            let role = required(message.role, &at.field("role"))?;
            let role = match &*role {
                "user" => Role::User,
                "assistant" => Role::Model,
                "system" => Role::Instruction,
                _ => {
                    return Err(at.field("role").bad("expected user, assistant or system"));
                }
            };
            let parts = match &message.content {
                Some(content) => self.parts(Slice::new(content), &at.field("content"))?,
                None if role == Role::Instruction => Vec::new(),
                None => return Err(at.field("content").bad("is missing")),
            };
            if role != Role::Instruction {
                request.turns.push(Turn { role, parts });
                continue;
            }
            // Said for one user turn only, and another has come since.
            let is_over = says(&message.clear_at, "next_user_message")
                && last_user.is_some_and(|last| last > index);
            if is_over || parts.is_empty() {
                continue;
            }
            if request.turns.is_empty() {
                request.system.extend(texts(parts, &at.field("content"), &mut self.losses));
            } else {
                request.turns.push(Turn { role, parts });
            }
        }
        Ok(())
    }

    /// Reads the content of a message.
    fn parts(&mut self, said: Slice<'a>, at: &Path<'_>) -> Result<Vec<Part<'a>>, BadRequest> {
        self.twins = Twins::default();
        let mut parts = Vec::new();
        match Content::read(said, at)? {
            Content::Text(text) => {
                self.count_block(at)?;
                if !text.is_empty() {
                    parts = vec![Part::text(text)];
                }
            }
            Content::Blocks(mut blocks) => {
                for index in 0.. {
                    self.count_block(at)?;
                    let at = at.index(index);
                    let Some(block) = blocks.next(&at, &mut self.losses)? else { break };
                    self.part(block, &at, &mut parts)?;
                }
            }
        }
        Ok(parts)
    }

    fn part(
        &mut self,
        block: Block<'a>,
        at: &Path<'_>,
        parts: &mut Vec<Part<'a>>,
    ) -> Result<(), BadRequest> {
        match &*block.kind {
            "thinking" => {
                if let Some(text) = block.thinking.filter(|text| !text.is_empty()) {
                    parts.push(Part::Thought { text, signature: None });
                }
                if let Some(signature) = block.signature {
                    self.sealed(signature, &at.field("signature"), parts);
                }
            }
            "redacted_thinking" => {
                if let Some(data) = block.data {
                    self.sealed(data, &at.field("data"), parts);
                }
            }
            "tool_use" => parts.push(Part::Call(self.call(block, at)?)),
            "tool_result" => parts.push(Part::Result(self.result(block, at)?)),
            "server_tool_use" | "mcp_tool_use" => self.server_call(&block, at, parts),
            "tool_addition" => self.tool_change(block.tool, true, at)?,
            "tool_removal" => self.tool_change(block.tool, false, at)?,
            kind if is_server_result(kind) => self.server_result(&block, at, parts),
            _ => {
                let mut pieces = Vec::new();
                self.pieces(block, at, &mut pieces)?;
                parts.extend(pieces.into_iter().map(|piece| match piece {
                    Piece::Text(text) => Part::text(text),
                    Piece::Media(media) => Part::Media(media),
                }));
            }
        }
        Ok(())
    }

    fn call(&mut self, block: Block<'a>, at: &Path<'_>) -> Result<Call<'a>, BadRequest> {
        let id = required(block.id, &at.field("id"))?;
        let name = required(block.name, &at.field("name"))?;
        let namespace = block.toolset_name.map(Text::into_cow);
        self.mentioned.insert(namespace.as_ref().unwrap_or(&name).clone(), true);
        let input = match block.input {
            Some(input) => input.raw(),
            None => Raw::empty_object(),
        };
        Ok(Call {
            id,
            upstream_id: None,
            tool: ToolName { namespace, name },
            input: CallInput::Json(input),
            signature: None,
        })
    }

    fn result(&mut self, block: Block<'a>, at: &Path<'_>) -> Result<ToolResult<'a>, BadRequest> {
        let call_id = required(block.tool_use_id, &at.field("tool_use_id"))?;
        let at = at.field("content");
        let mut pieces = Vec::new();
        match block.content.map(|said| Content::read(said, &at)).transpose()? {
            None => {}
            Some(Content::Text(text)) => pieces.push(Piece::Text(text)),
            Some(Content::Blocks(mut blocks)) => {
                for index in 0.. {
                    let at = at.index(index);
                    self.count_block(&at)?;
                    let Some(block) = blocks.next(&at, &mut self.losses)? else { break };
                    self.pieces(block, &at, &mut pieces)?;
                }
            }
        }
        let content = pieces.into_iter().map(|piece| match piece {
            Piece::Text(text) => ResultPart::Text(text),
            Piece::Media(media) => ResultPart::Media(media),
        });
        Ok(ToolResult {
            call_id: Some(call_id),
            tool: None,
            is_error: block.is_error,
            content: content.collect(),
            modifiers: Vec::new(),
        })
    }

    /// Takes a signature or a part that the client kept for us.
    fn sealed(&mut self, carrier: Text<'a>, at: &Path<'_>, parts: &mut Vec<Part<'a>>) {
        // Sent for a thought that Gemini did not sign.
        if carrier.is_empty() {
            return;
        }
        let opened = match carrier.into_cow() {
            Cow::Borrowed(text) => self.sealer.open(text),
            Cow::Owned(text) => match self.sealer.open(&text) {
                Opened::Ours(envelope) => Opened::Ours(envelope.into_owned()),
                Opened::Forged => Opened::Forged,
                Opened::Foreign => Opened::Foreign,
            },
        };
        let detail = match opened {
            Opened::Ours(envelope) => {
                if let Sealed::Part(part) = &envelope.on {
                    self.twins.expect(part);
                }
                parts.push(Part::Sealed(envelope));
                return;
            }
            Opened::Forged => "the signature was altered, or sealed with another key",
            Opened::Foreign => "the signature is another vendor's",
        };
        self.losses.add(at, LossCode::ForeignSignature, detail);
    }

    fn tool_change(
        &mut self,
        change: Option<Slice<'a>>,
        is_addition: bool,
        at: &Path<'_>,
    ) -> Result<(), BadRequest> {
        let at = at.field("tool");
        let change = change.ok_or_else(|| at.bad("is missing"))?;
        let change: wire::ToolChange<'a> = json::read(change.get(), &at, &mut self.losses)?;
        match &*required(change.kind, &at.field("type"))? {
            "tool_reference" => {
                let name = required(change.name, &at.field("name"))?;
                self.mentioned.insert(name, is_addition);
            }
            "tool_definition" if is_addition => {
                let at = at.field("definition");
                let definition = change.definition.ok_or_else(|| at.bad("is missing"))?;
                self.added.push((at.to_string(), definition));
            }
            other => {
                let detail = format_args!("a change of tools by `{other}` means nothing to Gemini");
                self.losses.add(&at, LossCode::Ignored, detail);
            }
        }
        Ok(())
    }

    /// Says that something was said to the model in other words.
    pub(super) fn retold(&mut self, kind: &str, at: &Path<'_>) {
        let detail =
            format_args!("a block of type `{kind}` has no equivalent; it was kept as text");
        self.losses.add(at, LossCode::Changed, detail);
    }
}

impl Twins {
    fn expect(&mut self, part: &Raw<'_>) {
        match CodePart::of(part) {
            Some(CodePart::Code) => self.code += 1,
            Some(CodePart::Result) => self.code_result += 1,
            None => {}
        }
    }
}

const ATTRIBUTION: &str = "x-anthropic-billing-header:";

/// `web_search_tool_result` and its kin, those of later versions too.
pub(super) fn is_server_result(kind: &str) -> bool {
    kind.ends_with("_tool_result")
}

/// The words of parts where nothing but words can stand.
fn texts<'a>(parts: Vec<Part<'a>>, at: &Path<'_>, losses: &mut Losses) -> Vec<Text<'a>> {
    let mut texts = Vec::with_capacity(parts.len());
    for part in parts {
        match part {
            Part::Text { text, .. } => texts.push(text),
            Part::Thought { .. }
            | Part::Media(_)
            | Part::Call(_)
            | Part::Result(_)
            | Part::Sealed(_)
            | Part::Gemini(_) => {
                let detail = "instructions are text; something else was left out";
                losses.add(at, LossCode::PartDropped, detail);
            }
        }
    }
    texts
}
