//! The task in the user's text.

use crate::demo::prompt::Prompt;

/// Task that the user gives a coding agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Intent {
    /// Find a bug, change the code, run the tests.
    Fix,
    /// Read the code and bring the README up to date.
    Document,
    /// Run the tests.
    Test,
    /// Run this command.
    Run(String),
    /// Read the named files.
    Read,
    /// Write a new file.
    Create,
    /// Read the code and describe it.
    Review,
}

impl Intent {
    pub(super) fn of(prompt: &Prompt) -> Option<Self> {
        let has = |words: &[&str]| words.iter().any(|word| prompt.position_of(word).is_some());
        let has_path = !prompt.paths.is_empty();
        if has(&["fix", "debug", "repair", "bug", "failing", "broken"]) {
            return Some(Self::Fix);
        }
        let documents = has(&["readme", "documentation"]) || prompt.mentions("readme.md");
        if documents && has(&["update", "write", "improve", "add", "create", "refresh", "document"])
        {
            return Some(Self::Document);
        }
        if has(&["run", "execute"]) && has(&["test"]) && prompt.quoted.is_empty() && !has_path {
            return Some(Self::Test);
        }
        if let Some(command) = command(prompt) {
            return Some(Self::Run(command));
        }
        if has_path && has(&["read", "show", "open", "print", "cat"]) {
            return Some(Self::Read);
        }
        if has_path && has(&["write", "create"]) {
            return Some(Self::Create);
        }
        let subject = has(&["code", "project", "repository", "repo", "codebase", "folder", "file"]);
        let reviews =
            has(&["review", "explain", "describe", "summarize", "summarise", "understand", "look"]);
        (reviews && (subject || has_path)).then_some(Self::Review)
    }
}

/// The command after `run` or `execute`, or the quoted text there.
fn command(prompt: &Prompt) -> Option<String> {
    let lower = prompt.text.to_lowercase();
    let word = prompt.words.iter().find(|(_, word)| matches!(word.as_str(), "run" | "execute"));
    let (at, word) = word?;
    // Lower-casing may change lengths; then the position is that of another text.
    let rest = prompt.text.get(at + word.len()..).filter(|_| lower.len() == prompt.text.len())?;
    let rest = rest.trim_start();
    let mut rest = rest.strip_prefix("the command").unwrap_or(rest).trim_start_matches([':', ' ']);
    if let Some(quote @ ('`' | '"' | '\'')) = rest.chars().next() {
        let inside = rest[1..].split(quote).next()?.trim();
        return (!inside.is_empty()).then(|| inside.to_owned());
    }
    for end in [" and then ", " then ", " and ", ", ", "\n", "; "] {
        rest = rest.split(end).next().unwrap_or(rest);
    }
    let command = rest.trim().trim_end_matches(['.', '!', '?']);
    // "Run the script" is a sentence, not a command.
    let is_sentence = ["the ", "a ", "an ", "it", "my ", "this ", "all "]
        .iter()
        .any(|start| command.to_lowercase().starts_with(start));
    (!command.is_empty() && !is_sentence).then(|| command.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_recognised() {
        for (text, want) in [
            ("Read calc.py and fix the bug", Some(Intent::Fix)),
            ("review the code carefully and update readme", Some(Intent::Document)),
            ("Run ls", Some(Intent::Run("ls".into()))),
            ("Please run `git status -s` now.", Some(Intent::Run("git status -s".into()))),
            (
                "Execute python3 calc.py and tell me the result.",
                Some(Intent::Run("python3 calc.py".into())),
            ),
            ("Run the tests", Some(Intent::Test)),
            ("Show me src/main.rs", Some(Intent::Read)),
            ("Explain this project", Some(Intent::Review)),
            ("Create notes.txt with \"hello\"", Some(Intent::Create)),
            ("Run it", None),
            ("Hello", None),
            ("What is the weather in Tokyo?", None),
        ] {
            assert_eq!(Intent::of(&Prompt::new(text)), want, "{text}");
        }
    }
}
