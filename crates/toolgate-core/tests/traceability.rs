//! `docs/requirements.md` and `docs/field-cases.md` agree with the tests that they link to.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const TABLES: [&str; 2] = ["docs/requirements.md", "docs/field-cases.md"];

/// A row of a table: `| R58 | statement | proof |`.
struct Row {
    id: String,
    statement: String,
    proof: String,
}

impl Row {
    fn parse(line: &str) -> Option<Self> {
        let mut cells = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ");
        let (id, statement, proof) = (cells.next()?, cells.next()?, cells.next()?);
        let digits = id.trim_start_matches(|c: char| c.is_ascii_uppercase());
        let is_id = id.len() > digits.len() && digits.parse::<u32>().is_ok();
        is_id.then(|| Self { id: id.into(), statement: statement.into(), proof: proof.into() })
    }

    /// The links of the proof, as (test or text, file).
    fn links(&self) -> Vec<(&str, &str)> {
        let link = |piece: &'_ str| -> Option<(usize, usize)> {
            Some((piece.find("](")?, piece.find(')')?))
        };
        self.proof
            .split('[')
            .skip(1)
            .filter_map(|piece| {
                link(piece).map(|(middle, end)| (&piece[..middle], &piece[middle + 2..end]))
            })
            .collect()
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn rows() -> Vec<Row> {
    let text = |table| fs::read_to_string(root().join(table)).unwrap();
    let tables: Vec<String> = TABLES.into_iter().map(text).collect();
    tables.iter().flat_map(|table| table.lines().filter_map(Row::parse)).collect()
}

/// Every test function of the workspace's crates, with the files that define it.
fn tests() -> BTreeMap<String, BTreeSet<PathBuf>> {
    let mut tests = BTreeMap::<String, BTreeSet<PathBuf>>::new();
    let mut folders = vec![root().join("crates"), root().join("xtask")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                for name in test_functions(&fs::read_to_string(&path).unwrap()) {
                    tests.entry(name).or_default().insert(path.canonicalize().unwrap());
                }
            }
        }
    }
    tests
}

/// The names of the functions below a `#[test]` or `#[tokio::test]` attribute.
fn test_functions(source: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_test = false;
    for line in source.lines().map(str::trim) {
        if line.starts_with("#[test") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if is_test && let Some((_, rest)) = line.split_once("fn ") {
            names.extend(rest.split(['(', '<']).next().map(str::to_owned));
            is_test = false;
        }
    }
    names
}

/// The rows that a test's name claims: `r20_r22_…`, `r148_to_r158_…`, `c3_c4_…`.
fn claims(name: &str) -> Vec<String> {
    let mut claims = Vec::new();
    let mut range_start = None;
    for word in name.split('_') {
        let (letter, digits) = word.split_at(word.len().min(1));
        match digits.parse::<u32>() {
            Ok(number) if matches!(letter.as_bytes(), [b'a'..=b'k' | b'r' | b't']) => {
                let letter = letter.to_ascii_uppercase();
                let first = range_start.take().unwrap_or(number);
                claims.extend((first..=number).map(|number| format!("{letter}{number}")));
            }
            _ if word == "to" && !claims.is_empty() => {
                range_start =
                    claims.last().and_then(|id| id[1..].parse::<u32>().ok()).map(|n| n + 1);
            }
            _ => break,
        }
    }
    claims
}

#[test]
fn every_row_has_a_statement_and_a_proof() {
    let rows = rows();
    let ids: BTreeSet<&str> = rows.iter().map(|row| row.id.as_str()).collect();
    assert_eq!(ids.len(), rows.len(), "an id occurs twice");
    for number in 1..=171 {
        assert!(ids.contains(format!("R{number}").as_str()), "R{number} has no row");
    }
    for row in &rows {
        assert!(!row.statement.is_empty(), "{} has no statement", row.id);
        assert!(row.proof.len() > 3, "{} has neither a test nor a reason", row.id);
    }
}

#[test]
fn every_linked_test_exists_in_the_linked_file() {
    let tests = tests();
    for row in rows() {
        for (text, file) in row.links() {
            let path = root().join("docs").join(file);
            assert!(path.exists(), "{}: {file} does not exist", row.id);
            let Some(name) = text.strip_prefix('`').and_then(|text| text.strip_suffix('`')) else {
                continue;
            };
            let files = tests.get(name);
            let is_there = files.is_some_and(|files| files.contains(&path.canonicalize().unwrap()));
            assert!(is_there, "{}: {file} has no test `{name}`", row.id);
        }
    }
}

#[test]
fn every_test_is_linked_by_the_rows_that_its_name_claims() {
    let rows = rows();
    let find = |id: &str| rows.iter().find(|row| row.id == id);
    for name in tests().keys() {
        for id in claims(name) {
            let row = find(&id).unwrap_or_else(|| panic!("`{name}` claims {id}, which has no row"));
            let is_linked = row.links().iter().any(|(text, _)| text.trim_matches('`') == name);
            assert!(is_linked, "{id} does not link `{name}`");
        }
    }
}
