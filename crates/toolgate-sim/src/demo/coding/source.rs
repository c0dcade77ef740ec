//! Files of a project as an agent's tools show them.

/// Endings of source files.
const SOURCE_ENDINGS: &[&str] = &[
    "py", "js", "mjs", "cjs", "ts", "jsx", "tsx", "rs", "go", "java", "rb", "c", "cc", "cpp", "h",
    "sh", "php", "cs", "swift", "kt",
];
/// Files that tell how a project is built.
const PROJECT_FILES: &[&str] = &["Cargo.toml", "package.json", "go.mod", "Makefile"];
/// Folders of other people's code.
const FOREIGN_FOLDERS: &[&str] = &["node_modules/", "target/", ".git/", ".venv/", "__pycache__/"];

/// A file that was read.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) path: String,
    pub(super) text: String,
}

/// A function in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Definition {
    pub(super) name: String,
    pub(super) parameters: Vec<String>,
    /// Index of its first line.
    pub(super) line: usize,
}

impl Source {
    /// Removes line numbers and tags that a read tool adds.
    pub(super) fn new(path: &str, shown: &str) -> Self {
        let shown = shown.split_once("Output:\n").map_or(shown, |(_, rest)| rest);
        let numbered = shown.lines().filter(|line| number_end(line).is_some()).count();
        let lines = shown.lines();
        let text: Vec<&str> = if numbered > 0 && numbered * 3 >= shown.lines().count() {
            lines.filter_map(|line| number_end(line).and_then(|end| line.get(end..))).collect()
        } else {
            lines.filter(|line| !is_tag(line)).collect()
        };
        Self { path: path.to_owned(), text: text.join("\n") }
    }

    pub(super) fn lines(&self) -> Vec<&str> {
        self.text.lines().collect()
    }

    /// Functions of the file, in order.
    pub(super) fn definitions(&self) -> Vec<Definition> {
        let lines = self.text.lines().enumerate();
        lines.filter_map(|(line, text)| definition(line, text)).collect()
    }
}

fn is_tag(line: &str) -> bool {
    let line = line.trim();
    line.starts_with('<') && line.ends_with('>') && !line.contains(' ')
}

/// End of a line number before a line: `  12→`, `12\t`, `00012| `, `12: `.
fn number_end(line: &str) -> Option<usize> {
    let start = line.len() - line.trim_start_matches(' ').len();
    let digits = line[start..].bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return None;
    }
    let rest = &line[start + digits..];
    let mark = ["→", "\t", "| ", "|", ": "].into_iter().find(|mark| rest.starts_with(mark))?;
    Some(start + digits + mark.len())
}

fn definition(line: usize, text: &str) -> Option<Definition> {
    let words = ["def ", "function ", "fn ", "func "];
    let code = text.trim_start();
    let code = ["export ", "default ", "pub ", "async ", "pub(crate) "]
        .into_iter()
        .fold(code, |code, word| code.strip_prefix(word).unwrap_or(code));
    let rest = words.iter().find_map(|word| code.strip_prefix(word));
    let (name, rest) = match rest {
        Some(rest) => rest.split_once('(')?,
        None => {
            let code = code.strip_prefix("const ").or_else(|| code.strip_prefix("let "))?;
            let (name, rest) = code.split_once('=')?;
            rest.contains("=>").then_some(())?;
            (name, rest.trim_start().strip_prefix('(')?)
        }
    };
    let name = name.trim();
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    let (parameters, _) = rest.split_once(')')?;
    let parameters = parameters
        .split(',')
        .map(|it| it.split([':', '=']).next().unwrap_or("").trim())
        .map(|it| it.split(' ').next().unwrap_or("").to_owned())
        .filter(|it| !it.is_empty())
        .collect();
    is_name.then(|| Definition { name: name.to_owned(), parameters, line })
}

/// File names in the output of a tool that lists files.
pub(super) fn listed(output: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for token in output.split(|c: char| c.is_whitespace() || ",\"'".contains(c)) {
        let path = token.strip_prefix("./").unwrap_or(token);
        let is_foreign = FOREIGN_FOLDERS.iter().any(|folder| path.contains(folder));
        let is_file = is_source(path) || is_readme(path) || PROJECT_FILES.contains(&name(path));
        if is_file && !is_foreign && !found.iter().any(|known| known == path) {
            found.push(path.to_owned());
        }
    }
    found
}

/// Last part of a path.
pub(super) fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

pub(super) fn ending(path: &str) -> &str {
    name(path).rsplit_once('.').map_or("", |(_, ending)| ending)
}

pub(super) fn is_source(path: &str) -> bool {
    SOURCE_ENDINGS.contains(&ending(path)) && !name(path).starts_with('.')
}

pub(super) fn is_readme(path: &str) -> bool {
    let lower = name(path).to_lowercase();
    lower == "readme" || lower.starts_with("readme.")
}

pub(super) fn is_test(path: &str) -> bool {
    is_source(path) && path.to_lowercase().contains("test")
}

/// The command that runs a project's tests; `None` where none can be told.
pub(super) fn test_command(listed: &[String], read: &[Source]) -> Option<String> {
    let has = |wanted: &str| listed.iter().any(|path| path == wanted);
    for (file, command) in
        [("Cargo.toml", "cargo test"), ("go.mod", "go test ./..."), ("package.json", "npm test")]
    {
        if has(file) {
            return Some(command.to_owned());
        }
    }
    let tests = listed.iter().chain(read.iter().map(|source| &source.path));
    let Some(test) = tests.into_iter().find(|path| is_test(path)) else {
        let source = read.iter().find(|source| is_source(&source.path))?;
        return script(&source.path);
    };
    let text = read.iter().find(|source| &source.path == test).map_or("", |source| &source.text);
    match ending(test) {
        "py" if text.contains("unittest") => {
            let module = test.trim_end_matches(".py").replace('/', ".");
            Some(format!("python3 -m unittest -v {module}"))
        }
        "py" if text.contains("def test") => Some(format!("python3 -m pytest -q {test}")),
        "js" | "mjs" | "cjs" if text.contains("node:test") => Some(format!("node --test {test}")),
        _ => script(test),
    }
}

/// The command that runs a file.
fn script(path: &str) -> Option<String> {
    let program = match ending(path) {
        "py" => "python3",
        "js" | "mjs" | "cjs" => "node",
        "sh" => "sh",
        "rb" => "ruby",
        _ => return None,
    };
    Some(format!("{program} {path}"))
}

/// Test functions without pytest.
pub(super) fn without_pytest(command: &str) -> Option<String> {
    let test = command.strip_prefix("python3 -m pytest -q ")?;
    Some(format!(
        "python3 -c \"import runpy; [f() for n, f in runpy.run_path('{test}').items() if n.startswith('test')]; print('all tests passed')\""
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_numbers_and_tags_are_removed() {
        let want = "def add(a, b):\n    return a - b";
        for shown in [
            "1\tdef add(a, b):\n2\t    return a - b",
            "     1→def add(a, b):\n     2→    return a - b\n\n<system-reminder>\nBe careful\n</system-reminder>",
            "<file>\n00001| def add(a, b):\n00002|     return a - b\n\n(End of file)\n</file>",
            "<content>\n1: def add(a, b):\n2:     return a - b\n</content>",
            "Chunk ID: 1\nProcess exited with code 0\nOutput:\ndef add(a, b):\n    return a - b\n",
            "def add(a, b):\n    return a - b\n",
        ] {
            assert_eq!(Source::new("calc.py", shown).text.trim_end(), want, "{shown}");
        }
    }

    #[test]
    fn files_and_functions_are_found() {
        let listing = "Directory listing for /w:\n[DIR] src\ncalc.py (123 bytes)\n./src/a.rs node_modules/x.js README.md";
        assert_eq!(listed(listing), ["calc.py", "src/a.rs", "README.md"]);
        for (line, name, parameters) in [
            ("def add(a, b=1):", "add", vec!["a", "b"]),
            ("pub fn add(a: i32, b: i32) -> i32 {", "add", vec!["a", "b"]),
            ("export function add(a, b) {", "add", vec!["a", "b"]),
            ("const add = (a, b) => a - b;", "add", vec!["a", "b"]),
            ("func Add(a int, b int) int {", "Add", vec!["a", "b"]),
        ] {
            let found = definition(0, line).unwrap();
            assert_eq!(
                (found.name.as_str(), found.parameters),
                (name, parameters.iter().map(ToString::to_string).collect()),
                "{line}"
            );
        }
    }

    #[test]
    fn tests_have_a_command() {
        let check = |files: &[(&str, &str)], want: Option<&str>| {
            let listed: Vec<_> = files.iter().map(|(path, _)| (*path).to_owned()).collect();
            let read: Vec<_> = files.iter().map(|(path, text)| Source::new(path, text)).collect();
            assert_eq!(test_command(&listed, &read).as_deref(), want, "{files:?}");
        };
        check(&[("Cargo.toml", ""), ("test.py", "")], Some("cargo test"));
        check(&[("calc.py", ""), ("test_calc.py", "assert 1")], Some("python3 test_calc.py"));
        check(&[("test_calc.py", "def test_a(): pass")], Some("python3 -m pytest -q test_calc.py"));
        check(
            &[("tests/test_a.py", "import unittest")],
            Some("python3 -m unittest -v tests.test_a"),
        );
        check(
            &[("calc.test.js", "import test from 'node:test'")],
            Some("node --test calc.test.js"),
        );
        check(&[("calc.py", "")], Some("python3 calc.py"));
        check(&[("calc.swift", "")], None);
    }
}
