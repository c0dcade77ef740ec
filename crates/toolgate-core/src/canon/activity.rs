//! Tools that the upstream runs itself.

use std::borrow::Cow;

use super::Issuer;
use crate::json::{Raw, Text};

/// A step that the upstream took itself: a search, code that it ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerActivity<'a> {
    /// The step, as far as dialects can show it.
    pub action: ServerAction<'a>,
    /// The upstream's own name of the step.
    pub kind: Cow<'a, str>,
    /// The upstream's own JSON of the step.
    pub body: Raw<'a>,
    /// The whole part, signature included, to be sent back unchanged.
    pub part: Raw<'a>,
    /// Whether the part carries a signature.
    pub is_signed: bool,
    /// Issuer of the part. No other model gets it back.
    pub issuer: Option<Issuer>,
}

/// A step that the upstream took itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerAction<'a> {
    /// Code that the model runs.
    Code {
        /// Identifier that the result repeats, where there is one.
        id: Option<Text<'a>>,
        /// The program.
        code: Text<'a>,
    },
    /// Result of the code before it.
    CodeResult {
        /// Identifier of the code, where there is one.
        id: Option<Text<'a>>,
        /// How the program ended.
        outcome: CodeOutcome,
        /// Its output, or its error message.
        output: Text<'a>,
    },
    /// A search on the web for these queries.
    Search(Vec<String>),
    /// A page that the model read.
    OpenPage(Text<'a>),
    /// A step without an equivalent in other dialects.
    Other,
}

/// How executed code ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeOutcome {
    /// Without an error.
    Succeeded,
    /// With an error.
    Failed,
    /// It was stopped because it took too long.
    TimedOut,
}

impl ServerActivity<'_> {
    /// A copy that owns its JSON.
    pub fn into_owned(self) -> ServerActivity<'static> {
        ServerActivity {
            action: self.action.into_owned(),
            kind: Cow::Owned(self.kind.into_owned()),
            body: self.body.into_owned(),
            part: self.part.into_owned(),
            is_signed: self.is_signed,
            issuer: self.issuer,
        }
    }
}

impl ServerAction<'_> {
    /// A copy that owns its text.
    pub fn into_owned(self) -> ServerAction<'static> {
        match self {
            Self::Code { id, code } => {
                ServerAction::Code { id: id.map(Text::into_owned), code: code.into_owned() }
            }
            Self::CodeResult { id, outcome, output } => ServerAction::CodeResult {
                id: id.map(Text::into_owned),
                outcome,
                output: output.into_owned(),
            },
            Self::Search(queries) => ServerAction::Search(queries),
            Self::OpenPage(url) => ServerAction::OpenPage(url.into_owned()),
            Self::Other => ServerAction::Other,
        }
    }
}
