//! The values that `enum` or `const` lists.

use crate::json::{Kind, Raw};

/// Few values are compared one by one.
const MAX_UNINDEXED: usize = 16;

/// Listed values, found without a scan where they are many.
#[derive(Clone, Debug, Default)]
pub(super) struct Listed {
    values: Vec<Raw<'static>>,
    /// The strings, sorted.
    strings: Vec<Box<str>>,
    /// The numbers, sorted.
    numbers: Vec<f64>,
    /// Positions of arrays and objects.
    data: Vec<usize>,
}

impl Listed {
    pub(super) fn new(values: Vec<Raw<'static>>) -> Self {
        let mut listed = Self { values, ..Self::default() };
        for (at, value) in listed.values.iter().enumerate() {
            match value.kind() {
                Kind::Array | Kind::Object => listed.data.push(at),
                Kind::String if listed.values.len() > MAX_UNINDEXED => {
                    let text = value.as_text().map(|text| text.decode().into_owned());
                    listed.strings.push(text.unwrap_or_default().into());
                }
                Kind::Number if listed.values.len() > MAX_UNINDEXED => {
                    listed.numbers.extend(value.get().parse::<f64>());
                }
                Kind::Bool | Kind::Null | Kind::Number | Kind::String => {}
            }
        }
        listed.strings.sort_unstable();
        listed.numbers.sort_by(f64::total_cmp);
        listed
    }

    pub(super) fn push_null(&mut self) {
        self.values.extend(Raw::parse("null".to_owned()));
    }

    pub(super) fn values(&self) -> &[Raw<'static>] {
        &self.values
    }

    /// The arrays and objects among them.
    pub(super) fn data(&self) -> impl Iterator<Item = &Raw<'static>> {
        self.data.iter().filter_map(|at| self.values.get(*at))
    }

    pub(super) fn has_string(&self, text: &str) -> bool {
        if self.values.len() > MAX_UNINDEXED {
            return self.strings.binary_search_by(|it| (**it).cmp(text)).is_ok();
        }
        self.values.iter().any(|it| it.as_text().is_some_and(|it| it.decode() == text))
    }

    pub(super) fn has_number(&self, text: &str) -> bool {
        let Ok(number) = text.parse::<f64>() else { return false };
        if self.values.len() > MAX_UNINDEXED {
            let from = self.numbers.partition_point(|it| *it < number);
            return self.numbers.get(from).is_some_and(|it| *it == number);
        }
        let numbers = self.values.iter().filter(|it| it.kind() == Kind::Number);
        numbers.filter_map(|it| it.get().parse::<f64>().ok()).any(|it| it == number)
    }

    /// Whether `true`, `false` or `null` is listed.
    pub(super) fn has_literal(&self, text: &str) -> bool {
        // The literals of a long list are rare; those of a short one are found at once.
        self.values.iter().any(|it| it.get() == text)
    }

    /// What comparing a literal, or every value, costs.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }
}
