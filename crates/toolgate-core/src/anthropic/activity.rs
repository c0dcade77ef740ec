//! What Gemini did itself, as blocks: code that it ran, pages that it found.

use super::compose::{Composer, DIRECT_CALLER, Page, count, member, object, redacted};
use crate::canon::{CodeOutcome, Grounding, ServerAction, ServerActivity, Source, SourceKind};
use crate::json::{Text, write};
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
    /// Signed parts, and parts without a readable form here, are sealed so that they can go back as they
    /// was; the readable block beside it is for the client alone.
    pub(super) fn server(&mut self, activity: &ServerActivity<'_>, page: &mut impl Page) {
        self.close(page);
        if self.issuer.is_none() {
            self.issuer.clone_from(&activity.issuer);
        }
        match &activity.action {
            ServerAction::Code { id, code } => {
                let is_sealed = activity.is_signed && self.seal_part(activity, page);
                let running = self.show(id.as_ref(), code, is_sealed, page);
                self.running.push(running);
            }
            ServerAction::CodeResult { id, outcome, output } => {
                let gemini_id = id.as_ref().map(|id| id.decode().into_owned());
                let by_id = |it: &Running| gemini_id.is_some() && it.gemini_id == gemini_id;
                let index = self.running.iter().position(by_id).unwrap_or(0);
                let running = (index < self.running.len()).then(|| self.running.remove(index));
                if activity.is_signed || running.as_ref().is_some_and(|running| running.is_sealed) {
                    self.seal_part(activity, page);
                }
                // A result of nothing would confuse clients that pair them.
                let running =
                    running.unwrap_or_else(|| self.show(id.as_ref(), &Text::EMPTY, false, page));
                let id = running.id;
                page.whole(&|out| execution_result(out, &id, *outcome, output));
            }
            ServerAction::Search(_) | ServerAction::OpenPage(_) | ServerAction::Other => {
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

    /// Grounding of the answer, if the client asked for a search.
    pub(super) fn grounding(&mut self, grounding: &Grounding, page: &mut impl Page) {
        if !self.echo.web_search {
            return;
        }
        let queries = grounding.queries.iter().filter(|query| !self.queries.contains(query));
        let queries: Vec<_> = queries.cloned().collect();
        let pages = grounding.sources.iter().filter(|source| source.kind == SourceKind::Web);
        let pages: Vec<_> = pages.collect();
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
        gemini_id: Option<&Text<'_>>,
        code: &Text<'_>,
        is_sealed: bool,
        page: &mut impl Page,
    ) -> Running {
        let id = format!("srvtoolu_{}", self.ids.call(None));
        let input = object("code", code);
        page.call(&|out| server_head(out, &id, "code_execution"), &input);
        let gemini_id = gemini_id.map(|id| id.decode().into_owned());
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
    out.extend_from_slice(DIRECT_CALLER);
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

fn execution_result(out: &mut Vec<u8>, id: &str, outcome: CodeOutcome, output: &Text<'_>) {
    result_head(out, id);
    if outcome == CodeOutcome::TimedOut && output.is_empty() {
        execution_error(out, "execution_time_exceeded");
        return;
    }
    let succeeded = outcome == CodeOutcome::Succeeded;
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

fn search_result(out: &mut Vec<u8>, id: &str, pages: &[&Source]) {
    member(out, "type", "web_search_tool_result");
    member(out, "tool_use_id", id);
    out.extend_from_slice(DIRECT_CALLER);
    write::key(out, "content");
    out.push(b'[');
    for found in pages {
        write::comma(out);
        out.push(b'{');
        member(out, "type", "web_search_result");
        member(out, "url", &found.url);
        member(out, "title", found.title.as_ref().unwrap_or(&found.url));
        out.extend_from_slice(br#","encrypted_content":"","page_age":null}"#);
    }
    out.push(b']');
}
