//! JSON trees of request bodies.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};

use crate::error::{GoogleError, Violation};

/// A JSON value. Members keep their order and their duplicates.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tree<'a> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'a, str>),
    List(Vec<Self>),
    Object(Vec<(Cow<'a, str>, Self)>),
}

/// Deepest nesting of objects.
///
/// Thirty levels of `properties` are accepted, thirty-one are not: the request, the tool, the
/// declaration and `parameters` count, and two objects for each level.
const MAX_OBJECT_DEPTH: usize = 64;

impl<'a> Tree<'a> {
    /// Parses a body. An empty body is an empty request.
    pub(crate) fn read(body: &'a [u8]) -> Result<Self, GoogleError> {
        let Ok(text) = std::str::from_utf8(body) else {
            return Err(broken("Encountered non UTF-8 code points."));
        };
        if text.trim_ascii().is_empty() {
            return Ok(Self::Object(Vec::new()));
        }
        let mut json = serde_json::Deserializer::from_str(text);
        let seed = Seed { objects: 0, key: "" };
        match seed.deserialize(&mut json).and_then(|tree| json.end().map(|()| tree)) {
            Ok(tree) => Ok(tree),
            Err(error) => Err(syntax(text, &error)),
        }
    }

    /// Returns the last member with this name.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        self.members().iter().rev().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// Members of an object; none for other values.
    pub(crate) fn members(&self) -> &[(Cow<'a, str>, Self)] {
        if let Self::Object(members) = self { members } else { &[] }
    }

    /// Elements of a list; none for other values.
    pub(crate) fn items(&self) -> &[Self] {
        if let Self::List(items) = self { items } else { &[] }
    }

    /// Returns a string's text.
    pub(crate) fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// Returns a number.
    pub(crate) fn number(&self) -> Option<f64> {
        if let Self::Number(number) = self { number.as_f64() } else { None }
    }

    /// Returns an integer.
    pub(crate) fn integer(&self) -> Option<i64> {
        if let Self::Number(number) = self { number.as_i64() } else { None }
    }

    /// Whether it is `true`.
    pub(crate) fn is_true(&self) -> bool {
        *self == Self::Bool(true)
    }

    /// Copies the tree. Of duplicate members, the last one stays.
    pub(crate) fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(it) => Value::Bool(*it),
            Self::Number(it) => Value::Number(it.clone()),
            Self::Text(it) => Value::String(it.clone().into_owned()),
            Self::List(items) => Value::Array(items.iter().map(Self::to_value).collect()),
            Self::Object(members) => Value::Object(
                members.iter().map(|(key, value)| (key.to_string(), value.to_value())).collect(),
            ),
        }
    }
}

/// The form that error texts use.
impl fmt::Display for Tree<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(it) => it.fmt(f),
            Self::Number(it) => it.fmt(f),
            Self::Text(it) => write!(f, "\"{it}\""),
            Self::List(_) | Self::Object(_) => self.to_value().fmt(f),
        }
    }
}

fn broken(reason: &str) -> GoogleError {
    let description = format!("Invalid JSON payload received. {reason}");
    GoogleError::parse(&[Violation { field: String::new(), description }])
}

fn syntax(text: &str, error: &serde_json::Error) -> GoogleError {
    let text_of_error = error.to_string();
    if text_of_error.starts_with("Message too deep.") {
        let reason = text_of_error.rsplit_once(" at line ").map_or(&*text_of_error, |(it, _)| it);
        return broken(reason);
    }
    if text_of_error.starts_with("recursion limit") {
        return broken("Message too deep. Max recursion depth reached for key ''");
    }
    let reason = match text_of_error.split(" at line ").next().unwrap_or(&text_of_error) {
        "EOF while parsing a list" => {
            "Unexpected end of string. Expected , or ] after array value."
        }
        "EOF while parsing an object" => {
            "Unexpected end of string. Expected , or } after key:value pair."
        }
        "EOF while parsing a string" => "Closing quote expected in string.",
        "EOF while parsing a value" => "Unexpected end of string. Expected a value.",
        "expected `,` or `]`" => "Expected , or ] after array value.",
        "expected `,` or `}`" => "Expected , or } after key:value pair.",
        "expected `:`" => "Expected : between key:value pair.",
        "key must be a string" => "Expected an object key or }.",
        "trailing characters" => "Parsing terminated before end of input.",
        "trailing comma" | "expected value" => "Expected a value.",
        _ => "Unexpected token.",
    };
    let line = text.lines().nth(error.line().saturating_sub(1)).unwrap_or("");
    let at = error.column().saturating_sub(1).min(line.len());
    let near = |at: usize| (0..=at).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
    let (start, end) = (near(at.saturating_sub(20)), near((at + 20).min(line.len())));
    let column = line.get(start..near(at)).unwrap_or("").chars().count();
    broken(&format!("{reason}\n{}\n{:>2$}", line.get(start..end).unwrap_or(""), "^", column + 1))
}

struct Seed<'k> {
    objects: usize,
    key: &'k str,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Tree<'de>;
    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Tree<'de>, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Tree<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Tree<'de>, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E>(self, it: bool) -> Result<Tree<'de>, E> {
        Ok(Tree::Bool(it))
    }

    fn visit_i64<E>(self, it: i64) -> Result<Tree<'de>, E> {
        Ok(Tree::Number(it.into()))
    }

    fn visit_u64<E>(self, it: u64) -> Result<Tree<'de>, E> {
        Ok(Tree::Number(it.into()))
    }

    fn visit_f64<E>(self, it: f64) -> Result<Tree<'de>, E> {
        Ok(Number::from_f64(it).map_or(Tree::Null, Tree::Number))
    }

    fn visit_borrowed_str<E>(self, it: &'de str) -> Result<Tree<'de>, E> {
        Ok(Tree::Text(Cow::Borrowed(it)))
    }

    fn visit_str<E>(self, it: &str) -> Result<Tree<'de>, E> {
        Ok(Tree::Text(Cow::Owned(it.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Tree<'de>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(Seed { ..self })? {
            items.push(item);
        }
        Ok(Tree::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree<'de>, A::Error> {
        let objects = self.objects + 1;
        if objects > MAX_OBJECT_DEPTH {
            return Err(A::Error::custom(format!(
                "Message too deep. Max recursion depth reached for key '{}'",
                self.key
            )));
        }
        let mut members = Vec::new();
        while let Some(Key(key)) = map.next_key()? {
            let value = map.next_value_seed(Seed { objects, key: &key })?;
            members.push((key, value));
        }
        Ok(Tree::Object(members))
    }
}

struct Key<'a>(Cow<'a, str>);

impl<'de> serde::Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        struct Name;
        impl<'de> Visitor<'de> for Name {
            type Value = Key<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, it: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(it)))
            }
            fn visit_str<E>(self, it: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(it.to_owned())))
            }
        }
        json.deserialize_str(Name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(body: &str, want: &str) {
        let error = Tree::read(body.as_bytes()).unwrap_err();
        assert_eq!(error.message, format!("Invalid JSON payload received. {want}"), "{body}");
    }

    #[test]
    fn syntax_errors_show_the_position() {
        check("{\"a\" 1}", "Expected : between key:value pair.\n{\"a\" 1}\n     ^");
        check(
            "{\"a\":1",
            "Unexpected end of string. Expected , or } after key:value pair.\n{\"a\":1\n     ^",
        );
        check("{\"a\":1} x", "Parsing terminated before end of input.\n{\"a\":1} x\n        ^");
        check("{\n\"a\":[1 2]}", "Expected , or ] after array value.\n\"a\":[1 2]}\n       ^");
        check(
            "{\"aaaaaaaaaaaaaaaaaaaaaaaaaaaa\":}",
            "Expected a value.\naaaaaaaaaaaaaaaaaa\":}\n                    ^",
        );
    }

    #[test]
    fn objects_nested_too_deeply_are_refused() {
        let nested = |levels: usize| {
            let open = r#"{"properties":{"deep":"#.repeat(levels);
            let close = "}}".repeat(levels);
            format!(
                r#"{{"tools":[{{"functionDeclarations":[{{"parameters":{open}{{}}{close}}}]}}]}}"#
            )
        };
        assert!(Tree::read(nested(30).as_bytes()).is_ok());
        check(&nested(31), "Message too deep. Max recursion depth reached for key 'properties'");
        check(&"[".repeat(500), "Message too deep. Max recursion depth reached for key ''");
    }
}
