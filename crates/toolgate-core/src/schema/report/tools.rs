//! Finding the tools in a file, by their shape.

use super::types::{Dialect, Kind};
use crate::canon::{SchemaForm, ToolName};
use crate::schema::tree::{Shape, Tree};

/// Lists inside lists inside requests; real files have two levels.
const MAX_LEVELS: usize = 4;

/// Maximum length of a namespace's name, which each of its tools repeats.
const MAX_NAMESPACE: usize = 1024;

/// A tool as it stands in the file.
#[derive(Debug)]
pub(super) struct Found<'t> {
    pub(super) at: String,
    pub(super) tree: &'t Tree<'t>,
    pub(super) dialect: Dialect,
    pub(super) kind: Kind,
    /// `None`: there is none, or it is not a string.
    pub(super) name: Option<ToolName<'t>>,
    /// The name's own text, for pointing at it.
    pub(super) name_text: Option<&'t str>,
    pub(super) description: Option<&'t str>,
    pub(super) schema: Option<Schema<'t>>,
    /// Why it cannot be sent, or what becomes of it.
    pub(super) remark: Option<Remark>,
}

#[derive(Debug)]
pub(super) struct Schema<'t> {
    /// Its path below the tool.
    pub(super) at: &'static str,
    pub(super) tree: &'t Tree<'t>,
    pub(super) form: SchemaForm,
}

#[derive(Debug)]
pub(super) enum Remark {
    /// It runs elsewhere; the text says where.
    BuiltIn(String),
    /// It cannot be sent.
    Refused(String),
}

/// Every tool of a file.
pub(super) fn tools<'t>(root: &'t Tree<'t>) -> Vec<Found<'t>> {
    let mut found = Vec::new();
    collect(root, "", 0, &mut found);
    found
}

fn join(at: &str, key: &str) -> String {
    if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") }
}

fn collect<'t>(tree: &'t Tree<'t>, at: &str, level: usize, found: &mut Vec<Found<'t>>) {
    if level > MAX_LEVELS {
        return;
    }
    match &tree.shape {
        Shape::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                entry(element, &format!("{at}[{index}]"), None, level, found);
            }
        }
        Shape::Object(_) => container(tree, at, level, found),
        Shape::Null | Shape::Bool(_) | Shape::Number | Shape::String(_) | Shape::TooDeep => {}
    }
}

/// A request, a result, a recording around one, or a single tool.
fn container<'t>(tree: &'t Tree<'t>, at: &str, level: usize, found: &mut Vec<Found<'t>>) {
    let before = found.len();
    for key in ["tools", "functions"] {
        let list = tree.get(key).filter(|list| matches!(list.shape, Shape::Array(_)));
        // A namespace is a tool that has tools.
        if let Some(list) = list.filter(|_| type_of(tree) != Some("namespace")) {
            collect(list, &join(at, key), level + 1, found);
        }
    }
    // Tools that come in the conversation (Codex).
    if let Some(input) = tree.get("input") {
        for (index, item) in input.elements().iter().enumerate() {
            if let Some(list) = item.get("tools") {
                let at = format!("{}[{index}].tools", join(at, "input"));
                collect(list, &at, level + 1, found);
            }
        }
    }
    for key in ["result", "params", "body", "request"] {
        if let Some(inner) = tree.get(key).filter(|inner| inner.is_object()) {
            let is_tool = tree.get("name").is_some();
            if !is_tool {
                container(inner, &join(at, key), level + 1, found);
            }
        }
    }
    let has_list = tree.get("tools").is_some() && type_of(tree) != Some("namespace");
    if found.len() == before && !has_list && looks_like_tool(tree) {
        entry(tree, at, None, level, found);
    }
}

fn looks_like_tool(tree: &Tree<'_>) -> bool {
    let keys = [
        "name",
        "function",
        "functionDeclarations",
        "function_declarations",
        "input_schema",
        "inputSchema",
        "parameters",
        "parametersJsonSchema",
        "custom",
    ];
    keys.iter().any(|key| tree.get(key).is_some())
}

fn type_of<'t>(tree: &'t Tree<'t>) -> Option<&'t str> {
    tree.get("type").and_then(Tree::as_str)
}

fn entry<'t>(
    tree: &'t Tree<'t>,
    at: &str,
    namespace: Option<&'t str>,
    level: usize,
    found: &mut Vec<Found<'t>>,
) {
    let mut tool = Found {
        at: at.to_owned(),
        tree,
        dialect: Dialect::Unknown,
        kind: Kind::Function,
        name: None,
        name_text: None,
        description: tree.get("description").and_then(Tree::as_str),
        schema: None,
        remark: None,
    };
    if !tree.is_object() {
        tool.remark = Some(Remark::Refused("a tool is an object".to_owned()));
        found.push(tool);
        return;
    }
    let declarations = ["functionDeclarations", "function_declarations"];
    if let Some((key, list)) = declarations.iter().find_map(|key| Some((*key, tree.get(key)?))) {
        for (index, declaration) in list.elements().iter().enumerate() {
            let at = format!("{}[{index}]", join(at, key));
            found.push(gemini(declaration, at));
        }
    }
    let kind = type_of(tree);
    match kind {
        Some("namespace") => {
            let name = tree.get("name").and_then(Tree::as_str);
            if name.is_some_and(|name| name.len() > MAX_NAMESPACE) {
                let why = format!(
                    "the namespace's name has more than {MAX_NAMESPACE} bytes; its tools were not checked"
                );
                tool.remark = Some(Remark::Refused(why));
                found.push(tool);
                return;
            }
            let list = tree.get("tools").map_or(&[][..], Tree::elements);
            for (index, inner) in list.iter().enumerate().filter(|_| level < MAX_LEVELS) {
                let at = format!("{}[{index}]", join(at, "tools"));
                entry(inner, &at, name, level + 1, found);
            }
            return;
        }
        Some("function") if tree.get("function").is_some_and(Tree::is_object) => {
            return inner_function(tool, "function", found);
        }
        Some("custom") if tree.get("custom").is_some_and(Tree::is_object) => {
            tool.kind = Kind::Freeform;
            return inner_function(tool, "custom", found);
        }
        _ if tree.get("function").is_some_and(Tree::is_object) => {
            return inner_function(tool, "function", found);
        }
        _ => {}
    }
    if tree.members().iter().any(|member| declarations.contains(&member.key.as_ref())) {
        return;
    }
    tool.take_name(tree, namespace);
    if let Some(schema) = tree.get("input_schema") {
        tool.dialect = Dialect::Anthropic;
        tool.schema =
            Some(Schema { at: "input_schema", tree: schema, form: SchemaForm::JsonSchema });
    } else if let Some(schema) = tree.get("inputSchema") {
        tool.dialect = Dialect::Mcp;
        tool.schema =
            Some(Schema { at: "inputSchema", tree: schema, form: SchemaForm::JsonSchema });
    } else if matches!(kind, Some("function" | "tool_search")) {
        tool.dialect = Dialect::Responses;
        tool.schema = tree.get("parameters").map(|tree| Schema {
            at: "parameters",
            tree,
            form: SchemaForm::JsonSchema,
        });
        if kind == Some("tool_search") {
            tool.kind = Kind::BuiltIn;
            tool.remark = Some(Remark::BuiltIn("toolgate offers it as a function".to_owned()));
        }
    } else if kind == Some("custom") {
        tool.dialect = Dialect::Responses;
        tool.kind = Kind::Freeform;
    } else if let Some(kind) = kind {
        tool.kind = Kind::BuiltIn;
        tool.remark = Some(built_in(kind));
    } else if tree.get("parametersJsonSchema").is_some()
        || tree.get("parameters_json_schema").is_some()
    {
        found.push(gemini(tree, at.to_owned()));
        return;
    } else if let Some(schema) = tree.get("parameters") {
        // Chat's old `functions` and Gemini's declarations look alike but for their types.
        let upper =
            type_of(schema).is_some_and(|it| it.starts_with(|c: char| c.is_ascii_uppercase()));
        if upper {
            found.push(gemini(tree, at.to_owned()));
            return;
        }
        tool.dialect = Dialect::Chat;
        tool.schema = Some(Schema { at: "parameters", tree: schema, form: SchemaForm::JsonSchema });
    } else if tree.get("name").is_none()
        && let Some(server) = tree.members().first().filter(|member| member.value.is_object())
    {
        tool.dialect = Dialect::Gemini;
        tool.kind = Kind::BuiltIn;
        tool.name = Some(ToolName::plain(server.key.as_ref()));
        tool.remark = Some(Remark::BuiltIn("Gemini runs it".to_owned()));
    }
    found.push(tool);
}

fn gemini<'t>(tree: &'t Tree<'t>, at: String) -> Found<'t> {
    let schema = [
        ("parametersJsonSchema", SchemaForm::JsonSchema),
        ("parameters_json_schema", SchemaForm::JsonSchema),
        ("parameters", SchemaForm::Gemini),
    ];
    let schema = schema.into_iter().find_map(|(at, form)| {
        Some(Schema { at, tree: tree.get(at).filter(|it| !it.is_null())?, form })
    });
    let mut tool = Found {
        at,
        tree,
        dialect: Dialect::Gemini,
        kind: Kind::Function,
        name: None,
        name_text: None,
        description: tree.get("description").and_then(Tree::as_str),
        schema,
        remark: None,
    };
    tool.take_name(tree, None);
    tool
}

/// Chat's `{"type": "function", "function": {…}}`.
fn inner_function<'t>(mut tool: Found<'t>, key: &'static str, found: &mut Vec<Found<'t>>) {
    tool.dialect = Dialect::Chat;
    if let Some(inner) = tool.tree.get(key) {
        tool.take_name(inner, None);
        tool.description = inner.get("description").and_then(Tree::as_str);
        tool.schema = inner.get("parameters").filter(|_| key == "function").map(|tree| Schema {
            at: "function.parameters",
            tree,
            form: SchemaForm::JsonSchema,
        });
    }
    found.push(tool);
}

impl<'t> Found<'t> {
    fn take_name(&mut self, tree: &'t Tree<'t>, namespace: Option<&'t str>) {
        let Some(name) = tree.get("name") else { return };
        self.name_text = Some(name.text);
        self.name = name
            .as_str()
            .filter(|name| !name.is_empty())
            .map(|plain| ToolName { namespace: namespace.map(Into::into), name: plain.into() });
    }
}

/// Tools that are known by their type alone.
fn built_in(kind: &str) -> Remark {
    let family = |names: &[&str]| names.iter().any(|name| kind.starts_with(name));
    if family(&["web_search"]) {
        return Remark::BuiltIn("Gemini runs it as `googleSearch`".to_owned());
    }
    if family(&["web_fetch"]) {
        return Remark::BuiltIn("Gemini runs it as `urlContext`".to_owned());
    }
    if family(&["code_execution", "code_interpreter"]) {
        return Remark::BuiltIn("Gemini runs it as `codeExecution`".to_owned());
    }
    if family(&[
        "bash_",
        "text_editor_",
        "computer_",
        "memory_",
        "local_shell",
        "shell",
        "apply_patch",
    ]) {
        return Remark::BuiltIn(
            "its vendor defines the schema; toolgate offers it as a function".to_owned(),
        );
    }
    Remark::Refused(format!("toolgate does not know tools of type `{kind}`; it would be left out"))
}
