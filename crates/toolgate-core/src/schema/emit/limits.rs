//! How deep, how long and how large a schema may be.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::graph::Graph;
use crate::schema::finding::{Effect, Findings};
use crate::schema::node::{Document, Node, Types};
use crate::schema::words;

/// Schemas inside schemas, the root included. Google's JSON parser takes 30 levels of properties
/// and refuses 31.
pub(in crate::schema) const MAX_LEVELS: usize = 30;
/// Brackets inside brackets that come of it.
const MAX_BRACKETS: usize = 2 * MAX_LEVELS;
/// Above about this sum of all `maxItems` Gemini answers "Request contains an invalid argument."
pub(in crate::schema) const MAX_ITEMS: u64 = 960;
/// Beyond this many bytes only types and names are sent, beyond twice as many nothing.
const MAX_BYTES: usize = 512 * 1024;

/// Brings a whole schema within the limits.
pub(super) fn limit<'t>(document: &mut Document<'t>, graph: &Graph, findings: &mut Findings<'t>) {
    let mut limiter =
        Limiter { findings, used: 0, levels: vec![0; document.defs.len()], from: None, graph };
    limiter.visit(&mut document.root, 1);
    for circle in graph.circles() {
        // Level 0: nothing that is left refers to it.
        if circle.iter().all(|id| limiter.levels.get(*id).is_none_or(|level| *level == 0)) {
            continue;
        }
        for &id in circle {
            let level = limiter.levels.get(id).copied().unwrap_or(0);
            if let Some(node) = document.defs.get_mut(id).and_then(|def| def.node.as_mut()) {
                limiter.from = Some(id);
                limiter.visit(node, level.max(2));
            }
        }
    }
    limit_items(document, graph, findings);
}

struct Limiter<'a, 't> {
    findings: &'a mut Findings<'t>,
    used: usize,
    /// The deepest level at which each definition is used.
    levels: Vec<usize>,
    /// The definition that is being looked at.
    from: Option<usize>,
    graph: &'a Graph,
}

impl<'t> Limiter<'_, 't> {
    fn visit(&mut self, node: &mut Node<'t>, level: usize) {
        if level + 1 >= MAX_LEVELS {
            self.cut(node, level);
        }
        if let Some(to) = node.reference {
            let endless = self.from.is_some_and(|from| self.graph.is_endless(from, to));
            if let Some(deepest) = self.levels.get_mut(to) {
                *deepest = (*deepest).max(if endless { 2 } else { level });
            }
        }
        if node.default.is_some_and(|default| 2 * level + default.depth() > MAX_BRACKETS) {
            node.default = None;
            let detail = "nested too deep for Gemini; it was left out";
            self.findings.push(node.place.text, "default", Effect::Cut, detail);
        }
        self.findings.work += node.own_bulk();
        self.measure(node);
        for child in node.children_mut() {
            self.visit(child, level + 1);
        }
    }

    /// Leaves a type where there is no room for more.
    fn cut(&mut self, node: &mut Node<'t>, level: usize) {
        if node.reference.is_some() {
            // Words beside a reference need one level more.
            if level >= MAX_LEVELS && node.is_annotated() {
                drop(node.take_annotations());
            }
            return;
        }
        let is_leaf = node.children().all(|child| level < MAX_LEVELS && child.is_leaf());
        if is_leaf {
            return;
        }
        let kind = words::kind(node);
        let detail = "nested too deep for Gemini; the description says what stands here";
        self.findings.push(node.place.text, "", Effect::Cut, detail);
        node.note(format!("Form: {kind}."));
        node.any_of.clear();
        node.object = None;
        node.array = None;
        // An array would need items.
        if level >= MAX_LEVELS {
            node.types = node.types.without(Types::ARRAY);
        }
    }

    fn measure(&mut self, node: &mut Node<'t>) {
        let own = size(node);
        if self.used + own <= MAX_BYTES {
            self.used += own;
            return;
        }
        let place = node.place.text;
        if node.is_annotated() || node.values.is_some() {
            let detail = "the schema is too large; only its types and names are sent from here on";
            self.findings.push(place, "description", Effect::Cut, detail);
        }
        let text = node.full_description().map(Cow::into_owned);
        drop(node.take_annotations());
        node.values = None;
        let room = MAX_BYTES.saturating_sub(self.used + size(node));
        if let Some(mut text) = text.filter(|_| room > 1024) {
            text.truncate(text.floor_char_boundary(room - 64));
            text.push('…');
            node.description = Some(Cow::Owned(text));
        }
        self.used += size(node);
        if self.used > 2 * MAX_BYTES {
            let detail = "the schema is too large; what is inside was left out";
            self.findings.push(place, "", Effect::Cut, detail);
            node.object = None;
            node.array = None;
            node.any_of.clear();
        }
        let Some(object) = node.object.as_deref_mut() else { return };
        // Names alone can be too many.
        let mut names = 0;
        let room = (2 * MAX_BYTES).saturating_sub(self.used);
        let fit = object.properties.iter().take_while(|(name, _)| {
            names += name.len() + 24;
            names <= room
        });
        let fit = fit.count();
        if fit < object.properties.len() {
            let detail = "the schema is too large; the last properties were left out";
            self.findings.push(place, "properties", Effect::Cut, detail);
            object.properties.truncate(fit);
            let left: BTreeSet<&str> = object.properties.iter().map(|(name, _)| &**name).collect();
            object.required.retain(|name| left.contains(&**name));
            object.ordering.retain(|name| left.contains(&**name));
        }
    }
}

impl Node<'_> {
    /// Whether it has nothing inside.
    fn is_leaf(&self) -> bool {
        self.children().next().is_none()
    }
}

/// Approximate size of a schema in bytes, without the schemas inside.
fn size(node: &Node<'_>) -> usize {
    let text = |text: &Option<Cow<'_, str>>| text.as_ref().map_or(0, |text| text.len() + 16);
    let names = |names: &[Cow<'_, str>]| names.iter().map(|name| name.len() + 3).sum::<usize>();
    let values =
        node.values.iter().flat_map(|values| values.iter()).map(|value| value.to_json().len() + 1);
    let own = 24
        + text(&node.title)
        + text(&node.description)
        + node.notes.iter().map(|note| note.len() + 1).sum::<usize>()
        + node.default.map_or(0, |default| default.text.len() + 11)
        + values.sum::<usize>();
    let object = node.object.as_deref().map_or(0, |object| {
        let properties: usize = object.properties.iter().map(|(name, _)| name.len() + 4).sum();
        properties + names(&object.required) + names(&object.ordering)
    });
    let scalar = node.scalar.as_deref().map_or(0, |scalar| text(&scalar.pattern) + 64);
    own + object + scalar
}

/// Leaves out the greatest `maxItems` until the sum is one that Gemini takes.
fn limit_items<'t>(document: &mut Document<'t>, graph: &Graph, findings: &mut Findings<'t>) {
    // A definition counts as often as it is used; an endless one is unrolled.
    let mut times = vec![0_u64; document.defs.len()];
    count_uses(&document.root, 1, &mut times, &|_| false);
    for circle in graph.circles() {
        // A reference to one definition of a cycle uses them all.
        let mut uses = circle.iter().fold(0_u64, |sum, id| sum.saturating_add(times[*id]));
        if circle.iter().any(|id| graph.is_endless(*id, *id)) {
            uses = uses.saturating_mul(2);
        }
        for &id in circle {
            times[id] = uses;
            if let Some(node) = document.defs.get(id).and_then(|def| def.node.as_ref()) {
                count_uses(node, uses, &mut times, &|to| graph.is_endless(id, to));
            }
        }
    }
    let mut counts = Vec::new();
    collect_items(&document.root, 1, &mut counts);
    for (def, times) in document.defs.iter().zip(&times) {
        if let Some(node) = &def.node {
            collect_items(node, *times, &mut counts);
        }
    }
    let mut order: Vec<usize> = (0..counts.len()).collect();
    order.sort_by_key(|at| counts[*at]);
    let mut sum = 0_u64;
    let mut keep = vec![false; counts.len()];
    for at in order {
        sum = sum.saturating_add(counts[at]);
        keep[at] = sum <= MAX_ITEMS;
    }
    let mut keep = keep.into_iter();
    drop_items(&mut document.root, &mut keep, findings);
    for node in document.defs.iter_mut().filter_map(|def| def.node.as_mut()) {
        drop_items(node, &mut keep, findings);
    }
}

fn count_uses(node: &Node<'_>, by: u64, times: &mut [u64], skip: &impl Fn(usize) -> bool) {
    if let Some(to) = node.reference.filter(|to| !skip(*to))
        && let Some(times) = times.get_mut(to)
    {
        *times = times.saturating_add(by);
    }
    node.children().for_each(|child| count_uses(child, by, times, skip));
}

fn collect_items(node: &Node<'_>, times: u64, into: &mut Vec<u64>) {
    if let Some(max) = node.array.as_deref().and_then(|array| array.max) {
        into.push(max.saturating_mul(times));
    }
    node.children().for_each(|child| collect_items(child, times, into));
}

fn drop_items<'t>(
    node: &mut Node<'t>,
    keep: &mut impl Iterator<Item = bool>,
    findings: &mut Findings<'t>,
) {
    let mut note = None;
    if let Some(array) = node.array.as_deref_mut() {
        let max = array.max.filter(|_| keep.next() == Some(false));
        let min = array.min.filter(|min| *min > MAX_ITEMS);
        if max.is_some() {
            array.max = None;
            let detail = format!(
                "Gemini refuses schemas whose `maxItems` add up to more than {MAX_ITEMS}; the description says it"
            );
            findings.push(node.place.text, "maxItems", Effect::Described, detail);
        }
        if min.is_some() {
            array.min = None;
            let detail =
                format!("more than {MAX_ITEMS} is too much for Gemini; the description says it");
            findings.push(node.place.text, "minItems", Effect::Described, detail);
        }
        note = words::range(min, max, "item", "items");
    }
    if let Some(note) = note {
        node.note(note);
    }
    for child in node.children_mut() {
        drop_items(child, keep, findings);
    }
}
