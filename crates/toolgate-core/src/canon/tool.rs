//! Tools, calls and results.

use std::borrow::Cow;
use std::fmt;

use sha2::{Digest as _, Sha256};

use super::Issuer;
use crate::json::{Raw, Text};

/// Something that the model may use.
#[derive(Clone, Debug)]
pub enum Tool<'a> {
    /// A function that the client runs.
    Function(Function<'a>),
    /// A tool of the client's that takes text in a form of its own instead of JSON.
    Freeform {
        /// The tool's name.
        name: ToolName<'a>,
        /// The tool's description.
        description: Option<Text<'a>>,
        /// The grammar that its input follows, said in words to the model.
        grammar: Option<Text<'a>>,
    },
    /// A tool that Gemini runs itself.
    Server(ServerTool<'a>),
}

/// A function that the client runs.
#[derive(Clone, Debug)]
pub struct Function<'a> {
    /// The tool's name.
    pub name: ToolName<'a>,
    /// The tool's description.
    pub description: Option<Text<'a>>,
    /// The schema of its arguments; `None` where the client gave none.
    pub parameters: Option<Raw<'a>>,
    /// How `parameters` and `response` are written.
    pub form: SchemaForm,
    /// The schema of its result, where the client gave one (Gemini only).
    pub response: Option<Raw<'a>>,
    /// Declared but not to be shown to the model yet (`defer_loading`).
    pub deferred: bool,
    /// Where in the client's body it stands, for messages: `tools[3]`.
    pub at: String,
    /// Name of the parameters in the client's dialect: `input_schema`.
    pub schema_field: &'static str,
}

/// How a schema is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SchemaForm {
    /// JSON Schema, any draft.
    JsonSchema,
    /// Gemini's `Schema` (an OpenAPI 3.0 subset, upper- or lower-case types).
    Gemini,
}

/// A tool that Gemini runs itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerTool<'a> {
    /// Searching the web.
    WebSearch {
        /// The name by which the client's dialect calls it (`web_search`), for `tool_choice`.
        name: Cow<'a, str>,
    },
    /// Reading pages whose address is in the prompt.
    UrlContext {
        /// The name by which the client's dialect calls it (`web_fetch`), for `tool_choice`.
        name: Cow<'a, str>,
    },
    /// Running code.
    CodeExecution {
        /// The name by which the client's dialect calls it (`code_execution`), for `tool_choice`.
        name: Cow<'a, str>,
    },
    /// One member of a Gemini `Tool` object, as it is: `googleMaps`, `fileSearch`, kinds that
    /// this version does not know.
    Gemini {
        /// The member's name, camelCase.
        kind: Cow<'a, str>,
        /// Its value.
        body: Raw<'a>,
    },
}

/// A tool's name, with the namespace that some clients keep apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolName<'a> {
    /// `mcp__server` in Codex's `{"type":"namespace"}`.
    pub namespace: Option<Cow<'a, str>>,
    /// The name itself.
    pub name: Cow<'a, str>,
}

impl<'a> ToolName<'a> {
    /// A name without a namespace.
    pub fn plain(name: impl Into<Cow<'a, str>>) -> Self {
        Self { namespace: None, name: name.into() }
    }

    /// A copy that owns its strings.
    pub fn into_owned(self) -> ToolName<'static> {
        ToolName {
            namespace: self.namespace.map(|it| Cow::Owned(it.into_owned())),
            name: Cow::Owned(self.name.into_owned()),
        }
    }
}

impl fmt::Display for ToolName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}.{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// Whether the model may, must or must not call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice<'a> {
    /// The client did not say.
    #[default]
    Unset,
    /// It may.
    Auto,
    /// It must call something.
    Any,
    /// It must not.
    None,
    /// It must call this one.
    One(ToolName<'a>),
    /// Only these.
    Allowed {
        /// Whether it must call one of them.
        required: bool,
        /// Which.
        names: Vec<ToolName<'a>>,
    },
}

/// The model calls a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call<'a> {
    /// In a request: the id that the client uses, prefix and all. In an event: a token that is
    /// unique across turns, to which the dialect adds its prefix.
    pub id: Cow<'a, str>,
    /// Gemini's own id, where it gave one.
    pub upstream_id: Option<Cow<'a, str>>,
    /// The tool that is called.
    pub tool: ToolName<'a>,
    /// Its input.
    pub input: CallInput<'a>,
    /// Gemini's signature, where this very call carried one.
    pub signature: Option<Signature<'a>>,
}

/// Input of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallInput<'a> {
    /// A JSON object (a client may have stored something else; it is kept as it is).
    Json(Raw<'a>),
    /// Text in the tool's own form.
    Text(Text<'a>),
}

/// A tool answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult<'a> {
    /// The id of the call, as the client uses it; `None` where the dialect allows none (Gemini).
    pub call_id: Option<Cow<'a, str>>,
    /// The tool's name, where the result says it.
    pub tool: Option<ToolName<'a>>,
    /// Whether the tool says that it failed.
    pub is_error: bool,
    /// Content of the result.
    pub content: Vec<ResultPart<'a>>,
    /// Other members of Gemini's `functionResponse` (`scheduling`, `willContinue`), copied.
    pub modifiers: Vec<(Cow<'a, str>, Raw<'a>)>,
}

/// A piece of a tool's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResultPart<'a> {
    /// Words (also JSON in a string: it stays a string).
    Text(Text<'a>),
    /// A JSON value that the client sent as JSON. An object here is Gemini's `response` itself.
    Json(Raw<'a>),
    /// A picture or document.
    Media(super::Media<'a>),
}

/// An opaque token of Gemini's that must come back with the part that carried it.
///
/// Its `Debug` prints the length only.
#[derive(Clone, PartialEq, Eq)]
pub struct Signature<'a>(Box<Signed<'a>>);

/// The content of a signature. In a box of its own: most parts have none.
#[derive(Clone, PartialEq, Eq)]
struct Signed<'a> {
    value: Cow<'a, str>,
    issuer: Option<Issuer>,
    tool: Option<ToolMark>,
}

/// A short mark of a tool's name, by which a signature knows the call that it was issued for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ToolMark(pub(crate) [u8; 3]);

impl ToolMark {
    /// The mark of a name; clients may write it in another case, or without its namespace.
    pub(crate) fn of(tool: &ToolName<'_>) -> Self {
        let name = tool.name.to_ascii_lowercase();
        let hash: [u8; 32] = Sha256::digest(name.as_bytes()).into();
        Self([hash[0], hash[1], hash[2]])
    }
}

impl<'a> Signature<'a> {
    /// `None` for the empty string, which means "no signature".
    pub fn new(value: impl Into<Cow<'a, str>>, issuer: Option<Issuer>) -> Option<Self> {
        let value = value.into();
        (!value.is_empty()).then(|| Self(Box::new(Signed { value, issuer, tool: None })))
    }

    /// The same, for calls of this tool alone: some clients rename calls and keep the rest.
    #[must_use]
    pub fn of_tool(self, tool: &ToolName<'_>) -> Self {
        self.marked(Some(ToolMark::of(tool)))
    }

    /// Whether it may stand on a call of this tool, as far as it knows.
    pub fn fits(&self, tool: &ToolName<'_>) -> bool {
        self.0.tool.is_none_or(|mark| mark == ToolMark::of(tool))
    }

    pub(crate) fn mark(&self) -> Option<ToolMark> {
        self.0.tool
    }

    pub(crate) fn marked(mut self, tool: Option<ToolMark>) -> Self {
        self.0.tool = tool;
        self
    }

    /// The token, to be sent or sealed; never to be printed.
    pub fn expose(&self) -> &str {
        &self.0.value
    }

    /// Who issued it; `None` where the carrier did not say.
    pub fn issuer(&self) -> Option<&Issuer> {
        self.0.issuer.as_ref()
    }

    /// A copy that owns its token.
    pub fn into_owned(self) -> Signature<'static> {
        let Signed { value, issuer, tool } = *self.0;
        Signature(Box::new(Signed { value: Cow::Owned(value.into_owned()), issuer, tool }))
    }
}

impl fmt::Debug for Signature<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signature({} characters, {:?})", self.0.value.len(), self.0.issuer)
    }
}

impl Call<'_> {
    /// A copy that owns everything.
    pub fn into_owned(self) -> Call<'static> {
        Call {
            id: Cow::Owned(self.id.into_owned()),
            upstream_id: self.upstream_id.map(|id| Cow::Owned(id.into_owned())),
            tool: self.tool.into_owned(),
            input: match self.input {
                CallInput::Json(raw) => CallInput::Json(raw.into_owned()),
                CallInput::Text(text) => CallInput::Text(text.into_owned()),
            },
            signature: self.signature.map(Signature::into_owned),
        }
    }
}
