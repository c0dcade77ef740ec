//! Messages, fields and enums of a request, from Google's discovery documents.

use std::sync::LazyLock;

use toolgate_core::canon::Backend;

/// The messages and enums of one back end.
#[derive(Debug)]
pub(crate) struct Tables {
    /// Package of the type names in error texts.
    pub(crate) package: &'static str,
    messages: Vec<Message>,
    enums: Vec<Enum>,
}

/// A message with its fields.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) name: &'static str,
    /// Names of fields in both spellings, sorted, with indexes into `fields`.
    names: Vec<(String, usize)>,
    fields: Vec<Field>,
}

/// A field of a message.
#[derive(Debug)]
pub(crate) struct Field {
    /// Name in lowerCamelCase.
    pub(crate) name: &'static str,
    /// Name in snake_case, which error texts use.
    pub(crate) snake: String,
    pub(crate) shape: Shape,
    pub(crate) kind: Kind,
    /// The oneof that the field belongs to.
    pub(crate) oneof: Option<String>,
}

/// Cardinality of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    One,
    List,
    Map,
}

/// Type of a field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Bytes,
    Double,
    Duration,
    Enum(&'static str),
    Float,
    Int32,
    Int64,
    Message(&'static str),
    String,
    Struct,
    Timestamp,
    Value,
}

/// An enum with its values.
#[derive(Debug)]
struct Enum {
    name: &'static str,
    values: Vec<&'static str>,
}

impl Tables {
    /// Returns the tables of a back end.
    pub(crate) fn of(backend: Backend) -> &'static Self {
        static DEVELOPER: LazyLock<Tables> =
            LazyLock::new(|| read("[developer]", "google.ai.generativelanguage.v1beta"));
        static VERTEX: LazyLock<Tables> =
            LazyLock::new(|| read("[vertex]", "google.cloud.aiplatform.v1beta1"));
        match backend {
            Backend::Developer => &DEVELOPER,
            Backend::Vertex => &VERTEX,
        }
    }

    pub(crate) fn message(&self, name: &str) -> Option<&Message> {
        let at = self.messages.binary_search_by(|message| message.name.cmp(name)).ok()?;
        self.messages.get(at)
    }

    /// Returns the canonical spelling of a value. Case is ignored, and digits are an index.
    pub(crate) fn enum_value(&self, name: &str, given: &str) -> Option<&'static str> {
        let at = self.enums.binary_search_by(|known| known.name.cmp(name)).ok()?;
        let values = &self.enums.get(at)?.values;
        if let Ok(number) = given.parse::<usize>() {
            return values.get(number).copied();
        }
        let given = given.replace('-', "_");
        values.iter().copied().find(|value| value.eq_ignore_ascii_case(&given))
    }

    /// Returns the value with this number. Proto enums are open: an unknown number is the first value.
    pub(crate) fn enum_number(&self, name: &str, number: i64) -> Option<&'static str> {
        let at = self.enums.binary_search_by(|known| known.name.cmp(name)).ok()?;
        let values = &self.enums.get(at)?.values;
        usize::try_from(number)
            .ok()
            .and_then(|number| values.get(number))
            .or_else(|| values.first())
            .copied()
    }
}

impl Message {
    /// Returns the field with this name in either spelling.
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        let at = self.names.binary_search_by(|(known, _)| known.as_str().cmp(name)).ok()?;
        self.fields.get(self.names.get(at)?.1)
    }
}

const FIELDS_TABLE: &str = include_str!("fields.txt");

fn read(section: &str, package: &'static str) -> Tables {
    let mut tables = Tables { package, messages: Vec::new(), enums: Vec::new() };
    let lines = FIELDS_TABLE.lines().skip_while(|line| *line != section).skip(1);
    for line in lines.take_while(|line| !line.starts_with('[')) {
        let mut words = line.split_whitespace();
        match (line.starts_with(' '), words.next()) {
            (true, Some(name)) => {
                if let Some(message) = tables.messages.last_mut() {
                    message.fields.push(field(name, words.next().unwrap_or(""), words.next()));
                }
            }
            (false, Some("message")) => tables.messages.push(Message {
                name: words.next().unwrap_or(""),
                names: Vec::new(),
                fields: Vec::new(),
            }),
            (false, Some("enum")) => tables
                .enums
                .push(Enum { name: words.next().unwrap_or(""), values: words.collect() }),
            _ => {}
        }
    }
    for message in &mut tables.messages {
        for (at, field) in message.fields.iter().enumerate() {
            message.names.push((field.name.to_owned(), at));
            if field.snake != field.name {
                message.names.push((field.snake.clone(), at));
            }
        }
        message.names.sort();
    }
    tables.messages.sort_by_key(|message| message.name);
    tables.enums.sort_by_key(|known| known.name);
    tables
}

fn field(name: &'static str, kind: &'static str, oneof: Option<&'static str>) -> Field {
    let (shape, kind) = match kind.split_at_checked(2) {
        Some(("[]", kind)) => (Shape::List, kind),
        Some(("{}", kind)) => (Shape::Map, kind),
        _ => (Shape::One, kind),
    };
    let kind = match kind {
        "bool" => Kind::Bool,
        "bytes" => Kind::Bytes,
        "double" => Kind::Double,
        "duration" => Kind::Duration,
        "float" => Kind::Float,
        "int32" => Kind::Int32,
        "int64" => Kind::Int64,
        "string" => Kind::String,
        "struct" => Kind::Struct,
        "timestamp" => Kind::Timestamp,
        "value" => Kind::Value,
        _ => kind.strip_prefix("enum:").map_or(Kind::Message(kind), Kind::Enum),
    };
    let snake = snake_case(name);
    let oneof =
        oneof.map(|group| if group == "?" { format!("_{snake}") } else { group.to_owned() });
    Field { name, snake, shape, kind, oneof }
}

/// `parametersJsonSchema` → `parameters_json_schema`
pub(crate) fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_in_the_table_is_defined() {
        for backend in [Backend::Developer, Backend::Vertex] {
            let tables = Tables::of(backend);
            assert!(tables.messages.len() > 50, "{backend:?}");
            for message in &tables.messages {
                for field in &message.fields {
                    let known = match field.kind {
                        Kind::Message(name) => tables.message(name).is_some(),
                        Kind::Enum(name) => tables.enum_value(name, "0").is_some(),
                        Kind::Bool
                        | Kind::Bytes
                        | Kind::Double
                        | Kind::Duration
                        | Kind::Float
                        | Kind::Int32
                        | Kind::Int64
                        | Kind::String
                        | Kind::Struct
                        | Kind::Timestamp
                        | Kind::Value => true,
                    };
                    assert!(known, "{backend:?} {}.{}: {:?}", message.name, field.name, field.kind);
                }
            }
        }
    }

    #[test]
    fn fields_are_found_in_both_spellings() {
        let tables = Tables::of(Backend::Developer);
        let message = tables.message("FunctionDeclaration").unwrap();
        let camel = message.field("parametersJsonSchema").unwrap();
        assert_eq!(message.field("parameters_json_schema").unwrap().name, camel.name);
        assert_eq!(camel.oneof.as_deref(), Some("_parameters_json_schema"));
        assert!(message.field("strict").is_none());
        assert!(
            tables
                .message("ToolConfig")
                .unwrap()
                .field("includeServerSideToolInvocations")
                .is_some()
        );
        let vertex = Tables::of(Backend::Vertex);
        assert!(
            vertex
                .message("ToolConfig")
                .unwrap()
                .field("includeServerSideToolInvocations")
                .is_none()
        );
        assert!(vertex.message("Schema").unwrap().field("additionalProperties").is_some());
    }
}
