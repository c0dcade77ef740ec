//! Requests.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use schemars::JsonSchema;
use serde_json::Value;
use toolgate_core::canon::{
    self, Effort, OutputFormat, Role, SchemaForm, ThinkingMode, ToolChoice, ToolName, Turn,
};
use toolgate_core::json::{Raw, Text};

use crate::automatic::Approval;
use crate::event::Observer;
use crate::tool::schema_of;
use crate::{Automatic, Call, Cancel, Decision, Error, Event, Message, Toolset};

/// A request: built by methods, or as plain data in [`canon`](Request::canon).
///
/// ```
/// use serde_json::json;
/// use toolgate::{Effort, Request};
///
/// let request = Request::new("Name three rivers.")
///     .system("Be brief.")
///     .temperature(0.2)
///     .thinking(Effort::Low)
///     .field("safetySettings", &json!([]))
///     .generation("mediaResolution", &json!("MEDIA_RESOLUTION_LOW"));
/// assert_eq!(request.canon.turns.len(), 1);
/// ```
#[derive(Clone, Default)]
pub struct Request {
    /// Conversation and settings as plain data, with everything that Gemini's API supports. Calls of
    /// functions that are declared here are returned to the caller.
    pub canon: canon::Request<'static>,
    /// Tools for the model.
    pub tools: Toolset,
    /// Settings of automatic function calling.
    pub automatic: Automatic,
    /// Cancellation token.
    pub cancel: Cancel,
    pub(crate) approval: Option<Approval>,
    pub(crate) observer: Option<Observer>,
    pub(crate) output_retries: u32,
}

impl Request {
    /// Creates a request with a user message.
    pub fn new(message: impl Into<Message>) -> Self {
        Self::default().user(message)
    }

    /// Sets the model, instead of the client's default.
    #[must_use]
    pub fn model(self, model: impl Into<String>) -> Self {
        self.set(|it| it.model = Cow::Owned(model.into()))
    }

    /// Adds a system instruction. Several are sent in order.
    #[must_use]
    pub fn system(self, text: impl AsRef<str>) -> Self {
        let text = Text::new(text.as_ref());
        self.set(|it| it.system.extend((!text.is_empty()).then_some(text)))
    }

    /// Adds a user message.
    #[must_use]
    pub fn user(self, message: impl Into<Message>) -> Self {
        let turn = message.into().into_turn(Role::User);
        self.set(|it| it.turns.push(turn))
    }

    /// Adds a model message.
    #[must_use]
    pub fn assistant(self, message: impl Into<Message>) -> Self {
        let turn = message.into().into_turn(Role::Model);
        self.set(|it| it.turns.push(turn))
    }

    /// Adds turns of an earlier conversation.
    #[must_use]
    pub fn history(self, turns: impl IntoIterator<Item = Turn<'static>>) -> Self {
        self.set(|it| it.turns.extend(turns))
    }

    /// Sets the tools.
    #[must_use]
    pub fn tools(self, tools: Toolset) -> Self {
        Self { tools, ..self }
    }

    /// Sets whether the model may, must or must not call. A forced call applies to the first round only.
    #[must_use]
    pub fn tool_choice(self, choice: ToolChoice<'static>) -> Self {
        self.set(|it| it.tool_choice = choice)
    }

    /// Forces a call of one of these functions in the first round; without names, of any function.
    #[must_use]
    pub fn must_call<N: Into<String>>(self, names: impl IntoIterator<Item = N>) -> Self {
        let names: Vec<_> = names.into_iter().map(|name| ToolName::plain(name.into())).collect();
        self.tool_choice(match names.is_empty() {
            true => ToolChoice::Any,
            false => ToolChoice::Allowed { required: true, names },
        })
    }

    /// Sets automatic function calling.
    #[must_use]
    pub fn automatic(self, automatic: Automatic) -> Self {
        Self { automatic, ..self }
    }

    /// Sets a callback that approves each call before it runs. The calls of a turn are presented to it
    /// concurrently.
    #[must_use]
    pub fn approve<F, R>(self, decide: F) -> Self
    where
        F: Fn(Call) -> R + Send + Sync + 'static,
        R: Future<Output = Decision> + Send + 'static,
    {
        Self { approval: Some(Approval::new(decide)), ..self }
    }

    /// Sets a callback for events.
    #[must_use]
    pub fn observe(self, observer: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        Self { observer: Some(Arc::new(observer)), ..self }
    }

    /// Sets the cancellation token.
    #[must_use]
    pub fn cancel(self, cancel: Cancel) -> Self {
        Self { cancel, ..self }
    }

    /// Sets the maximum number of output tokens, thoughts included.
    #[must_use]
    pub fn max_output_tokens(self, tokens: u32) -> Self {
        self.set(|it| it.settings.max_output_tokens = Some(tokens.into()))
    }

    /// Sets the sampling temperature. Newer models ignore it.
    #[must_use]
    pub fn temperature(self, temperature: f64) -> Self {
        self.set(|it| it.settings.temperature = Some(temperature))
    }

    /// Sets the probability mass of nucleus sampling.
    #[must_use]
    pub fn top_p(self, top_p: f64) -> Self {
        self.set(|it| it.settings.top_p = Some(top_p))
    }

    /// Sets the number of candidates of top-k sampling.
    #[must_use]
    pub fn top_k(self, top_k: u32) -> Self {
        self.set(|it| it.settings.top_k = Some(top_k.into()))
    }

    /// Adds a stop sequence.
    #[must_use]
    pub fn stop(self, text: impl AsRef<str>) -> Self {
        let text = Text::new(text.as_ref());
        self.set(|it| it.settings.stop.push(text))
    }

    /// Sets the sampling seed, for reproducible answers.
    #[must_use]
    pub fn seed(self, seed: i32) -> Self {
        self.set(|it| it.settings.seed = Some(seed.into()))
    }

    /// Sets the thinking effort.
    #[must_use]
    pub fn thinking(self, effort: Effort) -> Self {
        self.set(|it| {
            let off = effort == Effort::None;
            it.thinking.mode = if off { ThinkingMode::Off } else { ThinkingMode::On };
            it.thinking.effort = Some(effort);
        })
    }

    /// Sets whether thought summaries are included.
    #[must_use]
    pub fn show_thoughts(self, show: bool) -> Self {
        self.set(|it| it.thinking.show = Some(show))
    }

    /// Requests JSON output of this type, for [`Response::parse`](crate::Response::parse).
    #[must_use]
    pub fn output<T: JsonSchema>(self) -> Self {
        match Raw::of(&schema_of::<T>()) {
            Some(schema) => self.output_schema(schema, Some(&T::schema_name())),
            None => self,
        }
    }

    /// Sets how often an answer that does not parse as the requested type is requested again, with the
    /// parse error for the model; 0 by default. For [`Client::generate_as`](crate::Client::generate_as)
    /// and [`Chat::send_as`](crate::Chat::send_as).
    #[must_use]
    pub fn output_retries(self, retries: u32) -> Self {
        Self { output_retries: retries, ..self }
    }

    /// Requests JSON output with this JSON Schema.
    #[must_use]
    pub fn output_json(self, schema: &Value) -> Self {
        match Raw::of(schema) {
            Some(schema) => self.output_schema(schema, None),
            None => self,
        }
    }

    fn output_schema(self, schema: Raw<'static>, name: Option<&str>) -> Self {
        self.set(|it| {
            it.output = OutputFormat::JsonSchema {
                name: name.map(Text::new),
                description: None,
                schema,
                form: SchemaForm::JsonSchema,
            };
        })
    }

    /// Sets a field of Gemini's API by its camelCase name: `safetySettings`, `cachedContent`, `labels`,
    /// …, `toolConfig.retrievalConfig`. Fields that are derived from the rest of the request (`tools`,
    /// `contents`, …) are refused when the request is sent.
    #[must_use]
    pub fn field(self, name: impl Into<String>, value: &Value) -> Self {
        let (name, value) = (name.into(), Raw::of(value));
        self.set(|it| {
            it.gemini.retain(|(known, _)| *known != name);
            it.gemini.extend(value.map(|value| (Cow::Owned(name), value)));
        })
    }

    /// Sets a member of `generationConfig` that has no method here.
    #[must_use]
    pub fn generation(self, name: impl Into<String>, value: &Value) -> Self {
        let (name, value) = (name.into(), Raw::of(value));
        self.set(|it| {
            it.gemini_generation.retain(|(known, _)| *known != name);
            it.gemini_generation.extend(value.map(|value| (Cow::Owned(name), value)));
        })
    }

    /// Refuses fields that are derived from the rest of the request.
    pub(crate) fn check_fields(&self) -> Result<(), Error> {
        for (name, _) in &self.canon.gemini {
            let instead = match &**name {
                "contents" => "`user` and `history`",
                "generationConfig" => "`generation`, for each of its members",
                "model" => "`model`",
                "systemInstruction" => "`system`",
                "tools" => "`tools`; `Toolset::server_tool` is for any tool of Gemini's",
                "toolConfig" => "`tool_choice`, and `toolConfig.…` for each other member",
                "toolConfig.retrievalConfig"
                | "toolConfig.includeServerSideToolInvocations"
                | "toolConfig.streamFunctionCallArguments" => continue,
                other if other.starts_with("toolConfig.") => "`tool_choice`",
                _ => continue,
            };
            return Err(Error::bad_request(
                name.clone(),
                format!("cannot be set as a field; use {instead}"),
            ));
        }
        Ok(())
    }

    fn set(mut self, change: impl FnOnce(&mut canon::Request<'static>)) -> Self {
        change(&mut self.canon);
        self
    }
}

impl<M: Into<Message>> From<M> for Request {
    fn from(message: M) -> Self {
        Self::new(message)
    }
}

impl From<canon::Request<'static>> for Request {
    fn from(canon: canon::Request<'static>) -> Self {
        Self { canon, ..Self::default() }
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("canon", &self.canon)
            .field("tools", &self.tools)
            .field("automatic", &self.automatic)
            .finish_non_exhaustive()
    }
}
