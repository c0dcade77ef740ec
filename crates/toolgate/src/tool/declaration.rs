//! Declarations of functions.

use serde_json::{Map, Value};
use toolgate_core::canon::SchemaForm;
use toolgate_core::json::Raw;

/// Declaration of a function.
#[derive(Clone, Debug)]
pub(crate) struct Declaration {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) parameters: Option<Raw<'static>>,
    pub(crate) response: Option<Raw<'static>>,
    pub(crate) form: SchemaForm,
    /// Other members, as they were given.
    pub(crate) others: Map<String, Value>,
}

/// Error in a declaration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid declaration: {reason}")]
pub struct BadDeclaration {
    reason: String,
}

impl Declaration {
    pub(crate) fn new(
        name: String,
        description: String,
        parameters: Option<(Raw<'static>, SchemaForm)>,
    ) -> Self {
        let (parameters, form) = match parameters {
            Some((schema, form)) => (Some(schema), form),
            None => (None, SchemaForm::JsonSchema),
        };
        Self { name, description, parameters, response: None, form, others: Map::new() }
    }

    /// Gemini's `FunctionDeclaration`, without the schema of the result.
    pub(crate) fn to_json(&self) -> Value {
        let mut json = Map::new();
        json.insert("name".to_owned(), self.name.clone().into());
        if !self.description.is_empty() {
            json.insert("description".to_owned(), self.description.clone().into());
        }
        if let Some(schema) = self.parameters.as_ref().and_then(Raw::to) {
            let key = match self.form {
                SchemaForm::JsonSchema => "parametersJsonSchema",
                SchemaForm::Gemini => "parameters",
            };
            json.insert(key.to_owned(), schema);
        }
        json.extend(self.others.clone());
        Value::Object(json)
    }

    /// Name of the member that holds the schema of the result.
    pub(crate) fn response_key(&self) -> &'static str {
        match self.form {
            SchemaForm::JsonSchema => "responseJsonSchema",
            SchemaForm::Gemini => "response",
        }
    }

    /// Parses Gemini's `FunctionDeclaration`, with names in camelCase or snake_case, or MCP's `Tool`.
    pub(crate) fn parse(json: &Value) -> Result<Self, BadDeclaration> {
        let refuse = |reason: String| BadDeclaration { reason };
        let Value::Object(members) = json else {
            return Err(refuse("it is not an object".to_owned()));
        };
        let mut read = Members::default();
        for (key, value) in members {
            read.take(key, value).map_err(refuse)?;
        }
        read.declaration().map_err(refuse)
    }
}

#[derive(Default)]
struct Members<'a> {
    name: Option<&'a Value>,
    description: Option<&'a Value>,
    parameters: Option<(&'a Map<String, Value>, SchemaForm)>,
    response: Option<(&'a Map<String, Value>, SchemaForm)>,
    others: Map<String, Value>,
}

impl<'a> Members<'a> {
    fn take(&mut self, key: &str, value: &'a Value) -> Result<(), String> {
        if value.is_null() {
            return Ok(());
        }
        let schema = |form| match value {
            Value::Object(schema) => Ok(Some((schema, form))),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Err(format!("`{key}` is not an object")),
        };
        let (slot, schema) = match key {
            "name" => return once(&mut self.name, key, value),
            "description" => return once(&mut self.description, key, value),
            "parameters" => (&mut self.parameters, schema(SchemaForm::Gemini)?),
            "parametersJsonSchema" | "parameters_json_schema" | "inputSchema" | "input_schema" => {
                (&mut self.parameters, schema(SchemaForm::JsonSchema)?)
            }
            "response" => (&mut self.response, schema(SchemaForm::Gemini)?),
            "responseJsonSchema" | "response_json_schema" | "outputSchema" | "output_schema" => {
                (&mut self.response, schema(SchemaForm::JsonSchema)?)
            }
            other => {
                self.others.insert(other.to_owned(), value.clone());
                return Ok(());
            }
        };
        if slot.is_some() {
            return Err(format!("`{key}` is given in two forms"));
        }
        *slot = schema;
        Ok(())
    }

    fn declaration(self) -> Result<Declaration, String> {
        let Some(name) = self.name else { return Err("it has no `name`".to_owned()) };
        let text = |value: &Value, key: &str| {
            let text = value.as_str().map(ToOwned::to_owned);
            text.ok_or_else(|| format!("`{key}` is not a string"))
        };
        let name = text(name, "name")?;
        if name.trim().is_empty() {
            return Err("its `name` is empty".to_owned());
        }
        let description =
            self.description.map(|it| text(it, "description")).transpose()?.unwrap_or_default();
        let form = self.parameters.or(self.response).map_or(SchemaForm::JsonSchema, |it| it.1);
        if self.response.is_some_and(|it| it.1 != form) {
            return Err("`parameters` and `response` are of different forms".to_owned());
        }
        Ok(Declaration {
            name,
            description,
            parameters: self.parameters.and_then(|it| Raw::of(it.0)),
            response: self.response.and_then(|it| Raw::of(it.0)),
            form,
            others: self.others,
        })
    }
}

fn once<'a>(slot: &mut Option<&'a Value>, key: &str, value: &'a Value) -> Result<(), String> {
    if slot.replace(value).is_some() { Err(format!("`{key}` is given twice")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn r012_json_declarations_are_parsed() {
        let json = json!({
            "name": "look",
            "description": "Looks.",
            "parameters": {"type": "OBJECT", "properties": {"at": {"type": "STRING"}}},
            "response": null,
        });
        let declaration = Declaration::parse(&json).unwrap();
        assert_eq!(declaration.form, SchemaForm::Gemini);
        let schema: Value = declaration.parameters.unwrap().to().unwrap();
        assert_eq!(schema, json["parameters"]);

        let json = json!({"name": "look", "parameters_json_schema": {"type": "object"}});
        assert_eq!(Declaration::parse(&json).unwrap().form, SchemaForm::JsonSchema);
    }

    #[test]
    fn r012_other_members_and_mcp_tools_are_accepted() {
        let json = json!({
            "name": "look", "behavior": "NON_BLOCKING", "parameters": {"type": "OBJECT"}, "x": [1],
        });
        assert_eq!(Declaration::parse(&json).unwrap().to_json(), json);
        let mcp = json!({
            "name": "look", "title": "Look", "description": "Looks.",
            "inputSchema": {"type": "object", "properties": {"at": {"type": "string"}}},
            "outputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": true},
        });
        let declaration = Declaration::parse(&mcp).unwrap();
        assert_eq!(declaration.form, SchemaForm::JsonSchema);
        assert!(declaration.response.is_some());
        let want = json!({
            "name": "look", "description": "Looks.", "parametersJsonSchema": mcp["inputSchema"],
            "title": "Look", "annotations": {"readOnlyHint": true},
        });
        assert_eq!(declaration.to_json(), want);
    }

    #[test]
    fn invalid_declarations_name_the_fault() {
        for (json, want) in [
            (json!([]), "it is not an object"),
            (json!({"description": "x"}), "it has no `name`"),
            (json!({"name": ""}), "its `name` is empty"),
            (json!({"name": 1}), "`name` is not a string"),
            (json!({"name": "a", "parameters": []}), "`parameters` is not an object"),
            (
                json!({"name": "a", "parameters": {}, "parametersJsonSchema": {}}),
                "`parametersJsonSchema` is given in two forms",
            ),
        ] {
            let error = Declaration::parse(&json).unwrap_err();
            assert_eq!(error.reason, want);
        }
    }
}
