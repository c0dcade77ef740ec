//! Operations of OpenAPI documents (3.0 and 3.1, as JSON) as HTTP tools.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::HttpTool;
use super::template::{Body, HttpTemplate, TemplateError};
use crate::Definition;
use crate::mcp::Credentials;

/// Deepest reference and deepest schema that is followed.
const MAX_DEPTH: usize = 64;

const METHODS: [&str; 6] = ["get", "head", "post", "put", "patch", "delete"];

/// Name of the argument that holds the body.
const BODY: &str = "body";

/// An OpenAPI document.
#[derive(Clone, Debug)]
pub struct OpenApi {
    document: Value,
    url: String,
}

/// Reason why an operation cannot be a tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenApiError {
    /// The document is no JSON object, or no OpenAPI 3.
    #[error("not an OpenAPI 3 document in JSON: {0}")]
    Document(String),
    /// There is no absolute address.
    #[error("the document has no absolute server URL: set `url`")]
    NoServer,
    /// There is no operation of this id.
    #[error("there is no operation `{0}`")]
    Unknown(String),
    /// An operation has a required parameter in a place that tools cannot fill.
    #[error("operation `{operation}` requires `{parameter}` in {place}, which is not supported")]
    Parameter {
        /// Id of the operation.
        operation: String,
        /// Name of the parameter.
        parameter: String,
        /// `header` or `cookie`.
        place: String,
    },
    /// The body of an operation is not JSON.
    #[error("operation `{0}` requires a body that is not JSON, which is not supported")]
    Body(String),
    /// A reference leads nowhere, or out of the document.
    #[error("reference `{0}` cannot be resolved within the document")]
    Reference(String),
    /// The address of an operation is not valid.
    #[error("operation `{operation}`: {error}")]
    Template {
        /// Id of the operation.
        operation: String,
        /// Fault of its address.
        error: TemplateError,
    },
}

impl OpenApi {
    /// Reads a document. `url` is used instead of the server in it.
    ///
    /// # Errors
    /// Fails if the text is no OpenAPI 3 document or there is no absolute URL.
    pub fn new(text: &str, url: Option<&str>) -> Result<Self, OpenApiError> {
        let document: Value = serde_json::from_str(text)
            .map_err(|error| OpenApiError::Document(error.to_string()))?;
        let version = document.get("openapi").and_then(Value::as_str).unwrap_or_default();
        if !version.starts_with("3.") {
            return Err(OpenApiError::Document("`openapi` is not 3.x".to_owned()));
        }
        let server = document.pointer("/servers/0/url").and_then(Value::as_str);
        let url = url.or(server).unwrap_or_default().trim_end_matches('/').to_owned();
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(OpenApiError::NoServer);
        }
        Ok(Self { document, url })
    }

    /// Makes a tool of an operation.
    ///
    /// # Errors
    /// Fails if there is no such operation, or it needs something that a tool cannot give.
    pub fn tool(&self, id: &str, credentials: &Credentials) -> Result<HttpTool, OpenApiError> {
        let (path, method, item, operation) = self.find(id)?;
        let mut properties = Map::new();
        let mut required = Vec::new();
        let mut query = Vec::new();
        let shared = item.get("parameters").and_then(Value::as_array).into_iter().flatten();
        let own = operation.get("parameters").and_then(Value::as_array).into_iter().flatten();
        for parameter in shared.chain(own) {
            let parameter = self.resolve(parameter)?;
            let text = |name: &str| parameter.get(name).and_then(Value::as_str).unwrap_or_default();
            let (name, place) = (text("name").to_owned(), text("in").to_owned());
            let is_required = parameter.get("required").and_then(Value::as_bool).unwrap_or(false);
            match place.as_str() {
                "path" => required.push(name.clone()),
                "query" => {
                    query.push((name.clone(), format!("{{{name}}}")));
                    if is_required {
                        required.push(name.clone());
                    }
                }
                _ if is_required => {
                    return Err(OpenApiError::Parameter {
                        operation: id.to_owned(),
                        parameter: name,
                        place,
                    });
                }
                _ => continue,
            }
            let mut schema = parameter.get("schema").cloned().unwrap_or_else(|| json!({}));
            let description = parameter.get("description");
            if let (Some(schema), Some(description)) = (schema.as_object_mut(), description) {
                schema.entry("description").or_insert_with(|| description.clone());
            }
            properties.insert(name, schema);
        }
        let body = self.body(id, operation, &mut properties, &mut required)?;
        let request = format!("{} {}{path}", method.to_uppercase(), self.url);
        let template = HttpTemplate::new(&request, query, body)
            .map_err(|error| OpenApiError::Template { operation: id.to_owned(), error })?;
        required.sort();
        required.dedup();
        let mut schema =
            json!({ "type": "object", "properties": properties, "required": required });
        let mut used = BTreeSet::new();
        rewrite(&mut schema, &mut used, 0);
        self.add_definitions(&mut schema, used)?;
        let text = |name: &str| operation.get(name).and_then(Value::as_str);
        let description = text("description").or_else(|| text("summary")).unwrap_or_default();
        let schema = serde_json::value::to_raw_value(&schema)
            .map_err(|error| OpenApiError::Document(error.to_string()))?;
        Ok(HttpTool {
            name: id.to_owned(),
            definition: Definition {
                title: text("summary").map(ToOwned::to_owned),
                ..Definition::new(description, schema)
            },
            template,
            credentials: credentials.clone(),
        })
    }

    /// Finds an operation: its path, method, path item and the operation itself.
    fn find(&self, id: &str) -> Result<(&str, &str, &Value, &Value), OpenApiError> {
        let paths = self.document.get("paths").and_then(Value::as_object);
        for (path, item) in paths.into_iter().flatten() {
            for method in METHODS {
                let operation = item.get(method);
                let name = operation.and_then(|it| it.get("operationId")).and_then(Value::as_str);
                if let Some(operation) = operation.filter(|_| name == Some(id)) {
                    return Ok((path, method, item, operation));
                }
            }
        }
        Err(OpenApiError::Unknown(id.to_owned()))
    }

    fn body(
        &self,
        id: &str,
        operation: &Value,
        properties: &mut Map<String, Value>,
        required: &mut Vec<String>,
    ) -> Result<Body, OpenApiError> {
        let Some(body) = operation.get("requestBody") else { return Ok(Body::None) };
        let body = self.resolve(body)?;
        let is_required = body.get("required").and_then(Value::as_bool).unwrap_or(false);
        let content = body.get("content").and_then(|it| it.get("application/json"));
        let Some(content) = content else {
            return if is_required {
                Err(OpenApiError::Body(id.to_owned()))
            } else {
                Ok(Body::None)
            };
        };
        // A parameter may have the same name.
        let name = if properties.contains_key(BODY) { "request_body" } else { BODY };
        let schema = content.get("schema").cloned().unwrap_or_else(|| json!({}));
        properties.insert(name.to_owned(), schema);
        if is_required {
            required.push(name.to_owned());
        }
        Ok(Body::Argument(name.to_owned()))
    }

    /// Follows references within the document.
    fn resolve<'a>(&'a self, mut value: &'a Value) -> Result<&'a Value, OpenApiError> {
        for _ in 0..MAX_DEPTH {
            let Some(reference) = value.get("$ref").and_then(Value::as_str) else {
                return Ok(value);
            };
            let target = reference.strip_prefix('#').and_then(|it| self.document.pointer(it));
            value = target.ok_or_else(|| OpenApiError::Reference(reference.to_owned()))?;
        }
        Err(OpenApiError::Reference("a reference to itself".to_owned()))
    }

    /// Adds the schemas that a schema refers to, and those that they refer to.
    fn add_definitions(
        &self,
        schema: &mut Value,
        mut wanted: BTreeSet<String>,
    ) -> Result<(), OpenApiError> {
        let mut definitions = Map::new();
        while let Some(name) = wanted.pop_first() {
            if definitions.contains_key(&name) {
                continue;
            }
            let found = self.document.pointer(&format!("/components/schemas/{name}"));
            let mut found = found.cloned().ok_or_else(|| OpenApiError::Reference(name.clone()))?;
            rewrite(&mut found, &mut wanted, 0);
            definitions.insert(name, found);
        }
        if !definitions.is_empty()
            && let Some(schema) = schema.as_object_mut()
        {
            schema.insert("$defs".to_owned(), definitions.into());
        }
        Ok(())
    }
}

/// Rewrites a schema of OpenAPI to JSON Schema: references point to `$defs`, `nullable` becomes a type.
fn rewrite(schema: &mut Value, used: &mut BTreeSet<String>, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    match schema {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get_mut("$ref")
                && let Some(name) = reference.strip_prefix("#/components/schemas/")
            {
                used.insert(name.to_owned());
                *reference = format!("#/$defs/{name}");
            }
            let nullable = members.shift_remove("nullable") == Some(Value::Bool(true));
            if let (true, Some(Value::String(kind))) = (nullable, members.get("type")) {
                let kinds = json!([kind, "null"]);
                members.insert("type".to_owned(), kinds);
            }
            for member in members.values_mut() {
                rewrite(member, used, depth + 1);
            }
        }
        Value::Array(items) => {
            for item in items {
                rewrite(item, used, depth + 1);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = r##"{
        "openapi": "3.0.3",
        "servers": [{ "url": "https://crm.example/v1/" }],
        "paths": {
            "/customers/{id}": {
                "parameters": [{ "$ref": "#/components/parameters/Id" }],
                "get": {
                    "operationId": "getCustomer", "summary": "Gets a customer.",
                    "parameters": [
                        { "name": "fields", "in": "query", "schema": { "type": "array", "items": { "type": "string" } } },
                        { "name": "X-Trace", "in": "header", "schema": { "type": "string" } }
                    ]
                },
                "put": {
                    "operationId": "putCustomer", "description": "Changes a customer.",
                    "requestBody": { "required": true, "content": { "application/json": {
                        "schema": { "$ref": "#/components/schemas/Customer" } } } }
                },
                "delete": {
                    "operationId": "signed",
                    "parameters": [{ "name": "X-Sig", "in": "header", "required": true }]
                }
            }
        },
        "components": {
            "parameters": { "Id": { "name": "id", "in": "path", "required": true, "description": "Customer id.", "schema": { "type": "integer" } } },
            "schemas": {
                "Customer": { "type": "object", "properties": {
                    "name": { "type": "string", "nullable": true },
                    "parent": { "$ref": "#/components/schemas/Customer" },
                    "tags": { "type": "array", "items": { "$ref": "#/components/schemas/Tag" } } } },
                "Tag": { "type": "string" },
                "Unused": { "type": "string" }
            }
        }
    }"##;

    #[test]
    fn operations_become_tools() {
        let api = OpenApi::new(DOCUMENT, None).unwrap();
        let tool = api.tool("getCustomer", &Credentials::default()).unwrap();
        let schema: Value = serde_json::from_str(tool.definition.input_schema.get()).unwrap();
        assert_eq!(
            schema,
            json!({
                "type": "object",
                "properties": {
                    "id": { "type": "integer", "description": "Customer id." },
                    "fields": { "type": "array", "items": { "type": "string" } },
                },
                "required": ["id"],
            })
        );
        let arguments = serde_json::value::to_raw_value(&json!({ "id": 7, "fields": ["a", "b"] }));
        let filled = tool.template.fill(&arguments.unwrap()).unwrap();
        assert_eq!(filled.uri.to_string(), "https://crm.example/v1/customers/7?fields=a&fields=b");
    }

    #[test]
    fn t19_references_are_kept_within_the_schema() {
        let api = OpenApi::new(DOCUMENT, Some("http://127.0.0.1:1")).unwrap();
        let tool = api.tool("putCustomer", &Credentials::default()).unwrap();
        let schema: Value = serde_json::from_str(tool.definition.input_schema.get()).unwrap();
        assert_eq!(schema["properties"]["body"]["$ref"], "#/$defs/Customer");
        assert_eq!(
            schema["$defs"]["Customer"]["properties"]["name"]["type"],
            json!(["string", "null"])
        );
        assert!(schema["$defs"]["Tag"].is_object() && schema["$defs"]["Unused"].is_null());
        let arguments = serde_json::value::RawValue::from_string(
            r#"{"id":7,"body":{"name":"A","n":1e2}}"#.to_owned(),
        );
        let filled = tool.template.fill(&arguments.unwrap()).unwrap();
        assert_eq!(filled.body.as_deref(), Some(r#"{"name":"A","n":1e2}"#));
        assert_eq!(filled.uri.to_string(), "http://127.0.0.1:1/customers/7");
    }

    #[test]
    fn what_a_tool_cannot_do_is_an_error() {
        let api = OpenApi::new(DOCUMENT, None).unwrap();
        let tool = |id: &str| api.tool(id, &Credentials::default()).map(|_| ());
        assert!(matches!(tool("nothing"), Err(OpenApiError::Unknown(_))));
        assert!(matches!(tool("signed"), Err(OpenApiError::Parameter { .. })));
        assert!(matches!(OpenApi::new("openapi: 3.0.0", None), Err(OpenApiError::Document(_))));
        assert!(matches!(
            OpenApi::new(r#"{"openapi":"3.1.0"}"#, None),
            Err(OpenApiError::NoServer)
        ));
        assert!(OpenApi::new(r#"{"swagger":"2.0"}"#, None).is_err());
    }
}
