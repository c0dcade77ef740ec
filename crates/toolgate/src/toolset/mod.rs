//! Tools together: which there are, and how they are run.

mod cache;
mod run;
mod server;
mod set;

pub(crate) use run::{Finished, Invocation};
pub use set::Toolset;
