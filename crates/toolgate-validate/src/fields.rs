//! Which fields a request may have: Google's discovery documents, as a table.

use std::sync::LazyLock;

use toolgate_core::gemini::Backend;

/// The messages and enums of one back end.
#[derive(Debug)]
pub(crate) struct Tables {
    /// What stands before a type's name in error texts.
    pub(crate) package: &'static str,
    messages: Vec<Message>,
    enums: Vec<Enum>,
}

/// A message: its name and fields.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) name: &'static str,
    /// Sorted by `key`; every field stands here by both of its names.
    names: Vec<(String, usize)>,
    fields: Vec<Field>,
}

/// A field of a message.
#[derive(Debug)]
pub(crate) struct Field {
    /// lowerCamelCase, as Google writes it.
    pub(crate) name: &'static str,
    /// snake_case, as error texts have it.
    pub(crate) snake: String,
    pub(crate) shape: Shape,
    pub(crate) kind: Kind,
    /// The oneof that the field is in.
    pub(crate) oneof: Option<String>,
}

/// How often a field's value stands there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    One,
    List,
    Map,
}

/// What a field's value is.
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

/// An enum: its name and values.
#[derive(Debug)]
struct Enum {
    name: &'static str,
    values: Vec<&'static str>,
}

impl Tables {
    /// The table of a back end.
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

    /// The value's own spelling: case does not matter, and numbers are places in the list.
    pub(crate) fn enum_value(&self, name: &str, given: &str) -> Option<&'static str> {
        let at = self.enums.binary_search_by(|known| known.name.cmp(name)).ok()?;
        let values = &self.enums.get(at)?.values;
        if let Ok(place) = given.parse::<usize>() {
            return values.get(place).copied();
        }
        let given = given.replace('-', "_");
        values.iter().copied().find(|value| value.eq_ignore_ascii_case(&given))
    }

    /// The value at a place; proto's enums are open, so a place that we do not know is the first.
    pub(crate) fn enum_place(&self, name: &str, place: i64) -> Option<&'static str> {
        let at = self.enums.binary_search_by(|known| known.name.cmp(name)).ok()?;
        let values = &self.enums.get(at)?.values;
        usize::try_from(place)
            .ok()
            .and_then(|place| values.get(place))
            .or_else(|| values.first())
            .copied()
    }
}

impl Message {
    /// The field with this name in either spelling.
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        let at = self.names.binary_search_by(|(known, _)| known.as_str().cmp(name)).ok()?;
        self.fields.get(self.names.get(at)?.1)
    }
}

const TEXT: &str = include_str!("fields.txt");

fn read(section: &str, package: &'static str) -> Tables {
    let mut tables = Tables { package, messages: Vec::new(), enums: Vec::new() };
    let lines = TEXT.lines().skip_while(|line| *line != section).skip(1);
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
    fn every_kind_of_the_table_is_known() {
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
    fn fields_go_by_both_names() {
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
