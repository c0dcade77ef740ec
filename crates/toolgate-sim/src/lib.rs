//! A strict simulator of the Gemini API: it refuses the requests that Google refuses, with Google's
//! error texts, and streams in Google's chunks.
//!
//! ```text
//!  request ──► route ──► validate ──► driver ──► Turn ──► encode ──► faults ──► Plan ──► bytes
//!                 │   (its own crate) script                by                  │
//!                 │                   demo model        generation              └─ SimBody: the
//!                 └─► models, tokens  recording                                    only clock
//! ```
//!
//! Everything up to the [`Plan`] is pure and deterministic. [`Sim::respond`] answers in-process,
//! [`Sim::connect`] over an in-memory connection, the SDK's client by `.transport(sim)`, [`Sim::start`] on a socket of its own, [`serve`] on a
//! given one.
//!
//! ```
//! use serde_json::json;
//! use toolgate_sim::{Script, Sim, SimConfig};
//!
//! let script = Script::new().call("weather", json!({"city": "Oslo"})).finish().text("Rain.");
//! let sim = Sim::new(SimConfig::scripted(script));
//! assert!(sim.requests().is_empty());
//! ```

mod access;
mod cache;
mod catalogue;
mod chunks;
mod config;
mod demo;
mod encode;
mod errors;
mod fault;
mod frame;
mod keys;
mod partial_args;
mod plan;
mod quirk;
mod replay;
mod request_log;
mod route;
mod script;
mod server;
mod sign;
mod sim;
mod tokens;
mod transport;
mod turn;
mod usage;

pub use access::ControlKey;
pub use config::{Driver, Keys, SimConfig};
pub use fault::{Fault, FaultRule, When};
pub use plan::{Plan, Reset, SimBody, Step};
pub use quirk::Quirk;
pub use replay::{Cassette, Exchange};
pub use request_log::{Counters, RecordedRequest};
pub use script::{Expect, Script, ScriptError, ScriptTurn};
pub use server::{RunningSim, serve};
pub use sign::Signer;
pub use sim::Sim;
pub use turn::{Item, ItemKind, Turn};
