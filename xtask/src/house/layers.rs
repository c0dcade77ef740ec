//! The declared layers. To change the architecture, change these tables.

/// Longest source file.
pub(crate) const MAX_FILE_LINES: usize = 800;

/// Layers of one crate, from the top down.
pub(crate) struct Layered {
    pub(crate) name: &'static str,
    /// A module uses only modules of later rows. Modules of one row do not use each other.
    ///
    /// Modules that are not listed belong to no layer, and listed modules may be absent.
    pub(crate) rows: &'static [&'static [&'static str]],
}

pub(crate) const LAYERED: &[Layered] = &[Layered {
    name: "toolgate-gateway",
    rows: &[&["http"], &["api"], &["sessions", "turn"], &["signatures", "upstream"]],
}];

/// Crates of the repository that a crate may depend on, tests aside. Every crate has a row.
pub(crate) const DEPENDENCIES: &[(&str, &[&str])] = &[
    ("toolgate-core", &[]),
    ("toolgate-macros", &[]),
    ("toolgate-store", &[]),
    ("toolgate-validate", &["toolgate-core"]),
    ("toolgate-sim", &["toolgate-core", "toolgate-validate"]),
    ("toolgate", &["toolgate-core", "toolgate-macros"]),
    ("toolgate-gateway", &["toolgate-core", "toolgate-store"]),
    ("toolgate-cli", &["toolgate-core", "toolgate-gateway", "toolgate-sim"]),
    ("toolgate-bench", &["toolgate-core", "toolgate-gateway", "toolgate-sim"]),
    (
        "toolgate-testing",
        &[
            "toolgate-core",
            "toolgate-gateway",
            "toolgate-sim",
            "toolgate-store",
            "toolgate-validate",
        ],
    ),
    ("fuzz", &["toolgate-core", "toolgate-validate"]),
    ("xtask", &[]),
];

/// Packages that a crate must not depend on directly. `tests/laws.rs` of the core checks the whole
/// tree of the core's dependencies.
pub(crate) const BANNED: &[(&str, &[&str])] = &[
    ("toolgate-core", RUNTIMES),
    ("toolgate-validate", RUNTIMES),
    ("toolgate-store", &["axum", "http", "hyper", "hyper-util", "reqwest", "toolgate-core"]),
];

const RUNTIMES: &[&str] = &[
    "async-std",
    "axum",
    "chrono",
    "getrandom",
    "hyper",
    "hyper-util",
    "jiff",
    "mio",
    "rand",
    "reqwest",
    "smol",
    "time",
    "tokio",
    "uuid",
];
