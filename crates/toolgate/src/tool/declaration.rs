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
        Self { name, description, parameters, response: None, form }
    }

    /// Parses Gemini's `FunctionDeclaration`, with names in camelCase or snake_case.
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
            "parametersJsonSchema" | "parameters_json_schema" => {
                (&mut self.parameters, schema(SchemaForm::JsonSchema)?)
            }
            "response" => (&mut self.response, schema(SchemaForm::Gemini)?),
            "responseJsonSchema" | "response_json_schema" => {
                (&mut self.response, schema(SchemaForm::JsonSchema)?)
            }
            other => return Err(format!("unknown member `{other}`")),
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
    fn invalid_declarations_name_the_fault() {
        for (json, want) in [
            (json!([]), "it is not an object"),
            (json!({"description": "x"}), "it has no `name`"),
            (json!({"name": ""}), "its `name` is empty"),
            (json!({"name": 1}), "`name` is not a string"),
            (json!({"name": "a", "parameters": []}), "`parameters` is not an object"),
            (json!({"name": "a", "behaviour": "x"}), "unknown member `behaviour`"),
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
