//! `cargo xtask language`: how far the comments are from plain technical English.
//!
//! The counts are thermometers: a low count does not make a comment good, a high one shows where to
//! look.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::bail;

use crate::command::root;
use crate::run::Verdict;
use crate::source;

/// Highest share of comment lines with a headless clause, in percent.
const MAX_HEADLESS_PERCENT: f64 = 1.0;
/// Highest share of comment lines with a person for a pronoun, in percent.
const MAX_PERSON_PERCENT: f64 = 0.1;
/// Highest number of types with the same name in a crate.
const MAX_TYPES_OF_A_NAME: usize = 2;

/// Folders of the core that each mirror one vendor's API. They have the same files, and a type of the
/// same name in several of them plays the same role in each (`StreamEncoder`, `Echo`, a mirror of the
/// vendor's `Tool`): a reader of one knows the others. Such types count once, as often as the folder
/// with the most of them has them.
const DIALECTS: [&str; 4] = ["anthropic", "chat", "gemini", "responses"];

/// `what` and one of these begin a clause without a noun.
const HEADLESS: [&str; 18] = [
    "a", "are", "became", "came", "comes", "goes", "has", "he", "is", "it", "may", "no", "the",
    "they", "was", "we", "were", "would",
];
const PERSONS: [&str; 8] =
    ["anybody", "everybody", "nobody", "nobody's", "somebody", "somebody's", "whoever", "whom"];
const SAYING: [&str; 4] = ["said", "say", "saying", "says"];

/// Counts of one crate.
#[derive(Debug, Default)]
struct Counts {
    lines: usize,
    headless: usize,
    persons: usize,
    saying: usize,
    types: BTreeMap<String, Definitions>,
}

/// Number of types with one name.
#[derive(Debug, Default, PartialEq, Eq)]
struct Definitions {
    elsewhere: usize,
    in_dialects: [usize; DIALECTS.len()],
}

impl Definitions {
    /// Adds a type that a file defines. `file` is relative to the crate.
    fn add(&mut self, file: &Path) {
        let folder = file.strip_prefix("src").ok().and_then(|it| it.iter().next());
        match DIALECTS.iter().position(|dialect| folder.is_some_and(|it| it == *dialect)) {
            Some(dialect) => self.in_dialects[dialect] += 1,
            None => self.elsewhere += 1,
        }
    }

    /// Number of meanings: see [`DIALECTS`].
    fn meanings(&self) -> usize {
        self.elsewhere + self.in_dialects.iter().max().unwrap_or(&0)
    }
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.lines += other.lines;
        self.headless += other.headless;
        self.persons += other.persons;
        self.saying += other.saying;
    }

    /// Names of more types than allowed.
    fn overused(&self) -> Vec<(&str, usize)> {
        let names = self.types.iter().map(|(name, types)| (name.as_str(), types.meanings()));
        names.filter(|(_, count)| *count > MAX_TYPES_OF_A_NAME).collect()
    }

    #[expect(clippy::cast_precision_loss, reason = "line counts are small")]
    fn percent(&self, count: usize) -> f64 {
        if self.lines == 0 { 0.0 } else { 100.0 * count as f64 / self.lines as f64 }
    }

    fn is_plain(&self) -> bool {
        self.percent(self.headless) < MAX_HEADLESS_PERCENT
            && self.percent(self.persons) < MAX_PERSON_PERCENT
            && self.overused().is_empty()
    }
}

/// Prints the counts of every crate. `--lines` prints the lines too, `--strict` fails above a limit,
/// and a name selects a crate.
pub(crate) fn language(options: &[&str]) -> anyhow::Result<Verdict> {
    let (mut shows_lines, mut is_strict, mut wanted) = (false, false, Vec::new());
    for option in options {
        match *option {
            "--lines" => shows_lines = true,
            "--strict" => is_strict = true,
            flag if flag.starts_with('-') => bail!("unknown option `{flag}`"),
            name => wanted.push(name),
        }
    }
    let mut folders: Vec<_> =
        source::crates()?.into_iter().map(|member| (member.name, member.folder)).collect();
    folders.push(("clients".to_owned(), root().join("clients")));
    folders.push(("scripts".to_owned(), root().join("scripts")));
    folders.retain(|(name, _)| wanted.is_empty() || wanted.contains(&name.as_str()));

    let mut table = String::new();
    let mut total = Counts::default();
    let mut failed = Vec::new();
    for (name, folder) in folders {
        let counts = count(&folder, shows_lines)?;
        row(&mut table, &name, &counts)?;
        for (name, count) in counts.overused() {
            writeln!(table, "    {count} types are called {name}")?;
        }
        if !counts.is_plain() {
            failed.push(name);
        }
        total.add(&counts);
    }
    println!("{:<20} {:>8} {:>15} {:>15} {:>15}", "", "comments", "headless", "persons", "say");
    print!("{table}");
    let mut last = String::new();
    row(&mut last, "total", &total)?;
    print!("{last}");
    println!(
        "limits: headless {MAX_HEADLESS_PERCENT} %, persons {MAX_PERSON_PERCENT} %, \
         {MAX_TYPES_OF_A_NAME} types of a name"
    );
    if is_strict && !failed.is_empty() {
        bail!("above a limit: {}", failed.join(", "));
    }
    Ok(Verdict::Passed)
}

fn row(out: &mut String, name: &str, counts: &Counts) -> anyhow::Result<()> {
    write!(out, "{name:<20} {:>8}", counts.lines)?;
    for count in [counts.headless, counts.persons, counts.saying] {
        write!(out, " {count:>6} {:>6.2} %", counts.percent(count))?;
    }
    writeln!(out)?;
    Ok(())
}

fn count(folder: &Path, shows_lines: bool) -> anyhow::Result<Counts> {
    let mut counts = Counts::default();
    for path in source::files(folder, &["rs", "py", "mjs"])? {
        let text = fs::read_to_string(&path)?;
        let is_rust = path.extension().is_some_and(|it| it == "rs");
        for (number, line) in comment_lines(&path, &text) {
            let found = faults(line);
            counts.lines += 1;
            counts.headless += usize::from(found.headless);
            counts.persons += usize::from(found.person);
            counts.saying += usize::from(found.saying);
            if shows_lines && (found.headless || found.person || found.saying) {
                let name = path.strip_prefix(root()).unwrap_or(&path).display();
                println!("{name}:{}: {}", number + 1, line.trim());
            }
        }
        let file = path.strip_prefix(folder).unwrap_or(&path);
        if is_rust && !source::is_test_file(file) {
            for name in types(source::split_tests(&text).0) {
                counts.types.entry(name.to_owned()).or_default().add(file);
            }
        }
    }
    Ok(counts)
}

/// Comment lines with their numbers: `//` in Rust and JavaScript, `#` and docstrings in Python.
fn comment_lines<'t>(path: &Path, text: &'t str) -> Vec<(usize, &'t str)> {
    let is_python = path.extension().is_some_and(|it| it == "py");
    let mut is_inside = false;
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let marks = if is_python { line.matches("\"\"\"").count() } else { 0 };
        let starts = marks > 0 && line.trim_start().starts_with("\"\"\"");
        let is_comment = if is_python {
            is_inside || starts || line.trim_start().starts_with('#')
        } else {
            source::is_comment(line)
        };
        if is_comment {
            found.push((number, line));
        }
        // A string that begins in the middle of a line is data.
        if marks % 2 == 1 && (is_inside || starts) {
            is_inside = !is_inside;
        }
    }
    found
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Faults {
    headless: bool,
    person: bool,
    saying: bool,
}

fn faults(line: &str) -> Faults {
    let lower = line.to_lowercase();
    let words: Vec<&str> = lower
        .split(|it: char| !it.is_alphanumeric() && it != '\'')
        .filter(|word| !word.is_empty())
        .collect();
    Faults {
        headless: words.windows(2).any(|pair| pair[0] == "what" && HEADLESS.contains(&pair[1])),
        person: words.iter().any(|word| PERSONS.contains(word)),
        saying: words.iter().any(|word| SAYING.contains(word)),
    }
}

/// Names of the types that a file defines, at any depth. Associated types are not definitions.
fn types(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace().filter(|word| !word.starts_with("pub"));
        let is_alias = line.starts_with("type ") || line.starts_with("pub");
        match (words.next(), words.next()) {
            (Some("struct" | "enum" | "trait" | "union"), Some(name)) => found.push(name),
            (Some("type"), Some(name)) if is_alias => found.push(name),
            _ => continue,
        }
        if let Some(name) = found.last_mut() {
            *name = name.split(|it: char| !it.is_alphanumeric() && it != '_').next().unwrap_or("");
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_found_by_word() {
        let check = |line: &str, want: (bool, bool, bool)| {
            let Faults { headless, person, saying } = faults(line);
            assert_eq!((headless, person, saying), want, "{line}");
        };
        check("/// What is kept of a turn.", (true, false, false));
        check("// nobody's business, they said", (false, true, true));
        check("/// Returns the essay that whatever is in the file.", (false, false, false));
        check("/// What `name` means.", (false, false, false));
    }

    #[test]
    fn types_are_counted_where_they_are_defined() {
        let text = "pub(crate) struct A<'a> {\nimpl B for A {\n    type Item = u8;\n}\n    enum C {}\ntype D = A;\n";
        assert_eq!(types(text), ["A", "C", "D"]);
    }

    #[test]
    fn one_role_in_each_dialect_counts_once() {
        let meanings = |files: &[&str]| {
            let mut types = Definitions::default();
            files.iter().for_each(|file| types.add(Path::new(file)));
            types.meanings()
        };
        assert_eq!(meanings(&["src/chat/wire.rs", "src/gemini/wire.rs", "src/canon/tool.rs"]), 2);
        assert_eq!(
            meanings(&["src/chat/wire.rs", "src/chat/response.rs", "src/gemini/wire.rs"]),
            2
        );
        assert_eq!(meanings(&["src/sse.rs", "src/canon/a.rs", "src/upstream/chat/a.rs"]), 3);
    }

    #[test]
    fn docstrings_are_comments_and_strings_are_not() {
        let text = "\"\"\"Doc.\nMore.\n\"\"\"\nx = \"\"\"no\nno\"\"\"\n# yes\n";
        let numbers: Vec<_> =
            comment_lines(Path::new("a.py"), text).into_iter().map(|(number, _)| number).collect();
        assert_eq!(numbers, [0, 1, 2, 5]);
    }
}
