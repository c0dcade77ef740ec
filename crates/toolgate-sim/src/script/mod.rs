//! Scripts: the model's turns, with the requests that they expect.
//!
//! A script is built in Rust, or read from TOML or JSON:
//!
//! ```toml
//! then = "demo"                      # after the last turn: "error" (default) or "demo"
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
mod turns;

pub use file::ScriptError;
pub use turns::{Expect, Script, ScriptTurn};

pub(crate) use turns::ScriptInput;
