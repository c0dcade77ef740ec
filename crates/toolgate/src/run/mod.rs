//! Driving the core's loop: asking the model, running tools, until there is an answer.

mod ask;
mod drive;

pub(crate) use drive::Run;
