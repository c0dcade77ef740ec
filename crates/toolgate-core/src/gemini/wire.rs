//! The JSON of Gemini's API as clients send it.
//!
//! Protocol buffers read both spellings of a name, and `null` as "not set"; so do we. There are two
//! mirrors: [`Documented`] takes what Google documents and reads each byte once; [`Loose`] also
//! takes what clients get away with, keeps unknown members, and reads most bytes three times.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::json::{Element, Fields, Raw, Text};

/// A request as Google documents it.
pub(super) type Documented<'a> =
    Request<'a, Vec<Content<'a, Parts<'a>>>, Content<'a, Parts<'a>>, Vec<Tool<'a>>>;

/// Parts as Google documents them.
pub(super) type Parts<'a> = Vec<Element<Part<'a>>>;

/// A request as clients get away with it.
pub(super) type Loose<'a> = Request<'a, List<Content<'a, Raw<'a>>>, Raw<'a>, List<Fields<'a>>>;

/// A `GenerateContentRequest`, and what our own path and `countTokens` take beside it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Request<'a, Contents, System, Tools> {
    pub(super) contents: Option<Contents>,
    #[serde(alias = "system_instruction")]
    pub(super) system_instruction: Option<System>,
    pub(super) tools: Option<Tools>,
    #[serde(borrow, alias = "tool_config")]
    pub(super) tool_config: Option<ToolConfig<'a>>,
    #[serde(alias = "generation_config")]
    pub(super) generation_config: Option<Fields<'a>>,

    #[serde(alias = "safety_settings")]
    pub(super) safety_settings: Option<Raw<'a>>,
    #[serde(alias = "cached_content")]
    pub(super) cached_content: Option<Raw<'a>>,
    pub(super) labels: Option<Raw<'a>>,
    #[serde(alias = "service_tier")]
    pub(super) service_tier: Option<Raw<'a>>,
    pub(super) store: Option<Raw<'a>>,
    #[serde(alias = "continuation_token")]
    pub(super) continuation_token: Option<Raw<'a>>,
    #[serde(alias = "model_armor_config")]
    pub(super) model_armor_config: Option<Raw<'a>>,
    #[serde(alias = "output_config")]
    pub(super) output_config: Option<Raw<'a>>,

    pub(super) model: Option<Text<'a>>,
    pub(super) input: Option<Raw<'a>>,
    pub(super) conversation: Option<Raw<'a>>,
    pub(super) stream: Option<Raw<'a>>,
    #[serde(alias = "generate_content_request")]
    pub(super) generate_content_request: Option<Raw<'a>>,
}

/// One turn.
#[derive(Debug, Deserialize)]
pub(super) struct Content<'a, Parts> {
    #[serde(borrow)]
    pub(super) role: Option<Text<'a>>,
    pub(super) parts: Option<Parts>,
}

/// One part: one data member, and what modifies it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Part<'a> {
    #[serde(borrow)]
    pub(super) text: Option<Text<'a>>,
    #[serde(alias = "inline_data")]
    pub(super) inline_data: Option<Box<Blob<'a>>>,
    #[serde(alias = "file_data")]
    pub(super) file_data: Option<Box<FileData<'a>>>,
    #[serde(alias = "function_call")]
    pub(super) function_call: Option<Box<FunctionCall<'a>>>,
    #[serde(alias = "function_response")]
    pub(super) function_response: Option<Box<FunctionResponse<'a>>>,
    #[serde(alias = "executable_code")]
    pub(super) executable_code: Option<Raw<'a>>,
    #[serde(alias = "code_execution_result")]
    pub(super) code_execution_result: Option<Raw<'a>>,
    #[serde(alias = "tool_call")]
    pub(super) tool_call: Option<Raw<'a>>,
    #[serde(alias = "tool_response")]
    pub(super) tool_response: Option<Raw<'a>>,

    pub(super) thought: Option<bool>,
    #[serde(alias = "thought_signature")]
    pub(super) thought_signature: Option<Raw<'a>>,
    #[serde(alias = "video_metadata")]
    pub(super) video_metadata: Option<Raw<'a>>,
    #[serde(alias = "media_resolution")]
    pub(super) media_resolution: Option<Raw<'a>>,
    #[serde(alias = "media_processing")]
    pub(super) media_processing: Option<Raw<'a>>,
    #[serde(alias = "part_metadata")]
    pub(super) part_metadata: Option<Raw<'a>>,
    #[serde(alias = "audio_transcription")]
    pub(super) audio_transcription: Option<Raw<'a>>,
    #[serde(alias = "speech_metadata")]
    pub(super) speech_metadata: Option<Raw<'a>>,
}

/// Bytes in the request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Blob<'a> {
    #[serde(borrow, alias = "mime_type")]
    pub(super) mime_type: Option<Text<'a>>,
    pub(super) data: Option<Text<'a>>,
    #[serde(alias = "display_name")]
    pub(super) display_name: Option<Text<'a>>,
}

/// Bytes elsewhere.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileData<'a> {
    #[serde(borrow, alias = "mime_type")]
    pub(super) mime_type: Option<Text<'a>>,
    #[serde(alias = "file_uri")]
    pub(super) file_uri: Option<Text<'a>>,
    #[serde(alias = "display_name")]
    pub(super) display_name: Option<Text<'a>>,
}

/// The model calls.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "some fields are known only so that they are not reported")]
pub(super) struct FunctionCall<'a> {
    #[serde(borrow)]
    pub(super) id: Option<Text<'a>>,
    pub(super) name: Option<Text<'a>>,
    pub(super) args: Option<Raw<'a>>,
    #[serde(alias = "partial_args")]
    pub(super) partial_args: Option<Raw<'a>>,

    #[serde(alias = "will_continue")]
    will_continue: Option<Raw<'a>>,
}

/// The client answers.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FunctionResponse<'a> {
    #[serde(borrow)]
    pub(super) id: Option<Text<'a>>,
    pub(super) name: Option<Text<'a>>,
    pub(super) response: Option<Raw<'a>>,
    pub(super) parts: Option<List<ResponsePart<'a>>>,
    pub(super) scheduling: Option<Raw<'a>>,
    #[serde(alias = "will_continue")]
    pub(super) will_continue: Option<Raw<'a>>,
}

/// A picture or document in a function's answer.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResponsePart<'a> {
    #[serde(borrow, alias = "inline_data")]
    pub(super) inline_data: Option<Box<Blob<'a>>>,
    #[serde(alias = "file_data")]
    pub(super) file_data: Option<Box<FileData<'a>>>,
}

/// A tool object; most have functions and nothing else.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Tool<'a> {
    #[serde(borrow, alias = "function_declarations")]
    pub(super) function_declarations: Option<Vec<FunctionDeclaration<'a>>>,
}

/// A function.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FunctionDeclaration<'a> {
    #[serde(borrow)]
    pub(super) name: Option<Text<'a>>,
    pub(super) description: Option<Text<'a>>,
    pub(super) parameters: Option<Raw<'a>>,
    #[serde(alias = "parameters_json_schema")]
    pub(super) parameters_json_schema: Option<Raw<'a>>,
    pub(super) response: Option<Raw<'a>>,
    #[serde(alias = "response_json_schema")]
    pub(super) response_json_schema: Option<Raw<'a>>,
    pub(super) behavior: Option<Raw<'a>>,
}

/// How tools are used.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolConfig<'a> {
    #[serde(borrow, alias = "function_calling_config")]
    pub(super) function_calling_config: Option<FunctionCallingConfig<'a>>,
    #[serde(alias = "retrieval_config")]
    pub(super) retrieval_config: Option<Raw<'a>>,
    #[serde(alias = "include_server_side_tool_invocations")]
    pub(super) include_server_side_tool_invocations: Option<Raw<'a>>,
}

/// Whether functions may, must or must not be called.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FunctionCallingConfig<'a> {
    #[serde(borrow)]
    pub(super) mode: Option<Raw<'a>>,
    #[serde(alias = "allowed_function_names")]
    pub(super) allowed_function_names: Option<Raw<'a>>,
    #[serde(alias = "stream_function_call_arguments")]
    pub(super) stream_function_call_arguments: Option<bool>,
}

/// `thinkingConfig`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThinkingConfig<'a> {
    #[serde(alias = "include_thoughts")]
    pub(super) include_thoughts: Option<bool>,
    #[serde(borrow, alias = "thinking_budget")]
    pub(super) thinking_budget: Option<Raw<'a>>,
    #[serde(alias = "thinking_level")]
    pub(super) thinking_level: Option<Text<'a>>,
}

/// A list, or the one member of a list where a client left out the brackets.
#[derive(Debug)]
pub(super) struct List<T>(pub(super) Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        struct OneOrMany<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrMany<T> {
            type Value = List<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array or an object")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut list = Vec::with_capacity(seq.size_hint().unwrap_or(0));
                while let Some(member) = seq.next_element()? {
                    list.push(member);
                }
                Ok(List(list))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(|one| List(vec![one]))
            }
        }
        json.deserialize_any(OneOrMany(PhantomData))
    }
}
