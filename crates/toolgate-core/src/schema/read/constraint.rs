//! Keywords that say something about the value: types, bounds, items, properties.

use std::borrow::Cow;

use super::logic::Logic;
use super::reader::Reader;
use crate::schema::finding::Effect;
use crate::schema::node::{Additional, Node, Number, Types};
use crate::schema::number::{Count, count};
use crate::schema::tree::{Member, Shape, Tree};
use crate::schema::words;

/// The keywords about items, which depend on each other.
#[derive(Debug, Default)]
pub(super) struct ArrayParts<'t> {
    items: Option<&'t Member<'t>>,
    prefix: Option<&'t Member<'t>>,
    /// `additionalItems`, `unevaluatedItems`
    rest: Option<&'t Member<'t>>,
}

impl<'t> Reader<'t> {
    pub(super) fn scalar_keyword(
        &mut self,
        node: &mut Node<'t>,
        logic: &mut Logic<'t>,
        name: &str,
        member: &'t Member<'t>,
    ) -> bool {
        let key = member.key.as_ref();
        let value = &member.value;
        match name {
            "type" => self.types(node, key, value),
            "format" | "pattern" => match value.as_str() {
                Some("") => {}
                Some(text) if name == "format" => {
                    node.scalar_mut().format = Some(Cow::Borrowed(text));
                }
                Some(text) => node.scalar_mut().pattern = Some(Cow::Borrowed(text)),
                None => self.broken(node, key, "a string"),
            },
            "minLength" => {
                if let Some(count) = self.count(node, key, value, true) {
                    node.scalar_mut().min_length = Some(count);
                }
            }
            "maxLength" => {
                if let Some(count) = self.count(node, key, value, false) {
                    node.scalar_mut().max_length = Some(count);
                }
            }
            // Draft 4: a flag beside the bound.
            "exclusiveMinimum" if value.as_bool().is_some() => {
                logic.minimum_is_excluded = value.as_bool() == Some(true);
            }
            "exclusiveMaximum" if value.as_bool().is_some() => {
                logic.maximum_is_excluded = value.as_bool() == Some(true);
            }
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
                let Some(number) = self.number(node, key, value) else { return true };
                let scalar = node.scalar_mut();
                match name {
                    "minimum" => scalar.minimum = Some(number),
                    "maximum" => scalar.maximum = Some(number),
                    "exclusiveMinimum" => scalar.above = Some(number),
                    _ => scalar.below = Some(number),
                }
            }
            "multipleOf" => {
                if let Some(number) = self.number(node, key, value) {
                    let note = Some(format!("A multiple of {}.", number.0));
                    self.described(node, key, note);
                }
            }
            _ => return false,
        }
        true
    }

    fn types(&mut self, node: &mut Node<'t>, key: &'t str, value: &'t Tree<'t>) {
        let mut types = Types::NONE;
        let mut anything = false;
        let words = match &value.shape {
            Shape::String(_) => std::slice::from_ref(value),
            Shape::Array(words) => words.as_slice(),
            Shape::Null | Shape::Bool(_) | Shape::Number | Shape::Object(_) | Shape::TooDeep => {
                return self.broken(node, key, "the name of a type, or a list of them");
            }
        };
        for word in words {
            let Some(name) = word.as_str() else {
                self.broken(node, key, "the name of a type, or a list of them");
                anything = true;
                continue;
            };
            if let Some(one) = Types::by_name(name) {
                types = types.with(one);
                continue;
            }
            match name.to_ascii_lowercase().as_str() {
                "any" | "type_unspecified" | "mixed" | "unknown" => anything = true,
                other => {
                    let meant = meant(other);
                    let detail = match meant {
                        Some(types) => format!(
                            "`{name}` is not a type of JSON Schema; read as `{}`",
                            types.names().collect::<Vec<_>>().join("`, `")
                        ),
                        None => {
                            format!("`{name}` is not a type of JSON Schema; any type is allowed")
                        }
                    };
                    self.findings.push(node.place.text, key, Effect::Repaired, detail);
                    match meant {
                        Some(meant) => types = types.with(meant),
                        None => {
                            anything = true;
                            node.note(format!("Type: {name}."));
                        }
                    }
                }
            }
        }
        node.types = if anything { Types::NONE } else { types };
    }

    fn number(&mut self, node: &Node<'t>, key: &'t str, value: &'t Tree<'t>) -> Option<Number<'t>> {
        let number = Number::read(value);
        match (&number, &value.shape) {
            (None, _) => self.broken(node, key, "a number"),
            (Some(number), Shape::String(_)) => {
                let detail = format!("a number in a string; read as {}", number.0);
                self.findings.push(node.place.text, key, Effect::Repaired, detail);
            }
            (Some(_), _) => {}
        }
        number
    }

    /// The least (`up`) or greatest number of something.
    fn count(
        &mut self,
        node: &Node<'t>,
        key: &'t str,
        value: &'t Tree<'t>,
        up: bool,
    ) -> Option<u64> {
        match count(value, up) {
            Count::Good(count) => {
                // Gemini's own form may have them as strings: `"minItems": "1"`.
                if value.text != count.to_string() && !self.is_gemini() {
                    let detail = format!("`{key}` is a whole number; read as {count}");
                    let whole = matches!(value.shape, Shape::Number)
                        && Number::read(value).is_some_and(|number| number.is_integral());
                    let effect = if whole { Effect::Adjusted } else { Effect::Repaired };
                    self.findings.push(node.place.text, key, effect, detail);
                }
                Some(count)
            }
            Count::Boundless => {
                let detail = format!("`{key}` is no bound at all; it was left out");
                self.findings.push(node.place.text, key, Effect::Dropped, detail);
                None
            }
            Count::Bad => {
                self.broken(node, key, "a number that is not negative");
                None
            }
        }
    }

    pub(super) fn array_keyword(
        &mut self,
        node: &mut Node<'t>,
        parts: &mut ArrayParts<'t>,
        name: &str,
        member: &'t Member<'t>,
    ) -> bool {
        let key = member.key.as_ref();
        match name {
            "items" => parts.items = Some(member),
            "prefixItems" => parts.prefix = Some(member),
            "additionalItems" | "unevaluatedItems" => parts.rest = Some(member),
            "minItems" => {
                if let Some(count) = self.count(node, key, &member.value, true) {
                    node.array_mut().min = Some(count);
                }
            }
            "maxItems" => {
                if let Some(count) = self.count(node, key, &member.value, false) {
                    node.array_mut().max = Some(count);
                }
            }
            _ => return false,
        }
        true
    }

    /// Combines the keywords about items.
    pub(super) fn finish_array(&mut self, node: &mut Node<'t>, parts: &ArrayParts<'t>) {
        let place = node.place.text;
        // Drafts before 2020-12 have a tuple's schemas in `items`.
        let list = |member: &'t Member<'t>| matches!(member.value.shape, Shape::Array(_));
        let old = parts.items.filter(|items| list(items));
        if let Some(items) = old {
            let detail = "a list of schemas for the items is sent as `prefixItems`";
            self.findings.push(place, items.key.as_ref(), Effect::Rewritten, detail);
        }
        let prefix = parts.prefix.or(old);
        if let Some(prefix) = prefix.filter(|prefix| !list(prefix)) {
            self.broken(node, &prefix.key, "a list of schemas");
        }
        let mut closed = false;
        let mut read = Vec::new();
        for tree in prefix.map_or(&[][..], |prefix| prefix.value.elements()) {
            // Where no value fits, the array must end before.
            let Some(item) = self.schema(tree) else {
                closed = true;
                break;
            };
            read.push(item);
        }
        let rest = match parts.items.filter(|items| !list(items)) {
            Some(items) => Some(items),
            None => parts.rest.filter(|_| prefix.is_some()),
        };
        if let Some(rest) = rest.filter(|rest| !matches!(rest.key.as_ref(), "items")) {
            let detail = format!("`{}` is said with `items` or `maxItems`", rest.key);
            self.findings.push(place, rest.key.as_ref(), Effect::Rewritten, detail);
        }
        let mut items = None;
        match rest.map(|rest| (rest, self.schema(&rest.value))) {
            Some((_, Some(item))) => items = Some(item),
            Some((rest, None)) => {
                closed = true;
                let detail = "no further items: said with `maxItems`";
                self.findings.push(place, rest.key.as_ref(), Effect::Rewritten, detail);
            }
            None => {}
        }
        if prefix.is_none() && rest.is_none() {
            return;
        }
        let array = node.array_mut();
        if closed {
            let length = u64::try_from(read.len()).unwrap_or(u64::MAX);
            array.max = Some(array.max.map_or(length, |max| max.min(length)));
        }
        array.prefix = read;
        array.items = items;
    }

    pub(super) fn object_keyword(
        &mut self,
        node: &mut Node<'t>,
        tree: &'t Tree<'t>,
        name: &str,
        member: &'t Member<'t>,
    ) -> bool {
        let key = member.key.as_ref();
        let value = &member.value;
        match name {
            "properties" => match &value.shape {
                Shape::Object(members) => {
                    node.object_mut();
                    for property in members.iter() {
                        self.property(node, value.text, property);
                    }
                }
                // PHP writes an empty object as a list.
                Shape::Array(elements) if elements.is_empty() => _ = node.object_mut(),
                Shape::Null
                | Shape::Bool(_)
                | Shape::Number
                | Shape::String(_)
                | Shape::Array(_)
                | Shape::TooDeep => self.broken(node, key, "an object with a schema for each name"),
            },
            "required" => self.required(node, key, value),
            "additionalProperties" | "unevaluatedProperties" => {
                self.additional(node, tree, name, member);
            }
            "patternProperties" => self.pattern_properties(node, key, value),
            "minProperties" => {
                if let Some(count) = self.count(node, key, value, true) {
                    node.object_mut().min = Some(count);
                }
            }
            "maxProperties" => {
                if let Some(count) = self.count(node, key, value, false) {
                    node.object_mut().max = Some(count);
                }
            }
            "propertyOrdering" => {
                let names = value.elements().iter().filter_map(Tree::as_str).map(Cow::Borrowed);
                node.object_mut().ordering.extend(names);
            }
            _ => return false,
        }
        true
    }

    /// Adds a property. `around` is the text of the object that it stands in.
    pub(super) fn property(
        &mut self,
        node: &mut Node<'t>,
        around: &'t str,
        property: &'t Member<'t>,
    ) {
        let name = property.key.as_ref();
        if name.is_empty() {
            let detail = "a property must have a name; it was left out";
            self.findings.push(property.value.text, "", Effect::Dropped, detail);
            return;
        }
        let Some(schema) = self.schema(&property.value) else {
            let detail = format!("no value fits `{name}`; the property was left out");
            self.findings.push(around, name, Effect::Dropped, detail);
            return;
        };
        let object = node.object_mut();
        // Draft 3, and people's habit: the flag in the property instead of the list beside it.
        if property.value.get("required").and_then(Tree::as_bool) == Some(true) {
            object.required.push(Cow::Borrowed(name));
        }
        object.properties.push((Cow::Borrowed(name), schema));
    }

    fn required(&mut self, node: &mut Node<'t>, key: &'t str, value: &'t Tree<'t>) {
        match &value.shape {
            Shape::Array(names) => {
                if names.iter().any(|name| name.as_str().is_none()) {
                    self.broken(node, key, "a list of names");
                }
                let names = names.iter().filter_map(Tree::as_str).map(Cow::Borrowed);
                node.object_mut().required.extend(names);
            }
            Shape::String(name) => {
                let detail = "`required` is a list; read as a list of one name";
                self.findings.push(node.place.text, key, Effect::Repaired, detail);
                node.object_mut().required.push(Cow::Borrowed(name));
            }
            Shape::Bool(required) => {
                let detail = if *required {
                    "belongs into the list beside `properties`, where Gemini sees it"
                } else {
                    "a property is optional unless the list beside `properties` names it"
                };
                self.findings.push(node.place.text, key, Effect::Repaired, detail);
            }
            Shape::Null | Shape::Number | Shape::Object(_) | Shape::TooDeep => {
                self.broken(node, key, "a list of names");
            }
        }
    }

    fn additional(
        &mut self,
        node: &mut Node<'t>,
        tree: &'t Tree<'t>,
        name: &str,
        member: &'t Member<'t>,
    ) {
        let unevaluated = name == "unevaluatedProperties";
        if unevaluated {
            if tree.get("additionalProperties").is_some_and(|it| !it.is_null()) {
                return self.described(
                    node,
                    &member.key,
                    words::labelled("Other properties", &member.value),
                );
            }
            let detail = "`unevaluatedProperties` is sent as `additionalProperties`";
            self.findings.push(node.place.text, member.key.as_ref(), Effect::Rewritten, detail);
        }
        let additional = match self.schema(&member.value) {
            None => Additional::Forbidden,
            Some(each) if each.is_any() && !each.is_annotated() => Additional::Allowed,
            Some(each) => Additional::Each(Box::new(each)),
        };
        let object = node.object_mut();
        // What `patternProperties` allows is not forbidden.
        if !(additional == Additional::Forbidden
            && matches!(object.additional, Additional::Each(_)))
        {
            object.additional = additional;
        }
    }

    /// Names by pattern become any names; the patterns are described.
    fn pattern_properties(&mut self, node: &mut Node<'t>, key: &'t str, value: &'t Tree<'t>) {
        if !value.is_object() {
            return self.broken(node, key, "an object with a schema for each pattern");
        }
        let mut schemas = Vec::new();
        for member in value.members() {
            match self.schema(&member.value) {
                Some(schema) => {
                    let kind = words::kind(&schema);
                    node.note(format!("Property names that match {}: {kind}.", member.key));
                    schemas.push(schema);
                }
                None => node.note(format!("No property name may match {}.", member.key)),
            }
        }
        if value.members().is_empty() {
            return;
        }
        let detail = "names by pattern are sent as `additionalProperties`; the description says the patterns";
        self.findings.push(node.place.text, key, Effect::Described, detail);
        let place = node.place.text;
        let object = node.object_mut();
        if matches!(object.additional, Additional::Unsaid | Additional::Forbidden) {
            let each = match schemas.len() {
                0 => return,
                1 => schemas.remove(0),
                _ => Node { any_of: schemas, ..Node::any(place) },
            };
            object.additional = if each.is_any() && !each.is_annotated() {
                Additional::Allowed
            } else {
                Additional::Each(Box::new(each))
            };
        }
    }
}

/// The JSON Schema type for another language's name of a type.
fn meant(word: &str) -> Option<Types> {
    Some(match word {
        "string" | "str" | "text" | "char" | "date" | "datetime" | "date-time" | "uuid" | "uri"
        | "url" | "email" | "file" | "binary" | "bytes" => Types::STRING,
        "integer" | "int" | "int32" | "int64" | "long" | "short" => Types::INTEGER,
        "number" | "float" | "double" | "decimal" | "numeric" => Types::NUMBER,
        "boolean" | "bool" => Types::BOOLEAN,
        "array" | "list" | "tuple" | "set" => Types::ARRAY,
        "object" | "dict" | "dictionary" | "map" | "record" | "struct" | "json" => Types::OBJECT,
        "null" | "none" | "nil" | "void" | "undefined" => Types::NULL,
        _ => return None,
    })
}
