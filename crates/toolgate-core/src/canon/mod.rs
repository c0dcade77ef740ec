//! The canonical conversation, independent of any dialect.
//!
//! Decoders of requests make a [`Request`]; Gemini's decoder makes [`Event`]s; encoders read them.
//! Nothing in here belongs to one vendor. Text, arguments and results are slices of the body they
//! came in ([`Text`](crate::json::Text), [`Raw`](crate::json::Raw)).

mod activity;
mod answer;
mod bounds;
mod envelope;
mod event;
mod failure;
mod grammar;
mod grounding;
mod id;
mod loss;
mod media;
mod read;
mod request;
mod settings;
mod target;
mod text_signature;
mod tool;

pub use activity::{CodeOutcome, ServerAction, ServerActivity};
pub use answer::{Answer, Assembler, CallLog, Item};
pub use bounds::{BYTES_PER_PART, MAX_NAME_BYTES, MAX_PARTS, MAX_TOOLS};
pub(crate) use bounds::{check_name, max_parts, too_many_parts, too_many_tools};
pub use envelope::{Envelope, Sealed};
pub use event::{Encoder, Event, Finish, FinishReason, Sink, Start, Usage};
pub use failure::{BadRequest, Failure, FailureKind, brief};
pub use grammar::{Grammar, Ungrammatical};
pub use grounding::{Citation, Grounding, Source, SourceKind, Support, citations};
pub(crate) use id::LONG_TOKEN;
pub use id::{IdGen, call_token, upstream_id};
pub use loss::{Loss, LossCode, Losses, MAX_LOSS_TEXT, MAX_LOSSES};
pub(crate) use media::data_url;
pub use media::percent_decoded;
pub use request::{Media, MediaSource, Part, Request, Role, Turn};
pub use settings::{Effort, OutputFormat, Settings, Thinking, ThinkingMode};
pub use target::{Backend, Issuer, Target};
pub use text_signature::{LastText, TextSignature, text_key};
pub(crate) use tool::ToolMark;
pub use tool::{
    Call, CallInput, Function, ResultPart, SchemaForm, ServerTool, Signature, Tool, ToolChoice,
    ToolName, ToolResult,
};
