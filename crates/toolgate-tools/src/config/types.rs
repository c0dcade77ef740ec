//! Types of the `[tools]` table. Unknown members are errors; secrets are references.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

use crate::secret::Secret;

/// The `[tools]` table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolsConfig {
    /// Model rounds in one turn that run tools.
    pub max_rounds: u32,
    /// Calls that the gateway runs in one turn.
    pub max_calls: u32,
    /// Seconds without news of a call; progress starts them again.
    pub call_seconds: u64,
    /// Seconds of one call, whatever it reports.
    pub call_total_seconds: u64,
    /// Seconds of one listing, all pages included.
    pub list_seconds: u64,
    /// Calls of one turn that run at the same time.
    pub parallel: usize,
    /// Tools that are offered at once.
    pub max_tools: usize,
    /// Text and JSON of one result, in KiB.
    pub result_kib: usize,
    /// Media of one result, in MiB.
    pub result_media_mib: usize,
    /// All cached results, in MiB.
    pub cache_mib: usize,
    /// When clients see calls that the gateway ran.
    pub show: ShowRuns,
    /// Treatment of definitions that differ from their pin.
    pub pins: PinsMode,
    /// What happens to running calls when the client leaves.
    pub on_leave: OnLeave,
    /// Servers that a request brings by URL.
    pub remote: RemoteServers,
    /// Hosts of such servers: `mcp.example.com`, `*.example.com`.
    pub remote_hosts: Vec<String>,
    /// Gemini's own `mcpServers`.
    pub gemini_servers: GeminiServers,
    /// MCP servers.
    pub servers: BTreeMap<String, ServerConfig>,
    /// Pools of worker processes.
    pub workers: BTreeMap<String, WorkerConfig>,
    /// HTTP tools; they have the namespace `http`.
    pub http: BTreeMap<String, HttpConfig>,
    /// OpenAPI documents.
    pub openapi: BTreeMap<String, OpenApiConfig>,
    /// Named sets of patterns.
    pub sets: BTreeMap<String, Vec<String>>,
    /// Sets and patterns of each client key; `*` for every client.
    pub grants: BTreeMap<String, Vec<String>>,
}

impl Default for ToolsConfig {
    fn default() -> Self {
        Self {
            max_rounds: 16,
            max_calls: 64,
            call_seconds: 60,
            call_total_seconds: 600,
            list_seconds: 10,
            parallel: 32,
            max_tools: 128,
            result_kib: 256,
            result_media_mib: 8,
            cache_mib: 32,
            show: ShowRuns::Asked,
            pins: PinsMode::Warn,
            on_leave: OnLeave::Cancel,
            remote: RemoteServers::Deny,
            remote_hosts: Vec::new(),
            gemini_servers: GeminiServers::Forward,
            servers: BTreeMap::new(),
            workers: BTreeMap::new(),
            http: BTreeMap::new(),
            openapi: BTreeMap::new(),
            sets: BTreeMap::new(),
            grants: BTreeMap::new(),
        }
    }
}

/// When clients see calls that the gateway ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ShowRuns {
    /// Where the request named an MCP server.
    #[default]
    Asked,
    /// Never.
    Never,
    /// Always.
    Always,
}

/// Treatment of definitions that differ from their pin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PinsMode {
    /// Pins are not compared.
    Off,
    /// Changed definitions are logged and offered.
    #[default]
    Warn,
    /// Only pinned definitions are offered.
    Enforce,
}

/// What happens to running calls when the client leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnLeave {
    /// They are cancelled.
    #[default]
    Cancel,
    /// They run to their end.
    Finish,
}

/// Servers that a request brings by URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RemoteServers {
    /// They are refused.
    #[default]
    Deny,
    /// Those of listed hosts are used: HTTPS, public addresses only.
    Listed,
}

/// Gemini's own `mcpServers`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GeminiServers {
    /// Gemini calls them.
    #[default]
    Forward,
    /// The gateway calls them.
    Run,
}

/// When tools are part of a catalogue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OfferConfig {
    /// Where the request asks for them.
    #[default]
    Asked,
    /// Always.
    Always,
}

/// Era of an MCP server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum EraConfig {
    /// It is found out.
    #[default]
    #[serde(rename = "auto")]
    Auto,
    /// 2026-07-28.
    #[serde(rename = "2026-07-28")]
    Modern,
    /// A version with a handshake.
    #[serde(
        rename = "2025-11-25",
        alias = "2025-06-18",
        alias = "2025-03-26",
        alias = "2024-11-05",
        alias = "legacy"
    )]
    Legacy,
}

/// Options that every kind of source has.
#[derive(Clone, Debug, Default)]
pub(super) struct Common<'a> {
    pub(super) allow: &'a [String],
    pub(super) deny: &'a [String],
    pub(super) approve: &'a [String],
    pub(super) deterministic: &'a [String],
    pub(super) cache_seconds: Option<u64>,
    pub(super) offer: OfferConfig,
    pub(super) max_in_flight: Option<usize>,
}

/// An MCP server: `url` or `command`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerConfig {
    /// Address of a server over streamable HTTP.
    pub url: Option<String>,
    /// Credentials for it.
    pub auth: AuthConfig,
    /// Command of a server over standard streams.
    pub command: Vec<String>,
    /// Command that the command is started by.
    pub sandbox: Vec<String>,
    /// Variables of its environment; `env:NAME` and `file:/path` are references.
    pub env: BTreeMap<String, String>,
    /// Variables that it inherits.
    pub env_from: Vec<String>,
    /// Working directory.
    pub directory: Option<PathBuf>,
    /// Names that are offered; empty for all.
    pub allow: Vec<String>,
    /// Names that are never offered.
    pub deny: Vec<String>,
    /// Names whose calls need an approval.
    pub approve: Vec<String>,
    /// Names whose results may be cached.
    pub deterministic: Vec<String>,
    /// Seconds for which they are.
    pub cache_seconds: Option<u64>,
    /// Cached results are shared by all clients.
    pub public_results: bool,
    /// Calls run one after another.
    pub sequential: bool,
    /// Calls that run at the same time.
    pub max_in_flight: Option<usize>,
    /// When its tools are part of a catalogue.
    pub offer: OfferConfig,
    /// Version of the protocol.
    pub era: EraConfig,
}

/// Credentials of a server.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuthConfig {
    /// Bearer token.
    pub bearer: Option<Secret>,
    /// Headers.
    pub header: BTreeMap<String, Secret>,
}

/// A pool of Python worker processes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerConfig {
    /// Python of the environment that has `toolgate-worker`.
    #[serde(default = "default_python")]
    pub python: String,
    /// Module or file with the functions.
    pub module: String,
    /// Number of processes.
    #[serde(default = "one")]
    pub processes: usize,
    /// Calls that one process runs at the same time.
    #[serde(default = "default_concurrency")]
    pub concurrency: usize,
    /// Whether calls of one session go to the same process.
    #[serde(default)]
    pub affinity: AffinityConfig,
    /// Limit of the address space of one process, in MiB.
    pub memory_mib: Option<u64>,
    /// Calls after which a process is replaced.
    pub recycle_calls: Option<u64>,
    /// Age at which a process is replaced, in seconds.
    pub recycle_seconds: Option<u64>,
    /// Resident memory at which a process is replaced, in MiB.
    pub recycle_mib: Option<u64>,
    /// Files and folders whose changes reload the code.
    #[serde(default)]
    pub watch: Vec<PathBuf>,
    /// Seconds in which a process has to answer a probe.
    pub stuck_seconds: Option<u64>,
    /// Seconds after which the state of an unused session is dropped.
    pub session_seconds: Option<u64>,
    /// Variables of the environment; `env:NAME` and `file:/path` are references.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Variables that are inherited.
    #[serde(default)]
    pub env_from: Vec<String>,
    /// Working directory.
    pub directory: Option<PathBuf>,
    /// Names that are offered; empty for all.
    #[serde(default)]
    pub allow: Vec<String>,
    /// Names that are never offered.
    #[serde(default)]
    pub deny: Vec<String>,
    /// Names whose calls need an approval.
    #[serde(default)]
    pub approve: Vec<String>,
    /// Seconds for which results of deterministic tools are cached.
    pub cache_seconds: Option<u64>,
    /// When its tools are part of a catalogue.
    #[serde(default)]
    pub offer: OfferConfig,
}

fn default_python() -> String {
    "python3".to_owned()
}

fn one() -> usize {
    1
}

fn default_concurrency() -> usize {
    8
}

/// Whether calls of one session go to the same process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AffinityConfig {
    /// The least busy process runs the call.
    None,
    /// The process of the session, if it has a free place.
    #[default]
    Hint,
    /// The process of the session; the call waits for it.
    Strict,
}

/// An HTTP tool.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpConfig {
    /// Method and URL: `GET https://api.example.com/v1/weather/{city}`.
    pub request: String,
    /// Members of the query.
    #[serde(default)]
    pub query: BTreeMap<String, String>,
    /// `{}` for all arguments as JSON, `{name}` for one of them.
    pub body: Option<String>,
    /// Description for the model.
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: Value,
    /// Headers whose values are secrets.
    #[serde(default)]
    pub header: BTreeMap<String, Secret>,
    /// Results may be cached.
    #[serde(default)]
    pub deterministic: bool,
    /// Calls need an approval.
    #[serde(default)]
    pub approve: bool,
    /// When the tool is part of a catalogue.
    #[serde(default)]
    pub offer: OfferConfig,
}

/// Operations of an OpenAPI document.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenApiConfig {
    /// File of the document, JSON.
    pub spec: PathBuf,
    /// Address, where the document has none or another one is meant.
    pub url: Option<String>,
    /// Operations that become tools.
    pub operations: Vec<String>,
    /// Credentials.
    #[serde(default)]
    pub auth: AuthConfig,
    /// Operations whose calls need an approval.
    #[serde(default)]
    pub approve: Vec<String>,
    /// Operations whose results may be cached.
    #[serde(default)]
    pub deterministic: Vec<String>,
    /// Seconds for which they are.
    pub cache_seconds: Option<u64>,
    /// Calls that run at the same time.
    pub max_in_flight: Option<usize>,
    /// When its tools are part of a catalogue.
    #[serde(default)]
    pub offer: OfferConfig,
}
