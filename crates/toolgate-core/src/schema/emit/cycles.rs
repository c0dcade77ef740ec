//! Endless references.
//!
//! Gemini unrolls them a little, and takes them only in properties that are not required.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::graph::Graph;
use crate::schema::finding::{Effect, Findings};
use crate::schema::node::{Additional, DefId, Document, Node, Object, Types};

/// Makes required properties that lead back to their own schema optional, and cuts references that
/// lead back without a property between.
pub(super) fn cut<'t>(document: &mut Document<'t>, graph: &Graph, findings: &mut Findings<'t>) {
    let about: Vec<(Types, String)> = document
        .defs
        .iter()
        .map(|def| {
            (def.node.as_ref().map(|node| node.types).unwrap_or_default(), def.name.to_string())
        })
        .collect();
    for (id, def) in document.defs.iter_mut().enumerate() {
        if let Some(node) = def.node.as_mut().filter(|_| graph.is_endless(id, id)) {
            Cut { from: id, graph, about: &about, findings }.visit(node, false);
        }
    }
}

struct Cut<'a, 't> {
    from: DefId,
    graph: &'a Graph,
    about: &'a [(Types, String)],
    findings: &'a mut Findings<'t>,
}

impl<'t> Cut<'_, 't> {
    /// Whether there is an endless reference that the nearest property has to answer for.
    fn visit(&mut self, node: &mut Node<'t>, in_property: bool) -> bool {
        if let Some(to) = node.reference {
            if !self.graph.is_endless(self.from, to) {
                return false;
            }
            if in_property {
                return true;
            }
            let (types, name) =
                self.about.get(to).map_or((Types::NONE, ""), |(types, name)| (*types, name));
            node.reference = None;
            node.types = types;
            node.note(format!("The same form again ({name})."));
            let detail = "Gemini takes endless references only in optional properties; any value of that type is allowed here";
            self.findings.push(node.place.text, "$ref", Effect::Cut, detail);
            return false;
        }
        self.findings.work += 1;
        let place = node.place.text;
        let mut found = false;
        if let Some(object) = node.object.as_deref_mut() {
            let mut endless = BTreeSet::new();
            for (name, property) in &mut object.properties {
                if self.visit(property, true) {
                    endless.insert(name.clone());
                }
            }
            if !endless.is_empty() {
                self.make_optional(place, object, &endless);
            }
            if let Additional::Each(each) = &mut object.additional {
                found |= self.visit(each, in_property);
            }
        }
        if let Some(array) = node.array.as_deref_mut() {
            for item in array.prefix.iter_mut().chain(&mut array.items) {
                found |= self.visit(item, in_property);
            }
        }
        for branch in &mut node.any_of {
            found |= self.visit(branch, in_property);
        }
        found
    }

    fn make_optional(
        &mut self,
        place: &'t str,
        object: &mut Object<'t>,
        endless: &BTreeSet<Cow<'t, str>>,
    ) {
        let (gone, kept): (BTreeSet<_>, Vec<_>) = {
            let required = std::mem::take(&mut object.required);
            let (gone, kept): (Vec<_>, Vec<_>) =
                required.into_iter().partition(|name| endless.contains(name));
            (gone.into_iter().collect(), kept)
        };
        object.required = kept;
        for (name, property) in &mut object.properties {
            if !gone.contains(name) {
                continue;
            }
            property.note("Always give this.");
            let detail = format!(
                "`{name}` leads back to its own schema, which Gemini takes only in optional properties; the description says that it is required"
            );
            self.findings.push(place, "required", Effect::Described, detail);
        }
    }
}
