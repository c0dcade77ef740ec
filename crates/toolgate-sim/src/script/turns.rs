//! Turns of a script, their expectations, and the builder.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};
use toolgate_validate::{Data, Request};

use crate::fault::{Fault, FaultRule};
use crate::turn::{ItemKind, Turn};

/// The model's turns, in order.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// The turns.
    pub turns: Vec<ScriptTurn>,
    /// Whether a request gets the first turn whose expectation it meets, in any order.
    pub any_order: bool,
    /// Whether the demo model answers after the last turn.
    pub then_demo: bool,
    /// Faults with the requests that they apply to.
    pub faults: Vec<FaultRule>,
    /// Whether the builder adds to the last turn.
    pub(super) open: bool,
}

/// A turn of a script.
#[derive(Clone, Debug, Default)]
pub struct ScriptTurn {
    /// Expectation of the request.
    pub expect: Expect,
    /// The model's turn.
    pub turn: Turn,
    /// Fault of this turn.
    pub fault: Option<Fault>,
    /// Number of requests that get this turn; 0: any number.
    pub times: u64,
}

/// Expectation of a request. All fields that are set must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Expect {
    /// Text in the user's last content with text.
    pub contains: Option<String>,
    /// Text in the system instruction.
    pub system: Option<String>,
    /// Name of a declared function.
    pub tool: Option<String>,
    /// Whether functions are declared.
    pub tools: Option<bool>,
    /// Name of a function that the last content has a response of.
    pub response: Option<String>,
    /// Name of the model in the URL.
    pub model: Option<String>,
    /// Whether the request is streamed.
    pub stream: Option<bool>,
}

impl Script {
    /// Creates a script without turns.
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

    fn item(mut self, kind: ItemKind) -> Self {
        self.current().turn.items.push(kind.into());
        self
    }

    /// Adds text, which a stream splits into chunks.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        self.item(ItemKind::Text(text.into()))
    }

    /// Adds text as a single chunk.
    #[must_use]
    pub fn chunk(self, text: impl Into<String>) -> Self {
        self.item(ItemKind::Chunk(text.into()))
    }

    /// Adds a thought summary.
    #[must_use]
    pub fn thought(self, text: impl Into<String>) -> Self {
        self.item(ItemKind::Thought(text.into()))
    }

    /// Adds a call. Arguments that are not an object become an empty one.
    #[must_use]
    pub fn call(self, name: impl Into<String>, args: Value) -> Self {
        let args = if let Value::Object(args) = args { args } else { Map::new() };
        self.item(ItemKind::Call { name: name.into(), args })
    }

    /// Adds code that Google ran, with its output.
    #[must_use]
    pub fn code(self, code: impl Into<String>, output: impl Into<String>) -> Self {
        self.item(ItemKind::Code { code: code.into(), output: output.into() })
    }

    /// Adds a part in Google's JSON.
    #[must_use]
    pub fn part(self, part: Value) -> Self {
        self.item(ItemKind::Part(part))
    }

    /// Signs the last item, or leaves it unsigned, instead of the generation's default.
    #[must_use]
    pub fn signed(mut self, signed: bool) -> Self {
        if let Some(item) = self.current().turn.items.last_mut() {
            item.signed = Some(signed);
        }
        self
    }

    /// Sets the expectation of the turn.
    #[must_use]
    pub fn expect(mut self, expect: Expect) -> Self {
        self.current().expect = expect;
        self
    }

    /// Sets the fault of the turn.
    #[must_use]
    pub fn fault(mut self, fault: Fault) -> Self {
        self.current().fault = Some(fault);
        self
    }

    /// Adds a member to the turn's last candidate.
    #[must_use]
    pub fn candidate(mut self, name: impl Into<String>, value: Value) -> Self {
        self.current().turn.candidate.insert(name.into(), value);
        self
    }

    /// Sets the delay before the first byte and between chunks.
    #[must_use]
    pub fn pace(mut self, delay: Duration, pace: Duration) -> Self {
        let turn = &mut self.current().turn;
        (turn.delay, turn.pace) = (delay, pace);
        self
    }

    /// Sets the number of requests that get this turn; 0: any number.
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

    /// Ends the turn with a finish reason.
    #[must_use]
    pub fn finish_with(mut self, reason: impl Into<String>) -> Self {
        self.current().turn.finish = Some(reason.into());
        self.finish()
    }

    /// Lets the demo model answer after the last turn.
    #[must_use]
    pub fn then_demo(mut self) -> Self {
        self.then_demo = true;
        self
    }

    /// Returns the turn for a request. `used` counts the uses of each turn. `Ok(None)`: the script has
    /// ended; `Err`: the expectation that is not met.
    pub(crate) fn next(
        &self,
        used: &mut Vec<u64>,
        input: &ScriptInput<'_>,
    ) -> Result<Option<&ScriptTurn>, String> {
        used.resize(self.turns.len(), 0);
        let left = |(_, (turn, used)): &(usize, (&ScriptTurn, &mut u64))| {
            turn.times == 0 || **used < turn.times
        };
        let mut first_unmet = None;
        for (at, (turn, used)) in self.turns.iter().zip(used).enumerate().filter(left) {
            match turn.expect.unmet(input) {
                None => {
                    *used += 1;
                    return Ok(Some(turn));
                }
                Some(unmet) => {
                    first_unmet.get_or_insert_with(|| {
                        format!("turn {} of the script expects {unmet}", at + 1)
                    });
                }
            }
            if !self.any_order {
                break;
            }
        }
        first_unmet.map_or(Ok(None), Err)
    }
}

/// A request as scripts match it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScriptInput<'a> {
    pub(crate) request: &'a Request,
    pub(crate) model: &'a str,
    pub(crate) stream: bool,
}

impl Expect {
    /// Describes the first expectation that is not met.
    fn unmet(&self, input: &ScriptInput<'_>) -> Option<String> {
        let ScriptInput { request, model, stream } = input;
        if let Some(wanted) =
            self.contains.as_deref().filter(|it| !last_user_text(request).contains(it))
        {
            return Some(format!("`{wanted}` in the user's text"));
        }
        if let Some(wanted) = &self.system {
            let parts = request.system.iter().flat_map(|system| &system.parts);
            if !parts
                .into_iter()
                .any(|part| matches!(&part.data, Data::Text(it) if it.contains(wanted)))
            {
                return Some(format!("`{wanted}` in the system instruction"));
            }
        }
        let is_declared =
            |tool: &str| request.functions.iter().any(|function| function.name == tool);
        if let Some(tool) = self.tool.as_deref().filter(|tool| !is_declared(tool)) {
            return Some(format!("a function `{tool}`"));
        }
        if self.tools.is_some_and(|wanted| wanted == request.functions.is_empty()) {
            return Some(
                if self.tools == Some(true) {
                    "declared functions"
                } else {
                    "no declared functions"
                }
                .to_owned(),
            );
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
            return Some(if *stream { "a unary request" } else { "a stream" }.to_owned());
        }
        None
    }
}

/// Text of the user's last content with text.
fn last_user_text(request: &Request) -> String {
    let is_user_text = |content: &&toolgate_validate::Content| {
        let has_text = |data: &Data| matches!(data, Data::Text(text) if !text.trim().is_empty());
        !content.is_model() && content.parts.iter().any(|part| has_text(&part.data))
    };
    let Some(content) = request.contents.iter().rev().find(is_user_text) else {
        return String::new();
    };
    let texts = content.parts.iter().filter_map(|part| match &part.data {
        Data::Text(text) => Some(text.as_str()),
        Data::None
        | Data::Media { .. }
        | Data::Call { .. }
        | Data::Response { .. }
        | Data::Server(..) => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
