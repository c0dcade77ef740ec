//! Sentences for the model about constraints that a schema cannot express.

use super::finding::push_clipped;
use super::node::{Additional, Node, Value};
use super::tree::Tree;

/// Longer pieces of schema are not spelled out in a description.
const LONGEST: usize = 400;

/// Where a list of branches is cut: the same schema may be described in many places.
const MAX_KIND: usize = 2000;

/// A piece of schema or data as JSON, if it is short.
pub(super) fn json(tree: &Tree<'_>) -> Option<String> {
    // Text with spaces may shrink; that it shrinks by half is not worth finding out.
    if tree.text.len() > 2 * LONGEST {
        return None;
    }
    let text = tree.to_json();
    (text.len() <= LONGEST).then_some(text)
}

/// `Not: {"type":"string"}.`
pub(super) fn labelled(label: &str, tree: &Tree<'_>) -> Option<String> {
    json(tree).map(|text| format!("{label}: {text}."))
}

/// "`a`, `b` and `c`"
pub(super) fn names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names = names.into_iter();
    let mut items: Vec<String> = names.by_ref().take(20).map(quoted).collect();
    let more = names.count();
    if more > 0 {
        return format!("{} and {more} more", items.join(", "));
    }
    match items.pop() {
        Some(last) if items.is_empty() => last,
        Some(last) => format!("{} and {last}", items.join(", ")),
        None => String::new(),
    }
}

fn quoted(name: &str) -> String {
    let mut text = String::from("`");
    push_clipped(&mut text, name);
    text.push('`');
    text
}

/// Maximum length of a list of values in a description.
const MAX_VALUES: usize = 2000;

/// `1, 2, "x"`. Beyond [`MAX_VALUES`] the values are counted: `1, 2 and 7 more`.
pub(super) fn values<'a, 't: 'a>(values: impl IntoIterator<Item = &'a Value<'t>>) -> String {
    let mut text = String::new();
    let mut left_out = 0_usize;
    for value in values {
        let long = value.text().is_some_and(|text| text.len() > MAX_VALUES);
        let json = if long || left_out > 0 { String::new() } else { value.to_json() };
        if left_out > 0 || long || text.len() + json.len() > MAX_VALUES {
            left_out += 1;
            continue;
        }
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(&json);
    }
    match (left_out, text.is_empty()) {
        (0, _) => text,
        (_, true) => format!("{left_out} values that are too long to list"),
        (_, false) => format!("{text} and {left_out} more"),
    }
}

/// A range of counts: "2 to 5 items", "at least 1 item".
pub(super) fn range(min: Option<u64>, max: Option<u64>, one: &str, many: &str) -> Option<String> {
    let noun = |count: u64| if count == 1 { one } else { many };
    match (min.filter(|min| *min > 0), max) {
        (Some(min), Some(max)) if min == max => Some(format!("Exactly {min} {}.", noun(min))),
        (Some(min), Some(max)) => Some(format!("{min} to {max} {}.", noun(max))),
        (Some(min), None) => Some(format!("At least {min} {}.", noun(min))),
        (None, Some(max)) => Some(format!("At most {max} {}.", noun(max))),
        (None, None) => None,
    }
}

/// What kind of value a schema wants, in a few words: "an array of strings".
pub(super) fn kind(node: &Node<'_>) -> String {
    kind_within(node, 2)
}

fn kind_within(node: &Node<'_>, levels: usize) -> String {
    if let Some(values) = &node.values {
        return match &**values {
            [value] => self::values([value]),
            several => format!("one of {}", self::values(several.iter())),
        };
    }
    if !node.any_of.is_empty() && levels > 0 {
        let mut text = String::new();
        for branch in &node.any_of {
            if !text.is_empty() {
                text.push_str(" or ");
            }
            if text.len() > MAX_KIND {
                text.push('…');
                break;
            }
            text.push_str(&kind_within(branch, levels - 1));
        }
        return text;
    }
    let mut kinds: Vec<String> = Vec::new();
    for name in node.types.names() {
        kinds.push(match name {
            "object" => object(node, levels),
            "array" => match node.array.as_deref().and_then(|array| array.items.as_ref()) {
                Some(items) if levels > 0 && !items.is_any() => {
                    format!("array of {}", kind_within(items, levels - 1))
                }
                Some(_) | None => "array".to_owned(),
            },
            name => name.to_owned(),
        });
    }
    if kinds.is_empty() { "any value".to_owned() } else { kinds.join(" or ") }
}

fn object(node: &Node<'_>, levels: usize) -> String {
    let Some(object) = node.object.as_deref() else { return "object".to_owned() };
    if !object.properties.is_empty() {
        return format!("object with {}", names(object.properties.iter().map(|(name, _)| &**name)));
    }
    match &object.additional {
        Additional::Each(each) if levels > 0 => {
            format!("object whose values are each {}", kind_within(each, levels - 1))
        }
        Additional::Each(_) | Additional::Unsaid | Additional::Allowed | Additional::Forbidden => {
            "object".to_owned()
        }
    }
}
