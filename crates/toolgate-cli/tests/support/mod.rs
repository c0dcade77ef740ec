//! The binary under test, as a process.

pub(crate) mod command;
pub(crate) mod process;
