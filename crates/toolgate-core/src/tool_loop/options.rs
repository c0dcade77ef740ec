//! How a loop behaves, and whose tools are whose.

use std::collections::BTreeMap;

use crate::canon::ToolName;

/// How a loop behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many requests may be sent, retries of a failed one not counted. 0: nothing is run
    /// here; every call comes back to the caller.
    pub max_rounds: u32,
    /// What happens when the last of them is answered with calls.
    pub at_limit: AtLimit,
    /// How often, in all, a turn that the model spoilt is asked for again.
    pub retries: u32,
    /// Visibility of the rounds before the last.
    pub steps: Steps,
    /// What becomes of a call to a tool that was not declared.
    pub unknown_tools: OnFault,
    /// What becomes of a call whose arguments do not fit the tool's schema.
    pub bad_arguments: OnFault,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_rounds: 10,
            at_limit: AtLimit::ReturnCalls,
            retries: 2,
            steps: Steps::Hidden,
            unknown_tools: OnFault::Answer { rounds: u32::MAX },
            bad_arguments: OnFault::Pass,
        }
    }
}

/// What happens when the last request allowed is answered with calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtLimit {
    /// The calls are run, and one request more, with tools forbidden, asks for the answer.
    LastAnswer,
    /// Nothing is run; the calls come back to the caller.
    ReturnCalls,
}

/// Visibility of the rounds before the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steps {
    /// Nothing. A stream pays for it with delay: whether a round is the last is known at its end.
    Hidden,
    /// All but the calls that were run here.
    Shown,
}

/// What becomes of a faulty call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFault {
    /// The model gets a description of the fault as the result, in a limited number of rounds. After
    /// these the call is passed on.
    Answer {
        /// Maximum number of rounds with such an answer.
        rounds: u32,
    },
    /// As if nothing were wrong: the tool's owner will see. An unknown tool is the caller's.
    Pass,
}

/// Who runs a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The caller of the loop: the calls are returned to it.
    Caller,
    /// The driver of the loop.
    Driver,
}

/// The tools that were declared, and who runs them.
#[derive(Clone, Debug, Default)]
pub struct Tools {
    owners: BTreeMap<ToolName<'static>, Owner>,
    aliases: BTreeMap<ToolName<'static>, String>,
}

impl Tools {
    /// Who runs this tool; `None` where it was not declared.
    pub fn owner<'a>(&self, tool: &ToolName<'a>) -> Option<Owner> {
        let tools: &BTreeMap<ToolName<'a>, Owner> = &self.owners;
        tools.get(tool).copied()
    }

    /// Every declared tool, in order of names.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &ToolName<'static>> {
        self.owners.keys()
    }

    /// The same with the names by which the model knows them, where those are others.
    #[must_use]
    pub fn known_as(self, aliases: impl IntoIterator<Item = (ToolName<'static>, String)>) -> Self {
        Self { aliases: aliases.into_iter().collect(), ..self }
    }

    /// Every declared tool as the model knows it.
    pub(super) fn shown(&self) -> impl ExactSizeIterator<Item = String> {
        self.owners
            .keys()
            .map(|name| self.aliases.get(name).cloned().unwrap_or_else(|| name.to_string()))
    }

    /// Whether the driver runs any of them.
    pub fn any_driven(&self) -> bool {
        self.owners.values().any(|owner| *owner == Owner::Driver)
    }
}

impl<'a> FromIterator<(ToolName<'a>, Owner)> for Tools {
    fn from_iter<I: IntoIterator<Item = (ToolName<'a>, Owner)>>(tools: I) -> Self {
        let owners = tools.into_iter().map(|(name, owner)| (name.into_owned(), owner)).collect();
        Self { owners, aliases: BTreeMap::new() }
    }
}
