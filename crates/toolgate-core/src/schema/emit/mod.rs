//! From finished nodes to the two forms that Gemini takes.

mod clean;
mod cycles;
mod graph;
mod limits;
mod lower;
mod verbatim;
mod write;

pub(super) use clean::clean;
pub(super) use lower::lower;
pub(super) use verbatim::is_valid_parameters;
pub(super) use write::{json_schema, parameters};
