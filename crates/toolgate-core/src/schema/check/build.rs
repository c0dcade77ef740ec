//! From a schema's text to nodes.

use std::collections::BTreeMap;

use super::fit::{Additional, Bounds, Node, NodeId, Types};
use crate::json::{Fields, Kind, Raw};

/// Deeper than this nothing is checked.
const MAX_DEPTH: usize = 128;
/// A schema of more nodes than this is checked in part.
const MAX_NODES: usize = 50_000;

/// The node that takes everything.
const ANYTHING: NodeId = 0;
/// The node that takes nothing.
const NOTHING: NodeId = 1;

/// A schema's nodes, and which of them is its root.
pub(super) fn build(schema: &str) -> (Vec<Node>, NodeId) {
    let mut build = Build {
        root: schema,
        definitions: definitions(schema),
        nodes: vec![Node::default(), Node { types: Types::NONE, ..Node::default() }],
        targets: BTreeMap::new(),
        queue: Vec::new(),
    };
    let root = build.node(schema, 0);
    while let Some((pointer, target)) = build.queue.pop() {
        if let Some(text) = build.resolve(&pointer) {
            let found = build.node(text, 0);
            build.nodes[target].all.push(found);
        }
    }
    (build.nodes, root)
}

struct Build<'s> {
    root: &'s str,
    /// What stands under `$defs` and `definitions` at the root, by pointer.
    definitions: BTreeMap<String, &'s str>,
    nodes: Vec<Node>,
    /// What was referred to, so that a cycle ends where it began.
    targets: BTreeMap<String, NodeId>,
    queue: Vec<(String, NodeId)>,
}

impl<'s> Build<'s> {
    fn node(&mut self, schema: &'s str, depth: usize) -> NodeId {
        if schema == "false" {
            return NOTHING;
        }
        if depth > MAX_DEPTH || self.nodes.len() >= MAX_NODES {
            return ANYTHING;
        }
        let Some(fields) = fields(schema) else { return ANYTHING };
        let id = self.nodes.len();
        self.nodes.push(Node::default());
        let mut node = Node::default();
        for (keyword, value) in &fields.0 {
            let Some(text) = value.as_borrowed() else { continue };
            self.keyword(&mut node, keyword, value, text, depth + 1);
        }
        finish(&mut node, &fields);
        self.nodes[id] = node;
        id
    }

    fn keyword(
        &mut self,
        node: &mut Node,
        name: &str,
        value: &Raw<'s>,
        text: &'s str,
        depth: usize,
    ) {
        match name {
            "type" => node.types = types(value),
            "enum" => node.values = value.items().map(|items| owned(&items)),
            "const" => node.values = Some(owned(std::slice::from_ref(value))),
            "properties" => {
                for (name, schema) in each_field(text) {
                    let schema = self.node(schema, depth);
                    node.properties.insert(name, schema);
                }
            }
            "required" => {
                node.required = strings(value);
                node.required.sort_unstable();
                node.required.dedup();
            }
            "additionalProperties" => {
                node.additional = match text {
                    "false" => Additional::No,
                    _ if value.kind() == Kind::Object => Additional::Schema(self.node(text, depth)),
                    _ => Additional::Any,
                }
            }
            "prefixItems" => node.prefix = self.each(text, depth),
            "items" if value.kind() == Kind::Array => node.prefix = self.each(text, depth),
            "items" | "additionalItems" => node.items = Some(self.node(text, depth)),
            "anyOf" | "any_of" | "oneOf" => {
                let branches = self.each(text, depth);
                if !branches.is_empty() {
                    node.any.push(branches);
                }
            }
            "allOf" => {
                let all = self.each(text, depth);
                node.all.extend(all);
            }
            "$ref" | "ref" => {
                if let Some(pointer) = value.as_text() {
                    node.all.extend(self.reference(&pointer.decode()));
                }
            }
            "default" => node.default = Some(value.clone().into_owned()),
            _ => {}
        }
    }

    fn each(&mut self, text: &'s str, depth: usize) -> Vec<NodeId> {
        let items: Vec<Raw<'s>> = serde_json::from_str(text).unwrap_or_default();
        items.iter().filter_map(Raw::as_borrowed).map(|item| self.node(item, depth)).collect()
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

    fn resolve(&self, pointer: &str) -> Option<&'s str> {
        if let Some(&found) = self.definitions.get(pointer) {
            return Some(found);
        }
        let Some(path) = pointer.strip_prefix('/') else {
            return if pointer.is_empty() { Some(self.root) } else { self.anchor(pointer) };
        };
        let mut at = self.root;
        for step in path.split('/') {
            let step = unescaped(step);
            at = match at.as_bytes().first()? {
                b'[' => {
                    let items: Vec<Raw<'s>> = serde_json::from_str(at).ok()?;
                    items.get(step.parse::<usize>().ok()?)?.as_borrowed()?
                }
                _ => fields(at)?.get(&step)?.as_borrowed()?,
            };
        }
        Some(at)
    }

    fn anchor(&self, name: &str) -> Option<&'s str> {
        self.definitions.values().copied().find(|text| {
            fields(text)
                .and_then(|fields| fields.get("$anchor")?.as_text().map(|it| it.decode() == name))
                .unwrap_or(false)
        })
    }
}

/// What several keywords say together.
fn finish(node: &mut Node, fields: &Fields<'_>) {
    let is_true = |name: &str| fields.get(name).is_some_and(|it| it.get() == "true");
    if is_true("nullable") {
        node.types = node.types.with(Types::NULL);
        if let Some(values) = &mut node.values {
            values.extend(Raw::parse("null".to_owned()));
        }
    }
    if fields.get("patternProperties").is_some() {
        // Patterns are not evaluated: any name may match one.
        node.additional = Additional::Any;
    }
    let number = |name: &str| number(fields.get(name)?);
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

fn fields(text: &str) -> Option<Fields<'_>> {
    text.starts_with('{').then(|| serde_json::from_str(text).ok()).flatten()
}

fn each_field(text: &str) -> Vec<(Box<str>, &str)> {
    let fields = fields(text).unwrap_or_default().0.into_iter();
    fields.filter_map(|(name, value)| Some((name.into(), value.as_borrowed()?))).collect()
}

fn definitions(schema: &str) -> BTreeMap<String, &str> {
    let mut found = BTreeMap::new();
    let root = fields(schema).unwrap_or_default();
    for holder in ["$defs", "definitions", "defs"] {
        let Some(text) = root.get(holder).and_then(Raw::as_borrowed) else { continue };
        for (name, schema) in each_field(text) {
            found.insert(format!("/{holder}/{name}"), schema);
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

fn types(value: &Raw<'_>) -> Types {
    let names = strings(value);
    let known = names.iter().map(|name| Types::named(name)).collect::<Option<Vec<_>>>();
    // A type that nobody knows constrains nothing.
    known
        .filter(|it| !it.is_empty())
        .map_or(Types::ALL, |known| known.into_iter().fold(Types::NONE, Types::with))
}

/// The strings of an array, or the lone string.
fn strings(value: &Raw<'_>) -> Vec<Box<str>> {
    let owned = |it: &Raw<'_>| it.as_text().map(|text| Box::from(text.decode().as_ref()));
    match value.items() {
        Some(items) => items.iter().filter_map(owned).collect(),
        None => owned(value).into_iter().collect(),
    }
}

fn owned(items: &[Raw<'_>]) -> Vec<Raw<'static>> {
    items.iter().map(|item| item.clone().into_owned()).collect()
}

/// A number, also in a string, as Gemini's own schemas have it.
fn number(value: &Raw<'_>) -> Option<f64> {
    match value.as_text() {
        Some(text) => text.decode().parse().ok(),
        None => value.get().parse().ok(),
    }
    .filter(|it: &f64| it.is_finite())
}
