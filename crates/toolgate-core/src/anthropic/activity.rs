//! What Gemini did itself, as blocks: code that it ran, pages that it found.

use serde::Deserialize;

use super::compose::{Composer, Page, count, member, object, redacted};
use super::wire;
use crate::canon::ServerActivity;
use crate::json::{Raw, Text, write};
use crate::seal::{Envelope, Sealed};

/// Code that waits for its result.
#[derive(Clone, Debug)]
pub(super) struct Running {
    id: String,
    gemini_id: Option<String>,
    is_sealed: bool,
}

impl Composer {
    /// Something that Gemini did itself.
    ///
    /// What it signed, and what has no readable form here, is sealed so that it can go back as it
    /// was; the readable block beside it is for the client alone.
    pub(super) fn server(&mut self, activity: &ServerActivity<'_>, page: &mut impl Page) {
        self.close(page);
        if self.issuer.is_none() {
            self.issuer.clone_from(&activity.issuer);
        }
        let is_signed = activity.is_signed();
        let body = parse::<wire::Execution<'_>>(&activity.body).unwrap_or_default();
        match &*activity.kind {
            "executableCode" => {
                let is_sealed = is_signed && self.seal_part(activity, page);
                let running = self.show(&body, is_sealed, page);
                self.running.push(running);
            }
            "codeExecutionResult" => {
                let gemini_id = body.id.as_ref().map(|id| id.decode().into_owned());
                let by_id = |it: &Running| gemini_id.is_some() && it.gemini_id == gemini_id;
                let index = self.running.iter().position(by_id).unwrap_or(0);
                let running = (index < self.running.len()).then(|| self.running.remove(index));
                if is_signed || running.as_ref().is_some_and(|running| running.is_sealed) {
                    self.seal_part(activity, page);
                }
                // A result of nothing would confuse clients that pair them.
                let running = running.unwrap_or_else(|| self.show(&body, false, page));
                let id = running.id;
                page.whole(&|out| execution_result(out, &id, &body));
            }
            _ => {
                self.seal_part(activity, page);
            }
        }
    }

    /// Ends code whose result never came: clients pair calls and results.
    pub(super) fn abandon(&mut self, page: &mut impl Page) {
        for running in std::mem::take(&mut self.running) {
            page.whole(&|out| {
                result_head(out, &running.id);
                execution_error(out, "unavailable");
            });
        }
    }

    /// What the answer rests on, where the client asked for a search.
    pub(super) fn grounding(&mut self, grounding: &Raw<'_>, page: &mut impl Page) {
        if !self.echo.web_search {
            return;
        }
        let Some(grounding) = parse::<wire::Grounding<'_>>(grounding) else { return };
        let queries = grounding.web_search_queries.unwrap_or_default();
        let queries = queries.iter().map(|query| query.decode().into_owned());
        let queries: Vec<_> = queries.filter(|query| !self.queries.contains(query)).collect();
        let pages: Vec<_> =
            grounding.grounding_chunks.into_iter().flatten().filter_map(|it| it.web).collect();
        if queries.is_empty() && pages.is_empty() {
            return;
        }
        self.close(page);
        let id = format!("srvtoolu_{}", self.ids.call(None));
        let input = object("query", &Text::new(&queries.join(", ")));
        page.call(&|out| server_head(out, &id, "web_search"), &input);
        page.whole(&|out| search_result(out, &id, &pages));
        self.searches += queries.len().max(1) as u64;
        self.queries.extend(queries);
    }

    /// Shows code that Gemini ran.
    fn show(
        &mut self,
        body: &wire::Execution<'_>,
        is_sealed: bool,
        page: &mut impl Page,
    ) -> Running {
        let id = format!("srvtoolu_{}", self.ids.call(None));
        let input = object("code", body.code.as_ref().unwrap_or(&Text::EMPTY));
        page.call(&|out| server_head(out, &id, "code_execution"), &input);
        let gemini_id = body.id.as_ref().map(|id| id.decode().into_owned());
        Running { id, gemini_id, is_sealed }
    }

    fn seal_part(&mut self, activity: &ServerActivity<'_>, page: &mut impl Page) -> bool {
        let issuer = activity.issuer.as_ref().or(self.issuer.as_ref());
        let Some(issuer) = issuer.cloned() else { return false };
        let on = Sealed::Part(activity.part.borrowed());
        redacted(&self.sealer.seal(&Envelope { on, issuer }), page);
        true
    }
}

fn server_head(out: &mut Vec<u8>, id: &str, name: &str) {
    member(out, "type", "server_tool_use");
    member(out, "id", id);
    member(out, "name", name);
}

fn result_head(out: &mut Vec<u8>, id: &str) {
    member(out, "type", "code_execution_tool_result");
    member(out, "tool_use_id", id);
    write::key(out, "content");
}

fn execution_error(out: &mut Vec<u8>, code: &str) {
    out.push(b'{');
    member(out, "type", "code_execution_tool_result_error");
    member(out, "error_code", code);
    out.push(b'}');
}

fn execution_result(out: &mut Vec<u8>, id: &str, body: &wire::Execution<'_>) {
    result_head(out, id);
    let outcome = body.outcome.as_ref().map(Text::decode).unwrap_or_default();
    let output = body.output.as_ref().unwrap_or(&Text::EMPTY);
    if outcome == "OUTCOME_DEADLINE_EXCEEDED" && output.is_empty() {
        execution_error(out, "execution_time_exceeded");
        return;
    }
    let succeeded = outcome == "OUTCOME_OK";
    let (stdout, stderr) = if succeeded { (output, &Text::EMPTY) } else { (&Text::EMPTY, output) };
    out.push(b'{');
    member(out, "type", "code_execution_result");
    write::key(out, "stdout");
    stdout.write(out);
    write::key(out, "stderr");
    stderr.write(out);
    count(out, "return_code", u64::from(!succeeded));
    write::key(out, "content");
    out.extend_from_slice(b"[]}");
}

fn search_result(out: &mut Vec<u8>, id: &str, pages: &[wire::SearchPage<'_>]) {
    member(out, "type", "web_search_tool_result");
    member(out, "tool_use_id", id);
    write::key(out, "content");
    out.push(b'[');
    for found in pages {
        write::comma(out);
        out.push(b'{');
        member(out, "type", "web_search_result");
        write::key(out, "url");
        found.uri.as_ref().unwrap_or(&Text::EMPTY).write(out);
        write::key(out, "title");
        found.title.as_ref().or(found.uri.as_ref()).unwrap_or(&Text::EMPTY).write(out);
        out.extend_from_slice(br#","encrypted_content":"","page_age":null}"#);
    }
    out.push(b']');
}

fn parse<'j, T: Deserialize<'j>>(raw: &'j Raw<'_>) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}
