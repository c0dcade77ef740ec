//! The full lowering to `parameters`: one type a schema, no references, nothing beside a union.

use std::borrow::Cow;

use super::graph::Graph;
use super::limits::{self, MAX_LEVELS};
use crate::schema::distinct::Distinct;
use crate::schema::finding::{Effect, Findings};
use crate::schema::node::{
    Additional, Array, DefId, Document, Node, Number, Object, ObjectIndex, Types, Value,
};
use crate::schema::tree::{Shape, Tree};
use crate::schema::words;

/// Schemas that may come of writing references out.
const MAX_NODES: usize = 3_000;
/// Limit of copies made by inlining references, beside the schemas themselves: names, values and pieces
/// of text (see [`Node::own_bulk`]), and one more for so many bytes of the schema's text.
const MAX_BULK: (usize, usize) = (50_000, 8);
/// A larger schema that is cut because of references to it goes without its description.
const MAX_REPEATED_BULK: usize = 100;
/// A longer description or title is not repeated in every branch of a union.
const MAX_REPEATED: usize = 2_000;

/// Writes everything out. Endless references are followed three times, fewer where that is too much.
pub(in crate::schema) fn lower<'t>(
    document: &Document<'t>,
    findings: &mut Findings<'t>,
) -> Document<'t> {
    let most = document.root.weight_up_to(usize::MAX - 1).saturating_add(MAX_NODES);
    findings.work += most - MAX_NODES;
    let bulk = MAX_BULK.0 + document.root.place.text.len() / MAX_BULK.1;
    let mut root = None;
    for turns in [3, 2, 1] {
        let mut lower = Lower {
            document,
            findings: findings.clone(),
            stack: Vec::new(),
            nodes: 0,
            most,
            bulk,
            turns,
        };
        let lowered = lower.node(&document.root, 1);
        findings.work += lower.nodes;
        lower.findings.work += lower.nodes;
        if lower.nodes < most || turns == 1 {
            *findings = lower.findings;
            root = Some(lowered);
            break;
        }
    }
    let mut lowered = Document { root: root.unwrap_or_default(), defs: Vec::new() };
    let graph = Graph::new(&lowered);
    limits::limit(&mut lowered, &graph, findings);
    lowered
}

struct Lower<'d, 't> {
    document: &'d Document<'t>,
    findings: Findings<'t>,
    stack: Vec<DefId>,
    nodes: usize,
    most: usize,
    /// How much may still be written because of references.
    bulk: usize,
    turns: usize,
}

impl<'t> Lower<'_, 't> {
    fn node(&mut self, node: &Node<'t>, level: usize) -> Node<'t> {
        if let Some(id) = node.reference {
            return self.reference(node, id, level);
        }
        self.nodes += 1;
        let bulk = node.own_bulk();
        self.findings.work += bulk;
        if !self.stack.is_empty() {
            match self.bulk.checked_sub(bulk) {
                Some(left) => self.bulk = left,
                None => self.nodes = self.most,
            }
        }
        let crowded = self.nodes >= self.most;
        if crowded || (level + 1 >= MAX_LEVELS && node.children().next().is_some()) {
            let detail = if crowded {
                "more than can be written out; any value of that type is allowed here"
            } else {
                "nested too deep for Gemini; the description says what stands here"
            };
            self.findings.push(node.place.text, "", Effect::Cut, detail);
            // Large words are not repeated in every place that refers to them.
            if bulk > MAX_REPEATED_BULK && !self.stack.is_empty() {
                return leaf(&Node::of_type(node.place.text, node.types));
            }
            return leaf(node);
        }
        if !node.any_of.is_empty() {
            return self.union(node, level);
        }
        let types = self.types(node);
        let nullable = node.types.has(Types::NULL);
        let mut branches: Vec<Node<'t>> =
            types.each().map(|one| self.typed(node, one, level)).collect();
        let mut annotations = annotations(node);
        if branches.is_empty() && !nullable {
            return self.any(node, level);
        }
        if nullable {
            branches.iter_mut().for_each(|branch| branch.types = branch.types.with(Types::NULL));
        }
        if branches.len() < 2 {
            let mut only =
                branches.pop().unwrap_or_else(|| Node::of_type(node.place.text, Types::NULL));
            only.annotate(annotations);
            return only;
        }
        let place = node.place.text;
        let detail = "one type a schema: said with `anyOf`";
        self.findings.push(place, "type", Effect::Rewritten, detail);
        self.share(&mut branches, &mut annotations);
        Node { any_of: branches, ..Node::any(place) }
    }

    /// The types that a schema means, `null` aside.
    fn types(&self, node: &Node<'t>) -> Types {
        let mut types = node.types.without(Types::NULL);
        if let Some(scalar) = node.scalar.as_deref().filter(|_| node.types.is_empty()) {
            let text = scalar.pattern.is_some()
                || scalar.min_length.is_some()
                || scalar.max_length.is_some()
                || scalar.format.is_some();
            let number = scalar.minimum.is_some() || scalar.maximum.is_some();
            if text {
                types = types.with(Types::STRING);
            }
            if number {
                types = types.with(Types::NUMBER);
            }
        }
        // An integer is a number.
        if types.has(Types::NUMBER) { types.without(Types::INTEGER) } else { types }
    }

    fn reference(&mut self, node: &Node<'t>, id: DefId, level: usize) -> Node<'t> {
        let Some(def) = self.document.defs.get(id) else { return leaf(node) };
        let Some(target) = &def.node else { return leaf(node) };
        let turns = self.stack.iter().filter(|entered| **entered == id).count();
        if turns >= self.turns || self.stack.len() >= 2 * MAX_LEVELS {
            let detail = "refers to itself; after a few turns any value of that type is allowed";
            self.findings.push(node.place.text, "$ref", Effect::Cut, detail);
            let mut cut = Node::of_type(node.place.text, one_type(target.types));
            cut.note(format!("The same form again ({}).", def.name));
            cut.annotate(annotations(node));
            return cut;
        }
        self.stack.push(id);
        let mut written = self.node(target, level);
        self.stack.pop();
        let mut annotations = annotations(node);
        if written.any_of.is_empty() {
            written.annotate(annotations);
        } else {
            let mut branches = std::mem::take(&mut written.any_of);
            self.share(&mut branches, &mut annotations);
            written.any_of = branches;
        }
        written
    }

    fn union(&mut self, node: &Node<'t>, level: usize) -> Node<'t> {
        self.any_of(node.place.text, node.any_of.iter(), annotations(node), level)
    }

    fn any_of<'n>(
        &mut self,
        place: &'t str,
        branches: impl Iterator<Item = &'n Node<'t>>,
        mut annotations: Node<'t>,
        level: usize,
    ) -> Node<'t>
    where
        't: 'n,
    {
        let mut nullable = false;
        let mut distinct = Distinct::default();
        for branch in branches {
            let branch = self.node(branch, level + 1);
            let flat = if branch.any_of.is_empty() { vec![branch] } else { branch.any_of };
            for mut branch in flat {
                if branch.types == Types::NULL {
                    nullable = true;
                    let notes = std::mem::take(&mut branch.notes);
                    annotations.notes.append(notes);
                    if branch.default.is_some() {
                        let detail = "said with `nullable`, which has no default; it was left out";
                        let place = branch.place.text;
                        self.findings.push(place, "default", Effect::Dropped, detail);
                    }
                } else {
                    distinct.push(branch);
                }
            }
        }
        self.findings.work += distinct.work;
        let mut branches = distinct.into_nodes();
        if nullable {
            for branch in &mut branches {
                branch.types = branch.types.with(Types::NULL);
            }
        }
        if branches.len() < 2 {
            let mut only = branches.pop().unwrap_or_else(|| Node::of_type(place, Types::NULL));
            only.annotate(annotations);
            return only;
        }
        self.share(&mut branches, &mut annotations);
        Node { any_of: branches, ..Node::any(place) }
    }

    /// Copies the annotations of a union into its branches, since nothing may stand beside it.
    fn share(&mut self, branches: &mut [Node<'t>], annotations: &mut Node<'t>) {
        if let Some(default) = annotations.default.take() {
            let wanted = type_of(default);
            match branches.iter_mut().find(|branch| branch.types.allow(wanted)) {
                Some(branch) => branch.default = Some(default),
                None => {
                    let detail = "of none of the types that are allowed; it was left out";
                    self.findings.push(annotations.place.text, "default", Effect::Dropped, detail);
                }
            }
        }
        let description = annotations.full_description().map_or(0, |text| text.len());
        let length = description.max(annotations.title.as_ref().map_or(0, |title| title.len()));
        let often = length * branches.len() <= MAX_REPEATED;
        let count = if often { branches.len() } else { 1 };
        self.findings.work += count;
        for branch in branches.iter_mut().take(count) {
            branch.annotate(annotations.clone());
        }
    }

    /// Anything: Gemini has no type for it.
    fn any(&mut self, node: &Node<'t>, level: usize) -> Node<'t> {
        let place = node.place.text;
        let detail = "Gemini has no type for any value; the usual types are listed";
        self.findings.push(place, "type", Effect::Rewritten, detail);
        if level + 2 >= MAX_LEVELS {
            return leaf(node);
        }
        let mut annotations = annotations(node);
        let default = annotations.default.take();
        let mut first = Node::of_type(place, Types::STRING);
        first.annotate(annotations);
        let mut any_of = vec![first];
        for one in [Types::NUMBER, Types::BOOLEAN, Types::OBJECT, Types::ARRAY] {
            any_of.push(Node::of_type(place, one));
        }
        if let Some(default) = default {
            let wanted = type_of(default);
            if let Some(branch) = any_of.iter_mut().find(|branch| branch.types.allow(wanted)) {
                branch.default = Some(default);
            }
        }
        for branch in &mut any_of {
            if branch.types == Types::ARRAY {
                branch.array_mut().items = Some(Node::of_type(place, Types::STRING));
            }
        }
        Node { any_of, ..Node::any(place) }
    }

    /// The part of the schema for one of its types.
    fn typed(&mut self, node: &Node<'t>, one: Types, level: usize) -> Node<'t> {
        let mut typed = Node::of_type(node.place.text, one);
        if one == Types::STRING {
            self.string(node, &mut typed);
        } else if one == Types::NUMBER || one == Types::INTEGER {
            self.number(node, &mut typed);
        } else if one == Types::ARRAY {
            self.array(node, &mut typed, level);
        } else if one == Types::OBJECT {
            self.object(node, &mut typed, level);
        }
        typed
    }

    fn format(&mut self, node: &Node<'t>, typed: &mut Node<'t>, known: &[&str]) {
        let Some(format) = node.scalar.as_deref().and_then(|scalar| scalar.format.clone()) else {
            return;
        };
        if known.contains(&&*format) {
            typed.scalar_mut().format = Some(format);
            return;
        }
        // The other one of two types may know it.
        let elsewhere = node.types.without(Types::NULL).len() > 1
            && ["date-time", "enum", "float", "double", "int32", "int64"].contains(&&*format);
        if elsewhere {
            return;
        }
        typed.note(format!("Format: {format}."));
        let detail = "older models refuse this format; the description says it";
        self.findings.push(node.place.text, "format", Effect::Described, detail);
    }

    fn string(&mut self, node: &Node<'t>, typed: &mut Node<'t>) {
        self.format(node, typed, &["date-time", "enum"]);
        if let Some(scalar) = node.scalar.as_deref() {
            let mut pattern = scalar.pattern.clone();
            if let Some(odd) = pattern.take_if(|pattern| looks_around(pattern)) {
                typed.note(format!("Pattern: `{odd}`."));
                let detail =
                    "Gemini's patterns cannot look around or back; the description says it";
                self.findings.push(node.place.text, "pattern", Effect::Described, detail);
            }
            if pattern.is_some() || scalar.min_length.is_some() || scalar.max_length.is_some() {
                let out = typed.scalar_mut();
                out.pattern = pattern;
                out.min_length = scalar.min_length;
                out.max_length = scalar.max_length;
            }
        }
        let texts = node.values.iter().flat_map(|values| values.iter());
        let texts: Vec<Value<'t>> =
            texts.filter(|it| matches!(it, Value::Text(_))).cloned().collect();
        typed.values = (!texts.is_empty()).then(|| texts.into());
    }

    fn number(&mut self, node: &Node<'t>, typed: &mut Node<'t>) {
        let known: &[&str] =
            if typed.types == Types::NUMBER { &["float", "double"] } else { &["int32", "int64"] };
        self.format(node, typed, known);
        if let Some(scalar) = node.scalar.as_deref()
            && (scalar.minimum.is_some() || scalar.maximum.is_some())
        {
            let out = typed.scalar_mut();
            out.minimum = scalar.minimum.clone();
            out.maximum = scalar.maximum.clone();
        }
        let numbers: Vec<&Number<'t>> = node
            .values
            .iter()
            .flat_map(|values| values.iter())
            .filter_map(|value| if let Value::Number(number) = value { Some(number) } else { None })
            .collect();
        let least = numbers.iter().copied().min_by(|a, b| a.compare(b));
        let most = numbers.iter().copied().max_by(|a, b| a.compare(b));
        let (Some(least), Some(most)) = (least, most) else { return };
        let out = typed.scalar_mut();
        out.minimum = Some(least.clone());
        out.maximum = Some(most.clone());
        let list = numbers.iter().map(|number| number.0.as_ref()).collect::<Vec<_>>();
        typed.note(match list.as_slice() {
            [only] => format!("Must be {only}."),
            _ => format!("Must be one of: {}.", list.join(", ")),
        });
        let detail = "Gemini takes only strings in `enum`; numbers are said with bounds and in the description";
        self.findings.push(node.place.text, "enum", Effect::Described, detail);
    }

    fn array(&mut self, node: &Node<'t>, typed: &mut Node<'t>, level: usize) {
        let place = node.place.text;
        let empty = Array::default();
        let array = node.array.as_deref().unwrap_or(&empty);
        let mut kinds: Distinct<&Node<'t>> = Distinct::default();
        array.prefix.iter().chain(&array.items).for_each(|item| kinds.push(item));
        self.findings.work += kinds.work;
        let kinds = kinds.into_nodes();
        if !array.prefix.is_empty() {
            let order: Vec<String> = array.prefix.iter().take(20).map(words::kind).collect();
            typed.note(format!("Items in this order: {}.", order.join(", ")));
            let detail = "Gemini takes one schema for all items; the description says the order";
            self.findings.push(place, "prefixItems", Effect::Described, detail);
        }
        let items = match kinds.as_slice() {
            [] => Node::of_type(place, Types::STRING),
            [only] => self.node(only, level + 1),
            _ => self.several(place, &kinds, level + 1),
        };
        if array.items.is_none() && array.prefix.is_empty() {
            let detail = "an array must say what its items are; sent as strings";
            self.findings.push(place, "items", Effect::Adjusted, detail);
        }
        typed.array = Some(Box::new(Array {
            items: Some(items),
            prefix: Vec::new(),
            min: array.min,
            max: array.max,
        }));
    }

    /// A schema for what fits one of these.
    fn several(&mut self, place: &'t str, kinds: &[&Node<'t>], level: usize) -> Node<'t> {
        self.nodes += 1;
        if self.nodes >= self.most || level + 1 >= MAX_LEVELS {
            let any_of = kinds.iter().copied().cloned().collect();
            self.nodes -= 1;
            return self.node(&Node { any_of, ..Node::any(place) }, level);
        }
        self.any_of(place, kinds.iter().copied(), Node::any(place), level)
    }

    fn object(&mut self, node: &Node<'t>, typed: &mut Node<'t>, level: usize) {
        let Some(object) = node.object.as_deref() else { return };
        let place = node.place.text;
        let properties: Vec<(Cow<'t, str>, Node<'t>)> = object
            .properties
            .iter()
            .map(|(name, schema)| (name.clone(), self.node(schema, level + 1)))
            .collect();
        let keyword = "additionalProperties";
        match &object.additional {
            Additional::Unsaid => {}
            Additional::Forbidden => {
                let detail = "not part of `parameters`; Gemini fills in the listed properties only";
                self.findings.push(place, keyword, Effect::Dropped, detail);
            }
            Additional::Allowed => {
                typed.note(if properties.is_empty() {
                    "Any properties."
                } else {
                    "Other properties are allowed."
                });
                let detail = "not part of `parameters`; the description says it";
                self.findings.push(place, keyword, Effect::Described, detail);
            }
            Additional::Each(each) => {
                let kind = words::kind(each);
                typed.note(if properties.is_empty() {
                    format!("Any property names; each value: {kind}.")
                } else {
                    format!("Other properties are allowed; each value: {kind}.")
                });
                let detail = "not part of `parameters`; the description says it";
                self.findings.push(place, keyword, Effect::Described, detail);
            }
        }
        if properties.is_empty() && object.min.is_none() && object.max.is_none() {
            return;
        }
        typed.object = Some(Box::new(Object {
            properties,
            required: object.required.clone(),
            ordering: object.ordering.clone(),
            additional: Additional::Unsaid,
            min: object.min,
            max: object.max,
            index: ObjectIndex::default(),
        }));
    }
}

fn annotations<'t>(node: &Node<'t>) -> Node<'t> {
    Node {
        title: node.title.clone(),
        description: node.description.clone(),
        notes: node.notes.clone(),
        // In Gemini's own form null means "not set".
        default: node.default.filter(|default| !default.is_null()),
        ..Node::any(node.place.text)
    }
}

/// One of the types, the roomiest first.
fn one_type(types: Types) -> Types {
    let all = [Types::OBJECT, Types::ARRAY, Types::STRING, Types::NUMBER, Types::INTEGER];
    let all = all.into_iter().chain([Types::BOOLEAN, Types::NULL]);
    all.into_iter().find(|one| types.has(*one)).unwrap_or(Types::OBJECT)
}

/// A schema with nothing inside it.
fn leaf<'t>(node: &Node<'t>) -> Node<'t> {
    let types = node.types.without(Types::NULL);
    let mut cut = if types.is_empty() || types.has(Types::ARRAY) {
        let mut text = Node::of_type(node.place.text, Types::STRING);
        text.note("Written as JSON text.");
        text
    } else {
        Node::of_type(node.place.text, one_type(types))
    };
    if node.children().next().is_some() {
        cut.note(format!("Form: {}.", words::kind(node)));
    }
    cut.annotate(annotations(node));
    cut.default = None;
    cut
}

fn type_of(tree: &Tree<'_>) -> Types {
    match &tree.shape {
        Shape::Null => Types::NULL,
        Shape::Bool(_) => Types::BOOLEAN,
        Shape::Number => match Number::read(tree) {
            Some(number) if number.is_integral() => Types::INTEGER,
            Some(_) | None => Types::NUMBER,
        },
        Shape::String(_) => Types::STRING,
        Shape::Array(_) => Types::ARRAY,
        Shape::Object(_) | Shape::TooDeep => Types::OBJECT,
    }
}

/// Whether a pattern uses what automata cannot do.
fn looks_around(pattern: &str) -> bool {
    let groups = pattern.match_indices("(?").any(|(at, _)| !pattern[at..].starts_with("(?:"));
    let back =
        pattern.as_bytes().windows(2).any(|pair| pair[0] == b'\\' && pair[1].is_ascii_digit());
    groups || back
}
