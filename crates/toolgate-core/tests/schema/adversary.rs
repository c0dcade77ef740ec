//! Schemas that grow along one dimension at a time, for every keyword.

use std::fmt::Write as _;

use toolgate_core::schema::KEYWORDS;

/// A family of schemas: the same construct at any size.
pub(crate) struct Family {
    /// What grows.
    pub(crate) dimension: &'static str,
    /// The keyword, or the construct, that it is made of.
    pub(crate) subject: String,
    pub(crate) schema: Box<dyn Fn(usize) -> String>,
}

impl Family {
    fn new(
        dimension: &'static str,
        subject: impl Into<String>,
        schema: impl Fn(usize) -> String + 'static,
    ) -> Self {
        Self { dimension, subject: subject.into(), schema: Box::new(schema) }
    }
}

pub(crate) fn joined(count: usize, one: impl Fn(usize) -> String) -> String {
    let mut out = String::new();
    for at in 0..count {
        let _ = write!(out, "{}{}", if at == 0 { "" } else { "," }, one(at));
    }
    out
}

fn property(schema: &str) -> String {
    format!(r#"{{"type":"object","properties":{{"p":{schema}}}}}"#)
}

/// A value of the keyword that differs with `at`.
fn value(keyword: &str, at: usize) -> String {
    match keyword {
        "$defs" | "definitions" | "properties" | "patternProperties" | "dependentSchemas" => {
            format!(r#"{{"k{at}":{{"type":"string","maxLength":{at}}}}}"#)
        }
        "dependencies" | "dependentRequired" => format!(r#"{{"k{at}":["l{at}"]}}"#),
        "$ref" | "$dynamicRef" | "$recursiveRef" => format!(r##""#/$defs/r{}""##, at % 7),
        "$id" | "id" => format!(r#""https://example.com/s{at}.json""#),
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
            format!(r#"[{{"type":"string"}},{{"type":"object","minProperties":{at}}}]"#)
        }
        "enum" | "examples" | "enumNames" | "enumDescriptions" => {
            format!(r#"["v{at}","w{at}","all"]"#)
        }
        "required" | "propertyOrdering" => format!(r#"["k{at}"]"#),
        "type" => {
            let types = ["string", "integer", "object", "array", "odd"];
            format!(r#"["{}","object"]"#, types[at % types.len()])
        }
        "additionalItems"
        | "additionalProperties"
        | "contains"
        | "contentSchema"
        | "else"
        | "if"
        | "items"
        | "not"
        | "propertyNames"
        | "then"
        | "unevaluatedItems"
        | "unevaluatedProperties" => format!(r#"{{"type":"string","title":"t{at}"}}"#),
        "exclusiveMaximum" | "exclusiveMinimum" | "maxContains" | "maxItems" | "maxLength"
        | "maxProperties" | "maximum" | "minContains" | "minItems" | "minLength"
        | "minProperties" | "minimum" | "multipleOf" => at.to_string(),
        "deprecated" | "nullable" | "readOnly" | "strict" | "uniqueItems" | "writeOnly" => {
            "true".to_owned()
        }
        "discriminator" => format!(r#"{{"propertyName":"k{at}"}}"#),
        _ => format!(r#""text {at}""#),
    }
}

/// The keyword's own value, of the given size.
fn large(keyword: &str, size: usize) -> String {
    let text = |at: usize| format!(r#""n{at}""#);
    match keyword {
        "$defs" | "definitions" | "properties" | "patternProperties" | "dependentSchemas" => {
            format!("{{{}}}", joined(size, |at| format!(r#""k{at}":{{"pattern":"{at}"}}"#)))
        }
        "dependencies" | "dependentRequired" => {
            format!("{{{}}}", joined(size, |at| format!(r#""k{at}":["l{at}"]"#)))
        }
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
            format!("[{}]", joined(size, |at| format!(r#"{{"minimum":{at}}}"#)))
        }
        "enum" | "examples" | "required" | "propertyOrdering" | "enumNames"
        | "enumDescriptions" | "type" => format!("[{}]", joined(size, text)),
        "additionalItems"
        | "additionalProperties"
        | "contains"
        | "contentSchema"
        | "else"
        | "if"
        | "items"
        | "not"
        | "propertyNames"
        | "then"
        | "unevaluatedItems"
        | "unevaluatedProperties" => {
            format!(
                r#"{{"properties":{{{}}}}}"#,
                joined(size, |at| format!(r#""k{at}":{{"const":{at}}}"#))
            )
        }
        "default" | "const" | "example" | "discriminator" | "xml" | "externalDocs" => {
            format!("{{{}}}", joined(size, |at| format!(r#""k{at}":[{at}]"#)))
        }
        "exclusiveMaximum" | "exclusiveMinimum" | "maxContains" | "maxItems" | "maxLength"
        | "maxProperties" | "maximum" | "minContains" | "minItems" | "minLength"
        | "minProperties" | "minimum" | "multipleOf" => format!("0.{}1", "0".repeat(size)),
        _ => format!(r#""{}""#, "word ".repeat(size)),
    }
}

const DEFS: &str = r##""$defs":{"r0":{"type":"object","properties":{"a":{"type":"string"}}},"r1":{"type":"string"},"r2":{"$ref":"#/$defs/r3"},"r3":{"type":"object","description":"three"},"r4":{"anyOf":[{"type":"string"},{"type":"object"}]},"r5":{"enum":["a","b"]},"r6":{"type":"object","properties":{"again":{"$ref":"#/$defs/r6"}}}}"##;

/// Every keyword along every dimension; `part` is one quarter of the keywords.
pub(crate) fn keyword_families(part: usize) -> Vec<Family> {
    let mut families = Vec::new();
    for keyword in KEYWORDS.iter().skip(part).step_by(4) {
        let name = if keyword.name == "x-*" { "x-other" } else { keyword.name };
        let one = move |at: usize| format!(r#"{{"{name}":{}}}"#, value(name, at));
        for combine in ["allOf", "anyOf", "oneOf"] {
            let (inside, at_root) = match combine {
                "allOf" => ("allOf branches", "allOf branches at the root"),
                "anyOf" => ("anyOf branches", "anyOf branches at the root"),
                _ => ("oneOf branches", "oneOf branches at the root"),
            };
            families.push(Family::new(inside, name, move |size| {
                let schema = format!(r#"{{"{combine}":[{}]}}"#, joined(size, one));
                format!(r#"{{"type":"object","properties":{{"p":{schema}}},{DEFS}}}"#)
            }));
            families.push(Family::new(at_root, name, move |size| {
                format!(
                    r#"{{"type":"object","{combine}":[{}],{DEFS}}}"#,
                    joined(size, with_type_of(name))
                )
            }));
        }
        families.push(Family::new("properties", name, move |size| {
            let properties = joined(size, |at| format!(r#""p{at}":{}"#, one(at)));
            format!(r#"{{"type":"object","properties":{{{properties}}},{DEFS}}}"#)
        }));
        families.push(Family::new("prefixItems", name, move |size| {
            let schema = format!(r#"{{"prefixItems":[{}]}}"#, joined(size, one));
            format!(r#"{{"type":"object","properties":{{"p":{schema}}},{DEFS}}}"#)
        }));
        families.push(Family::new("definitions in use", name, move |size| {
            let properties = joined(size, |at| format!(r##""p{at}":{{"$ref":"#/$defs/d{at}"}}"##));
            let defs = joined(size, |at| format!(r#""d{at}":{}"#, with_type_of(name)(at)));
            format!(r#"{{"type":"object","properties":{{{properties}}},"$defs":{{{defs}}}}}"#)
        }));
        families.push(Family::new("references to one definition", name, move |size| {
            let branches = joined(size, |_| r##"{"$ref":"#/$defs/d"}"##.to_owned());
            let large = large(name, 50);
            format!(
                r#"{{"type":"object","properties":{{"p":{{"allOf":[{branches}]}}}},"$defs":{{"d":{{"{name}":{large},"title":"t"}}}}}}"#
            )
        }));
        families.push(Family::new("own size", name, move |size| {
            property(&format!(r#"{{"{name}":{}}}"#, large(name, size)))
        }));
        families.push(Family::new("own size, under allOf", name, move |size| {
            let large = large(name, size);
            property(&format!(
                r#"{{"allOf":[{{"{name}":{large}}},{{"{name}":{large}}},{{"{name}":{}}}]}}"#,
                value(name, 1)
            ))
        }));
        families.push(Family::new("own size, small branches", name, move |size| {
            let large = large(name, size);
            property(&format!(r#"{{"allOf":[{{"{name}":{large}}},{}]}}"#, joined(size, one)))
        }));
        families.push(Family::new("own size, beside a union", name, move |size| {
            let large = large(name, size);
            property(&format!(r#"{{"{name}":{large},"anyOf":[{}]}}"#, joined(size, one)))
        }));
        families.push(Family::new("depth", name, move |size| {
            let levels = size / 50;
            let value = value(name, 3);
            let open = format!(r#"{{"{name}":{value},"properties":{{"a":"#);
            let open = if name == "properties" {
                r#"{"type":"object","properties":{"a":"#.to_owned()
            } else {
                open
            };
            property(&format!("{}{{}}{}", open.repeat(levels), "}}".repeat(levels)))
        }));
        families.push(Family::new("depth of unions", name, move |size| {
            let levels = size / 50;
            let value = value(name, 3);
            let open = if matches!(name, "anyOf" | "oneOf" | "allOf") {
                r#"{"anyOf":[{"type":"integer"},"#.to_owned()
            } else {
                format!(r#"{{"{name}":{value},"anyOf":[{{"type":"object"}},"#)
            };
            property(&format!("{}{{}}{}", open.repeat(levels), "]}".repeat(levels)))
        }));
        families.push(Family::new("depth of siblings and unions", name, move |size| {
            // Every level doubles its content, up to the limit of copies.
            let levels = 10 + size / 50;
            let value = value(name, 3);
            let branches = r#""anyOf":[{"type":"object"},{"title":"x"}]"#;
            let own = if matches!(name, "anyOf" | "properties") {
                String::new()
            } else {
                format!(r#""{name}":{value},"#)
            };
            let open = format!(r#"{{{own}{branches},"properties":{{"a":"#);
            property(&format!("{}{{}}{}", open.repeat(levels), "}}".repeat(levels)))
        }));
    }
    families
}

fn with_type_of(name: &'static str) -> impl Fn(usize) -> String {
    let own = if name == "type" { "" } else { r#""type":"object","# };
    move |at| format!(r#"{{{own}"{name}":{}}}"#, value(name, at))
}

/// Constructs that no single keyword makes.
pub(crate) fn construct_families() -> Vec<Family> {
    vec![
        Family::new("branches", "allOf of not", |size| {
            property(&format!(
                r#"{{"allOf":[{}]}}"#,
                joined(size, |at| format!(r#"{{"not":{{"const":{at}}}}}"#))
            ))
        }),
        Family::new("branches", "allOf of if and then", |size| {
            property(&format!(
                r#"{{"allOf":[{}]}}"#,
                joined(size, |at| format!(
                    r#"{{"if":{{"const":{at}}},"then":{{"minimum":{at}}}}}"#
                ))
            ))
        }),
        Family::new("branches", "allOf of descriptions", |size| {
            property(&format!(
                r#"{{"allOf":[{}]}}"#,
                joined(size, |at| format!(r#"{{"description":"The value number {at}."}}"#))
            ))
        }),
        Family::new("branches", "unions under allOf", |size| {
            property(&format!(
                r#"{{"allOf":[{}]}}"#,
                joined(size, |at| format!(
                    r#"{{"anyOf":[{{"minimum":{at}}},{{"type":"string"}}]}}"#
                ))
            ))
        }),
        Family::new("branches", "a large union under allOf", |size| {
            let branches = joined(size, |at| format!(r#"{{"const":{at}}}"#));
            let others = joined(size, |at| format!(r#"{{"anyOf":[{{"const":{at}}}]}}"#));
            property(&format!(r#"{{"allOf":[{{"anyOf":[{branches}]}},{others}]}}"#))
        }),
        Family::new("branches", "unions of one under allOf", |size| {
            let properties = joined(size, |at| format!(r#""k{at}":{{}}"#));
            let others = joined(size, |at| format!(r#"{{"anyOf":[{{"minProperties":{at}}}]}}"#));
            property(&format!(
                r#"{{"allOf":[{{"anyOf":[{{"properties":{{{properties}}}}}]}},{others}]}}"#
            ))
        }),
        Family::new("branches", "equal branches but for the last property", |size| {
            let same = joined(10, |at| format!(r#""k{at}":{{"type":"string"}}"#));
            property(&format!(
                r#"{{"anyOf":[{}]}}"#,
                joined(size, |at| format!(r#"{{"properties":{{{same},"z":{{"const":{at}}}}}}}"#))
            ))
        }),
        Family::new("branches", "one property of many types at the root", |size| {
            format!(
                r#"{{"type":"object","anyOf":[{}]}}"#,
                joined(size, |at| format!(
                    r#"{{"properties":{{"k":{{"type":"integer","minimum":{at}}}}}}}"#
                ))
            )
        }),
        Family::new("branches", "unions inside unions at the root", |size| {
            let inner = joined(size, |at| format!(r#"{{"required":["k{at}"],"minProperties":1}}"#));
            let properties = joined(size, |at| format!(r#""k{at}":{{}}"#));
            format!(
                r#"{{"type":"object","anyOf":[{{"properties":{{{properties}}},"anyOf":[{inner}]}},{{}}]}}"#
            )
        }),
        Family::new("properties", "stray", |size| {
            property(&format!(
                "{{{}}}",
                joined(size, |at| format!(r#""k{at}":{{"type":"string"}}"#))
            ))
        }),
        Family::new("properties", "duplicate keys", |size| {
            let properties = joined(size, |at| format!(r#""k{}":{{"const":{at}}}"#, at % 10));
            format!(r#"{{"type":"object","properties":{{{properties}}}}}"#)
        }),
        Family::new("references", "doubling", |size| {
            let levels = size / 50;
            let defs = joined(levels, |at| {
                format!(
                    r##""d{at}":{{"properties":{{"l":{{"$ref":"#/$defs/d{0}"}},"r":{{"$ref":"#/$defs/d{0}"}}}}}}"##,
                    at + 1
                )
            });
            format!(
                r##"{{"type":"object","properties":{{"p":{{"$ref":"#/$defs/d0"}}}},"$defs":{{{defs}}}}}"##
            )
        }),
        Family::new("references", "doubling under allOf", |size| {
            let levels = size / 50;
            let defs = joined(levels, |at| {
                format!(
                    r##""d{at}":{{"allOf":[{{"$ref":"#/$defs/d{0}"}},{{"$ref":"#/$defs/d{0}"}},{{"minimum":{at}}}]}}"##,
                    at + 1
                )
            });
            format!(
                r##"{{"type":"object","properties":{{"p":{{"$ref":"#/$defs/d0"}}}},"$defs":{{{defs}}}}}"##
            )
        }),
        Family::new("references", "a chain", |size| {
            let defs = joined(size, |at| {
                format!(
                    r##""d{at}":{{"$ref":"#/$defs/d{}","description":"x","minimum":1}}"##,
                    at + 1
                )
            });
            format!(
                r##"{{"type":"object","properties":{{"p":{{"$ref":"#/$defs/d0"}}}},"$defs":{{{defs}}}}}"##
            )
        }),
        Family::new("references", "a circle of required properties", |size| {
            let defs = joined(size, |at| {
                format!(
                    r##""d{at}":{{"properties":{{"n":{{"$ref":"#/$defs/d{}"}}}},"required":["n"]}}"##,
                    (at + 1) % size
                )
            });
            format!(
                r##"{{"type":"object","properties":{{"p":{{"$ref":"#/$defs/d0"}}}},"$defs":{{{defs}}}}}"##
            )
        }),
        Family::new("references", "into properties", |size| {
            let properties = joined(size, |at| {
                format!(r##""p{at}":{{"type":"string"}},"q{at}":{{"$ref":"#/properties/p{at}"}}"##)
            });
            format!(r#"{{"type":"object","properties":{{{properties}}}}}"#)
        }),
        Family::new("references", "by anchor", |size| {
            let uses = joined(size, |at| format!(r##""q{at}":{{"$ref":"#a{at}"}}"##));
            let defs = joined(size, |at| format!(r#""d{at}":{{"$anchor":"a{at}"}}"#));
            format!(r#"{{"type":"object","properties":{{{uses}}},"$defs":{{{defs}}}}}"#)
        }),
        Family::new("references", "by $id", |size| {
            let uses = joined(size, |at| format!(r##""q{at}":{{"$ref":"s{at}.json"}}"##));
            let defs =
                joined(size, |at| format!(r#""d{at}":{{"$id":"https://example.com/s{at}.json"}}"#));
            format!(r#"{{"type":"object","properties":{{{uses}}},"$defs":{{{defs}}}}}"#)
        }),
        Family::new("references", "within schemas that have an $id", |size| {
            let uses = joined(size, |at| {
                format!(
                    r##""q{at}":{{"$id":"s{at}.json","properties":{{"a":{{"$ref":"#/$defs/A"}}}},"$defs":{{"A":{{"const":{at}}}}}}}"##
                )
            });
            format!(r#"{{"type":"object","properties":{{{uses}}}}}"#)
        }),
        Family::new("references", "definitions of one name", |size| {
            let uses = joined(size, |at| {
                format!(
                    r##""q{at}":{{"properties":{{"a":{{"$ref":"#/$defs/A"}}}},"$defs":{{"A":{{"const":{at}}}}}}}"##
                )
            });
            format!(r#"{{"type":"object","properties":{{{uses}}}}}"#)
        }),
        Family::new("references", "one large definition in many places", |size| {
            let uses =
                joined(size, |at| format!(r##""q{at}":{{"$ref":"#/$defs/A","minProperties":1}}"##));
            let values = joined(size, |at| format!(r#""v{at}""#));
            format!(
                r#"{{"type":"object","properties":{{{uses}}},"$defs":{{"A":{{"enum":[{values}],"description":"{}"}}}}}}"#,
                "word ".repeat(size)
            )
        }),
        Family::new("string lengths", "a long name above many changes", |size| {
            let properties = joined(50, |at| format!(r#""k{at}":{{"const":{at}}}"#));
            let name = "n".repeat(size * 50);
            format!(
                r#"{{"type":"object","properties":{{"{name}":{{"type":"object","properties":{{{properties}}}}}}}}}"#
            )
        }),
        Family::new("string lengths", "escapes, nested", |size| {
            let text = r"\u00e9".repeat(size);
            property(&format!(r#"{{"default":{}"{text}"{}}}"#, "[".repeat(50), "]".repeat(50)))
        }),
        Family::new("prefix and items", "under allOf", |size| {
            let prefix = joined(size, |at| format!(r#"{{"minimum":{at}}}"#));
            let items = joined(size, |at| format!(r#"{{"items":{{"maximum":{at}}}}}"#));
            property(&format!(r#"{{"allOf":[{{"prefixItems":[{prefix}]}},{items}]}}"#))
        }),
        Family::new("prefix and items", "a large schema for the rest", |size| {
            let prefix = joined(size, |at| format!(r#"{{"minimum":{at}}}"#));
            let large = joined(size, |at| format!(r#""k{at}":{{"minimum":{at}}}"#));
            property(&format!(
                r#"{{"allOf":[{{"prefixItems":[{prefix}]}},{{"items":{{"properties":{{{large}}}}}}}]}}"#
            ))
        }),
        Family::new("nesting", "tuples", |size| {
            let levels = size / 50;
            property(&format!(
                "{}{{}}{}",
                r#"{"type":"array","prefixItems":[{"type":"string"},"#.repeat(levels),
                "]}".repeat(levels)
            ))
        }),
        Family::new("nodes", "empty branches", |size| {
            property(&format!(r#"{{"anyOf":[{}]}}"#, joined(size * 10, |_| "{}".to_owned())))
        }),
    ]
}
