//! Configuration: one list of settings, resolved once.
//!
//! A file, `TOOLGATE_*` variables and flags, in that order of increasing weight. The
//! environment is an argument, so tests need none. After [`Config::resolve`] nothing can fail.

mod example;
mod layers;
mod models;
mod places;
mod resolve;
mod settings;
mod target;

pub use example::example;
pub use models::{Meaning, Models};
pub use places::{state_folder, user_config_file};
pub(crate) use resolve::TRANSLATION_MULTIPLE;
pub use resolve::{
    Clients, Config, ConfigError, Limits, LogFormat, Secret, Sources, StoreKind, Upstream,
    UpstreamAuth, UpstreamKind,
};
pub use settings::{SETTINGS, Setting};
pub use target::Access;
