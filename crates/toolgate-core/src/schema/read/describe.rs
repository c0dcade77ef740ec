//! Keywords for people, and keywords that only a description can keep.

use std::borrow::Cow;

use super::reader::Reader;
use crate::schema::finding::Effect;
use crate::schema::node::Node;
use crate::schema::tree::{Member, Shape, Tree};
use crate::schema::words;

impl<'t> Reader<'t> {
    pub(super) fn described_keyword(
        &mut self,
        node: &mut Node<'t>,
        tree: &'t Tree<'t>,
        name: &str,
        member: &'t Member<'t>,
    ) -> bool {
        let key = member.key.as_ref();
        let value = &member.value;
        match name {
            "description" => {
                if let Some(text) = self.text(node, key, value) {
                    node.description = Some(text);
                }
            }
            "markdownDescription" if tree.get("description").is_none() => {
                if let Some(text) = self.text(node, key, value) {
                    node.description = Some(text);
                    let detail = "`markdownDescription` is sent as `description`";
                    self.findings.push(node.place.text, key, Effect::Rewritten, detail);
                }
            }
            "title" => node.title = self.text(node, key, value),
            "default" if value.is_finite() => node.default = Some(value),
            "default" => self.broken(node, key, "made of numbers that can be read"),
            "$schema" | "$id" | "id" | "$anchor" | "$dynamicAnchor" | "$recursiveAnchor"
            | "$vocabulary" | "$defs" | "definitions" => {}
            "uniqueItems" | "deprecated" if value.as_bool() == Some(false) => {}
            "uniqueItems" => self.described(node, key, Some("No two items are alike.".to_owned())),
            "deprecated" => self.described(node, key, Some("Deprecated.".to_owned())),
            "not" => self.described(node, key, words::labelled("Must not fit", value)),
            "propertyNames" => {
                self.described(node, key, words::labelled("Property names must fit", value));
            }
            "contains" => {
                let note = words::labelled(&contains(tree), value);
                self.described(node, key, note);
            }
            "minContains" | "maxContains" => {
                self.beside(node, tree, key, "contains");
            }
            "if" => self.described(node, key, condition(tree)),
            "then" | "else" => {
                self.beside(node, tree, key, "if");
            }
            "dependentRequired" | "dependentSchemas" | "dependencies" => {
                self.dependencies(node, key, value);
            }
            "contentEncoding" => {
                let note = value.as_str().map(|encoding| format!("Encoded as {encoding}."));
                self.described(node, key, note);
            }
            "contentMediaType" => {
                let note = value.as_str().map(|media| format!("Media type: {media}."));
                self.described(node, key, note);
            }
            "contentSchema" => {
                self.described(node, key, words::labelled("The content must fit", value));
            }
            "discriminator" => {
                let property = value.get("propertyName").and_then(Tree::as_str);
                let note = property.map(|name| format!("`{name}` says which of the forms it is."));
                self.described(node, key, note);
            }
            "example" => self.described(node, key, words::labelled("Example", value)),
            "examples" => {
                let note = examples(value);
                self.described(node, key, note);
            }
            "enumDescriptions" | "enumNames" => {
                let note = value_names(tree, value);
                self.described(node, key, note);
            }
            _ => return false,
        }
        true
    }

    /// A keyword that is described together with another one, and means nothing without it.
    fn beside(&mut self, node: &Node<'t>, tree: &'t Tree<'t>, key: &'t str, other: &str) {
        let (effect, detail) = if tree.get(other).is_some() {
            (Effect::Described, format!("said in the description together with `{other}`"))
        } else {
            (Effect::Dropped, format!("means nothing without `{other}`; it was left out"))
        };
        self.findings.push(node.place.text, key, effect, detail);
    }

    /// A keyword that only the description keeps; `None` where that would take too many words.
    pub(super) fn described(&mut self, node: &mut Node<'t>, name: &'t str, note: Option<String>) {
        let (effect, detail) = match &note {
            Some(_) => (
                Effect::Described,
                format!("Gemini does not act on `{name}`; the description says it"),
            ),
            None => (
                Effect::Dropped,
                format!(
                    "Gemini does not act on `{name}`, and it is too long to describe; it was left out"
                ),
            ),
        };
        self.findings.push(node.place.text, name, effect, detail);
        if let Some(note) = note {
            node.note(note);
        }
    }

    fn text(&mut self, node: &Node<'t>, key: &'t str, value: &'t Tree<'t>) -> Option<Cow<'t, str>> {
        match &value.shape {
            Shape::String(text) if text.trim().is_empty() => None,
            Shape::String(text) => Some(Cow::Borrowed(text)),
            Shape::Null
            | Shape::Bool(_)
            | Shape::Number
            | Shape::Array(_)
            | Shape::Object(_)
            | Shape::TooDeep => {
                let detail = format!("`{key}` is not a string; sent as text");
                self.findings.push(node.place.text, key, Effect::Repaired, detail);
                words::json(value).map(Cow::Owned)
            }
        }
    }

    fn dependencies(&mut self, node: &mut Node<'t>, key: &'t str, value: &'t Tree<'t>) {
        if value.is_object() && value.members().is_empty() {
            return;
        }
        let mut notes = Vec::new();
        for member in value.members() {
            let given = &member.key;
            if let Shape::Array(names) = &member.value.shape {
                let names = names.iter().filter_map(Tree::as_str);
                notes.push(format!("With `{given}` also give {}.", words::names(names)));
            } else if let Some(schema) = words::json(&member.value) {
                notes.push(format!("With `{given}` it must fit {schema}."));
            }
        }
        let note = (!notes.is_empty()).then(|| notes.join(" "));
        self.described(node, key, note);
    }
}

fn contains(tree: &Tree<'_>) -> String {
    let number = |name: &str| tree.get(name).map(|count| count.text);
    match (number("minContains"), number("maxContains")) {
        (None | Some("1"), None) => "At least one item must fit".to_owned(),
        (Some(min), None) => format!("At least {min} items must fit"),
        (None, Some(max)) => format!("One to {max} items must fit"),
        (Some(min), Some(max)) => format!("{min} to {max} items must fit"),
    }
}

fn condition(tree: &Tree<'_>) -> Option<String> {
    let part = |name: &str| tree.get(name).map_or(Some(None), |part| words::json(part).map(Some));
    let mut note = format!("If it fits {}", part("if")??);
    let (then, otherwise) = (part("then")?, part("else")?);
    if let Some(then) = &then {
        note.push_str(&format!(", it must fit {then}"));
    }
    if let Some(otherwise) = &otherwise {
        note.push_str(&format!("; otherwise it must fit {otherwise}"));
    }
    note.push('.');
    Some(note)
}

fn examples(value: &Tree<'_>) -> Option<String> {
    let Shape::Array(examples) = &value.shape else {
        return words::labelled("Examples", value);
    };
    // Some are better than none.
    let mut text = String::new();
    for example in examples.iter().filter_map(words::json) {
        if text.len() + example.len() > 400 {
            break;
        }
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(&example);
    }
    (!text.is_empty()).then(|| format!("Examples: {text}."))
}

/// VS Code's and form generators' names for the values of an `enum`.
fn value_names(tree: &Tree<'_>, names: &Tree<'_>) -> Option<String> {
    let values = tree.get("enum")?.elements();
    let pairs = values.iter().zip(names.elements()).filter_map(|(value, name)| {
        let name = name.as_str().filter(|name| !name.is_empty())?;
        Some(format!("{}: {name}", value.to_json()))
    });
    let text = pairs.collect::<Vec<_>>().join("; ");
    (!text.is_empty() && text.len() <= 2000).then(|| format!("{text}."))
}
