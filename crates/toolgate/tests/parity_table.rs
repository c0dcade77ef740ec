//! `docs/parity.md` names a test in every row.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::Path;

/// Appends all Rust files below a folder to `text`.
fn rust(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust(&path, text);
        } else if path.extension().is_some_and(|it| it == "rs") {
            text.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn r018_every_row_has_a_test() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut code = String::new();
    rust(&here.join("tests"), &mut code);
    rust(&here.join("src"), &mut code);
    let table = fs::read_to_string(here.join("../../docs/parity.md")).unwrap();
    let mut rows = 0;
    for row in table.lines().filter(|line| line.starts_with("| ") && !line.contains("| test |")) {
        let proof = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        let names: Vec<_> = proof.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "no test: {row}");
        for name in names {
            let exists = if name.contains('/') {
                here.join(name).exists() || here.join("../..").join(name).exists()
            } else {
                let name = name.rsplit("::").next().unwrap();
                code.contains(&format!("fn {name}("))
            };
            assert!(exists, "no test {name}: {row}");
        }
        rows += 1;
    }
    assert!(rows > 40, "{rows} rows");
}
