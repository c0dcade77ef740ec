//! Scripts: what the model says to which request.
//!
//! From Rust as a builder, from a file as TOML or JSON:
//!
//! ```toml
//! then = "demo"                      # what comes after the last turn: "error" (default) or "demo"
//!
//! [[turn]]
//! expect = { contains = "weather", tool = "get_weather" }
//! say = [
//!   { thought = "The user wants the weather." },
//!   { call = "get_weather", args = { city = "Paris" } },
//!   { call = "get_weather", args = { city = "Rome" } },
//! ]
//!
//! [[turn]]
//! expect = { response = "get_weather" }
//! text = "Sunny in both."
//! fault = { kind = "trickle", ms = 20 }
//!
//! [[faults]]
//! fault = { kind = "status", code = 503 }
//! when = { requests = [2] }
//! ```

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};
use toolgate_core::validate::{Data, Request};

use crate::fault::{Fault, FaultRule};
use crate::turn::{Item, Turn, What};

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
    open: bool,
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

/// Why a script cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// It is not TOML, or not a script.
    #[error("the script cannot be read: {0}")]
    Toml(#[from] toml::de::Error),
    /// It is not JSON, or not a script.
    #[error("the script cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// A turn says nothing that is known.
    #[error("turn {turn}: {what}")]
    Turn {
        /// Which, from 1.
        turn: usize,
        /// What is wrong with it.
        what: &'static str,
    },
}

impl Script {
    /// A script without turns.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a script: JSON if it begins with `{`, else TOML.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let file: File = if text.trim_start().starts_with('{') {
            serde_json::from_str(text)?
        } else {
            toml::from_str(text)?
        };
        file.into_script()
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
    let said = |content: &&toolgate_core::validate::Content| {
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    any_order: bool,
    #[serde(default)]
    then: Then,
    #[serde(default)]
    faults: Vec<FaultRule>,
    #[serde(default, alias = "turns")]
    turn: Vec<FileTurn>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Then {
    #[default]
    Error,
    Demo,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct FileTurn {
    expect: Expect,
    text: Option<String>,
    say: Vec<FileItem>,
    finish: Option<String>,
    finish_message: Option<String>,
    blocked: Option<String>,
    candidate: Map<String, Value>,
    delay_ms: u64,
    pace_ms: u64,
    fault: Option<Fault>,
    times: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct FileItem {
    thought: Option<String>,
    text: Option<String>,
    chunk: Option<String>,
    call: Option<String>,
    args: Option<Map<String, Value>>,
    code: Option<String>,
    output: Option<String>,
    part: Option<Value>,
    signed: Option<bool>,
}

impl File {
    fn into_script(self) -> Result<Script, ScriptError> {
        let mut turns = Vec::with_capacity(self.turn.len());
        for (at, file) in self.turn.into_iter().enumerate() {
            let refused = |what| ScriptError::Turn { turn: at + 1, what };
            let mut items = Vec::with_capacity(file.say.len() + 1);
            for item in file.say {
                items.push(item.into_item().ok_or_else(|| {
                    refused("an item is one of thought, text, chunk, call, code, part")
                })?);
            }
            items.extend(file.text.map(|text| Item::from(What::Text(text))));
            turns.push(ScriptTurn {
                expect: file.expect,
                turn: Turn {
                    items,
                    finish: file.finish,
                    finish_message: file.finish_message,
                    blocked: file.blocked,
                    candidate: file.candidate,
                    delay: Duration::from_millis(file.delay_ms),
                    pace: Duration::from_millis(file.pace_ms),
                },
                fault: file.fault,
                times: file.times.unwrap_or(1),
            });
        }
        let then_demo = matches!(self.then, Then::Demo);
        let Self { any_order, faults, .. } = Self { turn: Vec::new(), ..self };
        Ok(Script { turns, any_order, then_demo, faults, open: false })
    }
}

impl FileItem {
    fn into_item(self) -> Option<Item> {
        let Self { thought, text, chunk, call, args, code, output, part, signed } = self;
        let mut kinds = [
            thought.map(What::Thought),
            text.map(What::Text),
            chunk.map(What::Chunk),
            call.map(|name| What::Call { name, args: args.unwrap_or_default() }),
            code.map(|code| What::Code { code, output: output.unwrap_or_default() }),
            part.map(What::Part),
        ]
        .into_iter()
        .flatten();
        let what = kinds.next()?;
        kinds.next().is_none().then_some(Item { what, signed })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn files_say_the_same_as_the_builder() {
        let toml = r#"
            then = "demo"

            [[turn]]
            expect = { contains = "weather", tool = "get_weather" }
            say = [{ thought = "Hm." }, { call = "get_weather", args = { city = "Oslo" }, signed = false }]

            [[turn]]
            text = "Rain."
            finish = "MAX_TOKENS"
            delay_ms = 5
            fault = { kind = "split", size = 3 }
            times = 0

            [[faults]]
            fault = { kind = "status", code = 503 }
            when = { requests = [2] }
        "#;
        let json = json!({
            "then": "demo",
            "turn": [
                {
                    "expect": {"contains": "weather", "tool": "get_weather"},
                    "say": [{"thought": "Hm."}, {"call": "get_weather", "args": {"city": "Oslo"}, "signed": false}],
                },
                {"text": "Rain.", "finish": "MAX_TOKENS", "delay_ms": 5, "fault": {"kind": "split", "size": 3}, "times": 0},
            ],
            "faults": [{"fault": {"kind": "status", "code": 503}, "when": {"requests": [2]}}],
        });
        let expect = Expect {
            contains: Some("weather".into()),
            tool: Some("get_weather".into()),
            ..Expect::default()
        };
        let mut built = Script::new()
            .then_demo()
            .expect(expect)
            .thought("Hm.")
            .call("get_weather", json!({"city": "Oslo"}))
            .signed(false)
            .finish()
            .text("Rain.")
            .pace(Duration::from_millis(5), Duration::ZERO)
            .fault(Fault::Split { size: 3 })
            .times(0)
            .finish_with("MAX_TOKENS");
        let parsed = Script::parse(toml).unwrap();
        built.faults.clone_from(&parsed.faults);
        assert_eq!(format!("{parsed:?}"), format!("{built:?}"));
        assert_eq!(
            format!("{:?}", Script::parse(&json.to_string()).unwrap()),
            format!("{built:?}")
        );
    }

    #[test]
    fn broken_files_say_what_is_wrong() {
        for (text, want) in [
            ("[[turn]]\nsay = [{ words = \"x\" }]", "unknown field `words`"),
            ("[[turn]]\nsay = [{ signed = true }]", "turn 1: an item is one of"),
            ("[[turn]]\nsay = [{ text = \"a\", chunk = \"b\" }]", "turn 1: an item is one of"),
            ("{\"turn\": 1}", "invalid type"),
            ("[[faults]]\nfault = { kind = \"rain\" }", "unknown variant `rain`"),
        ] {
            let error = Script::parse(text).unwrap_err().to_string();
            assert!(error.contains(want), "{error}");
        }
    }
}
