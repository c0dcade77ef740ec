//! Arguments that come in pieces, each with its JSONPath.

use std::collections::BTreeMap;

use super::wire::PartialArg;
use crate::json::write::{ArrayWriter, ObjectWriter};
use crate::json::{Fields, Kind, Raw, Text};

/// Deeper than this no piece is placed.
const MAX_STEPS: usize = 64;
/// How far beyond its end an array is filled with nulls for the next piece.
const MAX_GAP: usize = 64;

/// The arguments of a call, as far as they have come.
#[derive(Clone, Debug, Default)]
pub(super) struct Pieces {
    root: PartialObject,
}

/// An object in the making: members in the order they came.
#[derive(Clone, Debug, Default)]
struct PartialObject {
    values: Vec<(String, Tree)>,
    places: BTreeMap<String, usize>,
}

#[derive(Clone, Debug)]
enum Tree {
    Object(PartialObject),
    Array(Vec<Self>),
    /// A string; `open`: the next piece for the same place goes on with it.
    Text {
        text: Text<'static>,
        open: bool,
    },
    Whole(Raw<'static>),
}

#[derive(Debug, PartialEq, Eq)]
enum PathStep {
    Name(String),
    Index(usize),
}

impl Pieces {
    pub(super) fn is_empty(&self) -> bool {
        self.root.values.is_empty()
    }

    /// Takes the members of an object over; `false` if it is none.
    pub(super) fn merge(&mut self, args: &Raw<'_>) -> bool {
        let Some(fields) = args.fields() else { return false };
        for (name, value) in fields.0 {
            *self.root.place(&name) = Tree::Whole(value.into_owned());
        }
        true
    }

    /// Puts a piece where its path says; `false` where there is no such place.
    pub(super) fn put(&mut self, piece: &PartialArg<'_>) -> bool {
        let path = piece.path.as_ref().map_or("", |it| &it.0);
        let Some(steps) = steps(path) else { return false };
        let Some(place) = self.root.find(&steps) else { return false };
        let will_continue = piece.will_continue == Some(true);
        match (&piece.string, &piece.value) {
            (Some(more), _) => match place {
                Tree::Text { text, open } if *open => {
                    text.push(more);
                    *open = will_continue;
                }
                Tree::Text { .. } | Tree::Object(_) | Tree::Array(_) | Tree::Whole(_) => {
                    *place = Tree::Text { text: more.clone().into_owned(), open: will_continue };
                }
            },
            (None, Some(value)) => *place = Tree::Whole(value.clone().into_owned()),
            (None, None) => *place = Tree::null(),
        }
        true
    }

    /// The arguments as JSON.
    pub(super) fn finish(self) -> Raw<'static> {
        let mut out = Vec::new();
        self.root.write(&mut out);
        String::from_utf8(out).ok().and_then(Raw::parse).unwrap_or_else(Raw::empty_object)
    }
}

impl PartialObject {
    fn place(&mut self, name: &str) -> &mut Tree {
        let index = match self.places.get(name) {
            Some(index) => *index,
            None => {
                self.places.insert(name.to_owned(), self.values.len());
                self.values.push((name.to_owned(), Tree::null()));
                self.values.len() - 1
            }
        };
        &mut self.values[index].1
    }

    fn find(&mut self, steps: &[PathStep]) -> Option<&mut Tree> {
        let (PathStep::Name(first), rest) = steps.split_first()? else { return None };
        let mut at = self.place(first);
        for step in rest {
            at = match step {
                PathStep::Name(name) => at.object()?.place(name),
                PathStep::Index(index) => {
                    let items = at.array()?;
                    if *index > items.len() + MAX_GAP {
                        return None;
                    }
                    if *index >= items.len() {
                        items.resize(index + 1, Tree::null());
                    }
                    &mut items[*index]
                }
            };
        }
        Some(at)
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut object = ObjectWriter::new(out);
        self.values.iter().for_each(|(name, value)| value.write(object.key(name)));
    }
}

impl Tree {
    fn null() -> Self {
        Self::Whole(Raw::parse("null".to_owned()).unwrap_or_else(Raw::empty_object))
    }

    /// This place as an object, made one if need be.
    fn object(&mut self) -> Option<&mut PartialObject> {
        if !matches!(self, Self::Object(_)) {
            let mut members = PartialObject::default();
            if let Self::Whole(raw) = self
                && let Some(Fields(fields)) = raw.fields()
            {
                for (name, value) in fields {
                    *members.place(&name) = Self::Whole(value.into_owned());
                }
            }
            *self = Self::Object(members);
        }
        match self {
            Self::Object(members) => Some(members),
            Self::Array(_) | Self::Text { .. } | Self::Whole(_) => None,
        }
    }

    /// This place as an array, made one if need be.
    fn array(&mut self) -> Option<&mut Vec<Self>> {
        if !matches!(self, Self::Array(_)) {
            let items = match self {
                Self::Whole(raw) if raw.kind() == Kind::Array => raw.items().unwrap_or_default(),
                Self::Whole(_) | Self::Array(_) | Self::Text { .. } | Self::Object(_) => Vec::new(),
            };
            *self = Self::Array(items.into_iter().map(|it| Self::Whole(it.into_owned())).collect());
        }
        match self {
            Self::Array(items) => Some(items),
            Self::Object(_) | Self::Text { .. } | Self::Whole(_) => None,
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Object(members) => members.write(out),
            Self::Array(items) => {
                let mut array = ArrayWriter::new(out);
                items.iter().for_each(|item| item.write(array.element()));
            }
            Self::Text { text, .. } => out.extend_from_slice(text.literal().as_bytes()),
            Self::Whole(raw) => out.extend_from_slice(raw.get().as_bytes()),
        }
    }
}

/// `$.a.b[0]['c d']` as steps. The leading `$` may be missing.
fn steps(path: &str) -> Option<Vec<PathStep>> {
    let mut rest = path.strip_prefix('$').unwrap_or(path);
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if steps.len() >= MAX_STEPS {
            return None;
        }
        if let Some(inner) = rest.strip_prefix('[') {
            let (step, after) = bracketed(inner)?;
            steps.push(step);
            rest = after;
            continue;
        }
        let is_first = steps.is_empty() && rest.len() == path.len();
        let inner = if is_first { rest } else { rest.strip_prefix('.')? };
        let end = inner.find(['.', '[']).unwrap_or(inner.len());
        let (name, after) = inner.split_at(end);
        if name.is_empty() || name == "*" {
            return None;
        }
        steps.push(PathStep::Name(name.to_owned()));
        rest = after;
    }
    (!steps.is_empty()).then_some(steps)
}

/// `0]…` or `'name']…`
fn bracketed(inner: &str) -> Option<(PathStep, &str)> {
    let quote = inner.chars().next().filter(|it| matches!(it, '\'' | '"'));
    let Some(quote) = quote else {
        let (index, after) = inner.split_once(']')?;
        return Some((PathStep::Index(index.trim().parse().ok()?), after));
    };
    let mut name = String::new();
    let mut chars = inner.char_indices().skip(1);
    while let Some((at, it)) = chars.next() {
        match it {
            '\\' => name.push(chars.next()?.1),
            _ if it == quote => {
                let after = inner.get(at + 1..)?.strip_prefix(']')?;
                return Some((PathStep::Name(name), after));
            }
            _ => name.push(it),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pieces: &[&str], want: &str) {
        let mut args = Pieces::default();
        for piece in pieces {
            let piece: PartialArg<'_> = serde_json::from_str(piece).unwrap();
            assert!(args.put(&piece), "{piece:?}");
        }
        assert_eq!(args.finish().get(), want);
    }

    #[test]
    fn d8_pieces_become_arguments() {
        check(
            &[
                r#"{"jsonPath":"$.ops[0].do","stringValue":"ad","willContinue":true}"#,
                r#"{"jsonPath":"$.ops[0].do","stringValue":"d \"é\n\""}"#,
                r#"{"jsonPath":"$.ops[0].price","numberValue":0.50}"#,
                r#"{"jsonPath":"$.ops[1].tags[0][1]","boolValue":true}"#,
                r#"{"jsonPath":"$['a b'][\"c.d\"]","nullValue":"NULL_VALUE"}"#,
                r#"{"jsonPath":"plain","nullValue":null}"#,
                r#"{"jsonPath":"$.it\\u0061","structValue":{"x":[1]}}"#,
            ],
            r#"{"ops":[{"do":"add \"é\n\"","price":0.50},{"tags":[[null,true]]}],"a b":{"c.d":null},"plain":null,"it\\u0061":{"x":[1]}}"#,
        );
    }

    #[test]
    fn a_finished_string_is_replaced() {
        check(
            &[
                r#"{"jsonPath":"$.a","stringValue":"x"}"#,
                r#"{"jsonPath":"$.a","stringValue":"y","willContinue":true}"#,
                r#"{"jsonPath":"$.a","stringValue":""}"#,
            ],
            r#"{"a":"y"}"#,
        );
    }

    #[test]
    fn whole_arguments_can_be_gone_on_with() {
        let mut args = Pieces::default();
        let raw = Raw::parse(r#"{"a":{"b":[1]},"c":2}"#.to_owned()).unwrap();
        assert!(args.merge(&raw));
        for piece in [
            r#"{"jsonPath":"$.a.b[1]","numberValue":3}"#,
            r#"{"jsonPath":"$.c.d","numberValue":4}"#,
        ] {
            assert!(args.put(&serde_json::from_str(piece).unwrap()));
        }
        assert_eq!(args.finish().get(), r#"{"a":{"b":[1,3]},"c":{"d":4}}"#);
        assert!(!Pieces::default().merge(&Raw::parse("[]".to_owned()).unwrap()));
    }

    #[test]
    fn odd_paths_have_no_place() {
        let long = "$.a".to_owned() + &"[0]".repeat(MAX_STEPS);
        for path in [
            "",
            "$",
            "$[0]",
            "$..a",
            "$.a[*]",
            "$.*",
            "$.a[-1]",
            "$.a[9999999]",
            "$.a['b",
            "$a",
            &long,
        ] {
            let mut piece: PartialArg<'_> = serde_json::from_str(r#"{"numberValue":1}"#).unwrap();
            piece.path = Some(crate::json::CowStr(path.into()));
            assert!(!Pieces::default().put(&piece), "{path}");
        }
    }
}
