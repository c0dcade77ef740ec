//! A function's arguments are an object, whatever its schema says.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::reader::Reader;
use crate::schema::finding::Effect;
use crate::schema::node::{Additional, Node, Object, Types, Value};
use crate::schema::tree::{Shape, Tree};
use crate::schema::words;

/// Forms that are spelled out in the note about a union of arguments.
const MAX_FORMS: usize = 12;

impl<'t> Reader<'t> {
    /// Reads the root of a function's schema: always one object.
    pub(super) fn arguments(&mut self, root: &'t Tree<'t>) -> Node<'t> {
        // No schema, or PHP's empty object.
        let empty = match &root.shape {
            Shape::Null => true,
            Shape::Array(elements) => elements.is_empty(),
            Shape::Bool(_)
            | Shape::Number
            | Shape::String(_)
            | Shape::Object(_)
            | Shape::TooDeep => false,
        };
        if empty {
            return Node::of_type(root.text, Types::OBJECT);
        }
        if matches!(root.shape, Shape::TooDeep) {
            let detail = "too large to be looked into; any arguments are allowed";
            self.findings.push(root.text, "", Effect::Cut, detail);
            let mut node = Node::of_type(root.text, Types::OBJECT);
            node.object_mut().additional = Additional::Allowed;
            return node;
        }
        let Some(node) = self.schema(root) else {
            let detail = "no arguments fit this schema; the function is offered without arguments";
            self.findings.push(root.text, "", Effect::Repaired, detail);
            return Node::of_type(root.text, Types::OBJECT);
        };
        let mut node = self.expand(node);
        if !node.types.is_empty() && !node.types.has(Types::OBJECT) {
            return self.not_an_object(node);
        }
        if let Some(values) = node.values.take() {
            let detail = "`enum` of whole arguments is said in the description";
            self.findings.push(root.text, "enum", Effect::Described, detail);
            node.note(format!("The arguments are one of: {}.", words::values(&values)));
        }
        if !node.any_of.is_empty() {
            node = self.one_object(node);
        }
        if node.types.has(Types::OBJECT) && node.types.without(Types::NULL) != Types::OBJECT {
            let detail = "arguments are always an object; the other types were left out";
            self.findings.push(root.text, "type", Effect::Adjusted, detail);
        }
        node.types = Types::OBJECT;
        node.array = None;
        node.scalar = None;
        node
    }

    fn not_an_object(&mut self, mut node: Node<'t>) -> Node<'t> {
        let kind = words::kind(&node);
        let detail = format!(
            "arguments are always an object, but the schema asks for {kind}; the function is offered without arguments"
        );
        let help = "make it an object with one property";
        let place = node.place.text;
        self.findings.push_with_help(place, "type", Effect::Repaired, detail, Some(help.into()));
        let mut object = Node::of_type(place, Types::OBJECT);
        object.annotate(node.take_annotations());
        object
    }

    /// Makes one object of a union: every branch's properties, required only where all agree.
    fn one_object(&mut self, mut node: Node<'t>) -> Node<'t> {
        let place = node.place.text;
        let mut queue = std::mem::take(&mut node.any_of);
        queue.reverse();
        let mut forms: Vec<Object<'t>> = Vec::new();
        let mut seen = 0;
        while let Some(branch) = queue.pop() {
            seen += 1;
            let mut branch = self.expand(branch);
            let inner = std::mem::take(&mut branch.any_of);
            if !inner.is_empty() && seen < 100 {
                for choice in inner.into_iter().rev() {
                    queue.extend(self.merge(branch.clone(), choice).ok());
                }
                continue;
            }
            if branch.types.is_empty() || branch.types.has(Types::OBJECT) {
                forms.push(*branch.object.unwrap_or_default());
            }
        }
        let detail = "arguments are one object; the branches are merged into it, and the description says what belongs together";
        let help = "one function for each form is easier for a model";
        let effect = Effect::Described;
        self.findings.push_with_help(place, "anyOf", effect, detail, Some(help.into()));
        node.note(forms_in_words(&forms));
        let merged = union_of(place, forms);
        let base = *node.object.take().unwrap_or_default();
        node.object = Some(Box::new(self.with_base(place, base, merged)));
        node
    }

    /// Adds what stands beside the union, which holds for every branch.
    fn with_base(&mut self, place: &'t str, base: Object<'t>, union: Object<'t>) -> Object<'t> {
        let first = Node { object: Some(Box::new(base)), ..Node::any(place) };
        let second = Node { object: Some(Box::new(union)), ..Node::any(place) };
        let merged = self.merge_or_keep(first, second, "anyOf");
        merged.object.map(|object| *object).unwrap_or_default()
    }
}

fn union_of<'t>(place: &'t str, forms: Vec<Object<'t>>) -> Object<'t> {
    let count = forms.len();
    let mut union = Object::default();
    let mut places: BTreeMap<Cow<'t, str>, usize> = BTreeMap::new();
    let mut required: BTreeMap<Cow<'t, str>, usize> = BTreeMap::new();
    let mut open = false;
    for form in forms {
        for (name, schema) in form.properties {
            match places.get(&name).and_then(|at| union.properties.get_mut(*at)) {
                Some((_, mine)) => either(place, mine, schema),
                None => {
                    places.insert(name.clone(), union.properties.len());
                    union.properties.push((name, schema));
                }
            }
        }
        let names: BTreeSet<Cow<'t, str>> = form.required.into_iter().collect();
        for name in names {
            *required.entry(name).or_default() += 1;
        }
        open |= matches!(form.additional, Additional::Allowed | Additional::Each(_));
    }
    union.required =
        required.into_iter().filter(|(_, times)| *times == count).map(|(name, _)| name).collect();
    // In the order of the properties, so that the same schema always gives the same text.
    union.required.sort_by_key(|name| places.get(name).copied());
    if open {
        union.additional = Additional::Allowed;
    }
    union
}

/// Makes `mine` a schema for what fits it or `other`.
fn either<'t>(place: &'t str, mine: &mut Node<'t>, other: Node<'t>) {
    if *mine == other || mine.any_of.contains(&other) {
        return;
    }
    // Two constants are a list of two values.
    if is_list(mine) && is_list(&other) {
        if let (Some(mine), Some(other)) = (&mut mine.values, other.values) {
            mine.extend(other);
        }
        return;
    }
    let united = !mine.any_of.is_empty() && !mine.is_structural() && !mine.is_annotated();
    if united {
        mine.any_of.push(other);
    } else {
        let first = std::mem::take(mine);
        *mine = Node { any_of: vec![first, other], ..Node::any(place) };
    }
}

/// Whether the schema is nothing but a list of strings.
fn is_list(node: &Node<'_>) -> bool {
    let strings =
        |values: &Vec<Value<'_>>| values.iter().all(|value| matches!(value, Value::Text(_)));
    node.values.as_ref().is_some_and(strings)
        && node.types.without(Types::STRING).is_empty()
        && node.scalar.is_none()
        && !node.is_annotated()
}

/// "Give one of these sets of arguments: (1) `kind` "a", `x`; (2) `kind` "b", optionally `y`."
fn forms_in_words(forms: &[Object<'_>]) -> String {
    let mut text = String::from("Give one of these sets of arguments:");
    for (at, form) in forms.iter().take(MAX_FORMS).enumerate() {
        text.push_str(if at == 0 { " " } else { "; " });
        let describe = |(name, schema): &(Cow<'_, str>, Node<'_>)| match schema.values.as_deref() {
            Some([only]) => format!("`{name}` {}", only.to_json()),
            Some(_) | None => format!("`{name}`"),
        };
        let named: BTreeSet<&str> = form.properties.iter().map(|(name, _)| &**name).collect();
        let must: BTreeSet<&str> = form.required.iter().map(|name| &**name).collect();
        let others = form.required.iter().filter(|name| !named.contains(name.as_ref()));
        let (required, optional): (Vec<_>, Vec<_>) =
            form.properties.iter().partition(|(name, _)| must.contains(&**name));
        let required: Vec<String> = required
            .into_iter()
            .map(describe)
            .chain(others.map(|name| format!("`{name}`")))
            .take(20)
            .collect();
        let optional: Vec<String> = optional.into_iter().map(describe).take(20).collect();
        text.push_str(&format!("({}) ", at + 1));
        match (required.is_empty(), optional.is_empty()) {
            (true, true) => text.push_str("none"),
            (false, true) => text.push_str(&required.join(", ")),
            (true, false) => text.push_str(&format!("optionally {}", optional.join(", "))),
            (false, false) => text.push_str(&format!(
                "{}, optionally {}",
                required.join(", "),
                optional.join(", ")
            )),
        }
    }
    if forms.len() > MAX_FORMS {
        text.push_str("; …");
    }
    text.push('.');
    text
}
