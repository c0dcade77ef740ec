//! Driver of the core's tool loop: sends requests and runs tools until there is an answer.

mod drive;
mod round;

pub(crate) use drive::Run;
pub use round::Preview;
