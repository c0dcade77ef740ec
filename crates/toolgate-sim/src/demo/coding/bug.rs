//! Bugs that can be told from the text of a program and its tests.

use super::expression::{evaluate, mutations};
use super::source::{Definition, Source};
use crate::demo::choose::name_words;

/// Names of functions and the operator that they promise.
const PROMISES: &[(&[&str], char)] = &[
    (&["add", "sum", "plus", "total"], '+'),
    (&["subtract", "sub", "minus", "difference"], '-'),
    (&["multiply", "mul", "times", "product"], '*'),
    (&["divide", "div", "quotient"], '/'),
    (&["modulo", "mod", "remainder"], '%'),
];
/// Most lines of a function that are looked at.
const MAX_BODY_LINES: usize = 40;
/// Most lines that a change quotes as context.
const MAX_CONTEXT_LINES: usize = 8;

/// A change to a file that fixes a bug.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fix {
    pub(super) path: String,
    pub(super) function: String,
    /// Lines from the function's head to the faulty one.
    pub(super) old: String,
    pub(super) new: String,
    /// The faulty line and its replacement.
    pub(super) line: (String, String),
}

/// Finds the first bug in `sources`; calls in any of `tests` are examples of right results.
pub(super) fn find(sources: &[&Source], tests: &[&Source]) -> Option<Fix> {
    sources.iter().find_map(|source| {
        let definitions = source.definitions();
        let starts = definitions.iter().map(|it| it.line).skip(1).chain([usize::MAX]);
        definitions.iter().zip(starts).find_map(|(definition, end)| {
            let examples: Vec<_> =
                tests.iter().flat_map(|test| examples(&test.text, definition)).collect();
            in_function(source, definition, end, &examples)
        })
    })
}

fn in_function(
    source: &Source,
    definition: &Definition,
    end: usize,
    examples: &[Example],
) -> Option<Fix> {
    let lines = source.lines();
    let end = end.min(lines.len()).min(definition.line + MAX_BODY_LINES);
    for at in definition.line..end {
        let line = lines.get(at)?;
        let fixed = commented(line)
            .or_else(|| by_examples(line, definition, examples))
            .or_else(|| by_name(line, definition, examples))
            .or_else(|| beyond_the_end(line));
        let Some(fixed) = fixed.filter(|fixed| fixed != line) else { continue };
        let first = if at - definition.line < MAX_CONTEXT_LINES { definition.line } else { at };
        let context = lines.get(first..at)?;
        let joined = |last: &str| [context, &[last]].concat().join("\n");
        return Some(Fix {
            path: source.path.clone(),
            function: definition.name.clone(),
            old: joined(line),
            new: joined(&fixed),
            line: (line.trim().to_owned(), fixed.trim().to_owned()),
        });
    }
    None
}

/// A call in a test with the result that it must have.
type Example = (Vec<f64>, f64);

/// `add(2, 3) == 5`, `assertEqual(add(2, 3), 5)`, `expect(add(2, 3)).toBe(5)`.
fn examples(text: &str, definition: &Definition) -> Vec<Example> {
    let call = format!("{}(", definition.name);
    let mut found = Vec::new();
    for (at, _) in text.match_indices(&call) {
        let Some((inside, rest)) = text[at + call.len()..].split_once(')') else { continue };
        let arguments: Option<Vec<f64>> =
            inside.split(',').map(|argument| argument.trim().parse().ok()).collect();
        let line = rest.lines().next().unwrap_or("");
        let start = line.find(|c: char| c.is_ascii_digit() || c == '-');
        let Some((arguments, start)) = arguments.zip(start) else { continue };
        let between = line[..start].to_lowercase();
        let compares = ["==", ",", "tobe(", "toequal(", "equal("];
        let is_negated = between.contains("!=") || between.contains("not");
        let number = &line[start..];
        let end = number[1..].find(|c: char| !c.is_ascii_digit() && c != '.');
        let number = number[..end.map_or(number.len(), |end| end + 1)].trim_end_matches('.');
        if let Ok(result) = number.parse()
            && compares.iter().any(|it| between.contains(it))
            && !is_negated
            && arguments.len() == definition.parameters.len()
        {
            found.push((arguments, result));
        }
    }
    found
}

/// Expression that a line returns, with the text before and after.
fn returned(line: &str) -> Option<(&str, &str, &str)> {
    let start = match line.find("return ") {
        Some(at) => at + "return ".len(),
        None => line.find("=> ").map(|at| at + "=> ".len())?,
    };
    let rest = &line[start..];
    let end = rest.find([';', '#', '}']).or_else(|| rest.find("//")).unwrap_or(rest.len());
    let expression = rest[..end].trim_end();
    Some((&line[..start], expression, &rest[expression.len()..]))
}

fn holds(expression: &str, definition: &Definition, examples: &[Example]) -> Option<bool> {
    let results = examples.iter().map(|(arguments, result)| {
        let names = definition.parameters.iter().map(String::as_str);
        let values: Vec<_> = names.zip(arguments.iter().copied()).collect();
        evaluate(expression, &values).map(|value| (value - result).abs() < 1e-9)
    });
    results.collect::<Option<Vec<_>>>().map(|all| all.into_iter().all(|it| it))
}

/// The operator with which all examples hold, where they do not hold now.
fn by_examples(line: &str, definition: &Definition, examples: &[Example]) -> Option<String> {
    let (before, expression, after) = returned(line)?;
    if examples.is_empty() || holds(expression, definition, examples)? {
        return None;
    }
    let right = |it: &String| holds(it, definition, examples) == Some(true);
    mutations(expression).find(right).map(|it| format!("{before}{it}{after}"))
}

/// The operator that the function's name promises, where there are no examples.
fn by_name(line: &str, definition: &Definition, examples: &[Example]) -> Option<String> {
    let (before, expression, after) = returned(line)?;
    let words = name_words(&definition.name);
    let is_named = |names: &[&str]| words.iter().any(|word| names.contains(&word.as_str()));
    for (name, other, right) in [("even", "1", "0"), ("odd", "0", "1")] {
        let wrong = format!("% 2 == {other}");
        if is_named(&[name]) && expression.ends_with(&wrong) {
            return Some(line.replace(&wrong, &format!("% 2 == {right}")));
        }
    }
    let (_, promised) = PROMISES.iter().find(|(names, _)| is_named(names))?;
    let [left, operator, right] = expression.split(' ').collect::<Vec<_>>()[..] else {
        return None;
    };
    let is_operand = |it: &str| definition.parameters.iter().any(|parameter| parameter == it);
    let swaps = ["+", "-", "*", "/", "%"].contains(&operator) && operator != promised.to_string();
    (examples.is_empty() && swaps && is_operand(left) && is_operand(right))
        .then(|| format!("{before}{left} {promised} {right}{after}"))
}

/// A comment that says how the line should be: `return a - b  # BUG: should be a + b`.
fn commented(line: &str) -> Option<String> {
    let (before, expression, after) = returned(line)?;
    let (_, right) = after.split_once("should be ")?;
    let right = right.trim().trim_end_matches('.').trim_matches('`');
    let right = right.strip_prefix("return ").unwrap_or(right);
    let end = if after.trim_start().starts_with(';') { ";" } else { "" };
    (!right.is_empty() && right != expression).then(|| format!("{before}{right}{end}"))
}

/// A loop or index that goes one too far.
fn beyond_the_end(line: &str) -> Option<String> {
    if let Some((before, rest)) = line.split_once("<= ")
        && before.trim_start().starts_with("for ")
        && rest.split([';', ')', '{']).next()?.trim().ends_with(".length")
    {
        return Some(format!("{before}< {rest}"));
    }
    let (before, rest) = line.split_once("range(len(")?;
    let (inside, rest) = rest.split_once(") + 1)")?;
    Some(format!("{before}range(len({inside})){rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(code: &str, test: &str, want: Option<&str>) {
        let (code, test) = (Source::new("calc", code), Source::new("test", test));
        let fix = find(&[&code], &[&test]);
        assert_eq!(fix.as_ref().map(|fix| fix.line.1.as_str()), want, "{}", code.text);
        if let Some(fix) = fix {
            assert!(code.text.contains(&fix.old), "{}", fix.old);
        }
    }

    #[test]
    fn bugs_are_found() {
        let python = "def add(a, b):\n    return a - b\n\ndef sub(a, b):\n    return a - b\n";
        check(python, "", Some("return a + b"));
        check(python, "assert add(2, 3) == 5", Some("return a + b"));
        let odd = "def combine(a, b):\n    \"\"\"Combine.\"\"\"\n    return (a + b) * 2\n";
        check(odd, "self.assertEqual(combine(5, 3), 4)", Some("return (a - b) * 2"));
        check(odd, "assert combine(2, 3) == 10", None);
        check(
            "function add(a, b) {\n  return a * b;\n}",
            "expect(add(2, 3)).toBe(5)",
            Some("return a + b;"),
        );
        check("const add = (a, b) => a - b;", "", Some("const add = (a, b) => a + b;"));
        check(
            "fn f(a: i32) -> i32 {\n    return a; // BUG: should be a + 1\n}",
            "",
            Some("return a + 1;"),
        );
        check("def is_even(n):\n    return n % 2 == 1", "", Some("return n % 2 == 0"));
        check(
            "def total(xs):\n    for i in range(len(xs) + 1):\n        pass",
            "",
            Some("for i in range(len(xs)):"),
        );
        check(
            "function f(xs) {\n  for (let i = 0; i <= xs.length; i++) {}\n}",
            "",
            Some("for (let i = 0; i < xs.length; i++) {}"),
        );
        check("def add(a, b):\n    return a + b\n", "assert add(2, 3) == 5", None);
        check("def add(a):\n    return a +", "assert add(é) == ", None);
    }
}
