//! Addressees of requests and issuers of signatures.

/// Google service that runs a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Backend {
    /// The Gemini Developer API (`generativelanguage.googleapis.com`).
    Developer,
    /// Vertex AI (`aiplatform.googleapis.com`).
    Vertex,
}

/// Model and service that a request is sent to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// The model by Gemini's name, without `models/`.
    pub model: String,
    /// The service.
    pub backend: Backend,
}

impl Target {
    /// Issuer of the signatures in this target's answers.
    pub fn issuer(&self) -> Issuer {
        Issuer { model: self.model.clone(), backend: self.backend }
    }
}

/// Model and service that issued a signature. No other model accepts it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Issuer {
    /// The model, by Gemini's name.
    pub model: String,
    /// The service.
    pub backend: Backend,
}
