//! Sets of tools, and their execution.

mod cache;
mod run;
mod server;
mod set;

pub(crate) use run::Job;
pub use run::{Executed, Execution};
pub use set::Toolset;
