//! Targets of `$ref`, in every way that drafts and generators write it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::tree::{Shape, Tree, start};

/// Resources with the same or a similar `$id` that are tried for one reference.
const MAX_CANDIDATES: usize = 8;
/// Parts of an `$id` or of a reference by which they are found, counted from the end.
const MAX_PARTS: usize = 16;

/// Targets of the references of one schema. Every lookup is by key or by place: there may be
/// as many references as targets.
#[derive(Debug)]
pub(super) struct Index<'t> {
    root: &'t Tree<'t>,
    /// Every definition by name.
    definitions: BTreeMap<&'t str, Named<'t>>,
    /// Every definition by the schema that it is defined in, `$defs` or `definitions`, and name.
    defined: BTreeMap<(usize, &'t str, &'t str), &'t Tree<'t>>,
    anchors: BTreeMap<&'t str, &'t Tree<'t>>,
    /// Schemas with an `$id`.
    resources: Vec<(&'t str, &'t Tree<'t>)>,
    /// The resources around each place.
    around: Around,
    /// Resources by their `$id`, and by what follows each of its slashes.
    by_id: BTreeMap<&'t str, Vec<usize>>,
}

/// The definitions of one name.
#[derive(Debug, Default)]
struct Named<'t> {
    /// With the schema that each is defined in.
    list: Vec<(&'t Tree<'t>, &'t Tree<'t>)>,
    /// The owners around each place.
    around: Around,
}

/// Spans of text of which some contain others, to find the smallest one around a place.
#[derive(Debug, Default)]
struct Around {
    /// Sorted by start; of equal ones the first one counts.
    spans: Vec<Span>,
}

#[derive(Debug)]
struct Span {
    start: usize,
    end: usize,
    /// Which of the given texts it is.
    index: usize,
    /// The smallest span that contains it.
    parent: Option<usize>,
}

impl Around {
    fn new<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        let span = |(index, text): (usize, &str)| {
            let start = start(text);
            Span { start, end: start + text.len(), index, parent: None }
        };
        let mut spans: Vec<Span> = texts.enumerate().map(span).collect();
        spans.sort_by_key(|span| (span.start, std::cmp::Reverse(span.end), span.index));
        spans.dedup_by_key(|span| (span.start, span.end));
        let mut open: Vec<usize> = Vec::new();
        for at in 0..spans.len() {
            while open.last().is_some_and(|outer| spans[*outer].end <= spans[at].start) {
                open.pop();
            }
            spans[at].parent = open.last().copied();
            open.push(at);
        }
        Self { spans }
    }

    /// The smallest text around `inner`.
    fn smallest(&self, inner: &str) -> Option<usize> {
        let (from, to) = (start(inner), start(inner) + inner.len());
        let after = self.spans.partition_point(|span| span.start <= from);
        let mut at = after.checked_sub(1);
        // Values are nested at most as deep as trees are.
        while let Some(span) = at.and_then(|at| self.spans.get(at)) {
            if span.end >= to {
                return Some(span.index);
            }
            at = span.parent;
        }
        None
    }
}

/// The target of a reference.
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
            defined: BTreeMap::new(),
            anchors: BTreeMap::new(),
            resources: Vec::new(),
            around: Around::default(),
            by_id: BTreeMap::new(),
        };
        // Most schemas have no reference at all.
        if root.text.contains("ref\"") || root.text.contains("Ref\"") {
            index.walk(root);
            index.around = Around::new(index.resources.iter().map(|(_, tree)| tree.text));
            for (at, (id, _)) in index.resources.iter().enumerate() {
                for key in std::iter::once(*id).chain(ends(id)) {
                    index.by_id.entry(key).or_default().push(at);
                }
            }
            for named in index.definitions.values_mut() {
                named.around = Around::new(named.list.iter().map(|(owner, _)| owner.text));
            }
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
                        let named = self.definitions.entry(&definition.key).or_default();
                        named.list.push((tree, &definition.value));
                        let owner = std::ptr::from_ref(tree).addr();
                        let key = (owner, member.key.as_ref(), definition.key.as_ref());
                        self.defined.entry(key).or_insert(&definition.value);
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
            let inner = self.around.smallest(at).and_then(|at| self.resources.get(at));
            inner.map(|(_, tree)| *tree).into_iter().chain([self.root]).collect()
        } else {
            self.with_id(base)
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

    /// The schemas whose `$id` is `base`, ends with it, or is its end.
    fn with_id(&self, base: &str) -> Vec<&'t Tree<'t>> {
        let mut found: Vec<usize> = Vec::new();
        // By the `$id`, or its end.
        found.extend(self.by_id.get(base).into_iter().flatten().take(MAX_CANDIDATES));
        for end in ends(base) {
            let same = self.by_id.get(end).into_iter().flatten();
            let is_whole = |at: &&usize| self.resources.get(**at).is_some_and(|(id, _)| *id == end);
            found.extend(same.take(MAX_CANDIDATES).filter(is_whole));
        }
        found.sort_unstable();
        found.dedup();
        found.truncate(MAX_CANDIDATES);
        found.iter().filter_map(|at| self.resources.get(*at)).map(|(_, tree)| *tree).collect()
    }

    /// The definition of that name that is nearest to `at`, or else the first one.
    fn named(&self, name: &str, at: &str) -> Option<Target<'t>> {
        let (name, named) = self.definitions.get_key_value(name)?;
        let nearest = named.around.smallest(at).unwrap_or(0);
        let (_, tree) = *named.list.get(nearest)?;
        is_schema(tree).then_some(Target::Schema { name: Cow::Borrowed(name), tree })
    }

    fn follow(&self, start: &'t Tree<'t>, tokens: &[Cow<'t, str>]) -> Option<&'t Tree<'t>> {
        let mut here = start;
        let mut tokens = tokens.iter();
        while let Some(token) = tokens.next() {
            // There may be thousands of definitions.
            let defined = tokens.as_slice().first().and_then(|name| {
                let owner = std::ptr::from_ref(here).addr();
                self.defined.get(&(owner, token.as_ref(), name.as_ref())).copied()
            });
            here = match (&here.shape, defined) {
                (_, Some(defined)) => {
                    tokens.next();
                    defined
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

/// What follows each of the last slashes.
fn ends(id: &str) -> impl Iterator<Item = &str> {
    id.rmatch_indices('/').take(MAX_PARTS).map(|(at, _)| &id[at + 1..])
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
