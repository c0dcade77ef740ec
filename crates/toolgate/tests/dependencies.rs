//! Dependencies of the SDK.

use std::collections::BTreeSet;
use std::process::Command;

#[test]
fn the_sdk_has_few_dependencies() {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--package", "toolgate", "--edges", "normal", "--prefix", "none"])
        .args(["--format", "{p}", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let tree = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let names: BTreeSet<_> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(names.contains("toolgate-core"), "{names:?}");
    let heavy = [
        "axum",
        "rmcp",
        "reqwest",
        "tower-http",
        "openssl-sys",
        "native-tls",
        "aws-lc-sys",
        "toolgate-sim",
        "toolgate-gateway",
        "async-trait",
        "jsonschema",
        "redis",
        "rusqlite",
    ];
    for name in heavy {
        assert!(!names.contains(name), "the SDK depends on {name}");
    }
    assert!(names.len() <= 110, "{} crates: {names:?}", names.len());
}
