//! The same scenarios through google-genai and through this SDK, on one simulator.
//!
//! `cargo xtask test --only parity` installs google-genai and runs this. The outcomes of both are in
//! `docs/parity-run.md`, which is compared, or rewritten with `UPDATE_PARITY=1`.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod outcome;
mod scenarios;
mod tools;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use toolgate_sim::{Sim, SimConfig};

use outcome::{ours, theirs};
use scenarios::scenarios;

const HEAD: &str = "\
# Side by side with google-genai

Written by `cargo xtask test --only parity`, which runs each scenario through google-genai (Python)
and through this SDK, on the same simulator with the same script. *Finished* means that the program
got the answer that the model meant to give, and that every request was one that Gemini takes.

The simulator is lenient about ids here: a function response without the id of its call is what
Google's documents call a mismatch, answered with an empty turn by newer models, but google-genai
never sends ids, and would finish nothing. How many were left out is told instead.

";

#[tokio::test]
#[ignore = "needs google-genai, which `cargo xtask test --only parity` installs"]
async fn both_sdks_side_by_side() {
    let python = std::env::var("PARITY_PYTHON").unwrap();
    let sim = Sim::start(SimConfig::default()).await.unwrap();
    let mut text = HEAD.to_owned();
    let mut rows = String::new();
    let mut version = String::new();
    let mut finished = (0, 0);
    for scenario in scenarios() {
        let (name, what) = (scenario.name, scenario.what);
        sim.set_driver(scenario.driver());
        sim.clear();
        let mine = ours(&scenario, &sim).await;
        assert!(mine.finished, "{name}: {}", mine.shown);
        sim.set_driver(scenario.driver());
        sim.clear();
        let other = theirs(&scenario, &sim, &python).await;
        version = other.version.clone().unwrap_or(version);
        finished.0 += u32::from(mine.finished);
        finished.1 += u32::from(other.finished);
        writeln!(rows, "| **{name}**: {what} | {} | {} |", mine.shown, other.shown).unwrap();
    }
    let count = scenarios().len();
    writeln!(text, "| scenario | toolgate | google-genai {version} |").unwrap();
    writeln!(text, "|---|---|---|").unwrap();
    text.push_str(&rows);
    writeln!(text, "| finished | {} of {count} | {} of {count} |", finished.0, finished.1).unwrap();
    assert_eq!(finished.0 as usize, count);
    check(&text);
}

#[track_caller]
fn check(text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/parity-run.md");
    if std::env::var_os("UPDATE_PARITY").is_some() {
        fs::write(&file, text).unwrap();
    }
    let kept = fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(kept, text, "docs/parity-run.md is out of date; run with UPDATE_PARITY=1");
}
