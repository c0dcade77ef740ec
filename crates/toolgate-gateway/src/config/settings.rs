//! The one list of settings. The file's keys, the variables, the example file, `--print-config` and
//! the messages about unknown keys are all made from it, so that they cannot drift apart.

/// One setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its place in the file: `upstream.url`.
    pub key: &'static str,
    /// The environment variables that set it, strongest first.
    pub env: &'static [&'static str],
    /// Its default, written as TOML; empty: none.
    pub default: &'static str,
    /// What an example value looks like where there is no default.
    pub example: &'static str,
    /// Purpose.
    pub doc: &'static str,
    /// Never shown.
    pub secret: bool,
    /// Smallest and largest value of a number.
    pub range: Option<(u64, u64)>,
}

const fn setting(
    key: &'static str,
    env: &'static [&'static str],
    default: &'static str,
    doc: &'static str,
) -> Setting {
    Setting { key, env, default, example: "", doc, secret: false, range: None }
}

const fn number(
    key: &'static str,
    env: &'static [&'static str],
    default: &'static str,
    range: (u64, u64),
    doc: &'static str,
) -> Setting {
    Setting { key, env, default, example: "", doc, secret: false, range: Some(range) }
}

const fn optional(
    key: &'static str,
    env: &'static [&'static str],
    example: &'static str,
    doc: &'static str,
) -> Setting {
    Setting { key, env, default: "", example, doc, secret: false, range: None }
}

const fn secret(
    key: &'static str,
    env: &'static [&'static str],
    example: &'static str,
    doc: &'static str,
) -> Setting {
    Setting { key, env, default: "", example, doc, secret: true, range: None }
}

/// A hundred years; longer times overflow clocks.
const MAX_SECONDS: u64 = 100 * 365 * 24 * 3600;
pub(super) const MAX_MINUTES: u64 = MAX_SECONDS / 60;

/// Every setting, in the order of the example file. Keys without a dot come first.
pub const SETTINGS: &[Setting] = &[
    setting(
        "listen",
        &["TOOLGATE_LISTEN"],
        "\"127.0.0.1:8741\"",
        "Where to listen. Port 0 lets the system choose. Anything but loopback needs clients.keys.",
    ),
    number(
        "threads",
        &["TOOLGATE_THREADS"],
        "0",
        (0, 1024),
        "How many threads serve requests; 0: as many as there are processors.",
    ),
    setting(
        "strict_tool_validation",
        &["TOOLGATE_STRICT_TOOL_VALIDATION"],
        "false",
        "true: a request with a tool schema that is not valid is refused.\n\
         false: the schema is mended, with a warning.",
    ),
    setting(
        "enable_tool_calling",
        &["TOOLGATE_ENABLE_TOOL_CALLING", "PROXY_ENABLE_TOOLS"],
        "true",
        "false: tools are not forwarded at all.",
    ),
    number(
        "state_retention_minutes",
        &["TOOLGATE_STATE_RETENTION_MINUTES"],
        "1440",
        (1, MAX_MINUTES),
        "How long signatures, responses and conversations are kept.",
    ),
    setting(
        "store",
        &["TOOLGATE_STORE"],
        "\"auto\"",
        "Where state is kept: \"memory\", \"sqlite:PATH\" (a relative PATH in this file starts at the\n\
         file's folder), \"redis://USER:PASSWORD@HOST:PORT/DB\" (a Valkey or Redis server, for several\n\
         gateways; rediss:// with TLS), \"off\" (nowhere), or \"auto\": one SQLite file in the user's\n\
         state directory ($XDG_STATE_HOME or ~/.local/state, toolgate/state.db), and memory with the\n\
         built-in simulator.",
    ),
    number(
        "store_mib",
        &["TOOLGATE_STORE_MIB"],
        "256",
        (1, 1 << 24),
        "Maximum size of the store in MiB. Beyond that, the client key that uses most loses its oldest\n\
         entries first. A server has its own limit.",
    ),
    setting(
        "log",
        &["TOOLGATE_LOG", "RUST_LOG"],
        "\"info\"",
        "What is logged: error, warn, info, debug, trace, or a filter such as \"toolgate=debug\".",
    ),
    setting(
        "log_format",
        &["TOOLGATE_LOG_FORMAT"],
        "\"text\"",
        "\"text\" for people, \"json\" for machines.",
    ),
    optional(
        "upstream.kind",
        &["TOOLGATE_UPSTREAM"],
        "\"developer\"",
        "\"developer\" (Gemini Developer API), \"vertex\" (Vertex AI) or \"sim\" (the built-in simulator).\n\
         Default: developer where there is a key or an address, else sim.",
    ),
    optional(
        "upstream.url",
        &["TOOLGATE_UPSTREAM_URL"],
        "\"http://127.0.0.1:9000\"",
        "Another server that speaks Gemini. Default: Google's.",
    ),
    setting(
        "upstream.api_version",
        &["TOOLGATE_UPSTREAM_API_VERSION"],
        "\"\"",
        "The version in the path. Empty: v1beta, or v1beta1 on Vertex.",
    ),
    secret(
        "upstream.api_keys",
        &["TOOLGATE_API_KEYS", "GEMINI_API_KEY", "GOOGLE_API_KEY"],
        "[\"…\"]",
        "Gemini keys (a pool), used for clients that do not bring a Gemini key of their own.\n\
         A variable may hold several, separated by commas.",
    ),
    secret(
        "upstream.bearer_token",
        &["TOOLGATE_BEARER_TOKEN"],
        "\"…\"",
        "An OAuth token for Vertex AI.",
    ),
    optional(
        "upstream.service_account",
        &["TOOLGATE_SERVICE_ACCOUNT", "GOOGLE_APPLICATION_CREDENTIALS"],
        "\"service-account.json\"",
        "A service-account file for Vertex AI; tokens are minted and refreshed. A relative path in this\n\
         file starts at this file's folder.",
    ),
    optional(
        "upstream.project",
        &["TOOLGATE_PROJECT", "GOOGLE_CLOUD_PROJECT"],
        "\"my-project\"",
        "The Vertex AI project.",
    ),
    setting(
        "upstream.location",
        &["TOOLGATE_LOCATION", "GOOGLE_CLOUD_LOCATION"],
        "\"global\"",
        "The Vertex AI location.",
    ),
    optional(
        "upstream.ca_file",
        &["TOOLGATE_CA_FILE"],
        "\"company-ca.pem\"",
        "A PEM file with further root certificates. Mozilla's and the system's roots (or those of\n\
         SSL_CERT_FILE and SSL_CERT_DIR) are trusted anyway.",
    ),
    secret(
        "upstream.proxy",
        &["TOOLGATE_PROXY"],
        "\"http://user:password@proxy.example:3128\"",
        "An HTTP proxy for all upstream requests; \"off\" for none. Default: HTTPS_PROXY or ALL_PROXY, with the\n\
         exceptions of NO_PROXY, for https URLs that are not on loopback.",
    ),
    number(
        "upstream.connect_seconds",
        &["TOOLGATE_CONNECT_SECONDS"],
        "10",
        (1, MAX_SECONDS),
        "Maximum time until a connection is open, proxy and TLS included.",
    ),
    number(
        "upstream.idle_seconds",
        &["TOOLGATE_IDLE_SECONDS"],
        "240",
        (1, MAX_SECONDS),
        "How long the upstream may be silent before the turn ends in an error. An answer in one piece\n\
         comes when it is whole: for it, only total_seconds counts.",
    ),
    number(
        "upstream.total_seconds",
        &["TOOLGATE_TOTAL_SECONDS"],
        "3600",
        (1, MAX_SECONDS),
        "How long one turn may take in all.",
    ),
    number(
        "upstream.retries",
        &["TOOLGATE_RETRIES"],
        "4",
        (0, 20),
        "How often a request is sent again when the upstream fails before the first byte.",
    ),
    number(
        "upstream.retry_wait_seconds",
        &["TOOLGATE_RETRY_WAIT_SECONDS"],
        "5",
        (0, MAX_SECONDS),
        "The longest wait between two tries; when Gemini asks for more, the client gets the error\n\
         with Retry-After.",
    ),
    number(
        "upstream.rescue_retries",
        &["TOOLGATE_RESCUE_RETRIES"],
        "2",
        (0, 20),
        "How often a malformed, empty or cut turn is asked for again before the client sees anything.",
    ),
    secret(
        "clients.keys",
        &["TOOLGATE_CLIENT_KEYS"],
        "[\"tg-…\"]",
        "The keys that clients must present, also for / and /metrics; at least 8 characters each. Without\n\
         any, every client that reaches the port may use it.",
    ),
    setting(
        "clients.hosts",
        &["TOOLGATE_CLIENT_HOSTS"],
        "[]",
        "Host names of this gateway beside loopback ones: requests may name them in their Host header, and\n\
         pages that it serves under them may call it.",
    ),
    setting(
        "clients.cors_origins",
        &["TOOLGATE_CORS_ORIGINS"],
        "[]",
        "Other web origins that may call from a browser, over HTTP and over a WebSocket, such as\n\
         \"http://localhost:3000\" or \"vscode-webview://…\"; \"*\" for all. By default only the gateway's own.",
    ),
    number(
        "limits.body_mib",
        &["TOOLGATE_BODY_MIB"],
        "32",
        (1, 4096),
        "The largest request body, in MiB.",
    ),
    number(
        "limits.header_kib",
        &["TOOLGATE_HEADER_KIB"],
        "64",
        (1, 16 << 10),
        "The largest request head, in KiB.",
    ),
    number(
        "limits.concurrency",
        &["TOOLGATE_CONCURRENCY"],
        "4096",
        (1, 1 << 20),
        "The most requests at a time; more are refused as overloaded. With several clients.keys, a key may\n\
         have as many in progress as there are free: one busy key gets half of them, two a third each.",
    ),
    number(
        "limits.concurrency_per_key",
        &["TOOLGATE_CONCURRENCY_PER_KEY"],
        "0",
        (0, 1 << 20),
        "The most requests of one key at a time; more get a 429. 0: no more than its fair share.",
    ),
    number(
        "limits.memory_mib",
        &["TOOLGATE_MEMORY_MIB"],
        "0",
        (0, 1 << 20),
        "Memory for request bodies and their translation, in MiB, counted as decompressed: twice a body's\n\
         size while its turn lasts, and 16 times while it is translated. A request that finds no room waits\n\
         for up to 10 s and is then refused as overloaded; each key has its fair share, as of concurrency.\n\
         0: 64 times body_mib, which is also the minimum.",
    ),
    number(
        "limits.receive_seconds",
        &["TOOLGATE_RECEIVE_SECONDS"],
        "30",
        (1, 3600),
        "How long a client may send nothing in the middle of a head, a body or a WebSocket message, and\n\
         how long it may take in all, beside a second for each 16 KiB received.",
    ),
    number(
        "limits.drain_seconds",
        &["TOOLGATE_DRAIN_SECONDS"],
        "120",
        (0, MAX_SECONDS),
        "How long running turns may go on after SIGTERM.",
    ),
    number(
        "liveness.ping_seconds",
        &["TOOLGATE_PING_SECONDS"],
        "15",
        (1, MAX_SECONDS),
        "After how long without a byte the client gets a sign of life, whatever Gemini sends meanwhile.",
    ),
    number(
        "liveness.websocket_idle_seconds",
        &["TOOLGATE_WEBSOCKET_IDLE_SECONDS"],
        "3600",
        (1, MAX_SECONDS),
        "How long a WebSocket may be open without a request before it is closed.",
    ),
    number(
        "calls.corrections",
        &["TOOLGATE_CALLS_CORRECTIONS"],
        "0",
        (0, 20),
        "How often in a turn Gemini is told, unseen by the client, that a call names no tool or that\n\
         its arguments do not fit. Then, and with 0 at once, the client gets such calls as they are.",
    ),
    setting(
        "schemas.form",
        &["TOOLGATE_SCHEMA_FORM"],
        "\"auto\"",
        "How tool schemas are sent: \"auto\", \"json\" (parametersJsonSchema), \"raw\" (as the client\n\
         wrote them) or \"parameters\" (lowered to Gemini's Schema).",
    ),
    secret(
        "signatures.key",
        &["TOOLGATE_SIGNATURE_KEY"],
        "\"64 hexadecimal digits\"",
        "Authenticates the thought signatures that clients keep for us. Give all replicas the same.\n\
         Default: drawn at start, or kept in the store.",
    ),
    optional(
        "models",
        &[],
        "{ \"claude-opus-*\" = \"gemini-3.1-pro-preview\" }",
        "What clients' model names mean; `*` stands for anything. First match wins, these before the\n\
         built-in ones. A value is a Gemini model, or a table with model, thinking (\"none\",\n\
         \"minimal\", \"low\", \"medium\", \"high\" or a budget) and max_output_tokens.",
    ),
];

/// The setting with this key.
pub(super) fn find(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.key == key)
}

/// The known key or section that is most like `key`, where one is alike at all.
pub(super) fn nearest(key: &str) -> Option<&'static str> {
    let sections = SETTINGS.iter().filter_map(|it| it.key.split_once('.').map(|(it, _)| it));
    SETTINGS
        .iter()
        .map(|setting| setting.key)
        .chain(sections)
        .map(|known| (distance(known, key), known))
        .filter(|(distance, known)| *distance <= known.len().max(key.len()) / 2)
        .min()
        .map(|(_, known)| known)
}

/// How many characters must be changed, added or left out.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, cb) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
