//! Members of a request that its answer depends on.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::canon::{Issuer, ToolName};
use crate::json::Raw;

/// Members of the request that answers repeat, and members that only a gateway with a store acts on.
///
/// Plain data: a gateway may change it between decoding and encoding (`store`, `issuer`, say).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Echo {
    /// The model, exactly as the client wrote it.
    pub model: String,
    /// Whether the answer is streamed.
    pub stream: bool,
    /// Whether the client wants to read summaries of thoughts.
    pub show_thoughts: bool,
    /// Tools whose calls are not plain `function_call` items.
    pub calls: BTreeMap<ToolName<'static>, CallKind>,
    /// Who answers. It goes into the envelopes of parts that do not name their issuer themselves
    /// (what Gemini's own tools did); without it those parts are not carried.
    pub issuer: Option<Issuer>,

    /// Where `input` stands in the body.
    pub input: Option<Range<usize>>,
    /// `instructions`, as they were given.
    pub instructions: Option<Raw<'static>>,
    /// `tools`, as they were given; `None` where the client sent none (a conversation may remember
    /// them then).
    pub tools: Option<Raw<'static>>,
    /// `tool_choice`, as it was given.
    pub tool_choice: Option<Raw<'static>>,
    /// `text.format`, as it was given.
    pub format: Option<Raw<'static>>,
    /// `text.verbosity`.
    pub verbosity: Option<String>,
    /// `reasoning.effort`.
    pub effort: Option<String>,
    /// `reasoning.summary`.
    pub summary: Option<String>,
    /// `parallel_tool_calls`.
    pub parallel_tool_calls: Option<bool>,
    /// `max_output_tokens`.
    pub max_output_tokens: Option<i64>,
    /// `max_tool_calls`.
    pub max_tool_calls: Option<i64>,
    /// `temperature`.
    pub temperature: Option<f64>,
    /// `top_p`.
    pub top_p: Option<f64>,
    /// `top_logprobs`.
    pub top_logprobs: Option<i64>,
    /// `truncation`.
    pub truncation: Option<String>,
    /// `user`.
    pub user: Option<String>,
    /// `safety_identifier`.
    pub safety_identifier: Option<String>,
    /// `service_tier`.
    pub service_tier: Option<String>,
    /// `prompt_cache_key`: Codex's name for the session.
    pub prompt_cache_key: Option<String>,
    /// `metadata`, as it was given.
    pub metadata: Option<Raw<'static>>,

    /// `include`.
    pub include: Vec<String>,
    /// `store`: whether the answer may be asked for later.
    pub store: Option<bool>,
    /// `background`.
    pub background: Option<bool>,
    /// `previous_response_id`: the conversation goes on after that answer.
    pub previous_response_id: Option<String>,
    /// `conversation`, or its `id`.
    pub conversation: Option<String>,
    /// `context_management`, as it was given.
    pub context_management: Option<Raw<'static>>,
    /// `client_metadata`, as it was given.
    pub client_metadata: Option<Raw<'static>>,
    /// `stream_id` of a WebSocket message: every event of the answer repeats it.
    pub stream_id: Option<String>,
    /// `generate: false`: nothing is to be generated, only a response id to be given out.
    pub prewarm: bool,
    /// The input ends in a `compaction_trigger`: the answer is one `compaction` item. The request
    /// that was decoded asks for the summary already.
    pub compact: bool,
    /// Items that the client only named, in the order of the input. They are left out of the
    /// request unless they are [stored](super::Stored::references).
    pub references: Vec<ItemReference>,
}

impl Echo {
    /// Whether the answer is stored: the default, unless the client sets `store` to false.
    pub fn is_stored(&self) -> bool {
        self.store.unwrap_or(true)
    }
}

/// An item that the client only named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemReference {
    /// Its place in `input`.
    pub index: usize,
    /// Its id.
    pub id: String,
}

/// Type of the items of a tool's calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallKind {
    /// `apply_patch_call`
    ApplyPatch,
    /// `computer_call`
    Computer,
    /// `custom_tool_call`
    Custom,
    /// `local_shell_call`
    LocalShell,
    /// `shell_call`
    Shell,
    /// `tool_search_call`
    ToolSearch,
}
