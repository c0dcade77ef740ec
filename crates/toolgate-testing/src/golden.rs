//! The golden files of `toolgate-core`.

use std::path::{Path, PathBuf};

use serde_json::Value;
use toolgate_core::translate::Dialect;

/// Folder of the golden files.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../toolgate-core/tests/golden")
}

/// The files of a folder of golden inputs, with their scenarios' names.
pub fn inputs(kind: &str, ending: &str) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for file in std::fs::read_dir(folder().join(kind)).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if let Some(scenario) = name.strip_suffix(ending) {
            files.push((scenario.to_owned(), std::fs::read(&path).unwrap()));
        }
    }
    files.sort();
    assert!(!files.is_empty(), "nothing in {kind}");
    files
}

/// Every golden stream.
pub fn streams() -> Vec<(String, Vec<u8>)> {
    inputs("stream", ".gemini.sse")
}

/// Every golden body.
pub fn bodies() -> Vec<(String, Vec<u8>)> {
    inputs("unary", ".gemini.json")
}

/// The golden request of a dialect.
pub fn request(dialect: Dialect) -> String {
    let file = match dialect {
        Dialect::Anthropic => "tools.anthropic.json",
        Dialect::Chat => "tools.chat.json",
        Dialect::Gemini => "tools.gemini.json",
        Dialect::Responses => "tools.responses.json",
    };
    std::fs::read_to_string(folder().join(file)).unwrap()
}

/// A file of the golden folder.
#[track_caller]
pub fn file(path: &str) -> Vec<u8> {
    let path = folder().join(path);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A golden stream of Gemini.
#[track_caller]
pub fn stream(name: &str) -> String {
    String::from_utf8(file(&format!("stream/{name}.gemini.sse"))).unwrap()
}

/// Status and body of a golden error.
#[track_caller]
pub fn error(name: &str) -> (u16, String) {
    let value: Value = serde_json::from_slice(&file(&format!("error/{name}.json"))).unwrap();
    let status = value["status"].as_u64().unwrap();
    (u16::try_from(status).unwrap(), value["body"].to_string())
}
