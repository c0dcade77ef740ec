//! The compiler's own form of a schema, between what clients write and what Gemini gets.
//!
//! ```text
//!   JSON Schema ─┐                                      ┌─ clean ─► parametersJsonSchema
//!                ├─ read ─► Node (raw) ─ finish ─► Node ─┤
//!   Gemini form ─┘                                      └─ lower ─► parameters
//! ```
//!
//! In a finished node `$ref` and unions stand alone (beside annotations), `required` names only
//! properties, and keywords that belong to other types than the node's are gone.

use std::borrow::Cow;
use std::fmt;

use super::tree::Tree;
pub(super) use super::types::Types;

/// Which definition a `$ref` means: an index into [`Document::defs`].
pub(super) type DefId = usize;

/// A whole schema.
#[derive(Debug)]
pub(super) struct Document<'t> {
    pub(super) root: Node<'t>,
    /// Only those that are in use have a node.
    pub(super) defs: Vec<Def<'t>>,
}

/// Something that a `$ref` points at.
#[derive(Debug)]
pub(super) struct Def<'t> {
    /// What the client called it.
    pub(super) name: Cow<'t, str>,
    pub(super) tree: &'t Tree<'t>,
    pub(super) node: Option<Node<'t>>,
}

/// One schema.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Node<'t> {
    pub(super) place: Place<'t>,
    /// Empty: nothing is said about the type.
    pub(super) types: Types,
    pub(super) reference: Option<DefId>,
    pub(super) title: Option<Cow<'t, str>>,
    pub(super) description: Option<Cow<'t, str>>,
    /// What the schema itself can no longer say: sentences for the description.
    pub(super) notes: Vec<String>,
    pub(super) default: Option<&'t Tree<'t>>,
    pub(super) values: Option<Vec<Value<'t>>>,
    pub(super) scalar: Option<Box<Scalar<'t>>>,
    pub(super) array: Option<Box<Array<'t>>>,
    pub(super) object: Option<Box<Object<'t>>>,
    pub(super) any_of: Vec<Self>,
}

/// Where a schema comes from. It says where, not what: all places are equal.
#[derive(Clone, Copy, Default)]
pub(super) struct Place<'t> {
    /// The source text.
    pub(super) text: &'t str,
    /// The references that were followed to get here: the reader's number for them.
    pub(super) chain: usize,
}

impl PartialEq for Place<'_> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Place({} bytes)", self.text.len())
    }
}

/// One of the values of an `enum`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value<'t> {
    Text(Cow<'t, str>),
    Number(Number<'t>),
    Bool(bool),
    Null,
    /// An object or array.
    Data(&'t Tree<'t>),
}

/// A JSON number, as text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Number<'t>(pub(super) Cow<'t, str>);

/// What is said about strings and numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Scalar<'t> {
    pub(super) format: Option<Cow<'t, str>>,
    pub(super) pattern: Option<Cow<'t, str>>,
    pub(super) min_length: Option<u64>,
    pub(super) max_length: Option<u64>,
    pub(super) minimum: Option<Number<'t>>,
    pub(super) maximum: Option<Number<'t>>,
    /// Gone from finished nodes.
    pub(super) above: Option<Number<'t>>,
    /// Gone from finished nodes.
    pub(super) below: Option<Number<'t>>,
}

/// What is said about arrays.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Array<'t> {
    /// The items after those of `prefix`.
    pub(super) items: Option<Node<'t>>,
    pub(super) prefix: Vec<Node<'t>>,
    pub(super) min: Option<u64>,
    pub(super) max: Option<u64>,
}

/// What is said about objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Object<'t> {
    pub(super) properties: Vec<(Cow<'t, str>, Node<'t>)>,
    pub(super) required: Vec<Cow<'t, str>>,
    pub(super) ordering: Vec<Cow<'t, str>>,
    pub(super) additional: Additional<'t>,
    pub(super) min: Option<u64>,
    pub(super) max: Option<u64>,
}

/// Whether an object may have properties that are not listed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Additional<'t> {
    #[default]
    Unsaid,
    Allowed,
    Forbidden,
    Each(Box<Node<'t>>),
}

impl<'t> Node<'t> {
    /// Anything goes.
    pub(super) fn any(text: &'t str) -> Self {
        Self { place: Place { text, chain: 0 }, ..Self::default() }
    }

    pub(super) fn of_type(text: &'t str, types: Types) -> Self {
        Self { types, ..Self::any(text) }
    }

    /// Whether it says something about the value itself, a `$ref` or a union aside.
    pub(super) fn is_structural(&self) -> bool {
        !self.types.is_empty() || self.has_parts()
    }

    /// Whether it says more about the value than its type, a `$ref` or a union aside.
    pub(super) fn has_parts(&self) -> bool {
        self.values.is_some()
            || self.scalar.is_some()
            || self.array.is_some()
            || self.object.is_some()
    }

    /// Whether it says at most a type.
    pub(super) fn is_only_type(&self) -> bool {
        !self.has_parts() && self.reference.is_none() && self.any_of.is_empty()
    }

    /// Whether anything goes.
    pub(super) fn is_any(&self) -> bool {
        !self.is_structural() && self.reference.is_none() && self.any_of.is_empty()
    }

    pub(super) fn is_annotated(&self) -> bool {
        self.title.is_some()
            || self.description.is_some()
            || self.default.is_some()
            || !self.notes.is_empty()
    }

    pub(super) fn scalar_mut(&mut self) -> &mut Scalar<'t> {
        self.scalar.get_or_insert_default()
    }

    pub(super) fn array_mut(&mut self) -> &mut Array<'t> {
        self.array.get_or_insert_default()
    }

    pub(super) fn object_mut(&mut self) -> &mut Object<'t> {
        self.object.get_or_insert_default()
    }

    pub(super) fn note(&mut self, sentence: impl Into<String>) {
        let sentence = sentence.into();
        if !self.notes.contains(&sentence) {
            self.notes.push(sentence);
        }
    }

    /// The description with the notes after it.
    pub(super) fn full_description(&self) -> Option<Cow<'_, str>> {
        if self.notes.is_empty() {
            return self.description.as_deref().map(Cow::Borrowed);
        }
        let mut text = String::new();
        if let Some(description) = &self.description {
            push_sentence(&mut text, description);
        }
        for note in &self.notes {
            push_sentence(&mut text, note);
        }
        Some(Cow::Owned(text))
    }

    /// Takes over what `outer` says about the use of this schema. The outer title and default
    /// stand before the inner ones; both descriptions are kept.
    pub(super) fn annotate(&mut self, outer: Self) {
        if outer.title.is_some() {
            self.title = outer.title;
        }
        if outer.default.is_some() {
            self.default = outer.default;
        }
        self.description = match (outer.description, self.description.take()) {
            (Some(outer), Some(inner)) if outer != inner && !inner.is_empty() => {
                let mut text = outer.into_owned();
                let inner_text = inner.as_ref();
                if !text.contains(inner_text) {
                    push_sentence(&mut text, inner_text);
                }
                Some(Cow::Owned(text))
            }
            (Some(outer), _) => Some(outer),
            (None, inner) => inner,
        };
        for note in outer.notes {
            self.note(note);
        }
    }

    /// The annotations alone, moved out.
    pub(super) fn take_annotations(&mut self) -> Self {
        Self {
            place: self.place,
            title: self.title.take(),
            description: self.description.take(),
            notes: std::mem::take(&mut self.notes),
            default: self.default.take(),
            ..Self::default()
        }
    }

    /// Takes the branches of a union: nested unions are written flat, equal branches once, and a
    /// union of one is that one.
    pub(super) fn set_branches(&mut self, branches: Vec<Self>) {
        /// Unions with more branches are not searched for equal ones.
        const MAX_COMPARED: usize = 200;
        let mut kept: Vec<Self> = Vec::with_capacity(branches.len());
        for branch in branches {
            // Unless the inner one has a description of its own.
            let flat = if branch.any_of.is_empty() || branch.is_annotated() {
                vec![branch]
            } else {
                branch.any_of
            };
            for branch in flat {
                if kept.len() > MAX_COMPARED || !kept.contains(&branch) {
                    kept.push(branch);
                }
            }
        }
        if kept.len() != 1 {
            self.any_of = kept;
        } else if let Some(mut only) = kept.pop() {
            only.annotate(self.take_annotations());
            only.place.text = self.place.text;
            *self = only;
        }
    }

    /// How many schemas it is made of.
    pub(super) fn weight(&self) -> usize {
        1 + self.children().map(Self::weight).sum::<usize>()
    }

    /// Every schema directly inside this one.
    pub(super) fn children(&self) -> impl Iterator<Item = &Self> {
        let array = self.array.as_deref();
        let object = self.object.as_deref();
        let additional = object.and_then(|object| match &object.additional {
            Additional::Each(each) => Some(each.as_ref()),
            Additional::Unsaid | Additional::Allowed | Additional::Forbidden => None,
        });
        array
            .into_iter()
            .flat_map(|array| array.prefix.iter().chain(&array.items))
            .chain(object.into_iter().flat_map(|it| it.properties.iter().map(|(_, child)| child)))
            .chain(additional)
            .chain(&self.any_of)
    }

    /// Every schema directly inside this one, to be changed.
    pub(super) fn children_mut(&mut self) -> impl Iterator<Item = &mut Self> {
        let (properties, additional) = match self.object.as_deref_mut() {
            Some(object) => (
                object.properties.as_mut_slice(),
                match &mut object.additional {
                    Additional::Each(each) => Some(each.as_mut()),
                    Additional::Unsaid | Additional::Allowed | Additional::Forbidden => None,
                },
            ),
            None => (&mut [] as &mut [_], None),
        };
        self.array
            .as_deref_mut()
            .into_iter()
            .flat_map(|array| array.prefix.iter_mut().chain(&mut array.items))
            .chain(properties.iter_mut().map(|(_, child)| child))
            .chain(additional)
            .chain(&mut self.any_of)
    }
}

/// Adds a sentence, with the full stop that the one before may lack.
pub(super) fn push_sentence(text: &mut String, sentence: &str) {
    let end = text.trim_end().len();
    text.truncate(end);
    if let Some(last) = text.chars().last() {
        if last.is_alphanumeric() || matches!(last, ')' | ']' | '`' | '"' | '\'') {
            text.push('.');
        }
        text.push(' ');
    }
    text.push_str(sentence);
}

impl Value<'_> {
    pub(super) fn types(&self) -> Types {
        match self {
            Self::Text(_) => Types::STRING,
            Self::Number(number) if number.is_integral() => Types::INTEGER,
            Self::Number(_) => Types::NUMBER,
            Self::Bool(_) => Types::BOOLEAN,
            Self::Null => Types::NULL,
            Self::Data(tree) if tree.is_object() => Types::OBJECT,
            Self::Data(_) => Types::ARRAY,
        }
    }

    /// The value as JSON.
    pub(super) fn to_json(&self) -> String {
        let mut out = Vec::new();
        self.write(&mut out);
        String::from_utf8(out).unwrap_or_default()
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Text(text) => crate::json::write::string(out, text),
            Self::Number(number) => out.extend_from_slice(number.0.as_bytes()),
            Self::Bool(true) => out.extend_from_slice(b"true"),
            Self::Bool(false) => out.extend_from_slice(b"false"),
            Self::Null => out.extend_from_slice(b"null"),
            Self::Data(tree) => tree.write(out),
        }
    }
}
