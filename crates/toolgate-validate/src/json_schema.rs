//! The rules of `parametersJsonSchema` and `responseJsonSchema`.
//!
//! Unknown keywords are accepted. Refused are undefined references, references with sibling keywords,
//! required properties that contain themselves, arrays that may grow too long, and functions whose
//! arguments are not an object.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use toolgate_core::canon::Backend;

use crate::error::GoogleError;
use crate::schema::{MAX_SCHEMA_DEPTH, SchemaOwner};
use crate::tree::Tree;

/// Highest sum of all `maxItems` of a schema.
const MAX_TOTAL_ITEMS: f64 = 960.0;

/// Checks a schema.
pub(crate) fn check(
    schema: &Tree<'_>,
    owner: SchemaOwner<'_>,
    backend: Backend,
) -> Result<(), GoogleError> {
    let Tree::Object(_) = schema else {
        return Err(must_be_object("schema", &SchemaPath::Root));
    };
    if !may_be_object(schema) {
        owner.must_be_object(backend)?;
    }
    let mut rules =
        JsonSchemaRules { root: schema, targets: targets(schema), owner, max_items: 0.0 };
    rules.node(schema, &SchemaPath::Root, 1)?;
    if rules.max_items > MAX_TOTAL_ITEMS {
        return Err(GoogleError::unspecific());
    }
    rules.check_endless_values(schema)
}

/// Whether the root can be an object. Google does not look into unions there.
fn may_be_object(schema: &Tree<'_>) -> bool {
    match schema.get("type") {
        Some(Tree::Text(kind)) => kind.eq_ignore_ascii_case("object"),
        Some(Tree::List(kinds)) => kinds.iter().all(|kind| {
            kind.text().is_some_and(|it| matches!(&*it.to_ascii_lowercase(), "object" | "null"))
        }),
        Some(_) => false,
        None => ["anyOf", "oneOf", "allOf", "$ref", "enum", "const", "items"]
            .iter()
            .all(|word| schema.get(word).is_none()),
    }
}

/// Path inside a schema, such as `properties.target_object.anyOf.1`.
#[derive(Clone, Copy)]
enum SchemaPath<'a> {
    Root,
    Key(&'a Self, &'a str),
    Index(&'a Self, usize),
}

impl fmt::Display for SchemaPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => f.write_str("top-level"),
            Self::Key(Self::Root, key) => f.write_str(key),
            Self::Key(parent, key) => write!(f, "{parent}.{key}"),
            Self::Index(parent, index) => write!(f, "{parent}.{index}"),
        }
    }
}

fn must_be_object(word: &str, at: &SchemaPath<'_>) -> GoogleError {
    GoogleError::invalid(format!("value for {word} at {at} must be an object"))
}

/// Targets of references: definitions by name and by anchor.
fn targets<'t>(root: &'t Tree<'t>) -> BTreeMap<String, &'t Tree<'t>> {
    let mut targets = BTreeMap::new();
    for (name, schema) in root.get("$defs").map_or(&[][..], Tree::members) {
        targets.insert(format!("/$defs/{}", name.replace('~', "~0").replace('/', "~1")), schema);
        if let Some(anchor) = schema.get("$anchor").and_then(Tree::text) {
            targets.insert(anchor.to_owned(), schema);
        }
    }
    targets
}

struct JsonSchemaRules<'t, 'o> {
    root: &'t Tree<'t>,
    targets: BTreeMap<String, &'t Tree<'t>>,
    owner: SchemaOwner<'o>,
    max_items: f64,
}

impl<'t> JsonSchemaRules<'t, '_> {
    fn node(
        &mut self,
        schema: &Tree<'_>,
        at: &SchemaPath<'_>,
        depth: usize,
    ) -> Result<(), GoogleError> {
        if depth > MAX_SCHEMA_DEPTH {
            return Err(self.owner.too_deep());
        }
        if let Some(target) = schema.get("$ref").and_then(Tree::text) {
            self.reference(schema, target, at)?;
        }
        self.max_items += schema.get("maxItems").and_then(Tree::number).unwrap_or(0.0).max(0.0);
        for word in ["properties", "$defs"] {
            let below = SchemaPath::Key(at, word);
            match schema.get(word) {
                None => {}
                Some(Tree::Object(members)) => {
                    for (name, child) in members {
                        let at = SchemaPath::Key(&below, name);
                        let Tree::Object(_) = child else {
                            return Err(must_be_object(name, &below));
                        };
                        self.node(child, &at, depth + 1)?;
                    }
                }
                Some(_) => return Err(must_be_object(word, at)),
            }
        }
        for word in ["anyOf", "oneOf", "prefixItems"] {
            let below = SchemaPath::Key(at, word);
            let branches = schema.get(word).map_or(&[][..], Tree::items);
            for (index, child) in branches.iter().enumerate() {
                let at = SchemaPath::Index(&below, index);
                let Tree::Object(_) = child else { return Err(must_be_object(word, &at)) };
                self.node(child, &at, depth + 1)?;
            }
        }
        // `items: false` closes a tuple, `additionalProperties` may be a boolean.
        for word in ["items", "additionalProperties"] {
            if let Some(child @ Tree::Object(_)) = schema.get(word) {
                self.node(child, &SchemaPath::Key(at, word), depth + 1)?;
            }
        }
        Ok(())
    }

    fn reference(
        &self,
        schema: &Tree<'_>,
        target: &str,
        at: &SchemaPath<'_>,
    ) -> Result<(), GoogleError> {
        let alone = schema
            .members()
            .iter()
            .all(|(word, _)| word.starts_with('$') || matches!(&**word, "description" | "default"));
        if !alone {
            let name = target.rsplit('/').next().unwrap_or(target);
            return Err(GoogleError::invalid(format!(
                "$ref '{name}' was set alongside unsupported fields. If a schema node has $ref \
                 set, then only description and default can be set alongside it"
            )));
        }
        if self.resolve(target).is_none() {
            return Err(GoogleError::invalid(format!("reference to undefined schema at {at}")));
        }
        Ok(())
    }

    /// Resolves `#`, `#/$defs/name` and the `#anchor` of a definition. Other references are undefined.
    fn resolve(&self, target: &str) -> Option<&'t Tree<'t>> {
        match target.strip_prefix('#')? {
            "" => Some(self.root),
            target => self.targets.get(target).copied(),
        }
    }

    /// Refuses schemas whose values would have to contain themselves.
    fn check_endless_values(&self, schema: &'t Tree<'t>) -> Result<(), GoogleError> {
        let (mut todo, mut seen) = (vec![schema], BTreeSet::new());
        let mut chain = Chain::default();
        while let Some(node) = todo.pop() {
            if !seen.insert(address(node)) {
                continue;
            }
            self.required_chain(node, &mut chain)?;
            todo.extend(children(node));
            todo.extend(node.get("$ref").and_then(Tree::text).and_then(|it| self.resolve(it)));
        }
        Ok(())
    }

    /// Follows references and required properties depth-first, visiting every schema once.
    fn required_chain(&self, node: &'t Tree<'t>, chain: &mut Chain) -> Result<(), GoogleError> {
        if chain.done.contains(&address(node)) {
            return Ok(());
        }
        if !chain.open.insert(address(node)) || chain.open.len() > MAX_REQUIRED_CHAIN {
            return Err(GoogleError::invalid("maximum schema depth exceeded"));
        }
        if let Some(target) = node.get("$ref").and_then(Tree::text).and_then(|it| self.resolve(it))
        {
            self.required_chain(target, chain)?;
        }
        let properties = node.get("properties").map_or(&[][..], Tree::members);
        let required = node.get("required").map_or(&[][..], Tree::items);
        let required: BTreeSet<_> = required.iter().filter_map(Tree::text).collect();
        for (name, child) in properties {
            if required.contains(&**name) {
                self.required_chain(child, chain)?;
            }
        }
        chain.open.remove(&address(node));
        chain.done.insert(address(node));
        Ok(())
    }
}

/// Longest chain of required properties.
const MAX_REQUIRED_CHAIN: usize = 256;

/// Schemas on the current chain, and schemas whose chains are known to end.
#[derive(Default)]
struct Chain {
    open: BTreeSet<usize>,
    done: BTreeSet<usize>,
}

fn address(schema: &Tree<'_>) -> usize {
    std::ptr::from_ref(schema).addr()
}

fn children<'t>(node: &'t Tree<'t>) -> impl Iterator<Item = &'t Tree<'t>> {
    let named = ["properties", "$defs"]
        .into_iter()
        .filter_map(|word| node.get(word))
        .flat_map(Tree::members)
        .map(|(_, child)| child);
    let listed = ["anyOf", "oneOf", "prefixItems"]
        .into_iter()
        .filter_map(|word| node.get(word))
        .flat_map(Tree::items);
    let single = ["items", "additionalProperties"].into_iter().filter_map(|word| node.get(word));
    named.chain(listed).chain(single)
}
