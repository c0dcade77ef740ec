//! Conversations: a log that only grows, and the tools that go with it.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use toolgate_core::json::write;
use toolgate_core::translate::Dialect;

use super::Sessions;
use super::history::StoredItem;
use super::items;
use super::log::{self, Left, Seen};
use super::record;
use crate::clock;
use crate::offload::heavy;
use crate::store::{Item, Kind};

/// A conversation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conversation<'a> {
    pub(crate) sessions: &'a Sessions,
    pub(crate) id: &'a str,
}

/// Head of a conversation: everything but its items.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Head {
    /// When it began, in seconds since 1970.
    pub(crate) created: u64,
    /// `metadata`, as it was given.
    pub(crate) metadata: String,
    /// Tells it from others that had its name: when it began, exactly.
    #[serde(default)]
    began: u128,
    /// When it was last used, in seconds since 1970.
    #[serde(default)]
    used: u64,
}

impl Head {
    /// That of a conversation that begins now.
    pub(crate) fn new(created: u64, metadata: String) -> Self {
        let now = clock::now();
        Self { created, metadata, began: now.as_nanos(), used: now.as_secs() }
    }
}

/// The tools that a conversation remembers.
#[derive(Clone, Debug)]
pub(crate) struct ToolSet {
    /// Whose form they have.
    pub(crate) dialect: Dialect,
    /// `tools`
    pub(crate) tools: String,
    /// `tool_choice` or `toolConfig`
    pub(crate) choice: Option<String>,
}

impl ToolSet {
    /// A body of its dialect that has nothing but the tools.
    pub(super) fn body(&self) -> String {
        let Self { dialect, tools, choice } = self;
        let (head, name) = match dialect {
            Dialect::Gemini => ("\"contents\":[]", "toolConfig"),
            Dialect::Anthropic | Dialect::Chat | Dialect::Responses => {
                ("\"model\":\"stored\",\"input\":[]", "tool_choice")
            }
        };
        let choice = choice.as_ref().map_or_else(String::new, |it| format!(",\"{name}\":{it}"));
        format!("{{{head},\"tools\":{tools}{choice}}}")
    }
}

/// Effect of a turn on the tools of its conversation.
#[derive(Clone, Debug)]
pub(crate) enum Tools {
    /// Nothing: it did not speak of tools.
    Same,
    /// It brought these.
    Set(ToolSet),
    /// The request clears them.
    Clear,
}

impl Tools {
    /// Effect of `tools` in a body.
    pub(crate) fn new(dialect: Dialect, tools: Option<&str>, choice: Option<&str>) -> Self {
        match tools {
            None => Self::Same,
            Some(tools) if is_empty_list(tools) => Self::Clear,
            Some(tools) => Self::Set(ToolSet {
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

impl Conversation<'_> {
    fn keep(&self) -> Duration {
        self.sessions.retention
    }

    /// The head, if the conversation exists.
    pub(crate) async fn head(&self) -> Option<Head> {
        head_in(&self.kept_head().await?)
    }

    /// The stored head; of a deleted conversation, the time of its deletion.
    async fn kept_head(&self) -> Option<Bytes> {
        self.sessions.store().get_one(self.sessions.owner, Kind::Conversation, self.id).await
    }

    /// Stores the head, and renews its retention.
    pub(crate) fn set_head(&self, head: &Head) {
        let head = Head { used: clock::now().as_secs(), ..head.clone() };
        if let Ok(kept) = serde_json::to_vec(&head) {
            let kept = Bytes::from(kept);
            self.sessions.store().put(
                self.sessions.owner,
                Kind::Conversation,
                self.id,
                kept,
                self.keep(),
            );
        }
    }

    /// Continues the conversation that a turn has read, or creates it. `false`: it was deleted meanwhile.
    pub(super) async fn go_on(&self, seen: &Seen) -> bool {
        let kept = self.kept_head().await;
        let head = kept.as_ref().and_then(head_in);
        let was_deleted = match (&head, seen.head.as_ref().and_then(head_in)) {
            // Turns at once may have begun it twice.
            (Some(head), Some(was)) if head.began != was.began => !self.has(seen).await,
            (Some(_), _) => false,
            (None, _) => kept.is_some() && kept != seen.head,
        };
        if was_deleted {
            return false;
        }
        let new = || Head::new(clock::now().as_secs(), "{}".to_owned());
        self.set_head(&head.unwrap_or_else(new));
        true
    }

    /// Forgets all of it. That it was deleted is kept for turns that are under way.
    pub(crate) async fn forget(&self) {
        let store = self.sessions.store();
        let when = Bytes::from(format!("deleted at {}", clock::now().as_nanos()));
        store.put(self.sessions.owner, Kind::Conversation, self.id, when, self.keep());
        for kind in [Kind::Log, Kind::Tools] {
            store.delete(self.sessions.owner, kind, self.id);
        }
        store.flush().await;
    }

    /// The stored head. Reading renews the retention of a conversation after half of it.
    async fn used(&self) -> Option<Bytes> {
        let kept = self.kept_head().await;
        if let Some(head) = kept.as_ref().and_then(head_in)
            && record::is_ageing(self.sessions, head.used)
        {
            self.set_head(&head);
            self.append(vec![log::used()]);
            self.set_tools(&Tools::Same).await;
        }
        kept
    }

    async fn log(&self) -> Vec<Item> {
        let log = self.sessions.store().list(self.sessions.owner, Kind::Log, self.id).await;
        heavy(log.iter().map(|item| item.value.len()).sum()).await;
        log
    }

    /// The items that were not deleted, and the part of the log that they are.
    pub(crate) async fn read(&self) -> (Seen, Vec<StoredItem>) {
        let (head, log) = (self.used().await, self.log().await);
        (Seen::all(self.id, &log, head), log::left(&log, log.len()).said)
    }

    /// The items left in a part of the log; `None`: the part is not stored any more.
    pub(super) async fn read_until(&self, seen: &Seen) -> Option<Left> {
        self.used().await;
        let log = self.log().await;
        let end = seen.end_in(&log)?;
        Some(log::left(&log, end))
    }

    /// Whether a part of the log is stored.
    async fn has(&self, seen: &Seen) -> bool {
        seen.end_in(&self.log().await).is_some()
    }

    /// Appends items in one write.
    pub(crate) fn add(&self, said: &[StoredItem]) {
        let entries: Vec<_> = said.iter().map(log::added).collect();
        if !entries.is_empty() {
            self.append(entries);
        }
    }

    fn append(&self, entries: Vec<Bytes>) {
        self.sessions.store().append(self.sessions.owner, Kind::Log, self.id, entries, self.keep());
    }

    /// Deletes an item and erases its text.
    pub(crate) async fn remove(&self, item: &str) {
        for stamp in log::stamps_of(&self.log().await, item) {
            self.sessions.store().erase(self.sessions.owner, Kind::Log, self.id, stamp);
        }
        self.append(vec![log::removed(item)]);
    }

    /// The tools that it remembers.
    pub(crate) async fn tools(&self) -> Option<ToolSet> {
        let kept = self.sessions.store().get_one(self.sessions.owner, Kind::Tools, self.id).await?;
        let (tag, json) = kept.split_first()?;
        let fields = items::fields_of(json);
        Some(ToolSet {
            dialect: log::dialect_of(*tag),
            tools: fields.get("tools")?.get().to_owned(),
            choice: fields.get("choice").map(|raw| raw.get().to_owned()),
        })
    }

    /// Remembers or forgets tools.
    pub(crate) async fn set_tools(&self, tools: &Tools) {
        let store = self.sessions.store();
        match tools {
            // Use renews the retention.
            Tools::Same => {
                if let Some(kept) = store.get_one(self.sessions.owner, Kind::Tools, self.id).await {
                    store.put(self.sessions.owner, Kind::Tools, self.id, kept, self.keep());
                }
            }
            Tools::Clear => store.delete(self.sessions.owner, Kind::Tools, self.id),
            Tools::Set(ToolSet { dialect, tools, choice }) => {
                let mut out = vec![log::tag_of(*dialect), b'{'];
                write::key(&mut out, "tools");
                out.extend_from_slice(tools.as_bytes());
                if let Some(choice) = choice {
                    write::key(&mut out, "choice");
                    out.extend_from_slice(choice.as_bytes());
                }
                out.push(b'}');
                store.put(self.sessions.owner, Kind::Tools, self.id, Bytes::from(out), self.keep());
            }
        }
    }
}

/// Parses a stored head; `None` for a deletion.
fn head_in(kept: &Bytes) -> Option<Head> {
    serde_json::from_slice(kept).ok()
}

/// The id of an item.
pub(crate) fn id_of(item: &str) -> Option<String> {
    items::text_of(&items::fields_of(item.as_bytes()), "id")
}
