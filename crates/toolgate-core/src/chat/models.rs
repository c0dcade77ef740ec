//! `GET /v1/models` and `GET /v1/models/{id}`.

use crate::json::write;

/// A model that clients may name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelInfo {
    /// The name.
    pub id: String,
    /// Time of creation, in seconds since 1970; 0 if unknown.
    pub created: u64,
    /// Whose it is.
    pub owned_by: String,
}

/// The list of all models.
pub fn encode_models(models: &[ModelInfo]) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 + models.len() * 96);
    out.extend_from_slice(b"{\"object\":\"list\",\"data\":[");
    for model in models {
        write::comma(&mut out);
        write_model(&mut out, model);
    }
    out.extend_from_slice(b"]}");
    out
}

/// One model.
pub fn encode_model(model: &ModelInfo) -> Vec<u8> {
    let mut out = Vec::with_capacity(96);
    write_model(&mut out, model);
    out
}

fn write_model(out: &mut Vec<u8>, model: &ModelInfo) {
    out.push(b'{');
    write::key(out, "id");
    write::string(out, &model.id);
    write::key(out, "object");
    write::string(out, "model");
    write::key(out, "created");
    write::integer(out, model.created);
    write::key(out, "owned_by");
    write::string(out, &model.owned_by);
    out.push(b'}');
}
