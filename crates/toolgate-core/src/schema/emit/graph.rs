//! Which definition refers to which.

use crate::schema::node::{DefId, Document, Node};

/// The root and the definitions, and the references between them.
#[derive(Debug)]
pub(super) struct Graph {
    /// For each definition the number of its circle: equal numbers refer to each other.
    circle: Vec<usize>,
    /// Whether the definition can reach itself.
    endless: Vec<bool>,
    /// The definitions, each before those that it refers to (circles aside).
    order: Vec<DefId>,
}

impl Graph {
    pub(super) fn new(document: &Document<'_>) -> Self {
        let edges: Vec<Vec<DefId>> = document
            .defs
            .iter()
            .map(|def| def.node.as_ref().map(references).unwrap_or_default())
            .collect();
        circles(&edges)
    }

    /// Whether a reference from one definition to the other is part of a circle.
    pub(super) fn is_endless(&self, from: DefId, to: DefId) -> bool {
        let circle = |id: DefId| self.circle.get(id);
        circle(from) == circle(to) && self.endless.get(from) == Some(&true)
    }

    /// The definitions, each before those that it refers to, and those of a circle together.
    pub(super) fn circles(&self) -> impl Iterator<Item = &[DefId]> {
        self.order.chunk_by(|one, two| self.circle.get(*one) == self.circle.get(*two))
    }
}

fn references(node: &Node<'_>) -> Vec<DefId> {
    fn collect(node: &Node<'_>, into: &mut Vec<DefId>) {
        into.extend(node.reference);
        node.children().for_each(|child| collect(child, into));
    }
    let mut found = Vec::new();
    collect(node, &mut found);
    found
}

/// Tarjan's strongly connected components, with a stack of our own: a client may chain thousands
/// of definitions.
fn circles(edges: &[Vec<DefId>]) -> Graph {
    const UNSEEN: usize = usize::MAX;
    let count = edges.len();
    let mut index = vec![UNSEEN; count];
    let mut low = vec![0; count];
    let mut circle = vec![UNSEEN; count];
    let mut endless = vec![false; count];
    let mut order = Vec::with_capacity(count);
    let mut open: Vec<DefId> = Vec::new();
    let mut next = 0;
    let mut circles = 0;
    for start in 0..count {
        if index[start] != UNSEEN {
            continue;
        }
        let mut path: Vec<(DefId, usize)> = vec![(start, 0)];
        while let Some((at, edge)) = path.pop() {
            if edge == 0 {
                index[at] = next;
                low[at] = next;
                next += 1;
                open.push(at);
            }
            if let Some(&to) = edges[at].get(edge) {
                path.push((at, edge + 1));
                if to == at {
                    endless[at] = true;
                } else if index.get(to) == Some(&UNSEEN) {
                    path.push((to, 0));
                } else if circle.get(to) == Some(&UNSEEN) {
                    low[at] = low[at].min(index[to]);
                }
                continue;
            }
            if low[at] == index[at] {
                let from = open.iter().rposition(|id| *id == at).unwrap_or(0);
                let members = open.split_off(from);
                for member in &members {
                    circle[*member] = circles;
                    endless[*member] |= members.len() > 1;
                }
                circles += 1;
                order.extend(members);
            }
            if let Some((parent, _)) = path.last() {
                low[*parent] = low[*parent].min(low[at]);
            }
        }
    }
    order.reverse();
    Graph { circle, endless, order }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_are_found() {
        // 0 → 1 → 2 → 1, 2 → 3, 4 → 4
        let graph = circles(&[vec![1], vec![2], vec![1, 3], vec![], vec![4]]);
        assert!(graph.is_endless(1, 2) && graph.is_endless(2, 1) && graph.is_endless(4, 4));
        assert!(!graph.is_endless(0, 1) && !graph.is_endless(2, 3) && !graph.is_endless(3, 3));
        let place = |id| graph.order.iter().position(|it| *it == id);
        assert!(place(0) < place(1) && place(1) < place(3) && place(2) < place(3));
    }

    #[test]
    fn a_long_chain_needs_no_stack() {
        let edges: Vec<Vec<DefId>> = (0..100_000).map(|at| vec![(at + 1) % 100_000]).collect();
        assert!(circles(&edges).is_endless(0, 99_999));
    }
}
