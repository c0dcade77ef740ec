//! Rust files, split into code, comments and tests.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::command::root;

/// Crate of the repository: a folder with a manifest.
#[derive(Debug)]
pub(crate) struct Crate {
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
}

/// Every crate: `crates/*`, `xtask` and `fuzz`.
pub(crate) fn crates() -> anyhow::Result<Vec<Crate>> {
    let mut folders = vec![root().join("xtask"), root().join("fuzz")];
    for entry in fs::read_dir(root().join("crates"))? {
        folders.push(entry?.path());
    }
    folders.sort();
    let named = folders.into_iter().filter(|folder| folder.join("Cargo.toml").exists());
    Ok(named
        .map(|folder| Crate {
            name: folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            folder,
        })
        .collect())
}

/// Every file below `folder` with one of these extensions, sorted. Build output is left out.
pub(crate) fn files(folder: &Path, extensions: &[&str]) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                if name != "target" && name != "node_modules" && !name.starts_with('.') {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|it| extensions.iter().any(|known| it == *known))
            {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Line counts of a file, a module or a crate. Blank lines are not counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lines {
    pub(crate) code: usize,
    pub(crate) comments: usize,
    /// Code and comments of tests.
    pub(crate) tests: usize,
}

impl std::ops::AddAssign for Lines {
    fn add_assign(&mut self, other: Self) {
        self.code += other.code;
        self.comments += other.comments;
        self.tests += other.tests;
    }
}

/// Whether a file holds only tests, benches or examples.
pub(crate) fn is_test_file(path: &Path) -> bool {
    let is_in = |folder: &str| path.components().any(|it| it.as_os_str() == folder);
    is_in("tests") || is_in("benches") || is_in("examples") || path.ends_with("tests.rs")
}

/// Text before the inline test module, and the test module.
pub(crate) fn split_tests(text: &str) -> (&str, &str) {
    text.split_at(text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len()))
}

/// Whether a line is a comment and nothing else.
pub(crate) fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

/// Counts the lines of a Rust file.
pub(crate) fn count(path: &Path, text: &str) -> Lines {
    let filled = |text: &str| text.lines().filter(|line| !line.trim().is_empty()).count();
    if is_test_file(path) {
        return Lines { tests: filled(text), ..Lines::default() };
    }
    let (product, tests) = split_tests(text);
    let comments = product.lines().filter(|line| is_comment(line)).count();
    Lines { code: filled(product) - comments, comments, tests: filled(tests) }
}

/// Code without comments, and with every string and character literal emptied.
pub(crate) fn code(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let taken = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |at| at + 2)
        } else if let Some(length) = raw_string(rest) {
            length
        } else if next == '"' {
            1 + quoted(&rest[1..], '"')
        } else if let Some(length) = character(rest) {
            length
        } else {
            out.push(next);
            next.len_utf8()
        };
        rest = &rest[taken..];
    }
    out
}

/// Length of a string body with its closing quote.
fn quoted(body: &str, quote: char) -> usize {
    let mut is_escaped = false;
    let end = body.char_indices().find(|(_, letter)| {
        let ends = *letter == quote && !is_escaped;
        is_escaped = *letter == '\\' && !is_escaped;
        ends
    });
    end.map_or(body.len(), |(at, _)| at + 1)
}

/// Length of the raw string that `text` begins with.
fn raw_string(text: &str) -> Option<usize> {
    let body = text.strip_prefix("r").or_else(|| text.strip_prefix("br"))?;
    let hashes = body.len() - body.trim_start_matches('#').len();
    let inner = body[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let end = inner.find(&close).map_or(inner.len(), |at| at + close.len());
    Some(text.len() - inner.len() + end)
}

/// Length of the character literal that `text` begins with. A lifetime is not one.
fn character(text: &str) -> Option<usize> {
    let body = text.strip_prefix('\'')?;
    if body.starts_with('\\') {
        return Some(1 + quoted(body, '\''));
    }
    let length = body.chars().next()?.len_utf8();
    body[length..].starts_with('\'').then_some(length + 2)
}

/// Every path in `code` that begins with `start` (`crate::`), with groups expanded.
pub(crate) fn paths(code: &str, start: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices(start) {
        let before = code[..at].chars().next_back();
        if before.is_none_or(|it| !(it.is_alphanumeric() || it == '_' || it == ':')) {
            expand("", &code[at..], &mut found);
        }
    }
    found
}

/// Adds the path, or the group of paths, that `text` begins with. Returns its length.
fn expand(prefix: &str, text: &str, found: &mut Vec<String>) -> usize {
    let is_part = |it: char| it.is_alphanumeric() || it == '_' || it == ':';
    let end = text.find(|it| !is_part(it)).unwrap_or(text.len());
    let path = format!("{prefix}{}", &text[..end]);
    if !(path.ends_with("::") && text[end..].starts_with('{')) {
        found.push(path);
        return end;
    }
    let mut at = end + 1;
    loop {
        at += text[at..].len() - text[at..].trim_start_matches([' ', ',', '\n']).len();
        match text[at..].chars().next() {
            None => return at,
            Some('}') => return at + 1,
            Some(_) => {
                let taken = expand(&path, &text[at..], found);
                let rest = &text[at + taken..];
                // Skips ` as name`; the step is never zero, so the loop ends.
                at += (taken + rest.find([',', '}']).unwrap_or(rest.len())).max(1);
            }
        }
        if at >= text.len() {
            return text.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_imports_are_expanded() {
        let code = "use crate::{a, b::{self, C as D},\n  e::F}; crate::g::h(); mycrate::x";
        let want = ["crate::a", "crate::b::self", "crate::b::C", "crate::e::F", "crate::g::h"];
        assert_eq!(paths(code, "crate::"), want);
    }

    #[test]
    fn comments_and_literals_are_not_code() {
        let text = "a // crate::b\n\"crate::c\\\"\" r#\"crate::d\"# '\"' 'x' &'e f";
        assert_eq!(code(text), "a \n    &'e f");
    }

    #[test]
    fn lines_are_counted_by_kind() {
        let text = "//! Doc.\n\nfn f() {} // code\n\n#[cfg(test)]\nmod tests {\n    // x\n}\n";
        let lines = count(Path::new("src/a.rs"), text);
        assert_eq!((lines.code, lines.comments, lines.tests), (1, 1, 4));
        let lines = count(Path::new("tests/a.rs"), text);
        assert_eq!((lines.code, lines.comments, lines.tests), (0, 0, 6));
    }
}
