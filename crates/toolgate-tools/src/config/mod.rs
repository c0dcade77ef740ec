//! `[tools]` configuration and the registry that is built of it.

mod build;
mod types;

pub use build::ConfigError;
pub use types::{
    AffinityConfig, AuthConfig, EraConfig, GeminiServers, HttpConfig, OfferConfig, OnLeave,
    OpenApiConfig, PinsMode, RemoteServers, ServerConfig, ShowRuns, ToolsConfig, WorkerConfig,
};
