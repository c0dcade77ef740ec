//! Every example runs without a key and prints its documented output.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")
}

/// Folder of the built examples, beside the folder of this test.
fn built() -> PathBuf {
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", "toolgate", "--examples"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .unwrap();
    assert!(status.success(), "the examples do not build");
    let this = std::env::current_exe().unwrap();
    this.ancestors().nth(2).unwrap().join("examples")
}

/// Documented output: the code block at the top of a file.
fn documented(source: &str) -> String {
    let comment = source.lines().map_while(|line| line.strip_prefix("//!"));
    let lines = comment.map(|line| line.strip_prefix(' ').unwrap_or(line));
    let inside = lines.skip_while(|line| *line != "```text").skip(1);
    inside.take_while(|line| *line != "```").map(|line| format!("{line}\n")).collect()
}

#[test]
fn examples_print_their_documented_output() {
    let built = built();
    let mut names = Vec::new();
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|it| it != "rs") {
            continue;
        }
        let source = fs::read_to_string(&path).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        assert!(source.lines().count() < 60, "{name} is too long for an example");
        let mut command = Command::new(built.join(&name));
        for variable in [
            "GEMINI_API_KEY",
            "GOOGLE_API_KEY",
            "GOOGLE_ACCESS_TOKEN",
            "GOOGLE_GENAI_USE_VERTEXAI",
            "GOOGLE_GEMINI_BASE_URL",
            "TOOLGATE_BASE_URL",
        ] {
            command.env_remove(variable);
        }
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said, documented(&source), "{name} {errors}");
        assert!(output.status.success(), "{name} {errors}");
        names.push(name[..2].to_owned());
    }
    names.sort();
    assert_eq!(names, ["01", "02", "03", "04", "05", "06", "07", "08", "09"]);
}
