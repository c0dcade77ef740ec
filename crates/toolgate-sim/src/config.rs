//! Settings of a simulator.

use crate::access::ControlKey;
use crate::fault::FaultRule;
use crate::quirk::Quirk;
use crate::replay::Cassette;
use crate::script::Script;

/// Settings of a simulator.
#[derive(Clone, Debug)]
pub struct SimConfig {
    /// Source of the model's turns.
    pub driver: Driver,
    /// Faults, in addition to those of a script.
    pub faults: Vec<FaultRule>,
    /// Accepted API keys.
    pub keys: Keys,
    /// Whether requests are checked as Google does. Replayed recordings are never checked.
    pub strict: bool,
    /// Whether newer models of the Developer API treat a response without its call's id as a
    /// mismatch. Google documents that; its own Python SDK omits the ids.
    pub strict_ids: bool,
    /// Occasional behaviour of Google to imitate.
    pub quirks: Vec<Quirk>,
    /// Seed of ids, signatures and probabilities.
    pub seed: u64,
    /// Approximate length of a signature in characters.
    pub signature_length: usize,
    /// Highest number of requests in the log.
    pub keep_requests: usize,
    /// Highest number of body bytes in the log.
    pub keep_bytes: usize,
    /// Largest request body in bytes.
    pub max_body: usize,
    /// Largest page of the list of models, whatever page size the client requests.
    pub page: usize,
    /// Key for the control endpoints (`/__sim/…`) over HTTP; without one they are off. Methods of
    /// [`Sim`](crate::Sim) need no key.
    pub control_key: Option<ControlKey>,
}

/// Source of the model's turns.
#[derive(Clone, Debug)]
pub enum Driver {
    /// The demo model, which needs no script.
    Demo,
    /// A script.
    Script(Script),
    /// Recorded exchanges.
    Replay(Cassette),
}

/// Accepted API keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keys {
    /// Every key is accepted, and so is none.
    NotNeeded,
    /// A key is required; every key but `invalid` is accepted.
    Any,
    /// One of these keys is required.
    These(Vec<String>),
}

impl Default for SimConfig {
    fn default() -> Self {
        Self {
            driver: Driver::Demo,
            faults: Vec::new(),
            keys: Keys::Any,
            strict: true,
            strict_ids: false,
            quirks: Vec::new(),
            seed: 0,
            signature_length: 320,
            keep_requests: 1000,
            keep_bytes: 64 << 20,
            max_body: 64 << 20,
            page: 1000,
            control_key: None,
        }
    }
}

impl SimConfig {
    /// A simulator that follows a script.
    pub fn scripted(script: Script) -> Self {
        Self { driver: Driver::Script(script), ..Self::default() }
    }

    /// A simulator that repeats recorded exchanges.
    pub fn replaying(cassette: Cassette) -> Self {
        Self { driver: Driver::Replay(cassette), ..Self::default() }
    }
}
