//! `toolgate setup` and the list of clients in the documentation.
#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

mod support;

use std::path::Path;

use support::command::{Home, stderr, stdout};

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).unwrap()
}

/// Packages of the client lab with their versions.
fn versions() -> Vec<(String, String)> {
    let text = read("clients/versions.toml");
    let pairs = text.lines().filter_map(|line| line.strip_prefix('"')?.split_once("\" = \""));
    let pairs = pairs.map(|(name, version)| {
        let name = name.split('[').next().unwrap();
        (name.to_owned(), version.trim_end_matches('"').to_owned())
    });
    pairs.collect()
}

#[test]
fn the_documentation_lists_every_client_with_its_version() {
    let document = read("docs/clients.md");
    let (_, rest) = document.split_once("## Versions").unwrap();
    let (table, _) = rest.split_once("## Coding agents").unwrap();
    let versions = versions();
    assert!(versions.len() > 30, "{versions:?}");
    for (name, version) in versions {
        let is_listed = |line: &str| line.contains(&name) && line.contains(&version);
        assert!(table.lines().any(is_listed), "{name} {version} is not listed");
    }
}

#[test]
fn every_client_with_settings_is_documented() {
    let home = Home::new();
    let list = stdout(&home.output(&["setup"], &[]));
    let names = list.lines().filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next());
    let names: Vec<_> = names.filter(|name| *name != "toolgate").collect();
    assert!(names.len() > 20, "{list}");
    let document = read("docs/clients.md");
    let last_cells =
        document.lines().filter_map(|line| line.trim_end_matches(" |").rsplit_once("| "));
    let documented: Vec<&str> = last_cells.flat_map(|(_, cell)| cell.split(", ")).collect();
    for name in names {
        assert!(documented.contains(&name), "{name} is not in the table of docs/clients.md");
        let arguments = ["setup", name, "--gateway", "http://127.0.0.1:1/", "--key", "k-1"];
        let output = home.output(&arguments, &[]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(stdout(&output).contains("http://127.0.0.1:1"), "{}", stdout(&output));
        assert!(!stdout(&output).contains("http://127.0.0.1:1//"), "{}", stdout(&output));
    }
    let unknown = home.output(&["setup", "nothing"], &[]);
    assert!(
        stderr(&unknown).contains("`toolgate setup` lists the clients"),
        "{}",
        stderr(&unknown)
    );
}

#[test]
fn settings_use_the_configured_address() {
    let home = Home::new();
    let variables = [("TOOLGATE_LISTEN", "127.0.0.1:9999")];
    let output = home.output(&["setup", "openai", "--json"], &variables);
    assert!(
        stdout(&output).contains("\"OPENAI_BASE_URL\":\"http://127.0.0.1:9999/v1\""),
        "{}",
        stdout(&output)
    );
}
