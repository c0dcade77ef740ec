//! Settings of an answer.

use crate::json::{Raw, Text};

/// Sampling and limits. `None`: the client did not say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings<'a> {
    /// The most tokens that the answer may have.
    pub max_output_tokens: Option<i64>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Nucleus sampling.
    pub top_p: Option<f64>,
    /// Top-k sampling.
    pub top_k: Option<f64>,
    /// Stop sequences.
    pub stop: Vec<Text<'a>>,
    /// For repeatable sampling.
    pub seed: Option<i64>,
    /// Penalty for tokens that occurred at all.
    pub presence_penalty: Option<f64>,
    /// Penalty for tokens by how often they occurred.
    pub frequency_penalty: Option<f64>,
    /// Number of answers.
    pub candidates: Option<i64>,
    /// Number of alternatives for each token; `Some(0)`: only the chosen token's probability.
    pub logprobs: Option<i64>,
}

/// How hard to think, and whether to show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Thinking {
    /// Off, on, or as the model likes.
    pub mode: ThinkingMode,
    /// How hard, in words.
    pub effort: Option<Effort>,
    /// How hard, in tokens (−1: as the model likes).
    pub budget: Option<i64>,
    /// Whether the client wants to see summaries. `None`: it did not say.
    pub show: Option<bool>,
}

/// Whether to think.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThinkingMode {
    /// The client did not say.
    #[default]
    Unset,
    /// Not, or as little as the model can.
    Off,
    /// As much as the effort or budget says, else as the model likes.
    On,
}

/// How hard to think, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// Not at all.
    None,
    /// Nearly not.
    Minimal,
    /// A little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
    /// More.
    XHigh,
    /// All it can.
    Max,
}

/// The form of the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OutputFormat<'a> {
    /// Words.
    #[default]
    Text,
    /// Any JSON object.
    Json,
    /// JSON that follows a schema.
    JsonSchema {
        /// The client's name of the schema.
        name: Option<Text<'a>>,
        /// The client's description of the schema.
        description: Option<Text<'a>>,
        /// The schema.
        schema: Raw<'a>,
        /// How the schema is written.
        form: super::SchemaForm,
    },
}
