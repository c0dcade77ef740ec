//! The scenarios.

use serde_json::{Value, json};
use toolgate_sim::{Driver, Fault, Script};

/// A scenario: the prompt, the model's turns, and the expected outcome.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    /// Names of tools in `tools.rs` and `scenario.py`.
    pub(crate) tools: &'static [&'static str],
    pub(crate) prompt: &'static str,
    pub(crate) any: bool,
    pub(crate) stream: bool,
    /// `None`: the simulator's demo model, which calls whenever a call is forced.
    script: Option<Script>,
    /// Expected text; `None`: any text.
    pub(crate) answer: Option<&'static str>,
    /// Name of the model.
    pub(crate) model: &'static str,
}

impl Scenario {
    pub(crate) fn driver(&self) -> Driver {
        self.script.clone().map_or(Driver::Demo, Driver::Script)
    }

    /// Scenario as JSON for `scenario.py`.
    pub(crate) fn to_json(&self, base_url: &str) -> Value {
        json!({
            "base_url": base_url,
            "model": self.model,
            "prompt": self.prompt,
            "tools": self.tools,
            "any": self.any,
            "stream": self.stream,
        })
    }
}

fn plain(name: &'static str, what: &'static str, script: Script) -> Scenario {
    Scenario {
        name,
        what,
        tools: &["lookup", "clock", "flaky"],
        prompt: "Go.",
        any: false,
        stream: false,
        script: Some(script),
        answer: Some("All done."),
        model: "gemini-3.6-flash",
    }
}

fn three_calls() -> Script {
    ["Oslo", "Rome", "Cairo"]
        .iter()
        .fold(Script::new(), |script, city| script.call("lookup", json!({"city": city})))
        .finish()
        .text("All done.")
}

pub(crate) fn scenarios() -> Vec<Scenario> {
    let one = || Script::new().call("clock", json!({})).finish().text("All done.");
    vec![
        plain("parallel calls", "three calls in one turn, 50 ms each", three_calls()),
        plain("zero-argument call", "a function without arguments", one()),
        Scenario {
            model: "gemini-2.5-flash",
            ..plain(
                "no `args` at all",
                "the call of a function without arguments says nothing about them",
                Script::new()
                    .part(json!({"functionCall": {"name": "clock"}}))
                    .finish()
                    .text("All done."),
            )
        },
        plain(
            "unknown tool",
            "the model calls `oracle`, which was not declared, then goes on",
            Script::new()
                .call("oracle", json!({}))
                .call("clock", json!({}))
                .finish()
                .text("All done."),
        ),
        plain(
            "failing tool",
            "a function raises, another does not",
            Script::new()
                .call("flaky", json!({"reason": "out of paper"}))
                .call("clock", json!({}))
                .finish()
                .text("All done."),
        ),
        plain(
            "bad arguments",
            "a required argument is missing; the model tries again",
            Script::new()
                .call("lookup", json!({}))
                .finish()
                .call("lookup", json!({"city": "Oslo"}))
                .finish()
                .text("All done."),
        ),
        Scenario {
            any: true,
            script: None,
            answer: None,
            tools: &["clock"],
            prompt: "What does the clock say?",
            ..plain("ANY mode", "the model must call, and is a model that does what it must", one())
        },
        plain(
            "malformed call",
            "the first turn ends with MALFORMED_FUNCTION_CALL",
            Script::new()
                .call("clock", json!({}))
                .fault(Fault::MalformedCall)
                .finish()
                .call("clock", json!({}))
                .finish()
                .text("All done."),
        ),
        Scenario {
            stream: true,
            ..plain(
                "streaming",
                "words, then three calls in chunks of their own, then the answer",
                {
                    let script = Script::new().text("Let me look. ");
                    ["Oslo", "Rome", "Cairo"]
                        .iter()
                        .fold(script, |script, city| script.call("lookup", json!({"city": city})))
                        .finish()
                        .text("All done.")
                },
            )
        },
        Scenario {
            tools: &["clock", "ask"],
            ..plain(
                "declaration-only beside callable",
                "`clock` runs here, `ask` is the caller's; both are called in one turn",
                Script::new()
                    .call("clock", json!({}))
                    .call("ask", json!({"question": "Really?"}))
                    .finish()
                    .text("All done."),
            )
        },
    ]
}
