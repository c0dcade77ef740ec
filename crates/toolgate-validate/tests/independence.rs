//! The judge of the encoder shares no code with the encoder.

use std::fs;
use std::path::Path;

/// All that the judge takes from the core: the name of the model and of the service.
const ALLOWED: [&str; 3] = [
    "toolgate_core::canon::Backend;",
    "toolgate_core::canon::Target;",
    "toolgate_core::canon::{Backend, Target};",
];

#[test]
fn the_judge_takes_only_the_target_from_the_core() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut imports = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        assert!(path.is_file(), "{} is a folder; this test reads files only", path.display());
        let text = fs::read_to_string(&path).unwrap();
        for (at, _) in text.match_indices("toolgate_core") {
            let is_allowed = ALLOWED.iter().any(|it| text[at..].starts_with(it));
            let line = text[at..].lines().next().unwrap();
            assert!(is_allowed, "{} uses {line}", path.display());
            imports += 1;
        }
    }
    assert!(imports > 0, "no import found; does the test still read the right folder?");
}
