//! Errors of the reader.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Expected, Unexpected};

use super::Kind;

/// Error of a text that cannot be read into a mirror.
///
/// Its `Display` never quotes the value at fault: that may be a whole prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// Path of the value at fault, as `messages[2].content`; empty for the whole text.
    pub at: String,
    /// Reason why that value cannot be read.
    pub problem: Problem,
    /// Line and column where reading stopped, as serde_json counts them; `None` where the text is
    /// only a part of the body, in which they would mislead.
    pub position: Option<(usize, usize)>,
}

/// Reason why a value cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The text is not JSON, or is nested too deeply.
    Syntax(Cow<'static, str>),
    /// The value is of another type than the mirror has.
    Type {
        /// Type of the value; `None` where it is no type of JSON.
        found: Option<Kind>,
        /// Description of the type that the mirror has, as `an integer`.
        expected: Cow<'static, str>,
    },
    /// The number does not fit the mirror's type.
    OutOfRange,
    /// The mirror would hold more array elements than a text of this length may have.
    TooManyElements,
    /// The mirror refuses the value, or a member is missing.
    Refused(String),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.problem)?;
        match self.position {
            Some((line, column)) => write!(f, " at line {line} column {column}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ReadError {}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(reason) => f.write_str(reason),
            Self::Type { found, expected } => {
                let found = found.map_or("something else", Kind::words);
                write!(f, "expected {expected}, found {found}")
            }
            Self::OutOfRange => f.write_str("the number is out of range"),
            Self::TooManyElements => write!(
                f,
                "too many elements: at most {}, and one more for each {} bytes",
                super::de::MAX_ELEMENTS,
                super::de::BYTES_PER_ELEMENT
            ),
            Self::Refused(reason) => f.write_str(reason),
        }
    }
}

/// Error of the deserializer. In a box: most results are no errors, and every result is moved often.
#[derive(Debug)]
pub(super) struct Error(pub(super) Box<Problem>);

impl Error {
    pub(super) fn syntax() -> Self {
        Self(Box::new(Problem::Syntax(Cow::Borrowed("not JSON"))))
    }

    /// Error for a value of another type than the mirror's.
    pub(super) fn of_type(found: Kind, expected: &'static str) -> Self {
        Self(Box::new(Problem::Type { found: Some(found), expected: Cow::Borrowed(expected) }))
    }

    /// The same error, with the JSON type in place of the name of the Rust type.
    pub(super) fn expecting(mut self, words: &'static str) -> Self {
        if let Problem::Type { expected, .. } = &mut *self.0 {
            *expected = Cow::Borrowed(words);
        }
        self
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Self(Box::new(problem))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Error {}

impl de::Error for Error {
    fn custom<T: fmt::Display>(reason: T) -> Self {
        Problem::Refused(reason.to_string()).into()
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let expected = Cow::Owned(expected.to_string());
        Problem::Type { found: kind_of(&found), expected }.into()
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        match kind_of(&found) {
            Some(Kind::Number) => Problem::OutOfRange.into(),
            _ => Self::invalid_type(found, expected),
        }
    }
}

/// JSON type of a value that serde did not expect.
fn kind_of(value: &Unexpected<'_>) -> Option<Kind> {
    match value {
        Unexpected::Bool(_) => Some(Kind::Bool),
        Unexpected::Unsigned(_) | Unexpected::Signed(_) | Unexpected::Float(_) => {
            Some(Kind::Number)
        }
        Unexpected::Char(_) | Unexpected::Str(_) | Unexpected::Bytes(_) => Some(Kind::String),
        Unexpected::Unit | Unexpected::Option => Some(Kind::Null),
        Unexpected::Seq => Some(Kind::Array),
        Unexpected::Map => Some(Kind::Object),
        Unexpected::NewtypeStruct
        | Unexpected::Enum
        | Unexpected::UnitVariant
        | Unexpected::NewtypeVariant
        | Unexpected::TupleVariant
        | Unexpected::StructVariant
        | Unexpected::Other(_) => None,
    }
}
