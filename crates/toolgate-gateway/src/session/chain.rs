//! Answers that go on from answers.
//!
//! Every answer is kept with its own question and the ids of the answers before it, so that a
//! conversation may branch anywhere and nothing is kept twice.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
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
    pub(super) behind: Behind,
    pub(super) question: Bytes,
    pub(super) answer: Bytes,
}

/// The turns that lead to an answer and it itself, oldest first; `None` where one is not there.
pub(super) async fn pairs(app: &App, owner: Owner, id: &str) -> Option<Vec<Pair>> {
    let turn = app.store.get_one(owner, Kind::Turn, id).await?;
    let (behind, _) = Behind::split(&turn)?;
    let mut ids = behind.path;
    ids.push(id.to_owned());
    let questions = app.store.get(owner, Kind::Turn, &ids).await;
    let answers = app.store.get(owner, Kind::Answer, &ids).await;
    let pair = |((id, question), answer): ((String, Option<Bytes>), Option<Bytes>)| {
        let (behind, question) = Behind::split(&question?)?;
        Some(Pair { id, behind, question, answer: answer? })
    };
    ids.into_iter().zip(questions).zip(answers).map(pair).collect()
}

/// All that was said up to an answer of the Responses API, and the path to it.
pub(super) async fn said_until(
    app: &App,
    owner: Owner,
    id: &str,
) -> Result<(Behind, Vec<Said>), Refused> {
    let missing = || Refused::Missing {
        message: format!("previous response with id '{id}' not found"),
        param: Some("previous_response_id"),
        code: Some("previous_response_not_found"),
    };
    let pairs = pairs(app, owner, id).await.ok_or_else(missing)?;
    let mut said = Vec::new();
    if let Some((conversation, seen)) =
        pairs.first().and_then(|pair| pair.behind.conversation.as_ref())
    {
        let conversation = Conversation { app, owner, id: conversation };
        said = conversation.read_until(*seen).await;
    }
    for pair in &pairs {
        let question = std::str::from_utf8(&pair.question).unwrap_or("{}");
        let items = items::input_items(question, &pair.id)?;
        let items = items.into_iter().chain(items::output_items(&items::fields_of(&pair.answer)));
        said.extend(items.map(|json| Said { dialect: Dialect::Responses, json }));
    }
    let path = pairs.into_iter().map(|pair| pair.id).collect();
    Ok((Behind { path, conversation: None }, said))
}

/// The items of the question that an answer belongs to.
pub(crate) async fn question_items(app: &App, owner: Owner, id: &str) -> Option<Vec<String>> {
    let turn = app.store.get_one(owner, Kind::Turn, id).await?;
    let (_, question) = Behind::split(&turn)?;
    items::input_items(std::str::from_utf8(&question).ok()?, id).ok()
}
