//! Parsed requests, in the form that the rules and the simulator use.

use serde_json::{Map, Value};

use crate::tree::Tree;

/// A generateContent or countTokens request.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The conversation.
    pub contents: Vec<Content>,
    /// `systemInstruction`
    pub system: Option<Content>,
    /// The functions of all `tools`, in order.
    pub functions: Vec<Function>,
    /// The tools that Google runs itself, by their field's name (`googleSearch`).
    pub server_tools: Vec<String>,
    /// Function calling settings.
    pub calling: Calling,
    /// `generationConfig`
    pub settings: Settings,
    /// `cachedContent`
    pub cached_content: Option<String>,
}

/// A content: the parts of one role.
#[derive(Clone, Debug, Default)]
pub struct Content {
    /// `user`, `model`, or any other text that was sent.
    pub role: String,
    /// The parts.
    pub parts: Vec<Part>,
}

/// A part of a content.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// The data.
    pub data: Data,
    /// Whether it is a thought summary.
    pub thought: bool,
    /// `thoughtSignature`, unless it is empty.
    pub signature: Option<RawSignature>,
}

/// Data of a part.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Data {
    /// No data, only modifiers.
    #[default]
    None,
    /// `text`
    Text(String),
    /// `inlineData` or `fileData`
    Media {
        /// The MIME type.
        mime: String,
        /// Length of the base64 text, for counting tokens.
        size: usize,
    },
    /// `functionCall`
    Call {
        /// Its id, unless it is empty.
        id: Option<String>,
        /// Name of the function.
        name: String,
        /// The arguments.
        args: Map<String, Value>,
    },
    /// `functionResponse`
    Response {
        /// Its id, unless it is empty.
        id: Option<String>,
        /// Name of the function.
        name: String,
        /// The response.
        response: Map<String, Value>,
        /// Display names of its media.
        media: Vec<String>,
    },
    /// A part of a server-side tool, by its field's name (`executableCode`, `toolCall`).
    Server(String, Value),
}

/// A signature as received. `Debug` shows the length only.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RawSignature(pub String);

impl std::fmt::Debug for RawSignature {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RawSignature({} bytes)", self.0.len())
    }
}

/// A declared function.
#[derive(Clone, Debug)]
pub struct Function {
    /// The name.
    pub name: String,
    /// The description.
    pub description: String,
    /// Schema of the arguments: JSON Schema, or Gemini's `Schema` with upper-case types.
    pub schema: Option<Value>,
}

/// `toolConfig`
#[derive(Clone, Debug, Default)]
pub struct Calling {
    /// The mode.
    pub mode: Mode,
    /// `allowedFunctionNames`
    pub allowed: Vec<String>,
    /// `streamFunctionCallArguments`
    pub stream_arguments: bool,
    /// `includeServerSideToolInvocations`
    pub server_side: bool,
}

/// `functionCallingConfig.mode`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Not set; the same as AUTO.
    #[default]
    Unset,
    /// Text or calls.
    Auto,
    /// Calls only.
    Any,
    /// No calls.
    None,
    /// Text or calls; calls follow their schema.
    Validated,
}

/// `generationConfig`, as far as the rules and the simulator use it.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// `maxOutputTokens`
    pub max_output_tokens: Option<i64>,
    /// `candidateCount`
    pub candidates: Option<i64>,
    /// `temperature`
    pub temperature: Option<f64>,
    /// `stopSequences`
    pub stop: Vec<String>,
    /// Whether a penalty is set.
    pub penalty: bool,
    /// Whether log probabilities are requested.
    pub logprobs: bool,
    /// `responseMimeType`, or the type in `responseFormat`.
    pub mime: Option<String>,
    /// `responseJsonSchema`, `responseSchema` or `responseFormat`'s schema.
    pub schema: Option<Value>,
    /// `thinkingConfig.includeThoughts`
    pub include_thoughts: bool,
    /// `thinkingConfig.thinkingBudget`
    pub thinking_budget: Option<i64>,
    /// `thinkingConfig.thinkingLevel`
    pub thinking_level: Option<String>,
}

impl Content {
    /// Whether the role is `model`.
    pub fn is_model(&self) -> bool {
        self.role == "model"
    }

    /// Number of calls.
    pub fn calls(&self) -> usize {
        self.parts.iter().filter(|part| matches!(part.data, Data::Call { .. })).count()
    }

    /// Number of function responses.
    pub fn responses(&self) -> usize {
        self.parts.iter().filter(|part| matches!(part.data, Data::Response { .. })).count()
    }
}

impl Request {
    pub(crate) fn read(tree: &Tree<'_>) -> Self {
        let field = |name: &str| tree.get(name);
        let tools = field("tools").map_or(&[][..], Tree::items);
        let declared = tools.iter().filter_map(|tool| tool.get("functionDeclarations"));
        Self {
            contents: field("contents").map_or(&[][..], Tree::items).iter().map(content).collect(),
            system: field("systemInstruction").map(content),
            functions: declared.flat_map(Tree::items).map(function).collect(),
            server_tools: tools
                .iter()
                .flat_map(Tree::members)
                .filter(|(name, _)| name != "functionDeclarations")
                .map(|(name, _)| name.to_string())
                .collect(),
            calling: field("toolConfig").map(calling).unwrap_or_default(),
            settings: field("generationConfig").map(settings).unwrap_or_default(),
            cached_content: string(tree, "cachedContent"),
        }
    }
}

fn string(tree: &Tree<'_>, name: &str) -> Option<String> {
    tree.get(name).and_then(Tree::text).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn object(tree: &Tree<'_>, name: &str) -> Map<String, Value> {
    match tree.get(name).map(Tree::to_value) {
        Some(Value::Object(object)) => object,
        _ => Map::new(),
    }
}

fn content(tree: &Tree<'_>) -> Content {
    Content {
        role: string(tree, "role").unwrap_or_else(|| "user".to_owned()),
        parts: tree.get("parts").map_or(&[][..], Tree::items).iter().map(part).collect(),
    }
}

fn part(tree: &Tree<'_>) -> Part {
    let data = tree.members().iter().find_map(|(name, value)| {
        Some(match &**name {
            "text" => Data::Text(value.text().unwrap_or("").to_owned()),
            "inlineData" | "fileData" => Data::Media {
                mime: string(value, "mimeType").unwrap_or_default(),
                size: value.get("data").and_then(Tree::text).map_or(0, str::len),
            },
            "functionCall" => Data::Call {
                id: string(value, "id"),
                name: string(value, "name").unwrap_or_default(),
                args: object(value, "args"),
            },
            "functionResponse" => Data::Response {
                id: string(value, "id"),
                name: string(value, "name").unwrap_or_default(),
                response: object(value, "response"),
                media: value
                    .get("parts")
                    .map_or(&[][..], Tree::items)
                    .iter()
                    .map(display_name)
                    .collect(),
            },
            "executableCode" | "codeExecutionResult" | "toolCall" | "toolResponse" => {
                Data::Server(name.to_string(), value.to_value())
            }
            _ => return None,
        })
    });
    Part {
        data: data.unwrap_or_default(),
        thought: tree.get("thought").is_some_and(Tree::is_true),
        signature: string(tree, "thoughtSignature").map(RawSignature),
    }
}

fn display_name(part: &Tree<'_>) -> String {
    let medium = part.get("inlineData").or_else(|| part.get("fileData"));
    medium.and_then(|medium| string(medium, "displayName")).unwrap_or_default()
}

fn function(tree: &Tree<'_>) -> Function {
    Function {
        name: string(tree, "name").unwrap_or_default(),
        description: string(tree, "description").unwrap_or_default(),
        schema: tree
            .get("parametersJsonSchema")
            .or_else(|| tree.get("parameters"))
            .map(Tree::to_value),
    }
}

fn calling(tree: &Tree<'_>) -> Calling {
    let config = tree.get("functionCallingConfig").unwrap_or(&Tree::Null);
    let names = config.get("allowedFunctionNames").map_or(&[][..], Tree::items);
    Calling {
        mode: match config.get("mode").and_then(Tree::text) {
            Some("AUTO") => Mode::Auto,
            Some("ANY") => Mode::Any,
            Some("NONE") => Mode::None,
            Some("VALIDATED") => Mode::Validated,
            _ => Mode::Unset,
        },
        allowed: names.iter().filter_map(Tree::text).map(str::to_owned).collect(),
        stream_arguments: config.get("streamFunctionCallArguments").is_some_and(Tree::is_true),
        server_side: tree.get("includeServerSideToolInvocations").is_some_and(Tree::is_true),
    }
}

fn settings(tree: &Tree<'_>) -> Settings {
    let thinking = tree.get("thinkingConfig").unwrap_or(&Tree::Null);
    let stop = tree.get("stopSequences").map_or(&[][..], Tree::items);
    // One format on the Developer API, a list of them on Vertex.
    let format = tree
        .get("responseFormat")
        .map_or(&Tree::Null, |format| format.items().first().unwrap_or(format));
    let text = format.get("text").unwrap_or(&Tree::Null);
    let format_mime = match text.get("mimeType").and_then(Tree::text) {
        Some("APPLICATION_JSON") => Some("application/json".to_owned()),
        Some("TEXT_PLAIN") => Some("text/plain".to_owned()),
        _ => None,
    };
    let schemas = ["responseJsonSchema", "responseSchema"];
    let schema = schemas.iter().find_map(|name| tree.get(name)).or_else(|| text.get("schema"));
    Settings {
        max_output_tokens: tree.get("maxOutputTokens").and_then(Tree::integer),
        candidates: tree.get("candidateCount").and_then(Tree::integer),
        temperature: tree.get("temperature").and_then(Tree::number),
        stop: stop.iter().filter_map(Tree::text).map(str::to_owned).collect(),
        penalty: ["presencePenalty", "frequencyPenalty"].iter().any(|it| tree.get(it).is_some()),
        logprobs: tree.get("logprobs").is_some()
            || tree.get("responseLogprobs").is_some_and(Tree::is_true),
        mime: string(tree, "responseMimeType").or(format_mime),
        schema: schema.map(Tree::to_value),
        include_thoughts: thinking.get("includeThoughts").is_some_and(Tree::is_true),
        thinking_budget: thinking.get("thinkingBudget").and_then(Tree::integer),
        thinking_level: string(thinking, "thinkingLevel")
            .filter(|level| level != "THINKING_LEVEL_UNSPECIFIED"),
    }
}
