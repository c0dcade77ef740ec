//! From a schema's text to nodes.

use std::collections::BTreeMap;

use super::closure::close;
use super::fit::{Additional, Bounds, Node, NodeId, Types};
use super::listed::Listed;
use crate::json::Raw;
use crate::schema::tree::{Shape, Tree};

/// Deeper than this nothing is checked.
const MAX_DEPTH: usize = 128;
/// A schema of more nodes than this is checked in part.
const MAX_NODES: usize = 50_000;

/// The node that takes everything.
const ANYTHING: NodeId = 0;
/// The node that takes nothing.
const NOTHING: NodeId = 1;

/// A schema's nodes, and which of them is its root.
pub(super) fn build(schema: &Tree<'_>) -> (Vec<Node>, NodeId) {
    let definitions = definitions(schema);
    let mut build = Build {
        root: schema,
        anchors: anchors(&definitions),
        definitions,
        nodes: vec![Node::default(), Node { types: Types::NONE, ..Node::default() }],
        targets: BTreeMap::new(),
        queue: Vec::new(),
    };
    let root = build.node(schema, 0);
    while let Some((pointer, target)) = build.queue.pop() {
        if let Some(schema) = build.resolve(&pointer) {
            let found = build.node(schema, 0);
            build.nodes[target].all.push(found);
        }
    }
    close(&mut build.nodes);
    (build.nodes, root)
}

struct Build<'s> {
    root: &'s Tree<'s>,
    /// What stands under `$defs` and `definitions` at the root, by pointer.
    definitions: BTreeMap<String, &'s Tree<'s>>,
    /// The definitions that have an `$anchor`.
    anchors: BTreeMap<&'s str, &'s Tree<'s>>,
    nodes: Vec<Node>,
    /// References followed so far, so that a cycle ends where it began.
    targets: BTreeMap<String, NodeId>,
    queue: Vec<(String, NodeId)>,
}

impl<'s> Build<'s> {
    fn node(&mut self, schema: &'s Tree<'s>, depth: usize) -> NodeId {
        if schema.as_bool() == Some(false) {
            return NOTHING;
        }
        if depth > MAX_DEPTH || self.nodes.len() >= MAX_NODES || !schema.is_object() {
            return ANYTHING;
        }
        let id = self.nodes.len();
        self.nodes.push(Node::default());
        let mut node = Node::default();
        for member in schema.members() {
            self.keyword(&mut node, &member.key, &member.value, depth + 1);
        }
        finish(&mut node, schema);
        self.nodes[id] = node;
        id
    }

    fn keyword(&mut self, node: &mut Node, name: &str, value: &'s Tree<'s>, depth: usize) {
        match name {
            "type" => node.types = types(value),
            "enum" if is_array(value) => node.values = Some(Listed::new(owned(value.elements()))),
            "const" => {
                node.values = Some(Listed::new(owned(std::slice::from_ref(value))));
            }
            "properties" => {
                for member in value.members() {
                    let schema = self.node(&member.value, depth);
                    node.properties.insert(Box::from(&*member.key), schema);
                }
            }
            "required" => {
                node.required = strings(value);
                node.required.sort_unstable();
                node.required.dedup();
            }
            "additionalProperties" => {
                node.additional = match value.as_bool() {
                    Some(false) => Additional::No,
                    None if value.is_object() => Additional::Schema(self.node(value, depth)),
                    Some(true) | None => Additional::Any,
                }
            }
            "prefixItems" => node.prefix = self.each(value, depth),
            "items" if is_array(value) => node.prefix = self.each(value, depth),
            "items" | "additionalItems" => node.items = Some(self.node(value, depth)),
            "anyOf" | "any_of" | "oneOf" => {
                let branches = self.each(value, depth);
                if !branches.is_empty() {
                    node.any.push(branches);
                }
            }
            "allOf" => {
                let all = self.each(value, depth);
                node.all.extend(all);
            }
            "$ref" | "ref" => {
                if let Some(pointer) = value.as_str() {
                    node.all.extend(self.reference(pointer));
                }
            }
            "default" => node.default = Raw::parse(value.text.to_owned()),
            _ => {}
        }
    }

    fn each(&mut self, schemas: &'s Tree<'s>, depth: usize) -> Vec<NodeId> {
        schemas.elements().iter().map(|schema| self.node(schema, depth)).collect()
    }

    /// The node for a pointer into this schema; its content follows later.
    fn reference(&mut self, pointer: &str) -> Option<NodeId> {
        let pointer = pointer.strip_prefix('#')?;
        if let Some(&target) = self.targets.get(pointer) {
            return Some(target);
        }
        if self.nodes.len() >= MAX_NODES {
            return None;
        }
        let target = self.nodes.len();
        self.nodes.push(Node::default());
        self.targets.insert(pointer.to_owned(), target);
        self.queue.push((pointer.to_owned(), target));
        Some(target)
    }

    fn resolve(&self, pointer: &str) -> Option<&'s Tree<'s>> {
        if let Some(&found) = self.definitions.get(pointer) {
            return Some(found);
        }
        let Some(path) = pointer.strip_prefix('/') else {
            let anchor = || self.anchors.get(pointer).copied();
            return if pointer.is_empty() { Some(self.root) } else { anchor() };
        };
        let mut at = self.root;
        for step in path.split('/') {
            let step = unescaped(step);
            at = if is_array(at) {
                at.elements().get(step.parse::<usize>().ok()?)?
            } else {
                at.get(&step)?
            };
        }
        Some(at)
    }
}

/// Combined constraint of several keywords.
fn finish(node: &mut Node, schema: &Tree<'_>) {
    let is_true = |name: &str| schema.get(name).and_then(Tree::as_bool) == Some(true);
    if is_true("nullable") {
        node.types = node.types.with(Types::NULL);
        if let Some(values) = &mut node.values {
            values.push_null();
        }
    }
    if schema.get("patternProperties").is_some() {
        // Patterns are not evaluated: any name may match one.
        node.additional = Additional::Any;
    }
    let number = |name: &str| number(schema.get(name)?);
    let count = |name: &str| number(name).filter(|it| *it >= 0.0).map(|it| it as usize);
    let mut bounds = Bounds {
        minimum: number("minimum"),
        maximum: number("maximum"),
        above: number("exclusiveMinimum"),
        below: number("exclusiveMaximum"),
        length: (count("minLength"), count("maxLength")),
        items: (count("minItems"), count("maxItems")),
        members: (count("minProperties"), count("maxProperties")),
    };
    // Draft 4 says `exclusiveMinimum: true` beside `minimum`.
    if is_true("exclusiveMinimum") {
        bounds.above = bounds.minimum.take();
    }
    if is_true("exclusiveMaximum") {
        bounds.below = bounds.maximum.take();
    }
    if bounds != Bounds::default() {
        node.bounds = Some(Box::new(bounds));
    }
}

fn is_array(value: &Tree<'_>) -> bool {
    matches!(value.shape, Shape::Array(_))
}

fn definitions<'s>(schema: &'s Tree<'s>) -> BTreeMap<String, &'s Tree<'s>> {
    let mut found = BTreeMap::new();
    for holder in ["$defs", "definitions", "defs"] {
        for member in schema.get(holder).map(Tree::members).unwrap_or_default() {
            found.insert(format!("/{holder}/{}", member.key), &member.value);
        }
    }
    found
}

fn anchors<'s>(definitions: &BTreeMap<String, &'s Tree<'s>>) -> BTreeMap<&'s str, &'s Tree<'s>> {
    let mut found = BTreeMap::new();
    for schema in definitions.values() {
        if let Some(anchor) = schema.get("$anchor").and_then(Tree::as_str) {
            found.entry(anchor).or_insert(*schema);
        }
    }
    found
}

/// A pointer's step: `~1` is a slash, `%24` a dollar.
fn unescaped(step: &str) -> String {
    let mut bytes = Vec::with_capacity(step.len());
    let mut rest = step.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let hex = after
            .get(..2)
            .filter(|_| first == b'%')
            .and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        rest = if hex.is_some() { &after[2..] } else { after };
        bytes.push(hex.unwrap_or(first));
    }
    String::from_utf8_lossy(&bytes).replace("~1", "/").replace("~0", "~")
}

fn types(value: &Tree<'_>) -> Types {
    let names = strings(value);
    let known = names.iter().map(|name| Types::named(name)).collect::<Option<Vec<_>>>();
    // An unknown type constrains nothing.
    known
        .filter(|it| !it.is_empty())
        .map_or(Types::ALL, |known| known.into_iter().fold(Types::NONE, Types::with))
}

/// The strings of an array, or the lone string.
fn strings(value: &Tree<'_>) -> Vec<Box<str>> {
    let lone = value.as_str().into_iter();
    lone.chain(value.elements().iter().filter_map(Tree::as_str)).map(Box::from).collect()
}

fn owned(values: &[Tree<'_>]) -> Vec<Raw<'static>> {
    values.iter().filter_map(|value| Raw::parse(value.text.to_owned())).collect()
}

/// A number, also in a string, as Gemini's own schemas have it.
fn number(value: &Tree<'_>) -> Option<f64> {
    let text = value.as_str().unwrap_or(value.text);
    text.parse().ok().filter(|it: &f64| it.is_finite())
}
