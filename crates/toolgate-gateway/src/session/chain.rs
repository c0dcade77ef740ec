//! Answers that go on from answers.
//!
//! Every answer is kept with its own question and the ids of the answers before it, so that a
//! conversation may branch anywhere and nothing is kept twice. Of an answer that was deleted only
//! that stays: what goes on from it goes on without it.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use toolgate_core::canon::{Loss, LossCode, Losses};
use toolgate_core::json::Path;
use toolgate_core::translate::Dialect;

use super::before::Said;
use super::conversation::Conversation;
use super::items;
use super::refused::Refused;
use crate::app::App;
use crate::auth::Owner;
use crate::store::Kind;

/// What stands before a question, in one line before its body.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Behind {
    /// The ids of the answers that it goes on from, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) path: Vec<String>,
    /// The conversation that it belongs to, and how many entries that had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) conversation: Option<(String, usize)>,
    /// Question and answer were deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) deleted: bool,
}

impl Behind {
    /// The question as it is kept.
    pub(super) fn with(&self, body: &[u8]) -> Bytes {
        let mut out = serde_json::to_vec(self).unwrap_or_else(|_| b"{}".to_vec());
        out.push(b'\n');
        out.extend_from_slice(body);
        Bytes::from(out)
    }

    /// Reads what [`with`](Self::with) wrote.
    pub(super) fn split(turn: &Bytes) -> Option<(Self, Bytes)> {
        let end = turn.iter().position(|byte| *byte == b'\n')?;
        Some((serde_json::from_slice(&turn[..end]).ok()?, turn.slice(end + 1..)))
    }
}

/// A question and its answer.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) id: String,
    pub(super) question: Bytes,
    pub(super) answer: Bytes,
}

/// The turns that lead to an answer, and it itself.
#[derive(Debug)]
pub(super) struct Chain {
    /// The ids of all, oldest first.
    pub(super) path: Vec<String>,
    /// Those that were not deleted.
    pub(super) pairs: Vec<Pair>,
    /// The conversation that the oldest belongs to.
    conversation: Option<(String, usize)>,
}

/// Looks for the turns that lead to an answer; `None` where one is not there. One that was deleted
/// is: it is left out, unless it is the answer itself.
pub(super) async fn chain(app: &App, owner: Owner, id: &str) -> Option<Chain> {
    let turn = app.store.get_one(owner, Kind::Turn, id).await?;
    let (behind, _) = Behind::split(&turn).filter(|(behind, _)| !behind.deleted)?;
    let mut path = behind.path;
    path.push(id.to_owned());
    let questions = app.store.get(owner, Kind::Turn, &path).await;
    let answers = app.store.get(owner, Kind::Answer, &path).await;
    let (mut pairs, mut conversation) = (Vec::new(), None);
    for (at, ((id, turn), answer)) in path.iter().zip(questions).zip(answers).enumerate() {
        let (behind, question) = Behind::split(&turn?)?;
        if at == 0 {
            conversation = behind.conversation;
        }
        if !behind.deleted {
            pairs.push(Pair { id: id.clone(), question, answer: answer? });
        }
    }
    Some(Chain { path, pairs, conversation })
}

/// Whether there was an answer that was deleted.
pub(super) async fn is_deleted(app: &App, owner: Owner, id: &str) -> bool {
    let turn = app.store.get_one(owner, Kind::Turn, id).await;
    turn.and_then(|turn| Behind::split(&turn)).is_some_and(|(behind, _)| behind.deleted)
}

/// Deletes an answer and its question. That it was there is kept for what goes on from it.
pub(crate) async fn delete(app: &App, owner: Owner, id: &str) {
    let turn = app.store.get_one(owner, Kind::Turn, id).await;
    let conversation = turn.and_then(|turn| Behind::split(&turn)?.0.conversation);
    let behind = Behind { path: Vec::new(), conversation, deleted: true };
    app.store.put(owner, Kind::Turn, id, behind.with(b""), app.config().state_retention);
    for kind in [Kind::Answer, Kind::Events] {
        app.store.delete(owner, kind, id).await;
    }
    app.store.settle().await;
}

/// All that was said up to an answer.
pub(super) struct Until {
    /// The path to it.
    pub(super) behind: Behind,
    /// What was said.
    pub(super) said: Vec<Said>,
    /// What was said and deleted.
    pub(super) losses: Losses,
}

/// All that was said up to an answer of the Responses API.
pub(super) async fn said_until(app: &App, owner: Owner, id: &str) -> Result<Until, Refused> {
    let missing = || Refused::Missing {
        message: format!("previous response with id '{id}' not found"),
        param: Some("previous_response_id"),
        code: Some("previous_response_not_found"),
    };
    let Chain { path, pairs, conversation } = chain(app, owner, id).await.ok_or_else(missing)?;
    let mut said = Vec::new();
    if let Some((conversation, seen)) = &conversation {
        let conversation = Conversation { app, owner, id: conversation };
        said = conversation.read_until(*seen).await;
    }
    for pair in &pairs {
        let question = std::str::from_utf8(&pair.question).unwrap_or("{}");
        let items = items::input_items(question, &pair.id)?;
        let items = items.into_iter().chain(items::output_items(&items::fields_of(&pair.answer)));
        said.extend(items.map(|json| Said { dialect: Dialect::Responses, json }));
    }
    let is_left = |id: &&String| pairs.iter().any(|pair| pair.id == **id);
    let losses = path.iter().filter(|id| !is_left(id)).map(deleted_loss).collect();
    Ok(Until { behind: Behind { path, ..Behind::default() }, said, losses })
}

fn deleted_loss(id: &String) -> Loss {
    let detail = format!("`{id}` was deleted; the conversation goes on without it");
    Path::Root.field("previous_response_id").loss(LossCode::PartDropped, detail)
}

/// The items of the question that an answer belongs to.
pub(crate) async fn question_items(app: &App, owner: Owner, id: &str) -> Option<Vec<String>> {
    let turn = app.store.get_one(owner, Kind::Turn, id).await?;
    let (_, question) = Behind::split(&turn)?;
    items::input_items(std::str::from_utf8(&question).ok()?, id).ok()
}
