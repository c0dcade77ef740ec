//! Parts in which Gemini reports what it did itself.

use std::borrow::Cow;

use serde::Deserialize;

use crate::canon::{CodeOutcome, Issuer, ServerAction, ServerActivity};
use crate::json::{self, Raw, Text};

/// Decodes a part whose member `kind` has the value `body`.
pub fn decode_activity<'a>(
    kind: Cow<'a, str>,
    body: Raw<'a>,
    part: Raw<'a>,
    issuer: Option<Issuer>,
) -> ServerActivity<'a> {
    let signatures = ["thoughtSignature", "thought_signature"];
    let is_signed = part
        .fields()
        .is_some_and(|fields| signatures.iter().any(|name| fields.get(name).is_some()));
    ServerActivity { action: decode_action(&kind, &body), kind, body, part, is_signed, issuer }
}

/// Code or the result of code, in a part that a client kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodePart {
    /// Code that Gemini ran.
    Code,
    /// Its result.
    Result,
}

impl CodePart {
    /// Finds out whether a part holds code or its result.
    pub fn of(part: &Raw<'_>) -> Option<Self> {
        let fields = part.fields()?;
        match () {
            () if fields.get(CODE).is_some() => Some(Self::Code),
            () if fields.get(CODE_RESULT).is_some() => Some(Self::Result),
            () => None,
        }
    }
}

pub(super) const CODE: &str = "executableCode";
pub(super) const CODE_RESULT: &str = "codeExecutionResult";
pub(super) const TOOL_CALL: &str = "toolCall";
pub(super) const TOOL_RESPONSE: &str = "toolResponse";

/// Members of `executableCode` and `codeExecutionResult`.
#[derive(Debug, Default, Deserialize)]
struct Execution<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    code: Option<Text<'a>>,
    outcome: Option<Text<'a>>,
    output: Option<Text<'a>>,
}

/// Members of a `toolCall`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct BuiltInCall<'a> {
    #[serde(borrow)]
    tool_type: Option<Text<'a>>,
    args: Option<Raw<'a>>,
}

/// Decodes the step. Its text is copied: steps are few, and `body` may own its JSON.
fn decode_action(kind: &str, body: &Raw<'_>) -> ServerAction<'static> {
    let execution = || json::parse::<Execution<'_>>(body.get()).unwrap_or_default();
    let owned = |text: Option<Text<'_>>| text.map_or(Text::EMPTY, Text::into_owned);
    match kind {
        CODE => {
            let Execution { id, code, .. } = execution();
            ServerAction::Code { id: id.map(Text::into_owned), code: owned(code) }
        }
        CODE_RESULT => {
            let Execution { id, outcome, output, .. } = execution();
            let outcome = match outcome.as_ref().map(Text::decode).as_deref() {
                Some("OUTCOME_OK") => CodeOutcome::Succeeded,
                Some("OUTCOME_DEADLINE_EXCEEDED") => CodeOutcome::TimedOut,
                Some(_) | None => CodeOutcome::Failed,
            };
            ServerAction::CodeResult {
                id: id.map(Text::into_owned),
                outcome,
                output: owned(output),
            }
        }
        TOOL_CALL => decode_built_in_call(body).unwrap_or(ServerAction::Other),
        _ => ServerAction::Other,
    }
}

/// Decodes a call of one of Gemini's own tools.
fn decode_built_in_call(body: &Raw<'_>) -> Option<ServerAction<'static>> {
    let call: BuiltInCall<'_> = json::parse(body.get()).ok()?;
    let args = call.args.as_ref().and_then(Raw::fields)?;
    match &*call.tool_type?.decode() {
        "GOOGLE_SEARCH_WEB" | "GOOGLE_SEARCH_IMAGE" => {
            let listed = args.get("queries").and_then(Raw::items).unwrap_or_default();
            let queries = listed.iter().chain(args.get("query")).filter_map(Raw::as_text);
            Some(ServerAction::Search(queries.map(|it| it.decode().into_owned()).collect()))
        }
        "URL_CONTEXT" => {
            let listed = args.get("urls").and_then(Raw::items).unwrap_or_default();
            let url = listed.first().or_else(|| args.get("url"))?.as_text()?.into_owned();
            Some(ServerAction::OpenPage(url))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(kind: &str, body: &str, want: &ServerAction<'_>) {
        let body = Raw::parse(body.to_owned()).unwrap();
        assert_eq!(decode_action(kind, &body), *want, "{body:?}");
    }

    #[test]
    fn code_and_results_are_decoded() {
        let (id, code) = (Some(Text::new("7")), Text::new("print(1)"));
        check(
            CODE,
            r#"{"id":"7","code":"print(1)","language":"PYTHON"}"#,
            &ServerAction::Code { id, code },
        );
        for (word, outcome) in [
            ("OUTCOME_OK", CodeOutcome::Succeeded),
            ("OUTCOME_FAILED", CodeOutcome::Failed),
            ("OUTCOME_DEADLINE_EXCEEDED", CodeOutcome::TimedOut),
            ("a later word", CodeOutcome::Failed),
        ] {
            let body = format!(r#"{{"outcome":"{word}","output":"1"}}"#);
            let output = Text::new("1");
            check(CODE_RESULT, &body, &ServerAction::CodeResult { id: None, outcome, output });
        }
        check(CODE, "[]", &ServerAction::Code { id: None, code: Text::EMPTY });
    }

    #[test]
    fn built_in_calls_are_decoded() {
        let search = r#"{"toolType":"GOOGLE_SEARCH_WEB","args":{"queries":["b",1,"c"]},"id":"x"}"#;
        check(TOOL_CALL, search, &ServerAction::Search(vec!["b".into(), "c".into()]));
        let page = r#"{"toolType":"URL_CONTEXT","args":{"urls":["https://a.test"]}}"#;
        check(TOOL_CALL, page, &ServerAction::OpenPage(Text::new("https://a.test")));
        for other in [r#"{"toolType":"NEW","args":{}}"#, r#"{"toolType":"URL_CONTEXT"}"#, "{}"] {
            check(TOOL_CALL, other, &ServerAction::Other);
        }
        check(TOOL_RESPONSE, search, &ServerAction::Other);
    }
}
