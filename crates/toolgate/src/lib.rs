//! Gemini with tools.

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
pub use toolgate_core::tool_loop::{AtLimit, OnFault, Steps, Unfinished};
pub use toolgate_macros::{tool, tools};
pub use toolset::Toolset;

#[doc(hidden)]
pub mod __private {
    pub use schemars;
    pub use serde;

    pub use crate::tool::{Fallible, Infallible, OfResult, OfValue, blocking, tool};
}
