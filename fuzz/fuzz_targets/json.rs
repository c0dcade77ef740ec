//! Texts and values round-trip, and compact JSON is a single line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use toolgate_core::json::{Raw, Text, write};
use toolgate_core::seal::{Opened, Sealer};

fuzz_target!(|input: &str| {
    let mut out = Vec::new();
    write::string(&mut out, input);
    assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), input);

    let sealer = Sealer::default();
    if let Opened::Ours(envelope) = sealer.open(input) {
        assert!(matches!(sealer.open(&sealer.seal(&envelope)), Opened::Ours(it) if it == envelope));
    }

    let Ok(raw) = serde_json::from_str::<Raw<'_>>(input) else { return };
    let compact = raw.compact();
    assert!(!compact.contains(['\n', '\r', '\u{2028}', '\u{2029}', '\u{85}']));
    if let Ok(value) = serde_json::from_str::<Value>(input) {
        assert_eq!(serde_json::from_str::<Value>(&compact).unwrap(), value);
    }
    if let Some(text) = raw.as_text() {
        let again = Text::new(&text.decode());
        assert_eq!(again.decode(), text.decode());
    }
    if let Some(fields) = raw.fields() {
        assert_eq!(fields.0.is_empty(), compact == "{}");
    }
});
