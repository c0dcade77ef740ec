//! Chains of answers: each continues from the one before it.
//!
//! ```text
//!   resp_1 ◄─ … ◄─ resp_17 ◄─ … ◄─ resp_33
//!                     └── names resp_1 … resp_16
//! ```
//!
//! An answer is stored with its own question and the ids of the few answers right before it, so that a
//! chain may branch anywhere, nothing is stored twice, and a turn stores as much at the end of a long
//! chain as at its beginning. A chain is read in windows, from its end. Of an answer that was deleted,
//! its place in the chain stays.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use toolgate_core::canon::{Loss, LossCode, Losses};
use toolgate_core::json::Path;
use toolgate_core::translate::Dialect;

use super::Sessions;
use super::conversation::Conversation;
use super::history::{History, ResponseItems};
use super::log::{Left, Seen};
use super::progress::is_unfinished;
use super::record::{self, Asked, EncodedAnswer, Record};
use super::refusal::{SessionError, away};
use crate::offload::heavy;
use crate::store::Kind;

/// Maximum number of predecessors that an answer names. More make a chain be read with fewer queries,
/// and survive more answers that are missing in a row.
const MAX_PREDECESSORS: usize = 16;

/// State that a question continues from.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Origin {
    /// The ids of the answers right before it, oldest first, at most [`MAX_PREDECESSORS`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) predecessors: Vec<String>,
    /// The part of the conversation that it continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) conversation: Option<Seen>,
    /// Question and answer were deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) deleted: bool,
}

impl Origin {
    /// Origin of a question that continues a chain.
    pub(super) fn after(mut path: Vec<String>) -> Self {
        let predecessors = path.split_off(path.len().saturating_sub(MAX_PREDECESSORS));
        Self { predecessors, ..Self::default() }
    }
}

/// A question and its answer, by the answer's id.
pub(super) type Pair = (String, Record);

/// An answer with all turns that lead to it.
#[derive(Debug)]
pub(super) struct Chain {
    /// The ids of all, oldest first.
    pub(super) path: Vec<String>,
    /// Those that are stored and were not deleted.
    pub(super) pairs: Vec<Pair>,
    /// The ids of those that are not stored any more.
    pub(super) missing: Vec<String>,
    /// The conversation that the oldest belongs to.
    conversation: Option<Seen>,
}

/// Reads the chain that leads to an answer, and renews its retention; `None` if the answer is not
/// stored or was deleted.
pub(super) async fn chain(sessions: &Sessions, id: &str) -> Option<Chain> {
    let last = Record::get(sessions, id).await?;
    Some(chain_to(sessions, id, last).await)
}

async fn chain_to(sessions: &Sessions, id: &str, last: Record) -> Chain {
    let mut seen = HashSet::from([id.to_owned()]);
    let mut window = last.origin.predecessors.clone();
    let mut found = vec![(id.to_owned(), Some(last))];
    loop {
        window.retain(|id| seen.insert(id.clone()));
        if window.is_empty() {
            break;
        }
        let records = Record::all(sessions, &window).await;
        // The oldest that is stored names those before it.
        let next = records.iter().flatten().next();
        let next = next.map(|record| record.origin.predecessors.clone()).unwrap_or_default();
        found.extend(window.into_iter().zip(records).rev());
        window = next;
    }
    let (path, records): (Vec<String>, Vec<Option<Record>>) = found.into_iter().rev().unzip();
    heavy(records.iter().flatten().map(Record::size).sum()).await;
    let (mut pairs, mut missing, mut ageing) = (Vec::new(), Vec::new(), Vec::new());
    let mut conversation = None;
    for (at, (id, record)) in path.iter().zip(records).enumerate() {
        let Some(mut record) = record else {
            missing.push(id.clone());
            continue;
        };
        if at == 0 {
            conversation = record.origin.conversation.take();
        }
        if record.is_ageing(sessions) {
            ageing.push(id.clone());
        }
        if !record.is_deleted() {
            pairs.push((id.clone(), record));
        }
    }
    if !ageing.is_empty() {
        record::renew(sessions, &ageing).await;
    }
    Chain { path, pairs, missing, conversation }
}

/// Whether there was an answer that was deleted.
pub(super) async fn is_deleted(sessions: &Sessions, id: &str) -> bool {
    Record::any(sessions, id).await.is_some_and(|record| record.is_deleted())
}

/// Deletes an answer and its question. Its place in the chain is kept for the answers after it.
pub(crate) async fn delete(sessions: &Sessions, id: &str) {
    let record = Record::any(sessions, id).await;
    let origin = record.map(|record| record.origin).unwrap_or_default();
    let origin = Origin { deleted: true, ..origin };
    sessions.store().delete(sessions.owner, Kind::Answer, id);
    record::put(sessions, id, &Asked::plain(&origin, b""), &EncodedAnswer::from(Vec::new()));
    sessions.store().delete(sessions.owner, Kind::Events, id);
    sessions.store().flush().await;
}

/// Reads the origin and the history of a question that continues from a response.
pub(super) async fn history_until(
    sessions: &Sessions,
    id: &str,
) -> Result<(Origin, History), SessionError> {
    let missing = || SessionError::Missing {
        message: format!("previous response with id '{id}' not found"),
        param: Some("previous_response_id"),
        code: Some("previous_response_not_found"),
    };
    // Messages of Anthropic's are kept beside them.
    let last = Record::get(sessions, id).await.filter(|_| id.starts_with("resp_"));
    let mut last = last.ok_or_else(missing)?;
    heavy(last.size()).await;
    if is_unfinished(&last.answer) {
        if sessions.progress(id).await.is_some() {
            let reason = format!("`{id}` is still being made; go on from it when it is done");
            return Err(Path::Root.field("previous_response_id").bad(reason).into());
        }
        // It may have ended since it was looked for.
        last = Record::get(sessions, id).await.ok_or_else(missing)?;
    }
    let chain = chain_to(sessions, id, last).await;
    if !chain.missing.is_empty() && sessions.store().is_degraded() {
        return Err(away().into());
    }
    let mut history = History::default();
    history.losses = chain.losses();
    let Chain { path, pairs, conversation, .. } = chain;
    let mut left = Left::default();
    if let Some(seen) = &conversation {
        let conversation = Conversation { sessions, id: &seen.name };
        match conversation.read_until(seen).await {
            Some(until) => left = until,
            None if sessions.store().is_degraded() => return Err(away().into()),
            None => history.losses.push(forgotten_loss(&seen.name)),
        }
    }
    history.push_conversation(std::mem::take(&mut left.said), Dialect::Responses);
    for (id, record) in pairs {
        if left.has_removals() {
            let items = record.items(&id)?.filter(|item| !left.has_removed(item));
            history.items.extend(items.map(ResponseItems::Item));
        } else {
            history.items.push(ResponseItems::Question(record.question));
            history.items.push(ResponseItems::Answer(record.answer));
        }
    }
    Ok((Origin::after(path), history))
}

fn forgotten_loss(conversation: &str) -> Loss {
    let detail = format!(
        "the conversation `{conversation}` is no longer what it was; what was said in it before is left out"
    );
    Path::Root.field("previous_response_id").loss(LossCode::PartDropped, detail)
}

impl Chain {
    /// Losses for the responses that are not stored any more.
    fn losses(&self) -> Losses {
        let left: HashSet<&String> = self.pairs.iter().map(|(id, _)| id).collect();
        let missing: HashSet<&String> = self.missing.iter().collect();
        let loss = |id: &String| {
            let is_missing = missing.contains(id);
            let why = if is_missing { "is no longer kept" } else { "was deleted" };
            let detail = format!("`{id}` {why}; the conversation goes on without it");
            Path::Root.field("previous_response_id").loss(LossCode::PartDropped, detail)
        };
        self.path.iter().filter(|id| !left.contains(id)).map(loss).collect()
    }
}

/// The items of the question that an answer belongs to.
pub(crate) async fn question_items(sessions: &Sessions, id: &str) -> Option<Vec<String>> {
    let record = Record::get(sessions, id).await?;
    heavy(record.size()).await;
    record.asked(id).ok()
}
