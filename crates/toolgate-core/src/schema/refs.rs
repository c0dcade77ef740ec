//! Finding what a `$ref` points at, in every way that drafts and generators write it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::tree::{Shape, Tree};

/// What the references of one schema can point at.
#[derive(Debug)]
pub(super) struct Index<'t> {
    root: &'t Tree<'t>,
    /// Every definition by name.
    definitions: BTreeMap<&'t str, Vec<Definition<'t>>>,
    anchors: BTreeMap<&'t str, &'t Tree<'t>>,
    /// Schemas with an `$id`.
    resources: Vec<(&'t str, &'t Tree<'t>)>,
}

#[derive(Clone, Copy, Debug)]
struct Definition<'t> {
    /// The schema that it is defined in.
    owner: &'t Tree<'t>,
    /// `$defs`, `definitions`
    home: &'t str,
    tree: &'t Tree<'t>,
}

/// What a reference points at.
pub(super) enum Target<'t> {
    Schema {
        name: Cow<'t, str>,
        tree: &'t Tree<'t>,
    },
    /// Another document.
    Remote,
    Undefined,
}

impl<'t> Index<'t> {
    pub(super) fn new(root: &'t Tree<'t>) -> Self {
        let mut index = Self {
            root,
            definitions: BTreeMap::new(),
            anchors: BTreeMap::new(),
            resources: Vec::new(),
        };
        // Most schemas have no reference at all.
        if root.text.contains("ref\"") || root.text.contains("Ref\"") {
            index.walk(root);
        }
        index
    }

    /// Only schema positions are looked at: a `default` may hold anything.
    fn walk(&mut self, tree: &'t Tree<'t>) {
        for member in tree.members() {
            let value = &member.value;
            match member.key.as_ref() {
                "$defs" | "definitions" | "defs" => {
                    for definition in value.members() {
                        self.definitions.entry(&definition.key).or_default().push(Definition {
                            owner: tree,
                            home: &member.key,
                            tree: &definition.value,
                        });
                        self.walk(&definition.value);
                    }
                }
                "properties" | "patternProperties" | "dependentSchemas" | "dependencies" => {
                    value.members().iter().for_each(|member| self.walk(&member.value));
                }
                "items" | "prefixItems" | "allOf" | "anyOf" | "any_of" | "oneOf" => {
                    self.walk(value);
                    value.elements().iter().for_each(|element| self.walk(element));
                }
                "additionalItems"
                | "additionalProperties"
                | "additional_properties"
                | "contains"
                | "contentSchema"
                | "else"
                | "if"
                | "not"
                | "propertyNames"
                | "then"
                | "unevaluatedItems"
                | "unevaluatedProperties" => self.walk(value),
                "$anchor" | "$dynamicAnchor" => {
                    if let Some(anchor) = value.as_str() {
                        self.anchors.entry(anchor).or_insert(tree);
                    }
                }
                "$id" | "id" => match value.as_str().map(|id| id.trim_end_matches('#')) {
                    Some(id) if id.starts_with('#') => {
                        self.anchors.entry(&id[1..]).or_insert(tree);
                    }
                    Some(id) if !id.is_empty() => self.resources.push((id, tree)),
                    Some(_) | None => {}
                },
                _ => {}
            }
        }
    }

    /// What `reference`, written somewhere in the text `at`, points at.
    pub(super) fn resolve(&self, reference: &'t str, at: &str) -> Target<'t> {
        let (base, fragment) = match reference.split_once('#') {
            Some((base, fragment)) => (base, fragment),
            None => (reference, ""),
        };
        let starts: Vec<&'t Tree<'t>> = if base.is_empty() {
            let inner = self.resources.iter().map(|(_, tree)| *tree).filter(|tree| tree.holds(at));
            inner.min_by_key(|tree| tree.text.len()).into_iter().chain([self.root]).collect()
        } else {
            let same = |id: &str| {
                let end = |long: &str, short| {
                    long.strip_suffix(short).is_some_and(|rest| rest.ends_with('/'))
                };
                id == base || end(id, base) || end(base, id)
            };
            self.resources.iter().filter(|(id, _)| same(id)).map(|(_, tree)| *tree).collect()
        };
        if starts.is_empty() {
            let name = base.rsplit('/').next().unwrap_or(base);
            let name = name.strip_suffix(".json").unwrap_or(name);
            let found = if fragment.is_empty() { self.named(name, at) } else { None };
            return found.unwrap_or(Target::Remote);
        }
        if fragment.is_empty() {
            return match starts.first() {
                Some(tree) => Target::Schema { name: Cow::Borrowed("Root"), tree },
                None => Target::Undefined,
            };
        }
        let Some(pointer) = fragment.strip_prefix('/') else {
            let fragment = decoded(fragment);
            return match self.anchors.get(fragment.as_ref()) {
                Some(tree) => Target::Schema { name: Cow::Owned(fragment.into_owned()), tree },
                None => self.named(&fragment, at).unwrap_or(Target::Undefined),
            };
        };
        let tokens: Vec<Cow<'t, str>> = pointer.split('/').map(token).collect();
        let name = name(&tokens);
        for start in starts {
            if let Some(tree) = self.follow(start, &tokens) {
                return Target::Schema { name, tree };
            }
        }
        // Generators embed one schema in another and leave its references as they were.
        match tokens.last() {
            Some(last) => self.named(last, at).unwrap_or(Target::Undefined),
            None => Target::Undefined,
        }
    }

    /// The definition of that name that is nearest to `at`, or else the first one.
    fn named(&self, name: &str, at: &str) -> Option<Target<'t>> {
        let (name, candidates) = self.definitions.get_key_value(name)?;
        let around = candidates.iter().filter(|candidate| candidate.owner.holds(at));
        let nearest = around.min_by_key(|candidate| candidate.owner.text.len());
        let tree = nearest.or_else(|| candidates.first())?.tree;
        is_schema(tree).then_some(Target::Schema { name: Cow::Borrowed(name), tree })
    }

    fn follow(&self, start: &'t Tree<'t>, tokens: &[Cow<'t, str>]) -> Option<&'t Tree<'t>> {
        let mut here = start;
        let mut tokens = tokens.iter();
        while let Some(token) = tokens.next() {
            // There may be thousands of definitions.
            let defined = tokens.as_slice().first().and_then(|name| {
                let candidates = self.definitions.get(name.as_ref())?.iter();
                let mut here =
                    candidates.filter(|it| it.home == token && std::ptr::eq(it.owner, here));
                here.next()
            });
            here = match (&here.shape, defined) {
                (_, Some(defined)) => {
                    tokens.next();
                    defined.tree
                }
                (Shape::Object(_), None) => here.get(token)?,
                (Shape::Array(elements), None) => elements.get(token.parse::<usize>().ok()?)?,
                (
                    Shape::Null
                    | Shape::Bool(_)
                    | Shape::Number
                    | Shape::String(_)
                    | Shape::TooDeep,
                    None,
                ) => return None,
            };
        }
        is_schema(here).then_some(here)
    }
}

fn is_schema(tree: &Tree<'_>) -> bool {
    tree.is_object() || tree.as_bool().is_some()
}

/// `#/$defs/Item` is called `Item`, `#/properties/a/items` is called `a_items`.
fn name<'t>(tokens: &[Cow<'t, str>]) -> Cow<'t, str> {
    match tokens {
        [.., parent, last] if matches!(&**parent, "$defs" | "definitions" | "defs" | "schemas") => {
            last.clone()
        }
        _ => {
            let words = tokens.iter().filter(|token| {
                !matches!(&***token, "properties" | "$defs" | "definitions" | "defs")
            });
            Cow::Owned(words.map(|token| &**token).collect::<Vec<_>>().join("_"))
        }
    }
}

/// One part of a JSON pointer, without its escapes.
fn token(token: &str) -> Cow<'_, str> {
    let token = decoded(token);
    if token.contains('~') {
        return Cow::Owned(token.replace("~1", "/").replace("~0", "~"));
    }
    token
}

fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let hex = text.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match hex {
            Some(decoded) if byte == b'%' => {
                out.push(decoded);
                at += 3;
            }
            Some(_) | None => {
                out.push(byte);
                at += 1;
            }
        }
    }
    Cow::Owned(String::from_utf8_lossy(&out).into_owned())
}
