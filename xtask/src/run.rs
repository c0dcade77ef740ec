//! Running checks and saying what came of them.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use crate::checks;

/// Something that must hold.
pub(crate) struct Check {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) run: fn() -> anyhow::Result<Verdict>,
}

/// What came of a check that did not fail.
pub(crate) enum Verdict {
    /// It cannot be made here; why, and what would help.
    NotRun(String),
    Passed,
}

/// Which checks to run.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    only: Vec<String>,
    skip: Vec<String>,
}

impl Selection {
    pub(crate) fn parse(options: &[&str]) -> anyhow::Result<Self> {
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
                if !checks::ALL.iter().any(|check| check.name == name) {
                    let known: Vec<_> = checks::ALL.iter().map(|check| check.name).collect();
                    bail!("there is no check `{name}`; there are {}", known.join(", "));
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

/// Runs the selected checks, all of them even when one fails, and prints a table.
pub(crate) fn run(selection: &Selection) -> ExitCode {
    let mut rows = Vec::new();
    for check in checks::ALL {
        if !selection.wants(check.name) {
            rows.push(Row { name: check.name, took: Duration::ZERO, result: Ended::LeftOut });
            continue;
        }
        println!("\n── {} ─ {}", check.name, check.about);
        let start = Instant::now();
        let result = match (check.run)() {
            Ok(Verdict::Passed) => Ended::Passed,
            Ok(Verdict::NotRun(why)) => Ended::NotRun(why),
            Err(error) => Ended::Failed(format!("{error:#}")),
        };
        rows.push(Row { name: check.name, took: start.elapsed(), result });
    }
    println!();
    for row in &rows {
        println!("{row}");
    }
    let count = |is: fn(&Ended) -> bool| rows.iter().filter(|row| is(&row.result)).count();
    let passed = count(|it| matches!(it, Ended::Passed));
    let failed = count(|it| matches!(it, Ended::Failed(_)));
    println!("{passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

struct Row {
    name: &'static str,
    took: Duration,
    result: Ended,
}

enum Ended {
    Failed(String),
    LeftOut,
    NotRun(String),
    Passed,
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let seconds = self.took.as_secs_f64();
        write!(f, "{:<8} {seconds:>7.1} s  ", self.name)?;
        match &self.result {
            Ended::Failed(why) => write!(f, "FAILED: {why}"),
            Ended::LeftOut => write!(f, "left out, as asked"),
            Ended::NotRun(why) => write!(f, "NOT RUN: {why}"),
            Ended::Passed => write!(f, "passed"),
        }
    }
}
