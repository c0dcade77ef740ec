//! The JSON of Chat Completions as clients send it. Everything may be missing or null.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::json::{Element, Raw, Text};

/// A field that is known and not looked at. Unlike serde's own, it is not reported as unknown.
#[derive(Debug)]
pub(super) struct Known;

impl<'de> Deserialize<'de> for Known {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(json).map(|_| Self)
    }
}

/// The body of `POST /v1/chat/completions`.
#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "some fields are known only so that they are not reported")]
pub(super) struct Request<'a> {
    #[serde(borrow)]
    pub(super) model: Option<Text<'a>>,
    pub(super) messages: Option<Vec<Element<Message<'a>>>>,
    pub(super) tools: Option<Vec<Element<Tool<'a>>>>,
    pub(super) tool_choice: Option<Raw<'a>>,
    pub(super) functions: Option<Vec<Function<'a>>>,
    pub(super) function_call: Option<Raw<'a>>,
    pub(super) parallel_tool_calls: Option<bool>,
    pub(super) web_search_options: Option<Raw<'a>>,

    pub(super) response_format: Option<ResponseFormat<'a>>,
    pub(super) verbosity: Option<Text<'a>>,
    pub(super) modalities: Option<Vec<Text<'a>>>,
    pub(super) audio: Option<Raw<'a>>,

    pub(super) reasoning_effort: Option<Text<'a>>,
    pub(super) reasoning: Option<Reasoning<'a>>,
    pub(super) include_reasoning: Option<bool>,
    pub(super) thinking: Option<Thinking<'a>>,
    pub(super) enable_thinking: Option<bool>,
    pub(super) thinking_budget: Option<f64>,
    pub(super) google: Option<Google<'a>>,
    pub(super) extra_body: Option<ExtraBody<'a>>,

    pub(super) max_tokens: Option<i64>,
    pub(super) max_completion_tokens: Option<i64>,
    pub(super) temperature: Option<f64>,
    pub(super) top_p: Option<f64>,
    pub(super) top_k: Option<f64>,
    pub(super) stop: Option<Raw<'a>>,
    pub(super) seed: Option<i64>,
    pub(super) presence_penalty: Option<f64>,
    pub(super) frequency_penalty: Option<f64>,
    pub(super) n: Option<i64>,
    pub(super) logprobs: Option<bool>,
    pub(super) top_logprobs: Option<i64>,
    pub(super) logit_bias: Option<Raw<'a>>,
    pub(super) stream: Option<bool>,
    pub(super) stream_options: Option<StreamOptions>,
    pub(super) service_tier: Option<Text<'a>>,
    pub(super) store: Option<bool>,

    metadata: Option<Known>,
    moderation: Option<Known>,
    pub(super) prediction: Option<Known>,
    prompt_cache_key: Option<Known>,
    prompt_cache_retention: Option<Known>,
    safety_identifier: Option<Known>,
    user: Option<Known>,
}

/// One message. SDKs echo every member, extras and nulls included.
#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "some fields are known only so that they are not reported")]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    pub(super) role: Option<Text<'a>>,
    pub(super) content: Option<Raw<'a>>,
    pub(super) name: Option<Text<'a>>,
    pub(super) refusal: Option<Text<'a>>,
    pub(super) tool_calls: Option<Vec<Element<ToolCall<'a>>>>,
    pub(super) function_call: Option<FunctionCall<'a>>,
    pub(super) tool_call_id: Option<Text<'a>>,
    pub(super) reasoning_content: Option<Raw<'a>>,
    pub(super) reasoning: Option<Raw<'a>>,
    pub(super) thinking: Option<Raw<'a>>,
    pub(super) extra_content: Option<ExtraContent<'a>>,

    pub(super) audio: Option<Known>,

    annotations: Option<Known>,
    cache_control: Option<Known>,
    images: Option<Known>,
    parsed: Option<Known>,
    provider_specific_fields: Option<Known>,
    reasoning_details: Option<Known>,
    thinking_blocks: Option<Known>,
}

/// A call in an assistant's message.
#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "some fields are known only so that they are not reported")]
pub(super) struct ToolCall<'a> {
    #[serde(borrow)]
    pub(super) id: Option<Text<'a>>,
    #[serde(rename = "type")]
    pub(super) kind: Option<Text<'a>>,
    pub(super) function: Option<FunctionCall<'a>>,
    pub(super) custom: Option<CustomCall<'a>>,
    pub(super) extra_content: Option<ExtraContent<'a>>,

    index: Option<Known>,
    provider_specific_fields: Option<Known>,
}

/// Name and arguments of a function call; also the legacy `function_call`.
#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "some fields are known only so that they are not reported")]
pub(super) struct FunctionCall<'a> {
    #[serde(borrow)]
    pub(super) name: Option<Text<'a>>,
    pub(super) arguments: Option<Raw<'a>>,
    pub(super) extra_content: Option<ExtraContent<'a>>,

    parsed_arguments: Option<Known>,
    provider_specific_fields: Option<Known>,
}

/// Name and input of a custom tool call.
#[derive(Debug, Deserialize)]
pub(super) struct CustomCall<'a> {
    #[serde(borrow)]
    pub(super) name: Option<Text<'a>>,
    pub(super) input: Option<Text<'a>>,
}

/// Google's addition to messages and calls.
#[derive(Debug, Deserialize)]
pub(super) struct ExtraContent<'a> {
    #[serde(borrow)]
    pub(super) google: Option<GoogleContent<'a>>,
}

/// Google's addition to messages and calls.
#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "some fields are known only so that they are not reported")]
pub(super) struct GoogleContent<'a> {
    #[serde(borrow)]
    pub(super) thought_signature: Option<Text<'a>>,

    thought: Option<Known>,
}

/// A part of a message's content.
#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "some fields are known only so that they are not reported")]
pub(super) struct ContentPart<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<Text<'a>>,
    pub(super) text: Option<Text<'a>>,
    pub(super) refusal: Option<Text<'a>>,
    pub(super) image_url: Option<Raw<'a>>,
    pub(super) video_url: Option<Raw<'a>>,
    pub(super) audio_url: Option<Raw<'a>>,
    pub(super) input_audio: Option<InputAudio<'a>>,
    pub(super) file: Option<File<'a>>,

    annotations: Option<Known>,
    cache_control: Option<Known>,
}

/// Where a picture is.
#[derive(Debug, Deserialize)]
pub(super) struct Url<'a> {
    #[serde(borrow)]
    pub(super) url: Option<Text<'a>>,
    pub(super) detail: Option<Text<'a>>,
}

/// Sound.
#[derive(Debug, Deserialize)]
pub(super) struct InputAudio<'a> {
    #[serde(borrow)]
    pub(super) data: Option<Text<'a>>,
    pub(super) format: Option<Text<'a>>,
}

/// A document.
#[derive(Debug, Deserialize)]
pub(super) struct File<'a> {
    #[serde(borrow)]
    pub(super) file_data: Option<Text<'a>>,
    pub(super) file_id: Option<Text<'a>>,
    pub(super) filename: Option<Text<'a>>,
    pub(super) format: Option<Text<'a>>,
}

/// A tool: OpenAI's nested form, the flat form of the Responses API, or one of Google's.
#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "some fields are known only so that they are not reported")]
pub(super) struct Tool<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<Text<'a>>,
    pub(super) function: Option<Function<'a>>,
    pub(super) custom: Option<Custom<'a>>,
    pub(super) name: Option<Text<'a>>,
    pub(super) description: Option<Text<'a>>,
    pub(super) parameters: Option<Raw<'a>>,
    #[serde(alias = "googleSearch")]
    pub(super) google_search: Option<Raw<'a>>,
    #[serde(alias = "urlContext")]
    pub(super) url_context: Option<Raw<'a>>,
    #[serde(alias = "codeExecution")]
    pub(super) code_execution: Option<Raw<'a>>,
    pub(super) strict: Option<bool>,

    cache_control: Option<Known>,
}

/// A function; also one of the legacy `functions`.
#[derive(Debug, Default, Deserialize)]
#[expect(dead_code, reason = "some fields are known only so that they are not reported")]
pub(super) struct Function<'a> {
    #[serde(borrow)]
    pub(super) name: Option<Text<'a>>,
    pub(super) description: Option<Text<'a>>,
    pub(super) parameters: Option<Raw<'a>>,
    pub(super) strict: Option<bool>,
    pub(super) cache_control: Option<Known>,
}

/// A tool that takes text.
#[derive(Debug, Deserialize)]
pub(super) struct Custom<'a> {
    #[serde(borrow)]
    pub(super) name: Option<Text<'a>>,
    pub(super) description: Option<Text<'a>>,
    pub(super) format: Option<CustomFormat<'a>>,
}

/// What text a custom tool takes: Chat nests the grammar, the Responses API does not.
#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "which fields are there says what kind it is")]
pub(super) struct CustomFormat<'a> {
    #[serde(rename = "type")]
    kind: Option<Known>,
    #[serde(borrow)]
    pub(super) grammar: Option<Grammar<'a>>,
    pub(super) definition: Option<Text<'a>>,
    pub(super) syntax: Option<Text<'a>>,
}

/// A grammar.
#[derive(Debug, Deserialize)]
pub(super) struct Grammar<'a> {
    #[serde(borrow)]
    pub(super) definition: Option<Text<'a>>,
    pub(super) syntax: Option<Text<'a>>,
}

/// `tool_choice` as an object.
#[derive(Debug, Deserialize)]
pub(super) struct ToolChoice<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<Text<'a>>,
    pub(super) function: Option<Named<'a>>,
    pub(super) custom: Option<Named<'a>>,
    pub(super) name: Option<Text<'a>>,
    pub(super) allowed_tools: Option<AllowedTools<'a>>,
    pub(super) mode: Option<Text<'a>>,
    pub(super) tools: Option<Vec<ToolRef<'a>>>,
}

/// Which tools are allowed.
#[derive(Debug, Deserialize)]
pub(super) struct AllowedTools<'a> {
    #[serde(borrow)]
    pub(super) mode: Option<Text<'a>>,
    pub(super) tools: Option<Vec<ToolRef<'a>>>,
}

/// The name of a tool, in one of its forms.
#[derive(Debug, Deserialize)]
pub(super) struct ToolRef<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Option<Text<'a>>,
    pub(super) function: Option<Named<'a>>,
    pub(super) custom: Option<Named<'a>>,
    pub(super) name: Option<Text<'a>>,
}

/// Something with a name.
#[derive(Debug, Deserialize)]
pub(super) struct Named<'a> {
    #[serde(borrow)]
    pub(super) name: Option<Text<'a>>,
}

/// `response_format`
#[derive(Debug, Deserialize)]
pub(super) struct ResponseFormat<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<Text<'a>>,
    pub(super) json_schema: Option<JsonSchema<'a>>,
    pub(super) schema: Option<Raw<'a>>,
}

/// `response_format.json_schema`
#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "some fields are known only so that they are not reported")]
pub(super) struct JsonSchema<'a> {
    #[serde(borrow)]
    pub(super) name: Option<Text<'a>>,
    pub(super) description: Option<Text<'a>>,
    pub(super) schema: Option<Raw<'a>>,

    strict: Option<Known>,
}

/// `reasoning`, as some gateways have it.
#[derive(Debug, Deserialize)]
pub(super) struct Reasoning<'a> {
    #[serde(borrow)]
    pub(super) effort: Option<Text<'a>>,
    pub(super) max_tokens: Option<f64>,
    pub(super) exclude: Option<bool>,
    pub(super) enabled: Option<bool>,
}

/// `thinking`, as some vendors have it.
#[derive(Debug, Deserialize)]
pub(super) struct Thinking<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<Text<'a>>,
    pub(super) budget_tokens: Option<f64>,
}

/// What OpenAI's SDKs do not know and Google's endpoint takes.
#[derive(Debug, Deserialize)]
pub(super) struct ExtraBody<'a> {
    #[serde(borrow)]
    pub(super) google: Option<Google<'a>>,
}

/// What Google's endpoint takes beside OpenAI's fields.
#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "some fields are known only so that they are not reported")]
pub(super) struct Google<'a> {
    #[serde(borrow, alias = "thinkingConfig")]
    pub(super) thinking_config: Option<ThinkingConfig<'a>>,
    #[serde(alias = "cachedContent")]
    pub(super) cached_content: Option<Raw<'a>>,
    #[serde(alias = "safetySettings")]
    pub(super) safety_settings: Option<Raw<'a>>,

    thought_tag_marker: Option<Known>,
}

/// Gemini's `thinkingConfig`.
#[derive(Debug, Deserialize)]
pub(super) struct ThinkingConfig<'a> {
    #[serde(borrow, alias = "thinkingLevel")]
    pub(super) thinking_level: Option<Text<'a>>,
    #[serde(alias = "thinkingBudget")]
    pub(super) thinking_budget: Option<f64>,
    #[serde(alias = "includeThoughts")]
    pub(super) include_thoughts: Option<bool>,
}

/// `stream_options`
#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "some fields are known only so that they are not reported")]
pub(super) struct StreamOptions {
    pub(super) include_usage: Option<bool>,

    include_obfuscation: Option<Known>,
}
