//! The declared layers. To change the architecture, change these tables.

/// Longest source file.
pub(crate) const MAX_FILE_LINES: usize = 800;

/// Layers of one crate, from the top down.
pub(crate) struct Layered {
    pub(crate) name: &'static str,
    /// A module uses only modules of later rows. Modules of one row do not use each other.
    ///
    /// Every module is listed; listed modules may be absent.
    pub(crate) rows: &'static [&'static [&'static str]],
}

pub(crate) const LAYERED: &[Layered] = &[
    Layered {
        name: "toolgate-gateway",
        rows: &[
            &["service"],
            &["http"],
            &["api"],
            &["state"],
            &["sessions", "turn"],
            &["signatures", "upstream"],
            &["admission", "auth", "identity", "metrics", "store"],
            &["budget", "logging"],
            &["clock", "config", "offload", "receive", "redact", "tasks", "threads"],
        ],
    },
    Layered {
        name: "toolgate-core",
        rows: &[
            &["translate"],
            &["anthropic", "chat", "gemini", "responses", "tool_loop"],
            &["dialect", "upstream"],
            &["schema", "seal", "sse"],
            &["canon"],
            &["bounded", "json"],
        ],
    },
];

/// Crates of the repository that a crate may depend on, tests aside. Every crate has a row.
pub(crate) const DEPENDENCIES: &[(&str, &[&str])] = &[
    ("toolgate-core", &[]),
    ("toolgate-macros", &[]),
    ("toolgate-store", &[]),
    ("toolgate-tools", &["toolgate-core", "toolgate-transport"]),
    ("toolgate-validate", &["toolgate-core"]),
    ("toolgate-transport", &["toolgate-core"]),
    ("toolgate-sim", &["toolgate-core", "toolgate-transport", "toolgate-validate"]),
    ("toolgate", &["toolgate-core", "toolgate-macros", "toolgate-transport"]),
    ("toolgate-gateway", &["toolgate-core", "toolgate-store", "toolgate-transport"]),
    ("toolgate-cli", &["toolgate-core", "toolgate-gateway", "toolgate-sim"]),
    ("toolgate-bench", &["toolgate-core", "toolgate-gateway", "toolgate-sim"]),
    ("toolgate-testing", &["toolgate-core"]),
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
