//! One schema that says what two say (`allOf`, siblings of a `$ref` or a union).

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeSet;

use super::logic::make_nullable;
use super::reader::{MAX_LEVELS, Reader};
use crate::schema::finding::Effect;
use crate::schema::node::{Additional, Array, Node, Number, Object, Scalar, Types};
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
        self.findings.work += 1;
        let lists = first.values.as_ref().zip(second.values.as_ref());
        let shared = lists.map(|(first, second)| first.shared(second));
        if let Some((shared, work)) = &shared {
            self.findings.work += work;
            if shared.is_empty() {
                return Err(Box::new(first));
            }
        }
        let mut second = second;
        let (one, other) = (first.values.take(), second.values.take());
        let values = shared.map(|(shared, _)| shared.into()).or(one).or(other);
        let place = first.place.text;
        let mut merged = Node { types, values, ..Node::any(place) };
        let (mut inner, outer) = (second, first.take_annotations());
        merged.annotate(inner.take_annotations());
        merged.annotate(outer);
        merged.scalar = both(first.scalar, inner.scalar, |a, b| merge_scalar(a, b, &mut merged));
        merged.array = both(first.array, inner.array, |a, b| self.merge_array(place, a, b));
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
        let few = first.len() * second.len() <= MAX_BRANCHES;
        if !few || !self.may_combine(&first, second) {
            self.findings.work += second.len();
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

    /// Whether each of the first may be combined with each of the second.
    fn may_combine(&mut self, first: &[Node<'t>], second: &[Node<'t>]) -> bool {
        let weight =
            |nodes: &[Node<'t>], max: usize| {
                nodes.iter().fold(0, |sum: usize, node| {
                    if sum > max { sum } else { sum + node.weight_up_to(max - sum) }
                })
            };
        let Some(firsts) = self.measure(|| weight(first, MAX_COMBINED)) else { return false };
        let Some(seconds) = self.measure(|| weight(second, MAX_COMBINED)) else { return false };
        firsts * second.len() + seconds * first.len() <= MAX_COMBINED
            && self.may_copy(second.len(), |max| bulk(first, max))
            && self.may_copy(first.len(), |max| bulk(second, max))
    }

    fn merge_array(&mut self, place: &'t str, first: Array<'t>, second: Array<'t>) -> Array<'t> {
        let (mut prefix, mut other) = (first.prefix, second.prefix);
        let shorter = prefix.len().min(other.len());
        // Where one list ends, the schema for its other items holds.
        let first_is_longer = prefix.len() > other.len();
        let (longer, rest) = if first_is_longer {
            (&mut prefix, second.items.as_ref())
        } else {
            (&mut other, first.items.as_ref())
        };
        let copies = longer.len() - shorter;
        let rest = match rest {
            Some(rest) if self.may_copy(copies, |max| rest.bulk_up_to(max)) => Some(rest),
            Some(_) => {
                let detail = "too large to be written into each of `prefixItems`; it is said for the items after them only";
                self.findings.push(place, "items", Effect::Cut, detail);
                None
            }
            None => None,
        };
        // A long list stays where it is while short ones are merged into it.
        let stays = first_is_longer && rest.is_none();
        let tail = if stays { Vec::new() } else { longer.split_off(shorter) };
        self.findings.work += tail.len();
        for (mine, other) in prefix.iter_mut().zip(other) {
            let both = std::mem::take(mine);
            *mine = self.merge_unequal(both, other, "prefixItems");
        }
        for item in tail {
            prefix.push(match rest {
                Some(rest) if first_is_longer => {
                    self.merge_unequal(item, rest.clone(), "prefixItems")
                }
                Some(rest) => self.merge_unequal(rest.clone(), item, "prefixItems"),
                None => item,
            });
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
            (Some(first), Some(second)) => Some(self.merge_unequal(first, second, keyword)),
            (first, second) => first.or(second),
        }
    }

    /// Both together, where they may be the same schema. Unions and references are compared first:
    /// merged with themselves they would become something else. Anything else stays what it is,
    /// and comparing it at every level would take as many times as long as it is deep.
    fn merge_unequal(&mut self, first: Node<'t>, second: Node<'t>, keyword: &'t str) -> Node<'t> {
        let is_plain = |node: &Node<'t>| node.any_of.is_empty() && node.reference.is_none();
        if !is_plain(&first) && !is_plain(&second) {
            self.findings.work += second.weight_up_to(usize::MAX - 1);
            if first == second {
                return first;
            }
        }
        self.merge_or_keep(first, second, keyword)
    }

    fn merge_object(&mut self, mut first: Object<'t>, second: Object<'t>) -> Object<'t> {
        self.findings.work += second.properties.len() + second.required.len();
        for (name, schema) in second.properties {
            match first.property_mut(&name) {
                Some(mine) => {
                    let both = std::mem::take(mine);
                    *mine = self.merge_unequal(both, schema, "properties");
                }
                None => first.add_property(name, schema),
            }
        }
        first.require(second.required);
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

/// Returns the cost of copying these nodes.
fn bulk(nodes: &[Node<'_>], max: usize) -> usize {
    nodes.iter().fold(
        0,
        |sum: usize, node| {
            if sum > max { sum } else { sum + node.bulk_up_to(max - sum) }
        },
    )
}
