//! Outcomes of scenarios in either SDK.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde::Deserialize;
use toolgate::{Client, Error, Request, Response};
use toolgate_sim::{Counters, RunningSim};

use crate::scenarios::Scenario;
use crate::tools::{Shared, toolset};

/// Outcome of a scenario.
pub(crate) struct Outcome {
    pub(crate) finished: bool,
    /// Text for the table.
    pub(crate) shown: String,
    pub(crate) version: Option<String>,
}

/// Outcome as a program sees it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Seen {
    text: String,
    /// Returned calls that cannot be answered.
    open: Vec<String>,
    error: Option<String>,
    most_at_once: usize,
    version: Option<String>,
}

impl Seen {
    fn outcome(self, scenario: &Scenario, counters: Counters) -> Outcome {
        let wanted = match scenario.answer {
            Some(answer) => self.text == answer,
            None => !self.text.is_empty(),
        };
        let accepted = counters.refusals == 0 && counters.mismatches == 0;
        let finished = wanted && accepted && self.error.is_none() && self.open.is_empty();
        let mut notes = vec![counted(counters.requests, "request", "")];
        if self.most_at_once > 0 {
            notes.push(format!("{} at once", self.most_at_once));
        }
        if counters.missing_ids > 0 {
            notes.push(counted(counters.missing_ids, "id", " left out"));
        }
        if counters.refusals > 0 {
            notes.push(counted(counters.refusals, "request", " refused"));
        }
        let end = match (&self.error, self.open.is_empty(), self.text.is_empty()) {
            (Some(error), _, _) => format!("ends in `{}`", brief(error)),
            (None, false, _) => format!("`{}` called, and not run", self.open.join("`, `")),
            (None, true, true) => "an empty answer, and no error".to_owned(),
            (None, true, false) => format!("answers `{}`", brief(&self.text)),
        };
        let word = if finished { "**finished**" } else { "**not finished**" };
        let end = if finished { String::new() } else { format!(": {end}") };
        Outcome {
            finished,
            shown: format!("{word}{end} ({})", notes.join(", ")),
            version: self.version,
        }
    }
}

fn counted(count: u64, what: &str, rest: &str) -> String {
    format!("{count} {what}{}{rest}", if count == 1 { "" } else { "s" })
}

/// One short line without table markup.
fn brief(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default().replace(['|', '`'], "'");
    if line.chars().count() > 90 { line.chars().take(90).chain(['…']).collect() } else { line }
}

pub(crate) async fn ours(scenario: &Scenario, sim: &RunningSim) -> Outcome {
    let client = Client::builder().api_key("a key").base_url(sim.url()).build().unwrap();
    let shared = Shared::default();
    let tools = toolset(scenario.tools, &shared);
    let request = Request::new(scenario.prompt).model(scenario.model).tools(tools);
    let request = if scenario.any { request.must_call::<&str>([]) } else { request };
    let answered = match scenario.stream {
        true => client.stream(request).finish().await,
        false => client.generate(request).await,
    };
    let seen = match answer_calls(answered).await {
        Ok(response) => Seen { text: response.text(), ..Seen::default() },
        Err(error) => Seen { error: Some(error.to_string()), ..Seen::default() },
    };
    Seen { most_at_once: shared.most(), ..seen }.outcome(scenario, sim.counters())
}

/// Answers all returned calls with `yes`.
async fn answer_calls(mut answered: Result<Response, Error>) -> Result<Response, Error> {
    while let Ok(response) = &answered
        && response.has_calls()
    {
        let results: Vec<_> = response.calls().iter().map(|call| call.succeed("yes")).collect();
        answered = answered?.resume(results).await;
    }
    answered
}

pub(crate) async fn theirs(scenario: &Scenario, sim: &RunningSim, python: &str) -> Outcome {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity/scenario.py");
    let input = scenario.to_json(&sim.url()).to_string();
    let mut command = Command::new(python);
    command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.env_remove("GOOGLE_API_KEY").env_remove("GEMINI_API_KEY");
    let output = tokio::task::spawn_blocking(move || {
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    })
    .await
    .unwrap();
    let seen: Seen = serde_json::from_slice(&output.stdout).unwrap();
    seen.outcome(scenario, sim.counters())
}
