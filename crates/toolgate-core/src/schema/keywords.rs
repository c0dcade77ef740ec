//! Every schema keyword that the compiler knows, and its treatment.

/// A schema keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keyword {
    /// Its name; `x-*` stands for every name that begins with `x-`.
    pub name: &'static str,
    /// Treatment in `parametersJsonSchema`.
    pub json_schema: Treatment,
    /// Treatment in `parameters`.
    pub parameters: Treatment,
    /// How exactly, in a few words.
    pub how: &'static str,
}

/// Treatment of a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// It is sent.
    Kept,
    /// It is said with other keywords.
    Rewritten,
    /// It goes into the description.
    Described,
    /// It is left out, and named as a loss.
    Dropped,
    /// It does its work in the compiler and is not needed afterwards: no loss.
    Used,
}

impl Treatment {
    /// The word used in the documentation.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Rewritten => "rewritten",
            Self::Described => "described",
            Self::Dropped => "dropped",
            Self::Used => "used",
        }
    }
}

const fn row(
    name: &'static str,
    json_schema: Treatment,
    parameters: Treatment,
    how: &'static str,
) -> Keyword {
    Keyword { name, json_schema, parameters, how }
}

use Treatment::{Described, Dropped, Kept, Rewritten, Used};

/// Every schema keyword that the compiler knows, by name. Others are dropped and named as losses.
pub const KEYWORDS: &[Keyword] = &[
    row("$anchor", Used, Used, "resolves `$ref`"),
    row("$comment", Dropped, Dropped, "it is for people who edit the schema"),
    row("$defs", Kept, Rewritten, "hoisted to the root; `parameters`: inlined where it is used"),
    row("$dynamicAnchor", Used, Used, "resolves `$ref`"),
    row("$dynamicRef", Rewritten, Rewritten, "as `$ref`"),
    row("$id", Used, Used, "resolves `$ref`"),
    row("$recursiveAnchor", Used, Used, "resolves `$ref`"),
    row("$recursiveRef", Rewritten, Rewritten, "as `$ref`"),
    row(
        "$ref",
        Kept,
        Rewritten,
        "alone in its node, always to `#/$defs/…`; `parameters`: inlined, endless ones cut",
    ),
    row("$schema", Used, Used, "every draft is read alike"),
    row("$vocabulary", Used, Used, "every draft is read alike"),
    row("additionalItems", Rewritten, Rewritten, "`items` after `prefixItems`, or `maxItems`"),
    row(
        "additionalProperties",
        Kept,
        Described,
        "`parameters`: a schema is described, true and false are dropped",
    ),
    row("allOf", Rewritten, Rewritten, "merged into the node"),
    row(
        "anyOf",
        Kept,
        Kept,
        "without siblings that say something about the value; at the root merged into one object",
    ),
    row("const", Rewritten, Rewritten, "`enum` with one value"),
    row("contains", Described, Described, "“At least one item must fit: …”"),
    row("contentEncoding", Described, Described, "“Encoded as …”"),
    row("contentMediaType", Described, Described, "“Media type: …”"),
    row("contentSchema", Described, Described, "“The content must fit: …”"),
    row("default", Kept, Kept, "the value is not touched"),
    row("definitions", Rewritten, Rewritten, "as `$defs`"),
    row("dependencies", Described, Described, "“With `a` also give `b`.”"),
    row("dependentRequired", Described, Described, "“With `a` also give `b`.”"),
    row("dependentSchemas", Described, Described, "“With `a` it must fit …”"),
    row("deprecated", Described, Described, "“Deprecated.”"),
    row("description", Kept, Kept, "gets what the schema can no longer say"),
    row("discriminator", Described, Described, "“`kind` says which of the forms it is.”"),
    row("else", Described, Described, "together with `if`"),
    row(
        "enum",
        Kept,
        Kept,
        "strings and numbers; `parameters`: strings only, numbers become bounds and a description",
    ),
    row("enumDescriptions", Described, Described, "each value with its words"),
    row("enumNames", Described, Described, "each value with its words"),
    row("example", Described, Described, "“Example: …”"),
    row("examples", Described, Described, "“Examples: …”, as many as fit"),
    row(
        "exclusiveMaximum",
        Rewritten,
        Rewritten,
        "`maximum`, one less for integers; a bound of other numbers is also described",
    ),
    row(
        "exclusiveMinimum",
        Rewritten,
        Rewritten,
        "`minimum`, one more for integers; a bound of other numbers is also described",
    ),
    row("externalDocs", Dropped, Dropped, "OpenAPI only"),
    row(
        "format",
        Kept,
        Kept,
        "well-known ones; others are described. `parameters`: `date-time`, `enum`, `int32`, `int64`, `float`, `double`",
    ),
    row("id", Used, Used, "draft 4's `$id`"),
    row("if", Described, Described, "“If it fits …, it must fit …; otherwise …”"),
    row(
        "items",
        Kept,
        Kept,
        "an array gets one where it has none; a list of schemas becomes `prefixItems`",
    ),
    row(
        "markdownDescription",
        Dropped,
        Dropped,
        "an editor's copy of `description`; used where that is missing",
    ),
    row("maxContains", Described, Described, "together with `contains`"),
    row(
        "maxItems",
        Kept,
        Kept,
        "while the sum over the schema is at most 960; beyond that described",
    ),
    row("maxLength", Described, Kept, "Gemini ignores it in `parametersJsonSchema`"),
    row("maxProperties", Described, Kept, "Gemini ignores it in `parametersJsonSchema`"),
    row(
        "maximum",
        Kept,
        Kept,
        "numbers in strings are read as numbers; bounds that contradict each other go",
    ),
    row("minContains", Described, Described, "together with `contains`"),
    row("minItems", Kept, Kept, "up to 960; beyond that described"),
    row("minLength", Described, Kept, "Gemini ignores it in `parametersJsonSchema`"),
    row("minProperties", Described, Kept, "Gemini ignores it in `parametersJsonSchema`"),
    row(
        "minimum",
        Kept,
        Kept,
        "numbers in strings are read as numbers; bounds that contradict each other go",
    ),
    row("multipleOf", Described, Described, "“A multiple of …”"),
    row("not", Described, Described, "“Must not fit: …”"),
    row(
        "nullable",
        Rewritten,
        Kept,
        "OpenAPI; JSON Schema says it with `null` in `type` or `anyOf`",
    ),
    row("oneOf", Rewritten, Rewritten, "`anyOf`: Gemini reads it so"),
    row(
        "pattern",
        Described,
        Kept,
        "Gemini ignores it in `parametersJsonSchema`; `parameters`: described where it looks around",
    ),
    row(
        "patternProperties",
        Rewritten,
        Described,
        "`additionalProperties`; the names' patterns are described",
    ),
    row(
        "prefixItems",
        Kept,
        Rewritten,
        "`parameters`: one `items` that allows each of them; the order is described",
    ),
    row("properties", Kept, Kept, "names and order are not touched; an empty name is dropped"),
    row("propertyNames", Described, Described, "“Property names must fit: …”"),
    row("propertyOrdering", Kept, Kept, "Gemini's own; names that are no properties go"),
    row("readOnly", Dropped, Dropped, "a tool's arguments are only written"),
    row(
        "required",
        Kept,
        Kept,
        "names that are no properties go; endless references become optional",
    ),
    row("strict", Dropped, Dropped, "OpenAI's; it belongs beside the schema"),
    row("then", Described, Described, "together with `if`"),
    row("title", Kept, Kept, "the text is not touched"),
    row(
        "type",
        Kept,
        Kept,
        "`parameters`: upper case; several types become `anyOf`, `null` becomes `nullable`",
    ),
    row("unevaluatedItems", Rewritten, Rewritten, "as `additionalItems`"),
    row("unevaluatedProperties", Rewritten, Rewritten, "as `additionalProperties`"),
    row("uniqueItems", Described, Described, "“No two items are alike.”"),
    row("writeOnly", Dropped, Dropped, "a tool's arguments are only written"),
    row("x-*", Dropped, Dropped, "extensions mean nothing to Gemini"),
    row("xml", Dropped, Dropped, "OpenAPI only"),
];

/// The keyword's row in the table.
pub(super) fn known(name: &str) -> Option<&'static Keyword> {
    KEYWORDS.binary_search_by(|keyword| keyword.name.cmp(name)).ok().and_then(|at| KEYWORDS.get(at))
}

/// Gemini's own spelling of JSON Schema's keywords, snake case included.
pub(super) fn from_gemini(name: &str) -> Option<&'static str> {
    Some(match name {
        "additional_properties" => "additionalProperties",
        "any_of" => "anyOf",
        "defs" => "$defs",
        "max_items" => "maxItems",
        "max_length" => "maxLength",
        "max_properties" => "maxProperties",
        "min_items" => "minItems",
        "min_length" => "minLength",
        "min_properties" => "minProperties",
        "property_ordering" => "propertyOrdering",
        "ref" => "$ref",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(KEYWORDS.is_sorted_by(|a, b| a.name < b.name));
        assert_eq!(known("oneOf").map(|it| it.name), Some("oneOf"));
        assert_eq!(known("nope"), None);
    }
}
