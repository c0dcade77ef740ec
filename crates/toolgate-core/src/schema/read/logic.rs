//! References, unions and intersections.

use super::reader::Reader;
use crate::schema::finding::Effect;
use crate::schema::node::{Node, Types, Value};
use crate::schema::tree::{Member, Shape, Tree};
use crate::schema::words;

/// Keywords that can only be dealt with when the others have been read.
#[derive(Debug, Default)]
pub(super) struct Logic<'t> {
    pub(super) minimum_is_excluded: bool,
    pub(super) maximum_is_excluded: bool,
    reference: Option<(&'t str, &'t str)>,
    all_of: Option<&'t Member<'t>>,
    unions: Vec<&'t Member<'t>>,
    nullable: bool,
}

impl<'t> Reader<'t> {
    pub(super) fn logic_keyword(
        &mut self,
        node: &mut Node<'t>,
        logic: &mut Logic<'t>,
        name: &str,
        member: &'t Member<'t>,
    ) -> bool {
        let key = member.key.as_ref();
        let value = &member.value;
        match name {
            "$ref" | "$dynamicRef" | "$recursiveRef" => match value.as_str() {
                Some(reference) => logic.reference = Some((key, reference)),
                None => self.broken(node, key, "a string"),
            },
            "allOf" | "anyOf" | "oneOf" => match &value.shape {
                Shape::Array(branches) if branches.is_empty() => {}
                Shape::Array(_) if name == "allOf" => logic.all_of = Some(member),
                Shape::Array(_) => logic.unions.push(member),
                Shape::Null
                | Shape::Bool(_)
                | Shape::Number
                | Shape::String(_)
                | Shape::Object(_)
                | Shape::TooDeep => self.broken(node, key, "a list of schemas"),
            },
            "enum" => self.read_values(node, key, value),
            "const" => self.read_const(node, key, value),
            "nullable" => match value.as_bool() {
                Some(nullable) => {
                    logic.nullable = nullable;
                    if nullable && !self.is_gemini() && !self.lowered {
                        let detail = "`nullable` is said with the type `null`";
                        self.findings.push(node.place.text, key, Effect::Rewritten, detail);
                    }
                }
                None => self.broken(node, key, "true or false"),
            },
            _ => return false,
        }
        true
    }

    /// Puts the pieces together. `None`: no value fits.
    pub(super) fn combine(&mut self, mut node: Node<'t>, logic: Logic<'t>) -> Option<Node<'t>> {
        if let Some(scalar) = node.scalar.as_deref_mut() {
            if logic.minimum_is_excluded {
                scalar.above = scalar.minimum.take();
            }
            if logic.maximum_is_excluded {
                scalar.below = scalar.maximum.take();
            }
        }
        if let Some((name, reference)) = logic.reference {
            node.reference = self.reference(&mut node, name, reference);
            if node.reference.is_some() && node.is_structural() {
                let detail =
                    "Gemini allows nothing beside a `$ref`; what it points at was written out here";
                self.findings.push(node.place.text, name, Effect::Rewritten, detail);
            }
        }
        if let Some(all_of) = logic.all_of {
            node = self.all_of(node, all_of)?;
        }
        for union in logic.unions {
            node = self.union(node, union)?;
        }
        // The target of a reference has to be written out to be combined with anything.
        if node.reference.is_some() && (node.is_structural() || !node.any_of.is_empty()) {
            let reference = node.reference.take();
            let target = Node { place: node.place, reference, ..Node::default() };
            node = self.merge_or_keep(node, target, "$ref");
        }
        if logic.nullable {
            make_nullable(&mut node);
        }
        Some(node)
    }

    fn all_of(&mut self, mut node: Node<'t>, member: &'t Member<'t>) -> Option<Node<'t>> {
        let detail = "`allOf` is merged into one schema";
        self.findings.push(node.place.text, member.key.as_ref(), Effect::Rewritten, detail);
        for branch in member.value.elements() {
            let mut branch = self.schema(branch)?;
            // `allOf: [{"$ref": …}]` is an old way to put a description beside a reference.
            if node.is_any() {
                let place = node.place;
                branch.annotate(node);
                branch.place = place;
                node = branch;
            } else {
                node = self.merge_or_keep(node, branch, &member.key);
            }
        }
        Some(node)
    }

    fn union(&mut self, mut node: Node<'t>, member: &'t Member<'t>) -> Option<Node<'t>> {
        let key = member.key.as_ref();
        let exactly = key == "oneOf";
        let branches = member.value.elements();
        if let Some(note) = required_only(branches, exactly) {
            let detail = format!("`{key}` of `required` lists is said in the description");
            self.findings.push(node.place.text, key, Effect::Described, detail);
            node.note(note);
            return Some(node);
        }
        if exactly {
            let detail = "Gemini reads `oneOf` as `anyOf`; it is sent so";
            self.findings.push(node.place.text, key, Effect::Rewritten, detail);
        }
        let place = node.place.text;
        let any_of: Vec<Node<'t>> =
            branches.iter().filter_map(|branch| self.schema(branch)).collect();
        if any_of.is_empty() {
            return None;
        }
        if node.any_of.is_empty() {
            node.any_of = any_of;
            return Some(node);
        }
        let union = Node { any_of, ..Node::any(place) };
        Some(self.merge_or_keep(node, union, key))
    }
}

pub(super) fn make_nullable(node: &mut Node<'_>) {
    let place = node.place.text;
    let null = || Node::of_type(place, Types::NULL);
    if !node.any_of.is_empty() {
        node.any_of.push(null());
        if !node.types.is_empty() {
            node.types = node.types.with(Types::NULL);
        }
    } else if node.reference.is_some() {
        let reference = node.reference.take();
        node.any_of = vec![Node { place: node.place, reference, ..Node::default() }, null()];
    } else if !node.types.is_empty() {
        node.types = node.types.with(Types::NULL);
    }
    if let Some(values) = node.values.as_mut().filter(|values| !values.contains(&Value::Null)) {
        values.extend([Value::Null]);
    }
}

/// `anyOf: [{"required": ["a"]}, {"required": ["b"]}]`, in words.
fn required_only(branches: &[Tree<'_>], exactly: bool) -> Option<String> {
    let mut sets = Vec::new();
    for branch in branches {
        let only = branch.members().iter().all(|member| match member.key.as_ref() {
            "required" => matches!(member.value.shape, Shape::Array(_)),
            "type" => member.value.as_str() == Some("object"),
            "title" | "description" | "$comment" => true,
            _ => false,
        });
        let required = branch.get("required").filter(|_| only)?;
        sets.push(words::names(required.elements().iter().filter_map(Tree::as_str)));
    }
    if sets.iter().any(String::is_empty) {
        return None;
    }
    let quantity = if exactly { "exactly one" } else { "at least one" };
    Some(format!("Give {quantity} of these: {}.", sets.join("; ")))
}
