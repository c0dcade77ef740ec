//! Arithmetic expressions in source code.

/// Binary operators that bugs swap.
const OPERATORS: [char; 5] = ['+', '-', '*', '/', '%'];
/// Deepest nesting of parentheses.
const MAX_DEPTH: usize = 16;

/// Evaluates an expression over named values; `None` where it is anything else.
pub(super) fn evaluate(text: &str, values: &[(&str, f64)]) -> Option<f64> {
    let mut parser = Parser { rest: text.trim(), values, depth: 0 };
    let value = parser.sum()?;
    parser.rest.trim().is_empty().then_some(value)
}

/// The expression with each of its operators replaced by each of the others.
pub(super) fn mutations(text: &str) -> impl Iterator<Item = String> + '_ {
    let operators = text.char_indices().filter(|(at, operator)| {
        OPERATORS.contains(operator) && !text[..*at].trim_end().is_empty()
    });
    operators.flat_map(move |(at, operator)| {
        let others = OPERATORS.into_iter().filter(move |other| *other != operator);
        others.map(move |other| format!("{}{other}{}", &text[..at], &text[at + 1..]))
    })
}

struct Parser<'t> {
    rest: &'t str,
    values: &'t [(&'t str, f64)],
    depth: usize,
}

impl Parser<'_> {
    fn sum(&mut self) -> Option<f64> {
        let mut value = self.product()?;
        loop {
            match self.operator("+-") {
                Some('+') => value += self.product()?,
                Some(_) => value -= self.product()?,
                None => return Some(value),
            }
        }
    }

    fn product(&mut self) -> Option<f64> {
        let mut value = self.operand()?;
        loop {
            match self.operator("*/%") {
                Some('*') => value *= self.operand()?,
                Some('/') => value /= self.operand()?,
                Some(_) => value = value.rem_euclid(self.operand()?),
                None => return Some(value),
            }
        }
    }

    fn operator(&mut self, known: &str) -> Option<char> {
        self.rest = self.rest.trim_start();
        let operator = self.rest.chars().next().filter(|it| known.contains(*it))?;
        self.rest = &self.rest[1..];
        Some(operator)
    }

    fn operand(&mut self) -> Option<f64> {
        self.rest = self.rest.trim_start();
        if let Some(rest) = self.rest.strip_prefix('(') {
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                return None;
            }
            self.rest = rest;
            let value = self.sum()?;
            self.rest = self.rest.trim_start().strip_prefix(')')?;
            self.depth -= 1;
            return Some(value);
        }
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        let known = self.values.iter().find(|(name, _)| *name == word).map(|(_, value)| *value);
        known.or_else(|| word.parse().ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_evaluated_and_mutated() {
        let values = [("a", 2.0), ("b", 3.0)];
        for (text, want) in [
            ("a - b", Some(-1.0)),
            ("(a + b) * 2", Some(10.0)),
            ("a + b * 2", Some(8.0)),
            ("a / 0.5", Some(4.0)),
            ("a + c", None),
            ("a +", None),
            ("f(a)", None),
            ("", None),
        ] {
            assert_eq!(evaluate(text, &values), want, "{text}");
        }
        assert_eq!(evaluate(&"(".repeat(100_000), &values), None);
        let found: Vec<_> = mutations("a - b").collect();
        assert_eq!(found, ["a + b", "a * b", "a / b", "a % b"]);
    }
}
