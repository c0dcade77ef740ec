//! Requests that refer to stored state: an earlier response, a conversation, items by their ids.
//!
//! The body is read first ([`parse_request`](super::parse_request)); it names the state. The state is decoded
//! together with the body, so that a conversation means the same whether a client repeats it or refers to it.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;

use super::echo::Echo;
use super::items::{Conversation, is_trigger};
use super::request::decode_parsed;
use super::wire::{Body, Input, Item};
use crate::canon::{BadRequest, Losses};
use crate::dialect::{DecodeOptions, Decoded};
use crate::json::{self, Element, Kind, Path, Placed, Raw};

/// A request body that has been read.
#[derive(Debug)]
pub struct Parsed<'a> {
    pub(super) source: &'a str,
    pub(super) body: Body<'a>,
    /// Place of `input` in the source.
    pub(super) place: Option<Range<usize>>,
    pub(super) conversation: Option<String>,
    pub(super) losses: Losses,
    /// The request is for a summary, as if its input ended in a `compaction_trigger`.
    pub(super) summarizes: bool,
}

/// Stored state that a request refers to.
#[derive(Clone, Debug, Default)]
pub struct Stored<'a> {
    /// Items that come before the input, oldest first.
    pub items: Vec<StoredItems<'a>>,
    /// Items that the input names only, by id.
    pub references: BTreeMap<&'a str, &'a str>,
    /// `tools`, for a body without them.
    pub tools: Option<&'a str>,
    /// `tool_choice`, for a body without it.
    pub tool_choice: Option<&'a str>,
}

/// Stored items.
#[derive(Clone, Copy, Debug)]
pub enum StoredItems<'a> {
    /// `input` of a stored request body.
    Input(&'a str),
    /// `output` of a stored response object.
    Output(&'a str),
    /// One item.
    Item(&'a str),
}

impl<'a> Parsed<'a> {
    /// `previous_response_id`.
    pub fn previous_response_id(&self) -> Option<&str> {
        self.body.previous_response_id.as_ref().map(|id| &*id.0)
    }

    /// `conversation`, or its `id`.
    pub fn conversation(&self) -> Option<&str> {
        self.conversation.as_deref()
    }

    /// `tools`, as they were given.
    pub fn tools(&self) -> Option<&str> {
        self.body.tools.as_ref().map(Raw::get)
    }

    /// `tool_choice`, as it was given.
    pub fn tool_choice(&self) -> Option<&str> {
        self.body.tool_choice.as_ref().map(Raw::get)
    }

    /// `background`.
    pub fn is_background(&self) -> bool {
        self.body.background == Some(true)
    }

    /// `generate: false`.
    pub fn is_prewarm(&self) -> bool {
        self.body.generate == Some(false)
    }

    /// Ids of the items that the input names only.
    pub fn references(&self) -> Vec<String> {
        self.items().iter().filter_map(|item| reference(item)).collect()
    }

    /// Whether items of the input have ids of their own.
    pub fn has_item_ids(&self) -> bool {
        self.items().iter().any(|item| item.id.is_some())
    }

    /// Whether the input is more than a request for a summary.
    pub fn has_input(&self) -> bool {
        match &self.body.input {
            Some(Placed(Input::Text(text))) => !text.is_empty(),
            Some(Placed(Input::Items(items))) => items.iter().any(|item| !is_trigger(item)),
            None => false,
        }
    }

    /// Turns the request into one for a summary of its conversation, in one piece and not stored.
    #[must_use]
    pub fn into_summary(mut self) -> Self {
        self.summarizes = true;
        (self.body.stream, self.body.background, self.body.store) = (None, None, None);
        match &mut self.body.input {
            Some(Placed(Input::Items(items))) => items.retain(|item| !is_trigger(item)),
            Some(Placed(Input::Text(_))) | None => {}
        }
        self
    }

    /// Decodes the request, with the state that it refers to.
    pub fn decode(
        self,
        stored: &Stored<'a>,
        options: &DecodeOptions<'_>,
    ) -> Result<Decoded<'a, Echo>, BadRequest> {
        decode_parsed(self, stored, *options)
    }

    fn items(&self) -> &[Element<Item<'a>>] {
        match &self.body.input {
            Some(Placed(Input::Items(items))) => items,
            Some(Placed(Input::Text(_))) | None => &[],
        }
    }
}

impl<'a> Stored<'a> {
    /// Number of bytes.
    pub fn size(&self) -> usize {
        let items = self.items.iter().map(|items| items.json().len());
        let references = self.references.values().map(|item| item.len());
        let tools = self.tools.map_or(0, str::len);
        items.chain(references).sum::<usize>() + tools
    }
}

impl<'a> StoredItems<'a> {
    /// The JSON that holds them.
    pub fn json(&self) -> &'a str {
        match self {
            Self::Input(json) | Self::Output(json) | Self::Item(json) => json,
        }
    }

    /// Splits them into items.
    pub fn split(&self) -> Result<Vec<Raw<'a>>, BadRequest> {
        match self {
            Self::Input(body) => super::input_items(body),
            Self::Output(_) => {
                let output = self.array("output", &Path::Root)?;
                let items = output.map(|output| json::look(output, &Path::Root)).transpose()?;
                Ok(items.unwrap_or_default())
            }
            Self::Item(item) => Ok(vec![json::look(item, &Path::Root)?]),
        }
    }

    /// A member that is an array; `None` where there is none.
    fn array(&self, name: &str, at: &Path<'_>) -> Result<Option<&'a str>, BadRequest> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Holder<'a> {
            #[serde(borrow)]
            input: Option<Raw<'a>>,
            output: Option<Raw<'a>>,
        }
        let holder: Holder<'a> = json::look(self.json(), at)?;
        let member = if name == "input" { holder.input } else { holder.output };
        Ok(member.filter(|it| it.kind() == Kind::Array).and_then(|it| it.as_borrowed()))
    }
}

impl<'a> Conversation<'a, '_> {
    /// Reads the items that come before the input.
    pub(super) fn read_stored(
        &mut self,
        stored: &Stored<'a>,
        losses: &mut Losses,
    ) -> Result<(), BadRequest> {
        self.stored.clone_from(&stored.references);
        let root = Path::Root;
        let at = root.field("stored");
        for (index, items) in stored.items.iter().enumerate() {
            self.read_stored_items(*items, &at.index(index), losses)?;
        }
        Ok(())
    }

    fn read_stored_items(
        &mut self,
        items: StoredItems<'a>,
        at: &Path<'_>,
        losses: &mut Losses,
    ) -> Result<(), BadRequest> {
        let (name, array) = match items {
            StoredItems::Input(_) => ("input", items.array("input", at)?),
            StoredItems::Output(_) => ("output", items.array("output", at)?),
            StoredItems::Item(json) => return self.read_stored_item(json, at, losses),
        };
        let Some(array) = array else {
            // An input in one string is a message of the user.
            for item in items.split()? {
                if let Some(text) =
                    item.fields().and_then(|it| it.get("content")?.clone().into_text())
                {
                    self.push_user(text.into_owned());
                }
            }
            return Ok(());
        };
        let at = at.field(name);
        let mut read: Vec<Element<Item<'a>>> = json::read(array, &at, losses)?;
        // A request for a summary was for that turn only.
        if read.last().is_some_and(|item| is_trigger(item)) {
            read.pop();
        }
        let raws = || serde_json::from_str(array).unwrap_or_default();
        self.read_items(read, raws, &at, losses)
    }
}

impl<'a> Conversation<'a, '_> {
    /// Reads one stored item.
    pub(super) fn read_stored_item(
        &mut self,
        json: &'a str,
        at: &Path<'_>,
        losses: &mut Losses,
    ) -> Result<(), BadRequest> {
        let item: Element<Item<'a>> = json::read(json, at, losses)?;
        let raws = || serde_json::from_str(json).into_iter().collect();
        self.read_items(vec![item], raws, at, losses)
    }
}

/// The id that an item only names.
fn reference(item: &Item<'_>) -> Option<String> {
    let is_reference = match &item.kind {
        Some(kind) => kind.0 == "item_reference",
        None => item.role.is_none(),
    };
    let id = item.id.as_ref().filter(|_| is_reference)?;
    Some(id.as_text()?.decode().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::responses::{decode_request, parse_request};
    use crate::seal::Sealer;

    const CALL: &str = r#"{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}"#;
    const RESULT: &str = r#"{"type":"function_call_output","call_id":"c","output":"1"}"#;

    /// A stored conversation decodes as if the client had repeated it.
    #[track_caller]
    fn check(stored: &Stored<'_>, body: &str, repeated: &str) {
        let sealer = Sealer::default();
        let options = DecodeOptions { sealer: &sealer };
        let decoded = parse_request(body).unwrap().decode(stored, &options).unwrap();
        let want = decode_request(repeated, &options).unwrap();
        let shown = |request: &crate::canon::Request<'_>| {
            format!(
                "{:?} {:?} {:?} {:?}",
                request.system, request.turns, request.tools, request.tool_choice
            )
        };
        assert_eq!(shown(&decoded.request), shown(&want.request));
        assert_eq!(decoded.echo.tools, want.echo.tools);
    }

    #[test]
    fn r93_items_of_a_conversation_come_first() {
        let question = r#"{"input":[{"role":"developer","content":"s"},{"role":"user","content":"a"},{"type":"compaction_trigger"}]}"#;
        let answer = format!(r#"{{"id":"resp_1","output":[{CALL}],"tools":[]}}"#);
        let items = vec![StoredItems::Input(question), StoredItems::Output(&answer)];
        let body = format!(r#"{{"model":"m","input":[{RESULT}]}}"#);
        let repeated = format!(
            r#"{{"model":"m","input":[{{"role":"developer","content":"s"}},{{"role":"user","content":"a"}},{CALL},{RESULT}]}}"#
        );
        check(&Stored { items, ..Stored::default() }, &body, &repeated);
        let items = vec![StoredItems::Input(r#"{"input":"a"}"#), StoredItems::Item(RESULT)];
        let repeated = format!(
            r#"{{"model":"m","input":[{{"role":"user","content":"a"}},{RESULT},{{"role":"user","content":"b"}}]}}"#
        );
        check(&Stored { items, ..Stored::default() }, r#"{"model":"m","input":"b"}"#, &repeated);
    }

    #[test]
    fn references_and_tools_are_completed() {
        let tools = r#"[{"type":"function","name":"f","parameters":{"type":"object"}}]"#;
        let references =
            BTreeMap::from([("fc_1", CALL), ("x", r#"{"type":"item_reference","id":"x"}"#)]);
        let stored = Stored {
            references,
            tools: Some(tools),
            tool_choice: Some("\"required\""),
            ..Stored::default()
        };
        let body = format!(r#"{{"model":"m","input":[{{"id":"fc_1"}},{RESULT},{{"id":"x"}}]}}"#);
        let parsed = parse_request(&body).unwrap();
        assert_eq!(parsed.references(), ["fc_1", "x"]);
        let repeated = format!(
            r#"{{"model":"m","input":[{CALL},{RESULT}],"tools":{tools},"tool_choice":"required"}}"#
        );
        check(&stored, &body, &repeated);
    }
}
