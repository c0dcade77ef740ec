//! Filling a mirror from a body.

use std::fmt;
use std::iter::Peekable;
use std::ops::Range;

use serde::Deserialize;

use super::error::{Problem, ReadError};
use super::{Cursor, Kind, de, scan};

/// Path of a value in a body, as `messages[2].content[0]`.
#[derive(Clone, Copy, Debug)]
pub enum Path<'a> {
    /// The body itself.
    Root,
    /// A member of an object.
    Field(&'a Self, &'a str),
    /// An element of an array.
    Index(&'a Self, usize),
}

impl Path<'_> {
    /// Path of a member of this value.
    pub fn field<'a>(&'a self, name: &'a str) -> Path<'a> {
        Path::Field(self, name)
    }

    /// Path of an element of this value.
    pub fn index(&self, index: usize) -> Path<'_> {
        Path::Index(self, index)
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => Ok(()),
            Path::Field(Path::Root, name) => f.write_str(name),
            Path::Field(parent, name) => write!(f, "{parent}.{name}"),
            Path::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// Receiver of the fields of a text that its mirror does not have.
pub trait UnknownFields {
    /// Takes a field. `path` writes its path.
    fn add(&mut self, path: &dyn Fn() -> String);

    /// Counts fields whose paths are not written, because there are too many of them.
    fn add_unnamed(&mut self, count: usize);
}

/// Reads `json` into a mirror and reports the fields that the mirror does not have.
///
/// On an error the text is read once more, to find its path: only texts that cannot be read pay for
/// it.
pub fn read<'a, T: Deserialize<'a>>(
    json: &'a str,
    at: &Path<'_>,
    unknown: &mut dyn UnknownFields,
) -> Result<T, ReadError> {
    read_placed(json, at, unknown).map(|(value, _)| value)
}

/// The same, with the position of the [`Placed`](de::Placed) value.
pub(crate) fn read_placed<'a, T: Deserialize<'a>>(
    json: &'a str,
    at: &Path<'_>,
    unknown: &mut dyn UnknownFields,
) -> Result<(T, Option<Range<usize>>), ReadError> {
    let mut positions = de::Positions::default();
    let max_elements = de::max_elements(json);
    let value = de::read(json, max_elements, Some(&mut positions))
        .map_err(|error| located::<T>(json, at, max_elements, *error.0))?;
    let starts = positions.unknown.into_iter().peekable();
    let mut namer = UnknownNamer { starts, root: at, unknown };
    if namer.starts.peek().is_some() {
        let start = scan::start(json);
        let cursor = Cursor::of_checked(json.get(start..).unwrap_or_default());
        namer.name_inside(cursor, start, &mut String::new());
    }
    if positions.more_unknown > 0 {
        unknown.add_unnamed(positions.more_unknown);
    }
    Ok((value, positions.placed))
}

/// Reads `json` into a mirror of some of its fields. Other fields are ignored.
pub fn look<'a, T: Deserialize<'a>>(json: &'a str, at: &Path<'_>) -> Result<T, ReadError> {
    let max_elements = de::max_elements(json);
    de::read(json, max_elements, None)
        .map_err(|error| located::<T>(json, at, max_elements, *error.0))
}

/// Reads `json`, which is no client's, into a mirror of some of its fields: without a limit of its
/// array elements. Other fields are ignored.
pub fn parse<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, ReadError> {
    de::read(json, usize::MAX, None)
        .map_err(|error| located::<T>(json, &Path::Root, usize::MAX, *error.0))
}

/// Finds the paths of values by the positions at which they start, in one walk.
struct UnknownNamer<'u> {
    /// In ascending order.
    starts: Peekable<std::vec::IntoIter<usize>>,
    root: &'u Path<'u>,
    unknown: &'u mut dyn UnknownFields,
}

impl UnknownNamer<'_> {
    /// Names the values inside of the container that the cursor stands before, at `base`. The
    /// recursion is as deep as mirrors are.
    fn name_inside(&mut self, mut cursor: Cursor<'_>, base: usize, path: &mut String) {
        let is_object = match cursor.kind() {
            Kind::Object => true,
            Kind::Array => false,
            Kind::Bool | Kind::Null | Kind::Number | Kind::String => return,
        };
        cursor.enter();
        for index in 0.. {
            let name = if is_object {
                let Some(key) = cursor.next_key() else { return };
                Some(key)
            } else if cursor.next_element() {
                None
            } else {
                return;
            };
            let at = cursor.position();
            let value = cursor.value();
            let inside = base + at..base + cursor.position();
            if self.starts.peek().is_none_or(|start| !inside.contains(start)) {
                continue;
            }
            let length = path.len();
            match name {
                Some(key) if path.is_empty() => path.push_str(&key),
                Some(key) => path.extend([".", &key]),
                None => path.push_str(&format!("[{index}]")),
            }
            if self.starts.next_if_eq(&inside.start).is_some() {
                let root = self.root;
                self.unknown.add(&|| joined(root, path));
            } else {
                self.name_inside(value.cursor(), inside.start, path);
            }
            path.truncate(length);
            if self.starts.peek().is_none() {
                return;
            }
        }
    }
}

/// Makes the error of a text that cannot be read. `first` is the problem as it was met at first,
/// without its path.
fn located<'a, T: Deserialize<'a>>(
    json: &'a str,
    at: &Path<'_>,
    max_elements: usize,
    first: Problem,
) -> ReadError {
    let found = de::locate::<T>(json, max_elements);
    let error = match found {
        // serde_json has better words for syntax than "not JSON".
        Some(de::Located { problem: Problem::Syntax(_), .. }) | None => syntax::<T>(json)
            .unwrap_or(ReadError { at: String::new(), problem: first, position: None }),
        Some(de::Located { path, problem, index }) => {
            ReadError { at: path, problem, position: Some(line_and_column(json, index)) }
        }
    };
    // Below the root, positions would be relative to the slice and mislead.
    let position = error.position.filter(|_| matches!(at, Path::Root));
    ReadError { at: joined(at, known(&error.at)), position, ..error }
}

/// The first syntax error, as serde_json finds it. Its path is written as by serde_path_to_error.
fn syntax<'a, T: Deserialize<'a>>(json: &'a str) -> Option<ReadError> {
    let json = json.get(scan::start(json)..)?;
    let mut body = serde_json::Deserializer::from_str(json);
    let read = serde_path_to_error::deserialize::<_, T>(&mut body);
    let (at, error) = match read {
        Err(error) => (error.path().to_string(), error.into_inner()),
        Ok(_) => (String::new(), body.end().err()?),
    };
    if error.is_data() {
        return None;
    }
    let position = (error.line(), error.column());
    let message = error.to_string();
    let suffix = format!(" at line {} column {}", position.0, position.1);
    let message = message.strip_suffix(&suffix).unwrap_or(&message).to_owned();
    Some(ReadError { at, problem: Problem::Syntax(message.into()), position: Some(position) })
}

/// Line and column of the byte at `index`, as serde_json counts them.
fn line_and_column(json: &str, index: usize) -> (usize, usize) {
    let start = scan::start(json);
    let before = json.as_bytes().get(start..index).unwrap_or_default();
    let line_start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
    (1 + memchr::memchr_iter(b'\n', before).count(), before.len() - line_start)
}

/// serde_path_to_error writes `.` for the body itself and `?` for a place that it cannot name.
fn known(path: &str) -> &str {
    path.trim_end_matches('?').trim_end_matches('.')
}

fn joined(at: &Path<'_>, inner: &str) -> String {
    match (at, inner) {
        (Path::Root, _) => inner.to_owned(),
        (_, "") => at.to_string(),
        _ if inner.starts_with('[') => format!("{at}{inner}"),
        _ => format!("{at}.{inner}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Text;
    use crate::json::de::MAX_UNKNOWN_FIELDS;

    /// Paths of unknown fields, and the number of those without a path.
    #[derive(Default)]
    struct Named(Vec<String>, usize);

    impl UnknownFields for Named {
        fn add(&mut self, path: &dyn Fn() -> String) {
            self.0.push(path());
        }

        fn add_unnamed(&mut self, count: usize) {
            self.1 += count;
        }
    }

    #[derive(Debug, Deserialize)]
    struct Body<'a> {
        #[serde(borrow)]
        a: Option<Vec<Entry<'a>>>,
        #[serde(rename = "n")]
        _n: Option<i64>,
        #[serde(rename = "f")]
        _f: Option<f64>,
    }

    #[derive(Debug, Deserialize)]
    struct Entry<'a> {
        #[serde(borrow)]
        text: Text<'a>,
    }

    #[test]
    fn unknown_fields_are_named() {
        let mut unknown = Named::default();
        let json = r#"{"a":[{"text":"x","new":1}],"other":{}}"#;
        let body: Body<'_> = read(json, &Path::Root, &mut unknown).unwrap();
        assert_eq!(body.a.unwrap()[0].text.decode(), "x");
        assert_eq!(unknown.0, ["a[0].new", "other"]);

        let mut unknown = Named::default();
        let json = r#" { "x": [1, {"text": 2}], "a": [ {"text":"", "b":{"a":[]}, "c\u0041": 1}, {"text":"y"}, {"z":[[]], "text":""} ] } "#;
        read::<Body<'_>>(json, &Path::Root.field("in"), &mut unknown).unwrap();
        assert_eq!(unknown.0, ["in.x", "in.a[0].b", "in.a[0].cA", "in.a[2].z"]);
    }

    /// A hundred thousand of them are found in one walk, not in one walk each.
    #[test]
    fn many_unknown_fields_are_named_in_time() {
        let item = r#"{"text":"long enough not to be refused","new":[1,2,3]}"#;
        let json = format!(r#"{{"a":[{}]}}"#, vec![item; 100_000].join(","));
        let mut unknown = Named::default();
        read::<Body<'_>>(&json, &Path::Root, &mut unknown).unwrap();
        assert_eq!(
            (unknown.0.len(), unknown.1),
            (MAX_UNKNOWN_FIELDS, 100_000 - MAX_UNKNOWN_FIELDS)
        );
        assert_eq!(unknown.0.last().unwrap(), &format!("a[{}].new", MAX_UNKNOWN_FIELDS - 1));
    }

    #[test]
    fn broken_fields_are_located() {
        let read = |json| read::<Body<'_>>(json, &Path::Root, &mut Named::default());
        let error = read(r#"{"a":[{"text":"x"},{"text":5}]}"#).unwrap_err();
        assert_eq!(error.at, "a[1].text");
        assert_eq!(error.to_string(), "expected a string, found a number at line 1 column 28");
        assert!(read(r#"{"a":[]} x"#).is_err());
        assert_eq!(read(r#"{"a":"#).unwrap_err().at, "a");
        assert_eq!(read("{").unwrap_err().at, "");
        // A mirror is filled from an object only, and the error does not name the mirror.
        for (json, at, reason) in [
            ("[]", "", "expected an object, found an array at line 1 column 0"),
            (" [[{}]]", "", "expected an object, found an array at line 1 column 0"),
            ("5", "", "expected an object, found a number at line 1 column 1"),
            (r#"{"a":[["x"]]}"#, "a[0]", "expected an object, found an array at line 1 column 6"),
            (r#"{"a":[null]}"#, "a[0]", "expected an object, found null at line 1 column 10"),
            (r#"{"a":{}}"#, "a", "expected an array, found an object at line 1 column 5"),
            (r#"{"n":true}"#, "n", "expected an integer, found a boolean at line 1 column 9"),
            (r#"{"n":1.5}"#, "n", "expected an integer, found a number at line 1 column 8"),
            (r#"{"n":{}}"#, "n", "expected an integer, found an object at line 1 column 5"),
            (r#"{"n":9223372036854775808}"#, "n", "the number is out of range at line 1 column 24"),
            (r#"{"f":[]}"#, "f", "expected a number, found an array at line 1 column 5"),
            (r#"{"a":"secret"}"#, "a", "expected an array, found a string at line 1 column 13"),
            (
                r#"{"n":"secret, expected struct A, expected i64 at line 9 ` \u000a"}"#,
                "n",
                "expected an integer, found a string at line 1 column 65",
            ),
            ("{}\n}", "", "trailing characters at line 2 column 1"),
            ("{\n \"n\": tru }", "n", "expected ident at line 2 column 10"),
            ("{\n\n \"f\": \"\"}", "f", "expected a number, found a string at line 3 column 8"),
            (r#"{"a":[{}]}"#, "a[0]", "missing field `text` at line 1 column 8"),
        ] {
            let error = read(json).unwrap_err();
            assert_eq!((error.at.as_str(), error.to_string().as_str()), (at, reason), "{json}");
        }
    }
}
