//! The light clean for `parametersJsonSchema`.

use std::borrow::Cow;

use super::graph::Graph;
use super::{cycles, limits};
use crate::schema::finding::{Effect, Findings};
use crate::schema::node::{Document, Node, Object, Scalar, Types};
use crate::schema::notes::Notes;
use crate::schema::words;

/// Formats that are part of JSON Schema, OpenAPI or Gemini's own.
const FORMATS: &[&str] = &[
    "binary",
    "byte",
    "date",
    "date-time",
    "double",
    "duration",
    "email",
    "enum",
    "float",
    "hostname",
    "idn-email",
    "idn-hostname",
    "int32",
    "int64",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "json-pointer",
    "password",
    "regex",
    "relative-json-pointer",
    "time",
    "uri",
    "uri-reference",
    "uri-template",
    "uuid",
];

/// Leaves what Gemini knows in `parametersJsonSchema`; the rest goes into descriptions.
pub(in crate::schema) fn clean<'t>(document: &mut Document<'t>, findings: &mut Findings<'t>) {
    visit(&mut document.root, findings);
    for node in document.defs.iter_mut().filter_map(|def| def.node.as_mut()) {
        visit(node, findings);
    }
    let graph = Graph::new(document);
    cycles::cut(document, &graph, findings);
    limits::limit(document, &graph, findings);
    // The root's own notes go into the function's description.
    document.root.children_mut().for_each(|node| simplify(node, findings));
    let defs = document.defs.iter_mut().filter_map(|def| def.node.as_mut());
    defs.for_each(|node| simplify(node, findings));
}

/// Branches that differed may be the same now.
fn simplify(node: &mut Node<'_>, findings: &mut Findings<'_>) {
    findings.work += 1;
    node.children_mut().for_each(|child| simplify(child, findings));
    if !node.any_of.is_empty() {
        let branches = std::mem::take(&mut node.any_of);
        findings.work += node.set_branches(branches);
    }
    node.scalar.take_if(|scalar| **scalar == Scalar::default());
    node.object.take_if(|object| **object == Object::default());
    if !node.notes.is_empty() {
        node.description = node.full_description().map(|text| Cow::Owned(text.into_owned()));
        node.notes = Notes::default();
    }
}

fn visit<'t>(node: &mut Node<'t>, findings: &mut Findings<'t>) {
    findings.work += 1;
    let place = node.place.text;
    let mut notes: Vec<String> = Vec::new();
    let mut gone: Vec<&'static str> = Vec::new();
    if let Some(scalar) = node.scalar.as_deref_mut() {
        if let Some(pattern) = scalar.pattern.take() {
            notes.push(format!("Pattern: `{pattern}`."));
            gone.push("pattern");
        }
        let (min, max) = (scalar.min_length.take(), scalar.max_length.take());
        notes.extend(words::range(min, max, "character", "characters"));
        gone.extend(min.filter(|min| *min > 0).map(|_| "minLength"));
        gone.extend(max.map(|_| "maxLength"));
        if let Some(format) = scalar.format.take_if(|format| !FORMATS.contains(&&**format)) {
            notes.push(format!("Format: {format}."));
            gone.push("format");
        }
    }
    if let Some(object) = node.object.as_deref_mut() {
        let (min, max) = (object.min.take(), object.max.take());
        notes.extend(words::range(min, max, "property", "properties"));
        gone.extend(min.filter(|min| *min > 0).map(|_| "minProperties"));
        gone.extend(max.map(|_| "maxProperties"));
    }
    for keyword in gone {
        let detail = format!("Gemini does not act on `{keyword}`; the description says it");
        findings.push(place, keyword, Effect::Described, detail);
    }
    notes.into_iter().for_each(|note| node.note(note));
    if node.types.has(Types::ARRAY) {
        node.array_mut().items.get_or_insert_with(|| Node::any(place));
    }
    node.children_mut().for_each(|child| visit(child, findings));
}
