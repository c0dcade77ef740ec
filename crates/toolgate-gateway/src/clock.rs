//! The time of day, and ids that sort by it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use toolgate_core::canon::IdGen;
use toolgate_core::dialect::Stamp;

/// Time since 1970.
pub(crate) fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Milliseconds since 1970.
pub(crate) fn millis() -> u64 {
    u64::try_from(now().as_millis()).unwrap_or(u64::MAX)
}

/// Seed of the ids of an answer: the same ids, however often they are made. They sort by the time of the
/// request, so that a store that orders entries by id grows at one end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seed {
    drawn: u128,
    millis: u64,
}

impl Seed {
    /// A seed for a request that comes now.
    pub(crate) fn new(drawn: u128) -> Self {
        Self { drawn, millis: millis() }
    }

    /// The ids of the calls of a try.
    pub(crate) fn ids(self, tries: u32) -> IdGen {
        IdGen::new(self.drawn.wrapping_add(u128::from(tries) << 32)).at(self.millis)
    }

    /// Id and time of the answer.
    pub(crate) fn stamp(self) -> Stamp {
        // Not the ids of the calls: the two must not meet.
        let ids = IdGen::new(!self.drawn).at(self.millis);
        Stamp { clock: Some(|| millis() / 1000), ..Stamp::new(ids, self.millis / 1000) }
    }

    /// Number that differs between requests.
    pub(crate) fn spread(self) -> u8 {
        (self.drawn >> 64) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer that is begun in the background is shown and kept under one id, whenever it ends.
    #[test]
    fn a_request_has_one_id_whenever_it_is_asked_for() {
        let seed = Seed::new(7);
        let seed = Seed { millis: 1_900_000_000_000, ..seed };
        let later = Seed { millis: seed.millis + 1000, ..seed };
        assert_eq!(seed.stamp().ids.token(), seed.stamp().ids.token());
        assert!(seed.stamp().ids.token() < later.stamp().ids.token());
        assert_ne!(seed.stamp().ids.token(), seed.ids(0).token());
        assert_ne!(seed.ids(1).token(), seed.ids(0).token());
    }
}
