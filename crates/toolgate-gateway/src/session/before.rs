//! What was said before, put in front of what is said now.

use std::borrow::Cow;

use toolgate_core::canon::{BadRequest, DecodeOptions, Losses, Part, Request, ToolChoice};
use toolgate_core::json::{Raw, write};
use toolgate_core::translate::Dialect;
use toolgate_core::{gemini, responses};

use super::items;

/// Something that was said, as an item: one of the Responses API, or one that holds a content of
/// Gemini's.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) dialect: Dialect,
    pub(crate) json: String,
}

impl Said {
    /// What its dialect said.
    fn words(&self) -> Cow<'_, str> {
        match self.dialect {
            Dialect::Gemini => Cow::Owned(items::content_of(&self.json)),
            Dialect::Anthropic | Dialect::Chat | Dialect::Responses => Cow::Borrowed(&self.json),
        }
    }
}

/// What does not stand in the body, as bodies of the dialects that said it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Before {
    /// Oldest first.
    pub(crate) turns: Vec<(Dialect, String)>,
    /// The tools that the conversation remembers, for a request that has none.
    pub(crate) tools: Option<(Dialect, String)>,
    /// Whether the choice of tools is one that the conversation remembers.
    pub(crate) old_choice: bool,
    /// What was said and is no longer there.
    pub(crate) losses: Losses,
    /// How many messages were put before the client's own, in its body.
    pub(crate) earlier: usize,
}

impl Before {
    /// What was said, each run of one dialect as one body.
    pub(super) fn new(said: &[Said]) -> Self {
        let runs = said.chunk_by(|one, next| one.dialect == next.dialect);
        let body = |run: &[Said]| {
            let mut out = match run.first()?.dialect {
                Dialect::Gemini => b"{\"contents\":[".to_vec(),
                Dialect::Responses => b"{\"model\":\"stored\",\"input\":[".to_vec(),
                Dialect::Anthropic | Dialect::Chat => return None,
            };
            for said in run {
                write::comma(&mut out);
                out.extend_from_slice(said.words().as_bytes());
            }
            out.extend_from_slice(b"]}");
            Some((run.first()?.dialect, String::from_utf8(out).ok()?))
        };
        Self { turns: runs.filter_map(body).collect(), ..Self::default() }
    }

    /// What was said, one by one again.
    pub(super) fn said(&self) -> Vec<Said> {
        let mut said = Vec::new();
        for (dialect, body) in &self.turns {
            let name = match dialect {
                Dialect::Gemini => "contents",
                Dialect::Anthropic | Dialect::Chat | Dialect::Responses => "input",
            };
            let fields = items::fields_of(body.as_bytes());
            let all = fields.get(name).and_then(Raw::items).unwrap_or_default();
            said.extend(all.iter().map(|it| Said { dialect: *dialect, json: it.get().to_owned() }));
        }
        said
    }
}

/// Puts what was said before in front of a request.
pub(crate) fn splice<'a>(
    before: &'a Before,
    request: &mut Request<'a>,
    options: DecodeOptions<'_>,
) -> Result<Losses, BadRequest> {
    let mut losses = before.losses.clone();
    let mut turns = Vec::new();
    let mut system = Vec::new();
    for (dialect, body) in &before.turns {
        let (earlier, mut lost) = decode(*dialect, body, options)?;
        turns.extend(earlier.turns);
        system.extend(earlier.system);
        losses.append(&mut lost);
    }
    if !turns.is_empty() {
        turns.append(&mut request.turns);
        system.append(&mut request.system);
        (request.turns, request.system) = (turns, system);
    }
    if let Some((dialect, body)) = &before.tools {
        let (remembered, _) = decode(*dialect, body, options)?;
        request.tools = remembered.tools;
        if matches!(request.tool_choice, ToolChoice::Unset) {
            request.tool_choice = remembered.tool_choice;
        }
    }
    if before.old_choice && is_forced(&request.tool_choice) && only_brings_results(request) {
        request.tool_choice = ToolChoice::Unset;
    }
    Ok(losses)
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

/// A model that had to call is not made to call again when it gets the results.
fn only_brings_results(request: &Request<'_>) -> bool {
    let parts = request.turns.last().map(|turn| turn.parts.as_slice()).unwrap_or_default();
    !parts.is_empty() && parts.iter().all(|part| matches!(part, Part::Result(_)))
}
