//! What becomes of signatures, by what happens to a session.
//!
//! Each cell is a tool session of ten steps on the strict simulator, which counts every signature
//! that comes back: real ones, placeholders, and those that come twice.

use std::fmt::Write as _;

use toolgate_sim::{Counters, Sim, SimConfig};

use super::client::{DIALECTS, Dialect, Habit, STEPS, Talk, script};
use super::process::{Folder, Toolgate};

pub(crate) const HEAD: &str = "| case | Messages | Responses | Chat |\n|---|---|---|---|\n";

/// Who answers the turns of a session.
pub(crate) enum Gates<'a> {
    /// One process, with its state in memory.
    One,
    /// A process for every turn, killed after it, and one SQLite file.
    Killed,
    /// Two processes by turns, and one store.
    Two(&'a str),
}

/// A session, from its first question to its last answer.
pub(crate) async fn run(gates: &Gates<'_>, dialect: Dialect, habit: Habit) -> Counters {
    let sim = Sim::start(SimConfig::scripted(script())).await.unwrap();
    let mut talk = Talk::new(dialect, habit);
    match gates {
        Gates::One => {
            let gate = Toolgate::start(&sim.url(), "memory");
            while talk.turn(&gate).await {}
        }
        Gates::Killed => {
            let folder = Folder::new();
            let store = format!("sqlite:{}", folder.path().join("state.db").display());
            loop {
                let gate = Toolgate::start(&sim.url(), &store);
                let goes_on = talk.turn(&gate).await;
                gate.kill();
                if !goes_on {
                    break;
                }
            }
        }
        Gates::Two(store) => {
            let gates = [Toolgate::start(&sim.url(), store), Toolgate::start(&sim.url(), store)];
            for at in 0.. {
                if !talk.turn(&gates[at % 2]).await {
                    break;
                }
            }
        }
    }
    sim.counters()
}

/// Adds a row; every signature must be real and come once.
pub(crate) async fn row(table: &mut String, name: &str, gates: Gates<'_>, habit: Habit) {
    let _ = write!(table, "| {name} |");
    for dialect in DIALECTS {
        let counters = run(&gates, dialect, habit).await;
        let Counters { signatures, placeholders, doubled, refusals, requests, .. } = counters;
        let _ = write!(table, " {signatures} / {placeholders} / {doubled} |");
        let told = (refusals, placeholders, doubled, requests);
        assert_eq!(told, (0, 0, 0, STEPS as u64 + 1), "{name}, {dialect:?}: {counters:?}");
        assert!(signatures > 0, "{name}, {dialect:?}: {counters:?}");
    }
    table.push('\n');
}

/// The table equals that of the document.
#[track_caller]
pub(crate) fn check_document(table: &str) {
    println!("{table}");
    let document = include_str!("../../../../docs/signatures.md");
    assert!(document.contains(table), "docs/signatures.md does not say:\n{table}");
}

#[tokio::test]
async fn r127_r129_r163_c1_c10_c13_signatures_survive_what_clients_do() {
    let mut table = HEAD.to_owned();
    for (name, habit) in [
        ("the client keeps everything", Habit::Faithful),
        ("the client drops every field that its vendor does not document", Habit::DropsUnknown),
        ("the client strips thinking and signatures", Habit::StripsThinking),
        ("… and makes ids of 64 characters", Habit::LongIds),
        ("… and makes ids of another alphabet", Habit::OtherAlphabet),
        ("… and writes ids in lower case", Habit::LowerIds),
        ("… and cuts ids to 16 characters", Habit::CutIds),
        ("… and its session header changes every turn", Habit::ChangesSession),
        ("… and makes ids of its own, and drops its oldest steps", Habit::ForgetsOldest),
        ("the conversation is compacted half way", Habit::Compacts),
    ] {
        row(&mut table, name, Gates::One, habit).await;
    }
    for (name, habit) in [
        ("`kill -9` after every turn, SQLite", Habit::Faithful),
        ("`kill -9` after every turn, SQLite, thinking stripped", Habit::StripsThinking),
        ("`kill -9` after every turn, SQLite, thinking stripped, other ids", Habit::OtherAlphabet),
    ] {
        row(&mut table, name, Gates::Killed, habit).await;
    }
    check_document(&table);
}
