//! Rules about the repository itself.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use toolgate_testing::source::{Source, files, is_test_file, relative, root};

/// Every file that git knows and that is text, with its text.
fn tracked() -> Vec<(String, String)> {
    let mut git = Command::new("git");
    let output = git.args(["ls-files", "-z"]).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let names = String::from_utf8(output.stdout).unwrap();
    let texts: Vec<_> = names
        .split_terminator('\0')
        .filter_map(|name| Some((name.to_owned(), fs::read_to_string(root().join(name)).ok()?)))
        .collect();
    assert!(texts.len() > 40, "git names {} files only", texts.len());
    texts
}

/// A file of data or documentation may be as long as it must; code may not.
#[test]
fn no_file_of_code_is_too_long() {
    for path in files(&root(), "rs") {
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines <= 800, "{} has {lines} lines", relative(&path));
    }
}

#[test]
fn mod_files_hold_no_functions() {
    for path in files(&root(), "rs") {
        if path.ends_with("mod.rs") {
            let code = Source::parse(&fs::read_to_string(&path).unwrap()).code;
            let has =
                code.split(|it: char| !it.is_alphanumeric() && it != '_').any(|it| it == "fn");
            assert!(!has, "{} holds a function", relative(&path));
        }
    }
}

#[test]
fn dialects_have_the_same_files() {
    for dialect in ["anthropic", "chat", "gemini", "responses"] {
        let folder = root().join("crates/toolgate-core/src").join(dialect);
        // A dialect that is a placeholder yet has no files at all.
        if fs::read_dir(&folder).unwrap().count() == 1 || !folder.join("wire.rs").exists() {
            continue;
        }
        for part in ["wire", "request", "response", "stream", "error"] {
            let is_there = folder.join(format!("{part}.rs")).exists() || folder.join(part).is_dir();
            assert!(is_there, "{dialect} has no {part}");
        }
    }
}

/// A clone must work anywhere: nothing may name the machine that it was written on.
#[test]
fn no_file_names_a_machine() {
    // Put together, or this file would be the first to fail.
    let folders = ["work", "root", "home"].map(|it| format!("/{it}/"));
    for (name, text) in tracked() {
        for (number, line) in text.lines().enumerate() {
            for folder in &folders {
                let hit = line.match_indices(folder.as_str()).any(|(at, _)| {
                    let before = line[..at].chars().next_back();
                    !before.is_some_and(|it| it.is_alphanumeric() || "._-~}*)".contains(it))
                });
                assert!(!hit, "{name}:{} names {folder}", number + 1);
            }
        }
    }
}

/// Packages come by name from where packages come from.
#[test]
fn no_file_names_a_registry() {
    for (name, text) in tracked() {
        if name.ends_with("Cargo.lock") {
            for line in text.lines().filter(|line| line.starts_with("source = ")) {
                let usual = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";
                assert_eq!(line, usual, "{name}");
            }
        }
        if name.ends_with("package-lock.json") {
            for line in text.lines().filter(|line| line.contains("\"resolved\": \"http")) {
                assert!(line.contains("\"https://registry.npmjs.org/"), "{name}: {line}");
            }
        }
        for word in ["index-url", "npm_config_registry", "[source.crates-io]", "replace-with"] {
            let is_this = name.ends_with("tests/tidy.rs");
            assert!(is_this || !text.contains(word), "{name} says {word}");
        }
    }
}

/// What `*` and `**` stand for in the paths of golden files.
fn matches(pattern: &str, path: &str) -> bool {
    match pattern.find('*') {
        None => pattern == path,
        Some(at) => {
            let Some(rest) = path.strip_prefix(&pattern[..at]) else { return false };
            let (deep, after) = match pattern[at..].strip_prefix("**/") {
                Some(after) => (true, after),
                None => (false, &pattern[at + 1..]),
            };
            (0..=rest.len())
                .filter(|at| rest.is_char_boundary(*at))
                .take_while(|at| deep || !rest[..*at].contains('/'))
                .any(|at| matches(after, &rest[at..]))
        }
    }
}

#[test]
fn patterns_match() {
    assert!(matches("stream/*.sse", "stream/a.gemini.sse"));
    assert!(!matches("stream/*.sse", "stream/deep/a.sse"));
    assert!(matches("**/*.sse", "stream/deep/a.sse"));
    assert!(matches("a.json", "a.json"));
}

/// A format string's places for names, `{name}`, as `*`.
fn globbed(format: &str) -> String {
    let mut pieces = format.split('{');
    let mut glob = pieces.next().unwrap_or("").to_owned();
    for piece in pieces {
        glob.push('*');
        glob.push_str(piece.split_once('}').map_or(piece, |(_, after)| after));
    }
    glob
}

/// A golden file that no test reads proves nothing.
#[test]
fn every_golden_file_is_used() {
    let mut patterns = BTreeSet::new();
    for path in files(&root().join("crates"), "rs") {
        let text = fs::read_to_string(&path).unwrap();
        for string in Source::parse(&text).strings {
            let tail = string.rsplit_once("golden/").map_or(string.as_str(), |(_, tail)| tail);
            let tail = globbed(tail);
            let is_path = tail.contains('.') && !tail.contains([' ', '\n', '\\', '{']);
            if is_path && (string.contains("golden") || text.contains("golden")) {
                patterns.insert(tail);
            }
        }
    }
    for (name, text) in tracked() {
        let Some((_, golden)) = name.split_once("tests/golden/") else { continue };
        // Not an input: it keeps git from changing the line ends of one.
        if golden == ".gitattributes" {
            continue;
        }
        if name.ends_with(".snap") {
            let field = |mark: &str| {
                let line = text.lines().take(8).find_map(|line| line.strip_prefix(mark));
                line.map(|path| root().join(path.trim()))
            };
            for path in [field("source: "), field("input_file: ")].into_iter().flatten() {
                assert!(path.exists(), "{name} belongs to {}, which is gone", relative(&path));
            }
        } else {
            let used =
                patterns.iter().any(|it| matches(it, golden) || golden.ends_with(it.as_str()));
            assert!(used, "no test uses {name}");
        }
    }
}

#[test]
fn the_readme_is_short_and_shows_both_commands() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.lines().count() < 150, "README.md is too long");
    let mut commands = readme.lines().filter(|line| line.starts_with("cargo "));
    assert_eq!(commands.next(), Some("cargo run --release -- serve"));
    assert!(commands.any(|line| line == "cargo xtask test"));
}

/// The name that a heading has in a link.
fn anchor(heading: &str) -> String {
    let heading = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = heading.chars().filter(|it| it.is_alphanumeric() || " -_".contains(*it));
    kept.map(|it| if it == ' ' { '-' } else { it }).collect()
}

#[test]
fn r171_links_in_documents_are_alive() {
    for (name, text) in tracked() {
        if !name.ends_with(".md") {
            continue;
        }
        let file = root().join(&name);
        let mut is_code = false;
        for line in text.lines() {
            is_code ^= line.trim_start().starts_with("```");
            for link in line.split("](").skip(1).filter(|_| !is_code) {
                let Some((link, _)) = link.split_once(')') else { continue };
                if link.contains("://") || link.starts_with("mailto:") {
                    continue;
                }
                let (path, heading) = link.split_once('#').unwrap_or((link, ""));
                let to = if path.is_empty() { file.clone() } else { beside(&file, path) };
                assert!(to.exists(), "{name} links to {link}, which is not there");
                if !heading.is_empty() {
                    let there = fs::read_to_string(&to).unwrap();
                    let mut headings = there.lines().filter(|line| line.starts_with('#'));
                    assert!(
                        headings.any(|it| anchor(it) == heading),
                        "{name} links to {link}, which has no such heading"
                    );
                }
            }
        }
    }
}

fn beside(file: &Path, path: &str) -> PathBuf {
    file.parent().unwrap().join(path)
}

/// The workspace's rules hold in every crate.
#[test]
fn every_crate_takes_the_workspaces_lints() {
    for (name, text) in tracked() {
        let is_crate = name.ends_with("/Cargo.toml") && !name.starts_with("fuzz/");
        if is_crate {
            assert!(text.contains("[lints]\nworkspace = true"), "{name} has lints of its own");
        }
    }
    let product = files(&root().join("crates"), "rs");
    for path in product.iter().filter(|path| !is_test_file(path)) {
        let code = Source::product(path).code;
        assert!(!code.contains("todo!("), "{} is unfinished", relative(path));
    }
}
