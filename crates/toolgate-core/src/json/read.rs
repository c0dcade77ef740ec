//! Filling a mirror from a body.

use std::fmt;
use std::iter::Peekable;
use std::ops::Range;

use serde::Deserialize;

use super::{Cursor, Kind, de, scan};
use crate::canon::{BadRequest, Loss, LossCode, Losses};

/// Where in a body something stands, as `messages[2].content[0]`.
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
    /// A member of what stands here.
    pub fn field<'a>(&'a self, name: &'a str) -> Path<'a> {
        Path::Field(self, name)
    }

    /// An element of what stands here.
    pub fn index(&self, index: usize) -> Path<'_> {
        Path::Index(self, index)
    }

    /// An error that names this place.
    pub fn bad(&self, reason: impl Into<String>) -> BadRequest {
        BadRequest { at: self.to_string(), reason: reason.into() }
    }

    /// A loss that names this place.
    pub fn loss(&self, code: LossCode, detail: impl Into<String>) -> Loss {
        Loss { at: self.to_string(), code, detail: detail.into(), tool: None }
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

/// Reads `json` into a mirror and names, as losses, the fields that the mirror does not have.
///
/// The error says where: reading is done again with the place written down, so that only broken
/// bodies pay for it.
pub fn read<'a, T: Deserialize<'a>>(
    json: &'a str,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<T, BadRequest> {
    read_placed(json, at, losses).map(|(value, _)| value)
}

/// The same, and where its [`Placed`](de::Placed) value stands.
pub(crate) fn read_placed<'a, T: Deserialize<'a>>(
    json: &'a str,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<(T, Option<Range<usize>>), BadRequest> {
    let mut told = de::Told::default();
    let value = de::read(json, de::max_elements(json), Some(&mut told))
        .map_err(|error| located::<T>(json, at, &error))?;
    let mut unknown = Unknown { places: told.unknown.into_iter().peekable(), root: at, losses };
    if unknown.places.peek().is_some() {
        let start = scan::start(json);
        let cursor = Cursor::of_checked(json.get(start..).unwrap_or_default());
        unknown.name_inside(cursor, start, &mut String::new());
    }
    losses.omit(LossCode::UnknownField, told.more_unknown);
    Ok((value, told.placed))
}

/// Reads `json` into a mirror of what is looked for; the error says where. Fields that the mirror does
/// not have do not matter.
pub fn look<'a, T: Deserialize<'a>>(json: &'a str, at: &Path<'_>) -> Result<T, BadRequest> {
    de::read(json, de::max_elements(json), None).map_err(|error| located::<T>(json, at, &error))
}

/// Reads `json` into a mirror. Fields that the mirror does not have do not matter.
pub fn parse<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, serde_json::Error> {
    de::read(json, usize::MAX, None).or_else(|_| serde_json::from_str(json))
}

/// Values that a mirror does not have, to be named: by the places where they begin, in order.
struct Unknown<'l> {
    places: Peekable<std::vec::IntoIter<usize>>,
    root: &'l Path<'l>,
    losses: &'l mut Losses,
}

impl Unknown<'_> {
    /// Names those inside of the container that the cursor stands before, at `base`. All of them are
    /// found in one walk, as deep as mirrors are.
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
            if self.places.peek().is_none_or(|place| !inside.contains(place)) {
                continue;
            }
            let length = path.len();
            match name {
                Some(key) if path.is_empty() => path.push_str(&key),
                Some(key) => path.extend([".", &key]),
                None => path.push_str(&format!("[{index}]")),
            }
            if self.places.next_if_eq(&inside.start).is_some() {
                self.losses.add_with(LossCode::UnknownField, || Loss {
                    at: joined(self.root, path),
                    code: LossCode::UnknownField,
                    detail: "toolgate does not know this field; it was left out".to_owned(),
                    tool: None,
                });
            } else {
                self.name_inside(value.cursor(), inside.start, path);
            }
            path.truncate(length);
            if self.places.peek().is_none() {
                return;
            }
        }
    }
}

fn located<'a, T: Deserialize<'a>>(
    json: &'a str,
    at: &Path<'_>,
    error: &serde_json::Error,
) -> BadRequest {
    let place = || {
        let json = json.get(scan::start(json)..)?;
        let mut body = serde_json::Deserializer::from_str(json);
        let error = serde_path_to_error::deserialize::<_, T>(&mut body).err()?;
        Some((error.path().to_string(), error.inner().to_string()))
    };
    let place = de::located::<T>(json).or_else(place);
    let (inner, reason) = place.unwrap_or_else(|| (String::new(), error.to_string()));
    // serde_json's positions are relative to the slice, which would mislead below the root.
    let is_root = matches!(at, Path::Root);
    BadRequest { at: joined(at, known(&inner)), reason: plain(&reason, is_root) }
}

/// What serde says of a value, in words that a client's author knows and without the value: that may
/// be a whole prompt.
fn plain(reason: &str, with_position: bool) -> String {
    // The value comes first. What was expected instead is ours, and so is what follows it.
    let (value, rest) = match reason.rsplit_once(", expected ") {
        Some((value, rest)) => (Some(value), rest),
        None => (None, reason),
    };
    let (rest, position) = match rest.rfind(" at line ") {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let position = if with_position { position } else { "" };
    let Some(value) = value else { return format!("{rest}{position}") };
    let found = match value.split([' ', '`']).nth(2).unwrap_or_default() {
        _ if value.starts_with("invalid value: ") => {
            return format!("the number is out of range{position}");
        }
        "boolean" => Kind::Bool.words(),
        "floating" | "integer" => Kind::Number.words(),
        "map" => Kind::Object.words(),
        "null" => Kind::Null.words(),
        "sequence" => Kind::Array.words(),
        "byte" | "character" | "string" => Kind::String.words(),
        _ => "something else",
    };
    let expected = match rest {
        "i64" => "an integer",
        "f64" => "a number",
        "a sequence" => Kind::Array.words(),
        "a map" => Kind::Object.words(),
        // serde names the mirror that it could not fill. That is our name, not the client's.
        rest if rest.starts_with("struct ") => de::OBJECT,
        rest => rest,
    };
    format!("expected {expected}, found {found}{position}")
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
    use crate::canon::MAX_LOSSES;
    use crate::json::Text;

    #[derive(Debug, Deserialize)]
    struct Body<'a> {
        #[serde(borrow)]
        a: Option<Vec<Item<'a>>>,
        #[serde(rename = "n")]
        _n: Option<i64>,
        #[serde(rename = "f")]
        _f: Option<f64>,
    }

    #[derive(Debug, Deserialize)]
    struct Item<'a> {
        #[serde(borrow)]
        text: Text<'a>,
    }

    #[test]
    fn unknown_fields_are_named() {
        let mut losses = Losses::default();
        let json = r#"{"a":[{"text":"x","new":1}],"other":{}}"#;
        let body: Body<'_> = read(json, &Path::Root, &mut losses).unwrap();
        assert_eq!(body.a.unwrap()[0].text.decode(), "x");
        let at: Vec<_> = losses.iter().map(|loss| loss.at.as_str()).collect();
        assert_eq!(at, ["a[0].new", "other"]);

        let mut losses = Losses::default();
        let json = r#" { "x": [1, {"text": 2}], "a": [ {"text":"", "b":{"a":[]}, "c\u0041": 1}, {"text":"y"}, {"z":[[]], "text":""} ] } "#;
        read::<Body<'_>>(json, &Path::Root.field("in"), &mut losses).unwrap();
        let at: Vec<_> = losses.iter().map(|loss| loss.at.as_str()).collect();
        assert_eq!(at, ["in.x", "in.a[0].b", "in.a[0].cA", "in.a[2].z"]);
    }

    /// A hundred thousand of them are found in one walk, not in one walk each.
    #[test]
    fn many_unknown_fields_are_named_in_time() {
        let item = r#"{"text":"long enough not to be refused","new":[1,2,3]}"#;
        let json = format!(r#"{{"a":[{}]}}"#, vec![item; 100_000].join(","));
        let mut losses = Losses::default();
        read::<Body<'_>>(&json, &Path::Root, &mut losses).unwrap();
        assert_eq!((losses.len(), losses.total()), (MAX_LOSSES, 100_000));
        assert_eq!(losses.last().unwrap().at, format!("a[{}].new", MAX_LOSSES - 1));
    }

    #[test]
    fn broken_fields_are_located() {
        let read = |json| read::<Body<'_>>(json, &Path::Root, &mut Losses::default());
        let error = read(r#"{"a":[{"text":"x"},{"text":5}]}"#).unwrap_err();
        assert_eq!(error.at, "a[1].text");
        assert!(error.reason.starts_with("expected a string, found a number"), "{}", error.reason);
        assert!(read(r#"{"a":[]} x"#).is_err());
        assert_eq!(read(r#"{"a":"#).unwrap_err().at, "a");
        assert_eq!(read("{").unwrap_err().at, "");
        // A mirror is filled from an object and from nothing else; what it is called is our business.
        for (json, at, reason) in [
            ("[]", "", "expected an object, found an array"),
            (" [[{}]]", "", "expected an object, found an array"),
            ("5", "", "expected an object, found a number at line 1 column 1"),
            (r#"{"a":[["x"]]}"#, "a[0]", "expected an object, found an array"),
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
        ] {
            let error = read(json).unwrap_err();
            assert_eq!((error.at.as_str(), error.reason.as_str()), (at, reason), "{json}");
        }
    }
}
