//! Script files in TOML or JSON.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::turns::{Expect, Script, ScriptTurn};
use crate::fault::{Fault, FaultRule};
use crate::turn::{Item, ItemKind, Turn};

/// Error in a script file.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// Invalid TOML, or not a script.
    #[error("invalid script: {0}")]
    Toml(#[from] toml::de::Error),
    /// Invalid JSON, or not a script.
    #[error("invalid script: {0}")]
    Json(#[from] serde_json::Error),
    /// An item with no kind, or with several.
    #[error("turn {turn}: {what}")]
    Turn {
        /// Number of the turn, from 1.
        turn: usize,
        /// The fault.
        what: &'static str,
    },
}

impl Script {
    /// Parses a script: JSON if it begins with `{`, otherwise TOML.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let file: File = if text.trim_start().starts_with('{') {
            serde_json::from_str(text)?
        } else {
            toml::from_str(text)?
        };
        file.into_script()
    }
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
            let error = |what| ScriptError::Turn { turn: at + 1, what };
            let mut items = Vec::with_capacity(file.say.len() + 1);
            for item in file.say {
                items.push(item.into_item().ok_or_else(|| {
                    error("an item is one of thought, text, chunk, call, code, part")
                })?);
            }
            items.extend(file.text.map(|text| Item::from(ItemKind::Text(text))));
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
            thought.map(ItemKind::Thought),
            text.map(ItemKind::Text),
            chunk.map(ItemKind::Chunk),
            call.map(|name| ItemKind::Call { name, args: args.unwrap_or_default() }),
            code.map(|code| ItemKind::Code { code, output: output.unwrap_or_default() }),
            part.map(ItemKind::Part),
        ]
        .into_iter()
        .flatten();
        let kind = kinds.next()?;
        kinds.next().is_none().then_some(Item { kind, signed })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn files_and_the_builder_give_the_same_script() {
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
    fn errors_in_files_name_the_fault() {
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
