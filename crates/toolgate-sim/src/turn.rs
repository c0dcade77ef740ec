//! Turns of the model, before they are split into chunks.

use std::time::Duration;

use serde_json::{Map, Value};

/// One turn of the model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turn {
    /// The items, in order.
    pub items: Vec<Item>,
    /// The finish reason; `STOP` by default.
    pub finish: Option<String>,
    /// `finishMessage`
    pub finish_message: Option<String>,
    /// Reason for blocking the prompt; the answer then has no candidate.
    pub blocked: Option<String>,
    /// Further members of the last candidate (`groundingMetadata`).
    pub candidate: Map<String, Value>,
    /// Delay before the first byte.
    pub delay: Duration,
    /// Delay between chunks.
    pub pace: Duration,
}

/// An item of a turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// The kind, with its data.
    pub kind: ItemKind,
    /// Whether it carries a signature; `None`: the generation's default.
    pub signed: Option<bool>,
}

/// Kind of an item, with its data.
#[derive(Clone, Debug, PartialEq)]
pub enum ItemKind {
    /// A thought summary; sent only if the request includes thoughts.
    Thought(String),
    /// Text, which a stream splits into chunks.
    Text(String),
    /// Text that is a single chunk.
    Chunk(String),
    /// A call.
    Call {
        /// Name of the function.
        name: String,
        /// The arguments.
        args: Map<String, Value>,
    },
    /// Code that Google ran, with its output.
    Code {
        /// The Python code.
        code: String,
        /// Its output.
        output: String,
    },
    /// Any part in Google's JSON, as a chunk of its own.
    Part(Value),
}

impl From<ItemKind> for Item {
    fn from(kind: ItemKind) -> Self {
        Self { kind, signed: None }
    }
}

impl Turn {
    /// Creates a turn with a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { items: vec![ItemKind::Text(text.into()).into()], ..Self::default() }
    }

    /// Whether the turn has a call.
    pub fn has_calls(&self) -> bool {
        self.items.iter().any(|item| matches!(item.kind, ItemKind::Call { .. }))
    }
}
