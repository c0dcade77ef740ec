//! Resolves settings to a configuration.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use toolgate_core::upstream::generate_content::SchemaPolicy;
use toolgate_transport::Proxy;
use tracing_subscriber::filter::LevelFilter;

use super::layers::Layers;
use super::models::Models;
use super::places::state_folder;

/// Memory that the translation of a body may take, as a multiple of the body's size.
pub(crate) const TRANSLATION_MULTIPLE: u64 = 16;
/// Minimum of `limits.memory_mib`, as a multiple of `limits.body_mib`: the quarter of it that belongs to
/// translations of large bodies must have room for one.
const MEMORY_PER_BODY: u64 = 4 * TRANSLATION_MULTIPLE;

/// Everything that was decided before the first request.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to listen.
    pub listen: SocketAddr,
    /// How many threads serve requests.
    pub threads: usize,
    /// R138: whether a tool schema that Gemini cannot take is an error.
    pub strict_tool_validation: bool,
    /// R140: whether tools are forwarded.
    pub enable_tool_calling: bool,
    /// R139: how long state is kept.
    pub state_retention: Duration,
    /// Where state is kept.
    pub store: StoreKind,
    /// The most that the store may hold, in bytes.
    pub store_bytes: u64,
    /// Log filter.
    pub log: String,
    /// How it is logged.
    pub log_format: LogFormat,
    /// Upstream API settings.
    pub upstream: Upstream,
    /// Client access control.
    pub clients: Clients,
    /// Request limits.
    pub limits: Limits,
    /// After how long a silence the client gets a sign of life.
    pub ping: Duration,
    /// How long a WebSocket may be open without a request.
    pub socket_idle: Duration,
    /// R130, R131: maximum number of correction rounds in a turn.
    pub corrections: u32,
    /// How tool schemas are sent.
    pub schemas: SchemaPolicy,
    /// Authenticates envelopes.
    pub signature_key: Option<Secret>,
    /// What model names mean.
    pub models: Models,
    printed: String,
    /// File, variable or flag of each setting that was set.
    sources: BTreeMap<&'static str, String>,
}

/// Where state is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// Nowhere.
    Off,
    /// In this process.
    Memory,
    /// In a file.
    Sqlite {
        /// Which.
        path: PathBuf,
        /// Whether the file was configured by name; otherwise memory replaces one that cannot be used.
        wanted: bool,
    },
    /// In a Valkey or Redis server, at this address.
    Valkey(Secret),
}

/// How the log looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For machines.
    Json,
    /// For people.
    Text,
}

/// Upstream API settings.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// Which service.
    pub kind: UpstreamKind,
    /// The simulator answers only because nothing is configured: clients with a Gemini key of their own
    /// reach Gemini.
    pub is_fallback: bool,
    /// Another server than Google's, without a slash at the end.
    pub url: Option<String>,
    /// The version in the path.
    pub api_version: String,
    /// How to prove who we are.
    pub auth: UpstreamAuth,
    /// The Vertex AI project.
    pub project: Option<String>,
    /// The Vertex AI location.
    pub location: String,
    /// PEM file with further root certificates.
    pub ca_file: Option<PathBuf>,
    /// HTTP proxy rules.
    pub proxy: Proxy,
    /// How long a connection may take.
    pub connect: Duration,
    /// How long silence may last.
    pub idle: Duration,
    /// How long a turn may last.
    pub total: Duration,
    /// Tries after the first when the upstream fails.
    pub retries: u32,
    /// The longest wait between tries.
    pub retry_wait: Duration,
    /// Tries after the first when a turn is no good.
    pub rescue_retries: u32,
}

/// Which service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamKind {
    /// The Gemini Developer API.
    Developer,
    /// The built-in simulator.
    Sim,
    /// Vertex AI.
    Vertex,
}

/// How we prove who we are.
#[derive(Clone, Debug, Default)]
pub struct UpstreamAuth {
    /// A pool of API keys.
    pub api_keys: Vec<Secret>,
    /// An OAuth token.
    pub bearer: Option<Secret>,
    /// The path of a service-account file.
    pub service_account: Option<String>,
}

impl UpstreamAuth {
    /// Whether the gateway has credentials of its own.
    pub fn has_credentials(&self) -> bool {
        !self.api_keys.is_empty() || self.bearer.is_some() || self.service_account.is_some()
    }
}

/// Client access control.
#[derive(Clone, Debug, Default)]
pub struct Clients {
    /// Keys, one of which every client must present; none: no key is asked for.
    pub keys: Vec<Secret>,
    /// Host names that requests may name beside loopback ones.
    pub hosts: Vec<String>,
    /// Web origins that may call from a browser.
    pub cors_origins: Vec<String>,
}

/// Request limits.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The largest body, in bytes.
    pub body: usize,
    /// The largest head, in bytes.
    pub header: usize,
    /// Requests at a time.
    pub concurrency: usize,
    /// Requests of one key at a time, where it is limited.
    pub concurrency_per_key: Option<usize>,
    /// Memory for bodies and their translation, in bytes.
    pub memory: u64,
    /// Time without progress after which a request that is being received is dropped.
    pub receive: Duration,
    /// How long running turns may go on after SIGTERM.
    pub drain: Duration,
}

/// A value that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps `value` to itself.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// Whether it can be guessed by trying.
    fn is_short(&self) -> bool {
        self.0.chars().count() < MIN_CLIENT_KEY_CHARS
    }

    /// The value, to be sent or compared; never to be printed.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// Shortest client key.
const MIN_CLIENT_KEY_CHARS: usize = 8;

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Why a configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file is not TOML.
    #[error("{file}: {reason}")]
    Syntax {
        /// Its name.
        file: String,
        /// Error of the parser.
        reason: String,
    },
    /// There is no such setting.
    #[error("{file}: unknown key `{key}`{}", nearest.as_ref().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default())]
    Unknown {
        /// Where.
        file: String,
        /// Which.
        key: String,
        /// The known key that is most like it.
        nearest: Option<String>,
    },
    /// The setting cannot have this value.
    #[error("`{key}` (from {source_name}) {reason}")]
    Value {
        /// Which.
        key: String,
        /// Where it was set.
        source_name: String,
        /// Reason.
        reason: String,
    },
    /// Any client on the network could use the gateway's keys.
    #[error(
        "refusing to listen on {0} without client keys: set clients.keys (TOOLGATE_CLIENT_KEYS), or listen on 127.0.0.1"
    )]
    Exposed(SocketAddr),
}

/// Where settings come from.
#[expect(missing_debug_implementations, reason = "it holds a closure")]
pub struct Sources<'a> {
    /// The file's name and text.
    pub file: Option<(&'a str, &'a str)>,
    /// The environment.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// Flags: key of the setting, name of the flag, text.
    pub flags: &'a [(&'a str, &'a str, &'a str)],
}

impl Config {
    /// Reads all sources.
    pub fn resolve(sources: &Sources<'_>) -> Result<Self, ConfigError> {
        let mut layers = Layers::defaults()?;
        if let Some((name, text)) = sources.file {
            layers.file(name, text)?;
        }
        layers.environment(sources.env);
        for (key, name, text) in sources.flags {
            layers.flag(key, name, text);
        }
        let state_file = state_folder(sources.env).map(|it| it.join("state.db"));
        Self::meant(&layers, state_file, sources.env)
    }

    /// What `--print-config` shows: every setting, its value and where it came from.
    pub fn printed(&self) -> &str {
        &self.printed
    }

    /// Name of the file, variable or flag that set `key`; `None` where it has its default.
    pub fn source(&self, key: &str) -> Option<&str> {
        self.sources.get(key).map(String::as_str)
    }

    fn meant(
        layers: &Layers,
        state_file: Option<PathBuf>,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let wrong = |key: &str, reason: String| ConfigError::Value {
            key: key.to_owned(),
            source_name: layers.get(key).map_or_else(String::new, |it| it.source.clone()),
            reason,
        };
        let word = |key: &str| layers.string(key).map(Option::unwrap_or_default);
        let seconds = |key: &str| layers.time(key);
        let secrets = |key: &str| {
            layers.strings(key).map(|keys| keys.into_iter().map(Secret).collect::<Vec<_>>())
        };
        let bytes = |key: &str, shift: u32| {
            let number = layers.number(key)?;
            usize::try_from(number)
                .ok()
                .and_then(|number| number.checked_mul(1 << shift))
                .filter(|bytes| *bytes > 0)
                .ok_or_else(|| wrong(key, "is out of range".to_owned()))
        };

        let listen: SocketAddr = word("listen")?
            .parse()
            .map_err(|_| wrong("listen", "must be an address such as 127.0.0.1:8741".to_owned()))?;
        let upstream = upstream(layers, env, &wrong)?;
        let clients = Clients {
            keys: secrets("clients.keys")?,
            hosts: layers.strings("clients.hosts")?,
            cors_origins: layers.strings("clients.cors_origins")?,
        };
        if clients.keys.iter().any(Secret::is_short) {
            let reason = format!("has a key of fewer than {MIN_CLIENT_KEY_CHARS} characters");
            return Err(wrong("clients.keys", reason));
        }
        if !listen.ip().is_loopback() && clients.keys.is_empty() {
            return Err(ConfigError::Exposed(listen));
        }
        let signature_key = layers.string("signatures.key")?;
        if signature_key.as_deref().is_some_and(|key| hex(key).is_none()) {
            return Err(wrong("signatures.key", "must be 64 hexadecimal digits".to_owned()));
        }
        Ok(Self {
            listen,
            threads: match usize::try_from(layers.number("threads")?) {
                Ok(0) => std::thread::available_parallelism().map_or(1, usize::from),
                Ok(threads) => threads,
                Err(_) => return Err(wrong("threads", "is out of range".to_owned())),
            },
            strict_tool_validation: layers.boolean("strict_tool_validation")?,
            enable_tool_calling: layers.boolean("enable_tool_calling")?,
            state_retention: seconds("state_retention_minutes")?,
            store: store(layers, &word("store")?, state_file, upstream.kind)
                .map_err(|reason| wrong("store", reason))?,
            store_bytes: layers.number("store_mib")?.saturating_mul(1 << 20),
            log: log_filter(word("log")?, layers.get("log").is_some_and(|it| it.source == SHARED))
                .map_err(|reason| wrong("log", reason))?,
            log_format: match word("log_format")?.as_str() {
                "json" => LogFormat::Json,
                "text" => LogFormat::Text,
                _ => return Err(wrong("log_format", "must be \"text\" or \"json\"".to_owned())),
            },
            upstream,
            clients,
            limits: Limits {
                body: bytes("limits.body_mib", 20)?,
                header: bytes("limits.header_kib", 10)?,
                concurrency: bytes("limits.concurrency", 0)?,
                concurrency_per_key: match layers.number("limits.concurrency_per_key")? {
                    0 => None,
                    _ => Some(bytes("limits.concurrency_per_key", 0)?),
                },
                memory: memory(layers, bytes("limits.body_mib", 20)? as u64, &wrong)?,
                receive: match seconds("limits.receive_seconds")? {
                    Duration::ZERO => {
                        let reason = "must be at least 1".to_owned();
                        return Err(wrong("limits.receive_seconds", reason));
                    }
                    time => time,
                },
                drain: seconds("limits.drain_seconds")?,
            },
            ping: seconds("liveness.ping_seconds")?,
            socket_idle: seconds("liveness.websocket_idle_seconds")?,
            corrections: u32::try_from(layers.number("calls.corrections")?).unwrap_or(u32::MAX),
            schemas: match word("schemas.form")?.as_str() {
                "auto" => SchemaPolicy::Auto,
                "json" => SchemaPolicy::JsonSchema,
                "parameters" => SchemaPolicy::Parameters,
                "raw" => SchemaPolicy::Raw,
                _ => {
                    let reason = "must be \"auto\", \"json\", \"raw\" or \"parameters\"";
                    return Err(wrong("schemas.form", reason.to_owned()));
                }
            },
            signature_key: signature_key.map(Secret),
            models: Models::new(layers.get("models").map(|it| &it.value))?,
            printed: super::example::printed(layers),
            sources: layers.sources(),
        })
    }

    /// The settings that hold from the start to the end, and that `new` would change.
    pub(crate) fn fixed_but_changed(&self, new: &Self) -> impl Iterator<Item = &'static str> {
        [
            ("listen", self.listen != new.listen),
            ("threads", self.threads != new.threads),
            ("store", self.store != new.store),
            ("store_mib", self.store_bytes != new.store_bytes),
            ("log", self.log != new.log),
            ("log_format", self.log_format != new.log_format),
            ("signatures.key", self.signature_key != new.signature_key),
        ]
        .into_iter()
        .filter_map(|(setting, is_changed)| is_changed.then_some(setting))
    }

    /// The key of [`Config::signature_key`] as bytes.
    pub fn signature_key_bytes(&self) -> Option<[u8; 32]> {
        self.signature_key.as_ref().and_then(|key| hex(key.expose()))
    }
}

fn store(
    layers: &Layers,
    word: &str,
    state_file: Option<PathBuf>,
    kind: UpstreamKind,
) -> Result<StoreKind, String> {
    if let Some(path) = word.strip_prefix("sqlite:").filter(|path| !path.is_empty()) {
        return Ok(StoreKind::Sqlite { path: layers.path("store", path), wanted: true });
    }
    if ["redis://", "rediss://", "valkey://", "valkeys://"].iter().any(|it| word.starts_with(it)) {
        return Ok(StoreKind::Valkey(Secret(word.replacen("valkey", "redis", 1))));
    }
    match (word, state_file) {
        ("off", _) => Ok(StoreKind::Off),
        ("memory", _) => Ok(StoreKind::Memory),
        // Simulated state is not worth a file.
        ("auto", _) if kind == UpstreamKind::Sim => Ok(StoreKind::Memory),
        ("auto", None) => Ok(StoreKind::Memory),
        ("auto", Some(path)) => Ok(StoreKind::Sqlite { path, wanted: false }),
        _ => {
            Err("must be \"auto\", \"memory\", \"off\", \"sqlite:PATH\" or \"redis://…\""
                .to_owned())
        }
    }
}

/// A variable that other programs read, too: it may name something that is not here.
const SHARED: &str = "RUST_LOG";

/// A filter that the log understands.
fn log_filter(text: String, is_shared: bool) -> Result<String, String> {
    // To the filter, any word is the name of something whose every word is wanted.
    let is_meant = |word: &&str| {
        is_shared
            || word.is_empty()
            || word.contains(['=', '['])
            || word.starts_with("toolgate")
            || word.parse::<LevelFilter>().is_ok()
    };
    if let Some(word) = text.split(',').map(str::trim).find(|word| !is_meant(word)) {
        return Err(format!(
            "has `{word}`, which is no level: error, warn, info, debug, trace, off, or a filter such as \"toolgate=debug\""
        ));
    }
    match tracing_subscriber::EnvFilter::try_new(&text) {
        Ok(_) => Ok(text),
        Err(error) => Err(format!("is no filter: {error}")),
    }
}

fn upstream(
    layers: &Layers,
    env: &dyn Fn(&str) -> Option<String>,
    wrong: &dyn Fn(&str, String) -> ConfigError,
) -> Result<Upstream, ConfigError> {
    let seconds = |key: &str| layers.time(key);
    let count = |key: &str| layers.number(key).map(|it| u32::try_from(it).unwrap_or(u32::MAX));
    let path = |key: &str| {
        let path = layers.string(key)?.map(|path| layers.path(key, &path));
        Ok::<_, ConfigError>(path.map(|path| path.to_string_lossy().into_owned()))
    };
    let auth = UpstreamAuth {
        api_keys: layers.strings("upstream.api_keys")?.into_iter().map(Secret).collect(),
        bearer: layers.string("upstream.bearer_token")?.map(Secret),
        service_account: path("upstream.service_account")?,
    };
    let url = layers.string("upstream.url")?.map(|url| url.trim_end_matches('/').to_owned());
    if let Some(url) = &url
        && !url.starts_with("http://")
        && !url.starts_with("https://")
    {
        let reason = "must begin with http:// or https://".to_owned();
        return Err(wrong("upstream.url", reason));
    }
    let configured = layers.string("upstream.kind")?;
    let kind = match configured.as_deref() {
        Some("developer") => UpstreamKind::Developer,
        Some("sim") => UpstreamKind::Sim,
        Some("vertex") => UpstreamKind::Vertex,
        Some(_) => {
            let reason = "must be \"developer\", \"vertex\" or \"sim\"".to_owned();
            return Err(wrong("upstream.kind", reason));
        }
        None if url.is_some() || !auth.api_keys.is_empty() => UpstreamKind::Developer,
        None => UpstreamKind::Sim,
    };
    let location = layers.string("upstream.location")?.unwrap_or_else(|| "global".to_owned());
    // It becomes part of a host name.
    if !location.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-') {
        let reason = "must be a location such as \"global\" or \"europe-west4\"".to_owned();
        return Err(wrong("upstream.location", reason));
    }
    let project = layers.string("upstream.project")?;
    if kind == UpstreamKind::Vertex
        && auth.bearer.is_none()
        && auth.service_account.is_none()
        && auth.api_keys.is_empty()
        && url.is_none()
    {
        let reason = "is vertex: it needs upstream.bearer_token, upstream.service_account or an API key (express mode)";
        return Err(wrong("upstream.kind", reason.to_owned()));
    }
    let api_version = layers.string("upstream.api_version")?.unwrap_or_else(|| {
        match kind {
            UpstreamKind::Developer | UpstreamKind::Sim => "v1beta",
            UpstreamKind::Vertex => "v1beta1",
        }
        .to_owned()
    });
    Ok(Upstream {
        kind,
        is_fallback: kind == UpstreamKind::Sim && configured.is_none(),
        url,
        api_version,
        auth,
        project,
        location,
        ca_file: path("upstream.ca_file")?.map(PathBuf::from),
        proxy: proxy(layers, env, wrong)?,
        connect: seconds("upstream.connect_seconds")?,
        idle: seconds("upstream.idle_seconds")?,
        total: seconds("upstream.total_seconds")?,
        retries: count("upstream.retries")?,
        retry_wait: layers.time("upstream.retry_wait_seconds")?,
        rescue_retries: count("upstream.rescue_retries")?,
    })
}

/// The configured proxy; otherwise the one that the environment names.
fn proxy(
    layers: &Layers,
    env: &dyn Fn(&str) -> Option<String>,
    wrong: &dyn Fn(&str, String) -> ConfigError,
) -> Result<Proxy, ConfigError> {
    let proxy = match layers.string("upstream.proxy")?.as_deref() {
        Some("off") => Ok(Proxy::none()),
        Some(url) => Proxy::for_all(url),
        None => Proxy::from_env(env),
    };
    proxy.map_err(|error| wrong("upstream.proxy", error.to_string()))
}

/// Memory budget in bytes.
fn memory(
    layers: &Layers,
    body: u64,
    wrong: &dyn Fn(&str, String) -> ConfigError,
) -> Result<u64, ConfigError> {
    let key = "limits.memory_mib";
    let least = body.saturating_mul(MEMORY_PER_BODY);
    match layers.number(key)?.checked_mul(1 << 20) {
        Some(0) => Ok(least),
        Some(memory) if memory < least => {
            let reason = format!(
                "must be at least {} ({MEMORY_PER_BODY} times limits.body_mib), or 0",
                least >> 20
            );
            Err(wrong(key, reason))
        }
        Some(memory) => Ok(memory),
        None => Err(wrong(key, "is out of range".to_owned())),
    }
}

/// Thirty-two bytes from sixty-four hexadecimal digits.
fn hex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(at * 2..at * 2 + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(file: &str, env: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let env = |name: &str| {
            env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        Config::resolve(&Sources { file: Some(("toolgate.toml", file)), env: &env, flags: &[] })
    }

    #[test]
    fn nothing_written_means_the_simulator_on_loopback() {
        let config = resolve("", &[]).unwrap();
        assert_eq!(config.listen.to_string(), "127.0.0.1:8741");
        assert_eq!(config.upstream.kind, UpstreamKind::Sim);
        assert!(config.enable_tool_calling && !config.strict_tool_validation);
    }

    /// To write it anew: `toolgate serve --example-config > docs/toolgate.example.toml`.
    #[test]
    fn the_example_file_is_the_code_s() {
        let written = include_str!("../../../../docs/toolgate.example.toml");
        assert_eq!(written, super::super::example());
    }

    #[test]
    fn the_example_says_the_defaults() {
        let commented = super::super::example();
        let defaults = resolve("", &[]).unwrap();
        assert_eq!(resolve(&commented, &[]).unwrap().printed(), defaults.printed());
        let mut with_values = String::new();
        for line in commented.lines() {
            let setting = line.strip_prefix("# ").filter(|rest| {
                super::super::SETTINGS.iter().any(|setting| {
                    let name = setting.key.rsplit('.').next().unwrap_or("");
                    !setting.default.is_empty() && *rest == format!("{name} = {}", setting.default)
                })
            });
            with_values.push_str(setting.unwrap_or(line));
            with_values.push('\n');
        }
        let spelled = resolve(&with_values, &[]).unwrap();
        assert_eq!(spelled.printed().replace("toolgate.toml", "default"), defaults.printed());
    }

    #[test]
    fn r138_r139_r141_later_layers_weigh_more() {
        let config = resolve(
            "enable_tool_calling = true\nstrict_tool_validation = true\nstate_retention_minutes = 5\n[upstream]\nretries = 1",
            &[("PROXY_ENABLE_TOOLS", "0"), ("GEMINI_API_KEY", "k1,k2")],
        )
        .unwrap();
        assert!(!config.enable_tool_calling, "r141");
        assert!(config.strict_tool_validation, "r138");
        assert_eq!(config.state_retention, Duration::from_secs(300), "r139");
        let default = resolve("", &[]).unwrap();
        assert!(default.enable_tool_calling && !default.strict_tool_validation, "r141");
        assert_eq!(config.upstream.retries, 1);
        assert_eq!(config.upstream.kind, UpstreamKind::Developer);
        assert_eq!(config.upstream.auth.api_keys.len(), 2);
        assert!(!config.printed().contains("k1"), "{}", config.printed());
        assert!(!format!("{config:?}").contains("k1"));
    }

    #[test]
    fn a_password_in_an_address_is_not_shown() {
        let file = "store = \"rediss://ann:s3cr:t@cache:6380/1\"\n[upstream]\nurl = \"http://x\"";
        let config = resolve(file, &[]).unwrap();
        assert!(config.printed().contains("store = \"rediss://…@cache:6380/1\""));
        assert!(config.printed().contains("url = \"http://x\""));
        for shown in [config.printed().to_owned(), format!("{config:?}")] {
            assert!(!shown.contains("s3cr") && !shown.contains("ann"), "{shown}");
        }
        let named = StoreKind::Valkey(Secret::new("redis://cache"));
        assert_eq!(resolve("store = \"valkey://cache\"", &[]).unwrap().store, named);
        assert!(resolve("store = \"valkeys://cache\"", &[]).is_ok());
    }

    #[track_caller]
    fn refused(file: &str, want: &str) {
        let error = resolve(file, &[]).unwrap_err().to_string();
        assert!(error.contains(want), "{error}");
    }

    #[test]
    fn filters_of_the_log_are_levels_or_name_one() {
        for filter in ["warn", "OFF", "toolgate=debug", "toolgate_gateway", "info,hyper=trace", ""]
        {
            let resolved = resolve(&format!("log = \"{filter}\""), &[]);
            assert!(resolved.is_ok(), "{filter}: {resolved:?}");
        }
        assert!(resolve("", &[("RUST_LOG", "another_program")]).is_ok(), "it is not ours alone");
    }

    /// Every numeric setting has a range, and the ends of it can be used.
    #[test]
    fn numbers_outside_their_range_are_refused_with_the_range() {
        for setting in super::super::SETTINGS {
            let Ok(_) = setting.default.parse::<u64>() else { continue };
            let (min, max) = setting.range.unwrap_or_else(|| panic!("{}: no range", setting.key));
            let with = |value: u64| match setting.key.split_once('.') {
                Some((section, name)) => format!("[{section}]\n{name} = {value}"),
                None => format!("{} = {value}", setting.key),
            };
            for value in [min, max] {
                assert!(resolve(&with(value), &[]).is_ok(), "{} = {value}", setting.key);
            }
            let below = min.checked_sub(1);
            for value in [below, Some(max + 1), Some(i64::MAX as u64)].into_iter().flatten() {
                refused(&with(value), &format!("must be from {min} to {max}"));
            }
        }
    }

    #[test]
    fn relative_paths_of_a_file_start_at_its_folder() {
        let file = "store = \"sqlite:state/a.db\"\n[upstream]\nkind = \"vertex\"\nservice_account = \"account.json\"";
        let at = |name: &str, flags: &[(&str, &str, &str)]| {
            Config::resolve(&Sources { file: Some((name, file)), env: &|_| None, flags }).unwrap()
        };
        let path = |config: &Config| match &config.store {
            StoreKind::Sqlite { path, .. } => path.display().to_string(),
            StoreKind::Memory | StoreKind::Off | StoreKind::Valkey(_) => panic!(),
        };
        let config = at("/etc/gate/toolgate.toml", &[]);
        assert_eq!(path(&config), "/etc/gate/state/a.db");
        let account = config.upstream.auth.service_account.as_deref();
        assert_eq!(account, Some("/etc/gate/account.json"));
        let flags = [("store", "--store", "sqlite:b.db")];
        assert_eq!(path(&at("/etc/gate/toolgate.toml", &flags)), "b.db", "a flag's");
    }

    #[test]
    fn mistakes_are_named() {
        refused("strict_tool_validaton = true", "did you mean `strict_tool_validation`?");
        refused("[upstream]\nretrys = 1", "did you mean `upstream.retries`?");
        refused("listen = 5", "`listen` (from toolgate.toml) must be a string");
        refused("listen = \"0.0.0.0:80\"", "without client keys");
        refused("state_retention_minutes = -1", "must not be negative");
        refused("state_retention_minutes = 9223372036854775807", "must be from 1 to 52560000");
        refused("log = \"a=b=c\"", "`log` (from toolgate.toml) is no filter");
        refused("log = \"info,nonsense\"", "`log` (from toolgate.toml) has `nonsense`");
        refused("log = \"toolgate=loud\"", "`log` (from toolgate.toml) is no filter");
        for key in ["connect_seconds", "idle_seconds", "total_seconds"] {
            refused(&format!("[upstream]\n{key} = 0"), "must be from 1 to");
        }
        refused(
            "[clients]\nkeys = [\"client-key\", \"short\"]",
            "has a key of fewer than 8 characters",
        );
        refused("[limits]\nmemory_mib = 100", "must be at least 2048 (64 times limits.body_mib)");
        refused("[limits]\nreceive_seconds = 0", "must be from 1 to");
        refused("[limit]\nbody_mib = 1", "did you mean `limits`?");
        refused("[upstrem]\nretries = 1", "did you mean `upstream`?");
        refused("limits = 3", "`limits` (from toolgate.toml) must be a section: [limits]");
        refused("[[limits]]\nbody_mib = 1", "`limits` (from toolgate.toml) must be a section");
        refused("[upstream]\nkind = \"openai\"", "must be \"developer\"");
        refused("[upstream]\nkind = \"vertex\"", "needs upstream.bearer_token");
        refused("[models]\n\"claude-*\" = { modell = \"x\" }", "models.\"claude-*\".modell");
        refused("[upstream]\nlocation = \"evil.example/\"", "must be a location");
        refused("store = \"postgres://x\"", "must be \"auto\"");
        refused("listen = ", "toolgate.toml:");
    }
}
