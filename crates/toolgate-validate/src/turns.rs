//! The rules of turns: roles, the order of calls and responses, and required signatures.

use std::collections::BTreeSet;

use toolgate_core::canon::{Backend, Target};

use crate::accepted::{Counts, Mismatch, SignatureCheck, SignatureVerdict};
use crate::error::GoogleError;
use crate::model::{Generation, Model};
use crate::request::{Content, Data, Part, Request};

const CALL_ORDER_MESSAGE: &str = "Please ensure that function call turn comes immediately after a user \
                          turn or after a function response turn.";
const RESPONSE_ORDER_MESSAGE: &str = "Please ensure that function response turn comes immediately after a \
                              function call turn.";
const RESPONSE_COUNT_MESSAGE: &str = "Please ensure that the number of function response parts is equal to the \
                     number of function call parts of the function call turn.";

/// Google's documented placeholders for a missing signature.
const PLACEHOLDERS: [&str; 2] =
    ["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"];
/// The placeholders in base64, which only the Developer API accepts.
const ENCODED_PLACEHOLDERS: [&str; 2] = [
    "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I",
    "Y29udGV4dF9lbmdpbmVlcmluZ19pc190aGVfd2F5X3RvX2dv",
];

/// Checks roles, and the order of calls and responses. Returns a mismatch if the model answers it with
/// an empty turn instead of an error.
pub(crate) fn check_order(
    request: &Request,
    model: Model,
    target: &Target,
    counts: &mut Counts,
) -> Result<Option<Mismatch>, GoogleError> {
    check_roles(&request.contents, model)?;
    let mut mismatch = None;
    let mut report = |how: Mismatch| {
        if model.answers_mismatch_with_nothing() {
            mismatch.get_or_insert(how);
            Ok(())
        } else if how == Mismatch::Count {
            Err(GoogleError::invalid(RESPONSE_COUNT_MESSAGE))
        } else {
            Ok(())
        }
    };
    let contents = &request.contents;
    let mut at = 0;
    while let Some(content) = contents.get(at) {
        if !content.is_model() {
            if content.calls() > 0 {
                return Err(GoogleError::invalid(CALL_ORDER_MESSAGE));
            }
            if content.responses() > 0 {
                return Err(GoogleError::invalid(RESPONSE_ORDER_MESSAGE));
            }
            at += 1;
            continue;
        }
        // A turn of the model may span several contents: SDKs return streams that way.
        let start = at;
        at += contents[start..].iter().take_while(|content| content.is_model()).count();
        let turn = &contents[start..at];
        if turn.iter().any(|content| content.responses() > 0) {
            return Err(GoogleError::invalid(RESPONSE_ORDER_MESSAGE));
        }
        let calls: Vec<&Part> = turn
            .iter()
            .flat_map(|content| &content.parts)
            .filter(|part| matches!(part.data, Data::Call { .. }))
            .collect();
        if !calls.is_empty() && start == 0 {
            return Err(GoogleError::invalid(CALL_ORDER_MESSAGE));
        }
        let Some(answer) = contents.get(at) else { break };
        match (calls.len(), answer.responses()) {
            (0, 0) => continue,
            (0, _) => return Err(GoogleError::invalid(RESPONSE_ORDER_MESSAGE)),
            (_, 0) => {
                report(Mismatch::Count)?;
                continue;
            }
            (_, _) => {}
        }
        at += 1;
        if calls.len() != answer.responses() {
            report(Mismatch::Count)?;
        } else if let Some(how) = compare(&calls, answer, target.backend, counts) {
            report(how)?;
        }
        let beside = |wanted: fn(&Data) -> bool| answer.parts.iter().any(|part| wanted(&part.data));
        let is_old = model.generation <= Generation::G2_5;
        if is_old && calls.len() > 1 && beside(|data| matches!(data, Data::Media { .. })) {
            report(Mismatch::Count)?;
        }
        let has_text_or_media = beside(|data| matches!(data, Data::Text(_) | Data::Media { .. }));
        if model.generation == Generation::G3_5 && has_text_or_media {
            report(Mismatch::Mixed)?;
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

/// Compares responses with calls: by id if the response has one, otherwise by name and position.
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
            // Google's own Python SDK omits ids; Vertex is known to refuse that.
            counts.missing_ids += 1;
            if backend == Backend::Vertex {
                return Some(Mismatch::Id);
            }
        }
    }
    None
}

/// Refuses requests that end with a model turn or an empty one; newer models do not continue it.
pub(crate) fn check_end(contents: &[Content], model: Model) -> Result<(), GoogleError> {
    let Some(last) = contents.last() else { return Ok(()) };
    let is_empty =
        last.parts.iter().all(|part| matches!(&part.data, Data::Text(text) if text.is_empty()));
    if model.generation >= Generation::G3_6 && (last.is_model() || is_empty) {
        return Err(GoogleError::invalid("Requests ending with a model turn are not supported."));
    }
    Ok(())
}

/// Checks that required signatures are present, and that all signatures are genuine.
pub(crate) fn check_signatures(
    request: &Request,
    model: Model,
    target: &Target,
    check: &dyn SignatureCheck,
    counts: &mut Counts,
) -> Result<(), GoogleError> {
    if model.signs_calls() {
        check_presence(&request.contents, target.backend)?;
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
        // A copy of a genuine signature is not refused.
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

/// Checks that the first call of each step of the current turn is signed.
fn check_presence(contents: &[Content], backend: Backend) -> Result<(), GoogleError> {
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
