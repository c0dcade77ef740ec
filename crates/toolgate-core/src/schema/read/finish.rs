//! From nodes as they were read to nodes that keep the promises of [`crate::schema::node`].

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeSet;

use super::merge::dedupe;
use super::reader::{MAX_LEVELS, Reader};
use crate::schema::finding::Effect;
use crate::schema::node::{Additional, Array, Node, Number, Object, Scalar, Types};
use crate::schema::words;

/// So many schemas may come of writing the siblings of a union into its branches.
const MAX_DISTRIBUTED: usize = 2_000;

impl<'t> Reader<'t> {
    pub(super) fn finish(&mut self, mut node: Node<'t>) -> Node<'t> {
        if self.level >= MAX_LEVELS {
            let detail = "nested too deep for Gemini; any value is allowed here";
            self.findings.push(node.place.text, "", Effect::Cut, detail);
            let mut cut = Node::of_type(node.place.text, node.types);
            cut.annotate(node.take_annotations());
            return cut;
        }
        self.level += 1;
        self.findings.work += 1;
        if !node.any_of.is_empty() {
            node = self.finish_union(node);
        } else if node.reference.is_none() {
            self.finish_parts(&mut node);
        }
        self.level -= 1;
        node
    }

    fn finish_union(&mut self, mut node: Node<'t>) -> Node<'t> {
        if node.is_structural() {
            node = self.distributed(node);
        }
        let branches = flat(std::mem::take(&mut node.any_of));
        if branches.is_empty() {
            self.finish_parts(&mut node);
            return node;
        }
        let branches = branches.into_iter().map(|branch| self.finish(branch)).collect();
        self.findings.work += node.set_branches(branches);
        node
    }

    /// Writes what stands beside a union into each of its branches.
    fn distributed(&mut self, mut node: Node<'t>) -> Node<'t> {
        let place = node.place.text;
        let annotations = node.take_annotations();
        let branches = std::mem::take(&mut node.any_of);
        let mut result = Node::any(place);
        result.annotate(annotations);
        let weight = node.weight_up_to(MAX_DISTRIBUTED / branches.len().max(1));
        self.findings.work += weight;
        let few = weight.saturating_mul(branches.len()) <= MAX_DISTRIBUTED;
        if !few || !self.may_copy(branches.len(), |max| node.bulk_up_to(max)) {
            let kinds: Vec<String> = branches.iter().map(words::kind).collect();
            node.annotate(result);
            node.note(format!("Also one of: {}.", kinds.join("; ")));
            let detail =
                "too large to be written out for each branch; the description says the branches";
            self.findings.push(place, "anyOf", Effect::Described, detail);
            return node;
        }
        for branch in branches {
            // A type alone is left out where the branch is a reference: it would only repeat it.
            if branch.reference.is_some() && !node.has_parts() {
                result.any_of.push(branch);
                continue;
            }
            match self.merge(node.clone(), branch) {
                Ok(branch) => result.any_of.push(branch),
                Err(_) => {
                    let detail =
                        "a branch that contradicts what stands beside the union was left out";
                    self.findings.push(place, "anyOf", Effect::Adjusted, detail);
                }
            }
        }
        if result.any_of.is_empty() {
            node.annotate(result);
            return node;
        }
        result
    }

    fn finish_parts(&mut self, node: &mut Node<'t>) {
        self.finish_bounds(node);
        self.finish_values(node);
        if !node.any_of.is_empty() {
            return;
        }
        if node.types.is_empty() {
            if node.object.is_some() {
                node.types = node.types.with(Types::OBJECT);
            }
            if node.array.is_some() {
                node.types = node.types.with(Types::ARRAY);
            }
        }
        self.drop_irrelevant(node);
        self.finish_object(node);
        self.finish_items(node);
        // Where nothing is left, nothing was said.
        node.scalar.take_if(|scalar| **scalar == Scalar::default());
        node.array.take_if(|array| **array == Array::default());
        node.object.take_if(|object| **object == Object::default());
    }

    /// Bounds that exclude their own value become bounds that include it.
    fn finish_bounds(&mut self, node: &mut Node<'t>) {
        let integer = node.types.without(Types::NULL) == Types::INTEGER;
        let place = node.place.text;
        let Some(scalar) = node.scalar.as_deref_mut() else { return };
        let mut notes = Vec::new();
        for (keyword, excluded, bound, order, step, words) in [
            (
                "exclusiveMinimum",
                scalar.above.take(),
                &mut scalar.minimum,
                Ordering::Greater,
                1,
                "Greater",
            ),
            (
                "exclusiveMaximum",
                scalar.below.take(),
                &mut scalar.maximum,
                Ordering::Less,
                -1,
                "Less",
            ),
        ] {
            let Some(excluded) = excluded else { continue };
            let whole = if step > 0 { excluded.floor() } else { excluded.ceil() };
            let included = match whole.and_then(|whole| i128::checked_add(whole, step)) {
                Some(next) if integer => {
                    let bound = if step > 0 { "minimum" } else { "maximum" };
                    let detail = format!("`{keyword}` is sent as `{bound}` {next}");
                    self.findings.push(place, keyword, Effect::Rewritten, detail);
                    Number::from(next)
                }
                Some(_) | None => {
                    let detail = "Gemini's bounds include their own value; the description says that this one does not";
                    self.findings.push(place, keyword, Effect::Described, detail);
                    notes.push(format!("{words} than {}.", excluded.0));
                    excluded
                }
            };
            if bound.as_ref().is_none_or(|bound| included.compare(bound) == order) {
                *bound = Some(included);
            }
        }
        if integer {
            for bound in [&mut scalar.minimum, &mut scalar.maximum].into_iter().flatten() {
                if let Some(whole) = bound.as_integer() {
                    *bound = Number::from(whole);
                }
            }
        }
        if let (Some(least), Some(most)) = (&scalar.minimum, &scalar.maximum)
            && least.compare(most) == Ordering::Greater
        {
            let detail = "the bounds contradict each other; both were left out";
            self.findings.push(place, "minimum", Effect::Repaired, detail);
            self.findings.push(place, "maximum", Effect::Repaired, detail);
            scalar.minimum = None;
            scalar.maximum = None;
        }
        for note in notes {
            node.note(note);
        }
    }

    /// Drops constraints on types that the value cannot have.
    fn drop_irrelevant(&mut self, node: &mut Node<'t>) {
        if node.types.is_empty() {
            return;
        }
        let mut gone = Vec::new();
        if let Some(object) = node.object.take_if(|_| !node.types.has(Types::OBJECT)) {
            gone.extend(object.keywords());
        }
        if let Some(array) = node.array.take_if(|_| !node.types.has(Types::ARRAY)) {
            gone.extend(array.keywords());
        }
        let numbers = Types::NUMBER.with(Types::INTEGER);
        if let Some(scalar) = node.scalar.as_deref_mut() {
            if !node.types.has(Types::STRING) {
                gone.extend(scalar.text_keywords());
                (scalar.pattern, scalar.min_length, scalar.max_length) = (None, None, None);
            }
            if !node.types.has(numbers) {
                gone.extend(scalar.number_keywords());
                (scalar.minimum, scalar.maximum) = (None, None);
            }
            if !node.types.has(numbers.with(Types::STRING)) {
                gone.extend(scalar.format.take().map(|_| "format"));
            }
        }
        for keyword in gone {
            let types: Vec<_> = node.types.names().collect();
            let detail =
                format!("`{keyword}` means nothing for type {}; it was left out", types.join(", "));
            self.findings.push(node.place.text, keyword, Effect::Adjusted, detail);
        }
    }

    fn finish_object(&mut self, node: &mut Node<'t>) {
        let place = node.place.text;
        let Some(mut object) = node.object.take() else { return };
        self.findings.work += object.properties.len() + object.required.len();
        for (_, property) in &mut object.properties {
            let schema = std::mem::take(property);
            *property = self.finish(schema);
        }
        if let Additional::Each(each) = &mut object.additional {
            let schema = std::mem::take(each.as_mut());
            **each = self.finish(schema);
            if each.is_any() && !each.is_annotated() {
                object.additional = Additional::Allowed;
            }
        }
        let names: BTreeSet<&str> = object.properties.iter().map(|(name, _)| &**name).collect();
        dedupe(&mut object.required);
        dedupe(&mut object.ordering);
        object.ordering.retain(|name| names.contains(name.as_ref()));
        let unknown: Vec<Cow<'t, str>> =
            object.required.iter().filter(|name| !names.contains(name.as_ref())).cloned().collect();
        object.required.retain(|name| names.contains(name.as_ref()));
        if !unknown.is_empty() {
            let list = words::names(unknown.iter().map(|name| &**name));
            let detail = format!("{list} is no property here; Gemini refuses such names");
            let help = "add the property, or take the name out of `required`";
            let effect = match object.additional {
                Additional::Forbidden => Effect::Repaired,
                Additional::Unsaid | Additional::Allowed | Additional::Each(_) => Effect::Adjusted,
            };
            self.findings.push_with_help(place, "required", effect, detail, Some(help.into()));
            // Where other properties are allowed, it can still be given.
            if matches!(object.additional, Additional::Allowed | Additional::Each(_)) {
                node.note(format!("Also give {list}."));
            }
        }
        if object.min > object.max && object.max.is_some() {
            let detail = "the bounds contradict each other; both were left out";
            self.findings.push(place, "minProperties", Effect::Repaired, detail);
            self.findings.push(place, "maxProperties", Effect::Repaired, detail);
            object.min = None;
            object.max = None;
        }
        node.object = Some(object);
    }

    fn finish_items(&mut self, node: &mut Node<'t>) {
        let place = node.place.text;
        let Some(mut array) = node.array.take() else { return };
        for item in array.prefix.iter_mut().chain(&mut array.items) {
            let schema = std::mem::take(item);
            *item = self.finish(schema);
        }
        if array.min > array.max && array.max.is_some() {
            let detail = "the bounds contradict each other; both were left out";
            self.findings.push(place, "minItems", Effect::Repaired, detail);
            self.findings.push(place, "maxItems", Effect::Repaired, detail);
            array.min = None;
            array.max = None;
        }
        node.array = Some(array);
    }
}

/// Branches without the unions among them that say nothing else, whose branches stand in their place.
fn flat(branches: Vec<Node<'_>>) -> Vec<Node<'_>> {
    let is_union = |node: &Node<'_>| {
        !node.any_of.is_empty()
            && !node.is_structural()
            && !node.is_annotated()
            && node.reference.is_none()
    };
    if !branches.iter().any(is_union) {
        return branches;
    }
    let mut flat = Vec::new();
    let mut open = vec![branches.into_iter()];
    while let Some(top) = open.last_mut() {
        match top.next() {
            Some(branch) if is_union(&branch) => open.push(branch.any_of.into_iter()),
            Some(branch) => flat.push(branch),
            None => _ = open.pop(),
        }
    }
    flat
}
