//! Gemini if the environment configures it, otherwise the simulator with a script.

mod client;

pub(crate) use client::client;
