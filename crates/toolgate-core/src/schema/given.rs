//! Names of the keywords that a node's parts were read from.

use super::node::{Additional, Array, Object, Scalar};

impl Scalar<'_> {
    /// Keywords about strings; `format` is one of numbers too.
    pub(super) fn text_keywords(&self) -> impl Iterator<Item = &'static str> {
        let given = [
            (self.pattern.is_some(), "pattern"),
            (self.min_length.is_some(), "minLength"),
            (self.max_length.is_some(), "maxLength"),
        ];
        given.into_iter().filter(|(is_given, _)| *is_given).map(|(_, keyword)| keyword)
    }

    /// Keywords about numbers.
    pub(super) fn number_keywords(&self) -> impl Iterator<Item = &'static str> {
        let given = [(self.minimum.is_some(), "minimum"), (self.maximum.is_some(), "maximum")];
        given.into_iter().filter(|(is_given, _)| *is_given).map(|(_, keyword)| keyword)
    }
}

impl Array<'_> {
    /// Keywords about arrays.
    pub(super) fn keywords(&self) -> impl Iterator<Item = &'static str> {
        let given = [
            (self.items.is_some(), "items"),
            (!self.prefix.is_empty(), "prefixItems"),
            (self.min.is_some(), "minItems"),
            (self.max.is_some(), "maxItems"),
        ];
        given.into_iter().filter(|(is_given, _)| *is_given).map(|(_, keyword)| keyword)
    }
}

impl Object<'_> {
    /// Keywords about objects.
    pub(super) fn keywords(&self) -> impl Iterator<Item = &'static str> {
        let given = [
            (!self.properties.is_empty(), "properties"),
            (!self.required.is_empty(), "required"),
            (self.additional != Additional::Unsaid, "additionalProperties"),
            (self.min.is_some(), "minProperties"),
            (self.max.is_some(), "maxProperties"),
        ];
        given.into_iter().filter(|(is_given, _)| *is_given).map(|(_, keyword)| keyword)
    }
}
