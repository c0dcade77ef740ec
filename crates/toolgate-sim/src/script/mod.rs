//! Scripts: what the model says to which request.
//!
//! From Rust as a builder, from a file as TOML or JSON:
//!
//! ```toml
//! then = "demo"                      # what comes after the last turn: "error" (default) or "demo"
//!
//! [[turn]]
//! expect = { contains = "weather", tool = "get_weather" }
//! say = [
//!   { thought = "The user wants the weather." },
//!   { call = "get_weather", args = { city = "Paris" } },
//!   { call = "get_weather", args = { city = "Rome" } },
//! ]
//!
//! [[turn]]
//! expect = { response = "get_weather" }
//! text = "Sunny in both."
//! fault = { kind = "trickle", ms = 20 }
//!
//! [[faults]]
//! fault = { kind = "status", code = 503 }
//! when = { requests = [2] }
//! ```

mod file;
mod play;

pub use file::ScriptError;
pub use play::{Expect, Script, ScriptTurn};

pub(crate) use play::Asked;
