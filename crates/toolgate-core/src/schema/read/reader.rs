//! The walk over a client's schema.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::constraint::ArrayParts;
use super::logic::Logic;
use crate::canon::SchemaForm;
use crate::schema::finding::{Effect, Findings};
use crate::schema::keywords;
use crate::schema::node::{Def, DefId, Document, Node, Types};
use crate::schema::refs::{Index, Target};
use crate::schema::tree::{Member, Shape, Tree, start};
use crate::schema::words;

/// Schemas inside schemas, `allOf` and inlined references included. Gemini takes 30.
pub(super) const MAX_LEVELS: usize = 64;
/// Schemas that are read of one tool.
const MAX_NODES: usize = 50_000;
/// Schemas that are read again because a reference has to be inlined.
const MAX_EXPANDED: usize = 5_000;
/// Text that is read again because a reference has to be inlined: so many bytes, and the schema's
/// own text so many times.
const MAX_EXPANDED_TEXT: (usize, usize) = (1024 * 1024, 4);
/// References that are followed one after the other.
const MAX_CHAIN: usize = 128;
/// Names of definitions are cut to this length.
const MAX_DEFINITION_NAME: usize = 200;
/// Budget for copies of schemas that are needed in several places (see
/// [`Node::bulk_up_to`]): so much, and one more for so many bytes of text.
const MAX_COPIED: (usize, usize) = (5_000, 8);

/// Reads one schema.
#[derive(Debug)]
pub(in crate::schema) struct Reader<'t> {
    pub(in crate::schema) findings: Findings<'t>,
    pub(super) defs: Vec<Def<'t>>,
    pub(super) level: usize,
    pub(super) nodes: usize,
    form: SchemaForm,
    /// The result is for `parameters`.
    pub(super) lowered: bool,
    index: Index<'t>,
    by_tree: BTreeMap<usize, DefId>,
    /// References that were followed.
    chains: Vec<Followed>,
    /// The number of the reference that is being followed; 0: none.
    chain: usize,
    expanded: usize,
    /// Bytes that may still be read again.
    expandable: usize,
    /// Remaining budget for copies.
    copyable: usize,
    /// Remaining budget for measuring schemas before they are copied.
    measurable: usize,
}

/// A reference that was followed.
#[derive(Debug)]
struct Followed {
    id: DefId,
    /// The number of the reference that was followed before it; 0: none.
    before: usize,
    /// How many were followed, this one included.
    length: usize,
}

impl<'t> Reader<'t> {
    pub(in crate::schema) fn new(root: &'t Tree<'t>, form: SchemaForm, lowered: bool) -> Self {
        Self {
            findings: Findings::default(),
            defs: Vec::new(),
            level: 0,
            nodes: 0,
            form,
            lowered,
            index: Index::new(root),
            by_tree: BTreeMap::new(),
            chains: Vec::new(),
            chain: 0,
            expanded: 0,
            expandable: MAX_EXPANDED_TEXT.0 + MAX_EXPANDED_TEXT.1 * root.text.len(),
            copyable: MAX_COPIED.0 + root.text.len() / MAX_COPIED.1,
            measurable: 2 * (MAX_COPIED.0 + root.text.len() / MAX_COPIED.1),
        }
    }

    /// Pays for `times` copies of what `of` gives; `false` where that is more than may be copied.
    /// `of` gets the most that it need count.
    pub(super) fn may_copy(&mut self, times: usize, of: impl FnOnce(usize) -> usize) -> bool {
        if times == 0 {
            return true;
        }
        let most = self.copyable / times;
        let Some(bulk) = self.measure(|| of(most)) else { return false };
        let Some(left) = self.copyable.checked_sub(bulk.saturating_mul(times)) else {
            return false;
        };
        self.copyable = left;
        self.findings.work += bulk * times;
        true
    }

    /// Looks how large something is, unless too much was looked at already.
    pub(super) fn measure(&mut self, size: impl FnOnce() -> usize) -> Option<usize> {
        if self.measurable == 0 {
            return None;
        }
        let size = size();
        self.measurable = self.measurable.saturating_sub(size);
        self.findings.work += size;
        Some(size)
    }

    /// Reads the whole schema. `arguments`: it describes a function's arguments, so it must be an
    /// object.
    pub(in crate::schema) fn document(
        mut self,
        root: &'t Tree<'t>,
        arguments: bool,
    ) -> (Document<'t>, Findings<'t>) {
        let mut node = if arguments { self.arguments(root) } else { self.output(root) };
        node = self.finish(node);
        let mut queue = references(&node);
        while let Some(id) = queue.pop() {
            let Some(def) = self.defs.get(id).filter(|def| def.node.is_none()) else { continue };
            let tree = def.tree;
            let read = self.schema(tree).unwrap_or_else(|| Node::any(tree.text));
            let read = self.finish(read);
            queue.extend(references(&read));
            if let Some(def) = self.defs.get_mut(id) {
                def.node = Some(read);
            }
        }
        let mut document = Document { root: node, defs: self.defs };
        skip_aliases(&mut document);
        (document, self.findings)
    }

    fn output(&mut self, root: &'t Tree<'t>) -> Node<'t> {
        let node = self.schema(root).unwrap_or_else(|| {
            let detail = "no value fits this schema; any value is allowed";
            self.findings.push(root.text, "", Effect::Repaired, detail);
            Node::any(root.text)
        });
        // A root that is a reference would have no place for `$defs`.
        self.expand(node)
    }

    /// Reads one schema as it is written. `None`: no value fits it.
    pub(super) fn schema(&mut self, tree: &'t Tree<'t>) -> Option<Node<'t>> {
        if self.level >= MAX_LEVELS || matches!(tree.shape, Shape::TooDeep) {
            let detail = "nested too deep for Gemini; any value is allowed here";
            self.findings.push(tree.text, "", Effect::Cut, detail);
            return Some(stump(tree));
        }
        if self.nodes >= MAX_NODES {
            self.findings.push(
                tree.text,
                "",
                Effect::Cut,
                format!("more than {MAX_NODES} schemas in one tool; any value is allowed here"),
            );
            return Some(stump(tree));
        }
        self.level += 1;
        self.nodes += 1;
        self.findings.work += 1;
        self.expanded += usize::from(self.chain > 0);
        let node = match &tree.shape {
            Shape::Bool(true) => Some(Node::any(tree.text)),
            Shape::Bool(false) => None,
            Shape::Object(members) => self.object(tree, members),
            Shape::String(name) if Types::by_name(name).is_some() => {
                let detail = format!("a schema is an object; read as {{\"type\":\"{name}\"}}");
                self.findings.push(tree.text, "", Effect::Repaired, detail);
                Some(Node::of_type(tree.text, Types::by_name(name).unwrap_or_default()))
            }
            Shape::Null | Shape::Number | Shape::String(_) | Shape::Array(_) | Shape::TooDeep => {
                let detail = "not a schema (an object, true or false); any value is allowed here";
                self.findings.push(tree.text, "", Effect::Repaired, detail);
                Some(Node::any(tree.text))
            }
        };
        self.level -= 1;
        node
    }

    fn object(&mut self, tree: &'t Tree<'t>, members: &'t [Member<'t>]) -> Option<Node<'t>> {
        let mut node = Node::any(tree.text);
        node.place.chain = self.chain;
        let mut logic = Logic::default();
        let mut array = ArrayParts::default();
        let stray = self.stray_properties(members);
        self.findings.work += 2 * members.len();
        for (at, member) in members.iter().enumerate() {
            if stray.binary_search(&at).is_ok() {
                continue;
            }
            let name = self.keyword(&member.key);
            // Many serialisers write null for "not set"; as data it means something.
            if member.value.is_null() && !matches!(name, "default" | "const" | "example") {
                continue;
            }
            let known = self.scalar_keyword(&mut node, &mut logic, name, member)
                || self.object_keyword(&mut node, tree, name, member)
                || self.array_keyword(&mut node, &mut array, name, member)
                || self.logic_keyword(&mut node, &mut logic, name, member)
                || self.described_keyword(&mut node, tree, name, member);
            if !known {
                self.unknown(tree, member);
            }
        }
        self.add_stray_properties(&mut node, tree, members, &stray);
        self.finish_array(&mut node, &array);
        self.combine(node, logic)
    }

    /// The keyword that a key means.
    pub(super) fn keyword<'k>(&self, key: &'k str) -> &'k str {
        match self.form {
            SchemaForm::JsonSchema => key,
            SchemaForm::Gemini => keywords::from_gemini(key).unwrap_or(key),
        }
    }

    /// Whether the schema is in Gemini's own form.
    pub(super) fn is_gemini(&self) -> bool {
        self.form == SchemaForm::Gemini
    }

    fn unknown(&mut self, tree: &'t Tree<'t>, member: &'t Member<'t>) {
        let name = member.key.as_ref();
        let detail = match keywords::known(name) {
            Some(_) => format!("`{name}` says nothing that Gemini could use; it was left out"),
            None if name.starts_with("x-") => {
                format!("the extension `{name}` means nothing to Gemini; it was left out")
            }
            None => format!("`{name}` is not a keyword of JSON Schema; it was left out"),
        };
        // `readOnly: false` and the like say nothing at all.
        if keywords::known(name).is_some() && member.value.as_bool() == Some(false) {
            return;
        }
        self.findings.push(tree.text, name, Effect::Dropped, detail);
    }

    /// A keyword with a value that cannot be understood.
    pub(super) fn broken(&mut self, node: &Node<'t>, name: &'t str, wanted: &str) {
        let detail = format!("`{name}` must be {wanted}; it was left out");
        self.findings.push(node.place.text, name, Effect::Repaired, detail);
    }

    /// The target of a reference, as a definition.
    pub(super) fn reference(
        &mut self,
        node: &mut Node<'t>,
        name: &'t str,
        reference: &'t str,
    ) -> Option<DefId> {
        match self.index.resolve(reference, node.place.text) {
            Target::Schema { name, tree } => Some(self.definition(name, tree)),
            Target::Remote => {
                node.note(format!("Follows the schema {reference}."));
                let detail = format!(
                    "`{reference}` is another document, which is not fetched; any value is allowed and the description names it"
                );
                let help = "copy the schema into `$defs`";
                self.findings.push_with_help(
                    node.place.text,
                    name,
                    Effect::Described,
                    detail,
                    Some(help.into()),
                );
                None
            }
            Target::Undefined => {
                let detail = format!("`{reference}` is not defined; any value is allowed here");
                let help = "define it in `$defs` at the root";
                self.findings.push_with_help(
                    node.place.text,
                    name,
                    Effect::Repaired,
                    detail,
                    Some(help.into()),
                );
                None
            }
        }
    }

    fn definition(&mut self, name: Cow<'t, str>, tree: &'t Tree<'t>) -> DefId {
        let defs = &mut self.defs;
        let name = match name {
            Cow::Borrowed(name) => {
                Cow::Borrowed(&name[..name.floor_char_boundary(MAX_DEFINITION_NAME)])
            }
            Cow::Owned(mut name) => {
                name.truncate(name.floor_char_boundary(MAX_DEFINITION_NAME));
                Cow::Owned(name)
            }
        };
        *self.by_tree.entry(start(tree.text)).or_insert_with(|| {
            defs.push(Def { name, tree, node: None });
            defs.len() - 1
        })
    }

    /// Replaces a reference by its target. An endless one is cut.
    pub(super) fn expand(&mut self, mut node: Node<'t>) -> Node<'t> {
        while let Some(id) = node.reference.take() {
            let Some(tree) = self.defs.get(id).map(|def| def.tree) else { break };
            let endless = self.has_followed(node.place.chain, id);
            let left = self.expandable.checked_sub(tree.text.len());
            if endless || self.expanded >= MAX_EXPANDED || left.is_none() {
                let detail = if endless {
                    "refers to itself without an end; any value is allowed here"
                } else {
                    "refers to more than can be written out; any value is allowed here"
                };
                self.findings.push(node.place.text, "$ref", Effect::Cut, detail);
                break;
            }
            self.expandable = left.unwrap_or(0);
            let before = node.place.chain;
            let length = 1 + self.followed(before).map_or(0, |followed| followed.length);
            self.chains.push(Followed { id, before, length });
            let outer = std::mem::replace(&mut self.chain, self.chains.len());
            let mut target = self.schema(tree).unwrap_or_else(|| Node::any(tree.text));
            self.chain = outer;
            target.annotate(node);
            node = target;
        }
        node
    }

    /// Whether the definition was already followed on the way to a schema, or too many were.
    fn has_followed(&mut self, mut chain: usize, id: DefId) -> bool {
        if self.followed(chain).is_some_and(|followed| followed.length >= MAX_CHAIN) {
            return true;
        }
        while let Some(followed) = self.followed(chain) {
            if followed.id == id {
                return true;
            }
            chain = followed.before;
            self.findings.work += 1;
        }
        false
    }

    fn followed(&self, chain: usize) -> Option<&Followed> {
        chain.checked_sub(1).and_then(|at| self.chains.get(at))
    }
}

/// A schema that is not read: its type and its description.
fn stump<'t>(tree: &'t Tree<'t>) -> Node<'t> {
    let named = tree.get("type").and_then(Tree::as_str).and_then(Types::by_name);
    let mut node = Node::of_type(tree.text, named.unwrap_or_default());
    node.description = tree.get("description").and_then(Tree::as_str).map(Cow::Borrowed);
    if let Some(properties) = tree.get("properties").filter(|it| !it.members().is_empty()) {
        let names = properties.members().iter().map(|member| member.key.as_ref());
        node.note(format!("Properties: {}.", words::names(names)));
    }
    node
}

/// Points references past definitions that are nothing but another reference.
fn skip_aliases(document: &mut Document<'_>) {
    fn redirect(node: &mut Node<'_>, ends: &[DefId]) {
        node.reference = node.reference.and_then(|id| ends.get(id).copied());
        node.children_mut().for_each(|child| redirect(child, ends));
    }
    let alias = |def: &Def<'_>| def.node.as_ref().filter(|node| !node.is_annotated())?.reference;
    let aliases: Vec<Option<DefId>> = document.defs.iter().map(alias).collect();
    if aliases.iter().all(Option::is_none) {
        return;
    }
    let ends = ends(&aliases);
    redirect(&mut document.root, &ends);
    for node in document.defs.iter_mut().filter_map(|def| def.node.as_mut()) {
        redirect(node, &ends);
    }
}

/// Where each chain of aliases ends. References that only refer to each other end somewhere among
/// themselves.
fn ends(aliases: &[Option<DefId>]) -> Vec<DefId> {
    let mut ends: Vec<Option<DefId>> = vec![None; aliases.len()];
    for start in 0..aliases.len() {
        let mut path = Vec::new();
        let mut at = start;
        let end = loop {
            match (ends.get(at).copied().flatten(), aliases.get(at).copied().flatten()) {
                (Some(end), _) => break end,
                (None, Some(next)) => {
                    // Until the end is known, the place itself stands for it: a circle ends here.
                    ends[at] = Some(at);
                    path.push(at);
                    at = next;
                }
                (None, None) => break at,
            }
        };
        for at in path {
            ends[at] = Some(end);
        }
    }
    ends.into_iter().enumerate().map(|(at, end)| end.unwrap_or(at)).collect()
}

/// The definitions that a schema refers to, the first one last.
pub(super) fn references(node: &Node<'_>) -> Vec<DefId> {
    fn collect(node: &Node<'_>, into: &mut Vec<DefId>) {
        into.extend(node.reference);
        node.children().for_each(|child| collect(child, into));
    }
    let mut found = Vec::new();
    collect(node, &mut found);
    found.reverse();
    found
}
