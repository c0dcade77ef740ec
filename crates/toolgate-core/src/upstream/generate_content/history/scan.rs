//! Where the calls and the results are.

use std::borrow::Cow;
use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use super::answers::answers;
use crate::canon::{
    Call, Loss, LossCode, Losses, Part, Request, Role, Sealed, ToolResult, Turn, upstream_id,
};

/// A call of the conversation.
#[derive(Debug)]
pub(in crate::upstream::generate_content) struct CallSite<'r> {
    pub(in crate::upstream::generate_content) call: &'r Call<'r>,
    /// Its turn and its place there.
    pub(in crate::upstream::generate_content) at: (usize, usize),
    /// Which step: calls of one model content are of one step.
    pub(super) step: usize,
    /// Its place among all parts.
    pub(super) order: usize,
    /// The model's first part after its step was over, among all parts.
    pub(super) spoken: Option<usize>,
    /// The result, where the conversation has one that came in time.
    pub(in crate::upstream::generate_content) result: Option<&'r ToolResult<'r>>,
    /// The result came when the model had spoken again: it is told there.
    pub(in crate::upstream::generate_content) is_late: bool,
    /// The id that call and response bear upstream.
    pub(in crate::upstream::generate_content) id: Cow<'r, str>,
}

impl CallSite<'_> {
    /// Whether the model has spoken between the call's step and this place.
    pub(super) fn is_past(&self, order: usize) -> bool {
        self.spoken.is_some_and(|spoken| spoken < order)
    }
}

/// A result of the conversation.
#[derive(Debug)]
pub(super) struct ResultSite<'r> {
    pub(super) result: &'r ToolResult<'r>,
    pub(super) at: (usize, usize),
    pub(super) order: usize,
    /// The last step before it.
    pub(super) step: Option<usize>,
    pub(super) fate: Fate,
}

/// What becomes of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It has no call: it is told as text, where it stands.
    Orphan,
    /// It goes to its call.
    Answers,
    /// It is this call's, but the model has spoken since: it is told where it stands.
    Late(usize),
    /// The same call has another result that counts.
    Superseded,
}

/// Whose words a part is, whatever turn it was put in: calls are the model's, results are not.
pub(super) fn is_models(turn: &Turn<'_>, part: &Part<'_>) -> bool {
    match part {
        Part::Call(_) => true,
        Part::Result(_) => false,
        Part::Text { .. }
        | Part::Thought { .. }
        | Part::Media(_)
        | Part::Sealed(_)
        | Part::Gemini(_) => turn.role == Role::Model,
    }
}

/// Whether a user's part says something.
pub(super) fn is_said(part: &Part<'_>) -> bool {
    match part {
        Part::Text { text, .. } => !text.is_empty(),
        Part::Thought { .. } => false,
        Part::Sealed(envelope) => matches!(envelope.on, Sealed::Part(_)),
        Part::Media(_) | Part::Call(_) | Part::Result(_) | Part::Gemini(_) => true,
    }
}

/// Whether a part of the model's has content or must go back.
fn is_kept(part: &Part<'_>) -> bool {
    let signed = match part {
        Part::Text { signature, .. } | Part::Thought { signature, .. } => signature.is_some(),
        Part::Media(_) | Part::Call(_) | Part::Result(_) | Part::Sealed(_) | Part::Gemini(_) => {
            false
        }
    };
    signed || is_said(part)
}

/// Every call with its result, and what becomes of the results.
pub(in crate::upstream::generate_content) fn calls_and_results<'r>(
    request: &'r Request<'r>,
    losses: &mut Losses,
) -> (Vec<CallSite<'r>>, Fates) {
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    let mut step = 0;
    let mut in_step = false;
    let mut order = 0;
    // By step, the last one last: when the model spoke after it.
    let mut spoken: Vec<Option<usize>> = vec![None];
    for (turn_at, turn) in request.turns.iter().enumerate() {
        for (part_at, part) in turn.parts.iter().enumerate() {
            let at = (turn_at, part_at);
            order += 1;
            if !in_step && is_models(turn, part) && is_kept(part) {
                spoken[step].get_or_insert(order);
            }
            match part {
                Part::Call(call) => {
                    if !in_step {
                        step += 1;
                        in_step = true;
                        spoken.push(None);
                    }
                    let id = Cow::Borrowed("");
                    calls.push(CallSite {
                        call,
                        at,
                        step,
                        order,
                        spoken: None,
                        result: None,
                        is_late: false,
                        id,
                    });
                }
                Part::Result(result) => {
                    in_step = false;
                    let step = (step > 0).then_some(step);
                    results.push(ResultSite { result, at, order, step, fate: Fate::Orphan });
                }
                Part::Text { .. }
                | Part::Thought { .. }
                | Part::Media(_)
                | Part::Sealed(_)
                | Part::Gemini(_) => {
                    in_step = in_step && (is_models(turn, part) || !is_said(part));
                }
            }
        }
    }
    for site in &mut calls {
        site.spoken = spoken.get(site.step).copied().flatten();
    }
    answers(&mut calls, &mut results, losses);
    give_ids(&mut calls);
    for site in calls.iter_mut().filter(|site| site.is_late) {
        site.result = None;
    }
    for site in calls.iter().filter(|site| site.result.is_none() && !site.is_late) {
        let (turn, part) = site.at;
        losses.add_with(LossCode::MissingResult, || Loss {
            at: format!("turns[{turn}].parts[{part}]"),
            code: LossCode::MissingResult,
            detail: "the call has no result in the conversation; an error was put in its place"
                .to_owned(),
            tool: Some(site.call.tool.to_string()),
        });
    }
    let fates = results.iter().map(|site| (site.at, site.fate)).collect();
    (calls, Fates(fates))
}

/// What becomes of each result, by its place.
#[derive(Debug)]
pub(in crate::upstream::generate_content) struct Fates(Vec<((usize, usize), Fate)>);

impl Fates {
    pub(super) fn of(&self, at: (usize, usize)) -> Option<Fate> {
        let found = self.0.binary_search_by_key(&at, |(place, _)| *place).ok()?;
        self.0.get(found).map(|(_, fate)| *fate)
    }
}

/// Longer ids, and ids with other signs, are replaced: they cost tokens and may be refused.
const ID_LIMIT: usize = 64;

/// Gives each call an id of its own. Gemini does not remember ids; call and response must agree,
/// and no two calls may share one.
fn give_ids(calls: &mut [CallSite<'_>]) {
    let mut taken: BTreeMap<Cow<'_, str>, usize> = BTreeMap::new();
    for (number, site) in calls.iter_mut().enumerate() {
        let own = match &site.call.upstream_id {
            Some(id) => Cow::Borrowed(&**id),
            None => upstream_id(&site.call.id),
        };
        let own = match &*own {
            "" => Cow::Owned(format!("call_{}", number + 1)),
            id if is_plain(id) => own,
            id => Cow::Owned(short(id)),
        };
        let mut id = own.clone();
        while taken.contains_key(&id) {
            let copies = taken.entry(own.clone()).or_insert(0);
            *copies += 1;
            id = Cow::Owned(short(&format!("{own}/{copies}")));
        }
        taken.insert(id.clone(), 1);
        site.id = id;
    }
}

fn is_plain(id: &str) -> bool {
    id.len() <= ID_LIMIT
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':'))
}

fn short(id: &str) -> String {
    let hash = Sha256::digest(id.as_bytes());
    let mut short = String::from("id_");
    for byte in &hash[..8] {
        short.push(char::from(b"0123456789abcdef"[usize::from(byte >> 4)]));
        short.push(char::from(b"0123456789abcdef"[usize::from(byte & 15)]));
    }
    short
}
