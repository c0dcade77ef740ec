//! From the client's text to finished nodes: every draft, every generator's habits.

mod constraint;
mod describe;
mod finish;
mod logic;
mod merge;
mod reader;
mod repair;
mod root;
mod values;

pub(super) use reader::Reader;
