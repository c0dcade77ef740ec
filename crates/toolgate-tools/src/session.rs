//! Sessions: which tools a session was given, and a handle to list and call them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::gemini::{self, ConvertError, GeminiTools};
use crate::{Call, Catalogue, NameError, Outcome, Owner, Pattern, Registry, Scope};

/// Most patterns that one session holds.
const MAX_PATTERNS: usize = 256;

/// Tools that sessions were given, bounded in number and time.
pub(crate) struct Sessions {
    state: Mutex<HashMap<(Owner, Arc<str>), Given>>,
    limit: usize,
    ttl: Duration,
}

struct Given {
    patterns: Vec<Pattern>,
    used: Instant,
}

impl Sessions {
    pub(crate) fn new(limit: usize, ttl: Duration) -> Self {
        Self { state: Mutex::default(), limit, ttl }
    }

    fn state(&self) -> MutexGuard<'_, HashMap<(Owner, Arc<str>), Given>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Patterns that the session of a scope was given.
    pub(crate) fn given(&self, scope: &Scope) -> Vec<Pattern> {
        let Some(session) = &scope.session else { return Vec::new() };
        let mut state = self.state();
        let now = Instant::now();
        let key = (scope.owner.clone(), Arc::clone(session));
        match state.get_mut(&key) {
            Some(given) if now - given.used < self.ttl => {
                given.used = now;
                given.patterns.clone()
            }
            Some(_) => {
                state.remove(&key);
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    fn give(&self, owner: &Owner, session: &Arc<str>, patterns: &[Pattern]) {
        let mut state = self.state();
        let now = Instant::now();
        let key = (owner.clone(), Arc::clone(session));
        if !state.contains_key(&key) && state.len() >= self.limit {
            state.retain(|_, given| now - given.used < self.ttl);
            if state.len() >= self.limit {
                let oldest = state.iter().min_by_key(|(_, it)| it.used).map(|(key, _)| key.clone());
                if let Some(oldest) = oldest {
                    state.remove(&oldest);
                }
            }
        }
        let given = state.entry(key).or_insert(Given { patterns: Vec::new(), used: now });
        given.used = now;
        for pattern in patterns {
            if !given.patterns.contains(pattern) && given.patterns.len() < MAX_PATTERNS {
                given.patterns.push(pattern.clone());
            }
        }
    }

    fn end(&self, owner: &Owner, session: &Arc<str>) {
        self.state().remove(&(owner.clone(), Arc::clone(session)));
    }
}

/// Tools of one session: listed, converted and called by name.
#[derive(Clone, Debug)]
pub struct Session {
    registry: Registry,
    owner: Owner,
    id: Arc<str>,
}

impl Registry {
    /// Returns a handle to the tools of a session of a client.
    pub fn session(&self, owner: Owner, id: &str) -> Session {
        Session { registry: self.clone(), owner, id: id.into() }
    }
}

impl Session {
    /// Scope of the session.
    pub fn scope(&self) -> Scope {
        let asked = match self.owner {
            Owner::Operator => vec![Pattern::new("*")],
            Owner::Client(_) => Vec::new(),
        };
        Scope { owner: self.owner.clone(), session: Some(Arc::clone(&self.id)), asked }
    }

    /// Gives tools to the session: they are listed as long as the session is used. Grants still
    /// decide whether its client may use them.
    pub fn give(&self, patterns: &[Pattern]) {
        self.registry.sessions().give(&self.owner, &self.id, patterns);
    }

    /// Forgets which tools the session was given.
    pub fn end(&self) {
        self.registry.sessions().end(&self.owner, &self.id);
    }

    /// Returns the tools of the session.
    pub async fn list(&self) -> Catalogue {
        self.registry.list(&self.scope()).await
    }

    /// Returns all tools of the session in Gemini's form.
    ///
    /// # Errors
    /// Fails if a source cannot be listed or a tool has no valid schema.
    pub async fn gemini_tools(&self) -> Result<GeminiTools, ConvertError> {
        gemini::convert(&self.list().await)
    }

    /// Runs a tool by its name, `namespace.name`.
    ///
    /// # Errors
    /// Fails if the name is not valid. Everything else that goes wrong is in the outcome.
    pub async fn call(&self, name: &str, arguments: Box<RawValue>) -> Result<Outcome, NameError> {
        Ok(self.registry.call(Call::new(self.scope(), name.parse()?, arguments)).await)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn r078_sessions_are_bounded_and_expire() {
        let sessions = Sessions::new(2, Duration::from_secs(60));
        let owner = Owner::client("alice");
        let scope = |id: &str| Scope::client("alice").in_session(id);
        for id in ["a", "b", "c"] {
            sessions.give(&owner, &Arc::from(id), &[Pattern::new("x.*")]);
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert!(sessions.given(&scope("a")).is_empty(), "the oldest is forgotten");
        assert_eq!(sessions.given(&scope("b")).len(), 1);
        assert!(sessions.given(&Scope::client("bob").in_session("b")).is_empty());
        tokio::time::advance(Duration::from_secs(60)).await;
        assert!(sessions.given(&scope("b")).is_empty(), "expired");
    }
}
