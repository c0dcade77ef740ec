//! What could not be carried over, and what was changed on the way.

use serde::Serialize;

/// Losses in the order they were met.
pub type Losses = Vec<Loss>;

/// Something that the other side will not see as it was said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// Where: a path in the client's body (`tools[3].input_schema.properties.a`) or in the
    /// model's answer (`calls[0].args.count`).
    pub at: String,
    /// What sort of loss.
    pub code: LossCode,
    /// For a person: what happened to it.
    pub detail: String,
    /// The tool that it is about, where it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
}

impl Loss {
    /// Which call of the model's answer it is about, and the rest of the place: `calls[2].args.a`.
    pub fn call(&self) -> Option<(usize, &str)> {
        let (number, rest) = self.at.strip_prefix("calls[")?.split_once(']')?;
        Some((number.parse().ok()?, rest))
    }
}

/// What sort of loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LossCode {
    /// An argument of a call was mended to fit the tool's schema.
    ArgumentRepaired,
    /// An argument of a call does not fit the tool's schema and could not be mended.
    ArgumentViolation,
    /// The model wrote a call as text instead of calling; it was passed on as text.
    CallAsText,
    /// A call was left out of the answer.
    CallDropped,
    /// A value was changed to one that the target accepts.
    Changed,
    /// A signature of somebody else's, or for another model, was left out.
    ForeignSignature,
    /// The field is known but means nothing to the target.
    Ignored,
    /// A call has no result in the conversation; an error result was put in.
    MissingResult,
    /// A tool goes by another name upstream.
    NameAliased,
    /// The model wrote a tool's name differently; it was mended.
    NameRepaired,
    /// A result has no call in the conversation; it was kept as text.
    OrphanResult,
    /// A part of a turn cannot be said to the target.
    PartDropped,
    /// A call has no signature; Google's placeholder was sent.
    PlaceholderSignature,
    /// A schema keyword could not be kept as it is.
    SchemaKeyword,
    /// A tool was left out.
    ToolDropped,
    /// A field that this version does not know.
    UnknownField,
    /// The model called a tool that was not declared.
    UnknownTool,
}
