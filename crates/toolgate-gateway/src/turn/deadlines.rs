//! Deadlines of a streamed turn.
//!
//! The client's silence and the upstream's are different things: comments, empty chunks, hidden thoughts,
//! pieces of arguments, retries and correction rounds all reach the gateway and not the client. Signs of
//! life are timed by the bytes that the client gets, the idle limit by those that the upstream sends.

use std::time::{Duration, Instant};

/// Deadlines of one turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadlines {
    /// Silence after which the client gets a sign of life.
    ping: Duration,
    /// Longest silence of the upstream.
    idle: Duration,
    /// Longest duration of the turn.
    total: Duration,
    began: Instant,
    /// When the upstream last sent something, or was last asked.
    heard: Instant,
    /// When the client last got something.
    shown: Instant,
}

/// The next deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Nothing, for this long.
    Nothing(Duration),
    /// A sign of life.
    Ping,
    /// The upstream has been silent for too long.
    Idle,
    /// The turn has taken too long.
    Over,
}

impl Deadlines {
    pub(crate) fn new(ping: Duration, idle: Duration, total: Duration, now: Instant) -> Self {
        Self { ping, idle, total, began: now, heard: now, shown: now }
    }

    /// The upstream has sent something, or it is asked now.
    pub(crate) fn heard(&mut self, now: Instant) {
        self.heard = now;
    }

    /// The client gets something now.
    pub(crate) fn shown(&mut self, now: Instant) {
        self.shown = now;
    }

    /// Returns for how long the upstream may still be silent.
    pub(crate) fn left(&self, now: Instant) -> Duration {
        let (silent, lasted) = (now - self.heard, now - self.began);
        self.idle.saturating_sub(silent).min(self.total.saturating_sub(lasted))
    }

    /// Returns the deadline that has passed. `awaits_upstream`: whether the upstream is to send the next thing.
    pub(crate) fn due(&self, now: Instant, awaits_upstream: bool) -> Due {
        let left = |since: Instant, limit: Duration| limit.checked_sub(now - since);
        let is_left = |left: Option<Duration>| left.filter(|left| !left.is_zero());
        let Some(total) = is_left(left(self.began, self.total)) else { return Due::Over };
        let idle = if awaits_upstream { left(self.heard, self.idle) } else { Some(self.idle) };
        let Some(idle) = is_left(idle) else { return Due::Idle };
        let Some(ping) = is_left(left(self.shown, self.ping)) else { return Due::Ping };
        // Timers have a resolution of a millisecond.
        Due::Nothing(ping.min(idle).min(total).max(Duration::from_millis(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn deadlines() -> (Instant, Deadlines) {
        let now = Instant::now();
        (now, Deadlines::new(10 * SECOND, 30 * SECOND, 100 * SECOND, now))
    }

    #[test]
    fn the_client_is_pinged_however_busy_the_upstream_is() {
        let (began, mut deadlines) = deadlines();
        for second in 1..=60 {
            let now = began + second * SECOND;
            deadlines.heard(now);
            let due = deadlines.due(now, true);
            assert_eq!(due == Due::Ping, second % 10 == 0, "after {second} s: {due:?}");
            if due == Due::Ping {
                deadlines.shown(now);
            }
        }
    }

    #[test]
    fn what_the_client_gets_is_a_sign_of_life() {
        let (began, mut deadlines) = deadlines();
        for number in 1..20 {
            let now = began + number * 4 * SECOND;
            deadlines.heard(now);
            deadlines.shown(now);
            assert_eq!(deadlines.due(now, true), Due::Nothing(10 * SECOND));
        }
    }

    #[test]
    fn signs_of_life_do_not_hide_a_silent_upstream() {
        let (began, mut deadlines) = deadlines();
        for second in 1..30 {
            let now = began + second * SECOND;
            deadlines.shown(now);
            assert!(matches!(deadlines.due(now, true), Due::Nothing(_)), "after {second} s");
        }
        let now = began + 30 * SECOND;
        assert_eq!(deadlines.due(now, true), Due::Idle);
        assert_ne!(
            deadlines.due(now, false),
            Due::Idle,
            "a wait before a retry is the gateway's own"
        );
    }

    #[test]
    fn a_turn_ends_however_busy_it_is() {
        let (began, mut deadlines) = deadlines();
        for second in 1..=100 {
            deadlines.heard(began + second * SECOND);
            deadlines.shown(began + second * SECOND);
        }
        assert_eq!(deadlines.due(began + 100 * SECOND, true), Due::Over);
    }
}
