//! Results of calls: content, or a typed failure.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::ToolName;

/// One block of a result.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Content {
    /// Text.
    Text(String),
    /// An image, as base64.
    Image {
        /// Base64 of the image.
        data: String,
        /// Media type.
        mime_type: String,
    },
    /// Sound, as base64.
    Audio {
        /// Base64 of the sound.
        data: String,
        /// Media type.
        mime_type: String,
    },
    /// Address of a resource. It is never fetched.
    ResourceLink {
        /// Address.
        uri: String,
        /// Name of the resource.
        name: String,
        /// Media type.
        mime_type: Option<String>,
        /// Size in bytes.
        size: Option<u64>,
    },
    /// A text resource within the result.
    TextResource {
        /// Address.
        uri: String,
        /// Media type.
        mime_type: Option<String>,
        /// Text of the resource.
        text: String,
    },
    /// A binary resource within the result.
    BlobResource {
        /// Address.
        uri: String,
        /// Media type.
        mime_type: Option<String>,
        /// Base64 of the resource.
        data: String,
    },
    /// A kind of block that this version does not know, as JSON.
    Unknown(Box<RawValue>),
}

impl Content {
    /// Bytes of text and JSON.
    pub(crate) fn text_bytes(&self) -> usize {
        match self {
            Self::Text(text) | Self::TextResource { text, .. } => text.len(),
            Self::ResourceLink { uri, name, .. } => uri.len() + name.len(),
            Self::Unknown(value) => value.get().len(),
            Self::Image { .. } | Self::Audio { .. } | Self::BlobResource { .. } => 0,
        }
    }

    /// Bytes of base64.
    pub(crate) fn media_bytes(&self) -> usize {
        match self {
            Self::Image { data, .. }
            | Self::Audio { data, .. }
            | Self::BlobResource { data, .. } => data.len(),
            Self::Text(_)
            | Self::TextResource { .. }
            | Self::ResourceLink { .. }
            | Self::Unknown(_) => 0,
        }
    }

    /// Media type of a block of media.
    pub(crate) fn mime_type(&self) -> Option<&str> {
        match self {
            Self::Image { mime_type, .. } | Self::Audio { mime_type, .. } => Some(mime_type),
            Self::BlobResource { mime_type, .. } => mime_type.as_deref(),
            Self::Text(_)
            | Self::TextResource { .. }
            | Self::ResourceLink { .. }
            | Self::Unknown(_) => None,
        }
    }
}

/// Result of a tool that ran, successful or not.
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// Blocks for the model, in order.
    pub content: Vec<Content>,
    /// Structured result, as the source wrote it.
    pub structured: Option<Box<RawValue>>,
    /// The tool reports that it failed.
    pub is_error: bool,
    /// Blocks that were addressed to people only and left out.
    pub hidden_blocks: usize,
    /// Bytes that were left out because of [`Limits`](crate::Limits).
    pub cut_bytes: usize,
}

impl Output {
    /// A result of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Content::Text(text.into())], ..Self::default() }
    }

    /// A structured result.
    pub fn json(value: Box<RawValue>) -> Self {
        Self { structured: Some(value), ..Self::default() }
    }

    /// A failure that the tool reports in words.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// Size of the result: text, JSON and base64.
    pub fn bytes(&self) -> usize {
        let blocks: usize = self.content.iter().map(|it| it.text_bytes() + it.media_bytes()).sum();
        blocks + self.structured.as_ref().map_or(0, |it| it.get().len())
    }
}

/// Reason why a call was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Denial {
    /// The client has no grant for the tool.
    Grant,
    /// The definition is not the pinned one.
    Pin,
    /// The definition changed since it was offered.
    Changed,
    /// The tool needs an approval and the call has none.
    Approval,
}

/// Reason why a call has no result of its tool.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// There is no such tool for this client and session.
    UnknownTool,
    /// The call was refused before it reached the source.
    Denied(Denial),
    /// The arguments are no JSON object, or do not fit the schema.
    Arguments(String),
    /// The server answered with a JSON-RPC error.
    Protocol {
        /// JSON-RPC code.
        code: i64,
        /// Message of the server.
        message: String,
    },
    /// The server answered with an HTTP status that is no success.
    Http {
        /// Status code.
        status: u16,
    },
    /// The server refused the credential.
    Unauthorized {
        /// 401 or 403.
        status: u16,
    },
    /// The call took too long and was cancelled.
    Timeout {
        /// Limit that passed.
        limit: Duration,
    },
    /// The server ended while it worked. It may have done something.
    Crashed,
    /// The server cannot be reached, or its circuit breaker is open. Nothing was done.
    Unreachable(String),
    /// The response exceeds the limit of the transport.
    TooLarge {
        /// Limit in bytes.
        limit: usize,
    },
    /// The tool wants input that this program cannot give.
    InputRequired,
    /// Too many calls are waiting.
    Busy,
    /// The caller cancelled the call.
    Cancelled,
}

impl Failure {
    /// Short name for metrics and logs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::UnknownTool => "unknown_tool",
            Self::Denied(_) => "denied",
            Self::Arguments(_) => "arguments",
            Self::Protocol { .. } => "protocol",
            Self::Http { .. } => "http",
            Self::Unauthorized { .. } => "auth",
            Self::Timeout { .. } => "timeout",
            Self::Crashed => "crashed",
            Self::Unreachable(_) => "unreachable",
            Self::TooLarge { .. } => "too_large",
            Self::InputRequired => "input",
            Self::Busy => "busy",
            Self::Cancelled => "cancelled",
        }
    }

    /// Message for the model. It names no address, header, credential or body of a server.
    pub fn message(&self, tool: &ToolName) -> String {
        let source = tool.namespace();
        match self {
            Self::UnknownTool => format!("there is no tool `{tool}`"),
            Self::Denied(Denial::Approval) => format!("`{tool}` needs an approval"),
            Self::Denied(Denial::Grant | Denial::Pin | Denial::Changed) => {
                format!("`{tool}` is not permitted")
            }
            Self::Arguments(reason) => format!("invalid arguments for `{tool}`: {reason}"),
            Self::Protocol { code, message } => {
                format!("the server `{source}` refused: {message} ({code})")
            }
            Self::Http { status } => format!("HTTP {status} from `{source}`"),
            Self::Unauthorized { .. } => format!("the server `{source}` wants authorization"),
            Self::Timeout { limit } => {
                format!("`{tool}` took longer than {} s and was cancelled", limit.as_secs_f64())
            }
            Self::Crashed => format!(
                "the server `{source}` went away while it worked; it may have done something"
            ),
            Self::Unreachable(_) => format!("the server `{source}` cannot be reached"),
            Self::TooLarge { limit } => {
                format!("the result of `{tool}` is larger than {limit} bytes")
            }
            Self::InputRequired => {
                format!("`{tool}` wants input that this gateway cannot give")
            }
            Self::Busy => format!("too many calls of `{tool}` are waiting"),
            Self::Cancelled => format!("`{tool}` was cancelled"),
        }
    }
}

/// End of a call. Every call has exactly one.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Id of the call.
    pub id: String,
    /// Name of the tool.
    pub tool: ToolName,
    /// Result, or the reason why there is none.
    pub result: Result<Output, Failure>,
    /// The result comes from the cache, or from a call that ran for another caller.
    pub cached: bool,
    /// Time since the call was made.
    pub elapsed: Duration,
}

impl Outcome {
    /// Whether the model is to be told that the call failed.
    pub fn is_error(&self) -> bool {
        match &self.result {
            Ok(output) => output.is_error,
            Err(_) => true,
        }
    }

    /// Short name of the failure for metrics: `tool` where the tool itself reports one.
    pub fn fault(&self) -> Option<&'static str> {
        match &self.result {
            Ok(output) => output.is_error.then_some("tool"),
            Err(failure) => Some(failure.kind()),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireResult<'a> {
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    structured_content: Option<&'a RawValue>,
    #[serde(default)]
    is_error: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireBlock {
    r#type: Option<String>,
    text: Option<String>,
    data: Option<String>,
    mime_type: Option<String>,
    uri: Option<String>,
    name: Option<String>,
    size: Option<u64>,
    resource: Option<WireResource>,
    annotations: Option<WireAnnotations>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireResource {
    uri: Option<String>,
    mime_type: Option<String>,
    text: Option<String>,
    blob: Option<String>,
}

#[derive(Deserialize)]
struct WireAnnotations {
    audience: Option<Vec<String>>,
}

impl Output {
    /// Decodes the result of MCP's `tools/call`.
    ///
    /// Block kinds that this version does not know, and known ones that are not well-formed, are kept
    /// as JSON: one odd block never loses the others.
    ///
    /// # Errors
    /// Fails if the result is no object.
    pub fn from_mcp(result: &RawValue) -> Result<Self, serde_json::Error> {
        // A derived mirror would also read a list.
        if !result.get().starts_with('{') {
            return Err(serde::de::Error::custom("the result is no object"));
        }
        let wire: WireResult<'_> = serde_json::from_str(result.get())?;
        let mut output = Self {
            structured: wire.structured_content.map(ToOwned::to_owned),
            is_error: wire.is_error.unwrap_or(false),
            ..Self::default()
        };
        if wire.structured_content.is_none() && has_null_structured(result) {
            output.structured = RawValue::from_string("null".to_owned()).ok();
        }
        let Some(content) = wire.content else { return Ok(output) };
        let blocks: Vec<&RawValue> = match serde_json::from_str(content.get()) {
            Ok(blocks) => blocks,
            // A single block, or a bare string, instead of a list.
            Err(_) => vec![content],
        };
        for block in blocks {
            match decode_block(block) {
                Block::Shown(content) => output.content.push(content),
                Block::Hidden => output.hidden_blocks += 1,
            }
        }
        Ok(output)
    }
}

/// Whether the result has `"structuredContent": null`, which serde reads as an absent member.
fn has_null_structured(result: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Present {
        #[serde(rename = "structuredContent", default, deserialize_with = "present")]
        structured: bool,
    }
    fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| true)
    }
    serde_json::from_str::<Present>(result.get()).is_ok_and(|it| it.structured)
}

enum Block {
    Shown(Content),
    Hidden,
}

fn decode_block(raw: &RawValue) -> Block {
    let unknown = || Block::Shown(Content::Unknown(raw.to_owned()));
    if raw.get().starts_with('"') {
        return match serde_json::from_str(raw.get()) {
            Ok(text) => Block::Shown(Content::Text(text)),
            Err(_) => unknown(),
        };
    }
    let Ok(block) = serde_json::from_str::<WireBlock>(raw.get()) else { return unknown() };
    let audience = block.annotations.and_then(|it| it.audience);
    if audience.is_some_and(|it| !it.is_empty() && !it.iter().any(|to| to == "assistant")) {
        return Block::Hidden;
    }
    let WireBlock { r#type, text, data, mime_type, uri, name, size, resource, .. } = block;
    let content = match (r#type.as_deref(), text, data, resource) {
        (Some("text"), Some(text), _, _) => Content::Text(text),
        (Some("image"), _, Some(data), _) => {
            Content::Image { data, mime_type: mime_type.unwrap_or_else(|| "image/png".to_owned()) }
        }
        (Some("audio"), _, Some(data), _) => {
            Content::Audio { data, mime_type: mime_type.unwrap_or_else(|| "audio/wav".to_owned()) }
        }
        (Some("resource_link"), ..) => match uri {
            Some(uri) => {
                Content::ResourceLink { name: name.unwrap_or_default(), uri, mime_type, size }
            }
            None => return unknown(),
        },
        (Some("resource"), _, _, Some(resource)) => {
            let WireResource { uri, mime_type, text, blob } = resource;
            let uri = uri.unwrap_or_default();
            match (text, blob) {
                (Some(text), _) => Content::TextResource { uri, mime_type, text },
                (None, Some(data)) => Content::BlobResource { uri, mime_type, data },
                (None, None) => return unknown(),
            }
        }
        _ => return unknown(),
    };
    Block::Shown(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(text: &str) -> Output {
        let raw: Box<RawValue> = serde_json::from_str(text).unwrap();
        Output::from_mcp(&raw).unwrap()
    }

    #[test]
    fn every_kind_of_block_is_decoded() {
        let output = decode(
            r#"{"content":[
                {"type":"text","text":"a"},
                {"type":"image","data":"AA==","mimeType":"image/gif"},
                {"type":"audio","data":"BB==","mimeType":"audio/ogg"},
                {"type":"resource_link","uri":"file:///x","name":"x","size":3},
                {"type":"resource","resource":{"uri":"u","text":"t"}},
                {"type":"resource","resource":{"uri":"u","blob":"CC=="}},
                {"type":"hologram","n":1e2},
                {"type":"text","text":"people","annotations":{"audience":["user"]}},
                {"type":"text","text":"both","annotations":{"audience":["user","assistant"]}}
            ],"isError":true}"#,
        );
        assert!(output.is_error);
        assert_eq!(output.hidden_blocks, 1);
        assert_eq!(output.content.len(), 8);
        assert!(matches!(&output.content[6], Content::Unknown(raw) if raw.get().contains("1e2")));
        assert!(
            matches!(&output.content[1], Content::Image { mime_type, .. } if mime_type == "image/gif")
        );
    }

    #[test]
    fn t32_empty_structured_results_are_results() {
        for value in ["[]", "{}", "null", "0", "12345678901234567890.10"] {
            let output = decode(&format!(r#"{{"structuredContent":{value},"content":[]}}"#));
            assert_eq!(output.structured.as_ref().map(|it| it.get()), Some(value));
        }
        assert!(decode(r#"{"content":[]}"#).structured.is_none());
    }

    #[test]
    fn odd_results_lose_nothing() {
        assert!(
            matches!(&decode(r#"{"content":"bare"}"#).content[0], Content::Text(t) if t == "bare")
        );
        assert!(matches!(
            &decode(r#"{"content":[{"type":"text","text":7},{"type":"text","text":"b"}]}"#).content
                [..],
            [Content::Unknown(_), Content::Text(_)]
        ));
        assert!(Output::from_mcp(&RawValue::from_string("[]".to_owned()).unwrap()).is_err());
    }
}
