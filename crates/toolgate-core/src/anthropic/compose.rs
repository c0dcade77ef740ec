//! Blocks of an answer.
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
//!
//! The signature of a text waits for the block after it. Where that is more text, or nothing, it is
//! left out: Gemini does not demand it, and clients take the last block for the answer (Claude
//! Code's `-p` prints that alone), which must be the text, and all of it.

use super::activity::Running;
use super::request::Echo;
use crate::canon::{
    Call, CallInput, Finish, FinishReason, IdGen, Issuer, Media, MediaSource, Signature, Usage,
    call_token,
};
use crate::json::{Text, write};
use crate::seal::{Envelope, Sealed, Sealer};

/// Members of `usage` that Gemini has no counterpart for.
const SERVICE: &[u8] = br#","cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},"service_tier":"standard","inference_geo":null,"speed":null"#;

/// `caller` of a tool use: the model itself, not code that it runs.
pub(super) const DIRECT_CALLER: &[u8] = br#","caller":{"type":"direct"}"#;

/// Output of blocks: frames, or one message.
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

/// Composes blocks from Gemini's events.
#[derive(Clone, Debug)]
pub(super) struct Composer {
    pub(super) echo: Echo,
    pub(super) sealer: Sealer,
    pub(super) ids: IdGen,
    open: Open,
    called: bool,
    /// Envelope of a text's signature, held until the next block is known.
    waiting: Option<String>,
    /// The next words stand apart from those before them.
    gap: bool,
    /// The issuer of the answer, once a signature names it.
    pub(super) issuer: Option<Issuer>,
    /// Queries searched for so far.
    pub(super) queries: Vec<String>,
    /// Number of searches shown.
    pub(super) searches: u64,
    /// Code that waits for its result.
    pub(super) running: Vec<Running>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    Nothing,
    Text,
    Thinking,
}

impl Composer {
    pub(super) fn new(echo: Echo, sealer: Sealer, ids: IdGen) -> Self {
        Self {
            echo,
            sealer,
            ids,
            open: Open::Nothing,
            called: false,
            waiting: None,
            gap: false,
            issuer: None,
            queries: Vec::new(),
            searches: 0,
            running: Vec::new(),
        }
    }

    pub(super) fn echo(&self) -> &Echo {
        &self.echo
    }

    /// Text of the answer.
    pub(super) fn text(&mut self, text: &Text<'_>, page: &mut impl Page) {
        let gap = std::mem::take(&mut self.gap);
        if self.open == Open::Text {
            self.waiting = None;
            if gap {
                page.text(&Text::new("\n\n"));
            }
        } else {
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
            if self.echo.thinking {
                let sealed = self.seal_signature(Sealed::Text { len, signature });
                self.waiting = sealed.or_else(|| self.waiting.take());
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
        let is_carried = self.echo.thinking || !self.echo.signatures_stored;
        let sealed = call.signature.clone().filter(|_| is_carried).and_then(|signature| {
            let signature = signature.of_tool(&call.tool);
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
            out.extend_from_slice(DIRECT_CALLER);
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
        self.gap = true;
        self.text(&link, page);
        self.gap = true;
    }

    /// Ends the block that is open.
    pub(super) fn close(&mut self, page: &mut impl Page) {
        match self.open {
            Open::Nothing => {}
            Open::Text => page.close_text(),
            Open::Thinking => page.close_thinking(""),
        }
        self.open = Open::Nothing;
        if let Some(sealed) = self.waiting.take() {
            redacted(&sealed, page);
        }
    }

    /// Ends all blocks.
    pub(super) fn finish(&mut self, page: &mut impl Page) {
        if !self.called {
            self.waiting = None;
        }
        self.close(page);
        self.abandon(page);
    }

    /// Why the message ended, in Anthropic's words.
    pub(super) fn stop_reason(&self, finish: &Finish) -> &'static str {
        match finish.reason {
            // R114: a call that was delivered whole is to be run, however the turn ended.
            _ if self.called => "tool_use",
            FinishReason::MaxTokens => "max_tokens",
            FinishReason::Blocked(_) => "refusal",
            FinishReason::Stop | FinishReason::ToolCalls => "end_turn",
        }
    }

    /// Writes `stop_reason` and the members that belong to it, null where they do not apply. Gemini
    /// does not report which stop sequence it met.
    pub(super) fn stop(&self, out: &mut Vec<u8>, finish: &Finish) {
        let reason = self.stop_reason(finish);
        member(out, "stop_reason", reason);
        null(out, "stop_sequence");
        match &finish.reason {
            FinishReason::Blocked(word) if reason == "refusal" => {
                let explanation = match &finish.message {
                    Some(message) => format!("{word}: {message}"),
                    None => word.clone(),
                };
                write::key(out, "stop_details");
                out.extend_from_slice(br#"{"type":"refusal","category":null"#);
                member(out, "explanation", &explanation);
                out.push(b'}');
            }
            FinishReason::Blocked(_)
            | FinishReason::MaxTokens
            | FinishReason::Stop
            | FinishReason::ToolCalls => null(out, "stop_details"),
        }
        null(out, "container");
    }

    /// Writes `usage` of a message.
    pub(super) fn usage(&self, out: &mut Vec<u8>, usage: &Usage) {
        self.write_usage(out, usage, |out| out.extend_from_slice(SERVICE));
    }

    /// Writes `usage` of a `message_delta`, which has fewer members.
    pub(super) fn delta_usage(&self, out: &mut Vec<u8>, usage: &Usage) {
        self.write_usage(out, usage, |_| {});
    }

    /// Writes `usage`. Anthropic counts cached tokens apart from the others, Gemini among them.
    fn write_usage(&self, out: &mut Vec<u8>, usage: &Usage, more: impl FnOnce(&mut Vec<u8>)) {
        write::key(out, "usage");
        out.push(b'{');
        count(out, "input_tokens", usage.uncached_input());
        count(out, "cache_creation_input_tokens", 0);
        count(out, "cache_read_input_tokens", usage.cached.unwrap_or(0));
        count(out, "output_tokens", usage.output());
        match usage.thoughts {
            Some(thoughts) => {
                write::key(out, "output_tokens_details");
                out.push(b'{');
                count(out, "thinking_tokens", thoughts);
                out.push(b'}');
            }
            None => null(out, "output_tokens_details"),
        }
        if self.searches > 0 {
            write::key(out, "server_tool_use");
            out.push(b'{');
            count(out, "web_search_requests", self.searches);
            count(out, "web_fetch_requests", 0);
            out.push(b'}');
        } else {
            null(out, "server_tool_use");
        }
        more(out);
        out.push(b'}');
    }

    /// Ends the open block of thinking with a signature.
    fn sign(&mut self, sealed: &str, page: &mut impl Page) {
        page.close_thinking(sealed);
        self.open = Open::Nothing;
    }

    /// Seals a signature. One without a known issuer could never be sent back.
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

/// Writes `"name":null`.
pub(super) fn null(out: &mut Vec<u8>, name: &str) {
    write::key(out, name);
    out.extend_from_slice(b"null");
}

/// Writes `"name":value`.
pub(super) fn count(out: &mut Vec<u8>, name: &str, value: u64) {
    write::key(out, name);
    write::integer(out, value);
}

pub(super) fn redacted(data: &str, page: &mut impl Page) {
    page.whole(&|out| {
        member(out, "type", "redacted_thinking");
        member(out, "data", data);
    });
}

/// `{"name":text}`
pub(super) fn object(name: &str, text: &Text<'_>) -> String {
    let mut out = vec![b'{'];
    write::key(&mut out, name);
    text.write(&mut out);
    out.push(b'}');
    String::from_utf8_lossy(&out).into_owned()
}
