//! The values of an `enum`, in the form that Gemini accepts.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::reader::Reader;
use crate::schema::finding::Effect;
use crate::schema::node::{Node, Number, Scalar, Types, Value, Values};
use crate::schema::tree::{Shape, Tree};
use crate::schema::words;

impl<'t> Value<'t> {
    pub(super) fn of(tree: &'t Tree<'t>) -> Self {
        match &tree.shape {
            Shape::Null => Self::Null,
            Shape::Bool(value) => Self::Bool(*value),
            Shape::Number => match Number::read(tree) {
                Some(number) => Self::Number(number),
                None => Self::Data(tree),
            },
            Shape::String(text) => Self::Text(Cow::Borrowed(text)),
            Shape::Array(_) | Shape::Object(_) | Shape::TooDeep => Self::Data(tree),
        }
    }

    fn is_plain(&self) -> bool {
        matches!(self, Self::Text(_) | Self::Number(_))
    }
}

impl<'t> Reader<'t> {
    pub(super) fn read_values(&mut self, node: &mut Node<'t>, key: &'t str, value: &'t Tree<'t>) {
        let mut values: Vec<Value<'t>> = match &value.shape {
            Shape::Array(values) => values.iter().map(Value::of).collect(),
            Shape::String(_) | Shape::Number => {
                let detail = "`enum` is a list; read as a list of one value";
                self.findings.push(node.place.text, key, Effect::Repaired, detail);
                vec![Value::of(value)]
            }
            Shape::Null | Shape::Bool(_) | Shape::Object(_) | Shape::TooDeep => {
                return self.broken(node, key, "a list of values");
            }
        };
        if values.is_empty() {
            return self.broken(node, key, "a list with at least one value");
        }
        self.findings.work += values.len();
        dedupe(&mut values);
        self.restrict_values(node, key, values.into());
    }

    /// Reads `const`: a list of one value.
    pub(super) fn read_const(&mut self, node: &mut Node<'t>, key: &'t str, value: &'t Tree<'t>) {
        let detail = "`const` is sent as an `enum` with one value";
        self.findings.push(node.place.text, key, Effect::Rewritten, detail);
        self.restrict_values(node, key, vec![Value::of(value)].into());
    }

    /// Sets the values of a node. Beside others (`const` and `enum`), the values in both lists stay;
    /// if there are none, the constant.
    fn restrict_values(&mut self, node: &mut Node<'t>, key: &'t str, values: Values<'t>) {
        let Some(given) = node.values.take() else {
            node.values = Some(values);
            return;
        };
        let (shared, work) = given.shared(&values);
        self.findings.work += work + given.len() + values.len();
        let (kept, effect) = match (shared.is_empty(), values.len()) {
            (false, _) => (Values::from(shared), Effect::Adjusted),
            (true, 1) => (values.clone(), Effect::Repaired),
            (true, _) => (given.clone(), Effect::Repaired),
        };
        let gone: Vec<&Value<'t>> =
            given.iter().chain(values.iter()).filter(|value| !kept.has(value)).collect();
        if !gone.is_empty() {
            let gone = words::values(gone);
            let detail = format!("`const` and `enum` have different values; left out: {gone}");
            self.findings.push(node.place.text, key, effect, detail);
        }
        node.values = Some(kept);
    }

    /// Brings the values into a form that Gemini takes: strings and numbers. `null` becomes a
    /// branch of a union, anything else a description.
    pub(super) fn finish_values(&mut self, node: &mut Node<'t>) {
        let Some(values) = node.values.take() else { return };
        let place = node.place.text;
        self.findings.work += values.len();
        let fitting = values.iter().filter(|value| node.types.allow(value.types())).count();
        let (mut kept, mut unfit) = (Vec::new(), Vec::new());
        for value in values {
            match converted(value.clone(), node.types) {
                Some(value) => kept.push(value),
                None => unfit.push(value),
            }
        }
        if kept.len() > fitting {
            let detail = "values that are not of the declared type were converted to it";
            self.findings.push(place, "enum", Effect::Rewritten, detail);
        }
        self.describe_unfit(node, &unfit, kept.is_empty());
        dedupe(&mut kept);
        let before = kept.len();
        kept.retain(|value| !matches!(value, Value::Text(text) if text.is_empty()));
        if kept.len() < before {
            let detail = "Gemini refuses the empty string in `enum`; the description says that it is allowed";
            self.findings.push(place, "enum", Effect::Described, detail);
            node.note(if kept.is_empty() {
                "Must be the empty string."
            } else {
                "May also be the empty string."
            });
            // Otherwise only the other values would be left.
            if kept.is_empty() {
                node.types = Types::STRING;
            }
        }
        if kept.is_empty() {
            return;
        }
        let types = kept.iter().fold(Types::NONE, |types, value| types.with(value.types()));
        let null = kept.contains(&Value::Null);
        kept.retain(|value| *value != Value::Null);
        if kept.is_empty() {
            node.types = Types::NULL;
            return;
        }
        let plain: Vec<Value<'t>> = kept.iter().filter(|it| it.is_plain()).cloned().collect();
        let others: Vec<Value<'t>> = kept.into_iter().filter(|it| !it.is_plain()).collect();
        self.drop_beside_values(node, !plain.is_empty());
        let mut branches = Vec::new();
        if !plain.is_empty() {
            branches.push(Node {
                types: plain_types(&plain, node.types),
                // The list of values is stricter than other constraints on strings and numbers.
                scalar: format(node.scalar.take()),
                values: Some(plain.into()),
                ..Node::any(place)
            });
        }
        branches.extend(self.unsayable(place, &others, types));
        if null {
            branches.push(Node::of_type(place, Types::NULL));
        }
        // The list of values determines the type of each.
        node.types = Types::NONE;
        node.scalar = None;
        node.array = None;
        node.object = None;
        if branches.len() == 1 {
            if let Some(mut only) = branches.pop() {
                only.annotate(node.take_annotations());
                *node = only;
            }
        } else {
            node.any_of = branches;
        }
    }

    /// Names values that are not of the declared type. A list without any other value is described:
    /// the type or the list is wrong, and the model should know the list.
    fn describe_unfit(&mut self, node: &mut Node<'t>, unfit: &[Value<'t>], is_all: bool) {
        if unfit.is_empty() {
            return;
        }
        let (place, list) = (node.place.text, words::values(unfit));
        if !is_all {
            let detail = format!("values that are not of the declared type were left out: {list}");
            self.findings.push(place, "enum", Effect::Adjusted, detail);
            return;
        }
        let detail = "no value is of the declared type; the description lists the values";
        self.findings.push(place, "enum", Effect::Repaired, detail);
        let is_array = node.types.without(Types::NULL) == Types::ARRAY;
        let what = if is_array && unfit.iter().all(Value::is_plain) { "items" } else { "values" };
        node.note(format!("Allowed {what}: {list}."));
    }

    /// Names the keywords that are left out beside a list of values, which determines the value. A
    /// format stays beside strings and numbers.
    fn drop_beside_values(&mut self, node: &Node<'t>, has_plain: bool) {
        let scalar = node.scalar.as_deref().into_iter();
        let format = scalar.clone().filter(|it| it.format.is_some() && !has_plain);
        let gone = scalar
            .flat_map(|it| it.text_keywords().chain(it.number_keywords()))
            .chain(format.map(|_| "format"))
            .chain(node.array.as_deref().into_iter().flat_map(|it| it.keywords()))
            .chain(node.object.as_deref().into_iter().flat_map(|it| it.keywords()));
        for keyword in gone {
            let detail = format!("`{keyword}` is left out: the values of `enum` determine it");
            self.findings.push(node.place.text, keyword, Effect::Adjusted, detail);
        }
    }

    /// Values that are neither strings nor numbers: their types, and words.
    fn unsayable(
        &mut self,
        place: &'t str,
        values: &[Value<'t>],
        types: Types,
    ) -> Option<Node<'t>> {
        if values.is_empty() {
            return None;
        }
        let wanted = Types::BOOLEAN.with(Types::ARRAY).with(Types::OBJECT);
        let mut node = Node::of_type(place, types.without(types.without(wanted)));
        let all = [Value::Bool(true), Value::Bool(false)];
        if values.len() == 2 && all.iter().all(|value| values.contains(value)) {
            return Some(node);
        }
        let detail =
            "Gemini takes strings and numbers in `enum`; the description says the other values";
        self.findings.push(place, "enum", Effect::Described, detail);
        let words = words::values(values);
        node.note(match values {
            [_] => format!("Must be {words}."),
            _ => format!("Must be one of: {words}."),
        });
        Some(node)
    }
}

fn format(scalar: Option<Box<Scalar<'_>>>) -> Option<Box<Scalar<'_>>> {
    let format = scalar?.format?;
    Some(Box::new(Scalar { format: Some(format), ..Scalar::default() }))
}

/// The type to declare for a list of strings and numbers.
fn plain_types(values: &[Value<'_>], declared: Types) -> Types {
    let types = values.iter().fold(Types::NONE, |types, value| types.with(value.types()));
    // 1 and 2.5 are both numbers; so are 1 and 2 where the client says `number`.
    if types.has(Types::NUMBER) || (types.has(Types::INTEGER) && declared.has(Types::NUMBER)) {
        return types.without(Types::INTEGER).with(Types::NUMBER);
    }
    types
}

/// The value as one of the declared types, if it can be.
fn converted<'t>(value: Value<'t>, types: Types) -> Option<Value<'t>> {
    if types.allow(value.types()) {
        return Some(value);
    }
    let numeric = types.has(Types::NUMBER) || types.has(Types::INTEGER);
    match value {
        Value::Number(number) if types.has(Types::STRING) => Some(Value::Text(number.0)),
        Value::Bool(value) if types.has(Types::STRING) => {
            Some(Value::Text(Cow::Borrowed(if value { "true" } else { "false" })))
        }
        Value::Text(text) if numeric => {
            let Number(number) = Number::of(text.trim())?;
            let number = Value::Number(Number(Cow::Owned(number.into_owned())));
            types.allow(number.types()).then_some(number)
        }
        Value::Text(_) | Value::Number(_) | Value::Bool(_) | Value::Null | Value::Data(_) => None,
    }
}

fn dedupe(values: &mut Vec<Value<'_>>) {
    let mut seen = BTreeSet::new();
    values.retain(|value| seen.insert(value.to_json()));
}
