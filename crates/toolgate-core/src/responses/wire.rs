//! What clients send, field by field.
//!
//! A field that means nothing to us but is known begins with an underscore: it is read so that it
//! is not reported as unknown. Values that come in several forms, and the members of items, parts
//! and tools, whose type is to be seen first, are [`Raw`].

use std::borrow::Cow;
use std::fmt;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::options::{CacheOptions, Moderation, Prompt, StreamOptions};
use crate::json::{Element, Placed, Raw, Text};

/// A short string, borrowed where it has no escapes.
#[derive(Clone, Debug)]
pub(super) struct Str<'a>(pub(super) Cow<'a, str>);

/// A known value that is not read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known;

/// The body of `POST /v1/responses`, and a `response.create` frame.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Body<'a> {
    #[serde(borrow)]
    pub(super) model: Option<Str<'a>>,
    pub(super) input: Option<Placed<Input<'a>>>,
    pub(super) instructions: Option<Raw<'a>>,
    pub(super) tools: Option<Raw<'a>>,
    pub(super) tool_choice: Option<Raw<'a>>,
    pub(super) parallel_tool_calls: Option<bool>,
    pub(super) text: Option<TextConfig<'a>>,
    pub(super) reasoning: Option<Reasoning<'a>>,
    pub(super) max_output_tokens: Option<i64>,
    pub(super) max_tool_calls: Option<i64>,
    pub(super) temperature: Option<f64>,
    pub(super) top_p: Option<f64>,
    pub(super) top_logprobs: Option<i64>,
    pub(super) include: Option<Vec<Str<'a>>>,
    pub(super) store: Option<bool>,
    pub(super) stream: Option<bool>,
    pub(super) previous_response_id: Option<Str<'a>>,
    pub(super) conversation: Option<Raw<'a>>,
    pub(super) metadata: Option<Raw<'a>>,
    pub(super) prompt: Option<Prompt<'a>>,
    pub(super) prompt_cache_key: Option<Str<'a>>,
    pub(super) safety_identifier: Option<Str<'a>>,
    pub(super) service_tier: Option<Str<'a>>,
    pub(super) truncation: Option<Str<'a>>,
    pub(super) user: Option<Str<'a>>,
    pub(super) background: Option<bool>,
    pub(super) client_metadata: Option<Raw<'a>>,
    pub(super) context_management: Option<Raw<'a>>,
    pub(super) generate: Option<bool>,
    pub(super) moderation: Option<Moderation<'a>>,
    pub(super) stream_id: Option<Str<'a>>,
    #[serde(rename = "type")]
    _kind: Option<Known>,
    #[serde(rename = "stream_options")]
    _stream_options: Option<StreamOptions>,
    #[serde(rename = "prompt_cache_options")]
    _prompt_cache_options: Option<CacheOptions<'a>>,
    #[serde(rename = "prompt_cache_retention")]
    _prompt_cache_retention: Option<Str<'a>>,
    #[serde(rename = "access_programs")]
    _access_programs: Option<Known>,
    #[serde(rename = "image")]
    _image: Option<Known>,
}

/// `input`: read at once, since it is nearly all of a body.
#[derive(Debug)]
pub(super) enum Input<'a> {
    Text(String),
    Items(Vec<Element<Item<'a>>>),
}

/// `text`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TextConfig<'a> {
    #[serde(borrow)]
    pub(super) format: Option<Raw<'a>>,
    pub(super) verbosity: Option<Str<'a>>,
}

/// `text.format`, flat or, as in Chat, with the schema one level down.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Format<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Option<Str<'a>>,
    pub(super) name: Option<Text<'a>>,
    pub(super) description: Option<Text<'a>>,
    pub(super) schema: Option<Raw<'a>>,
    pub(super) json_schema: Option<Raw<'a>>,
    #[serde(rename = "strict")]
    _strict: Option<Known>,
}

/// `reasoning`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Reasoning<'a> {
    #[serde(borrow)]
    pub(super) effort: Option<Str<'a>>,
    pub(super) summary: Option<Str<'a>>,
    pub(super) generate_summary: Option<Str<'a>>,
    #[serde(rename = "context")]
    _context: Option<Known>,
    #[serde(rename = "mode")]
    _mode: Option<Known>,
}

/// An item of `input`, whatever its type.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Item<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Option<Str<'a>>,
    pub(super) id: Option<Raw<'a>>,
    pub(super) role: Option<Raw<'a>>,
    pub(super) content: Option<Raw<'a>>,
    pub(super) call_id: Option<Raw<'a>>,
    pub(super) name: Option<Raw<'a>>,
    pub(super) namespace: Option<Raw<'a>>,
    pub(super) arguments: Option<Raw<'a>>,
    pub(super) input: Option<Raw<'a>>,
    pub(super) output: Option<Raw<'a>>,
    pub(super) status: Option<Raw<'a>>,
    pub(super) encrypted_content: Option<Raw<'a>>,
    pub(super) summary: Option<Raw<'a>>,
    pub(super) tools: Option<Raw<'a>>,
    pub(super) action: Option<Raw<'a>>,
    pub(super) actions: Option<Raw<'a>>,
    pub(super) operation: Option<Raw<'a>>,
    pub(super) result: Option<Raw<'a>>,
    pub(super) output_format: Option<Raw<'a>>,
    pub(super) reasoning: Option<Raw<'a>>,
    pub(super) text: Option<Raw<'a>>,
    #[serde(rename = "phase")]
    _phase: Option<Known>,
    #[serde(rename = "execution")]
    _execution: Option<Known>,
    #[serde(rename = "environment")]
    _environment: Option<Known>,
    #[serde(rename = "max_output_length")]
    _max_output_length: Option<Known>,
    #[serde(rename = "pending_safety_checks")]
    _pending_safety_checks: Option<Known>,
    #[serde(rename = "acknowledged_safety_checks")]
    _acknowledged_safety_checks: Option<Known>,
    #[serde(rename = "queries")]
    _queries: Option<Known>,
    #[serde(rename = "results")]
    _results: Option<Known>,
    #[serde(rename = "code")]
    _code: Option<Known>,
    #[serde(rename = "container_id")]
    _container_id: Option<Known>,
    #[serde(rename = "outputs")]
    _outputs: Option<Known>,
    #[serde(rename = "fingerprint")]
    _fingerprint: Option<Known>,
    #[serde(rename = "server_label")]
    _server_label: Option<Known>,
    #[serde(rename = "approval_request_id")]
    _approval_request_id: Option<Known>,
    #[serde(rename = "approve")]
    _approve: Option<Known>,
    #[serde(rename = "reason")]
    _reason: Option<Known>,
    #[serde(rename = "error")]
    _error: Option<Known>,
    #[serde(rename = "background")]
    _background: Option<Known>,
    #[serde(rename = "quality")]
    _quality: Option<Known>,
    #[serde(rename = "size")]
    _size: Option<Known>,
    #[serde(rename = "revised_prompt")]
    _revised_prompt: Option<Known>,
    #[serde(rename = "svg_usage")]
    _svg_usage: Option<Known>,
    #[serde(rename = "caller")]
    _caller: Option<Known>,
    #[serde(rename = "async")]
    _async: Option<Known>,
    #[serde(rename = "created_by")]
    _created_by: Option<Known>,
    #[serde(rename = "parsed_arguments")]
    _parsed_arguments: Option<Known>,
    #[serde(rename = "internal_chat_message_metadata_passthrough")]
    _passthrough: Option<Known>,
}

/// A piece of a message or of a tool's output, whatever its type.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Content<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Option<Str<'a>>,
    pub(super) text: Option<Raw<'a>>,
    pub(super) refusal: Option<Raw<'a>>,
    pub(super) image_url: Option<Raw<'a>>,
    pub(super) file_id: Option<Raw<'a>>,
    pub(super) file_data: Option<Raw<'a>>,
    pub(super) file_url: Option<Raw<'a>>,
    pub(super) filename: Option<Raw<'a>>,
    pub(super) input_audio: Option<Raw<'a>>,
    #[serde(rename = "detail")]
    _detail: Option<Known>,
    #[serde(rename = "annotations")]
    _annotations: Option<Known>,
    #[serde(rename = "logprobs")]
    _logprobs: Option<Known>,
    #[serde(rename = "parsed")]
    _parsed: Option<Known>,
    #[serde(rename = "prompt_cache_breakpoint")]
    _prompt_cache_breakpoint: Option<Known>,
}

/// `input_audio`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Audio<'a> {
    #[serde(borrow)]
    pub(super) data: Option<Text<'a>>,
    pub(super) format: Option<Str<'a>>,
}

/// A tool, whatever its type.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Tool<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Option<Str<'a>>,
    pub(super) name: Option<Raw<'a>>,
    pub(super) description: Option<Raw<'a>>,
    pub(super) parameters: Option<Raw<'a>>,
    pub(super) defer_loading: Option<Raw<'a>>,
    pub(super) function: Option<Raw<'a>>,
    pub(super) custom: Option<Raw<'a>>,
    pub(super) format: Option<Raw<'a>>,
    pub(super) tools: Option<Raw<'a>>,
    pub(super) execution: Option<Raw<'a>>,
    pub(super) environment: Option<Raw<'a>>,
    pub(super) container: Option<Raw<'a>>,
    pub(super) server_label: Option<Raw<'a>>,
    pub(super) filters: Option<Raw<'a>>,
    pub(super) user_location: Option<Raw<'a>>,
    pub(super) search_context_size: Option<Raw<'a>>,
    pub(super) external_web_access: Option<Raw<'a>>,
    #[serde(rename = "strict")]
    _strict: Option<Known>,
    #[serde(rename = "output_schema")]
    _output_schema: Option<Known>,
    #[serde(rename = "allowed_callers")]
    _allowed_callers: Option<Known>,
    #[serde(rename = "async")]
    _async: Option<Known>,
    #[serde(rename = "search_content_types")]
    _search_content_types: Option<Known>,
    #[serde(rename = "vector_store_ids")]
    _vector_store_ids: Option<Known>,
    #[serde(rename = "max_num_results")]
    _max_num_results: Option<Known>,
    #[serde(rename = "ranking_options")]
    _ranking_options: Option<Known>,
    #[serde(rename = "display_width")]
    _display_width: Option<Known>,
    #[serde(rename = "display_height")]
    _display_height: Option<Known>,
    #[serde(rename = "server_url")]
    _server_url: Option<Known>,
    #[serde(rename = "server_description")]
    _server_description: Option<Known>,
    #[serde(rename = "connector_id")]
    _connector_id: Option<Known>,
    #[serde(rename = "tunnel_id")]
    _tunnel_id: Option<Known>,
    #[serde(rename = "authorization")]
    _authorization: Option<Known>,
    #[serde(rename = "headers")]
    _headers: Option<Known>,
    #[serde(rename = "allowed_tools")]
    _allowed_tools: Option<Known>,
    #[serde(rename = "require_approval")]
    _require_approval: Option<Known>,
    #[serde(rename = "action")]
    _action: Option<Known>,
    #[serde(rename = "background")]
    _background: Option<Known>,
    #[serde(rename = "input_fidelity")]
    _input_fidelity: Option<Known>,
    #[serde(rename = "input_image_mask")]
    _input_image_mask: Option<Known>,
    #[serde(rename = "model")]
    _model: Option<Known>,
    #[serde(rename = "moderation")]
    _moderation: Option<Known>,
    #[serde(rename = "output_compression")]
    _output_compression: Option<Known>,
    #[serde(rename = "output_format")]
    _output_format: Option<Known>,
    #[serde(rename = "partial_images")]
    _partial_images: Option<Known>,
    #[serde(rename = "quality")]
    _quality: Option<Known>,
    #[serde(rename = "size")]
    _size: Option<Known>,
}

/// A custom tool's `format`; `grammar` is Chat's way to nest it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Grammar<'a> {
    #[serde(borrow)]
    pub(super) syntax: Option<Str<'a>>,
    pub(super) definition: Option<Text<'a>>,
    pub(super) grammar: Option<Raw<'a>>,
    #[serde(rename = "type")]
    _kind: Option<Known>,
}

/// `tool_choice` as an object, and an entry of `allowed_tools`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Choice<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Option<Str<'a>>,
    pub(super) name: Option<Str<'a>>,
    pub(super) namespace: Option<Str<'a>>,
    pub(super) function: Option<Raw<'a>>,
    pub(super) custom: Option<Raw<'a>>,
    pub(super) mode: Option<Str<'a>>,
    pub(super) tools: Option<Raw<'a>>,
    pub(super) allowed_tools: Option<Raw<'a>>,
    #[serde(rename = "server_label")]
    _server_label: Option<Known>,
}

/// `conversation` as an object.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Conversation<'a> {
    #[serde(borrow)]
    pub(super) id: Option<Str<'a>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Str<'a> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        struct Borrow;
        impl<'de> Visitor<'de> for Borrow {
            type Value = Str<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Str(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Str(Cow::Owned(text.to_owned())))
            }
        }
        json.deserialize_str(Borrow)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Input<'a> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Input<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or an array of items")
            }
            fn visit_bytes<E>(self, text: &[u8]) -> Result<Self::Value, E> {
                Ok(Input::Text(String::from_utf8_lossy(text).into_owned()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
                let mut all = Vec::new();
                while let Some(item) = items.next_element()? {
                    all.push(item);
                }
                Ok(Input::Items(all))
            }
        }
        // As bytes, because a string may hold half a surrogate pair.
        json.deserialize_bytes(Either)
    }
}

impl<'de> Deserialize<'de> for Known {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        // Not `IgnoredAny`: it marks unknown fields.
        Raw::deserialize(json).map(|_| Self)
    }
}
