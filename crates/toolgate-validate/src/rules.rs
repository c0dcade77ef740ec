//! The second stage: rules of a request, apart from the order of its turns.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use toolgate_core::canon::{Backend, Target};

use crate::accepted::Counts;
use crate::error::GoogleError;
use crate::json_schema;
use crate::model::{Generation, Model};
use crate::request::{Content, Data, Mode, Part, Request};
use crate::schema::{SchemaOwner, SchemaRules};
use crate::tree::Tree;

/// Highest number of functions in a request.
const MAX_FUNCTIONS: usize = 512;
/// Highest estimate of grammar states where decoding is constrained by a schema.
const MAX_GRAMMAR_STATES: f64 = 200_000.0;

/// The rules. Some faults are collected, a line with a path each; the others are reported alone.
pub(crate) struct Rules<'t, 'a> {
    pub(crate) tree: &'t Tree<'a>,
    pub(crate) request: &'t Request,
    pub(crate) model: Model,
    pub(crate) target: &'t Target,
    /// Name of the message, the first segment of every path.
    pub(crate) root: &'static str,
}

impl Rules<'_, '_> {
    /// Checks all rules of this stage.
    pub(crate) fn check(&self, counts: &mut Counts) -> Result<(), GoogleError> {
        self.check_presence()?;
        let mut lines = Vec::new();
        self.check_contents(&mut lines, counts);
        self.check_declarations(&mut lines, counts)?;
        self.check_ranges(&mut lines)?;
        if !lines.is_empty() {
            let lines: Vec<_> =
                lines.iter().map(|line| format!("* {}.{line}\n", self.root)).collect();
            return Err(GoogleError::invalid(lines.concat()));
        }
        self.check_tools()?;
        self.check_responses()
    }

    fn on_vertex(&self) -> bool {
        self.target.backend == Backend::Vertex
    }

    fn check_presence(&self) -> Result<(), GoogleError> {
        let contents = &self.request.contents;
        if self.on_vertex() {
            let why = if contents.is_empty() {
                "at least one contents field is required."
            } else if contents.iter().any(|content| content.parts.is_empty()) {
                "it must include at least one parts field, which describes the prompt input."
            } else if contents.iter().all(is_empty) {
                "it must have a text parameter."
            } else {
                return Ok(());
            };
            return Err(GoogleError::invalid(format!("Unable to submit request because {why}")));
        }
        if contents.is_empty() {
            let root = self.root;
            return Err(GoogleError::invalid(format!(
                "* {root}.contents: contents is not specified\n"
            )));
        }
        Ok(())
    }

    fn check_contents(&self, lines: &mut Vec<String>, counts: &mut Counts) {
        let system = self.request.system.iter().map(|it| ("system_instruction".to_owned(), it));
        let contents = self.request.contents.iter().enumerate();
        let contents = contents.map(|(at, content)| (format!("contents[{at}]"), content));
        for (at, content) in contents.chain(system) {
            if content.parts.is_empty() {
                lines.push(format!("{at}.parts: contents.parts must not be empty."));
            }
            for (index, part) in content.parts.iter().enumerate() {
                let at = format!("{at}.parts[{index}]");
                match &part.data {
                    // gemini-cli returns a signed empty text without its text.
                    Data::None if part.signature.is_some() => counts.bare_signatures += 1,
                    Data::None => lines.push(format!(
                        "{at}.data: required oneof field 'data' must have one initialized field"
                    )),
                    Data::Call { name, .. } => self.check_name(name, &at, "function_call", lines),
                    Data::Response { name, .. } => {
                        self.check_name(name, &at, "function_response", lines);
                    }
                    Data::Text(_) | Data::Media { .. } | Data::Server(..) => {}
                }
            }
        }
    }

    fn check_name(&self, name: &str, at: &str, what: &str, lines: &mut Vec<String>) {
        if name.is_empty() {
            lines.push(format!("{at}.{what}.name: Name cannot be empty."));
        } else if let Some(why) = self.name_fault(name) {
            lines.push(format!("{at}.{what}.name: {why}"));
        }
    }

    /// Describes the fault of an invalid function name.
    fn name_fault(&self, name: &str) -> Option<String> {
        // 128 characters are documented since 2026; older models enforce 64.
        let max_length = if self.model.generation >= Generation::G3_5 { 128 } else { 64 };
        let mut letters = name.bytes();
        let is_start_valid = letters.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
        let is_rest_valid =
            letters.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':' | b'-'));
        (!is_start_valid || !is_rest_valid || name.len() > max_length).then(|| {
            format!(
                "Invalid function name. Must start with a letter or an underscore. Must be \
                 alphameric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), \
                 with a maximum length of {max_length}."
            )
        })
    }

    fn check_declarations(
        &self,
        lines: &mut Vec<String>,
        counts: &mut Counts,
    ) -> Result<(), GoogleError> {
        let Target { backend, .. } = *self.target;
        let mut entries = 0;
        for (tool_at, tool) in
            self.tree.get("tools").map_or(&[][..], Tree::items).iter().enumerate()
        {
            let declared = tool.get("functionDeclarations").map_or(&[][..], Tree::items);
            if declared.is_empty()
                && tool.members().iter().all(|(name, _)| name == "functionDeclarations")
            {
                lines.push(format!(
                    "tools[{tool_at}].tool_type: required one_of 'tool_type' must have one \
                     initialized field"
                ));
            }
            entries += usize::from(!declared.is_empty());
            for (at, function) in declared.iter().enumerate() {
                let at = format!("tools[{tool_at}].function_declarations[{at}]");
                let name = function.get("name").and_then(Tree::text).unwrap_or("");
                if let Some(why) = self.name_fault(name) {
                    lines.push(format!("{at}.name: {why}"));
                }
                let owner = SchemaOwner::Function(name);
                for (field, json) in
                    [("parameters", "parametersJsonSchema"), ("response", "responseJsonSchema")]
                {
                    let (plain, json_schema) = (function.get(field), function.get(json));
                    if plain.is_some() && json_schema.is_some() {
                        lines.push(format!(
                            "{at}: {field} and {field}_json_schema are mutually exclusive"
                        ));
                    }
                    let owner = if field == "parameters" { owner } else { SchemaOwner::Config };
                    if let Some(schema) = plain {
                        let generation = self.model.generation;
                        SchemaRules { backend, generation, lines }.check(
                            schema,
                            owner,
                            &format!("{at}.{field}"),
                        )?;
                    }
                    if let Some(schema) = json_schema.filter(|schema| **schema != Tree::Null) {
                        json_schema::check(schema, owner, backend)?;
                    }
                }
            }
        }
        counts.split_functions = usize::saturating_sub(entries, 1);
        Ok(())
    }

    fn check_ranges(&self, lines: &mut Vec<String>) -> Result<(), GoogleError> {
        let refuse = |what: &str| Err(GoogleError::invalid(what));
        let settings = &self.request.settings;
        if settings.stop.len() > 5 {
            return refuse("the number of stop_sequences must not exceed 5");
        }
        if settings.temperature.is_some_and(|it| !(0.0..=2.0).contains(&it)) {
            return refuse("temperature must be in the range [0.0, 2.0]");
        }
        if settings.max_output_tokens.is_some_and(|limit| limit <= 0) {
            return Err(GoogleError::unspecific());
        }
        if settings.thinking_budget.is_some_and(|it| !(-1..=65_535).contains(&it)) {
            return refuse("thinking_budget must be in the range [-1, 65535]");
        }
        let known = [
            "text/plain",
            "application/json",
            "application/xml",
            "application/yaml",
            "text/x.enum",
        ];
        if settings.mime.as_deref().is_some_and(|mime| !known.contains(&mime)) {
            lines.push(
                "generation_config.response_mime_type: allowed mimetypes are `text/plain`, \
                 `application/json`, `application/xml`, `application/yaml` and `text/x.enum`."
                    .to_owned(),
            );
        }
        let config = self.tree.get("generationConfig").unwrap_or(&Tree::Null);
        if let Some(schema) = config.get("responseSchema") {
            let Target { backend, .. } = *self.target;
            SchemaRules { backend, generation: self.model.generation, lines }.check(
                schema,
                SchemaOwner::Config,
                "generation_config.response_schema",
            )?;
        }
        match config.get("responseJsonSchema") {
            None | Some(Tree::Null) => Ok(()),
            Some(schema) => json_schema::check(schema, SchemaOwner::Config, self.target.backend),
        }
    }

    fn check_tools(&self) -> Result<(), GoogleError> {
        let refuse = |what: String| Err(GoogleError::invalid(what));
        let Request { functions, calling, settings, .. } = self.request;
        if self.request.cached_content.is_some()
            && ["systemInstruction", "tools", "toolConfig"]
                .iter()
                .any(|it| self.tree.get(it).is_some())
        {
            return refuse(
                "CachedContent can not be used with GenerateContent request setting \
                 system_instruction, tools or tool_config.\n\nProposed fix: move those values to \
                 CachedContent from GenerateContent request."
                    .to_owned(),
            );
        }
        if functions.len() > MAX_FUNCTIONS {
            return refuse(format!(
                "The GenerateContentRequest proto is invalid:\n  * tools[0].function_declarations: \
                 [FIELD_INVALID] At most {MAX_FUNCTIONS} function declarations can be specified."
            ));
        }
        let mut names = BTreeSet::new();
        for function in functions {
            if !names.insert(function.name.as_str()) {
                return refuse(format!("Duplicate function declaration found: {}", function.name));
            }
        }
        let config = self.tree.get("toolConfig").and_then(|it| it.get("functionCallingConfig"));
        if config.is_some() && functions.is_empty() {
            return refuse(
                "Function calling config is set without function_declarations.".to_owned(),
            );
        }
        if !calling.allowed.is_empty() {
            if !matches!(calling.mode, Mode::Any | Mode::Validated) {
                return refuse(
                    "Please set allowed_function_names only when function calling mode is ANY."
                        .to_owned(),
                );
            }
            if !calling.allowed.iter().all(|name| names.contains(name.as_str())) {
                return Err(GoogleError::unspecific());
            }
        }
        let bound =
            if matches!(calling.mode, Mode::Any | Mode::Validated) { &functions[..] } else { &[] };
        let schemas = bound.iter().filter_map(|it| it.schema.as_ref()).chain(&settings.schema);
        if schemas.map(states).sum::<f64>() > MAX_GRAMMAR_STATES {
            return refuse(TOO_MANY_STATES.to_owned());
        }
        Ok(())
    }

    /// Checks that every `$ref` in a result names one of its media.
    fn check_responses(&self) -> Result<(), GoogleError> {
        for part in self.request.contents.iter().flat_map(|content| &content.parts) {
            let Data::Response { response, media, .. } = &part.data else { continue };
            if let Some(name) = references(response).find(|name| !media.contains(name)) {
                return Err(GoogleError::invalid(format!(
                    "The referenced name `{name}` in function_response.response does not match to \
                     a display_name in the function_response.parts."
                )));
            }
        }
        Ok(())
    }
}

fn is_empty(content: &Content) -> bool {
    content.parts.iter().all(|Part { data, signature, .. }| {
        matches!(data, Data::Text(text) if text.is_empty()) && signature.is_none()
    })
}

/// Names in every `$ref` of a result.
fn references(response: &Map<String, Value>) -> impl Iterator<Item = String> {
    let mut found = Vec::new();
    let mut todo: Vec<&Value> = Vec::new();
    let members = |object: &Map<String, Value>, found: &mut Vec<String>| {
        if let Some(Value::String(name)) = object.get("$ref") {
            found.push(name.clone());
        }
    };
    members(response, &mut found);
    todo.extend(response.values());
    while let Some(value) = todo.pop() {
        match value {
            Value::Object(object) => {
                members(object, &mut found);
                todo.extend(object.values());
            }
            Value::Array(items) => todo.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    found.into_iter()
}

/// Estimate of the states of the schema's grammar: length of its texts, multiplied by repetitions.
fn states(schema: &Value) -> f64 {
    let Value::Object(members) = schema else { return 1.0 };
    let mut own = 1.0;
    for (word, value) in members {
        own += match (word.as_str(), value) {
            ("enum", Value::Array(values)) => {
                values.iter().map(|value| size(value.as_str().map_or(8, str::len))).sum()
            }
            ("properties" | "$defs", Value::Object(fields)) => {
                fields.iter().map(|(name, inner)| size(name.len()) + states(inner)).sum::<f64>()
            }
            ("anyOf" | "oneOf" | "prefixItems", Value::Array(branches)) => {
                branches.iter().map(states).sum()
            }
            ("items" | "additionalProperties", inner) => states(inner),
            ("minimum" | "maximum", _) => 64.0,
            _ => 0.0,
        };
    }
    let repeats = members.get("maxItems").and_then(|max| {
        max.as_f64().or_else(|| max.as_str().and_then(|digits| digits.parse().ok()))
    });
    own * repeats.unwrap_or(1.0).max(1.0)
}

fn size(length: usize) -> f64 {
    f64::from(u32::try_from(length).unwrap_or(u32::MAX))
}

const TOO_MANY_STATES: &str = "The specified schema produces a constraint that has too many states for serving.  Typical \
     causes of this error are schemas with lots of text (for example, very long property or enum \
     names), schemas with long array length limits (especially when nested), or schemas using \
     complex value matchers (for example, integers or numbers with minimum/maximum bounds or \
     strings with complex formats like date-time)";
