//! Tools that toolgate runs itself: MCP servers, worker processes, HTTP endpoints, Rust code.
//!
//! ```text
//!   gateway, SDK ──► Registry ──► list(scope) ──► Catalogue: tools that a client may use
//!                       │
//!                       └───────► call(call) ───► Outcome: exactly one for each call
//!                                    │
//!      grants · pins · approval · arguments · cache · permits · timeouts · bounds
//!                                    │
//!            McpServer · WorkerPool · HttpTools · any Source    (on the registry's own thread)
//! ```
//!
//! A [`Registry`] is a cheap handle that works on every runtime. Its sources run on a thread of their
//! own: no tool server holds up a thread of the caller. The crate knows neither dialects nor HTTP
//! servers.
//!
//! # Names
//!
//! Every tool is called `namespace.name`. A namespace belongs to one source, so that tools of two
//! sources never have the same name, and no tool can take the name of a client's own.
//!
//! # Calls
//!
//! * **Exactly one outcome.** A result of the tool, successful or not, or a typed [`Failure`].
//! * **Exact payloads.** Arguments, schemas and structured results are JSON text that nothing rewrites.
//! * **Never twice.** A call is repeated only if the server did not get it, or refused it before it ran
//!   (a lost session, headers that do not fit, a credential that has been renewed).
//! * **Bounded.** [`Limits`] bound time, size and concurrency of each tool. Progress extends the time up
//!   to a hard limit. A call that is cancelled or takes too long is cancelled at its server.
//! * **Denied by default.** A client has the tools of its [`Grants`] only. [`PinMode::Enforce`] offers
//!   reviewed definitions only, and a call can name the digest of the definition that was offered.
//!
//! # Processes
//!
//! Children get a cleared environment and a process group. The group is killed with its connection, and
//! a [`ProcessGuard`] kills the groups that are left when this process is killed.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//! use futures_util::future::BoxFuture;
//! use serde_json::value::RawValue;
//! use toolgate_tools::{
//!     Content, Control, Definition, Failure, Listed, Output, Owner, Parameter, Registry, Request,
//!     Settings, Source, SourceOptions, object_schema,
//! };
//!
//! struct Weather;
//!
//! impl Source for Weather {
//!     fn list(self: Arc<Self>) -> BoxFuture<'static, Result<Vec<Listed>, Failure>> {
//!         Box::pin(async {
//!             let schema = object_schema(&[Parameter::new("location", "str")])
//!                 .map_err(|error| Failure::Arguments(error.to_string()))?;
//!             let definition = Definition::new("Gets the current weather.", schema);
//!             Ok(vec![Listed::new("get_current_weather", definition)])
//!         })
//!     }
//!
//!     fn call(self: Arc<Self>, request: Request, _: Control) -> BoxFuture<'static, Result<Output, Failure>> {
//!         Box::pin(async move { Ok(Output::text(format!("sunny: {}", request.arguments))) })
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let registry = Registry::start(Settings::default())?;
//! registry.add("weather", Arc::new(Weather), SourceOptions::default())?;
//!
//! let session = registry.session(Owner::Operator, "session-1");
//! let tools = session.gemini_tools().await?;
//! assert!(tools.json.get().contains(r#""name":"weather__get_current_weather""#));
//!
//! let arguments = RawValue::from_string(r#"{"location":"Zürich"}"#.to_owned())?;
//! let outcome = session.call("weather.get_current_weather", arguments).await?;
//! let Ok(output) = outcome.result else { return Err("the call failed".into()) };
//! assert!(matches!(&output.content[..], [Content::Text(text)] if text.starts_with("sunny")));
//! # Ok(())
//! # }
//! ```

mod breaker;
mod cache;
mod canonical;
pub mod config;
mod entry;
pub mod gemini;
mod grant;
mod guard;
mod http;
mod limit;
mod mcp;
mod net;
mod outcome;
mod parameters;
mod process;
mod registry;
mod run;
mod runtime;
mod secret;
mod session;
mod source;
mod tool;
mod worker;

pub use self::http::{
    Body, HttpTemplate, HttpTool, HttpTools, OpenApi, OpenApiError, TemplateError,
};
pub use entry::{Offer, SourceOptions};
pub use grant::{Grants, Owner, Pattern};
pub use guard::ProcessGuard;
pub use mcp::{Credentials, Era, McpServer};
pub use net::Addresses;
pub use outcome::{Content, Denial, Failure, Outcome, Output};
pub use parameters::{Parameter, object_schema};
pub use process::ChildCommand;
pub use registry::{AddError, Call, Catalogue, PinMode, Registry, Scope, Settings};
pub use secret::{Secret, SecretError};
pub use session::Session;
pub use source::{Control, Listed, Progress, Request, Source};
pub use tokio_util::sync::CancellationToken;
pub use tool::{Definition, Digest, DigestError, Flags, Limits, NameError, Tool, ToolName};
pub use worker::{Affinity, WorkerOptions, WorkerPool};
