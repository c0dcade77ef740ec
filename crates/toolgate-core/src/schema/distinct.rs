//! The branches of a union, equal ones once.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::node::Node;

/// Unions with more branches are not searched for equal ones.
const MAX_COMPARED: usize = 200;
/// Branches that look alike to a branch and are compared with it.
const MAX_CANDIDATES: usize = 4;
/// Schemas of a branch that its digest covers.
const MAX_DIGESTED: usize = 32;

/// Collects branches. A digest of a bounded part of each branch chooses those that are compared in
/// full, so that a branch costs as much as it is large, not as much as all others.
#[derive(Debug)]
pub(super) struct Distinct<N> {
    nodes: Vec<N>,
    by_digest: BTreeMap<u64, Vec<usize>>,
    /// Schemas that were looked at.
    pub(super) work: usize,
}

impl<N> Default for Distinct<N> {
    fn default() -> Self {
        Self { nodes: Vec::new(), by_digest: BTreeMap::new(), work: 0 }
    }
}

impl<'t, N: AsNode<'t>> Distinct<N> {
    pub(super) fn push(&mut self, branch: N) {
        self.work += 1;
        if self.nodes.len() <= MAX_COMPARED {
            let node = branch.as_node();
            let mut left = MAX_DIGESTED;
            let mut hasher = DefaultHasher::new();
            digest(node, &mut hasher, &mut left);
            self.work += MAX_DIGESTED - left;
            let candidates = self.by_digest.entry(hasher.finish()).or_default();
            for candidate in candidates.iter().filter_map(|at| self.nodes.get(*at)) {
                self.work += node.weight_up_to(usize::MAX - 1);
                if candidate.as_node() == node {
                    return;
                }
            }
            if candidates.len() < MAX_CANDIDATES {
                candidates.push(self.nodes.len());
            }
        }
        self.nodes.push(branch);
    }

    pub(super) fn into_nodes(self) -> Vec<N> {
        self.nodes
    }
}

/// A schema, owned or borrowed.
pub(super) trait AsNode<'t> {
    fn as_node(&self) -> &Node<'t>;
}

impl<'t> AsNode<'t> for Node<'t> {
    fn as_node(&self) -> &Self {
        self
    }
}

impl<'t> AsNode<'t> for &Node<'t> {
    fn as_node(&self) -> &Node<'t> {
        self
    }
}

/// Feeds a part of a schema to the hasher. Equal schemas feed the same.
fn digest(node: &Node<'_>, hasher: &mut DefaultHasher, left: &mut usize) {
    let Some(rest) = left.checked_sub(1) else { return };
    *left = rest;
    let mut text = |text: Option<&str>| {
        let text = text.unwrap_or_default();
        text.len().hash(hasher);
        text.as_bytes()[..text.len().min(64)].hash(hasher);
    };
    text(node.title.as_deref());
    text(node.description.as_deref());
    text(node.notes.iter().next());
    text(node.default.map(|default| default.text));
    if let Some(scalar) = node.scalar.as_deref() {
        text(scalar.format.as_deref());
        text(scalar.pattern.as_deref());
        text(scalar.minimum.as_ref().map(|it| &*it.0));
        text(scalar.maximum.as_ref().map(|it| &*it.0));
    }
    if let Some(object) = node.object.as_deref() {
        text(object.properties.last().map(|(name, _)| &**name));
        text(object.required.last().map(|name| &**name));
    }
    for value in node.values.iter().flat_map(|values| values.iter().take(8)) {
        text(value.text());
    }
    let object = node.object.as_deref();
    let scalar = node.scalar.as_deref();
    let array = node.array.as_deref();
    (node.types.names().count(), node.types.names().next(), node.types.names().last()).hash(hasher);
    (node.reference, node.notes.len(), node.values.as_ref().map(|it| it.len())).hash(hasher);
    scalar.map(|it| (it.min_length, it.max_length)).hash(hasher);
    array.map(|it| (it.prefix.len(), it.min, it.max)).hash(hasher);
    object.map(|it| (it.properties.len(), it.required.len(), it.min, it.max)).hash(hasher);
    node.any_of.len().hash(hasher);
    for child in node.children() {
        if *left == 0 {
            break;
        }
        digest(child, hasher, left);
    }
}
