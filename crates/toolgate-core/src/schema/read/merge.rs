//! One schema that says what two say (`allOf`, siblings of a `$ref` or a union).

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::logic::make_nullable;
use super::reader::{MAX_LEVELS, Reader};
use crate::schema::finding::Effect;
use crate::schema::node::{Additional, Array, Node, Number, Object, Scalar, Types, Value};
use crate::schema::words;

/// So many branches may come of combining two unions.
const MAX_BRANCHES: usize = 32;
/// So many schemas may come of combining two unions.
const MAX_COMBINED: usize = 5_000;

impl<'t> Reader<'t> {
    /// Both together, or the first alone where they contradict each other.
    pub(super) fn merge_or_keep(
        &mut self,
        first: Node<'t>,
        second: Node<'t>,
        keyword: &'t str,
    ) -> Node<'t> {
        let place = first.place.text;
        match self.merge(first, second) {
            Ok(merged) => merged,
            Err(first) => {
                let detail = format!(
                    "no value fits all of `{keyword}`; what contradicts the rest was left out"
                );
                self.findings.push(place, keyword, Effect::Repaired, detail);
                *first
            }
        }
    }

    /// A schema for the values that fit both. The error is the first one, where none does.
    pub(super) fn merge(
        &mut self,
        first: Node<'t>,
        second: Node<'t>,
    ) -> Result<Node<'t>, Box<Node<'t>>> {
        if self.level >= MAX_LEVELS {
            let detail = "nested too deep to be merged; a part was left out";
            self.findings.push(first.place.text, "allOf", Effect::Cut, detail);
            return Ok(first);
        }
        self.level += 1;
        let merged = self.merge_here(first, second);
        self.level -= 1;
        merged
    }

    fn merge_here(&mut self, first: Node<'t>, second: Node<'t>) -> Result<Node<'t>, Box<Node<'t>>> {
        // A type beside a reference only repeats it; the reference is worth more.
        if first.reference.is_some() && second.is_only_type() {
            return Ok(with_type(first, second));
        }
        if second.reference.is_some() && first.is_only_type() {
            return Ok(with_type(second, first));
        }
        let mut first = self.expand(first);
        let second = self.expand(second);
        let Some(types) = first.types.both(second.types) else { return Err(Box::new(first)) };
        let Ok(values) = both_values(first.values.as_ref(), second.values.as_ref()) else {
            return Err(Box::new(first));
        };
        let mut merged = Node { types, values, ..Node::any(first.place.text) };
        let (mut inner, outer) = (second, first.take_annotations());
        merged.annotate(inner.take_annotations());
        merged.annotate(outer);
        merged.scalar = both(first.scalar, inner.scalar, |a, b| merge_scalar(a, b, &mut merged));
        merged.array = both(first.array, inner.array, |a, b| self.merge_array(a, b));
        merged.object = both(first.object, inner.object, |a, b| self.merge_object(a, b));
        merged.any_of = match (first.any_of.is_empty(), inner.any_of.is_empty()) {
            (true, _) => inner.any_of,
            (false, true) => first.any_of,
            (false, false) => self.merge_unions(&mut merged, first.any_of, &inner.any_of),
        };
        Ok(merged)
    }

    fn merge_unions(
        &mut self,
        merged: &mut Node<'t>,
        first: Vec<Node<'t>>,
        second: &[Node<'t>],
    ) -> Vec<Node<'t>> {
        let weight = |nodes: &[Node<'t>]| nodes.iter().map(Node::weight).sum::<usize>();
        let size = weight(&first) * second.len() + weight(second) * first.len();
        if first.len() * second.len() > MAX_BRANCHES || size > MAX_COMBINED {
            let kinds: Vec<String> = second.iter().map(words::kind).collect();
            merged.note(format!("Also one of: {}.", kinds.join("; ")));
            let detail = "too many combinations; the second list is in the description only";
            self.findings.push(merged.place.text, "anyOf", Effect::Described, detail);
            return first;
        }
        let mut branches = Vec::new();
        for a in &first {
            for b in second {
                branches.extend(self.merge(a.clone(), b.clone()).ok());
            }
        }
        if branches.is_empty() {
            let detail = "no value fits both unions; the second one was left out";
            self.findings.push(merged.place.text, "anyOf", Effect::Repaired, detail);
            return first;
        }
        branches
    }

    fn merge_array(&mut self, first: Array<'t>, second: Array<'t>) -> Array<'t> {
        let longest = first.prefix.len().max(second.prefix.len());
        let (mut a, mut b) = (first.prefix.into_iter(), second.prefix.into_iter());
        let mut prefix = Vec::with_capacity(longest);
        for _ in 0..longest {
            let a = a.next().or_else(|| first.items.clone());
            let b = b.next().or_else(|| second.items.clone());
            prefix.extend(self.merge_optional(a, b, "prefixItems"));
        }
        Array {
            prefix,
            items: self.merge_optional(first.items, second.items, "items"),
            min: first.min.max(second.min),
            max: least(first.max, second.max),
        }
    }

    fn merge_optional(
        &mut self,
        first: Option<Node<'t>>,
        second: Option<Node<'t>>,
        keyword: &'t str,
    ) -> Option<Node<'t>> {
        match (first, second) {
            (Some(first), Some(second)) if first == second => Some(first),
            (Some(first), Some(second)) => Some(self.merge_or_keep(first, second, keyword)),
            (first, second) => first.or(second),
        }
    }

    fn merge_object(&mut self, mut first: Object<'t>, second: Object<'t>) -> Object<'t> {
        let places: BTreeMap<Cow<'t, str>, usize> =
            first.properties.iter().enumerate().map(|(at, (name, _))| (name.clone(), at)).collect();
        for (name, schema) in second.properties {
            match places.get(&name).and_then(|at| first.properties.get_mut(*at)) {
                Some((_, mine)) if *mine == schema => {}
                Some((_, mine)) => {
                    let both = std::mem::take(mine);
                    *mine = self.merge_or_keep(both, schema, "properties");
                }
                None => first.properties.push((name, schema)),
            }
        }
        first.required.extend(second.required);
        dedupe(&mut first.required);
        first.ordering.extend(second.ordering);
        first.additional = match (first.additional, second.additional) {
            (Additional::Forbidden, _) | (_, Additional::Forbidden) => Additional::Forbidden,
            (Additional::Each(a), Additional::Each(b)) => {
                Additional::Each(Box::new(self.merge_or_keep(*a, *b, "additionalProperties")))
            }
            (Additional::Each(each), _) | (_, Additional::Each(each)) => Additional::Each(each),
            (Additional::Allowed, _) | (_, Additional::Allowed) => Additional::Allowed,
            (Additional::Unsaid, Additional::Unsaid) => Additional::Unsaid,
        };
        first.min = first.min.max(second.min);
        first.max = least(first.max, second.max);
        first
    }
}

/// A reference beside a schema that says nothing but a type.
fn with_type<'t>(mut reference: Node<'t>, typed: Node<'t>) -> Node<'t> {
    let nullable = typed.types.has(Types::NULL) && typed.types != Types::NULL;
    reference.annotate(typed);
    if nullable {
        make_nullable(&mut reference);
    }
    reference
}

/// Leaves the first of equal names.
pub(super) fn dedupe(names: &mut Vec<Cow<'_, str>>) {
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
}

fn both<T>(
    first: Option<Box<T>>,
    second: Option<Box<T>>,
    merge: impl FnOnce(T, T) -> T,
) -> Option<Box<T>> {
    match (first, second) {
        (Some(first), Some(second)) => Some(Box::new(merge(*first, *second))),
        (first, second) => first.or(second),
    }
}

fn least(first: Option<u64>, second: Option<u64>) -> Option<u64> {
    match (first, second) {
        (Some(first), Some(second)) => Some(first.min(second)),
        (first, second) => first.or(second),
    }
}

fn stronger<'t>(
    first: Option<Number<'t>>,
    second: Option<Number<'t>>,
    order: Ordering,
) -> Option<Number<'t>> {
    match (first, second) {
        (Some(first), Some(second)) => {
            Some(if second.compare(&first) == order { second } else { first })
        }
        (first, second) => first.or(second),
    }
}

fn merge_scalar<'t>(first: Scalar<'t>, second: Scalar<'t>, merged: &mut Node<'t>) -> Scalar<'t> {
    if let (Some(first), Some(second)) = (&first.format, &second.format)
        && first != second
    {
        merged.note(format!("Format: also {second}."));
    }
    if let (Some(first), Some(second)) = (&first.pattern, &second.pattern)
        && first != second
    {
        merged.note(format!("Pattern: also `{second}`."));
    }
    Scalar {
        format: first.format.or(second.format),
        pattern: first.pattern.or(second.pattern),
        min_length: first.min_length.max(second.min_length),
        max_length: least(first.max_length, second.max_length),
        minimum: stronger(first.minimum, second.minimum, Ordering::Greater),
        maximum: stronger(first.maximum, second.maximum, Ordering::Less),
        above: stronger(first.above, second.above, Ordering::Greater),
        below: stronger(first.below, second.below, Ordering::Less),
    }
}

/// The values that are in both lists; an error where there are none.
fn both_values<'t>(
    first: Option<&Vec<Value<'t>>>,
    second: Option<&Vec<Value<'t>>>,
) -> Result<Option<Vec<Value<'t>>>, ()> {
    match (first, second) {
        (Some(first), Some(second)) => {
            let both: Vec<_> = first.iter().filter(|it| second.contains(it)).cloned().collect();
            if both.is_empty() { Err(()) } else { Ok(Some(both)) }
        }
        (one, other) => Ok(one.or(other).cloned()),
    }
}
