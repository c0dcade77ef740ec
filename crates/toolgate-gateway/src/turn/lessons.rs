//! What Gemini has refused lately, by model and back end.
//!
//! Rules come with the model and change monthly. Where Gemini answers 400 for one tool or one field,
//! the request is sent once more without it, and for a while nobody else has to learn the same.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use toolgate_core::canon::{Failure, FailureKind};
use toolgate_core::gemini::upstream::Learned;
use toolgate_core::gemini::{Exchange, Target};

/// All lessons.
#[derive(Debug, Default)]
pub struct Lessons(Mutex<BTreeMap<Target, (Learned, Instant)>>);

/// How long a lesson is remembered.
const MEMORY: Duration = Duration::from_secs(600);

impl Lessons {
    /// What this target has refused lately.
    pub(crate) fn of(&self, target: &Target, now: Instant) -> Learned {
        let lessons = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match lessons.get(target) {
            Some((learned, until)) if *until > now => learned.clone(),
            _ => Learned::default(),
        }
    }

    /// Learns from a refusal. `false`: it teaches nothing that is not known.
    pub(crate) fn learn(
        &self,
        target: &Target,
        exchange: &Exchange,
        failure: &Failure,
        now: Instant,
    ) -> bool {
        if failure.kind != FailureKind::InvalidRequest || failure.upstream_status != Some(400) {
            return false;
        }
        let mut learned = self.of(target, now);
        if !learned.learn(&failure.message, exchange) {
            return false;
        }
        let mut lessons = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lessons.retain(|_, (_, until)| *until > now);
        lessons.insert(target.clone(), (learned, now + MEMORY));
        true
    }
}

#[cfg(test)]
mod tests {
    use toolgate_core::gemini::Backend;

    use super::*;

    #[test]
    fn a_lesson_is_learned_once_and_forgotten_in_time() {
        let lessons = Lessons::default();
        let target = Target { model: "gemini-3.6-flash".into(), backend: Backend::Developer };
        let exchange = Exchange {
            target: target.clone(),
            tools: Vec::new(),
            one_call: false,
            answer_function: None,
        };
        let message = "Tool use with function calling is unsupported";
        let mut failure = Failure::new(FailureKind::InvalidRequest, message);
        failure.upstream_status = Some(400);
        let now = Instant::now();
        let learn = |now| lessons.learn(&target, &exchange, &failure, now);
        assert!(learn(now));
        assert!(!learn(now), "it is known");
        assert!(lessons.of(&target, now).no_mixed_tools);
        let later = now + MEMORY * 2;
        assert!(!lessons.of(&target, later).no_mixed_tools);
        assert!(learn(later));
    }
}
