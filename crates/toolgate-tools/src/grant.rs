//! Grants: which client may use which tools.

use std::collections::HashMap;
use std::sync::Arc;

use crate::ToolName;

/// Pattern of tool names: `*` stands for any characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(Arc<str>);

impl Pattern {
    /// A pattern: `github.search_*`, `files.read`, `*`.
    pub fn new(pattern: &str) -> Self {
        Self(pattern.into())
    }

    /// Whether a text matches.
    pub fn matches(&self, text: &str) -> bool {
        let (pattern, text) = (self.0.as_bytes(), text.as_bytes());
        let (mut p, mut t) = (0, 0);
        // Place of the last `*`, and how much of the text it stands for.
        let mut star: Option<(usize, usize)> = None;
        while t < text.len() {
            if pattern.get(p) == Some(&b'*') {
                star = Some((p, t));
                p += 1;
            } else if pattern.get(p) == text.get(t) {
                p += 1;
                t += 1;
            } else if let Some((at, from)) = star {
                p = at + 1;
                t = from + 1;
                star = Some((at, t));
            } else {
                return false;
            }
        }
        pattern.get(p..).is_none_or(|rest| rest.iter().all(|byte| *byte == b'*'))
    }

    /// Whether a text that begins with `prefix` can match.
    pub(crate) fn may_match(&self, prefix: &str) -> bool {
        let fixed = self.0.split('*').next().unwrap_or_default();
        if self.0.contains('*') {
            fixed.starts_with(prefix) || prefix.starts_with(fixed)
        } else {
            fixed.starts_with(prefix)
        }
    }

    /// Whether a tool's full name matches.
    pub fn matches_tool(&self, name: &ToolName) -> bool {
        self.matches(&name.to_string())
    }
}

/// Whether one of the patterns matches.
pub(crate) fn any(patterns: &[Pattern], text: &str) -> bool {
    patterns.iter().any(|it| it.matches(text))
}

/// Client on whose behalf tools are listed and called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Owner {
    /// The program itself. It needs no grant.
    #[default]
    Operator,
    /// A client key, by its name.
    Client(Arc<str>),
}

impl Owner {
    /// A client key, by its name.
    pub fn client(name: &str) -> Self {
        Self::Client(name.into())
    }

    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Operator => None,
            Self::Client(name) => Some(name),
        }
    }
}

/// Grants of all clients. A client without one has no tools.
#[derive(Clone, Debug, Default)]
pub struct Grants {
    everyone: Vec<Pattern>,
    clients: HashMap<String, Vec<Pattern>>,
}

impl Grants {
    /// No grants.
    pub fn none() -> Self {
        Self::default()
    }

    /// Grants tools to a client, `*` for every client.
    pub fn grant(&mut self, client: &str, patterns: impl IntoIterator<Item = Pattern>) {
        match client {
            "*" => self.everyone.extend(patterns),
            name => self.clients.entry(name.to_owned()).or_default().extend(patterns),
        }
    }

    /// Whether a client may use a tool.
    pub fn allows(&self, owner: &Owner, name: &ToolName) -> bool {
        let Some(client) = owner.name() else { return true };
        let name = name.to_string();
        any(&self.everyone, &name) || self.clients.get(client).is_some_and(|it| any(it, &name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        let cases = [
            ("github.search_*", "github.search_code", true),
            ("github.search_*", "github.search", false),
            ("*", "", true),
            ("*delete*", "a.do_delete_it", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-b-b-", false),
            ("a.b", "a.bc", false),
            ("", "x", false),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(Pattern::new(pattern).matches(text), expected, "{pattern} {text}");
        }
        let slow = Pattern::new(&"*a".repeat(50));
        assert!(!slow.matches(&format!("{}b", "a".repeat(20_000))));
    }

    #[test]
    fn a_client_has_no_tools_by_default() {
        let name: ToolName = "files.read".parse().unwrap();
        let mut grants = Grants::none();
        assert!(grants.allows(&Owner::Operator, &name));
        assert!(!grants.allows(&Owner::client("alice"), &name));
        grants.grant("alice", [Pattern::new("files.*")]);
        assert!(grants.allows(&Owner::client("alice"), &name));
        assert!(!grants.allows(&Owner::client("bob"), &name));
        grants.grant("*", [Pattern::new("files.read")]);
        assert!(grants.allows(&Owner::client("bob"), &name));
    }
}
