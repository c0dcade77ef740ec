//! The first stage: JSON to a request message, by the rules of Google's parser.
//!
//! All faults are reported. The result has camelCase names, no nulls, lists for repeated fields, and
//! enums in their canonical spelling.

use std::borrow::Cow;

use toolgate_core::canon::Backend;

use crate::error::{GoogleError, Violation};
use crate::fields::{Field, Kind, Message, Shape, Tables};
use crate::path::Path;
use crate::tree::Tree;

/// Parses a body as the message called `root`.
pub(crate) fn parse<'a>(
    body: &'a [u8],
    backend: Backend,
    root: &str,
) -> Result<Tree<'a>, GoogleError> {
    let tables = Tables::of(backend);
    let mut parser = Parser { tables, faults: Vec::new() };
    let parsed = match (Tree::read(body)?, tables.message(root)) {
        (Tree::Object(members), Some(message)) => parser.message(message, members, &Path::Root),
        _ => {
            parser.unknown_name("", &Path::Root, "Root element must be a message.");
            Tree::Null
        }
    };
    if parser.faults.is_empty() { Ok(parsed) } else { Err(GoogleError::parse(&parser.faults)) }
}

struct Parser {
    tables: &'static Tables,
    faults: Vec<Violation>,
}

impl Parser {
    fn message<'a>(
        &mut self,
        message: &'static Message,
        members: Vec<(Cow<'a, str>, Tree<'a>)>,
        at: &Path<'_>,
    ) -> Tree<'a> {
        let mut taken: Vec<&str> = Vec::new();
        let mut values: Vec<(&'static Field, Vec<Tree<'a>>)> = Vec::new();
        for (name, value) in members {
            let Some(field) = message.field(&name) else {
                self.unknown_name(&name, at, "Cannot find field.");
                continue;
            };
            if value == Tree::Null && field.kind != Kind::Value {
                continue;
            }
            if let Some(oneof) = &field.oneof {
                if taken.contains(&oneof.as_str()) {
                    let what = format!("oneof field '{oneof}' is already set. Cannot set '{name}'");
                    self.invalid_value(at, "oneof", &what);
                    continue;
                }
                taken.push(oneof);
            }
            match values.iter_mut().find(|(known, _)| std::ptr::eq(*known, field)) {
                Some((_, given)) => given.push(value),
                None => values.push((field, vec![value])),
            }
        }
        let mut out = Vec::with_capacity(values.len());
        for (field, given) in values {
            if let Some(value) = self.field(field, given, at) {
                out.push((Cow::Borrowed(field.name), value));
            }
        }
        Tree::Object(out)
    }

    /// Parses a field. Several values are given when both spellings are used.
    fn field<'a>(
        &mut self,
        field: &'static Field,
        given: Vec<Tree<'a>>,
        parent: &Path<'_>,
    ) -> Option<Tree<'a>> {
        let at = parent.field(&field.snake);
        match field.shape {
            Shape::One => {
                let mut merged = None;
                for value in given {
                    merged = match (merged, value, field.kind) {
                        (Some(Tree::Object(mut have)), Tree::Object(more), Kind::Message(_)) => {
                            have.extend(more);
                            Some(Tree::Object(have))
                        }
                        (_, value, _) => Some(value),
                    };
                }
                self.value(field, merged?, &at, parent)
            }
            Shape::List => {
                let mut elements = Vec::new();
                for value in given {
                    // A single value is accepted as a list of one.
                    if let Tree::List(more) = value {
                        elements.extend(more);
                    } else {
                        elements.push(value);
                    }
                }
                let mut items = Vec::with_capacity(elements.len());
                for (index, element) in elements.into_iter().enumerate() {
                    let at = at.index(index);
                    if element == Tree::Null && field.kind != Kind::Value {
                        continue;
                    }
                    items.extend(self.value(field, element, &at, parent));
                }
                Some(Tree::List(items))
            }
            Shape::Map => {
                let mut entries = Vec::new();
                for value in given {
                    match value {
                        Tree::Object(members) => entries.extend(members),
                        Tree::List(_) => {
                            let what =
                                format!("Cannot bind a list to map for field '{}'.", field.name);
                            self.invalid_value(parent, "Map", &what);
                        }
                        Tree::Null | Tree::Bool(_) | Tree::Number(_) | Tree::Text(_) => {
                            self.invalid_value(&at, "Map", &value.to_string());
                        }
                    }
                }
                let mut out = Vec::with_capacity(entries.len());
                for (index, (key, value)) in entries.into_iter().enumerate() {
                    let entry = at.index(index);
                    if value == Tree::Null && field.kind != Kind::Value {
                        continue;
                    }
                    let value = self.value(field, value, &entry.field("value"), &entry);
                    out.extend(value.map(|value| (key, value)));
                }
                Some(Tree::Object(out))
            }
        }
    }

    /// Parses one value. `None` if it does not fit; the fault is then recorded.
    fn value<'a>(
        &mut self,
        field: &'static Field,
        value: Tree<'a>,
        at: &Path<'_>,
        parent: &Path<'_>,
    ) -> Option<Tree<'a>> {
        match (field.kind, value) {
            (Kind::Value, value) => Some(value),
            (_, Tree::List(_)) => {
                let why = "Proto field is not repeating, cannot start list.";
                self.unknown_name(field.name, parent, why);
                None
            }
            (Kind::Struct, object @ Tree::Object(_)) => Some(object),
            (Kind::Message(name), Tree::Object(members)) => {
                let message = self.tables.message(name)?;
                Some(self.message(message, members, at))
            }
            (kind, Tree::Object(_)) => {
                debug_assert!(!matches!(kind, Kind::Message(_)));
                let why = "Starting an object on a scalar field";
                self.invalid_value(parent, &field.snake, why);
                None
            }
            (kind, scalar) => match self.scalar(kind, &scalar) {
                Ok(None) => Some(scalar),
                Ok(Some(value)) => Some(value),
                Err((kind, what)) => {
                    self.invalid_value(at, &kind, &what);
                    None
                }
            },
        }
    }

    /// Checks a scalar. `Ok(None)`: valid as it is; `Ok(Some)`: its canonical form; `Err`: the expected
    /// type and the reason.
    fn scalar<'a>(
        &self,
        kind: Kind,
        value: &Tree<'a>,
    ) -> Result<Option<Tree<'a>>, (String, String)> {
        let no = |name: &str| Err((name.to_owned(), value.to_string()));
        let text = value.text();
        match kind {
            Kind::String if text.is_some() => Ok(None),
            Kind::String => no("TYPE_STRING"),
            Kind::Bool => match (value, text) {
                (Tree::Bool(_), _) => Ok(None),
                (_, Some("true")) => Ok(Some(Tree::Bool(true))),
                (_, Some("false")) => Ok(Some(Tree::Bool(false))),
                _ => no("TYPE_BOOL"),
            },
            Kind::Bytes => match text {
                Some(text) if is_base64(text) => Ok(None),
                Some(_) => {
                    Err(("TYPE_BYTES".to_owned(), format!("Base64 decoding failed for {value}")))
                }
                None => no("TYPE_BYTES"),
            },
            Kind::Int32 => match whole(value).filter(|it| i32::try_from(*it).is_ok()) {
                Some(number) => Ok(Some(Tree::Number(number.into()))),
                None => no("TYPE_INT32"),
            },
            Kind::Int64 => match whole(value) {
                Some(number) => Ok(Some(Tree::Number(number.into()))),
                None => no("TYPE_INT64"),
            },
            Kind::Float | Kind::Double if value.number().is_some() => Ok(None),
            Kind::Float | Kind::Double => {
                let number = text.and_then(|text| text.parse().ok());
                match number.and_then(serde_json::Number::from_f64) {
                    Some(number) => Ok(Some(Tree::Number(number))),
                    None => no(if kind == Kind::Float { "TYPE_FLOAT" } else { "TYPE_DOUBLE" }),
                }
            }
            Kind::Enum(name) => {
                let known = match text {
                    Some(text) => self.tables.enum_value(name, text),
                    None => whole(value).and_then(|number| self.tables.enum_number(name, number)),
                };
                match known {
                    Some(known) => Ok(Some(Tree::Text(Cow::Borrowed(known)))),
                    None => no(&self.type_url(name)),
                }
            }
            Kind::Duration if text.is_some_and(is_duration) => Ok(None),
            Kind::Duration => Err((
                "type.googleapis.com/google.protobuf.Duration".to_owned(),
                "Illegal duration format; duration must end with 's'".to_owned(),
            )),
            Kind::Timestamp if text.is_some_and(is_timestamp) => Ok(None),
            Kind::Timestamp => Err((
                "type.googleapis.com/google.protobuf.Timestamp".to_owned(),
                format!("Invalid time format: {value}"),
            )),
            Kind::Struct => no("type.googleapis.com/google.protobuf.Struct"),
            Kind::Message(name) => no(&self.type_url(name)),
            Kind::Value => Ok(None),
        }
    }

    fn type_url(&self, name: &str) -> String {
        format!("type.googleapis.com/{}.{name}", self.tables.package)
    }

    fn unknown_name(&mut self, name: &str, at: &Path<'_>, why: &str) {
        let place = place(at);
        self.fault(
            at,
            format!("Invalid JSON payload received. Unknown name \"{name}\"{place}: {why}"),
        );
    }

    fn invalid_value(&mut self, at: &Path<'_>, kind: &str, what: &str) {
        let place = place(at);
        self.fault(at, format!("Invalid value{place} ({kind}), {what}"));
    }

    fn fault(&mut self, at: &Path<'_>, description: String) {
        self.faults.push(Violation { field: at.to_string(), description });
    }
}

fn place(at: &Path<'_>) -> String {
    match at {
        Path::Root => String::new(),
        Path::Field(..) | Path::Index(..) => format!(" at '{at}'"),
    }
}

/// Integer value of `1`, `1.0` and `"1"`, but not of `1.5` or `"1e3"`.
fn whole(value: &Tree<'_>) -> Option<i64> {
    match value {
        Tree::Number(number) => number.as_i64().or_else(|| {
            let float = number.as_f64()?;
            #[expect(clippy::cast_possible_truncation, reason = "it is whole and in range")]
            (float.fract() == 0.0 && float.abs() < 9.0e18).then_some(float as i64)
        }),
        Tree::Text(text) => text.parse().ok(),
        Tree::Null | Tree::Bool(_) | Tree::List(_) | Tree::Object(_) => None,
    }
}

/// Whether a text is base64: standard or URL-safe but not mixed, padded or not.
fn is_base64(text: &str) -> bool {
    let bare = text.trim_end_matches('=');
    let standard = bare.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/'));
    let url_safe = bare.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
    (standard || url_safe) && bare.len() % 4 != 1 && text.len() - bare.len() <= 2
}

fn is_duration(text: &str) -> bool {
    text.strip_suffix('s').is_some_and(|seconds| seconds.parse::<f64>().is_ok_and(f64::is_finite))
}

fn is_timestamp(text: &str) -> bool {
    let shape: String =
        text.chars().take(19).map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    shape == "0000-00-00T00:00:00"
        && (text.ends_with('Z') || text.get(19..).is_some_and(|zone| zone.contains(['+', '-'])))
}
