//! Turns, what they expect, and the builder that writes them.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};
use toolgate_validate::{Data, Request};

use crate::fault::{Fault, FaultRule};
use crate::turn::{Turn, What};

/// What the model says, turn by turn.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// The turns.
    pub turns: Vec<ScriptTurn>,
    /// Whether a request gets the first turn that fits, in any order.
    pub any_order: bool,
    /// Whether the demo model goes on after the last turn.
    pub then_demo: bool,
    /// What goes wrong.
    pub faults: Vec<FaultRule>,
    pub(super) open: bool,
}

/// A turn of a script.
#[derive(Clone, Debug, Default)]
pub struct ScriptTurn {
    /// What the request must be like.
    pub expect: Expect,
    /// What is said to it.
    pub turn: Turn,
    /// What goes wrong with it.
    pub fault: Option<Fault>,
    /// How often it is said; 0: as often as asked.
    pub times: u64,
}

/// What a request must be like.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Expect {
    /// The last words of the user hold this.
    pub contains: Option<String>,
    /// The system instruction holds this.
    pub system: Option<String>,
    /// This function is declared.
    pub tool: Option<String>,
    /// Whether any function is declared.
    pub tools: Option<bool>,
    /// The last content answers this function.
    pub response: Option<String>,
    /// It is for this model.
    pub model: Option<String>,
    /// It is (not) streamed.
    pub stream: Option<bool>,
}

impl Script {
    /// A script without turns.
    pub fn new() -> Self {
        Self::default()
    }

    fn current(&mut self) -> &mut ScriptTurn {
        if !self.open || self.turns.is_empty() {
            self.turns.push(ScriptTurn { times: 1, ..ScriptTurn::default() });
            self.open = true;
        }
        let last = self.turns.len() - 1;
        &mut self.turns[last]
    }

    fn say(mut self, what: What) -> Self {
        self.current().turn.items.push(what.into());
        self
    }

    /// Says words, which a stream cuts into chunks.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        self.say(What::Text(text.into()))
    }

    /// Says words in one chunk.
    #[must_use]
    pub fn chunk(self, text: impl Into<String>) -> Self {
        self.say(What::Chunk(text.into()))
    }

    /// Thinks.
    #[must_use]
    pub fn thought(self, text: impl Into<String>) -> Self {
        self.say(What::Thought(text.into()))
    }

    /// Calls a function; anything but an object is no arguments.
    #[must_use]
    pub fn call(self, name: impl Into<String>, args: Value) -> Self {
        let args = if let Value::Object(args) = args { args } else { Map::new() };
        self.say(What::Call { name: name.into(), args })
    }

    /// Runs code on Google's side.
    #[must_use]
    pub fn code(self, code: impl Into<String>, output: impl Into<String>) -> Self {
        self.say(What::Code { code: code.into(), output: output.into() })
    }

    /// Gives a part as it is.
    #[must_use]
    pub fn part(self, part: Value) -> Self {
        self.say(What::Part(part))
    }

    /// Signs the last item, or leaves it unsigned, whatever its generation does.
    #[must_use]
    pub fn signed(mut self, signed: bool) -> Self {
        if let Some(item) = self.current().turn.items.last_mut() {
            item.signed = Some(signed);
        }
        self
    }

    /// Says what the request must be like.
    #[must_use]
    pub fn expect(mut self, expect: Expect) -> Self {
        self.current().expect = expect;
        self
    }

    /// Lets something go wrong with this turn.
    #[must_use]
    pub fn fault(mut self, fault: Fault) -> Self {
        self.current().fault = Some(fault);
        self
    }

    /// Adds a member to the candidate that ends the turn.
    #[must_use]
    pub fn candidate(mut self, name: impl Into<String>, value: Value) -> Self {
        self.current().turn.candidate.insert(name.into(), value);
        self
    }

    /// Waits before the first byte, and between chunks.
    #[must_use]
    pub fn pace(mut self, delay: Duration, pace: Duration) -> Self {
        let turn = &mut self.current().turn;
        (turn.delay, turn.pace) = (delay, pace);
        self
    }

    /// Says this turn so often; 0: as often as asked.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.current().times = times;
        self
    }

    /// Ends the turn.
    #[must_use]
    pub fn finish(mut self) -> Self {
        self.current();
        self.open = false;
        self
    }

    /// Ends the turn for this reason.
    #[must_use]
    pub fn finish_with(mut self, reason: impl Into<String>) -> Self {
        self.current().turn.finish = Some(reason.into());
        self.finish()
    }

    /// Lets the demo model go on after the last turn.
    #[must_use]
    pub fn then_demo(mut self) -> Self {
        self.then_demo = true;
        self
    }

    /// The turn for a request, by how often each was said. `Ok(None)`: the script has ended.
    pub(crate) fn next(
        &self,
        used: &mut Vec<u64>,
        asked: &Asked<'_>,
    ) -> Result<Option<&ScriptTurn>, String> {
        used.resize(self.turns.len(), 0);
        let left = |(_, (turn, used)): &(usize, (&ScriptTurn, &mut u64))| {
            turn.times == 0 || **used < turn.times
        };
        let mut why = None;
        for (at, (turn, used)) in self.turns.iter().zip(used).enumerate().filter(left) {
            match turn.expect.unmet(asked) {
                None => {
                    *used += 1;
                    return Ok(Some(turn));
                }
                Some(unmet) => {
                    why.get_or_insert_with(|| {
                        format!("turn {} of the script expects {unmet}", at + 1)
                    });
                }
            }
            if !self.any_order {
                break;
            }
        }
        why.map_or(Ok(None), Err)
    }
}

/// What a script looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) request: &'a Request,
    pub(crate) model: &'a str,
    pub(crate) stream: bool,
}

impl Expect {
    /// What is not as expected.
    fn unmet(&self, asked: &Asked<'_>) -> Option<String> {
        let Asked { request, model, stream } = asked;
        if let Some(wanted) =
            self.contains.as_deref().filter(|it| !last_words(request).contains(it))
        {
            return Some(format!("the user to say `{wanted}`"));
        }
        if let Some(wanted) = &self.system {
            let said = request.system.iter().flat_map(|system| &system.parts);
            if !said
                .into_iter()
                .any(|part| matches!(&part.data, Data::Text(it) if it.contains(wanted)))
            {
                return Some(format!("the system instruction to say `{wanted}`"));
            }
        }
        let is_declared =
            |tool: &str| request.functions.iter().any(|function| function.name == tool);
        if let Some(tool) = self.tool.as_deref().filter(|tool| !is_declared(tool)) {
            return Some(format!("a function `{tool}`"));
        }
        if self.tools.is_some_and(|wanted| wanted == request.functions.is_empty()) {
            return Some("functions to be there, or not".to_owned());
        }
        if let Some(wanted) = &self.response {
            let last = request.contents.last().map_or(&[][..], |content| &content.parts);
            let is_it = |data: &Data| matches!(data, Data::Response { name, .. } if name == wanted);
            if !last.iter().any(|part| is_it(&part.data)) {
                return Some(format!("a response of `{wanted}`"));
            }
        }
        if let Some(wanted) = self.model.as_deref().filter(|wanted| wanted != model) {
            return Some(format!("the model `{wanted}`"));
        }
        if self.stream.is_some_and(|wanted| wanted != *stream) {
            return Some("another method".to_owned());
        }
        None
    }
}

/// What the user said last, in words.
pub(crate) fn last_words(request: &Request) -> String {
    let said = |content: &&toolgate_validate::Content| {
        let has_words = |data: &Data| matches!(data, Data::Text(text) if !text.trim().is_empty());
        !content.is_model() && content.parts.iter().any(|part| has_words(&part.data))
    };
    let Some(content) = request.contents.iter().rev().find(said) else { return String::new() };
    let words = content.parts.iter().filter_map(|part| match &part.data {
        Data::Text(text) => Some(text.as_str()),
        Data::None
        | Data::Media { .. }
        | Data::Call { .. }
        | Data::Response { .. }
        | Data::Server(..) => None,
    });
    words.collect::<Vec<_>>().join("\n")
}
