//! Reading the repository's own source.

use std::fs;
use std::path::{Path, PathBuf};

/// The repository.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap().to_owned()
}

/// Every file below `folder` with this extension, in order, except build output.
pub fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if name != "target" && name != "node_modules" && !name.starts_with('.') {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|it| it == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The path as the repository knows it.
pub fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).to_string_lossy().replace('\\', "/")
}

/// A Rust file, read apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// The code: comments gone, every string emptied.
    pub code: String,
    /// What stands in string literals, as it is written.
    pub strings: Vec<String>,
}

impl Source {
    /// Reads Rust apart, well enough for searching.
    pub fn parse(text: &str) -> Self {
        let mut source = Self::default();
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            let taken = if rest.starts_with("//") {
                rest.find('\n').unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                block_comment(rest)
            } else if let Some((open, close)) = string_marks(rest) {
                let body = &rest[open..];
                let end = if close == "\"" { plain_end(body) } else { body.find(&close) };
                let end = end.unwrap_or(body.len());
                source.strings.push(body[..end].to_owned());
                source.code.push_str("\"\"");
                (open + end + close.len()).min(rest.len())
            } else if let Some(length) = character(rest) {
                source.code.push_str("' '");
                length
            } else {
                source.code.push(next);
                next.len_utf8()
            };
            rest = &rest[taken..];
        }
        source
    }

    /// Reads a file, without its tests: what follows `#[cfg(test)]` is not the product.
    pub fn product(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap();
        let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
        Self::parse(&text[..end])
    }
}

/// Whether a file of `src/` holds tests only.
pub fn is_test_file(path: &Path) -> bool {
    path.components().any(|it| it.as_os_str() == "tests") || path.ends_with("tests.rs")
}

fn block_comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// How long the opening of a string is, and what closes it.
fn string_marks(text: &str) -> Option<(usize, String)> {
    let bare = text.trim_start_matches(['b', 'c']);
    let prefix = text.len() - bare.len();
    if prefix > 1 {
        return None;
    }
    if bare.starts_with('"') {
        return Some((prefix + 1, "\"".to_owned()));
    }
    let hashes = bare.strip_prefix('r')?;
    let count = hashes.len() - hashes.trim_start_matches('#').len();
    let opens = hashes[count..].starts_with('"');
    opens.then(|| (prefix + 1 + count + 1, format!("\"{}", "#".repeat(count))))
}

fn plain_end(body: &str) -> Option<usize> {
    let mut escaped = false;
    body.char_indices().find_map(|(at, next)| {
        let ends = next == '"' && !escaped;
        escaped = next == '\\' && !escaped;
        ends.then_some(at)
    })
}

/// How long a character literal is; a lifetime is none.
fn character(text: &str) -> Option<usize> {
    let body = text.strip_prefix('\'')?;
    let end = if body.starts_with('\\') {
        body.char_indices().skip(2).find(|(_, it)| *it == '\'')?.0
    } else {
        let first = body.chars().next()?.len_utf8();
        body[first..].starts_with('\'').then_some(first)?
    };
    Some(1 + end + 1)
}
