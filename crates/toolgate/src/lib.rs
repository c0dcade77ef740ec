//! SDK for Gemini with tools: typed functions, and automatic function calling.
//!
//! This runs without a key, on the simulator:
//!
//! ```
//! use serde_json::json;
//! use toolgate::{Client, Request, Toolset, tool};
//! use toolgate_sim::{Script, Sim, SimConfig};
//!
//! /// The weather in a city, now.
//! #[tool]
//! async fn weather(
//!     /// The city's name.
//!     city: String,
//! ) -> Result<String, String> {
//!     Ok(format!("4 °C in {city}"))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The simulated model's turns. With a key: `Client::from_env()?`, and no script.
//! let script = Script::new().call("weather", json!({"city": "Oslo"})).finish().text("Cold.");
//! let sim = Sim::start(SimConfig::scripted(script)).await?;
//! let client = Client::builder().api_key("any").base_url(sim.url()).build()?;
//!
//! let tools = Toolset::new().with::<weather>();
//! let answer = client.generate(Request::new("How is the weather in Oslo?").tools(tools)).await?;
//! assert_eq!(answer.text(), "Cold.");
//! assert_eq!(answer.requests(), 2);
//! # Ok(())
//! # }
//! ```
//!
//! # How it works
//!
//! ```text
//!   Request ──► Client ──► Gemini ──► Event, Event, … ──► Response
//!      │                    ▲  │
//!   Toolset ◄── calls ──────│──┘       the core's ToolLoop decides the next step;
//!      └─────── results ────┘          this crate only performs it
//! ```
//!
//! | task | use |
//! |---|---|
//! | define a tool | [`#[tool]`](macro@tool) on a function or method; [`Tool`] for everything else |
//! | run tools | [`Toolset`]: timeouts, panics, concurrency, order, cached results |
//! | send a request | [`Client::generate`], [`Client::stream`], [`Client::generate_as`] for a Rust value |
//! | hold a conversation | [`Chat`]; [`Chat::save`] and [`Client::resume_chat`] for another process |
//! | control the loop | [`Automatic`], [`Request::approve`], [`Request::observe`], [`Cancel`] |
//! | run some calls yourself | [`Tool::declared`], [`Response::calls`], [`Response::resume`], [`Toolset::execute_all`] |
//! | wait for a person | [`Request::approve`]; or [`Response::save`] and [`Client::resume_run`], tomorrow |
//! | decode an answer that came another way | [`EventStream::from_response`], [`EventStream::from_bytes`] |
//! | see what is sent | [`Tool::declaration`], [`Client::preview`] |
//! | set fields that only Gemini has | [`Request::field`], [`Request::generation`], [`Request::canon`] |
//!
//! # Automatic function calling
//!
//! All calls of a turn run concurrently. Their results go back in one turn, in the order of the calls,
//! with their ids; signatures stay on their parts. Errors, panics and timeouts of a tool are sent to
//! the model as error results. So are unknown tools and arguments that do not fit the schema, so that
//! the model can correct the call. Malformed and empty turns are retried. After ten requests the calls
//! are returned to the caller, or the model must answer: [`Automatic::at_limit`]. A forced call
//! ([`Request::must_call`]) applies to the first round only; otherwise the loop would never end.
//!
//! Streamed and unary requests share one implementation.

mod automatic;
mod call;
mod cancel;
mod chat;
mod client;
mod decode;
mod error;
mod event;
mod media;
mod message;
mod request;
mod response;
mod run;
mod saved;
mod stream;
mod structured;
mod tool;
mod toolset;

pub use automatic::{Automatic, Decision};
pub use call::{Call, CallResult};
pub use cancel::Cancel;
pub use chat::{Chat, ChatStream};
pub use client::{Client, ClientBuilder, Model, Retries, TokenCount, TokenSource};
pub use error::Error;
pub use event::Event;
pub use media::Media;
pub use message::Message;
pub use request::Request;
pub use response::Response;
pub use run::Preview;
pub use saved::{SavedChat, SavedRun, SavedTurns};
pub use schemars;
pub use stream::EventStream;
pub use structured::Typed;
pub use tool::{
    Abort, BadDeclaration, Context, FunctionTool, IntoOutput, Output, Tool, ToolArgument,
    ToolError, ToolProvider,
};
pub use toolgate_core::canon::{self, Effort, FailureKind, FinishReason, ToolChoice, Usage};
pub use toolgate_core::json::{Raw, Text};
pub use toolgate_core::tool_loop::{AtLimit, OnFault, Steps, Unfinished};
/// Makes a tool from a function or a method, which remains callable.
///
/// The declaration has the name and the doc comment of the function, and for each argument its name,
/// its doc comment and the schema of its type, which derives [`serde::Deserialize`] and
/// [`schemars::JsonSchema`](schemars). An `Option` is optional, and so is an argument with a default.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
/// use toolgate::{Context, Toolset, tool};
///
/// #[derive(Deserialize, JsonSchema)]
/// #[serde(rename_all = "lowercase")]
/// enum Unit {
///     Celsius,
///     Fahrenheit,
/// }
///
/// #[derive(Serialize)]
/// struct Weather {
///     degrees: f64,
/// }
///
/// /// The weather in a city.
/// #[tool(timeout = "5s")]
/// async fn weather(
///     /// The city's name.
///     city: String,
///     /// The unit; Celsius by default.
///     #[tool(default = Unit::Celsius)]
///     unit: Unit,
///     context: &Context,
/// ) -> Result<Weather, String> {
///     let degrees = if city == "Oslo" { 4.0 } else { return Err("no such city".into()) };
///     let _ = context.call_id();
///     Ok(match unit {
///         Unit::Celsius => Weather { degrees },
///         Unit::Fahrenheit => Weather { degrees: degrees * 1.8 + 32.0 },
///     })
/// }
///
/// let tools = Toolset::new().with::<weather>();
/// assert_eq!(tools.get("weather").unwrap().description(), "The weather in a city.");
/// ```
///
/// # Arguments
///
/// Any type that derives both traits, also borrowed: `&str`, `&[T]`, `&T`. `#[serde(…)]` and
/// `#[schemars(…)]` work on an argument as on a field. `#[tool(default)]` and `#[tool(default = …)]`
/// set the value of an omitted argument. An argument of type [`Context`] or `&Context` is supplied by
/// the toolset and is not part of the schema.
///
/// # Results
///
/// Any [`serde::Serialize`] type (a string is sent as text), an [`Output`] for media, or a `Result`
/// with one of them, whose error is sent to the model.
///
/// # Options
///
/// | option | meaning |
/// |---|---|
/// | `name = "…"` | name of the tool, instead of the function's |
/// | `description = "…"` | description of the tool, instead of the doc comment |
/// | `timeout = "5s"` | timeout of a call (`ms`, `s`, `m`) |
/// | `sequential` | never concurrent with itself or another sequential tool |
/// | `deterministic` | the same arguments give the same result, which may be cached |
/// | `inline` | a function that is not `async` runs on the async thread |
///
/// Without `inline`, a function that is not `async` runs on a blocking thread. After a timeout it
/// keeps running there until it checks its [`Context`].
///
/// # Methods
///
/// A method with `&self` gets a companion method `name_tool`, which returns the tool of an object in
/// an `Arc`. [`#[tools]`](macro@tools) collects them.
pub use toolgate_macros::tool;
/// Collects all methods of an `impl` block that are marked [`#[tool]`](macro@tool).
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use toolgate::{Toolset, tool, tools};
///
/// #[derive(Default)]
/// struct Notes(Mutex<Vec<String>>);
///
/// #[tools]
/// impl Notes {
///     /// Writes a note down.
///     #[tool]
///     fn write(&self, text: String) -> usize {
///         let mut notes = self.0.lock().unwrap();
///         notes.push(text);
///         notes.len()
///     }
/// }
///
/// let notes = Arc::new(Notes::default());
/// let tools = Toolset::new().provider(&notes);
/// assert!(tools.contains("write"));
/// assert_eq!(notes.write("still a method".into()), 1);
/// ```
pub use toolgate_macros::tools;
pub use toolgate_transport as transport;
pub use toolset::{Executed, Execution, Toolset};

#[doc(hidden)]
pub mod __private {
    pub use serde;

    pub use crate::tool::{
        Fallible, Infallible, OfResult, OfToolResult, OfValue, Returned, blocking, tool,
    };
}
