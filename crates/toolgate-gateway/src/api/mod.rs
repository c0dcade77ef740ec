//! Endpoints: what clients can call, by dialect.

mod answer;
mod chat;
mod context;
mod gemini;
mod loss_report;
mod messages;
mod models;
pub(crate) mod ops;
pub(crate) mod reply;
mod responses;
mod source;

pub(crate) use chat::completions;
pub(crate) use context::RequestContext;
pub(crate) use gemini::{generate, methods as gemini_methods, native};
pub(crate) use messages::{count_tokens, messages};
pub(crate) use models::models;
pub(crate) use responses::{Endpoint as ResponsesEndpoint, responses};
