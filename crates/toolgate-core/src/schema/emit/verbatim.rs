//! Whether a schema in Gemini's own form can be sent as it is.

use std::collections::BTreeSet;

use super::limits::{MAX_ITEMS, MAX_LEVELS};
use crate::schema::keywords;
use crate::schema::node::{Number, Types};
use crate::schema::number::{Count, count};
use crate::schema::tree::{Shape, Tree};

/// Whether Google accepts the schema as a function's `parameters`, on both of its services.
pub(in crate::schema) fn is_valid_parameters(root: &Tree<'_>, arguments: bool) -> bool {
    let mut items = 0;
    valid(root, 1, &mut items)
        && items <= MAX_ITEMS
        && root.text.len() <= 512 * 1024
        && !root.text.contains("\\ud")
        && !root.text.contains("\\uD")
        && (!arguments
            || (type_of(root) == Some(Types::OBJECT) && root.get("properties").is_some()))
}

fn type_of(tree: &Tree<'_>) -> Option<Types> {
    tree.get("type").and_then(Tree::as_str).and_then(Types::by_name)
}

fn valid(tree: &Tree<'_>, level: usize, items: &mut u64) -> bool {
    let Shape::Object(members) = &tree.shape else { return false };
    if level > MAX_LEVELS {
        return false;
    }
    let one = type_of(tree);
    let is = |wanted: Types| one == Some(wanted);
    let mut seen = BTreeSet::new();
    let mut names: BTreeSet<&str> = BTreeSet::new();
    let mut has_items = false;
    let mut required: &[Tree<'_>] = &[];
    for member in members.iter() {
        let name = keywords::from_gemini(&member.key).unwrap_or(&member.key);
        let value = &member.value;
        if !seen.insert(name) {
            return false;
        }
        let good = match name {
            "type" => one.is_some(),
            "title" | "description" => value.as_str().is_some(),
            "nullable" => value.as_bool().is_some(),
            "format" => match value.as_str() {
                Some("date-time" | "enum") => is(Types::STRING),
                Some("float" | "double") => is(Types::NUMBER),
                Some("int32" | "int64") => is(Types::INTEGER),
                Some(_) | None => false,
            },
            "pattern" => is(Types::STRING) && value.as_str().is_some(),
            "enum" => {
                let full = |value: &Tree<'_>| value.as_str().is_some_and(|text| !text.is_empty());
                is(Types::STRING)
                    && !value.elements().is_empty()
                    && value.elements().iter().all(full)
            }
            "minLength" | "maxLength" => is(Types::STRING) && is_count(value),
            "minimum" | "maximum" => {
                (is(Types::NUMBER) || is(Types::INTEGER))
                    && matches!(value.shape, Shape::Number)
                    && Number::read(value).is_some()
            }
            "minItems" => is(Types::ARRAY) && is_count(value),
            "maxItems" => {
                if let Count::Good(count) = count(value, false) {
                    *items = items.saturating_add(count);
                }
                is(Types::ARRAY) && is_count(value)
            }
            "items" => {
                has_items = true;
                is(Types::ARRAY) && valid(value, level + 1, items)
            }
            "properties" => {
                names = value.members().iter().map(|member| member.key.as_ref()).collect();
                is(Types::OBJECT)
                    && !names.is_empty()
                    && !names.contains("")
                    && value.members().iter().all(|it| valid(&it.value, level + 1, items))
            }
            "required" | "propertyOrdering" => {
                required = if name == "required" { value.elements() } else { required };
                is(Types::OBJECT) && matches!(value.shape, Shape::Array(_))
            }
            "minProperties" | "maxProperties" => is(Types::OBJECT) && is_count(value),
            "default" => value.depth() + 2 * level <= 2 * MAX_LEVELS,
            "example" => level == 1 && value.depth() + 2 <= 2 * MAX_LEVELS,
            // Vertex takes nothing beside it.
            "anyOf" => {
                members.len() == 1
                    && !value.elements().is_empty()
                    && value.elements().iter().all(|branch| valid(branch, level + 1, items))
            }
            _ => false,
        };
        if !good {
            return false;
        }
    }
    let ordering = tree.get("propertyOrdering").or_else(|| tree.get("property_ordering"));
    let listed = required.iter().chain(ordering.map_or(&[][..], Tree::elements));
    let known = listed.into_iter().all(|name| name.as_str().is_some_and(|it| names.contains(it)));
    let complete = one.is_some() || seen.contains("anyOf");
    known && complete && (has_items || !is(Types::ARRAY))
}

/// `int64`: a whole number, or one in a string.
fn is_count(value: &Tree<'_>) -> bool {
    let whole = value.as_str().unwrap_or(value.text);
    !whole.is_empty()
        && whole.bytes().all(|byte| byte.is_ascii_digit())
        && matches!(count(value, false), Count::Good(_))
}
