//! Gemini with tools: typed functions, and a loop that runs them.
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
//! // What the model will say. With a key: `Client::from_env()?`, and no script.
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
//!   Toolset ◄── calls ──────│──┘       the core's ToolLoop decides what is next;
//!      └─────── results ────┘          nothing here decides it a second time
//! ```
//!
//! | I want to | use |
//! |---|---|
//! | make a tool | [`#[tool]`](macro@tool) on a function or method; [`Tool`] for everything else |
//! | run tools | [`Toolset`]: time limits, panics, limits of number, order, results kept |
//! | ask | [`Client::generate`], [`Client::stream`], [`Client::generate_as`] for a Rust value |
//! | talk | [`Chat`] |
//! | steer | [`Automatic`], [`Request::approve`], [`Request::observe`], [`Cancel`] |
//! | run some calls myself | [`Tool::declared`], [`Response::calls`], [`Response::resume`] |
//! | say what only Gemini understands | [`Request::field`], [`Request::generation`], [`Request::canon`] |
//!
//! # What happens to calls
//!
//! All calls of a turn run at the same time, and all results go back in one turn, in the order of
//! the calls, with their ids; signatures stay on their parts. An error, a panic or a time limit is
//! told to the model as an error. So are a tool that there is not and arguments that do not fit, so
//! that the model may try again. A turn that the model spoilt is asked for again. After ten requests
//! the calls come back, or the model must answer: [`Automatic::at_limit`]. A model that is made to
//! call ([`Request::must_call`]) is so in the first round only; it would never end otherwise.
//!
//! Whole and streamed answers take the same way, and behave the same.

mod automatic;
mod call;
mod cancel;
mod chat;
mod client;
mod error;
mod event;
mod message;
mod request;
mod response;
mod run;
mod stream;
mod structured;
mod tool;
mod toolset;
pub mod transport;

pub use automatic::{Automatic, Decision};
pub use call::{Call, CallResult};
pub use cancel::Cancel;
pub use chat::{Chat, ChatStream};
pub use client::{Client, ClientBuilder, Model, Retries, TokenCount, TokenSource};
pub use error::Error;
pub use event::Event;
pub use message::Message;
pub use request::Request;
pub use response::Response;
pub use stream::EventStream;
pub use tool::{
    BadDeclaration, Context, FunctionTool, IntoOutput, Output, Tool, ToolError, ToolProvider,
};
pub use toolgate_core::canon::{self, Effort, FailureKind, FinishReason, ToolChoice, Usage};
pub use toolgate_core::json::{Raw, Text};
pub use toolgate_core::tool_loop::{AtLimit, OnFault, Steps, Unfinished};
/// Makes a tool of a function or a method. It stays what it is, and can still be called.
///
/// The model is told the name, the doc comment, and of each argument the name, the doc comment and
/// a schema made from its type, which derives [`serde::Deserialize`] and
/// [`schemars::JsonSchema`](schemars). An `Option` may be left out; so may an argument with a
/// default.
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
///     /// In which unit; Celsius unless said otherwise.
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
/// `#[schemars(…)]` stand on an argument as they would on a field; `#[tool(default)]` and
/// `#[tool(default = …)]` say what is taken where the model gives nothing. An argument of type
/// [`Context`] or `&Context` is given by the toolset, and the model does not see it.
///
/// # Results
///
/// Anything that is [`serde::Serialize`] (a string is told as words), an [`Output`] for media, or a
/// `Result` with one of them, whose error is told to the model.
///
/// # Options
///
/// | option | meaning |
/// |---|---|
/// | `name = "…"` | what the model calls it |
/// | `description = "…"` | what the model reads, instead of the doc comment |
/// | `timeout = "5s"` | how long it may take (`ms`, `s`, `m`) |
/// | `sequential` | never at the same time as itself or another sequential tool |
/// | `deterministic` | the same arguments give the same result, which may be used again |
/// | `inline` | a function that is not `async` runs in place |
///
/// Without `inline`, a function that is not `async` runs on a thread where it may block, so that it
/// stops nobody else; when its time is up it runs on there, until it looks at its [`Context`].
///
/// # Methods
///
/// A method with `&self` gets a companion, `name_tool`, that makes the tool of an object in an
/// `Arc`. [`#[tools]`](macro@tools) collects them.
pub use toolgate_macros::tool;
/// Makes all methods of this `impl` that are marked [`#[tool]`](macro@tool) available at once.
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
pub use toolset::Toolset;

#[doc(hidden)]
pub mod __private {
    pub use schemars;
    pub use serde;

    pub use crate::tool::{Fallible, Infallible, OfResult, OfValue, blocking, tool};
}
