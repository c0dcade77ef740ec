//! Mirrors of `GenerateContentResponse`, as far as it is looked into.
//!
//! Every member may be missing or `null`, may be written in camelCase or (by proxies) in
//! snake_case, and may come twice (the last one counts). Members that this version does not know
//! are kept.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::canon::Usage;
use crate::json::{CowStr, Raw, Text};

macro_rules! mirror {
    (
        $(#[$doc:meta])*
        $name:ident<$life:lifetime> {
            $($field:ident: $type:ty = $($key:literal)|+;)*
        }
        not read: $($ignored:literal)|*
    ) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub(super) struct $name<$life> {
            $(pub(super) $field: Option<$type>,)*
            /// What this version does not know.
            pub(super) unknown: Vec<(Cow<$life, str>, Raw<$life>)>,
        }

        impl<'de: $life, $life> Deserialize<'de> for $name<$life> {
            fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
                struct MirrorVisitor<$life>(PhantomData<&$life ()>);
                impl<'de: $life, $life> Visitor<'de> for MirrorVisitor<$life> {
                    type Value = $name<$life>;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str(concat!("a ", stringify!($name)))
                    }
                    fn visit_map<A: MapAccess<'de>>(
                        self,
                        mut map: A,
                    ) -> Result<Self::Value, A::Error> {
                        let mut read = $name::default();
                        while let Some(CowStr(key)) = map.next_key()? {
                            match &*key {
                                $($($key)|+ => if let Some(value) = map.next_value()? {
                                    read.$field = Some(value);
                                },)*
                                "" $(| $ignored)* => {
                                    map.next_value::<IgnoredAny>()?;
                                }
                                _ => read.unknown.push((key, map.next_value()?)),
                            }
                        }
                        Ok(read)
                    }
                }
                json.deserialize_map(MirrorVisitor(PhantomData))
            }
        }
    };
}

mirror! {
    /// One chunk of a stream, or a whole answer.
    Chunk<'a> {
        candidates: Vec<Candidate<'a>> = "candidates";
        feedback: Feedback<'a> = "promptFeedback" | "prompt_feedback";
        usage: Counts<'a> = "usageMetadata" | "usage_metadata";
        model_version: CowStr<'a> = "modelVersion" | "model_version";
        response_id: CowStr<'a> = "responseId" | "response_id";
        error: Raw<'a> = "error";
    }
    not read: "createTime" | "create_time" | "modelStatus" | "model_status"
}

mirror! {
    Candidate<'a> {
        content: Content<'a> = "content";
        finish_reason: CowStr<'a> = "finishReason" | "finish_reason";
        finish_message: Text<'a> = "finishMessage" | "finish_message";
        index: Count = "index";
        grounding: Raw<'a> = "groundingMetadata" | "grounding_metadata";
        continuation: Text<'a> = "continuationToken" | "continuation_token";
    }
    not read: "safetyRatings" | "safety_ratings" | "tokenCount" | "token_count" | "avgLogprobs"
        | "avg_logprobs" | "groundingAttributions" | "grounding_attributions"
}

mirror! {
    Content<'a> {
        parts: Vec<Option<Part<'a>>> = "parts";
    }
    not read: "role"
}

mirror! {
    /// A part. Which member is there says which kind it is; unknown members may be kinds, too.
    Part<'a> {
        text: Text<'a> = "text";
        thought: bool = "thought";
        signature: Text<'a> = "thoughtSignature" | "thought_signature";
        call: Box<FunctionCall<'a>> = "functionCall" | "function_call";
        inline: Box<Blob<'a>> = "inlineData" | "inline_data";
        file: Box<File<'a>> = "fileData" | "file_data";
    }
    not read:
}

mirror! {
    FunctionCall<'a> {
        name: CowStr<'a> = "name";
        id: CowStr<'a> = "id";
        args: Raw<'a> = "args";
        partial: Vec<PartialArg<'a>> = "partialArgs" | "partial_args";
        will_continue: bool = "willContinue" | "will_continue";
    }
    not read:
}

mirror! {
    /// A piece of a call's arguments. Without any value it is a null.
    PartialArg<'a> {
        path: CowStr<'a> = "jsonPath" | "json_path";
        string: Text<'a> = "stringValue" | "string_value";
        value: Raw<'a> = "numberValue" | "number_value" | "boolValue" | "bool_value"
            | "listValue" | "list_value" | "structValue" | "struct_value";
        will_continue: bool = "willContinue" | "will_continue";
    }
    not read: "nullValue" | "null_value"
}

mirror! {
    Blob<'a> {
        mime: CowStr<'a> = "mimeType" | "mime_type";
        data: Text<'a> = "data";
        name: CowStr<'a> = "displayName" | "display_name";
    }
    not read:
}

mirror! {
    File<'a> {
        mime: CowStr<'a> = "mimeType" | "mime_type";
        uri: Text<'a> = "fileUri" | "file_uri";
        name: CowStr<'a> = "displayName" | "display_name";
    }
    not read:
}

mirror! {
    Feedback<'a> {
        reason: CowStr<'a> = "blockReason" | "block_reason";
        message: Text<'a> = "blockReasonMessage" | "block_reason_message";
    }
    not read: "safetyRatings" | "safety_ratings"
}

mirror! {
    Counts<'a> {
        prompt: Count = "promptTokenCount" | "prompt_token_count";
        cached: Count = "cachedContentTokenCount" | "cached_content_token_count";
        candidates: Count = "candidatesTokenCount" | "candidates_token_count";
        thoughts: Count = "thoughtsTokenCount" | "thoughts_token_count";
        tool_use_prompt: Count = "toolUsePromptTokenCount" | "tool_use_prompt_token_count";
        total: Count = "totalTokenCount" | "total_token_count";
    }
    // The counts by modality add up to those above.
    not read: "promptTokensDetails" | "cacheTokensDetails" | "candidatesTokensDetails"
        | "toolUsePromptTokensDetails" | "serviceTier" | "trafficType" | "billablePromptUsage"
}

impl Counts<'_> {
    pub(super) fn usage(&self) -> Usage {
        // Counts are added up later; the bound keeps absurd ones from overflowing there.
        let count = |it: &Option<Count>| it.as_ref().map(|it| it.0.min(1 << 53));
        Usage {
            prompt: count(&self.prompt),
            cached: count(&self.cached),
            candidates: count(&self.candidates),
            thoughts: count(&self.thoughts),
            tool_use_prompt: count(&self.tool_use_prompt),
            total: count(&self.total),
        }
    }
}

/// A number of things, however it is written.
#[derive(Debug)]
pub(super) struct Count(pub(super) u64);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = Count;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a count")
            }
            fn visit_u64<E>(self, count: u64) -> Result<Count, E> {
                Ok(Count(count))
            }
            fn visit_i64<E>(self, count: i64) -> Result<Count, E> {
                Ok(Count(count.try_into().unwrap_or(0)))
            }
            fn visit_f64<E>(self, count: f64) -> Result<Count, E> {
                Ok(Count(count as u64))
            }
            fn visit_str<E: serde::de::Error>(self, count: &str) -> Result<Count, E> {
                count.parse().map(Count).map_err(E::custom)
            }
        }
        json.deserialize_any(Number)
    }
}

/// The parts of a chunk's candidates as they were written, for those that must go back so.
pub(super) fn raw_parts(chunk: &str) -> Vec<Vec<Raw<'_>>> {
    let chunk: Option<Whole<'_>> = serde_json::from_str(chunk).ok();
    let candidates = chunk.and_then(|chunk| chunk.candidates).unwrap_or_default();
    candidates
        .into_iter()
        .map(|candidate| candidate.content.and_then(|content| content.parts).unwrap_or_default())
        .collect()
}

mirror! {
    Whole<'a> {
        candidates: Vec<WholeCandidate<'a>> = "candidates";
    }
    not read:
}

mirror! {
    WholeCandidate<'a> {
        content: WholeContent<'a> = "content";
    }
    not read:
}

mirror! {
    WholeContent<'a> {
        parts: Vec<Raw<'a>> = "parts";
    }
    not read:
}
