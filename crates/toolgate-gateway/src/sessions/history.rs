//! History of a request: the state of its conversation, in front of its own turns.

use std::collections::BTreeMap;

use bytes::Bytes;
use toolgate_core::anthropic::StoredTurn;
use toolgate_core::canon::{BadRequest, Losses, Part, Request, ToolChoice};
use toolgate_core::dialect::{DecodeOptions, Decoded};
use toolgate_core::gemini;
use toolgate_core::json::write;
use toolgate_core::responses::{self, Stored, StoredItems};
use toolgate_core::translate::{Dialect, Echo};

use super::conversation::ToolSet;
use super::items;

/// An item of a conversation's log: one of the Responses API, or one that holds a Gemini content.
#[derive(Clone, Debug)]
pub(crate) struct StoredItem {
    pub(crate) dialect: Dialect,
    pub(crate) json: String,
}

/// Stored items of the Responses API.
#[derive(Clone, Debug)]
pub(crate) enum ResponseItems {
    /// `input` of a stored request.
    Question(Bytes),
    /// `output` of a stored response.
    Answer(Bytes),
    Item(String),
}

/// History of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// Turns that were stored in several dialects, oldest first: each run of one dialect as a body.
    turns: Vec<(Dialect, String)>,
    /// Items of the Responses API that come right before the request's own.
    pub(super) items: Vec<ResponseItems>,
    /// Items that the request names by id.
    pub(super) references: BTreeMap<String, String>,
    /// Turns of a message thread, oldest first: request and answer.
    pub(super) thread: Vec<(Bytes, Bytes)>,
    /// Tools that the conversation remembers, for a request without tools, in the request's own dialect.
    tools: Option<ToolSet>,
    /// The same as a body of another dialect, or for a decoder that takes no stored tools.
    other_tools: Option<(Dialect, String)>,
    /// The choice of tools is one that the conversation remembers.
    has_old_choice: bool,
    /// Turns that are not stored any more.
    pub(super) losses: Losses,
}

impl History {
    /// History of a conversation. The items of the Responses API at its end are decoded together with a
    /// request of that API, so that they may form one turn.
    pub(super) fn of_conversation(stored: Vec<StoredItem>, dialect: Dialect) -> Self {
        let mut history = Self::default();
        history.push_conversation(stored, dialect);
        history
    }

    /// Adds the items of a conversation.
    pub(super) fn push_conversation(&mut self, mut stored: Vec<StoredItem>, dialect: Dialect) {
        if dialect == Dialect::Responses {
            let own = stored.iter().rev().take_while(|it| it.dialect == Dialect::Responses).count();
            let own = stored.split_off(stored.len() - own);
            self.items.extend(own.into_iter().map(|item| ResponseItems::Item(item.json)));
        }
        let runs = stored.chunk_by(|one, next| one.dialect == next.dialect);
        self.turns.extend(runs.filter_map(run_body));
    }

    /// Adds the tools that the conversation remembers. `has_choice`: the request has a choice of its own.
    pub(super) fn set_tools(&mut self, tools: Option<ToolSet>, dialect: Dialect, has_choice: bool) {
        let Some(tools) = tools else { return };
        self.has_old_choice = !has_choice && (tools.choice.is_some() || dialect == Dialect::Gemini);
        if dialect == Dialect::Responses && tools.dialect == Dialect::Responses {
            self.tools = Some(tools);
        } else {
            self.other_tools = Some((tools.dialect, tools.body()));
        }
    }

    /// The same history, without tools.
    pub(super) fn without_tools(&self) -> Self {
        Self { tools: None, other_tools: None, has_old_choice: false, ..self.clone() }
    }

    /// Turns that are not stored any more.
    pub(crate) fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Whether there are no turns.
    pub(crate) fn is_empty(&self) -> bool {
        self.turns.is_empty() && self.items.is_empty() && self.thread.is_empty()
    }

    /// Number of bytes that have to be decoded.
    pub(crate) fn size(&self) -> usize {
        let turns = self.turns.iter().map(|(_, body)| body.len());
        let items = self.items.iter().map(ResponseItems::len);
        let references = self.references.values().map(String::len);
        let thread = self.thread.iter().map(|(question, answer)| question.len() + answer.len());
        let tools = self.tools.as_ref().map_or(0, |it| it.tools.len())
            + self.other_tools.as_ref().map_or(0, |(_, body)| body.len());
        turns.chain(items).chain(references).chain(thread).sum::<usize>() + tools
    }

    /// State for the decoder of the Responses API.
    pub(crate) fn stored(&self) -> Stored<'_> {
        let references = self.references.iter();
        Stored {
            items: self.items.iter().map(ResponseItems::stored).collect(),
            references: references.map(|(id, item)| (id.as_str(), item.as_str())).collect(),
            tools: self.tools.as_ref().map(|it| &*it.tools),
            tool_choice: self.tools.as_ref().and_then(|it| it.choice.as_deref()),
        }
    }

    /// Turns for the decoder of message threads.
    pub(crate) fn stored_turns(&self) -> Vec<StoredTurn<'_>> {
        let turns = self.thread.iter();
        let texts =
            turns.map(|(question, answer)| (text_or_empty(question), text_or_empty(answer)));
        texts.map(|(question, answer)| StoredTurn { question, answer }).collect()
    }

    /// Puts the turns of other dialects in front of a decoded request, and completes its tools.
    pub(crate) fn complete<'a>(
        &'a self,
        decoded: &mut Decoded<'a, Echo>,
        options: DecodeOptions<'_>,
    ) -> Result<(), BadRequest> {
        let request = &mut decoded.request;
        decoded.losses.extend(self.losses.clone());
        let (mut turns, mut system) = (Vec::new(), Vec::new());
        for (dialect, body) in &self.turns {
            let (earlier, losses) = decode(*dialect, body, options)?;
            turns.extend(earlier.turns);
            system.extend(earlier.system);
            decoded.losses.extend(losses);
        }
        if !turns.is_empty() {
            turns.append(&mut request.turns);
            system.append(&mut request.system);
            (request.turns, request.system) = (turns, system);
        }
        if let Some((dialect, body)) = &self.other_tools {
            let (remembered, _) = decode(*dialect, body, options)?;
            request.tools = remembered.tools;
            if matches!(request.tool_choice, ToolChoice::Unset) {
                request.tool_choice = remembered.tool_choice;
            }
        }
        if self.has_old_choice && is_forced(&request.tool_choice) && only_has_results(request) {
            request.tool_choice = ToolChoice::Unset;
        }
        Ok(())
    }

    /// All items of the Responses API, each on its own.
    pub(crate) fn split_items(&self) -> Result<Vec<String>, BadRequest> {
        let mut all = Vec::new();
        for items in &self.items {
            let split = items.stored().split()?;
            all.extend(
                split.iter().filter(|it| !items::is_trigger(it)).map(|it| it.get().to_owned()),
            );
        }
        Ok(all)
    }
}

impl ResponseItems {
    fn len(&self) -> usize {
        match self {
            Self::Question(json) | Self::Answer(json) => json.len(),
            Self::Item(json) => json.len(),
        }
    }

    fn stored(&self) -> StoredItems<'_> {
        match self {
            Self::Question(json) => StoredItems::Input(text_or_empty(json)),
            Self::Answer(json) => StoredItems::Output(text_or_empty(json)),
            Self::Item(json) => StoredItems::Item(json),
        }
    }
}

/// Stored JSON. The gateway wrote it, as UTF-8.
fn text_or_empty(json: &[u8]) -> &str {
    std::str::from_utf8(json).unwrap_or("{}")
}

/// A run of items of one dialect, as a body of that dialect.
fn run_body(run: &[StoredItem]) -> Option<(Dialect, String)> {
    let dialect = run.first()?.dialect;
    let mut out = match dialect {
        Dialect::Gemini => b"{\"contents\":[".to_vec(),
        Dialect::Responses => b"{\"model\":\"stored\",\"input\":[".to_vec(),
        Dialect::Anthropic | Dialect::Chat => return None,
    };
    for item in run {
        write::comma(&mut out);
        match dialect {
            Dialect::Gemini => out.extend_from_slice(items::content_of(&item.json).as_bytes()),
            Dialect::Anthropic | Dialect::Chat | Dialect::Responses => {
                out.extend_from_slice(item.json.as_bytes());
            }
        }
    }
    out.extend_from_slice(b"]}");
    Some((dialect, String::from_utf8(out).ok()?))
}

fn decode<'a>(
    dialect: Dialect,
    body: &'a str,
    options: DecodeOptions<'_>,
) -> Result<(Request<'a>, Losses), BadRequest> {
    if dialect == Dialect::Gemini {
        let decoded = gemini::decode_request(body, "stored", false, &options)?;
        return Ok((decoded.request, decoded.losses));
    }
    let decoded = responses::decode_request(body, &options)?;
    Ok((decoded.request, decoded.losses))
}

fn is_forced(choice: &ToolChoice<'_>) -> bool {
    match choice {
        ToolChoice::Any | ToolChoice::One(_) => true,
        ToolChoice::Allowed { required, .. } => *required,
        ToolChoice::Auto | ToolChoice::None | ToolChoice::Unset => false,
    }
}

/// Whether the last turn has nothing but results. A model that was forced to call is not forced again when it
/// gets the results.
fn only_has_results(request: &Request<'_>) -> bool {
    let parts = request.turns.last().map(|turn| turn.parts.as_slice()).unwrap_or_default();
    !parts.is_empty() && parts.iter().all(|part| matches!(part, Part::Result(_)))
}
