//! Seeds and dictionary for fuzzing, from the golden files.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::command::root;

/// Copies the golden files that suit a target into its corpus.
pub(crate) fn copy(target: &str, corpus: &Path, max_len: usize) -> anyhow::Result<()> {
    if target == "schema" {
        return write_schemas(corpus);
    }
    for (number, path) in golden_files()?.iter().enumerate() {
        if suits(target, path) && fs::metadata(path)?.len() <= max_len as u64 {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            fs::copy(path, corpus.join(format!("seed-{number}-{name}")))?;
        }
    }
    Ok(())
}

/// Writes each tool schema of the golden requests as an input.
fn write_schemas(corpus: &Path) -> anyhow::Result<()> {
    let mut number = 0;
    for path in golden_files()? {
        let text = String::from_utf8_lossy(&fs::read(path)?).into_owned();
        for (at, mark) in text.match_indices("\"input_schema\":") {
            if let Some(schema) = object(&text[at + mark.len()..]) {
                fs::write(corpus.join(format!("seed-{number}.json")), schema)?;
                number += 1;
            }
        }
    }
    Ok(())
}

/// Returns the object that `text` begins with. Strings in golden files have balanced braces.
fn object(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 1 => return text.get(..=at),
            b'}' => depth -= 1,
            _ if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// Writes the member names of all golden files as a dictionary.
pub(crate) fn write_dictionary(to: &Path) -> anyhow::Result<()> {
    let mut words = BTreeSet::new();
    for path in golden_files()? {
        let text = String::from_utf8_lossy(&fs::read(path)?).into_owned();
        let mut pieces = text.split('"').peekable();
        while let Some(piece) = pieces.next() {
            let is_name = pieces.peek().is_some_and(|next| next.trim_start().starts_with(':'));
            let is_plain = piece.bytes().all(|b| b.is_ascii_alphanumeric() || b"_$-".contains(&b));
            if is_name && is_plain && (2..40).contains(&piece.len()) {
                words.insert(piece.to_owned());
            }
        }
    }
    let mut dictionary = String::new();
    for token in TOKENS {
        writeln!(dictionary, "\"{token}\"")?;
    }
    for word in words {
        writeln!(dictionary, "\"\\\"{word}\\\":\"")?;
    }
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    Ok(fs::write(to, dictionary)?)
}

/// Tokens of JSON and event streams, in libFuzzer's escapes.
const TOKENS: &[&str] = &[
    "null",
    "true",
    "false",
    "{}",
    "[]",
    "\\\"",
    "\\\\u",
    "\\\\ud83d",
    "\\\\n",
    "-0",
    "1e9",
    "0.1",
    "data: ",
    "event: ",
    "\\x0a\\x0a",
    "\\x0d\\x0a",
    ": ",
];

fn suits(target: &str, path: &Path) -> bool {
    let name = path.to_string_lossy();
    let is = |extension: &str| path.extension().is_some_and(|it| it == extension);
    match target {
        "sse" => is("sse"),
        "stream" => is("sse") || (is("json") && name.contains("gemini")),
        "json" => is("json"),
        // `tools.<dialect>.json`, `request/hard.<dialect>.json`
        _ => target.strip_prefix("request_").is_some_and(|dialect| {
            let of = |kind: &str| name.ends_with(&format!("{kind}.{dialect}.json"));
            of("tools") || of("hard")
        }),
    }
}

fn golden_files() -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![root().join("crates/toolgate-core/tests/golden")];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}
