//! Numbers as schemas have them: text, floats that mean integers, numbers in strings.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::node::Number;
use super::tree::{Shape, Tree};

/// Longer numbers are written as the nearest float.
const MAX_DIGITS: usize = 400;

impl<'t> Number<'t> {
    /// A number, also one that stands in a string (`"10"`). `None` where there is none, or one
    /// that no parser can hold.
    pub(super) fn read(tree: &'t Tree<'t>) -> Option<Self> {
        let text = match &tree.shape {
            Shape::Number => tree.text,
            Shape::String(text) => text.trim(),
            Shape::Null | Shape::Bool(_) | Shape::Array(_) | Shape::Object(_) | Shape::TooDeep => {
                return None;
            }
        };
        Self::of(text)
    }

    /// The number that a text says, if it says one.
    pub(super) fn of(text: &'t str) -> Option<Self> {
        if !is_json_number(text) || !text.parse::<f64>().is_ok_and(f64::is_finite) {
            return None;
        }
        // No float has so many digits that matter; comparing numbers reads all of them.
        if text.len() > MAX_DIGITS {
            return Some(Self(Cow::Owned(text.parse::<f64>().unwrap_or(0.0).to_string())));
        }
        let number = Self(Cow::Borrowed(text));
        // `10.0` and `1e1` are said as `10`.
        match number.as_integer() {
            Some(integer) if text.contains(['.', 'e', 'E']) => Some(Self::from(integer)),
            Some(_) | None => Some(number),
        }
    }

    pub(super) fn as_f64(&self) -> f64 {
        self.0.parse().unwrap_or(0.0)
    }

    /// The integer that this number is, if it is one.
    pub(super) fn as_integer(&self) -> Option<i128> {
        if let Ok(integer) = self.0.parse::<i128>() {
            return Some(integer);
        }
        let float = self.as_f64();
        // Below 2^53 a float says exactly which integer it is.
        #[expect(clippy::cast_possible_truncation, reason = "checked to be small and integral")]
        (float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0).then_some(float as i128)
    }

    pub(super) fn is_integral(&self) -> bool {
        self.as_integer().is_some() || self.as_f64().fract() == 0.0
    }

    /// The least integer that is not below this number.
    pub(super) fn ceil(&self) -> Option<i128> {
        self.as_integer().or_else(|| small_integer(self.as_f64().ceil()))
    }

    /// The greatest integer that is not above this number.
    pub(super) fn floor(&self) -> Option<i128> {
        self.as_integer().or_else(|| small_integer(self.as_f64().floor()))
    }

    pub(super) fn compare(&self, other: &Self) -> Ordering {
        match (self.as_integer(), other.as_integer()) {
            (Some(a), Some(b)) => a.cmp(&b),
            (Some(_) | None, _) => {
                self.as_f64().partial_cmp(&other.as_f64()).unwrap_or(Ordering::Equal)
            }
        }
    }
}

impl From<i128> for Number<'_> {
    fn from(integer: i128) -> Self {
        Self(Cow::Owned(integer.to_string()))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "checked to be small")]
fn small_integer(float: f64) -> Option<i128> {
    (float.abs() < 9_007_199_254_740_992.0).then_some(float as i128)
}

/// How a number of items, characters or properties was given.
pub(super) enum Count {
    Good(u64),
    /// More than anything can have, or fewer than none: it says nothing.
    Boundless,
    Bad,
}

/// Reads the least (`up`) or greatest number of something.
pub(super) fn count(tree: &Tree<'_>, up: bool) -> Count {
    let Some(number) = Number::read(tree) else { return Count::Bad };
    let whole = if up { number.ceil() } else { number.floor() };
    match whole {
        Some(whole) if whole < 0 && up => Count::Boundless,
        Some(whole) if whole < 0 => Count::Bad,
        // `int64` upstream.
        Some(whole) => match i64::try_from(whole).map(i64::unsigned_abs) {
            Ok(whole) => Count::Good(whole),
            Err(_) if up => Count::Bad,
            Err(_) => Count::Boundless,
        },
        None if up => Count::Bad,
        None => Count::Boundless,
    }
}

fn is_json_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => {
            (mantissa, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)))
        }
        None => (digits, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    all_digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(all_digits)
        && exponent.is_none_or(all_digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, want: Option<&str>) {
        let tree = Tree::parse(json);
        assert_eq!(Number::read(&tree).map(|it| it.0.into_owned()).as_deref(), want, "{json}");
    }

    #[test]
    fn a16_numbers_in_any_spelling() {
        check("10", Some("10"));
        check("1.0", Some("1"));
        check("1e3", Some("1000"));
        check("1.5", Some("1.5"));
        check(r#""10""#, Some("10"));
        check(r#"" 2.50 ""#, Some("2.50"));
        check("9223372036854775808", Some("9223372036854775808"));
        check("123456789012345678901234567890", Some("123456789012345678901234567890"));
        check("1e400", None);
        check(r#""0x10""#, None);
        check(r#""007""#, None);
        check(r#""NaN""#, None);
        check("true", None);
    }

    #[test]
    fn a16_counts() {
        let good = |json: &str, up| match count(&Tree::parse(json), up) {
            Count::Good(count) => Some(count),
            Count::Boundless | Count::Bad => None,
        };
        assert_eq!(good("1.0", true), Some(1));
        assert_eq!(good("\"10\"", false), Some(10));
        assert_eq!(good("1.5", true), Some(2));
        assert_eq!(good("1.5", false), Some(1));
        assert_eq!(good("-1", true), None);
        assert_eq!(good("9223372036854775807", false), Some(9_223_372_036_854_775_807));
        assert!(matches!(count(&Tree::parse("9223372036854775808"), false), Count::Boundless));
        assert!(matches!(count(&Tree::parse("[]"), false), Count::Bad));
    }
}
