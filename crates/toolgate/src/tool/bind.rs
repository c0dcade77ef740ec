//! Parsing of the model's arguments.

use serde::de::DeserializeOwned;

use super::ToolError;

/// Parses arguments. The error names the invalid one.
pub(crate) fn bind<T: DeserializeOwned>(json: &str) -> Result<T, ToolError> {
    let mut reader = serde_json::Deserializer::from_str(json);
    serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let at = error.path().to_string();
        let why = error.into_inner().to_string();
        // The position within a single line of JSON does not help.
        let why = why.split(" at line ").next().unwrap_or_default();
        ToolError::Arguments(if at == "." { why.to_owned() } else { format!("{at}: {why}") })
    })
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only reading matters")]
    struct Trip {
        city: String,
        days: Option<u8>,
        stops: Vec<Stop>,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only reading matters")]
    struct Stop {
        name: String,
    }

    #[track_caller]
    fn check(json: &str, want: &str) {
        assert_eq!(bind::<Trip>(json).unwrap_err().to_string(), want);
    }

    #[test]
    fn errors_name_the_argument() {
        check(r#"{"city":1}"#, "city: invalid type: integer `1`, expected a string");
        check(r#"{"days":1,"stops":[]}"#, "missing field `city`");
        check(r#"{"city":"a","stops":[{"name":"b"},{}]}"#, "stops[1]: missing field `name`");
        check(r#"{"city":"a","days":300}"#, "days: invalid value: integer `300`, expected u8");
        check("[]", "invalid length 0, expected struct Trip with 3 elements");
    }
}
