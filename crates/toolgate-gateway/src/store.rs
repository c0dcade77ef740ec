//! The store that the configuration names.

pub(crate) use toolgate_store::{Call, Content, FoundCall, Item, Kind, Stamp, Store};
use toolgate_store::{Location, OpenError, Options};

use crate::config::StoreKind;

/// Opens the store. Returns its secret, too. A file that was not asked for by name is replaced by
/// memory where it cannot be used.
pub(crate) async fn open(
    kind: &StoreKind,
    options: Options,
) -> Result<(Store, [u8; 32]), OpenError> {
    let (location, is_required) = match kind {
        StoreKind::Off => (Location::Off, true),
        StoreKind::Memory => (Location::Memory, true),
        StoreKind::Sqlite { path, wanted } => (Location::Sqlite(path.clone()), *wanted),
        StoreKind::Valkey(url) => (Location::Valkey(url.expose().to_owned()), true),
    };
    match Store::open(&location, options.clone()).await {
        Err(error) if !is_required => {
            tracing::warn!("{error}; keeping state in memory, it is lost when the gateway exits");
            Store::open(&Location::Memory, options).await
        }
        opened => opened,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use toolgate_store::Metrics;

    use super::*;

    #[tokio::test]
    async fn memory_replaces_a_default_file_that_cannot_be_used_but_not_a_named_one() {
        // A folder is no database.
        let path = std::env::temp_dir();
        let options = Options {
            max_bytes: 1 << 20,
            retention: Duration::from_secs(60),
            new_secret: [1; 32],
            may_start_away: false,
            metrics: Metrics::default(),
        };
        let kind = |wanted| StoreKind::Sqlite { path: path.clone(), wanted };
        assert!(open(&kind(true), options.clone()).await.is_err());
        let (store, _) = open(&kind(false), options).await.unwrap();
        assert!(!store.is_shared());
    }
}
