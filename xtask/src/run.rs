//! Runs checks and prints their results.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

/// A check of the repository.
pub(crate) struct Check {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) run: fn() -> anyhow::Result<Verdict>,
}

/// Result of a check that did not fail.
pub(crate) enum Verdict {
    /// The check cannot run on this machine: the reason, and the remedy.
    NotRun(String),
    Passed,
}

/// Selection of checks.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    only: Vec<String>,
    skip: Vec<String>,
}

impl Selection {
    pub(crate) fn parse(options: &[&str], checks: &[Check]) -> anyhow::Result<Self> {
        let mut selection = Self::default();
        let mut options = options.iter();
        while let Some(option) = options.next() {
            let list = match *option {
                "--only" => &mut selection.only,
                "--skip" => &mut selection.skip,
                other => bail!("unknown option `{other}`"),
            };
            let names = options.next().with_context(|| format!("{option} needs names"))?;
            for name in names.split(',') {
                if !checks.iter().any(|check| check.name == name) {
                    let known: Vec<_> = checks.iter().map(|check| check.name).collect();
                    bail!("unknown check `{name}`; known checks: {}", known.join(", "));
                }
                list.push(name.to_owned());
            }
        }
        Ok(selection)
    }

    fn wants(&self, name: &str) -> bool {
        let is = |it: &String| it == name;
        (self.only.is_empty() || self.only.iter().any(is)) && !self.skip.iter().any(is)
    }
}

/// Runs the selected checks and prints a table. A failed check does not stop the others.
pub(crate) fn run(selection: &Selection, checks: &[Check]) -> ExitCode {
    let mut rows = Vec::new();
    for check in checks {
        if !selection.wants(check.name) {
            rows.push(Row { name: check.name, took: Duration::ZERO, result: Outcome::Skipped });
            continue;
        }
        println!("\n── {} ─ {}", check.name, check.about);
        let start = Instant::now();
        let result = match (check.run)() {
            Ok(Verdict::Passed) => Outcome::Passed,
            Ok(Verdict::NotRun(why)) => Outcome::NotRun(why),
            Err(error) => Outcome::Failed(format!("{error:#}")),
        };
        rows.push(Row { name: check.name, took: start.elapsed(), result });
    }
    println!();
    for row in &rows {
        println!("{row}");
    }
    let count = |is: fn(&Outcome) -> bool| rows.iter().filter(|row| is(&row.result)).count();
    let passed = count(|it| matches!(it, Outcome::Passed));
    let failed = count(|it| matches!(it, Outcome::Failed(_)));
    println!("{passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

struct Row {
    name: &'static str,
    took: Duration,
    result: Outcome,
}

enum Outcome {
    Failed(String),
    Skipped,
    NotRun(String),
    Passed,
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let seconds = self.took.as_secs_f64();
        write!(f, "{:<8} {seconds:>7.1} s  ", self.name)?;
        match &self.result {
            Outcome::Failed(why) => write!(f, "FAILED: {why}"),
            Outcome::Skipped => write!(f, "skipped"),
            Outcome::NotRun(why) => write!(f, "NOT RUN: {why}"),
            Outcome::Passed => write!(f, "passed"),
        }
    }
}
