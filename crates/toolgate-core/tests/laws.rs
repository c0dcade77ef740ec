//! The laws of the design that can be read off the code itself.
//!
//! The others are properties of its functions, and are proven beside these.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::PathBuf;
use std::process::Command;

use toolgate_core::canon::{
    Answer, Backend, Call, CallInput, Event, Failure, FailureKind, Issuer, Item, Media,
    MediaSource, Part, Role, Signature, ToolName, Turn,
};
use toolgate_core::json::{Raw, Text};
use toolgate_core::seal::{Envelope, Sealed, Sealer};
use toolgate_core::upstream::generate_content::decode_activity;
use toolgate_testing::source::{Source, files, is_test_file, relative, root};

fn product_files(folder: &str) -> Vec<PathBuf> {
    sources("toolgate-core", folder)
}

fn sources(name: &str, folder: &str) -> Vec<PathBuf> {
    let mut files = files(&root().join("crates").join(name).join("src").join(folder), "rs");
    files.retain(|path| !is_test_file(path));
    files
}

#[track_caller]
fn assert_none(offences: &[String]) {
    assert!(offences.is_empty(), "\n{}", offences.join("\n"));
}

/// Every path that begins with `start`, groups written out: `std::{fs, io::Read}` gives
/// `std::fs` and `std::io::Read`.
fn paths(code: &str, start: &str) -> BTreeSet<String> {
    let code: String = code.split_whitespace().collect::<Vec<_>>().join(" ").replace(" ::", "::");
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices(start) {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|it| it.is_alphanumeric() || it == '_') {
            continue;
        }
        written_out("", &code[at..], &mut found);
    }
    found
}

/// Adds the path or group of paths at the start of `text`; says how long it was.
fn written_out(prefix: &str, text: &str, found: &mut BTreeSet<String>) -> usize {
    let path_end = text
        .find(|it: char| !(it.is_alphanumeric() || it == '_' || it == ':'))
        .unwrap_or(text.len());
    let path = format!("{prefix}{}", &text[..path_end]);
    if !(path.ends_with("::") && text[path_end..].starts_with('{')) {
        found.insert(path);
        return path_end;
    }
    let mut at = path_end + 1;
    loop {
        let rest = &text[at..];
        at += rest.len() - rest.trim_start_matches([' ', ',']).len();
        match text[at..].chars().next() {
            None => return at,
            Some('}') => return at + 1,
            Some(_) => {
                let taken = written_out(&path, &text[at..], found);
                let skipped =
                    text[at + taken..].find([',', '}']).unwrap_or(text.len() - at - taken);
                at += (taken + skipped).max(1);
            }
        }
    }
}

#[test]
fn paths_are_found_in_groups() {
    let found =
        paths("use std::{fs, io::{self, Read as _}, net}; use mystd::x; std::env::var()", "std::");
    let want = ["std::env::var", "std::fs", "std::io::Read", "std::io::self", "std::net"];
    assert_eq!(found.into_iter().collect::<Vec<_>>(), want);
}

#[test]
fn sources_are_read_apart() {
    let source = Source::parse(
        "/// doc \"no\"\nlet a = \"x\\\"y\"; // end\nlet b: &'a str = r#\"q\"r\"#; /* /* */ */ 'c' '\\''",
    );
    assert_eq!(source.strings, ["x\\\"y", "q\"r"]);
    assert_eq!(source.code, "\nlet a = \"\"; \nlet b: &'a str = \"\";  ' ' ' '");
}

#[test]
fn law1_the_core_depends_on_no_runtime_clock_or_randomness() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["tree", "--package", "toolgate-core", "--edges", "normal", "--prefix", "none"])
        .args(["--locked", "--format", "{lib}"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).unwrap();
    let crates: BTreeSet<_> = tree.lines().map(str::trim).collect();
    assert!(crates.contains("serde_json"), "{tree}");
    for banned in [
        "async_std",
        "axum",
        "chrono",
        "getrandom",
        "hyper",
        "jiff",
        "mio",
        "rand",
        "rand_core",
        "reqwest",
        "rustix",
        "smol",
        "socket2",
        "time",
        "tokio",
        "ureq",
        "uuid",
    ] {
        assert!(!crates.contains(banned), "the core depends on {banned}");
    }
}

#[test]
fn law1_the_core_names_nothing_of_the_outside_world() {
    let mut offences = Vec::new();
    let banned = [
        "std::env",
        "std::fs",
        "std::io::stderr",
        "std::io::stdin",
        "std::io::stdout",
        "std::net",
        "std::os",
        "std::process",
        "std::random",
        "std::thread",
        "std::time",
    ];
    // The judge of requests keeps the same law in a crate of its own.
    for path in product_files("").into_iter().chain(sources("toolgate-validate", "")) {
        let source = Source::product(&path);
        for used in paths(&source.code, "std::") {
            let allowed = used == "std::time::Duration";
            let hit = banned.iter().any(|it| used == *it || used.starts_with(&format!("{it}::")));
            if hit && !allowed {
                offences.push(format!("{} uses {used}", relative(&path)));
            }
        }
        for word in ["static mut", "thread_local!", "include_bytes!", "println!", "eprintln!"] {
            if source.code.contains(word) {
                offences.push(format!("{} uses {word}", relative(&path)));
            }
        }
    }
    assert_none(&offences);
}

const DIALECTS: [&str; 4] = ["anthropic", "chat", "gemini", "responses"];

#[test]
fn law2_no_dialect_knows_another() {
    let mut offences = Vec::new();
    for dialect in DIALECTS {
        for path in product_files(dialect) {
            let source = Source::product(&path);
            for used in paths(&source.code, "crate::") {
                let module = used.split("::").nth(1).unwrap_or_default();
                if DIALECTS.contains(&module) && module != dialect {
                    offences.push(format!("{} uses {used}", relative(&path)));
                }
            }
        }
    }
    for folder in ["canon", "json", "schema", "tool_loop", "upstream"] {
        for path in product_files(folder) {
            for used in paths(&Source::product(&path).code, "crate::") {
                let module = used.split("::").nth(1).unwrap_or_default();
                if DIALECTS.contains(&module) {
                    offences.push(format!("{} uses {used}", relative(&path)));
                }
            }
        }
    }
    assert_none(&offences);
}

/// Names that occur in Gemini's bodies and nowhere else. Those that the canonical model takes over
/// (fields that are copied unread) are not among them.
const GEMINIS: [&str; 27] = [
    "allowedFunctionNames",
    "cachedContentTokenCount",
    "candidatesTokenCount",
    "codeExecutionResult",
    "executableCode",
    "finishReason",
    "functionCall",
    "functionCallingConfig",
    "functionDeclarations",
    "functionResponse",
    "generationConfig",
    "groundingChunkIndices",
    "groundingChunks",
    "groundingMetadata",
    "groundingSupports",
    "inlineData",
    "parametersJsonSchema",
    "promptFeedback",
    "promptTokenCount",
    "responseJsonSchema",
    "systemInstruction",
    "thoughtSignature",
    "toolCall",
    "toolResponse",
    "toolType",
    "usageMetadata",
    "webSearchQueries",
];

/// Fields of mirrors, as serde's `rename_all` spells them in Rust.
const GEMINIS_FIELDS: [&str; 5] = [
    "grounding_chunk_indices",
    "grounding_chunks",
    "grounding_metadata",
    "grounding_supports",
    "web_search_queries",
];

#[test]
fn law2_only_gemini_knows_geminis_names() {
    let mut offences = Vec::new();
    for path in product_files("") {
        let name = relative(&path);
        let may = ["/src/gemini/", "/src/schema/", "/src/upstream/generate_content/"];
        if may.iter().any(|folder| name.contains(folder)) {
            continue;
        }
        let source = Source::product(&path);
        for string in source.strings {
            let hit =
                GEMINIS.iter().find(|it| string == **it || string.contains(&format!("\"{it}\"")));
            if hit.is_some() {
                offences.push(format!("{name} names {string:?}"));
            }
        }
        let words = source.code.split(|it: char| !it.is_alphanumeric() && it != '_');
        let fields = words.filter(|word| GEMINIS_FIELDS.contains(word));
        offences.extend(fields.map(|field| format!("{name} has a field {field}")));
    }
    assert_none(&offences);
}

const SECRET: &str = "S3cr3tS1gnature";

fn issuer() -> Issuer {
    Issuer { model: "gemini-3.6-flash".into(), backend: Backend::Developer }
}

fn signature() -> Signature<'static> {
    Signature::new(SECRET, Some(issuer())).unwrap()
}

/// A part of Gemini's with signatures.
fn signed_part() -> Raw<'static> {
    let json = format!(
        "{{\"toolCall\":{{}},\"thoughtSignature\" :\n \"{SECRET}\",\"thought_signature\":\"{SECRET}\\\"{SECRET}\"}}"
    );
    Raw::parse(json).unwrap()
}

#[track_caller]
fn check_debug(shown: &impl Debug) {
    for shown in [format!("{shown:?}"), format!("{shown:#?}")] {
        assert!(!shown.contains(SECRET), "{shown}");
    }
}

#[test]
fn law8_debug_shows_no_signature() {
    let media = Media {
        mime: None,
        source: MediaSource::Uri(Text::new("gs://bucket/picture")),
        name: None,
        modifiers: vec![("thoughtSignature".into(), Raw::of(SECRET).unwrap())],
    };
    let activity = decode_activity("toolCall".into(), signed_part(), signed_part(), Some(issuer()));
    let call = Call {
        id: "tg1".into(),
        upstream_id: None,
        tool: ToolName::plain("weather"),
        input: CallInput::Json(Raw::empty_object()),
        signature: Some(signature()),
    };
    check_debug(&signature());
    check_debug(&signed_part());
    check_debug(&media);
    check_debug(&activity);
    check_debug(&Event::Signature { thought: true, len: 0, signature: signature() });
    check_debug(&Event::Server(activity.clone()));
    let items = vec![
        Item::Text(Text::new("a")),
        Item::Signature { thought: false, len: 1, signature: signature() },
        Item::Call(call),
        Item::Media(media),
        Item::Server(activity),
    ];
    let answer = Answer { items, ..Answer::default() };
    check_debug(&answer);
    check_debug(&answer.to_turn());
    for on in [
        Sealed::Call { token: "tg1".into(), signature: signature() },
        Sealed::Text { len: 1, signature: signature() },
        Sealed::Thought { len: 1, signature: signature() },
        Sealed::Part(signed_part()),
    ] {
        let envelope = Envelope { on, issuer: issuer() };
        check_debug(&envelope);
        check_debug(&Turn { role: Role::Model, parts: vec![Part::Sealed(envelope)] });
    }
}

#[test]
fn law8_debug_shows_no_key_and_no_upstream_body() {
    let shown = format!("{:?}", Sealer::with_key([0xAB; 32]));
    assert!(!shown.contains("171") && !shown.to_lowercase().contains("ab,"), "{shown}");
    let mut failure = Failure::new(FailureKind::InvalidRequest, "Gemini refused the request");
    failure.upstream_body = Some(format!("Base64 decoding failed for \"{SECRET}\""));
    check_debug(&failure);
}
