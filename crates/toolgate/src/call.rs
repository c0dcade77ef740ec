//! Calls of the model, and results from the caller.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};
use serde_json::Value;
use toolgate_core::canon::{self, CallInput, ResultPart, ToolResult};
use toolgate_core::json::{Raw, Text};

use crate::tool::{IntoOutput, ToolError, bind};

/// A call by the model.
#[derive(Clone, PartialEq)]
pub struct Call {
    id: String,
    name: String,
    arguments: Raw<'static>,
}

impl Call {
    /// Creates a call, for [`Toolset::execute`](crate::Toolset::execute).
    pub fn new(id: impl Into<String>, name: impl Into<String>, arguments: &Value) -> Self {
        let arguments = Raw::of(arguments).unwrap_or_else(Raw::empty_object);
        Self { id: id.into(), name: name.into(), arguments }
    }

    pub(crate) fn from_canon(call: &canon::Call<'_>) -> Self {
        let arguments = match &call.input {
            CallInput::Json(raw) => Raw::parse(raw.compact().into_owned()),
            CallInput::Text(text) => Raw::parse(text.literal().to_owned()),
        };
        let arguments = arguments.unwrap_or_else(Raw::empty_object);
        Self { id: format!("call_{}", call.id), name: call.tool.to_string(), arguments }
    }

    /// Id of the call, unique across turns.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Name of the tool.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Arguments as compact JSON, with the model's key order and number text.
    pub fn arguments_json(&self) -> &str {
        self.arguments.get()
    }

    /// Arguments as a JSON value.
    pub fn arguments(&self) -> Value {
        self.arguments.to().unwrap_or_default()
    }

    /// Arguments as a type.
    pub fn arguments_as<T: DeserializeOwned>(&self) -> Result<T, ToolError> {
        bind(self.arguments.get())
    }

    /// Creates the result of this call.
    pub fn succeed(&self, value: impl IntoOutput) -> CallResult {
        CallResult::success(self.id.clone(), value)
    }

    /// Creates an error result of this call.
    pub fn fail(&self, error: impl fmt::Display) -> CallResult {
        CallResult::error(self.id.clone(), error)
    }

    /// The same call with other arguments.
    pub(crate) fn with_arguments(&self, arguments: &Value) -> Self {
        Self::new(self.id.clone(), self.name.clone(), arguments)
    }

    pub(crate) fn raw(&self) -> &Raw<'static> {
        &self.arguments
    }
}

/// `{"id": …, "name": …, "arguments": {…}}`, with the model's key order and number text.
impl Serialize for Call {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Call", 3)?;
        fields.serialize_field("id", &self.id)?;
        fields.serialize_field("name", &self.name)?;
        fields.serialize_field("arguments", &self.arguments)?;
        fields.end()
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}({})", self.id, self.name, self.arguments.get())
    }
}

/// Result of a call that was returned to the caller.
#[derive(Clone, Debug, PartialEq)]
pub struct CallResult(pub(crate) ToolResult<'static>);

impl CallResult {
    /// Creates the result of the call with this id.
    pub fn success(call_id: impl Into<String>, value: impl IntoOutput) -> Self {
        match value.into_output() {
            Ok(output) => Self::new(call_id.into(), false, output.into_content()),
            Err(error) => Self::error(call_id, error),
        }
    }

    /// Creates an error result of the call with this id.
    pub fn error(call_id: impl Into<String>, error: impl fmt::Display) -> Self {
        let text = ResultPart::Text(Text::new(&format!("{error:#}")));
        Self::new(call_id.into(), true, vec![text])
    }

    fn new(call_id: String, is_error: bool, content: Vec<ResultPart<'static>>) -> Self {
        Self(ToolResult {
            call_id: Some(call_id.into()),
            tool: None,
            is_error,
            content,
            modifiers: Vec::new(),
        })
    }
}
