//! Conversations: a log that only grows, and the tools that go with it.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use toolgate_core::json::write;
use toolgate_core::translate::Dialect;

use super::before::Said;
use super::items;
use crate::app::App;
use crate::auth::Owner;
use crate::store::Kind;

/// A conversation of somebody's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conversation<'a> {
    pub(crate) app: &'a App,
    pub(crate) owner: Owner,
    pub(crate) id: &'a str,
}

/// What a conversation is beside what was said.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Head {
    /// When it began, in seconds since 1970.
    pub(crate) created: u64,
    /// `metadata`, as it was given.
    pub(crate) metadata: String,
}

/// The tools that a conversation remembers.
#[derive(Clone, Debug)]
pub(crate) struct Sticky {
    /// Whose form they have.
    pub(crate) dialect: Dialect,
    /// `tools`
    pub(crate) tools: String,
    /// `tool_choice` or `toolConfig`
    pub(crate) choice: Option<String>,
}

impl Sticky {
    /// A body of its dialect that has nothing but the tools.
    pub(super) fn body(&self) -> String {
        let Self { dialect, tools, choice } = self;
        let (head, name) = match dialect {
            Dialect::Gemini => ("\"contents\":[]", "toolConfig"),
            Dialect::Anthropic | Dialect::Chat | Dialect::Responses => {
                ("\"model\":\"\",\"input\":[]", "tool_choice")
            }
        };
        let choice = choice.as_ref().map_or_else(String::new, |it| format!(",\"{name}\":{it}"));
        format!("{{{head},\"tools\":{tools}{choice}}}")
    }
}

/// What a turn does to the tools of its conversation.
#[derive(Clone, Debug)]
pub(crate) enum Tools {
    /// Nothing: it did not speak of tools.
    Same,
    /// It brought these.
    Set(Sticky),
    /// It said that there are none.
    Clear,
}

impl Tools {
    /// What a body's `tools` do.
    pub(crate) fn new(dialect: Dialect, tools: Option<&str>, choice: Option<&str>) -> Self {
        match tools {
            None => Self::Same,
            Some(tools) if is_empty_list(tools) => Self::Clear,
            Some(tools) => Self::Set(Sticky {
                dialect,
                tools: tools.to_owned(),
                choice: choice.map(str::to_owned),
            }),
        }
    }
}

fn is_empty_list(json: &str) -> bool {
    json.strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .is_some_and(|it| it.trim().is_empty())
}

/// The first byte of a log entry.
const ITEM: u8 = b'r';
const CONTENT: u8 = b'g';
const REMOVED: u8 = b'x';

impl Conversation<'_> {
    fn keep(&self) -> Duration {
        self.app.config().state_retention
    }

    /// What it is, where it is.
    pub(crate) async fn head(&self) -> Option<Head> {
        let kept = self.app.store.get_one(self.owner, Kind::Conversation, self.id).await?;
        serde_json::from_slice(&kept).ok()
    }

    /// Says what it is, and that it is used.
    pub(crate) fn set_head(&self, head: &Head) {
        if let Ok(kept) = serde_json::to_vec(head) {
            let kept = Bytes::from(kept);
            self.app.store.put(self.owner, Kind::Conversation, self.id, kept, self.keep());
        }
    }

    /// Begins it where it was not, at this time.
    pub(super) async fn touch(&self, now: u64) {
        let new = || Head { created: now, metadata: "{}".to_owned() };
        let head = self.head().await.unwrap_or_else(new);
        self.set_head(&head);
    }

    /// Forgets all of it.
    pub(crate) async fn forget(&self) {
        for kind in [Kind::Conversation, Kind::Log, Kind::Tools] {
            self.app.store.delete(self.owner, kind, self.id).await;
        }
    }

    /// How many entries the log has, and what of them was said and not taken back.
    pub(crate) async fn read(&self) -> (usize, Vec<Said>) {
        let log = self.app.store.list(self.owner, Kind::Log, self.id).await;
        (log.len(), said(&log))
    }

    /// The same as it was when the log had `seen` entries.
    pub(crate) async fn read_until(&self, seen: usize) -> Vec<Said> {
        let log = self.app.store.list(self.owner, Kind::Log, self.id).await;
        said(&log[..seen.min(log.len())])
    }

    /// Adds what was said, all of it together.
    pub(crate) fn add(&self, said: &[Said]) {
        let entries = said.iter().map(|said| {
            let tag = if said.dialect == Dialect::Gemini { CONTENT } else { ITEM };
            entry(tag, &said.json)
        });
        let entries: Vec<_> = entries.collect();
        if !entries.is_empty() {
            self.app.store.append(self.owner, Kind::Log, self.id, entries, self.keep());
        }
    }

    /// Takes an item back.
    pub(crate) fn remove(&self, item: &str) {
        let entry = entry(REMOVED, item);
        self.app.store.append(self.owner, Kind::Log, self.id, vec![entry], self.keep());
    }

    /// The tools that it remembers.
    pub(crate) async fn tools(&self) -> Option<Sticky> {
        let kept = self.app.store.get_one(self.owner, Kind::Tools, self.id).await?;
        let (tag, json) = kept.split_first()?;
        let fields = items::fields_of(json);
        Some(Sticky {
            dialect: if *tag == CONTENT { Dialect::Gemini } else { Dialect::Responses },
            tools: fields.get("tools")?.get().to_owned(),
            choice: fields.get("choice").map(|raw| raw.get().to_owned()),
        })
    }

    /// Remembers or forgets tools.
    pub(crate) async fn set_tools(&self, tools: &Tools) {
        let store = &self.app.store;
        match tools {
            // What is used does not grow old.
            Tools::Same => {
                if let Some(kept) = store.get_one(self.owner, Kind::Tools, self.id).await {
                    store.put(self.owner, Kind::Tools, self.id, kept, self.keep());
                }
            }
            Tools::Clear => drop(store.delete(self.owner, Kind::Tools, self.id).await),
            Tools::Set(Sticky { dialect, tools, choice }) => {
                let tag = if *dialect == Dialect::Gemini { CONTENT } else { ITEM };
                let mut out = vec![tag, b'{'];
                write::key(&mut out, "tools");
                out.extend_from_slice(tools.as_bytes());
                if let Some(choice) = choice {
                    write::key(&mut out, "choice");
                    out.extend_from_slice(choice.as_bytes());
                }
                out.push(b'}');
                store.put(self.owner, Kind::Tools, self.id, Bytes::from(out), self.keep());
            }
        }
    }
}

fn entry(tag: u8, text: &str) -> Bytes {
    let mut out = Vec::with_capacity(text.len() + 1);
    out.push(tag);
    out.extend_from_slice(text.as_bytes());
    Bytes::from(out)
}

fn said(log: &[Bytes]) -> Vec<Said> {
    let mut all: Vec<Said> = Vec::with_capacity(log.len());
    for entry in log {
        let Some((tag, json)) = entry.split_first() else { continue };
        let Ok(json) = std::str::from_utf8(json) else { continue };
        let dialect = match *tag {
            ITEM => Dialect::Responses,
            CONTENT => Dialect::Gemini,
            _ => {
                all.retain(|said| id_of(&said.json).as_deref() != Some(json));
                continue;
            }
        };
        all.push(Said { dialect, json: json.to_owned() });
    }
    all
}

/// The id of an item.
pub(crate) fn id_of(item: &str) -> Option<String> {
    items::text_of(&items::fields_of(item.as_bytes()), "id")
}
