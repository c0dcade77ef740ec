//! The small bodies: token counts and models.

use super::compose::{count, member, null};
use crate::json::write;

/// Writes the answer to `POST /v1/messages/count_tokens`.
pub fn encode_count(input_tokens: u64) -> Vec<u8> {
    format!("{{\"input_tokens\":{input_tokens}}}").into_bytes()
}

/// A model as `GET /v1/models` shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    /// What requests call it.
    pub id: String,
    /// What people call it.
    pub display_name: String,
    /// When it came out, in seconds since 1970.
    pub created: u64,
    /// The most tokens that it reads.
    pub max_input_tokens: Option<u64>,
    /// The most tokens that it writes.
    pub max_tokens: Option<u64>,
}

/// Writes the answer to `GET /v1/models/{id}`.
pub fn encode_model(model: &Model) -> Vec<u8> {
    let mut out = Vec::new();
    write_model(&mut out, model);
    out
}

/// Writes the answer to `GET /v1/models`. `has_more`: there are models after the last of these.
pub fn encode_models(models: &[Model], has_more: bool) -> Vec<u8> {
    let mut out = b"{\"data\":[".to_vec();
    for model in models {
        write::comma(&mut out);
        write_model(&mut out, model);
    }
    out.extend_from_slice(b"],\"has_more\":");
    out.extend_from_slice(if has_more { b"true" } else { b"false" });
    for (name, model) in [("first_id", models.first()), ("last_id", models.last())] {
        match model {
            Some(model) => member(&mut out, name, &model.id),
            None => {
                write::key(&mut out, name);
                out.extend_from_slice(b"null");
            }
        }
    }
    out.push(b'}');
    out
}

fn write_model(out: &mut Vec<u8>, model: &Model) {
    out.push(b'{');
    member(out, "type", "model");
    member(out, "id", &model.id);
    member(out, "display_name", &model.display_name);
    member(out, "created_at", &rfc3339(model.created));
    member(out, "lifecycle", "active");
    for (name, limit) in
        [("max_input_tokens", model.max_input_tokens), ("max_tokens", model.max_tokens)]
    {
        match limit {
            Some(limit) => count(out, name, limit),
            None => null(out, name),
        }
    }
    for name in ["capabilities", "line", "deprecated_at", "retires_at"] {
        null(out, name);
    }
    out.push(b'}');
}

/// `2026-11-15T00:00:00Z`
fn rfc3339(seconds: u64) -> String {
    // The calendar repeats every 400 years, and is simplest when a year begins in March.
    let (days, time) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (time / 3_600, time / 60 % 60, time % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(rfc3339(1_794_700_799), "2026-11-14T23:59:59Z");
    }

    #[test]
    fn counts_and_models() {
        assert_eq!(encode_count(7), br#"{"input_tokens":7}"#);
        let model = Model {
            id: "gemini-3-pro".into(),
            display_name: "Gemini 3 \"Pro\"".into(),
            created: 0,
            max_input_tokens: Some(1_048_576),
            max_tokens: None,
        };
        let one: serde_json::Value = serde_json::from_slice(&encode_model(&model)).unwrap();
        assert_eq!(one["type"], "model");
        assert_eq!(one["max_input_tokens"], 1_048_576);
        let all: serde_json::Value =
            serde_json::from_slice(&encode_models(std::slice::from_ref(&model), false)).unwrap();
        assert_eq!(all["data"][0], one);
        assert_eq!(all["last_id"], "gemini-3-pro");
        let none: serde_json::Value = serde_json::from_slice(&encode_models(&[], false)).unwrap();
        assert!(none["first_id"].is_null());
    }
}
