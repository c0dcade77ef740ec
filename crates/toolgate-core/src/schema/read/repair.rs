//! Properties that stand where keywords should (`{"name": {"type": "string"}}`).

use super::reader::Reader;
use crate::schema::finding::Effect;
use crate::schema::keywords;
use crate::schema::node::Node;
use crate::schema::tree::{Member, Shape, Tree};

impl<'t> Reader<'t> {
    /// Which members are properties whose `properties` was forgotten.
    pub(super) fn stray_properties(&self, members: &[Member<'_>]) -> Vec<usize> {
        let mut stray = Vec::new();
        let mut certain = false;
        for (at, member) in members.iter().enumerate() {
            let name = self.keyword(&member.key);
            let value = &member.value;
            let fits = fits(name, value);
            if name.starts_with("x-") {
                continue;
            }
            match name {
                "type" if fits && value.as_str().is_some_and(is_object_type) => {}
                "title" | "description" | "required" | "$schema" | "$id" | "$comment" | "$defs"
                | "definitions"
                    if fits => {}
                "additionalProperties" if value.as_bool().is_some() => {}
                // `items` or `default` may be a keyword or a property that is called so.
                _ if looks_like_schema(value) => {
                    certain |= !fits;
                    stray.push(at);
                }
                _ => return Vec::new(),
            }
        }
        if certain { stray } else { Vec::new() }
    }

    pub(super) fn add_stray_properties(
        &mut self,
        node: &mut Node<'t>,
        tree: &'t Tree<'t>,
        members: &'t [Member<'t>],
        stray: &[usize],
    ) {
        if stray.is_empty() {
            return;
        }
        let detail = "properties without `properties` around them; read as properties";
        self.findings.push(tree.text, "", Effect::Repaired, detail);
        for member in stray.iter().filter_map(|at| members.get(*at)) {
            self.property(node, tree.text, member);
        }
    }
}

fn is_object_type(name: &str) -> bool {
    name.eq_ignore_ascii_case("object")
}

fn looks_like_schema(tree: &Tree<'_>) -> bool {
    tree.members().iter().any(|member| match member.key.as_ref() {
        "type" | "$ref" => matches!(member.value.shape, Shape::String(_) | Shape::Array(_)),
        "properties" => member.value.is_object(),
        "enum" | "anyOf" | "oneOf" | "allOf" => matches!(member.value.shape, Shape::Array(_)),
        _ => false,
    })
}

/// Whether the value is one that a keyword of that name can have.
fn fits(name: &str, value: &Tree<'_>) -> bool {
    if keywords::known(name).is_none() {
        return false;
    }
    match name {
        "type" => matches!(value.shape, Shape::String(_) | Shape::Array(_)),
        "title"
        | "description"
        | "$ref"
        | "$id"
        | "id"
        | "$schema"
        | "$comment"
        | "$anchor"
        | "pattern"
        | "format"
        | "contentEncoding"
        | "contentMediaType"
        | "markdownDescription" => value.as_str().is_some(),
        "enum" | "required" | "allOf" | "anyOf" | "oneOf" | "prefixItems" | "examples"
        | "propertyOrdering" | "enumDescriptions" | "enumNames" => !value.is_object(),
        "minimum" | "maximum" | "minLength" | "maxLength" | "minItems" | "maxItems"
        | "minProperties" | "maxProperties" | "multipleOf" | "exclusiveMinimum"
        | "exclusiveMaximum" | "minContains" | "maxContains" | "nullable" | "deprecated"
        | "readOnly" | "writeOnly" | "uniqueItems" | "strict" => !value.is_object(),
        _ => true,
    }
}
