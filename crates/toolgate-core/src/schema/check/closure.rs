//! The types that each schema takes together with all that it refers to.

use super::fit::{Node, NodeId, Types};

/// Removes from each node's types those that its references, `allOf` and alternatives rule out.
///
/// Every type that a node loses is passed on once along each reference to it, so that the cost is
/// linear in the number of references, circles included.
pub(super) fn close(nodes: &mut [Node]) {
    let mut users: Vec<Vec<NodeId>> = vec![Vec::new(); nodes.len()];
    let mut memberships: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    let mut unions: Vec<Union> = Vec::new();
    for (id, node) in nodes.iter().enumerate() {
        for used in &node.all {
            users[*used].push(id);
        }
        for branches in &node.any {
            for branch in branches {
                memberships[*branch].push(unions.len());
            }
            unions.push(Union { owner: id, takers: [branches.len(); Types::COUNT] });
        }
    }
    let mut lost: Vec<(NodeId, Types)> = Vec::new();
    for (id, node) in nodes.iter_mut().enumerate() {
        node.allowed = node.types;
        lost.push((id, Types::ALL.without(node.types)));
    }
    while let Some((id, types)) = lost.pop() {
        for user in &users[id] {
            lost.extend(lose(nodes, *user, types));
        }
        for union in &memberships[id] {
            let Union { owner, takers } = &mut unions[*union];
            let mut gone = Types::NONE;
            for one in types.each() {
                let left = &mut takers[one.index()];
                *left = left.saturating_sub(1);
                if *left == 0 {
                    gone = gone.with(one);
                }
            }
            lost.extend(lose(nodes, *owner, gone));
        }
    }
}

/// The alternatives of a node.
struct Union {
    owner: NodeId,
    /// How many branches take each type.
    takers: [usize; Types::COUNT],
}

/// Takes types from a node; the result are those that it had.
fn lose(nodes: &mut [Node], id: NodeId, types: Types) -> Option<(NodeId, Types)> {
    let node = nodes.get_mut(id)?;
    let lost = node.allowed.and(types);
    node.allowed = node.allowed.without(types);
    (lost != Types::NONE).then_some((id, lost))
}
