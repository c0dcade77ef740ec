//! What Gemini has refused lately, by model and back end.
//!
//! Rules come with the model and change monthly. Where Gemini answers 400 for one tool or one field,
//! the request is sent once more without it, and for a while nobody else has to learn the same.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ring::digest::{SHA256, digest};
use serde::Deserialize;
use serde_json::value::RawValue;
use toolgate_core::canon::{Failure, FailureKind};
use toolgate_core::gemini::upstream::Learned;
use toolgate_core::gemini::{Exchange, Target};

/// All lessons.
#[derive(Debug, Default)]
pub struct Lessons {
    learned: Mutex<BTreeMap<Target, (Learned, Instant)>>,
    /// Tools of Gemini's own clients that were refused as they are, and until when that is known.
    refused: Mutex<BTreeMap<Tools, Instant>>,
}

/// A target, and the hash of what a request says under `tools`.
type Tools = (Target, Vec<u8>);

/// How long a lesson is remembered.
const MEMORY: Duration = Duration::from_secs(600);
/// How many sets of tools are remembered.
const SETS: usize = 256;

impl Lessons {
    /// What this target has refused lately.
    pub(crate) fn of(&self, target: &Target, now: Instant) -> Learned {
        let lessons = locked(&self.learned);
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
        let mut lessons = locked(&self.learned);
        lessons.retain(|_, (_, until)| *until > now);
        lessons.insert(target.clone(), (learned, now + MEMORY));
        true
    }

    /// Whether the target has lately refused the tools of this request of a Gemini client.
    pub(crate) fn has_refused(&self, target: &Target, body: &[u8], now: Instant) -> bool {
        // Almost always there is nothing to look for, and the body need not be read.
        if locked(&self.refused).is_empty() {
            return false;
        }
        let Some(tools) = tools(target, body) else { return false };
        locked(&self.refused).get(&tools).is_some_and(|until| *until > now)
    }

    /// Remembers that the target refuses the tools of this request.
    pub(crate) fn refuse(&self, target: &Target, body: &[u8], now: Instant) {
        let Some(tools) = tools(target, body) else { return };
        let mut refused = locked(&self.refused);
        refused.retain(|_, until| *until > now);
        if refused.len() < SETS {
            refused.insert(tools, now + MEMORY);
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn tools(target: &Target, body: &[u8]) -> Option<Tools> {
    #[derive(Deserialize)]
    struct Body<'a> {
        #[serde(borrow)]
        tools: Option<&'a RawValue>,
    }
    let tools = serde_json::from_slice::<Body<'_>>(body).ok()?.tools?;
    Some((target.clone(), digest(&SHA256, tools.get().as_bytes()).as_ref().to_vec()))
}

#[cfg(test)]
mod tests {
    use toolgate_core::gemini::Backend;

    use super::*;

    #[test]
    fn r137_a_lesson_is_learned_once_and_forgotten_in_time() {
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

    #[test]
    fn tools_are_refused_once_and_forgotten_in_time() {
        let lessons = Lessons::default();
        let target = Target { model: "gemini-3.6-flash".into(), backend: Backend::Developer };
        let now = Instant::now();
        let (first, again) =
            (br#"{"contents":[],"tools":[1]}"#, br#"{"tools":[1],"contents":[2]}"#);
        assert!(!lessons.has_refused(&target, first, now));
        lessons.refuse(&target, first, now);
        assert!(lessons.has_refused(&target, again, now));
        assert!(!lessons.has_refused(&target, br#"{"tools":[2]}"#, now));
        assert!(
            !lessons.has_refused(&target, b"{}", now) && !lessons.has_refused(&target, b"", now)
        );
        assert!(!lessons.has_refused(&target, again, now + MEMORY));
    }
}
