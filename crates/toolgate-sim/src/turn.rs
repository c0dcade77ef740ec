//! What the model says, before any generation has put it into chunks.

use std::time::Duration;

use serde_json::{Map, Value};

/// One turn of the model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turn {
    /// What it says, in order.
    pub items: Vec<Item>,
    /// Why it ends; `STOP` unless said.
    pub finish: Option<String>,
    /// `finishMessage`
    pub finish_message: Option<String>,
    /// The prompt was blocked for this reason: nothing is said at all.
    pub blocked: Option<String>,
    /// Further members of the candidate (`groundingMetadata`), given with its end.
    pub candidate: Map<String, Value>,
    /// How long it thinks before the first byte.
    pub delay: Duration,
    /// How long it waits between chunks.
    pub pace: Duration,
}

/// A piece of a turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// What it is.
    pub what: What,
    /// Whether it carries a signature; `None`: as its generation does it.
    pub signed: Option<bool>,
}

/// What a piece of a turn is.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A summary of thinking; given only where the request asks for it.
    Thought(String),
    /// Words, which a stream cuts into chunks.
    Text(String),
    /// Words that are one chunk.
    Chunk(String),
    /// A call.
    Call {
        /// Whose.
        name: String,
        /// With what.
        args: Map<String, Value>,
    },
    /// Code that Google ran, and what came of it.
    Code {
        /// The Python code.
        code: String,
        /// Its output.
        output: String,
    },
    /// Any part, as it is, in a chunk of its own.
    Part(Value),
}

impl From<What> for Item {
    fn from(what: What) -> Self {
        Self { what, signed: None }
    }
}

impl Turn {
    /// Only words.
    pub fn text(text: impl Into<String>) -> Self {
        Self { items: vec![What::Text(text.into()).into()], ..Self::default() }
    }

    /// Whether it calls a function.
    pub fn has_calls(&self) -> bool {
        self.items.iter().any(|item| matches!(item.what, What::Call { .. }))
    }
}
