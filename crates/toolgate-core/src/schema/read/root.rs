//! A function's arguments are an object, whatever its schema says.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::reader::Reader;
use crate::schema::distinct::Distinct;
use crate::schema::finding::Effect;
use crate::schema::node::{Additional, Node, Object, Types, Value, Values};
use crate::schema::tree::{Shape, Tree};
use crate::schema::words;

/// Branches of a property's own union among which its other schemas are looked for.
const MAX_SEARCHED: usize = 32;
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
            node.note(format!("The arguments are one of: {}.", words::values(values.iter())));
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
            let copies = inner.len().saturating_sub(1);
            if !inner.is_empty()
                && seen < 100
                && self.may_copy(copies, |max| branch.bulk_up_to(max))
            {
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
        let (merged, work) = union_of(place, forms);
        self.findings.work += work;
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

/// One object with the properties of all, and how many schemas were looked at.
fn union_of<'t>(place: &'t str, forms: Vec<Object<'t>>) -> (Object<'t>, usize) {
    let count = forms.len();
    let mut work = 0;
    let mut union = Object::default();
    let mut either: Vec<Either<'t>> = Vec::new();
    let mut places: BTreeMap<Cow<'t, str>, usize> = BTreeMap::new();
    let mut required: BTreeMap<Cow<'t, str>, usize> = BTreeMap::new();
    let mut open = false;
    for form in forms {
        for (name, schema) in form.properties {
            work += 1;
            match places.get(&name).and_then(|at| either.get_mut(*at)) {
                Some(mine) => mine.push(schema),
                None => {
                    places.insert(name.clone(), either.len());
                    union.properties.push((name, Node::any(place)));
                    either.push(Either::new(schema));
                }
            }
        }
        let names: BTreeSet<Cow<'t, str>> = form.required.into_iter().collect();
        for name in names {
            work += 1;
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
    for ((_, property), either) in union.properties.iter_mut().zip(either) {
        work += either.others.work;
        *property = either.into_node(place);
    }
    (union, work)
}

/// Schemas of one name, of which a value must fit one.
struct Either<'t> {
    /// All of them, while they are a list of values or the same schema.
    first: Node<'t>,
    /// The schemas of the union, the first included, once there are several.
    others: Distinct<Node<'t>>,
    is_union: bool,
    /// Whether the first is a list of strings, to which others can be added.
    is_list: bool,
}

impl<'t> Either<'t> {
    fn new(first: Node<'t>) -> Self {
        let is_list = is_list(&first);
        Self { first, others: Distinct::default(), is_union: false, is_list }
    }

    fn push(&mut self, other: Node<'t>) {
        if self.is_union {
            return self.others.push(other);
        }
        self.others.work += other.weight_up_to(usize::MAX - 1);
        let first = &self.first;
        let united = !first.any_of.is_empty() && !first.is_structural() && !first.is_annotated();
        if *first == other
            || (!united && first.any_of.iter().take(MAX_SEARCHED).any(|branch| *branch == other))
        {
            return;
        }
        // Two constants are a list of two values.
        if self.is_list && is_list(&other) {
            if let (Some(mine), Some(other)) = (&mut self.first.values, other.values) {
                mine.extend(other);
            }
            return;
        }
        self.is_union = true;
        let first = std::mem::take(&mut self.first);
        if united {
            first.any_of.into_iter().for_each(|branch| self.others.push(branch));
        } else {
            self.others.push(first);
        }
        self.others.push(other);
    }

    fn into_node(self, place: &'t str) -> Node<'t> {
        if self.is_union {
            Node { any_of: self.others.into_nodes(), ..Node::any(place) }
        } else {
            self.first
        }
    }
}

/// Whether the schema is nothing but a list of strings.
fn is_list(node: &Node<'_>) -> bool {
    let strings = |values: &Values<'_>| values.iter().all(|it| matches!(it, Value::Text(_)));
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
