//! Which block a thing becomes.
//!
//! ```text
//! text       text                          closed by whatever is not text
//! thought    thinking                      closed by its signature, by that of the call after it,
//!                                          or by an empty one: every block has exactly one
//! signature  thinking.signature, or a redacted_thinking block of its own
//! call       tool_use
//! server     server_tool_use and its result, with the part itself sealed before it
//! grounding  server_tool_use, web_search_tool_result
//! media      text
//! ```
//!
//! A client that did not ask for thinking gets no thoughts and no signatures of plain text: it has
//! no reason to expect such blocks, and Gemini only suffers a little. It does get what Gemini
//! demands back, the signatures of calls and of its own tools, in `redacted_thinking`.

use serde::Deserialize;

use super::request::Echo;
use super::wire;
use crate::canon::{
    Call, CallInput, Finish, FinishReason, IdGen, Issuer, Media, MediaSource, ServerActivity,
    Signature, Usage, call_token,
};
use crate::json::{Raw, Text, write};
use crate::seal::{Envelope, Sealed, Sealer};

/// Where blocks are written: into frames, or into one message.
pub(super) trait Page {
    /// Begins a block of text.
    fn open_text(&mut self);
    /// Adds to it.
    fn text(&mut self, text: &Text<'_>);
    /// Ends it.
    fn close_text(&mut self);
    /// Begins a block of thinking.
    fn open_thinking(&mut self);
    /// Adds to it.
    fn thinking(&mut self, text: &Text<'_>);
    /// Signs and ends it.
    fn close_thinking(&mut self, signature: &str);
    /// Writes a call; `head` writes its members before `input`.
    fn call(&mut self, head: &dyn Fn(&mut Vec<u8>), input: &str);
    /// Writes a block that comes in one piece, members only.
    fn whole(&mut self, members: &dyn Fn(&mut Vec<u8>));
}

/// Turns what Gemini says into blocks.
#[derive(Clone, Debug)]
pub(super) struct Composer {
    echo: Echo,
    sealer: Sealer,
    ids: IdGen,
    open: Open,
    called: bool,
    /// Who answers, once a signature has said it.
    issuer: Option<Issuer>,
    /// What was searched for so far.
    queries: Vec<String>,
    /// The code that waits for its result.
    running: Option<Running>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    Nothing,
    Text,
    Thinking,
}

#[derive(Clone, Debug)]
struct Running {
    id: String,
    gemini_id: Option<String>,
    is_sealed: bool,
}

impl Composer {
    pub(super) fn new(echo: Echo, sealer: Sealer, ids: IdGen) -> Self {
        Self {
            echo,
            sealer,
            ids,
            open: Open::Nothing,
            called: false,
            issuer: None,
            queries: Vec::new(),
            running: None,
        }
    }

    pub(super) fn echo(&self) -> &Echo {
        &self.echo
    }

    /// Words.
    pub(super) fn text(&mut self, text: &Text<'_>, page: &mut impl Page) {
        if self.open != Open::Text {
            self.close(page);
            page.open_text();
            self.open = Open::Text;
        }
        page.text(text);
    }

    /// A thought.
    pub(super) fn thought(&mut self, text: &Text<'_>, page: &mut impl Page) {
        if !self.echo.show_thoughts {
            return;
        }
        if self.open != Open::Thinking {
            self.close(page);
            page.open_thinking();
            self.open = Open::Thinking;
        }
        page.thinking(text);
    }

    /// The signature of the text or thought before it.
    pub(super) fn signature(
        &mut self,
        is_thought: bool,
        len: usize,
        signature: &Signature<'_>,
        page: &mut impl Page,
    ) {
        let signature = signature.clone();
        if !is_thought {
            if self.echo.thinking
                && let Some(sealed) = self.seal_signature(Sealed::Text { len, signature })
            {
                self.close(page);
                redacted(&sealed, page);
            }
            return;
        }
        let is_shown = self.open == Open::Thinking;
        // The client does not have the thought, so it cannot give back any of its bytes.
        let len = if is_shown { len } else { 0 };
        let Some(sealed) = self.seal_signature(Sealed::Thought { len, signature }) else { return };
        if is_shown {
            self.sign(&sealed, page);
        } else if self.echo.thinking {
            self.close(page);
            page.open_thinking();
            page.close_thinking(&sealed);
        } else {
            self.close(page);
            redacted(&sealed, page);
        }
    }

    /// A call, with its signature before it.
    pub(super) fn call(&mut self, call: &Call<'_>, page: &mut impl Page) {
        let id = format!("toolu_{}", call.id);
        let sealed = call.signature.clone().and_then(|signature| {
            self.seal_signature(Sealed::Call { token: call_token(&id).into(), signature })
        });
        match sealed {
            Some(sealed) if self.open == Open::Thinking => self.sign(&sealed, page),
            Some(sealed) => {
                self.close(page);
                redacted(&sealed, page);
            }
            None => self.close(page),
        }
        let head = |out: &mut Vec<u8>| {
            member(out, "type", "tool_use");
            member(out, "id", &id);
            member(out, "name", &call.tool.name);
            if let Some(toolset) = &call.tool.namespace {
                member(out, "toolset_name", toolset);
            }
        };
        match &call.input {
            CallInput::Json(input) => page.call(&head, input.get()),
            CallInput::Text(text) => page.call(&head, &object("input", text)),
        }
        self.called = true;
    }

    /// A picture or other medium. The dialect has no block for one, so it is linked in the text.
    pub(super) fn media(&mut self, media: &Media<'_>, page: &mut impl Page) {
        let mime = media.mime.as_deref().unwrap_or("application/octet-stream");
        let mark = if mime.starts_with("image/") { "!" } else { "" };
        let mut link = match &media.source {
            MediaSource::Inline(data) => {
                let mut link = Text::new(&format!("{mark}[{mime}](data:{mime};base64,"));
                link.push(data);
                link
            }
            MediaSource::Uri(uri) => {
                let mut link = Text::new(&format!("{mark}[{mime}]("));
                link.push(uri);
                link
            }
        };
        link.push(&Text::new(")"));
        self.text(&link, page);
    }

    /// Something that Gemini did itself.
    ///
    /// What it signed, and what has no readable form here, is sealed so that it can go back as it
    /// was; the readable block beside it is for the client alone.
    pub(super) fn server(&mut self, activity: &ServerActivity<'_>, page: &mut impl Page) {
        self.close(page);
        if self.issuer.is_none() {
            self.issuer.clone_from(&activity.issuer);
        }
        let is_signed =
            activity.part.fields().is_some_and(|part| part.get("thoughtSignature").is_some());
        let body = parse::<wire::Execution<'_>>(&activity.body).unwrap_or_default();
        match &*activity.kind {
            "executableCode" => {
                let is_sealed = is_signed && self.seal_part(activity, page);
                self.run(&body, is_sealed, page);
            }
            "codeExecutionResult" => {
                let gemini_id = body.id.as_ref().map(|id| id.decode().into_owned());
                let running = self.running.take().filter(|running| {
                    gemini_id.is_none()
                        || running.gemini_id.is_none()
                        || running.gemini_id == gemini_id
                });
                if is_signed || running.as_ref().is_some_and(|running| running.is_sealed) {
                    self.seal_part(activity, page);
                }
                // A result of nothing would confuse clients that pair them.
                let id = match running {
                    Some(running) => running.id,
                    None => self.run(&wire::Execution::default(), false, page),
                };
                self.running = None;
                page.whole(&|out| execution_result(out, &id, &body));
            }
            _ => {
                self.seal_part(activity, page);
            }
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
        self.queries.extend(queries);
    }

    /// Ends the block that is open.
    pub(super) fn close(&mut self, page: &mut impl Page) {
        match self.open {
            Open::Nothing => {}
            Open::Text => page.close_text(),
            Open::Thinking => page.close_thinking(""),
        }
        self.open = Open::Nothing;
    }

    /// Why the message ended, in Anthropic's words.
    pub(super) fn stop_reason(&self, finish: &Finish) -> &'static str {
        match finish.reason {
            FinishReason::MaxTokens => "max_tokens",
            _ if self.called => "tool_use",
            FinishReason::Blocked(_) => "refusal",
            FinishReason::Stop | FinishReason::ToolCalls => "end_turn",
        }
    }

    /// Writes `stop_reason` and what belongs to it. Gemini does not say which stop sequence it met.
    pub(super) fn stop(&self, out: &mut Vec<u8>, finish: &Finish) {
        let reason = self.stop_reason(finish);
        member(out, "stop_reason", reason);
        write::key(out, "stop_sequence");
        out.extend_from_slice(b"null");
        let FinishReason::Blocked(word) = &finish.reason else { return };
        if reason == "refusal" {
            let explanation = match &finish.message {
                Some(message) => format!("{word}: {message}"),
                None => word.clone(),
            };
            write::key(out, "stop_details");
            out.extend_from_slice(br#"{"type":"refusal","category":null"#);
            member(out, "explanation", &explanation);
            out.push(b'}');
        }
    }

    /// Writes `usage`. Anthropic counts cached tokens apart from the others, Gemini among them.
    pub(super) fn usage(&self, out: &mut Vec<u8>, usage: &Usage) {
        write::key(out, "usage");
        out.push(b'{');
        count(out, "input_tokens", usage.uncached_input());
        count(out, "cache_creation_input_tokens", 0);
        count(out, "cache_read_input_tokens", usage.cached.unwrap_or(0));
        count(out, "output_tokens", usage.output());
        if let Some(thoughts) = usage.thoughts {
            write::key(out, "output_tokens_details");
            out.push(b'{');
            count(out, "thinking_tokens", thoughts);
            out.push(b'}');
        }
        if !self.queries.is_empty() {
            write::key(out, "server_tool_use");
            out.push(b'{');
            count(out, "web_search_requests", self.queries.len() as u64);
            count(out, "web_fetch_requests", 0);
            out.push(b'}');
        }
        out.push(b'}');
    }

    /// Ends the open block of thinking with a signature.
    fn sign(&mut self, sealed: &str, page: &mut impl Page) {
        page.close_thinking(sealed);
        self.open = Open::Nothing;
    }

    /// Shows code that Gemini ran, and says under which id.
    fn run(&mut self, body: &wire::Execution<'_>, is_sealed: bool, page: &mut impl Page) -> String {
        let id = format!("srvtoolu_{}", self.ids.call(None));
        let input = object("code", body.code.as_ref().unwrap_or(&Text::EMPTY));
        page.call(&|out| server_head(out, &id, "code_execution"), &input);
        let gemini_id = body.id.as_ref().map(|id| id.decode().into_owned());
        self.running = Some(Running { id: id.clone(), gemini_id, is_sealed });
        id
    }

    fn seal_part(&mut self, activity: &ServerActivity<'_>, page: &mut impl Page) -> bool {
        let issuer = activity.issuer.as_ref().or(self.issuer.as_ref());
        let Some(issuer) = issuer.cloned() else { return false };
        let on = Sealed::Part(activity.part.borrowed());
        redacted(&self.sealer.seal(&Envelope { on, issuer }), page);
        true
    }

    /// Seals a signature. One whose issuer nobody knows could never be sent back.
    fn seal_signature(&mut self, on: Sealed<'_>) -> Option<String> {
        let named = match &on {
            Sealed::Call { signature, .. }
            | Sealed::Text { signature, .. }
            | Sealed::Thought { signature, .. } => signature.issuer(),
            Sealed::Part(_) => None,
        };
        if self.issuer.is_none() {
            self.issuer = named.cloned();
        }
        let issuer = named.or(self.issuer.as_ref())?.clone();
        Some(self.sealer.seal(&Envelope { on, issuer }))
    }
}

/// Writes `"name":"value"`.
pub(super) fn member(out: &mut Vec<u8>, name: &str, value: &str) {
    write::key(out, name);
    write::string(out, value);
}

fn count(out: &mut Vec<u8>, name: &str, value: u64) {
    write::key(out, name);
    write::integer(out, value);
}

fn redacted(data: &str, page: &mut impl Page) {
    page.whole(&|out| {
        member(out, "type", "redacted_thinking");
        member(out, "data", data);
    });
}

fn server_head(out: &mut Vec<u8>, id: &str, name: &str) {
    member(out, "type", "server_tool_use");
    member(out, "id", id);
    member(out, "name", name);
}

fn execution_result(out: &mut Vec<u8>, id: &str, body: &wire::Execution<'_>) {
    member(out, "type", "code_execution_tool_result");
    member(out, "tool_use_id", id);
    write::key(out, "content");
    let outcome = body.outcome.as_ref().map(Text::decode).unwrap_or_default();
    let output = body.output.as_ref().unwrap_or(&Text::EMPTY);
    if outcome == "OUTCOME_DEADLINE_EXCEEDED" && output.is_empty() {
        out.push(b'{');
        member(out, "type", "code_execution_tool_result_error");
        member(out, "error_code", "execution_time_exceeded");
        out.push(b'}');
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

/// `{"name":text}`
fn object(name: &str, text: &Text<'_>) -> String {
    let mut out = vec![b'{'];
    write::key(&mut out, name);
    text.write(&mut out);
    out.push(b'}');
    String::from_utf8_lossy(&out).into_owned()
}

fn parse<'j, T: Deserialize<'j>>(raw: &'j Raw<'_>) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}
