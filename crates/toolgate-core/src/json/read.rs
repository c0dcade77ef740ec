//! Filling a mirror from a body.

use std::fmt;

use serde::Deserialize;

use super::{Cursor, Kind, de};
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
    let mut unknown = Vec::new();
    let value = de::read(json, &mut unknown).map_err(|error| located::<T>(json, at, &error))?;
    losses.extend(unknown.into_iter().map(|place| Loss {
        at: joined(at, &path_of(json, place)),
        code: LossCode::UnknownField,
        detail: "toolgate does not know this field; it was left out".to_owned(),
        tool: None,
    }));
    Ok(value)
}

/// Reads `json` into a mirror. Fields that the mirror does not have do not matter.
pub fn parse<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, serde_json::Error> {
    de::read(json, &mut Vec::new()).or_else(|_| serde_json::from_str(json))
}

/// The path to the value that begins at `place` of a body that was read.
fn path_of(json: &str, place: usize) -> String {
    let mut path = String::new();
    let start = json.len() - json.trim_start().len();
    let mut cursor = Cursor::of_checked(json);
    let mut base = start;
    'down: loop {
        match cursor.kind() {
            Kind::Object => {
                cursor.enter();
                while let Some(key) = cursor.next_key() {
                    let at = base + cursor.position();
                    let value = cursor.value();
                    if (at..base + cursor.position()).contains(&place) {
                        if !path.is_empty() {
                            path.push('.');
                        }
                        path.push_str(&key);
                        if at == place {
                            return path;
                        }
                        (cursor, base) = (value.cursor(), at);
                        continue 'down;
                    }
                }
            }
            Kind::Array => {
                cursor.enter();
                let mut index = 0;
                while cursor.next_element() {
                    let at = base + cursor.position();
                    let value = cursor.value();
                    if (at..base + cursor.position()).contains(&place) {
                        path.push_str(&format!("[{index}]"));
                        if at == place {
                            return path;
                        }
                        (cursor, base) = (value.cursor(), at);
                        continue 'down;
                    }
                    index += 1;
                }
            }
            Kind::Bool | Kind::Null | Kind::Number | Kind::String => {}
        }
        return path;
    }
}

fn located<'a, T: Deserialize<'a>>(
    json: &'a str,
    at: &Path<'_>,
    error: &serde_json::Error,
) -> BadRequest {
    let mut body = serde_json::Deserializer::from_str(json);
    let (inner, reason) = match serde_path_to_error::deserialize::<_, T>(&mut body) {
        Err(located) => {
            let path = located.path().to_string();
            (known(&path).to_owned(), located.inner().to_string())
        }
        Ok(_) => (String::new(), error.to_string()),
    };
    // serde_json's positions are relative to the slice, which would mislead below the root.
    let reason = match (at, reason.rfind(" at line ")) {
        (Path::Root, _) | (_, None) => reason,
        (_, Some(end)) => reason[..end].to_owned(),
    };
    BadRequest { at: joined(at, &inner), reason }
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

    #[derive(Debug, Deserialize)]
    struct Body<'a> {
        #[serde(borrow)]
        a: Option<Vec<Item<'a>>>,
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
    }

    #[test]
    fn broken_fields_are_located() {
        let read = |json| read::<Body<'_>>(json, &Path::Root, &mut Losses::default());
        let error = read(r#"{"a":[{"text":"x"},{"text":5}]}"#).unwrap_err();
        assert_eq!(error.at, "a[1].text");
        assert!(error.reason.starts_with("expected a string"), "{}", error.reason);
        assert!(read(r#"{"a":[]} x"#).is_err());
        assert_eq!(read(r#"{"a":"#).unwrap_err().at, "a");
        assert_eq!(read("{").unwrap_err().at, "");
    }
}
