//! What to do about a change.

use std::borrow::Cow;

use crate::schema::finding::{Effect, Finding};

/// How to get rid of a finding, where there is a way.
pub(super) fn help(finding: &Finding<'_>) -> Option<Cow<'static, str>> {
    if let Some(help) = &finding.help {
        return Some(help.clone());
    }
    let known = match finding.keyword.as_ref() {
        "const" => "write `\"enum\": [value]`",
        "oneOf" => "write `anyOf`",
        "allOf" => "write the merged schema",
        "exclusiveMinimum" => "write `minimum`",
        "exclusiveMaximum" => "write `maximum`",
        "nullable" => "write `\"type\": [\"string\", \"null\"]`",
        "markdownDescription" => "write `description`",
        "unevaluatedProperties" => "write `additionalProperties`",
        "patternProperties" => {
            "write `additionalProperties`, and say in `description` how names look"
        }
        "additionalItems" | "unevaluatedItems" => {
            "write `items` beside `prefixItems`, or `maxItems`"
        }
        "maxItems" | "minItems" if finding.effect == Effect::Described => {
            "lower the number, or say it in `description`"
        }
        "$ref" if finding.effect == Effect::Cut => "make the property that leads back optional",
        "required" if finding.effect == Effect::Described => "make the property optional",
        "enum" if finding.effect == Effect::Described => {
            "list strings or numbers only, or say the values in `description`"
        }
        "items" if finding.effect == Effect::Adjusted => "say what the items are",
        "items" if finding.effect == Effect::Rewritten => {
            "write `prefixItems` for a tuple, `maxItems` for its end"
        }
        "type" if finding.effect == Effect::Rewritten => "say one type, if only one is meant",
        _ => match finding.effect {
            Effect::Rewritten => return None,
            Effect::Described => "to choose the words yourself, say it in `description`",
            Effect::Dropped => "take it out, or say it in `description`",
            Effect::Adjusted => "take it out, or write what is meant",
            Effect::Repaired => "correct the schema",
            Effect::Cut => "make the schema smaller or flatter",
        },
    };
    Some(Cow::Borrowed(known))
}
