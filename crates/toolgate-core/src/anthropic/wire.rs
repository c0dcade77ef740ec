//! Anthropic's bodies, as they are written.
//!
//! Everything is optional and nothing is interpreted. A field that is polymorphic or that the decoder does not
//! look into is a [`Raw`]. Content blocks, which are most of a body, have a reader of their own:
//! [`Block`](super::content::Block).

use serde::{Deserialize, Deserializer};

use crate::json::{Placed, Raw, Text};

/// A known value that is not read.
#[derive(Debug)]
pub(super) struct Skipped;

impl<'de> Deserialize<'de> for Skipped {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        Raw::deserialize(json).map(|_| Self)
    }
}

/// `POST /v1/messages` and `POST /v1/messages/count_tokens`. `T` is how tools are read: as
/// [`Tool`], or as [`Raw`] where one of them is broken or new.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
#[expect(dead_code, reason = "some fields are known and mean nothing to Gemini")]
pub(super) struct Body<'a, T> {
    #[serde(borrow)]
    pub(super) model: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) messages: Option<Vec<Message<'a>>>,
    #[serde(borrow)]
    pub(super) system: Option<Raw<'a>>,
    pub(super) tools: Option<Placed<Vec<T>>>,
    #[serde(borrow)]
    pub(super) tool_choice: Option<ToolChoice<'a>>,
    pub(super) max_tokens: Option<i64>,
    pub(super) temperature: Option<f64>,
    pub(super) top_p: Option<f64>,
    pub(super) top_k: Option<f64>,
    #[serde(borrow)]
    pub(super) stop_sequences: Option<Vec<Text<'a>>>,
    pub(super) stream: Option<bool>,
    #[serde(borrow)]
    pub(super) thinking: Option<Thinking<'a>>,
    #[serde(borrow)]
    pub(super) output_config: Option<OutputConfig<'a>>,
    #[serde(borrow)]
    pub(super) output_format: Option<Format<'a>>,
    #[serde(borrow)]
    pub(super) thread: Option<Thread<'a>>,
    #[serde(borrow)]
    pub(super) service_tier: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) speed: Option<Text<'a>>,
    pub(super) compaction: Option<Skipped>,
    #[serde(borrow)]
    pub(super) container: Option<Raw<'a>>,
    #[serde(borrow)]
    pub(super) context_management: Option<Raw<'a>>,
    pub(super) fallback_credit_token: Option<Skipped>,
    #[serde(borrow)]
    pub(super) fallbacks: Option<Raw<'a>>,
    #[serde(borrow)]
    pub(super) inference_geo: Option<Raw<'a>>,
    #[serde(borrow)]
    pub(super) mcp_servers: Option<Raw<'a>>,
    pub(super) betas: Option<Skipped>,
    pub(super) cache_control: Option<Skipped>,
    pub(super) diagnostics: Option<Skipped>,
    pub(super) metadata: Option<Skipped>,
    pub(super) user_profile_id: Option<Skipped>,
    pub(super) workspace_id: Option<Skipped>,
}

/// One message.
#[derive(Debug, Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    pub(super) role: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) content: Option<Raw<'a>>,
    #[serde(borrow)]
    pub(super) clear_at: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) output_config: Option<Raw<'a>>,
}

/// Where the bytes of an image or a document are.
#[derive(Debug, Deserialize)]
pub(super) struct Source<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) media_type: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) data: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) url: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) file_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) content: Option<Raw<'a>>,
}

/// Subject of a `tool_addition` or `tool_removal` block.
#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "some fields are known and mean nothing to Gemini")]
pub(super) struct ToolChange<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) name: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) server_name: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) definition: Option<Raw<'a>>,
}

/// The content of a server tool's result, of any type. Read for its words only.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ServerResult<'a> {
    #[serde(borrow)]
    pub(super) url: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) content: Option<Raw<'a>>,
    #[serde(borrow)]
    pub(super) text: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) stdout: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) stderr: Option<Text<'a>>,
    pub(super) return_code: Option<i64>,
    #[serde(borrow)]
    pub(super) error_code: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) tool_references: Option<Vec<ToolReference<'a>>>,
}

/// A tool that a search found.
#[derive(Debug, Deserialize)]
pub(super) struct ToolReference<'a> {
    #[serde(borrow)]
    pub(super) tool_name: Option<Text<'a>>,
}

/// A page that a search found, or words that a tool said.
#[derive(Debug, Deserialize)]
pub(super) struct SearchHit<'a> {
    #[serde(borrow)]
    pub(super) url: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) title: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) text: Option<Text<'a>>,
}

/// A tool of any type.
#[derive(Debug, Default, Deserialize)]
#[expect(dead_code, reason = "some fields are known and mean nothing to Gemini")]
pub(super) struct Tool<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) name: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) description: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) input_schema: Option<Raw<'a>>,
    pub(super) defer_loading: Option<bool>,
    #[serde(borrow)]
    pub(super) input_examples: Option<Vec<Raw<'a>>>,
    #[serde(borrow)]
    pub(super) allowed_callers: Option<Vec<Text<'a>>>,
    pub(super) display_width_px: Option<i64>,
    pub(super) display_height_px: Option<i64>,
    pub(super) enable_zoom: Option<bool>,
    pub(super) max_characters: Option<i64>,
    #[serde(borrow)]
    pub(super) configs: Option<Raw<'a>>,
    pub(super) allowed_domains: Option<Skipped>,
    pub(super) blocked_domains: Option<Skipped>,
    pub(super) max_uses: Option<Skipped>,
    pub(super) max_content_tokens: Option<Skipped>,
    pub(super) url_sources: Option<Skipped>,
    pub(super) user_location: Option<Skipped>,
    pub(super) cache_control: Option<Skipped>,
    pub(super) citations: Option<Skipped>,
    pub(super) display_number: Option<Skipped>,
    pub(super) eager_input_streaming: Option<Skipped>,
    pub(super) response_inclusion: Option<Skipped>,
    pub(super) strict: Option<bool>,
    pub(super) use_cache: Option<Skipped>,
}

/// A tool's `type` and name, whatever else it holds.
#[derive(Debug, Deserialize)]
pub(super) struct ToolTag<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) name: Option<Raw<'a>>,
}

/// Whether one member of a toolset is offered.
#[derive(Debug, Deserialize)]
pub(super) struct MemberConfig {
    pub(super) enabled: Option<bool>,
    pub(super) defer_loading: Option<bool>,
}

/// Whether the model may, must or must not call.
#[derive(Debug, Deserialize)]
pub(super) struct ToolChoice<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) name: Option<Text<'a>>,
    pub(super) disable_parallel_tool_use: Option<bool>,
}

/// How to think.
#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "some fields are known and mean nothing to Gemini")]
pub(super) struct Thinking<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<Text<'a>>,
    pub(super) budget_tokens: Option<i64>,
    #[serde(borrow)]
    pub(super) display: Option<Text<'a>>,
    pub(super) block_binding: Option<Skipped>,
}

/// How to answer.
#[derive(Debug, Deserialize)]
pub(super) struct OutputConfig<'a> {
    #[serde(borrow)]
    pub(super) effort: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) format: Option<Format<'a>>,
    pub(super) task_budget: Option<Skipped>,
}

/// The form of the answer.
#[derive(Debug, Deserialize)]
pub(super) struct Format<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) schema: Option<Raw<'a>>,
}

/// Whether the server shall remember the conversation.
#[derive(Debug, Deserialize)]
pub(super) struct Thread<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) previous_message_id: Option<Text<'a>>,
}
