//! Putting finished schemas into text. The order of the members is always the same.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::json::write::{comma, integer, key, string};
use crate::schema::node::{Additional, DefId, Document, Node, Scalar, Types};

/// The document as JSON Schema, with its definitions.
pub(in crate::schema) fn json_schema(document: &Document<'_>) -> String {
    let mut writer = Writer { document, out: Vec::new(), names: Names::default() };
    writer.open(&document.root, true);
    let mut at = 0;
    if !writer.names.order.is_empty() {
        key(&mut writer.out, "$defs");
        writer.out.push(b'{');
        // Definitions may mention further ones.
        while let Some((id, name)) = writer.names.order.get(at).cloned() {
            key(&mut writer.out, &name);
            let def = document.defs.get(id).and_then(|def| def.node.as_ref());
            match def {
                Some(def) => writer.node(def),
                None => writer.out.extend_from_slice(b"{}"),
            }
            at += 1;
        }
        writer.out.push(b'}');
    }
    writer.out.push(b'}');
    String::from_utf8(writer.out).unwrap_or_default()
}

struct Writer<'d, 't> {
    document: &'d Document<'t>,
    out: Vec<u8>,
    names: Names,
}

/// What definitions are called, in the order they are mentioned.
#[derive(Default)]
struct Names {
    order: Vec<(DefId, String)>,
    by_id: BTreeMap<DefId, usize>,
    taken: BTreeSet<String>,
    /// The number to try next for a name that is taken.
    next: BTreeMap<String, usize>,
}

impl Names {
    fn of(&mut self, id: DefId, wanted: &str) -> &str {
        let at = *self.by_id.entry(id).or_insert_with(|| {
            let plain: String = wanted
                .chars()
                .map(|c| if c.is_ascii_alphanumeric() || "_.-".contains(c) { c } else { '_' })
                .take(100)
                .collect();
            let plain = if plain.is_empty() { "Schema".to_owned() } else { plain };
            let mut name = plain.clone();
            while !self.taken.insert(name.clone()) {
                let number = self.next.entry(plain.clone()).or_insert(2);
                name = format!("{plain}_{number}");
                *number += 1;
            }
            self.order.push((id, name));
            self.order.len() - 1
        });
        self.order.get(at).map_or("", |(_, name)| name)
    }
}

impl Writer<'_, '_> {
    fn node(&mut self, node: &Node<'_>) {
        if let Some(id) = node.reference.filter(|_| !node.is_annotated()) {
            self.reference(id);
            return;
        }
        self.open(node, false);
        self.out.push(b'}');
    }

    fn reference(&mut self, id: DefId) {
        let wanted = self.document.defs.get(id).map_or("", |def| &*def.name);
        let name = self.names.of(id, wanted);
        let pointer = format!("#/$defs/{name}");
        self.out.push(b'{');
        key(&mut self.out, "$ref");
        string(&mut self.out, &pointer);
        self.out.push(b'}');
    }

    /// Writes an object without its closing bracket. Gemini wants `properties` at the root, even
    /// where there are none.
    fn open(&mut self, node: &Node<'_>, root: bool) {
        self.out.push(b'{');
        let out = &mut self.out;
        match node.types.len() {
            0 => {}
            1 => node.types.names().for_each(|name| text(out, "type", name)),
            _ => list(out, "type", node.types.names()),
        }
        head(out, node);
        if let Some(scalar) = node.scalar.as_deref() {
            bounds(out, scalar);
        }
        if let Some(array) = node.array.as_deref() {
            if !array.prefix.is_empty() {
                key(&mut self.out, "prefixItems");
                self.list(&array.prefix);
            }
            if let Some(items) = &array.items {
                key(&mut self.out, "items");
                self.node(items);
            }
            count(&mut self.out, "minItems", array.min);
            count(&mut self.out, "maxItems", array.max);
        } else if node.types.has(Types::ARRAY) {
            key(&mut self.out, "items");
            self.out.extend_from_slice(b"{}");
        }
        if let Some(object) = node.object.as_deref() {
            if !object.properties.is_empty() || root {
                key(&mut self.out, "properties");
                self.out.push(b'{');
                for (name, schema) in &object.properties {
                    key(&mut self.out, name);
                    self.node(schema);
                }
                self.out.push(b'}');
            }
            names(&mut self.out, "required", &object.required);
            match &object.additional {
                Additional::Unsaid => {}
                Additional::Allowed => flag(&mut self.out, "additionalProperties", true),
                Additional::Forbidden => flag(&mut self.out, "additionalProperties", false),
                Additional::Each(each) => {
                    key(&mut self.out, "additionalProperties");
                    self.node(each);
                }
            }
            names(&mut self.out, "propertyOrdering", &object.ordering);
        }
        if let Some(id) = node.reference {
            // Nothing may stand beside `$ref`.
            key(&mut self.out, "anyOf");
            self.out.push(b'[');
            self.reference(id);
            self.out.push(b']');
        } else if !node.any_of.is_empty() {
            key(&mut self.out, "anyOf");
            self.list(&node.any_of);
        }
    }

    fn list(&mut self, nodes: &[Node<'_>]) {
        self.out.push(b'[');
        for node in nodes {
            comma(&mut self.out);
            self.node(node);
        }
        self.out.push(b']');
    }
}

/// The schema as Gemini's own `Schema`.
pub(in crate::schema) fn parameters(document: &Document<'_>) -> String {
    let mut out = Vec::new();
    schema(&mut out, &document.root);
    String::from_utf8(out).unwrap_or_default()
}

fn schema(out: &mut Vec<u8>, node: &Node<'_>) {
    out.push(b'{');
    if node.any_of.is_empty() {
        let one = node.types.without(Types::NULL);
        let nullable = node.types.has(Types::NULL) && !one.is_empty();
        let one = if one.is_empty() { node.types } else { one };
        let one = one.each().next().unwrap_or(Types::STRING);
        text(out, "type", one.gemini_name().unwrap_or("STRING"));
        if nullable {
            flag(out, "nullable", true);
        }
        head(out, node);
        if let Some(scalar) = node.scalar.as_deref() {
            bounds(out, scalar);
            count(out, "minLength", scalar.min_length);
            count(out, "maxLength", scalar.max_length);
            if let Some(pattern) = &scalar.pattern {
                text(out, "pattern", pattern);
            }
        }
        if one == Types::ARRAY {
            key(out, "items");
            match node.array.as_deref().and_then(|array| array.items.as_ref()) {
                Some(items) => schema(out, items),
                None => out.extend_from_slice(br#"{"type":"STRING"}"#),
            }
            count(out, "minItems", node.array.as_deref().and_then(|array| array.min));
            count(out, "maxItems", node.array.as_deref().and_then(|array| array.max));
        }
        if let Some(object) = node.object.as_deref() {
            if !object.properties.is_empty() {
                key(out, "properties");
                out.push(b'{');
                for (name, property) in &object.properties {
                    key(out, name);
                    schema(out, property);
                }
                out.push(b'}');
            }
            names(out, "required", &object.required);
            names(out, "propertyOrdering", &object.ordering);
            count(out, "minProperties", object.min);
            count(out, "maxProperties", object.max);
        }
    } else {
        key(out, "anyOf");
        out.push(b'[');
        for branch in &node.any_of {
            comma(out);
            schema(out, branch);
        }
        out.push(b']');
    }
    out.push(b'}');
}

/// What both forms write alike.
fn head(out: &mut Vec<u8>, node: &Node<'_>) {
    if let Some(title) = &node.title {
        text(out, "title", title);
    }
    if let Some(description) = node.full_description() {
        text(out, "description", &description);
    }
    if let Some(format) = node.scalar.as_deref().and_then(|scalar| scalar.format.as_ref()) {
        text(out, "format", format);
    }
    if let Some(values) = &node.values {
        key(out, "enum");
        out.push(b'[');
        for value in values.iter() {
            comma(out);
            value.write(out);
        }
        out.push(b']');
    }
    if let Some(default) = node.default {
        key(out, "default");
        default.write(out);
    }
}

fn bounds(out: &mut Vec<u8>, scalar: &Scalar<'_>) {
    for (name, bound) in [("minimum", &scalar.minimum), ("maximum", &scalar.maximum)] {
        if let Some(bound) = bound {
            key(out, name);
            out.extend_from_slice(bound.0.as_bytes());
        }
    }
}

fn text(out: &mut Vec<u8>, name: &str, value: &str) {
    key(out, name);
    string(out, value);
}

fn flag(out: &mut Vec<u8>, name: &str, value: bool) {
    key(out, name);
    out.extend_from_slice(if value { b"true" } else { b"false" });
}

fn count(out: &mut Vec<u8>, name: &str, value: Option<u64>) {
    if let Some(value) = value {
        key(out, name);
        integer(out, value);
    }
}

fn names(out: &mut Vec<u8>, name: &str, values: &[Cow<'_, str>]) {
    if !values.is_empty() {
        list(out, name, values.iter().map(|value| &**value));
    }
}

fn list<'a>(out: &mut Vec<u8>, name: &str, values: impl IntoIterator<Item = &'a str>) {
    key(out, name);
    out.push(b'[');
    for value in values {
        comma(out);
        string(out, value);
    }
    out.push(b']');
}
