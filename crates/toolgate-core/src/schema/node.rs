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
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::rc::Rc;

use super::distinct::Distinct;
use super::notes::Notes;
use super::tree::Tree;
pub(super) use super::types::Types;
pub(super) use super::values::{Value, Values};

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
    /// Its name in the client's schema.
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
    /// Sentences for the description: constraints that the schema cannot express.
    pub(super) notes: Notes,
    pub(super) default: Option<&'t Tree<'t>>,
    pub(super) values: Option<Values<'t>>,
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

/// A JSON number, as text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Number<'t>(pub(super) Cow<'t, str>);

/// Constraints on strings and numbers.
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

/// Constraints on arrays.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Array<'t> {
    /// The items after those of `prefix`.
    pub(super) items: Option<Node<'t>>,
    pub(super) prefix: Vec<Node<'t>>,
    pub(super) min: Option<u64>,
    pub(super) max: Option<u64>,
}

/// Constraints on objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Object<'t> {
    pub(super) properties: Vec<(Cow<'t, str>, Node<'t>)>,
    pub(super) required: Vec<Cow<'t, str>>,
    pub(super) ordering: Vec<Cow<'t, str>>,
    pub(super) additional: Additional<'t>,
    pub(super) min: Option<u64>,
    pub(super) max: Option<u64>,
    /// Built when a large object is merged with another.
    pub(super) index: ObjectIndex<'t>,
}

/// Finds an object's properties and required names while other objects are merged into it, so that
/// each merge costs as much as the other object. Every index equals every other.
#[derive(Clone, Default)]
pub(super) struct ObjectIndex<'t> {
    properties: BTreeMap<Cow<'t, str>, usize>,
    /// How many properties the object had when they were indexed.
    indexed: usize,
    required: BTreeSet<Cow<'t, str>>,
    /// How many required names the object had when they were indexed.
    required_names: usize,
}

impl PartialEq for ObjectIndex<'_> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for ObjectIndex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ObjectIndex")
    }
}

impl<'t> Object<'t> {
    /// The property of that name, to be merged with another.
    pub(super) fn property_mut(&mut self, name: &str) -> Option<&mut Node<'t>> {
        if self.index.indexed != self.properties.len() {
            let names = self.properties.iter().map(|(name, _)| name.clone());
            self.index.properties = names.zip(0..).collect();
            self.index.indexed = self.properties.len();
        }
        let at = *self.index.properties.get(name)?;
        self.properties.get_mut(at).map(|(_, node)| node)
    }

    /// Adds a property of a new name.
    pub(super) fn add_property(&mut self, name: Cow<'t, str>, node: Node<'t>) {
        if self.index.indexed == self.properties.len() {
            self.index.properties.insert(name.clone(), self.properties.len());
            self.index.indexed += 1;
        }
        self.properties.push((name, node));
    }

    /// Requires these names too; afterwards each name is there once.
    pub(super) fn require(&mut self, names: Vec<Cow<'t, str>>) {
        let Self { required, index, .. } = self;
        if index.required_names != required.len() {
            index.required.clear();
            required.retain(|name| index.required.insert(name.clone()));
        }
        required.extend(names.into_iter().filter(|name| index.required.insert(name.clone())));
        index.required_names = required.len();
    }
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

    pub(super) fn note(&mut self, sentence: impl Into<Rc<str>>) {
        self.notes.push(sentence);
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
        for note in self.notes.iter() {
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
                if !text[searched(&text)..].contains(inner_text) {
                    push_sentence(&mut text, inner_text);
                }
                Some(Cow::Owned(text))
            }
            (Some(outer), _) => Some(outer),
            (None, inner) => inner,
        };
        self.notes.append(outer.notes);
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
    /// union of one is that one. Says how many schemas were looked at.
    pub(super) fn set_branches(&mut self, branches: Vec<Self>) -> usize {
        let mut distinct = Distinct::default();
        for branch in branches {
            // Unless the inner one has a description of its own.
            if branch.any_of.is_empty() || branch.is_annotated() {
                distinct.push(branch);
            } else {
                branch.any_of.into_iter().for_each(|inner| distinct.push(inner));
            }
        }
        let work = distinct.work;
        let mut kept = distinct.into_nodes();
        if kept.len() != 1 {
            self.any_of = kept;
        } else if let Some(mut only) = kept.pop() {
            only.annotate(self.take_annotations());
            only.place.text = self.place.text;
            *self = only;
        }
        work
    }

    /// How many schemas it is made of; where these are more than `max`, some number above `max`.
    pub(super) fn weight_up_to(&self, max: usize) -> usize {
        let mut weight = 1;
        for child in self.children() {
            if weight > max {
                break;
            }
            weight += child.weight_up_to(max - weight);
        }
        weight
    }

    /// Returns the cost of a copy: schemas, names, values and pieces of text. Beyond `max`, returns some
    /// number above `max`.
    pub(super) fn bulk_up_to(&self, max: usize) -> usize {
        let mut bulk = self.own_bulk();
        for child in self.children() {
            if bulk > max {
                break;
            }
            bulk += child.bulk_up_to(max - bulk);
        }
        bulk
    }

    /// Returns the cost of a copy without the schemas inside, and of writing it.
    pub(super) fn own_bulk(&self) -> usize {
        /// Bytes of text that cost as much as a schema or a name.
        const UNIT: usize = 64;
        let text = |text: &Option<Cow<'_, str>>| text.as_deref().map_or(0, str::len);
        let names = |names: &[Cow<'_, str>]| names.iter().map(|name| UNIT + name.len()).sum();
        let notes: usize = self.notes.iter().map(|note| UNIT + note.len()).sum();
        let values = self.values.iter().flat_map(|values| values.iter());
        let values: usize = values.map(|value| UNIT + value.text().map_or(0, str::len)).sum();
        let object = self.object.as_deref().map_or(0, |object| {
            let properties = object.properties.iter().map(|(name, _)| UNIT + name.len());
            let (required, ordering): (usize, usize) =
                (names(&object.required), names(&object.ordering));
            properties.sum::<usize>() + required + ordering
        });
        let scalar = self.scalar.as_deref();
        let scalar = scalar.map_or(0, |scalar| text(&scalar.pattern) + text(&scalar.format));
        let default = self.default.map_or(0, |default| default.text.len());
        let words = text(&self.title) + text(&self.description) + notes + default;
        1 + (words + values + object + scalar) / UNIT
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

/// Where the part of a description begins that is searched for a sentence: a text that grows with
/// every merge is not searched from its beginning each time.
fn searched(text: &str) -> usize {
    const MAX_SEARCHED: usize = 4096;
    text.ceil_char_boundary(text.len().saturating_sub(MAX_SEARCHED))
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
