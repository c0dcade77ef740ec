//! Answers that go on from answers.
//!
//! Every answer is kept with its own question and the ids of the answers before it, so that a
//! conversation may branch anywhere and nothing is kept twice. Of an answer that was deleted only
//! that stays: what goes on from it goes on without it.

use serde::{Deserialize, Serialize};
use toolgate_core::canon::{Loss, LossCode, Losses};
use toolgate_core::json::Path;
use toolgate_core::translate::Dialect;

use super::before::Said;
use super::conversation::Conversation;
use super::log::{Left, Seen};
use super::record::{self, Asked, Record, Whole};
use super::refused::{Refused, away};
use crate::app::App;
use crate::auth::Owner;
use crate::doors::{is_unfinished, progress};
use crate::offload::heavy;
use crate::store::Kind;

/// What stands before a question.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Behind {
    /// The ids of the answers that it goes on from, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) path: Vec<String>,
    /// The conversation that it belongs to, as far as it went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) conversation: Option<Seen>,
    /// Question and answer were deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) deleted: bool,
}

/// A question and its answer, by the answer's id.
pub(super) type Pair = (String, Record);

/// The turns that lead to an answer, and it itself.
#[derive(Debug)]
pub(super) struct Chain {
    /// The ids of all, oldest first.
    pub(super) path: Vec<String>,
    /// Those that are there and were not deleted.
    pub(super) pairs: Vec<Pair>,
    /// The ids of those that are not there.
    pub(super) missing: Vec<String>,
    /// The conversation that the oldest belongs to.
    conversation: Option<Seen>,
}

/// Looks for the turns that lead to an answer, which thereby live on; `None` where it is not there
/// itself, or was deleted.
pub(super) async fn chain(app: &App, owner: Owner, id: &str) -> Option<Chain> {
    let last = Record::get(app, owner, id).await?;
    Some(chain_to(app, owner, id, last).await)
}

async fn chain_to(app: &App, owner: Owner, id: &str, last: Record) -> Chain {
    let mut path = last.behind.path.clone();
    let mut records = Record::all(app, owner, &path).await;
    path.push(id.to_owned());
    records.push(Some(last));
    heavy(records.iter().flatten().map(Record::size).sum()).await;
    let (mut pairs, mut missing, mut ageing) = (Vec::new(), Vec::new(), Vec::new());
    let mut conversation = None;
    for (at, (id, record)) in path.iter().zip(records).enumerate() {
        let Some(mut record) = record else {
            missing.push(id.clone());
            continue;
        };
        if at == 0 {
            conversation = record.behind.conversation.take();
        }
        if record.is_ageing(app) {
            ageing.push(id.clone());
        }
        if !record.is_deleted() {
            pairs.push((id.clone(), record));
        }
    }
    if !ageing.is_empty() {
        record::renew(app, owner, &ageing).await;
    }
    Chain { path, pairs, missing, conversation }
}

/// Whether there was an answer that was deleted.
pub(super) async fn is_deleted(app: &App, owner: Owner, id: &str) -> bool {
    Record::any(app, owner, id).await.is_some_and(|record| record.is_deleted())
}

/// Deletes an answer and its question. That it was there is kept for what goes on from it.
pub(crate) async fn delete(app: &App, owner: Owner, id: &str) {
    let record = Record::any(app, owner, id).await;
    let conversation = record.and_then(|record| record.behind.conversation);
    let behind = Behind { conversation, deleted: true, ..Behind::default() };
    record::put(app, owner, id, &Asked::plain(&behind, b""), &Whole::from(Vec::new()));
    app.store.delete(owner, Kind::Events, id).await;
    app.store.settle().await;
}

/// All that was said up to an answer.
pub(super) struct Until {
    /// The path to it.
    pub(super) behind: Behind,
    /// What was said.
    pub(super) said: Vec<Said>,
    /// What was said and is not there any more.
    pub(super) losses: Losses,
}

/// All that was said up to an answer of the Responses API.
pub(super) async fn said_until(app: &App, owner: Owner, id: &str) -> Result<Until, Refused> {
    let missing = || Refused::Missing {
        message: format!("previous response with id '{id}' not found"),
        param: Some("previous_response_id"),
        code: Some("previous_response_not_found"),
    };
    // Messages of Anthropic's are kept beside them.
    let last = Record::get(app, owner, id).await.filter(|_| id.starts_with("resp_"));
    let mut last = last.ok_or_else(missing)?;
    heavy(last.size()).await;
    if is_unfinished(&last.answer) {
        if progress(app, owner, id).await.is_some() {
            let reason = format!("`{id}` is still being made; go on from it when it is done");
            return Err(Path::Root.field("previous_response_id").bad(reason).into());
        }
        // It may have ended since it was looked for.
        last = Record::get(app, owner, id).await.ok_or_else(missing)?;
    }
    let chain = chain_to(app, owner, id, last).await;
    if !chain.missing.is_empty() && app.store.is_away() {
        return Err(away().into());
    }
    let mut losses = chain.losses();
    let Chain { path, pairs, conversation, .. } = chain;
    let mut left = Left::default();
    if let Some(seen) = &conversation {
        let conversation = Conversation { app, owner, id: &seen.name };
        match conversation.read_until(seen).await {
            Some(until) => left = until,
            None if app.store.is_away() => return Err(away().into()),
            None => losses.push(forgotten_loss(&seen.name)),
        }
    }
    let mut said = std::mem::take(&mut left.said);
    for (id, record) in &pairs {
        let items = record.items(id)?.filter(|item| !left.has_removed(item));
        said.extend(items.map(|json| Said { dialect: Dialect::Responses, json }));
    }
    Ok(Until { behind: Behind { path, ..Behind::default() }, said, losses })
}

fn forgotten_loss(conversation: &str) -> Loss {
    let detail = format!(
        "the conversation `{conversation}` is no longer what it was; what was said in it before is left out"
    );
    Path::Root.field("previous_response_id").loss(LossCode::PartDropped, detail)
}

impl Chain {
    /// What goes on without those that are not there.
    fn losses(&self) -> Losses {
        let is_left = |id: &&String| self.pairs.iter().any(|(left, _)| left == *id);
        let loss = |id: &String| {
            let is_missing = self.missing.contains(id);
            let why = if is_missing { "is no longer kept" } else { "was deleted" };
            let detail = format!("`{id}` {why}; the conversation goes on without it");
            Path::Root.field("previous_response_id").loss(LossCode::PartDropped, detail)
        };
        self.path.iter().filter(|id| !is_left(id)).map(loss).collect()
    }
}

/// The items of the question that an answer belongs to.
pub(crate) async fn question_items(app: &App, owner: Owner, id: &str) -> Option<Vec<String>> {
    let record = Record::get(app, owner, id).await?;
    heavy(record.size()).await;
    record.asked(id).ok()
}
