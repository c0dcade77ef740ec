//! Sets of tools, and their execution.

mod cache;
mod run;
mod server;
mod set;

pub(crate) use run::{Finished, Invocation};
pub use set::Toolset;
