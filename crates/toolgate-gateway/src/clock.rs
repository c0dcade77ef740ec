//! The time of day, and ids that sort by it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use toolgate_core::canon::IdGen;

/// How long it is since 1970.
pub(crate) fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Milliseconds since 1970.
pub(crate) fn millis() -> u64 {
    u64::try_from(now().as_millis()).unwrap_or(u64::MAX)
}

/// Ids from a seed. A store that keeps what they name in their order adds it at one end.
pub(crate) fn ids(seed: u128) -> IdGen {
    IdGen::new(seed).at(millis())
}
