//! The rules of a conversation: who may speak when, which responses answer which calls, and which
//! signatures must be there.

use std::collections::BTreeSet;

use toolgate_core::gemini::{Backend, Target};

use crate::accepted::{Counts, Mismatch, SignatureCheck, SignatureVerdict};
use crate::error::GoogleError;
use crate::model::{Generation, Model};
use crate::request::{Content, Data, Part, Request};

const CALL_FIRST: &str = "Please ensure that function call turn comes immediately after a user \
                          turn or after a function response turn.";
const RESPONSE_FIRST: &str = "Please ensure that function response turn comes immediately after a \
                              function call turn.";
const COUNT: &str = "Please ensure that the number of function response parts is equal to the \
                     number of function call parts of the function call turn.";

/// Google's words that stand for a signature that nobody has.
const PLACEHOLDERS: [&str; 2] =
    ["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"];
/// The same, encoded once more: taken by the Developer API only.
const ENCODED_PLACEHOLDERS: [&str; 2] = [
    "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I",
    "Y29udGV4dF9lbmdpbmVlcmluZ19pc190aGVfd2F5X3RvX2dv",
];

/// Roles, and the order of calls and responses. Says how responses fail to match their calls where
/// the model is one that answers nothing to that.
pub(crate) fn check_order(
    request: &Request,
    model: Model,
    target: &Target,
    counts: &mut Counts,
) -> Result<Option<Mismatch>, GoogleError> {
    check_roles(&request.contents, model)?;
    let mut mismatch = None;
    let mut fails = |how: Mismatch| {
        if model.falls_silent() {
            mismatch.get_or_insert(how);
            Ok(())
        } else if how == Mismatch::Count {
            Err(GoogleError::invalid(COUNT))
        } else {
            Ok(())
        }
    };
    let contents = &request.contents;
    let mut at = 0;
    while let Some(content) = contents.get(at) {
        if !content.is_model() {
            if content.calls() > 0 {
                return Err(GoogleError::invalid(CALL_FIRST));
            }
            if content.responses() > 0 {
                return Err(GoogleError::invalid(RESPONSE_FIRST));
            }
            at += 1;
            continue;
        }
        // What the model says may come in several contents; the SDKs send streams back that way.
        let start = at;
        at += contents[start..].iter().take_while(|content| content.is_model()).count();
        let said = &contents[start..at];
        if said.iter().any(|content| content.responses() > 0) {
            return Err(GoogleError::invalid(RESPONSE_FIRST));
        }
        let calls: Vec<&Part> = said
            .iter()
            .flat_map(|content| &content.parts)
            .filter(|part| matches!(part.data, Data::Call { .. }))
            .collect();
        if !calls.is_empty() && start == 0 {
            return Err(GoogleError::invalid(CALL_FIRST));
        }
        let Some(answer) = contents.get(at) else { break };
        match (calls.len(), answer.responses()) {
            (0, 0) => continue,
            (0, _) => return Err(GoogleError::invalid(RESPONSE_FIRST)),
            (_, 0) => {
                fails(Mismatch::Count)?;
                continue;
            }
            (_, _) => {}
        }
        at += 1;
        if calls.len() != answer.responses() {
            fails(Mismatch::Count)?;
        } else if let Some(how) = compare(&calls, answer, target.backend, counts) {
            fails(how)?;
        }
        let beside = |wanted: fn(&Data) -> bool| answer.parts.iter().any(|part| wanted(&part.data));
        let is_old = model.generation <= Generation::G2_5;
        if is_old && calls.len() > 1 && beside(|data| matches!(data, Data::Media { .. })) {
            fails(Mismatch::Count)?;
        }
        let words_beside = beside(|data| matches!(data, Data::Text(_) | Data::Media { .. }));
        if model.generation == Generation::G3_5 && words_beside {
            fails(Mismatch::Mixed)?;
        }
    }
    Ok(mismatch)
}

fn check_roles(contents: &[Content], model: Model) -> Result<(), GoogleError> {
    let is_new = model.generation >= Generation::G3_6;
    for content in contents {
        match content.role.as_str() {
            "user" | "model" => {}
            "function" if !is_new => {}
            role if is_new => {
                return Err(GoogleError::invalid(format!(
                    "Role '{role}' is not supported. Please use a valid role: SYSTEM, SYSTEM_1, \
                     USER, ASSISTANT, DEVELOPER, CONTEXT, USER_CONTEXT, MODEL, USER."
                )));
            }
            _ => return Err(GoogleError::invalid("Please use a valid role: user, model.")),
        }
    }
    Ok(())
}

/// Whether each response answers a call: by id where there are ids, else by name and place.
fn compare(
    calls: &[&Part],
    answer: &Content,
    backend: Backend,
    counts: &mut Counts,
) -> Option<Mismatch> {
    let mut open: Vec<(&Option<String>, &str)> = calls
        .iter()
        .filter_map(|part| match &part.data {
            Data::Call { id, name, .. } => Some((id, name.as_str())),
            Data::None
            | Data::Text(_)
            | Data::Media { .. }
            | Data::Response { .. }
            | Data::Server(..) => None,
        })
        .collect();
    for part in &answer.parts {
        let Data::Response { id, name, .. } = &part.data else { continue };
        let found = match id {
            Some(id) => open.iter().position(|(call, _)| call.as_ref() == Some(id)),
            None => (!open.is_empty()).then_some(0),
        };
        let Some(found) = found else { return Some(Mismatch::Id) };
        if found > 0 {
            counts.reordered += 1;
        }
        let (call_id, call_name) = open.remove(found);
        if call_name != name {
            return Some(Mismatch::Name);
        }
        if call_id.is_some() && id.is_none() {
            // Google's own Python SDK leaves ids out; Vertex is known not to forgive it.
            counts.missing_ids += 1;
            if backend == Backend::Vertex {
                return Some(Mismatch::Id);
            }
        }
    }
    None
}

/// Newer models do not go on from where they stopped.
pub(crate) fn check_end(contents: &[Content], model: Model) -> Result<(), GoogleError> {
    let Some(last) = contents.last() else { return Ok(()) };
    let says_nothing =
        last.parts.iter().all(|part| matches!(&part.data, Data::Text(text) if text.is_empty()));
    if model.generation >= Generation::G3_6 && (last.is_model() || says_nothing) {
        return Err(GoogleError::invalid("Requests ending with a model turn are not supported."));
    }
    Ok(())
}

/// Signatures: there where they must be, real wherever they are.
pub(crate) fn check_signatures(
    request: &Request,
    model: Model,
    target: &Target,
    check: &dyn SignatureCheck,
    counts: &mut Counts,
) -> Result<(), GoogleError> {
    if model.signs_calls() {
        nothing_missing(&request.contents, target.backend)?;
    }
    let mut real = BTreeSet::new();
    let mut refused = Vec::new();
    for part in request.contents.iter().flat_map(|content| &content.parts) {
        let Some(signature) = &part.signature else { continue };
        let bare = signature.0.trim_end_matches('=');
        let is_placeholder = PLACEHOLDERS.contains(&bare)
            || (target.backend == Backend::Developer && ENCODED_PLACEHOLDERS.contains(&bare));
        if is_placeholder {
            counts.placeholders += 1;
            continue;
        }
        match check.check(target, part, &signature.0) {
            SignatureVerdict::Real if real.insert(bare) => counts.signatures += 1,
            SignatureVerdict::Real => counts.doubled += 1,
            SignatureVerdict::Corrupted => refused.push((bare, "Corrupted thought signature.")),
            SignatureVerdict::Invalid => refused.push((bare, "Invalid thought signature.")),
        }
    }
    for (signature, why) in refused {
        // One that stands in its own place as well is paid for twice, but not refused.
        if real.contains(signature) {
            counts.doubled += 1;
            continue;
        }
        return Err(GoogleError::invalid(match target.backend {
            Backend::Developer => why,
            Backend::Vertex => "Thought signature is not valid",
        }));
    }
    Ok(())
}

/// In the current turn, the first call of each step must be signed.
fn nothing_missing(contents: &[Content], backend: Backend) -> Result<(), GoogleError> {
    let turn = contents
        .iter()
        .rposition(|content| !content.is_model() && content.responses() == 0)
        .map_or(0, |at| at + 1);
    let mut first_of_step = true;
    for (at, content) in contents.iter().enumerate().skip(turn) {
        if !content.is_model() {
            first_of_step = true;
            continue;
        }
        for part in &content.parts {
            let Data::Call { name, .. } = &part.data else { continue };
            if first_of_step && part.signature.is_none() {
                return Err(missing(name, at + 1, backend));
            }
            first_of_step = false;
        }
    }
    Ok(())
}

fn missing(name: &str, position: usize, backend: Backend) -> GoogleError {
    GoogleError::invalid(match backend {
        Backend::Developer => format!(
            "Function call is missing a thought_signature in functionCall parts. This is required \
             for tools to work correctly, and missing thought_signature may lead to degraded model \
             performance. Additional data, function call `default_api:{name}` , position \
             {position}. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures \
             for more details."
        ),
        Backend::Vertex => format!(
            "Unable to submit request because function call `default_api:{name}` in the \
             {position}. content block is missing a `thought_signature`. Learn more: \
             https://cloud.google.com/vertex-ai/generative-ai/docs/thought-signatures"
        ),
    })
}
