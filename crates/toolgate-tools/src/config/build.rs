//! Builds a registry of a configuration.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, Uri};
use serde_json::value::to_raw_value;

use super::types::{
    AffinityConfig, AuthConfig, Common, EraConfig, HttpConfig, OfferConfig, OpenApiConfig,
    PinsMode, ServerConfig, ToolsConfig, WorkerConfig,
};
use crate::tool::check_namespace;
use crate::{
    Addresses, Affinity, Body, ChildCommand, Credentials, Definition, Digest, Era, Grants,
    HttpTemplate, HttpTool, HttpTools, Limits, McpServer, Offer, OpenApi, Pattern, PinMode,
    ProcessGuard, Registry, Secret, Settings, Source, SourceOptions, ToolName, WorkerOptions,
    WorkerPool,
};

/// Namespace of HTTP tools.
const HTTP: &str = "http";

/// Headers that the transport sets itself.
const RESERVED_HEADERS: [&str; 9] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "mcp-protocol-version",
    "mcp-session-id",
    "te",
    "transfer-encoding",
];

/// An error in the configuration, with its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {reason}")]
pub struct ConfigError {
    /// Place: `tools.servers.github`.
    pub at: String,
    /// The fault, and the correct form.
    pub reason: String,
}

fn error(at: &str, reason: &(impl ToString + ?Sized)) -> ConfigError {
    ConfigError { at: at.to_owned(), reason: reason.to_string() }
}

type Built = (String, Arc<dyn Source>, SourceOptions);

impl ToolsConfig {
    /// Builds a registry. Files are searched in `folder`; nothing is connected to or started yet.
    ///
    /// # Errors
    /// Fails at the first mistake, with its place.
    pub fn build(
        &self,
        folder: &Path,
        pins: HashMap<ToolName, Digest>,
    ) -> Result<Registry, ConfigError> {
        let settings = Settings {
            grants: self.grants()?,
            pin_mode: match self.pins {
                PinsMode::Off => PinMode::Off,
                PinsMode::Warn => PinMode::Warn,
                PinsMode::Enforce => PinMode::Enforce,
            },
            pins,
            cache_bytes: self.cache_mib.saturating_mul(1 << 20),
            ..Settings::default()
        };
        let guard = ProcessGuard::default();
        let mut sources: Vec<Built> = Vec::new();
        for (name, server) in &self.servers {
            let at = format!("tools.servers.{name}");
            sources.push(self.server(&at, name, server, folder, &guard)?);
        }
        for (name, worker) in &self.workers {
            sources.push(self.worker(name, worker, folder, &guard));
        }
        if !self.http.is_empty() {
            sources.push(self.http()?);
        }
        for (name, api) in &self.openapi {
            sources.push(self.openapi(&format!("tools.openapi.{name}"), name, api, folder)?);
        }
        let registry = Registry::start(settings).map_err(|it| error("tools", &it))?;
        for (name, source, options) in sources {
            registry.add(&name, source, options).map_err(|it| error("tools", &it))?;
        }
        Ok(registry)
    }

    fn limits(&self) -> Limits {
        Limits {
            idle_timeout: Duration::from_secs(self.call_seconds.max(1)),
            total_timeout: Duration::from_secs(self.call_total_seconds.max(1)),
            max_result_bytes: self.result_kib.saturating_mul(1024),
            // The limit is in bytes of media, results carry base64.
            max_media_bytes: self.result_media_mib.saturating_mul(1 << 20) / 3 * 4,
            concurrency: self.parallel.max(1),
        }
    }

    fn options(&self, common: &Common<'_>) -> SourceOptions {
        let patterns = |list: &[String]| list.iter().map(|it| Pattern::new(it)).collect();
        let base = SourceOptions::default();
        SourceOptions {
            allow: patterns(common.allow),
            deny: patterns(common.deny),
            approve: patterns(common.approve),
            deterministic: patterns(common.deterministic),
            limits: self.limits(),
            max_in_flight: common.max_in_flight.unwrap_or(base.max_in_flight),
            offer: match common.offer {
                OfferConfig::Asked => Offer::Asked,
                OfferConfig::Always => Offer::Always,
            },
            cache_ttl: common.cache_seconds.map_or(base.cache_ttl, Duration::from_secs),
            list_timeout: Duration::from_secs(self.list_seconds.max(1)),
            ..base
        }
    }

    fn grants(&self) -> Result<Grants, ConfigError> {
        let mut grants = Grants::none();
        for (client, entries) in &self.grants {
            for entry in entries {
                match self.sets.get(entry) {
                    Some(set) => grants.grant(client, set.iter().map(|it| Pattern::new(it))),
                    None if entry.contains('.') || entry == "*" => {
                        grants.grant(client, [Pattern::new(entry)]);
                    }
                    None => {
                        let reason = format!(
                            "there is no set `{entry}`: name one of tools.sets, or write `source.tool`"
                        );
                        return Err(error(&format!("tools.grants.{client}"), &reason));
                    }
                }
            }
        }
        Ok(grants)
    }

    fn server(
        &self,
        at: &str,
        name: &str,
        server: &ServerConfig,
        folder: &Path,
        guard: &ProcessGuard,
    ) -> Result<Built, ConfigError> {
        check_namespace(name).map_err(|it| error(at, &it))?;
        let era = match server.era {
            EraConfig::Auto => Era::Auto,
            EraConfig::Modern => Era::Modern,
            EraConfig::Legacy => Era::Legacy,
        };
        let source = match (&server.url, server.command.is_empty()) {
            (Some(url), true) => {
                check_url(url).map_err(|reason| error(&format!("{at}.url"), reason))?;
                let credentials = credentials(&format!("{at}.auth"), &server.auth)?;
                McpServer::http(name, url, credentials, Addresses::Any)
                    .map_err(|it| error(at, &it))?
            }
            (None, false) => {
                let command = server.sandbox.iter().chain(&server.command).cloned();
                let mut command = ChildCommand::new(command);
                environment(&mut command, &server.env, &server.env_from);
                command.directory = server.directory.as_ref().map(|it| folder.join(it));
                McpServer::stdio(name, command, guard)
            }
            (Some(_), false) => return Err(error(at, "give `url` or `command`, not both")),
            (None, true) => return Err(error(at, "give `url` or `command`")),
        };
        let mut options = self.options(&Common {
            allow: &server.allow,
            deny: &server.deny,
            approve: &server.approve,
            deterministic: &server.deterministic,
            cache_seconds: server.cache_seconds,
            offer: server.offer,
            max_in_flight: if server.sequential { Some(1) } else { server.max_in_flight },
        });
        options.private_results = !server.public_results;
        Ok((name.to_owned(), Arc::new(source.with_era(era)), options))
    }

    fn worker(
        &self,
        name: &str,
        worker: &WorkerConfig,
        folder: &Path,
        guard: &ProcessGuard,
    ) -> Built {
        let mut command = vec![worker.python.clone()];
        let threads = worker.concurrency.max(1).to_string();
        let arguments = ["-m", "toolgate_worker", worker.module.as_str(), "--threads", &threads];
        command.extend(arguments.map(ToOwned::to_owned));
        if let Some(seconds) = worker.session_seconds {
            command.extend(["--session-seconds".to_owned(), seconds.to_string()]);
        }
        let mut command = ChildCommand::new(command);
        environment(&mut command, &worker.env, &worker.env_from);
        command.directory = worker.directory.as_ref().map(|it| folder.join(it));
        command.memory_limit = worker.memory_mib.map(|it| it.saturating_mul(1 << 20));
        let mut options = WorkerOptions::new(command);
        options.processes = worker.processes.max(1);
        options.concurrency = worker.concurrency.max(1);
        options.affinity = match worker.affinity {
            AffinityConfig::None => Affinity::None,
            AffinityConfig::Hint => Affinity::Hint,
            AffinityConfig::Strict => Affinity::Strict,
        };
        options.recycle_calls = worker.recycle_calls;
        options.recycle_age = worker.recycle_seconds.map(Duration::from_secs);
        options.recycle_memory = worker.recycle_mib.map(|it| it.saturating_mul(1 << 20));
        options.watch = worker.watch.iter().map(|it| folder.join(it)).collect();
        if let Some(seconds) = worker.stuck_seconds {
            options.stuck_timeout = Duration::from_secs(seconds);
        }
        if let Some(seconds) = worker.session_seconds {
            options.session_ttl = Duration::from_secs(seconds);
        }
        options.drain_timeout = Duration::from_secs(self.call_total_seconds.max(1));
        let mut source = self.options(&Common {
            allow: &worker.allow,
            deny: &worker.deny,
            approve: &worker.approve,
            cache_seconds: worker.cache_seconds,
            offer: worker.offer,
            max_in_flight: Some(options.processes.saturating_mul(options.concurrency)),
            ..Common::default()
        });
        // A worker has no credential of the client.
        source.private_results = false;
        (name.to_owned(), Arc::new(WorkerPool::new(name, options, guard)), source)
    }

    fn http(&self) -> Result<Built, ConfigError> {
        let mut tools = Vec::new();
        let mut options = self.options(&Common::default());
        options.private_results = false;
        for (name, http) in &self.http {
            let at = format!("tools.http.{name}");
            ToolName::new(HTTP, name).map_err(|it| error(&at, &it))?;
            tools.push(http_tool(&at, name, http)?);
            let flags = [
                (http.deterministic, &mut options.deterministic),
                (http.approve, &mut options.approve),
                (http.offer == OfferConfig::Always, &mut options.always),
            ];
            for (is_set, list) in flags {
                if is_set {
                    list.push(Pattern::new(name));
                }
            }
        }
        let source = HttpTools::new(tools).map_err(|it| error("tools.http", &it))?;
        Ok((HTTP.to_owned(), Arc::new(source), options))
    }

    fn openapi(
        &self,
        at: &str,
        name: &str,
        config: &OpenApiConfig,
        folder: &Path,
    ) -> Result<Built, ConfigError> {
        check_namespace(name).map_err(|it| error(at, &it))?;
        let path = folder.join(&config.spec);
        let text = std::fs::read_to_string(&path).map_err(|it| {
            error(&format!("{at}.spec"), &format!("{} cannot be read: {it}", path.display()))
        })?;
        if let Some(url) = &config.url {
            check_url(url).map_err(|reason| error(&format!("{at}.url"), reason))?;
        }
        let api = OpenApi::new(&text, config.url.as_deref())
            .map_err(|it| error(&format!("{at}.spec"), &it))?;
        let credentials = credentials(&format!("{at}.auth"), &config.auth)?;
        let operations = format!("{at}.operations");
        if config.operations.is_empty() {
            return Err(error(&operations, "list the operations that become tools"));
        }
        let mut tools = Vec::new();
        for id in &config.operations {
            ToolName::new(name, id).map_err(|it| error(&operations, &it))?;
            tools.push(api.tool(id, &credentials).map_err(|it| error(&operations, &it))?);
        }
        let source = HttpTools::new(tools).map_err(|it| error(at, &it))?;
        let mut options = self.options(&Common {
            approve: &config.approve,
            deterministic: &config.deterministic,
            cache_seconds: config.cache_seconds,
            offer: config.offer,
            max_in_flight: config.max_in_flight,
            ..Common::default()
        });
        options.private_results = false;
        Ok((name.to_owned(), Arc::new(source), options))
    }
}

fn http_tool(at: &str, name: &str, http: &HttpConfig) -> Result<HttpTool, ConfigError> {
    let body = match http.body.as_deref() {
        None => Body::None,
        Some("{}") => Body::All,
        Some(text) => {
            let name = text.strip_prefix('{').and_then(|it| it.strip_suffix('}'));
            let reason = "write `{}` for all arguments or `{name}` for one of them";
            Body::Argument(name.ok_or_else(|| error(&format!("{at}.body"), reason))?.to_owned())
        }
    };
    let template = HttpTemplate::new(&http.request, http.query.clone(), body)
        .map_err(|it| error(&format!("{at}.request"), &it))?;
    let schema = format!("{at}.parameters");
    if !http.parameters.is_object() {
        return Err(error(&schema, "write a JSON Schema, as in { type = \"object\" }"));
    }
    if let Some(missing) = template.missing_in(&http.parameters) {
        return Err(error(&schema, &format!("there is no property `{missing}`, which is used")));
    }
    let parameters = to_raw_value(&http.parameters).map_err(|it| error(&schema, &it))?;
    let auth = AuthConfig { bearer: None, header: http.header.clone() };
    Ok(HttpTool {
        name: name.to_owned(),
        definition: Definition::new(http.description.clone(), parameters),
        template,
        credentials: credentials(&format!("{at}.header"), &auth)?,
    })
}

fn check_url(url: &str) -> Result<(), &'static str> {
    let uri: Uri = url.parse().map_err(|_| "not a URL")?;
    let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
    if !is_web || uri.host().is_none_or(str::is_empty) {
        return Err("write an absolute URL, as in https://example.com/mcp");
    }
    if uri.authority().is_some_and(|it| it.as_str().contains('@')) {
        return Err("no user or password in URLs: use `auth`");
    }
    Ok(())
}

fn credentials(at: &str, auth: &AuthConfig) -> Result<Credentials, ConfigError> {
    let mut credentials = match &auth.bearer {
        Some(secret) => Credentials::bearer(secret.clone()),
        None => Credentials::default(),
    };
    for (name, secret) in &auth.header {
        let header: HeaderName =
            name.parse().map_err(|_| error(at, &format!("`{name}` is no header name")))?;
        if RESERVED_HEADERS.contains(&header.as_str()) {
            return Err(error(at, &format!("header `{name}` is set by the transport")));
        }
        credentials.add_header(header, secret.clone());
    }
    Ok(credentials)
}

fn environment(command: &mut ChildCommand, env: &BTreeMap<String, String>, from: &[String]) {
    for (name, value) in env {
        match value.parse::<Secret>() {
            Ok(secret) => command.secret_env.insert(name.clone(), secret).map(drop),
            Err(_) => command.env.insert(name.clone(), value.clone()).map(drop),
        };
    }
    command.env_from = from.to_vec();
}
