//! How a simulator shall behave.

use crate::fault::FaultRule;
use crate::quirk::Quirk;
use crate::replay::Cassette;
use crate::script::Script;

/// How a simulator shall behave.
#[derive(Clone, Debug)]
pub struct SimConfig {
    /// Who says what.
    pub driver: Driver,
    /// What goes wrong, beside what a script says.
    pub faults: Vec<FaultRule>,
    /// Which keys are good.
    pub keys: Keys,
    /// Whether requests are checked as Google does it. Recordings are not, whatever this says.
    pub strict: bool,
    /// Whether a response without its call's id is a mismatch on newer models of the Developer API
    /// too. Google's documents say so; its own Python SDK leaves the ids out.
    pub strict_ids: bool,
    /// What Google has done at times, and does not do always.
    pub quirks: Vec<Quirk>,
    /// Where ids, signatures and chances come from.
    pub seed: u64,
    /// About how many characters a signature has.
    pub signature_length: usize,
    /// How many requests are kept for those who ask what came in.
    pub keep_requests: usize,
    /// How many bytes of requests are kept, at the most.
    pub keep_bytes: usize,
    /// The largest body that is taken.
    pub max_body: usize,
    /// The most models on one page of the list, whatever the client asks for.
    pub page: usize,
}

/// Who says what.
#[derive(Clone, Debug)]
pub enum Driver {
    /// The demo model, which needs no script.
    Demo,
    /// A script.
    Script(Script),
    /// Recorded exchanges.
    Replay(Cassette),
}

/// Which keys are good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keys {
    /// All, and none at all.
    NotNeeded,
    /// All but the key `invalid`; one is needed.
    Any,
    /// These.
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
