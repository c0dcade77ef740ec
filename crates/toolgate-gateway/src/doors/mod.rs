//! The front doors: one file for each way in.

mod elements;
pub(crate) mod encoding;
mod forwarding;
mod gemini;
mod models;
pub(crate) mod ops;
mod passing;
mod report;
mod responses;
pub(crate) mod turns;
mod visit;

pub(crate) use gemini::{gemini, methods as gemini_methods, native};
pub(crate) use models::models;
pub(crate) use responses::{
    LiveAnswers, is_unfinished, methods as responses_methods, progress, responses,
};
pub(crate) use turns::{count_tokens, turn};
pub(crate) use visit::{Visit, late};
