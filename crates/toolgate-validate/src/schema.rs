//! The rules of `Schema`: `parameters`, `response` and `responseSchema`.

use std::collections::BTreeSet;

use toolgate_core::canon::Backend;

use crate::error::GoogleError;
use crate::model::Generation;
use crate::tree::Tree;

/// Deepest nesting of schemas.
pub(crate) const MAX_SCHEMA_DEPTH: usize = 32;

const LEARN_MORE: &str = "Learn more: https://cloud.google.com/vertex-ai/generative-ai/docs/\
                          multimodal/function-calling";

/// Owner of a schema, named in errors.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SchemaOwner<'a> {
    /// A function, by name.
    Function(&'a str),
    /// `generationConfig`
    Config,
}

impl SchemaOwner<'_> {
    /// Error for excessive nesting.
    pub(crate) fn too_deep(self) -> GoogleError {
        GoogleError::invalid(match self {
            Self::Function("") => "A FunctionDeclaration in the request exceeds the maximum \
                                   allowed nesting depth."
                .to_owned(),
            Self::Function(name) => format!(
                "FunctionDeclaration '{name}' in the request exceeds the maximum allowed nesting \
                 depth."
            ),
            Self::Config => "A schema in GenerationConfig in the request exceeds the maximum \
                             allowed nesting depth."
                .to_owned(),
        })
    }

    /// Refuses arguments that are not an object; other schemas may be anything.
    pub(crate) fn must_be_object(self, backend: Backend) -> Result<(), GoogleError> {
        let Self::Function(name) = self else { return Ok(()) };
        let what =
            format!("`{name}` functionDeclaration parameters schema should be of type OBJECT.");
        Err(match backend {
            Backend::Developer => GoogleError::invalid(what),
            Backend::Vertex => GoogleError::invalid(format!(
                "Unable to submit request because {what} {LEARN_MORE}"
            )),
        })
    }
}

/// Checks of schemas, with a line for each fault.
#[derive(Debug)]
pub(crate) struct SchemaRules<'r> {
    pub(crate) backend: Backend,
    pub(crate) generation: Generation,
    pub(crate) lines: &'r mut Vec<String>,
}

impl SchemaRules<'_> {
    /// Checks a schema at the path `at` (`tools[0].….parameters`).
    pub(crate) fn check(
        &mut self,
        schema: &Tree<'_>,
        owner: SchemaOwner<'_>,
        at: &str,
    ) -> Result<(), GoogleError> {
        let has_union = schema.get("anyOf").is_some_and(|union| !union.items().is_empty());
        if kind(schema).map_or(has_union, |kind| kind != "OBJECT") {
            owner.must_be_object(self.backend)?;
        }
        self.node(schema, owner, at, "parameters", 1)
    }

    fn node(
        &mut self,
        schema: &Tree<'_>,
        owner: SchemaOwner<'_>,
        at: &str,
        vertex_at: &str,
        depth: usize,
    ) -> Result<(), GoogleError> {
        if depth > MAX_SCHEMA_DEPTH {
            return Err(owner.too_deep());
        }
        if self.backend == Backend::Vertex {
            vertex_node(schema, owner, vertex_at)?;
        }
        self.keywords(schema, at, depth == 1);
        let mut inner = |child: &Tree<'_>, at: String, vertex_at: String| {
            self.node(child, owner, &at, &vertex_at, depth + 1)
        };
        for (name, child) in schema.get("properties").map_or(&[][..], Tree::members) {
            inner(child, format!("{at}.properties[{name}]"), format!("{vertex_at}.{name}"))?;
        }
        for (name, child) in schema.get("defs").map_or(&[][..], Tree::members) {
            inner(child, format!("{at}.defs[{name}]"), format!("{vertex_at}.defs.{name}"))?;
        }
        for (index, child) in schema.get("anyOf").map_or(&[][..], Tree::items).iter().enumerate() {
            inner(child, format!("{at}.any_of[{index}]"), format!("{vertex_at}.any_of[{index}]"))?;
        }
        if let Some(child) = schema.get("items") {
            inner(child, format!("{at}.items"), format!("{vertex_at}.items"))?;
        }
        Ok(())
    }

    fn keywords(&mut self, schema: &Tree<'_>, at: &str, root: bool) {
        let kind = kind(schema);
        let list = |name| schema.get(name).map_or(&[][..], Tree::items);
        let properties = schema.get("properties");
        let names = properties.map_or(&[][..], Tree::members);
        let mut fault = |what: String| self.lines.push(format!("{at}.{what}"));

        let enumerable =
            kind == Some("STRING") || (self.backend == Backend::Vertex && kind == Some("INTEGER"));
        if !list("enum").is_empty() && !enumerable {
            fault("enum: only allowed for STRING type".to_owned());
        }
        for (index, value) in list("enum").iter().enumerate() {
            if value.text() == Some("") {
                fault(format!("enum[{index}]: cannot be empty"));
            }
        }
        match (kind, schema.get("items")) {
            (Some("ARRAY"), None) => fault("items: missing field.".to_owned()),
            (Some("ARRAY"), Some(_)) | (_, None) => {}
            (_, Some(_)) => fault("items: field predicate failed: $type == Type.ARRAY".to_owned()),
        }
        if kind != Some("OBJECT") {
            if !names.is_empty() {
                fault("properties: only allowed for OBJECT type".to_owned());
            }
            if !list("required").is_empty() {
                fault("required: only allowed for OBJECT type".to_owned());
            }
        } else {
            let is_legacy = self.generation == Generation::Legacy;
            if properties.is_some() && names.is_empty() && (!root || is_legacy) {
                fault("properties: should be non-empty for OBJECT type".to_owned());
            }
            let known: BTreeSet<&str> = names.iter().map(|(name, _)| &**name).collect();
            for word in ["required", "property_ordering"] {
                let field = if word == "required" { word } else { "propertyOrdering" };
                for (index, name) in list(field).iter().enumerate() {
                    if name.text().is_none_or(|name| !known.contains(name)) {
                        fault(format!("{word}[{index}]: property is not defined"));
                    }
                }
            }
        }
        if names.iter().any(|(name, _)| name.is_empty()) {
            fault("properties[]: key cannot be empty".to_owned());
        }
        let format = schema.get("format").and_then(Tree::text).unwrap_or("");
        if self.generation == Generation::Legacy
            && kind == Some("STRING")
            && !matches!(format, "" | "enum" | "date-time")
        {
            fault("format: only 'enum' and 'date-time' are supported for STRING type".to_owned());
        }
        let is_unconstrained = ["enum", "required", "anyOf"].iter().all(|it| list(it).is_empty())
            && names.is_empty()
            && schema.get("items").is_none()
            && schema.get("ref").is_none();
        if kind.is_none() && is_unconstrained {
            fault("type: must be specified".to_owned());
        }
    }
}

/// Checks the rules that Vertex words in its own way.
fn vertex_node(schema: &Tree<'_>, owner: SchemaOwner<'_>, at: &str) -> Result<(), GoogleError> {
    let refuse = |what: &str| {
        let whose = match owner {
            SchemaOwner::Function(name) => format!("`{name}` functionDeclaration `{at}` schema"),
            SchemaOwner::Config => format!("`response_schema` `{at}` schema"),
        };
        Err(GoogleError::invalid(format!(
            "Unable to submit request because {whose} {what} {LEARN_MORE}"
        )))
    };
    let has_union = schema.get("anyOf").is_some_and(|union| !union.items().is_empty());
    if has_union && schema.members().len() > 1 {
        return refuse(
            "specified other fields alongside any_of. When using any_of, it must be the only \
             field set.",
        );
    }
    if !has_union && kind(schema).is_none() && schema.get("ref").is_none() {
        return refuse("didn't specify the schema type field.");
    }
    Ok(())
}

fn kind<'t>(schema: &'t Tree<'_>) -> Option<&'t str> {
    schema.get("type").and_then(Tree::text).filter(|kind| *kind != "TYPE_UNSPECIFIED")
}
