//! Filling a mirror from a body.

use std::fmt;

use serde::Deserialize;

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
    let mut body = serde_json::Deserializer::from_str(json);
    let value = serde_ignored::deserialize(&mut body, |unknown| {
        losses.push(Loss {
            at: joined(at, &dotted(&unknown)),
            code: LossCode::UnknownField,
            detail: "toolgate does not know this field; it was left out".to_owned(),
            tool: None,
        });
    });
    match value.and_then(|value| body.end().map(|()| value)) {
        Ok(value) => Ok(value),
        Err(error) => Err(located::<T>(json, at, &error)),
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

/// serde_ignored writes `a.0.b` and `?` for the inside of an option; we write `a[0].b`.
fn dotted(path: &serde_ignored::Path<'_>) -> String {
    use serde_ignored::Path as Ignored;
    match path {
        Ignored::Root => String::new(),
        Ignored::Seq { parent, index } => format!("{}[{index}]", dotted(parent)),
        Ignored::Map { parent, key } => match dotted(parent) {
            parent if parent.is_empty() => key.clone(),
            parent => format!("{parent}.{key}"),
        },
        Ignored::Some { parent }
        | Ignored::NewtypeStruct { parent }
        | Ignored::NewtypeVariant { parent } => dotted(parent),
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
