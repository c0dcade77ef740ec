//! Errors and losses that name a path in the client's body.

use super::{BadRequest, Loss, LossCode, Losses};
use crate::json::{Path, ReadError, UnknownFields};

impl Path<'_> {
    /// Makes an error that names this path.
    pub fn bad(&self, reason: impl Into<String>) -> BadRequest {
        BadRequest { at: self.to_string(), reason: reason.into() }
    }

    /// Makes a loss that names this path.
    pub fn loss(&self, code: LossCode, detail: impl Into<String>) -> Loss {
        Loss { at: self.to_string(), code, detail: detail.into(), tool: None }
    }
}

impl From<ReadError> for BadRequest {
    fn from(error: ReadError) -> Self {
        let reason = error.to_string();
        Self { at: error.at, reason }
    }
}

impl UnknownFields for Losses {
    fn add(&mut self, path: &dyn Fn() -> String) {
        self.add_with(LossCode::UnknownField, || Loss {
            at: path(),
            code: LossCode::UnknownField,
            detail: "toolgate does not know this field; it was left out".to_owned(),
            tool: None,
        });
    }

    fn add_unnamed(&mut self, count: usize) {
        self.omit(LossCode::UnknownField, count);
    }
}
